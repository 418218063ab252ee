//! Reads a command line: lists, pipelines and compound commands.
//!
//! A reader of our own for the part of bash whose meaning does not depend on options, versions or what has been run
//! before. What it does not know it refuses, with the place; it never guesses and never skips. Words are in
//! [`words`](super::words); what a command may do is not decided here.

use super::Refusal;
use super::syntax::{Assignment, Command, Kind, List, Operator, Pipeline, Redirect, Simple, Span, Word};

/// Commands within commands within words at most: nobody writes more, and reading must not use up the stack.
const DEPTH_LIMIT: usize = 24;

/// Words that end a list or begin something else where a command could begin.
const CLOSING: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Words that begin a compound command, and the one that turns a pipeline's result round.
const OPENING: [&str; 8] = ["if", "while", "until", "for", "case", "!", "{", "[["];

/// Compound commands that are not read.
const UNREAD: [&str; 3] = ["select", "coproc", "function"];

pub(super) type Read<T> = Result<T, Refusal>;

/// A place in a text.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Where the part that is read ends: inside backquotes before the closing one.
    pub(super) end: usize,
    /// How deep it is nested here, and how many of those levels are substitutions.
    depth: usize,
    substitutions: usize,
    /// How far the text was looked through for the end of a bracket, and whether it was found there.
    pub(super) looked_at: Option<(usize, bool)>,
    /// The here-document whose body begins with the next line.
    pending: Option<Pending>,
}

/// A here-document that has been announced and read ahead.
struct Pending {
    /// The end of the line it was announced on.
    line_end: usize,
    /// Where the line after it begins.
    after: usize,
}

/// Reads a whole text.
pub(super) fn read(text: &str) -> Read<List> {
    let mut reader =
        Reader { text, at: 0, end: text.len(), depth: 0, substitutions: 0, looked_at: None, pending: None };
    let list = reader.list(&[])?;
    if reader.at < reader.end || reader.pending.is_some() || list.items.is_empty() {
        return Err(reader.unexpected());
    }
    Ok(list)
}

impl<'a> Reader<'a> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.byte(0)
    }

    /// The byte some way ahead; nothing beyond the end.
    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        (at < self.end).then(|| self.text.as_bytes()[at])
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..self.end]
    }

    pub(super) fn refuse<T>(&self, span: Span, why: &str, instead: &str) -> Read<T> {
        Err(Refusal::new(self.text.get(span).unwrap_or_default(), why, instead))
    }

    /// What stands here belongs to nothing.
    pub(super) fn unexpected(&self) -> Refusal {
        let rest = self.rest();
        let part = rest.lines().next().unwrap_or_default();
        let why = match rest.chars().next() {
            None => "the line ends in the middle of something".to_owned(),
            Some('\n') => "a line ends in the middle of something".to_owned(),
            Some(_) => "it is not understood from here on".to_owned(),
        };
        Refusal::new(part, why, "Write it in a simpler way.")
    }

    /// One level further in.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEPTH_LIMIT {
            return self.refuse(self.at..self.end, "it is nested too deeply", "Use several short commands.");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Passes blanks, and line ends that a backslash takes back where nothing can be joined by it.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.byte(1) == Some(b'\n') && self.after_blank() => self.at += 2,
                _ => return,
            }
        }
    }

    /// Whether no word can go on from here.
    fn after_blank(&self) -> bool {
        match self.text[..self.at].bytes().next_back() {
            None => true,
            Some(last) => matches!(last, b' ' | b'\t' | b'\n'),
        }
    }

    /// Passes blanks, and a comment if one begins here.
    fn blanks_and_comment(&mut self) -> Read<()> {
        self.blanks();
        if self.peek() == Some(b'#') {
            let rest = self.rest();
            let comment = &rest[..rest.find('\n').unwrap_or(rest.len())];
            if self.substitutions > 0 {
                let span = self.at..self.at + comment.len();
                return self.refuse(span, "a comment inside a command can end it elsewhere", "Leave the comment out.");
            }
            self.at += comment.len();
        }
        Ok(())
    }

    /// Passes a line end and the body of a here-document that begins behind it.
    fn line_end(&mut self) -> Read<()> {
        match self.pending.take() {
            None => self.at += 1,
            Some(pending) if pending.line_end == self.at => self.at = pending.after,
            Some(_) => return Err(self.unexpected()),
        }
        Ok(())
    }

    /// Passes line ends, blanks and comments.
    fn line_ends(&mut self) -> Read<()> {
        loop {
            self.blanks_and_comment()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    /// The plain word that stands here.
    fn bare_word(&self) -> &'a str {
        let rest = self.rest();
        &rest[..rest.bytes().position(|b| matches!(b, b' ' | b'\t') || is_operator(b)).unwrap_or(rest.len())]
    }

    /// The reserved word that stands here, if one does.
    fn reserved(&self) -> Option<&'a str> {
        let word = self.bare_word();
        [&OPENING[..], &CLOSING, &UNREAD].iter().any(|words| words.contains(&word)).then_some(word)
    }

    /// Takes a reserved word that has to stand here.
    fn expect(&mut self, word: &str) -> Read<()> {
        self.line_ends()?;
        if self.bare_word() != word {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(())
    }

    /// Takes commands up to one of these words, a closing bracket, `;;` or the end.
    fn list(&mut self, until: &[&str]) -> Read<List> {
        let mut list = List::default();
        loop {
            self.line_ends()?;
            let closed = match self.peek() {
                None | Some(b')') => true,
                Some(b';') => self.byte(1) == Some(b';'),
                _ => self.reserved().is_some_and(|word| until.contains(&word)),
            };
            if closed {
                return Ok(list);
            }
            let mut pipeline = self.pipeline()?;
            self.blanks_and_comment()?;
            match (self.peek(), self.byte(1)) {
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => {
                    self.at += 2;
                    self.line_ends()?;
                    // Something has to follow, and on the same level.
                    if matches!(self.peek(), None | Some(b')' | b';')) {
                        return Err(self.unexpected());
                    }
                }
                (Some(b'&'), _) => {
                    pipeline.background = Some(self.at..self.at + 1);
                    self.at += 1;
                }
                (Some(b';'), Some(b';')) => {}
                (Some(b';'), _) => self.at += 1,
                (None | Some(b'\n' | b')'), _) => {}
                _ => return Err(self.unexpected()),
            }
            list.items.push(pipeline);
        }
    }

    /// A list that must hold something.
    fn full_list(&mut self, until: &[&str]) -> Read<List> {
        let list = self.nested(|reader| reader.list(until))?;
        if list.items.is_empty() { Err(self.unexpected()) } else { Ok(list) }
    }

    /// The commands of a substitution: up to the closing bracket, which stays, or to the end.
    pub(super) fn substituted(&mut self) -> Read<List> {
        self.substitutions += 1;
        let list = self.full_list(&[]);
        self.substitutions -= 1;
        list
    }

    fn pipeline(&mut self) -> Read<Pipeline> {
        self.blanks();
        if self.reserved() == Some("!") {
            self.at += 1;
            self.blanks();
        }
        let mut commands = vec![self.command()?];
        loop {
            self.blanks();
            if self.peek() != Some(b'|') || self.byte(1) == Some(b'|') {
                return Ok(Pipeline { commands, background: None });
            }
            self.at += if self.byte(1) == Some(b'&') { 2 } else { 1 };
            self.line_ends()?;
            commands.push(self.command()?);
        }
    }

    fn command(&mut self) -> Read<Command> {
        let kind = match (self.peek(), self.byte(1)) {
            (Some(b'('), Some(b'(')) => {
                let line = self.at..self.at + 2;
                return self.refuse(line, "arithmetic commands can run others", "Use [ … ] for comparisons.");
            }
            (Some(b'('), _) => {
                self.at += 1;
                let list = self.full_list(&[])?;
                self.close(b')')?;
                Kind::Subshell(list)
            }
            _ => match self.reserved() {
                Some("{") => {
                    self.at += 1;
                    let list = self.full_list(&["}"])?;
                    self.expect("}")?;
                    Kind::Group(list)
                }
                Some("if") => self.if_command()?,
                Some("while" | "until") => {
                    self.at += 5;
                    let condition = self.full_list(&["do"])?;
                    let body = self.do_group()?;
                    Kind::Loop { condition, body }
                }
                Some("for") => self.for_command()?,
                Some("case") => self.case_command()?,
                Some("[[") => self.condition()?,
                Some(word) if UNREAD.contains(&word) => {
                    let span = self.at..self.at + word.len();
                    return self.refuse(span, "this kind of command is not looked into", "Write it in a simpler way.");
                }
                Some(_) => return Err(self.unexpected()),
                None => return self.simple_or_function(),
            },
        };
        let redirects = self.redirects()?;
        Ok(Command { kind, redirects })
    }

    fn close(&mut self, bracket: u8) -> Read<()> {
        self.line_ends()?;
        if self.peek() != Some(bracket) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn if_command(&mut self) -> Read<Kind> {
        self.at += 2;
        let mut lists = vec![self.full_list(&["then"])?];
        self.expect("then")?;
        loop {
            lists.push(self.full_list(&["elif", "else", "fi"])?);
            self.line_ends()?;
            match self.reserved() {
                Some("elif") => {
                    self.at += 4;
                    lists.push(self.full_list(&["then"])?);
                    self.expect("then")?;
                }
                Some("else") => {
                    self.at += 4;
                    lists.push(self.full_list(&["fi"])?);
                    self.expect("fi")?;
                    return Ok(Kind::If(lists));
                }
                _ => {
                    self.expect("fi")?;
                    return Ok(Kind::If(lists));
                }
            }
        }
    }

    fn do_group(&mut self) -> Read<List> {
        self.expect("do")?;
        let body = self.full_list(&["done"])?;
        self.expect("done")?;
        Ok(body)
    }

    fn for_command(&mut self) -> Read<Kind> {
        self.at += 3;
        self.blanks();
        let name = self.name()?;
        self.expect("in")?;
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b';') => {
                    self.at += 1;
                    break;
                }
                Some(b'\n') => break,
                None | Some(b'#') => return Err(self.unexpected()),
                Some(_) => words.push(self.word()?),
            }
        }
        let body = self.do_group()?;
        Ok(Kind::For { name, words, body })
    }

    /// A plain name.
    fn name(&mut self) -> Read<Span> {
        let length = name_length(self.rest());
        if length == 0 {
            return Err(self.unexpected());
        }
        let span = self.at..self.at + length;
        self.at = span.end;
        Ok(span)
    }

    fn case_command(&mut self) -> Read<Kind> {
        self.at += 4;
        self.blanks();
        let subject = self.word()?;
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.line_ends()?;
            if self.reserved() == Some("esac") {
                self.at += 4;
                return Ok(Kind::Case { subject, arms });
            }
            if self.peek() == Some(b'(') {
                self.at += 1;
            }
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?);
                self.blanks();
                match self.peek() {
                    Some(b'|') => self.at += 1,
                    Some(b')') => break,
                    _ => return Err(self.unexpected()),
                }
            }
            self.at += 1;
            let list = self.nested(|reader| reader.list(&["esac"]))?;
            arms.push((patterns, list));
            self.line_ends()?;
            match (self.peek(), self.byte(1), self.byte(2)) {
                (Some(b';'), Some(b';'), Some(b'&')) => return Err(self.unexpected()),
                (Some(b';'), Some(b';'), _) => self.at += 2,
                _ if self.reserved() == Some("esac") => {}
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// `[[ … ]]` on one line, without brackets of its own.
    fn condition(&mut self) -> Read<Kind> {
        let from = self.at;
        self.at += 2;
        let mut words = Vec::new();
        loop {
            self.blanks();
            let start = self.at;
            match (self.peek(), self.byte(1)) {
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => self.at += 2,
                (Some(b'<' | b'>'), Some(b' ')) => self.at += 1,
                _ => {
                    let word = self.word()?;
                    if self.text.get(word.span.clone()) == Some("]]") {
                        return Ok(Kind::Condition { words, span: from..self.at });
                    }
                    words.push(word);
                    continue;
                }
            }
            let operator = super::syntax::Piece::Text(self.text[start..self.at].to_owned());
            words.push(Word { pieces: vec![operator], span: start..self.at });
        }
    }

    fn simple_or_function(&mut self) -> Read<Command> {
        let from = self.at;
        let mut simple = Simple { assignments: Vec::new(), words: Vec::new(), span: from..from };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b')') => break,
                Some(b'#') => break,
                Some(b'&') if self.byte(1) != Some(b'>') => break,
                Some(b'(') => {
                    if let ([word], [], []) = (&simple.words[..], &simple.assignments[..], &redirects[..]) {
                        let name = word.span.clone();
                        return self.function(name);
                    }
                    return Err(self.unexpected());
                }
                Some(_) => {}
            }
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
            } else if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
            } else {
                simple.words.push(self.word()?);
            }
            simple.span.end = self.at;
        }
        if simple.span.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Command { kind: Kind::Simple(simple), redirects })
    }

    /// `name() { … }`, from the opening bracket on.
    fn function(&mut self, name: Span) -> Read<Command> {
        self.at += 1;
        self.blanks();
        self.close(b')')?;
        self.line_ends()?;
        if self.reserved() != Some("{") {
            return Err(self.unexpected());
        }
        self.at += 1;
        let body = self.full_list(&["}"])?;
        self.expect("}")?;
        let redirects = self.redirects()?;
        Ok(Command { kind: Kind::Function { name, body }, redirects })
    }

    fn assignment(&mut self) -> Read<Option<Assignment>> {
        let rest = self.rest();
        let name = name_length(rest);
        if name == 0 {
            return Ok(None);
        }
        let span = self.at..self.at + name;
        match rest.as_bytes().get(name) {
            Some(b'=') => {}
            Some(b'+') if rest.as_bytes().get(name + 1) == Some(&b'=') => {
                return self.refuse(span, "adding to a variable is not followed", "Assign the whole value.");
            }
            Some(b'[') if rest[name..].contains('=') => {
                return self.refuse(span, "arrays are not followed", "Use plain variables.");
            }
            _ => return Ok(None),
        }
        self.at += name + 1;
        if self.peek() == Some(b'(') {
            return self.refuse(span, "arrays are not followed", "Use plain variables.");
        }
        let value = match self.peek() {
            None => Word { pieces: Vec::new(), span: self.at..self.at },
            Some(b' ' | b'\t') => Word { pieces: Vec::new(), span: self.at..self.at },
            Some(byte) if is_operator(byte) && !matches!(byte, b'<' | b'>') => {
                Word { pieces: Vec::new(), span: self.at..self.at }
            }
            Some(_) => self.assigned()?,
        };
        Ok(Some(Assignment { name: span, value }))
    }

    fn redirects(&mut self) -> Read<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    /// A redirection, if one begins here.
    fn redirect(&mut self) -> Read<Option<Redirect>> {
        let from = self.at;
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let operators: [(&str, Operator); 11] = [
            ("&>>", Operator::Write),
            ("&>", Operator::Write),
            ("<<<", Operator::HereString),
            ("<<", Operator::HereDocument),
            ("<&", Operator::Duplicate),
            ("<>", Operator::Write),
            ("<", Operator::Read),
            (">>", Operator::Write),
            (">&", Operator::Duplicate),
            (">|", Operator::Write),
            (">", Operator::Write),
        ];
        let after = &rest[digits..];
        let Some((sign, operator)) = operators.into_iter().find(|(sign, _)| after.starts_with(sign)) else {
            return Ok(None);
        };
        // Process substitutions are words, and a number before `&>` is one.
        if (digits == 0 && matches!(after.as_bytes(), [b'<' | b'>', b'(', ..])) || (digits > 0 && sign.starts_with('&'))
        {
            return Ok(None);
        }
        let descriptor = if digits == 0 { None } else { rest[..digits].parse().ok() };
        if digits > 0 && descriptor.is_none() {
            return Err(self.unexpected());
        }
        self.at += digits + sign.len();
        let target = match operator {
            Operator::HereDocument => self.announce()?,
            _ => {
                self.blanks();
                self.word()?
            }
        };
        if operator == Operator::Duplicate && matches!(self.peek(), Some(b'<' | b'>')) {
            return Err(self.unexpected());
        }
        Ok(Some(Redirect { operator, descriptor, target, span: from..self.at }))
    }

    /// The delimiter of a here-document; its body follows the line, and is read at once.
    fn announce(&mut self) -> Read<Word> {
        let strip_tabs = self.peek() == Some(b'-');
        self.at += usize::from(strip_tabs);
        self.blanks();
        let from = self.at;
        let quote = self.peek().filter(|&byte| matches!(byte, b'\'' | b'"'));
        self.at += usize::from(quote.is_some());
        let name = self.name()?;
        let delimiter = self.text[name].to_owned();
        if let Some(quote) = quote {
            if self.peek() != Some(quote) {
                return Err(self.unexpected());
            }
            self.at += 1;
        }
        if !matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|' | b';' | b'&' | b'>')) {
            return self.refuse(from..self.at, "the end of this here-document cannot be told", "Use <<'EOF'.");
        }
        if self.substitutions > 0 || self.pending.is_some() {
            let span = from..self.at;
            return self.refuse(
                span,
                "a here-document inside another command is not followed",
                "Use a pipe or a file.",
            );
        }
        // The body is read ahead, so that it belongs to its redirection; the rest of the line comes after it.
        let here = self.at;
        let Some(line) = self.rest().find('\n') else {
            return Err(self.unexpected());
        };
        let line_end = here + line;
        self.at = line_end + 1;
        let span = self.here_document(&delimiter, strip_tabs)?;
        let after = self.at;
        let body = if quote.is_some() { Word { pieces: Vec::new(), span } } else { self.here_text(span)? };
        self.at = here;
        self.pending = Some(Pending { line_end, after });
        Ok(body)
    }

    /// Passes the lines of a here-document and the one that ends it. Gives where the lines are.
    fn here_document(&mut self, delimiter: &str, strip_tabs: bool) -> Read<Span> {
        let from = self.at;
        loop {
            let rest = self.rest();
            let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
            let bare = if strip_tabs { line.trim_start_matches('\t') } else { line };
            if bare == delimiter {
                let body = from..self.at;
                self.at = (self.at + line.len() + 1).min(self.end);
                return Ok(body);
            }
            if line.len() == rest.len() {
                let why = "the here-document never ends";
                return self.refuse(from..self.end, why, "End it with its word alone on a line.");
            }
            self.at += line.len() + 1;
        }
    }
}

/// Whether a byte ends an unquoted word and means something by itself.
pub(super) fn is_operator(byte: u8) -> bool {
    matches!(byte, b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Bytes of the name a text begins with.
pub(super) fn name_length(text: &str) -> usize {
    let length = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    if text.as_bytes().first().is_some_and(u8::is_ascii_digit) { 0 } else { length }
}

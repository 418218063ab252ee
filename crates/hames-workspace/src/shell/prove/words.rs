//! Reads words: quotes, parameters, substitutions, patterns.

use super::parse::{Read, Reader, is_operator, name_length};
use super::syntax::{Piece, Span, Word};

/// Words that one pair of braces can make at most.
const ALTERNATIVES_LIMIT: usize = 64;

/// What a word is used for, where that changes how it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// An argument: braces make several words of it.
    Argument,
    /// The value of a variable.
    Value,
}

impl Reader<'_> {
    /// The word that has to begin here.
    pub(super) fn word(&mut self) -> Read<Word> {
        self.word_for(Use::Argument)
    }

    /// The value of an assignment.
    pub(super) fn assigned(&mut self) -> Read<Word> {
        self.word_for(Use::Value)
    }

    fn word_for(&mut self, usage: Use) -> Read<Word> {
        let from = self.at;
        let mut pieces = Vec::new();
        if self.peek() == Some(b'#') {
            return Err(self.unexpected());
        }
        if let (Some(sign @ (b'<' | b'>')), Some(b'(')) = (self.peek(), self.byte(1)) {
            pieces.push(self.process(sign == b'>')?);
        } else {
            while let Some(byte) = self.peek() {
                match byte {
                    b' ' | b'\t' => break,
                    b'<' | b'>' if self.byte(1) == Some(b'(') => return Err(self.unexpected()),
                    b'<' | b'>' if self.text[from..self.at].ends_with('}') => return Err(self.unexpected()),
                    byte if is_operator(byte) => break,
                    byte => self.piece(byte, from, usage, &mut pieces)?,
                }
            }
        }
        if self.at == from {
            return Err(self.unexpected());
        }
        Ok(Word { pieces, span: from..self.at })
    }

    /// The next part of an unquoted word.
    fn piece(&mut self, byte: u8, from: usize, usage: Use, pieces: &mut Vec<Piece>) -> Read<()> {
        match byte {
            b'\'' => self.single_quoted(pieces)?,
            b'"' => self.double_quoted(pieces)?,
            b'$' => self.dollar(false, pieces)?,
            b'`' => self.backquoted(false, pieces)?,
            b'\\' => self.escaped(pieces)?,
            b'~' => self.tilde(from, pieces)?,
            b'{' => self.braces(usage, pieces)?,
            b'}' => return Err(self.unexpected()),
            b'*' | b'?' => {
                self.at += 1;
                pieces.push(Piece::Glob);
            }
            b'[' => {
                pieces.push(if self.byte(1) != Some(b'\t') && self.is_closed() {
                    Piece::Glob
                } else {
                    Piece::Text("[".to_owned())
                });
                self.at += 1;
            }
            _ => {
                let rest = self.rest();
                let special = |b: u8| {
                    is_operator(b)
                        || matches!(
                            b,
                            b' ' | b'\t' | b'\'' | b'"' | b'$' | b'`' | b'\\' | b'~' | b'{' | b'}' | b'*' | b'?' | b'['
                        )
                };
                let plain = &rest[..rest.bytes().position(special).unwrap_or(rest.len())];
                self.at += plain.len();
                pieces.push(Piece::Text(plain.to_owned()));
            }
        }
        Ok(())
    }

    /// Whether a `]` follows before the next blank. What was looked at for one bracket holds for those behind it.
    fn is_closed(&mut self) -> bool {
        if self.looked_at.is_none_or(|(upto, _)| upto <= self.at) {
            let rest = self.rest().as_bytes();
            let found = memchr::memchr3(b']', b' ', b'\n', rest).unwrap_or(rest.len());
            self.looked_at = Some((self.at + found, rest.get(found) == Some(&b']')));
        }
        self.looked_at.is_some_and(|(_, is_closed)| is_closed)
    }

    fn single_quoted(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        let Some(length) = self.rest()[1..].find('\'') else {
            return self.refuse(self.at..self.end, "a quotation never ends", "Close it.");
        };
        pieces.push(Piece::Text(self.rest()[1..=length].to_owned()));
        self.at += length + 2;
        Ok(())
    }

    fn double_quoted(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        let from = self.at;
        self.at += 1;
        // Even empty quotes make a word.
        pieces.push(Piece::Text(String::new()));
        loop {
            match self.peek() {
                None => return self.refuse(from..self.end, "a quotation never ends", "Close it."),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(byte) => self.quoted_piece(byte, b"$`\"\\", pieces)?,
            }
        }
    }

    /// The text of a here-document whose word is not quoted.
    pub(super) fn here_text(&mut self, span: Span) -> Read<Word> {
        let end = std::mem::replace(&mut self.end, span.end);
        self.at = span.start;
        let mut pieces = Vec::new();
        let mut result = Ok(());
        while result.is_ok()
            && let Some(byte) = self.peek()
        {
            result = self.quoted_piece(byte, b"$`\\", &mut pieces);
        }
        self.end = end;
        result.map(|()| Word { pieces, span })
    }

    /// The next part of a text in which only `$`, backquotes and backslashes mean something.
    fn quoted_piece(&mut self, byte: u8, escapable: &[u8], pieces: &mut Vec<Piece>) -> Read<()> {
        match byte {
            b'$' => self.dollar(true, pieces),
            b'`' => self.backquoted(true, pieces),
            b'\\' => {
                let (text, length) = match self.byte(1) {
                    Some(next) if escapable.contains(&next) => (char::from(next).to_string(), 2),
                    Some(b'\n') | None => {
                        let span = self.at..(self.at + 2).min(self.end);
                        return self.refuse(
                            span,
                            "a line joined inside quotes is not followed",
                            "Write it on one line.",
                        );
                    }
                    Some(_) => ("\\".to_owned(), 1),
                };
                self.at += length;
                pieces.push(Piece::Text(text));
                Ok(())
            }
            _ => {
                let rest = self.rest();
                let special = |b: u8| b == b'$' || b == b'`' || b == b'\\' || (b == b'"' && escapable.contains(&b'"'));
                let plain = &rest[..rest.bytes().position(special).unwrap_or(rest.len())];
                self.at += plain.len();
                pieces.push(Piece::Text(plain.to_owned()));
                Ok(())
            }
        }
    }

    fn escaped(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        match self.rest()[1..].chars().next() {
            None | Some('\n') => {
                let span = self.at..(self.at + 2).min(self.end);
                self.refuse(span, "a word joined over two lines is not followed", "Put a blank before the backslash.")
            }
            Some(c) => {
                self.at += 1 + c.len_utf8();
                pieces.push(Piece::Text(c.to_string()));
                Ok(())
            }
        }
    }

    fn tilde(&mut self, from: usize, pieces: &mut Vec<Piece>) -> Read<()> {
        let expands = self.at == from;
        if !expands {
            if matches!(self.text.as_bytes()[self.at - 1], b'=' | b':') {
                return self.refuse(from..self.at + 1, "this ~ may be expanded or not", "Write the path out.");
            }
            self.at += 1;
            pieces.push(Piece::Text("~".to_owned()));
            return Ok(());
        }
        match self.byte(1) {
            None | Some(b'/' | b' ' | b'\t') => {}
            Some(byte) if is_operator(byte) => {}
            Some(_) => return self.refuse(from..self.at + 2, "only ~ and ~/… are followed", "Write the path out."),
        }
        self.at += 1;
        pieces.push(Piece::Home);
        Ok(())
    }

    fn braces(&mut self, usage: Use, pieces: &mut Vec<Piece>) -> Read<()> {
        let rest = self.rest();
        let Some(length) = rest.find('}') else {
            return Err(self.unexpected());
        };
        let (inside, span) = (&rest[1..length], self.at..self.at + length + 1);
        // Braces are looked at before parameters: `$x{a,b}` means other variables.
        if matches!(pieces.last(), Some(Piece::Parameter { .. })) && !self.text[..self.at].ends_with(['}', '"']) {
            return self.refuse(span, "braces right behind a variable change its name", "Write ${name}.");
        }
        let taken_literally = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'@' | b'^' | b'-' | b'/' | b'.');
        let piece = if inside.bytes().all(taken_literally) && !inside.contains("..") {
            Piece::Text(rest[..=length].to_owned())
        } else {
            match alternatives(inside) {
                Some(words) if usage == Use::Argument => Piece::Alternatives(words),
                _ => return self.refuse(span, "these braces are not followed", "Write the words out."),
            }
        };
        self.at += length + 1;
        pieces.push(piece);
        Ok(())
    }

    /// What begins with `$`.
    fn dollar(&mut self, quoted: bool, pieces: &mut Vec<Piece>) -> Read<()> {
        let from = self.at;
        let rest = self.rest();
        let piece = match rest[1..].bytes().next() {
            Some(b'(') if rest.as_bytes().get(2) == Some(&b'(') => self.arithmetic()?,
            Some(b'(') => {
                self.at += 2;
                let list = self.substituted()?;
                if self.peek() != Some(b')') {
                    return Err(self.unexpected());
                }
                self.at += 1;
                Piece::Substitution { list, quoted }
            }
            Some(b'{') => self.braced_parameter(quoted)?,
            Some(b'\'') if !quoted => return self.ansi_quoted(pieces),
            Some(b'\'') => {
                return self.refuse(from..from + 2, "$ before a quote is read in two ways", "Write \\$ for it.");
            }
            Some(b'"') if !quoted => {
                return self.refuse(from..from + 2, "a translated text is not followed", "Leave the $ out.");
            }
            Some(b'[') => return self.refuse(from..from + 2, "old arithmetic is not followed", "Use $((…))."),
            Some(byte) if byte.is_ascii_digit() || b"@*#?$!-".contains(&byte) => {
                self.at += 2;
                Piece::Parameter { name: char::from(byte).to_string(), plain: true, quoted }
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let length = name_length(&rest[1..]);
                self.at += 1 + length;
                Piece::Parameter { name: rest[1..=length].to_owned(), plain: true, quoted }
            }
            next => {
                let ends = |b: u8| is_operator(b) || b" \t/.,:|%=\"".contains(&b);
                if !next.is_none_or(ends) {
                    return self.refuse(from..from + 1, "this $ is read in two ways", "Write \\$ for it.");
                }
                self.at += 1;
                Piece::Text("$".to_owned())
            }
        };
        pieces.push(piece);
        Ok(())
    }

    /// `$'…'` with the two escapes that everybody reads alike.
    fn ansi_quoted(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        let rest = self.rest();
        let Some(length) = rest[2..].find('\'') else {
            return self.refuse(self.at..self.end, "a quotation never ends", "Close it.");
        };
        let inside = &rest[2..2 + length];
        let plain = inside.replace("\\n", "\n").replace("\\t", "\t");
        if plain.contains('\\') {
            let span = self.at..self.at + length + 3;
            return self.refuse(span, "only \\n and \\t are followed in $'…'", "Use printf for other characters.");
        }
        self.at += length + 3;
        pieces.push(Piece::Text(plain));
        Ok(())
    }

    /// `${…}`: a plain value, its length, a default, or a part of it.
    fn braced_parameter(&mut self, quoted: bool) -> Read<Piece> {
        let from = self.at;
        let rest = self.rest();
        let Some(length) = rest.find('}') else {
            return self.refuse(from..self.end, "a brace is never closed", "Close it.");
        };
        let span = from..from + length + 1;
        let inside = &rest[2..length];
        let counted = inside.strip_prefix('#').filter(|name| !name.is_empty());
        let body = counted.unwrap_or(inside);
        let name_end = match name_length(body) {
            0 => body.bytes().take_while(u8::is_ascii_digit).count(),
            length => length,
        };
        let (name, operation) = body.split_at(name_end);
        if name.is_empty() || (counted.is_some() && !operation.is_empty()) || !is_harmless_operation(operation) {
            let why = "this kind of ${…} is not followed: some of them assign or run something";
            return self.refuse(
                span,
                why,
                "Use ${name}, ${name:-word}, ${name%…}, ${name#…} or ${name/…/…} with plain text.",
            );
        }
        self.at = span.end;
        Ok(Piece::Parameter { name: name.to_owned(), plain: counted.is_none() && operation.is_empty(), quoted })
    }

    /// `$((…))` over numbers and variables.
    fn arithmetic(&mut self) -> Read<Piece> {
        let from = self.at;
        let rest = self.rest();
        let mut open = 0_usize;
        for (at, byte) in rest.bytes().enumerate().skip(3) {
            match byte {
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => {
                    let span = from..from + at + 2;
                    if rest.as_bytes().get(at + 1) != Some(&b')') || at == 3 {
                        return self.refuse(
                            from..from + at + 1,
                            "this bracket is read in two ways",
                            "Write $( ( for commands.",
                        );
                    }
                    self.at = span.end;
                    return Ok(Piece::Arithmetic { text: rest[3..at].to_owned(), span });
                }
                b'$' if rest[at + 1..].bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_') => {}
                byte if byte.is_ascii_alphanumeric() || b"_ +-*/%<>=!&|^~?:".contains(&byte) => {}
                _ => {
                    let why = "only numbers, plain variables and operators are followed in arithmetic";
                    return self.refuse(from..from + at + 1, why, "Write it with these.");
                }
            }
        }
        self.refuse(from..self.end, "the arithmetic never ends", "Close it with )).")
    }

    fn backquoted(&mut self, quoted: bool, pieces: &mut Vec<Piece>) -> Read<()> {
        let from = self.at;
        let inside = &self.rest()[1..];
        let Some(length) = inside.find('`') else {
            return self.refuse(from..self.end, "a backquote is never closed", "Use $(…).");
        };
        let inside = &inside[..length];
        if inside.contains('\\') || (quoted && inside.contains('"')) {
            return self.refuse(from..from + length + 2, "quotes inside backquotes are read in two ways", "Use $(…).");
        }
        let end = std::mem::replace(&mut self.end, from + 1 + length);
        self.at = from + 1;
        let list = self.substituted();
        let whole = self.at == self.end;
        self.end = end;
        let list = list?;
        if !whole {
            return Err(self.unexpected());
        }
        self.at = from + length + 2;
        pieces.push(Piece::Substitution { list, quoted });
        Ok(())
    }

    /// `<(…)` or `>(…)`, a word of its own.
    fn process(&mut self, write: bool) -> Read<Piece> {
        self.at += 2;
        let list = self.substituted()?;
        if self.peek() != Some(b')') {
            return Err(self.unexpected());
        }
        self.at += 1;
        if !matches!(self.peek(), None | Some(b' ' | b'\t')) && !self.peek().is_some_and(is_operator) {
            return Err(self.unexpected());
        }
        Ok(Piece::Process { list, write })
    }
}

/// Whether what follows the name in `${name…}` only looks at the value, and holds nothing that is itself expanded.
fn is_harmless_operation(operation: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b" _./*?+=:,%^#@-".contains(&b);
    if !operation.bytes().all(plain) {
        return false;
    }
    match operation.as_bytes() {
        [] | [b'-' | b'+' | b'#' | b'%' | b'/' | b'^' | b',', ..] | [b':', b'-' | b'+', ..] => true,
        // Offsets are arithmetic: numbers only.
        [b':', rest @ ..] => !rest.is_empty() && rest.iter().all(|b| b.is_ascii_digit() || *b == b':'),
        _ => false,
    }
}

/// The words that braces stand for.
fn alternatives(inside: &str) -> Option<Vec<String>> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_./*?@+=:%,-".contains(&b);
    if !inside.bytes().all(plain) {
        return None;
    }
    if inside.contains(',') {
        let words: Vec<_> = inside.split(',').map(str::to_owned).collect();
        return (words.len() <= ALTERNATIVES_LIMIT).then_some(words);
    }
    let (from, to) = inside.split_once("..")?;
    let is_number = |text: &str| (1..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(from) || !is_number(to) || [from, to].iter().any(|n| n.len() > 1 && n.starts_with('0')) {
        return None;
    }
    let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
    let (low, high) = (from.min(to), from.max(to));
    (high - low < ALTERNATIVES_LIMIT).then(|| (low..=high).map(|n| n.to_string()).collect())
}

//! Splits reasoning out of visible text, where a server leaves the model's thinking tags in it.
//!
//! Think of it as a reader that stands at the beginning of the answer and looks for one of a few tags. Where it finds
//! none, the text is handed on as it is, for good. Behind a tag everything is reasoning until the tag that closes it;
//! then it stands at a beginning again, because templates let a model think in several blocks. Some templates open the
//! thinking in the prompt, so that only the closing tag comes: what was before it then turns out to have been reasoning,
//! and the connection remembers it, so that the next answer is taken so from its first word.
//!
//! A tag that is merely mentioned is text: within a sentence, in quotes, in code, after anything that was said. Text is
//! held back only while it may be the beginning of a tag. What the template puts around the blocks (the tags, line ends)
//! is dropped, everything else comes out as it went in, wherever the pieces were cut.

/// How one house marks reasoning.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    open: &'static str,
    /// What ends it, the ones that begin like another first where they are longer.
    close: &'static [&'static str],
    /// What may follow the end before the answer itself begins.
    next: &'static [&'static str],
    /// Whether templates of this house open the block in the prompt.
    may_lack_open: bool,
}

const fn plain(open: &'static str, close: &'static [&'static str]) -> Form {
    Form { open, close, next: &[], may_lack_open: true }
}

const FORMS: [Form; 14] = [
    plain("<think>", &["</think>"]),
    plain("<thinking>", &["</thinking>"]),
    plain("<thought>", &["</thought>"]),
    plain("<reasoning>", &["</reasoning>"]),
    plain("<seed:think>", &["</seed:think>"]),
    plain("<longcat_think>", &["</longcat_think>"]),
    plain("[THINK]", &["[/THINK]"]),
    plain("◁think▷", &["◁/think▷"]),
    plain("<|begin_of_thought|>", &["<|end_of_thought|>"]),
    Form {
        open: "<|START_THINKING|>",
        close: &["<|END_THINKING|>"],
        next: &["<|START_RESPONSE|>"],
        may_lack_open: false,
    },
    Form { open: "<|channel>thought\n", close: &["<channel|>"], next: &[], may_lack_open: false },
    Form { open: "<unused94>thought\n", close: &["<unused95>"], next: &[], may_lack_open: false },
    HARMONY,
    Form { open: "<|start|>assistant<|channel|>analysis<|message|>", ..HARMONY },
];

const HARMONY: Form = Form {
    open: "<|channel|>analysis<|message|>",
    close: &["<|end|>", "<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>"],
    next: &["<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>"],
    may_lack_open: false,
};

/// Blanks before a tag that are waited through.
const MAX_BLANKS_BYTES: usize = 256;

/// One piece of what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Visible text.
    Text(&'a str),
    /// Reasoning.
    Reasoning(&'a str),
    /// All text so far was reasoning: its closing tag came without one that opened it.
    WasReasoning,
    /// All reasoning so far was text: it was taken for reasoning from the first word, and nothing closed it.
    WasText,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At a beginning: of the answer, or behind a block.
    Beginning { block_before: Option<&'static Form> },
    /// In a block; `None` where the answer began inside one.
    Inside { form: Option<&'static Form>, at_start: bool },
    /// In the answer itself.
    Answer,
}

/// Where in a text of Markdown one stands, as far as a mention of a tag is told from a tag by it.
#[derive(Clone, Copy, Debug)]
struct Context {
    before: Option<char>,
    /// Only blanks since the line began.
    line_is_blank: bool,
    /// Backticks in a row right before.
    ticks: u32,
    in_span: bool,
    in_fence: bool,
}

impl Default for Context {
    fn default() -> Self {
        Self { before: None, line_is_blank: true, ticks: 0, in_span: false, in_fence: false }
    }
}

impl Context {
    fn pass(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '`' => {
                    self.ticks += 1;
                    if self.ticks == 3 && self.line_is_blank {
                        self.in_fence = !self.in_fence;
                        self.in_span = false;
                    } else {
                        self.in_span = !self.in_span;
                    }
                }
                '\n' => *self = Self { in_fence: self.in_fence, ..Self::default() },
                c => {
                    self.ticks = 0;
                    self.line_is_blank &= c.is_whitespace();
                }
            }
            self.before = Some(c);
        }
    }

    /// Whether a closing tag here, followed by `after`, ends something rather than being spoken of.
    fn ends_here(&self, after: Option<char>) -> bool {
        if self.in_fence || self.in_span {
            return false;
        }
        let ends_line = after.is_none_or(|c| matches!(c, '\n' | '\r'));
        match self.before {
            _ if self.line_is_blank => ends_line || after.is_some_and(begins_sentence),
            // A sentence, its end, the tag, and the answer at once or on a line of its own.
            Some(c) => !c.is_whitespace() && !is_quote(c) && (ends_line || after.is_some_and(begins_sentence)),
            None => true,
        }
    }
}

fn begins_sentence(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '*' | '#' | '-' | '<' | '{' | '[' | '`' | '|')
}

fn is_quote(c: char) -> bool {
    matches!(c, '`' | '"' | '\'' | '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' | '(' | '«' | '「')
}

/// The splitter of one answer.
#[derive(Debug)]
pub(crate) struct Splitter {
    state: State,
    /// What may be the beginning of a tag, or blanks that a tag would drop; before `at` it has been handed on.
    held: String,
    at: usize,
    context: Context,
    /// Whether a closing tag may still come without one that opened it.
    may_lack_open: bool,
    /// The tag of the first block.
    tag: Option<&'static str>,
    began_inside: bool,
    lacked_open: bool,
}

impl Splitter {
    /// A splitter for one answer. `inside` says that the answers of this model begin inside their reasoning.
    pub(crate) fn new(inside: bool) -> Self {
        let state = match inside {
            true => State::Inside { form: None, at_start: true },
            false => State::Beginning { block_before: None },
        };
        Self {
            state,
            held: String::new(),
            at: 0,
            context: Context::default(),
            may_lack_open: true,
            tag: None,
            began_inside: inside,
            lacked_open: false,
        }
    }

    /// The tag that opens the reasoning found, as it would be written.
    pub(crate) fn tag(&self) -> Option<&'static str> {
        self.tag
    }

    /// Whether the answer began inside its reasoning, as far as it showed.
    pub(crate) fn lacked_open(&self) -> bool {
        self.lacked_open
    }

    /// The server gives the reasoning apart, so no answer begins inside it and none ends without a beginning.
    pub(crate) fn reasoning_comes_apart(&mut self) {
        self.may_lack_open = false;
        if let State::Inside { form: None, at_start: true } = self.state {
            self.state = State::Beginning { block_before: None };
            self.began_inside = false;
        }
    }

    /// Takes in text and gives what is decided of it.
    pub(crate) fn push(&mut self, text: &str, sink: &mut dyn FnMut(Piece<'_>)) {
        if matches!(self.state, State::Answer) && !self.may_lack_open && self.held.is_empty() {
            if !text.is_empty() {
                sink(Piece::Text(text));
            }
            return;
        }
        self.held.push_str(text);
        while self.step(false, sink) {}
        self.held.drain(..self.at);
        self.at = 0;
    }

    /// The answer has ended: gives what was held back.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        while self.step(true, sink) {}
        let is_reasoning = matches!(self.state, State::Inside { .. });
        self.give(self.held.len(), is_reasoning, sink);
        if let State::Inside { form: None, .. } = self.state {
            self.lacked_open = false;
            self.tag = None;
            sink(Piece::WasText);
        }
        self.held.clear();
        self.at = 0;
        self.state = State::Answer;
        self.may_lack_open = false;
    }

    /// Decides about the front of what is held; gives whether there may be more to decide.
    fn step(&mut self, is_end: bool, sink: &mut dyn FnMut(Piece<'_>)) -> bool {
        if self.at == self.held.len() {
            return false;
        }
        match self.state {
            State::Beginning { block_before } => self.at_beginning(block_before, is_end, sink),
            State::Inside { form, at_start: true } => self.at_start(form, is_end),
            State::Inside { form, at_start: false } => self.inside(form, is_end, sink),
            State::Answer => self.in_answer(is_end, sink),
        }
    }

    fn at_beginning(&mut self, before: Option<&'static Form>, is_end: bool, sink: &mut dyn FnMut(Piece<'_>)) -> bool {
        let held = &self.held[self.at..];
        let rest = held.trim_ascii_start();
        let blanks = held.len() - rest.len();
        if blanks <= MAX_BLANKS_BYTES {
            if let Some(form) = FORMS.iter().find(|form| starts_with(rest, form.open)) {
                self.at += blanks + form.open.len();
                if self.tag.is_some() {
                    sink(Piece::Reasoning("\n\n"));
                }
                self.tag.get_or_insert(form.open);
                self.may_lack_open = false;
                self.state = State::Inside { form: Some(form), at_start: true };
                return true;
            }
            let next = before.map_or(&[][..], |form| form.next);
            if let Some(marker) = next.iter().find(|marker| starts_with(rest, marker)) {
                self.at += blanks + marker.len();
                return true;
            }
            // A block that was opened in the prompt and closed at once.
            let at_once = || FORMS.iter().filter(|form| before.is_none() && form.may_lack_open);
            if let Some((form, close)) = at_once().find_map(|form| Some((form, closing(form, rest)?))) {
                let after = rest[close.len()..].chars().next();
                if after.is_none() && !is_end {
                    return false;
                }
                if Context::default().ends_here(after) {
                    self.at += blanks + close.len();
                    self.lacked_open |= self.may_lack_open;
                    self.behind(form);
                    return true;
                }
            }
            let closes = at_once().flat_map(|form| form.close);
            let mut tags = FORMS.iter().map(|form| &form.open).chain(next).chain(closes);
            if !is_end && tags.any(|tag| starts_with(tag, rest)) {
                return false;
            }
        }
        // The answer begins. Blank lines behind a block are the template's.
        if before.is_some() {
            let blanks = &held[..blanks.min(MAX_BLANKS_BYTES)];
            let only_blanks = rest.is_empty() && blanks.len() < MAX_BLANKS_BYTES;
            self.at += if only_blanks { blanks.len() } else { blanks.rfind('\n').map_or(0, |at| at + 1) };
        }
        self.state = State::Answer;
        true
    }

    /// A block of this form has ended.
    fn behind(&mut self, form: &'static Form) {
        self.may_lack_open = false;
        self.state = State::Beginning { block_before: Some(form) };
    }

    fn at_start(&mut self, form: Option<&'static Form>, is_end: bool) -> bool {
        let held = &self.held[self.at..];
        if form.is_some() {
            let line_ends = held.len() - held.trim_start_matches(['\n', '\r']).len();
            self.at += line_ends;
            if self.at == self.held.len() {
                return false;
            }
        } else {
            // Perhaps it opens its block itself this time.
            let rest = held.trim_ascii_start();
            if held.len() - rest.len() <= MAX_BLANKS_BYTES {
                if FORMS.iter().any(|form| starts_with(rest, form.open)) {
                    self.began_inside = false;
                    self.state = State::Beginning { block_before: None };
                    return true;
                }
                if !is_end && FORMS.iter().any(|form| starts_with(form.open, rest)) {
                    return false;
                }
            }
        }
        self.context = Context::default();
        self.state = State::Inside { form, at_start: false };
        true
    }

    fn inside(&mut self, form: Option<&'static Form>, is_end: bool, sink: &mut dyn FnMut(Piece<'_>)) -> bool {
        match self.find_close(form, is_end) {
            Found::At(close_at, form, len) => {
                self.give(self.before_blanks(close_at), true, sink);
                self.at = close_at + len;
                self.tag.get_or_insert(form.open);
                self.lacked_open |= self.began_inside;
                self.behind(form);
                true
            }
            Found::None { decided } => {
                self.give(if is_end { decided } else { self.before_blanks(decided) }, true, sink);
                false
            }
        }
    }

    /// The end of what stands before the blanks that end at `end`. A tag would drop no more blanks than are held back.
    fn before_blanks(&self, end: usize) -> usize {
        let text = &self.held[self.at..end];
        let blanks = text.len() - text.trim_ascii_end().len();
        end - blanks.min(MAX_BLANKS_BYTES)
    }

    /// Looks for the end of a block.
    fn find_close(&self, form: Option<&'static Form>, is_end: bool) -> Found {
        let mut before = self.context.before;
        let mut from = self.at;
        while let Some(at) = candidate(&self.held, from) {
            before = self.held[from..at].chars().next_back().or(before);
            let rest = &self.held[at..];
            for form in FORMS.iter().filter(|f| form.map_or(f.may_lack_open, |form| std::ptr::eq(form, *f))) {
                if let Some(close) = closing(form, rest) {
                    let after = rest[close.len()..].chars().next();
                    let quoted = before.is_some_and(is_quote);
                    if quoted && after.is_none() && !is_end {
                        return Found::None { decided: at };
                    }
                    // In quotes it is spoken of.
                    if !(quoted && after.is_some_and(|c| is_quote(c) || c == ')')) {
                        return Found::At(at, form, close.len());
                    }
                } else if !is_end && form.close.iter().any(|close| starts_with(close, rest)) {
                    return Found::None { decided: at };
                }
            }
            before = rest.chars().next();
            from = at + before.map_or(1, char::len_utf8);
        }
        Found::None { decided: self.held.len() }
    }

    /// Hands on what is held before `end`.
    fn give(&mut self, end: usize, is_reasoning: bool, sink: &mut dyn FnMut(Piece<'_>)) {
        let text = &self.held[self.at..end];
        if !text.is_empty() {
            self.context.pass(text);
            sink(if is_reasoning { Piece::Reasoning(text) } else { Piece::Text(text) });
            self.at = end;
        }
    }

    fn in_answer(&mut self, is_end: bool, sink: &mut dyn FnMut(Piece<'_>)) -> bool {
        let next = candidate(&self.held, self.at).filter(|_| self.may_lack_open);
        let Some(at) = next else {
            self.give(self.held.len(), false, sink);
            return false;
        };
        self.give(at, false, sink);
        let rest = &self.held[at..];
        // Whoever names the tag that opens, speaks of tags.
        if FORMS.iter().any(|form| starts_with(rest, form.open)) {
            self.may_lack_open = false;
            return true;
        }
        let lone = || FORMS.iter().filter(|form| form.may_lack_open);
        if let Some((form, close)) = lone().find_map(|form| Some((form, closing(form, rest)?))) {
            let after = rest[close.len()..].chars().next();
            if after.is_none() && !is_end {
                return false;
            }
            self.may_lack_open = false;
            if self.context.ends_here(after) {
                self.at += close.len();
                self.tag = Some(form.open);
                self.lacked_open = true;
                sink(Piece::WasReasoning);
                self.behind(form);
            }
            return true;
        }
        let mut tags = FORMS.iter().map(|form| &form.open).chain(lone().flat_map(|form| form.close));
        if !is_end && tags.any(|tag| starts_with(tag, rest)) {
            return false;
        }
        let end = at + rest.chars().next().map_or(0, char::len_utf8);
        self.give(end, false, sink);
        true
    }
}

enum Found {
    /// A closing tag: where, of which form, how long.
    At(usize, &'static Form, usize),
    /// None, as far as `decided`.
    None { decided: usize },
}

/// The closing tag of a form at the start of a text.
fn closing<'t>(form: &Form, text: &'t str) -> Option<&'t str> {
    form.close.iter().find(|close| starts_with(text, close)).map(|close| &text[..close.len()])
}

/// Where the next tag may begin.
fn candidate(text: &str, from: usize) -> Option<usize> {
    text[from..].find(['<', '[', '◁']).map(|at| from + at)
}

/// Whether a text begins with a tag, whatever the case of its letters.
fn starts_with(text: &str, tag: &str) -> bool {
    text.as_bytes().get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag.as_bytes()))
}

/// Whether this is a tag that opens reasoning.
pub(crate) fn is_tag(name: &str) -> bool {
    FORMS.iter().any(|form| form.open == name)
}

/// An answer as its template would write it, reasoning found by tags included. `None` where the tag is none.
pub(crate) fn joined(tag: &str, reasoning: &str, text: &str) -> Option<String> {
    let form = FORMS.iter().find(|form| form.open == tag)?;
    let close = form.close.first()?;
    let next = form.next.first().unwrap_or(&"");
    let open = form.open;
    let line = if open.ends_with('\n') { "" } else { "\n" };
    Some(match form.next.is_empty() {
        true => format!("{open}{line}{reasoning}\n{close}\n\n{text}"),
        false => format!("{open}{reasoning}{close}{next}{text}"),
    })
}

#[cfg(test)]
mod tests;

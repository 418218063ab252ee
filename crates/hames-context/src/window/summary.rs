//! What a model is given when it writes the document of a checkpoint, and what becomes of its answer.

use std::fmt::Write;

use hames_protocol::{Event, Item, Origin, Part, SeqSpan};

use super::Window;
use super::entry::{Entry, How};
use super::words;
use crate::estimate_tokens;

/// Bytes of a result that a document's author sees: what came out, not all that came out.
const EXCERPT: usize = 280;
/// Of an error: what went wrong is worth more.
const ERROR_EXCERPT: usize = 600;
/// Estimated tokens of a step from which on a part of it is worth reading.
const LEAST_READ: u64 = 64;

/// Asks for a document. The agent wraps it in words, asks the model, and hands the answer to [`Window::resume`].
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRequest {
    /// To be recorded before the model is asked; empty where it was already.
    pub events: Vec<Event>,
    /// The document to update; empty for the first.
    pub previous: String,
    /// What is to be summed up, as text: who said what, calls by their names. Where `compress` is set, the document that
    /// came out too long.
    pub span: String,
    /// Whether `span` is a document that has to become shorter, rather than a conversation.
    pub compress: bool,
    /// Estimated tokens the document should have.
    pub target_tokens: u64,
    /// Tokens the answer may have in all: thinking spends them too, so it is more than the target.
    pub max_output_tokens: u64,
    /// Estimated tokens of what is summed up, as it stood in the window.
    pub span_tokens: u64,
    /// Items summed up.
    pub items: usize,
    /// What could not be read at once and is not summed up.
    pub deferred: Option<SeqSpan>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryAnswer {
    /// A document.
    Text(String),
    /// The beginning of one: the author came to the end of what its answer may have.
    Cut(String),
    /// None, for this reason.
    Failed(String),
}

/// The part of a span that can be read at once.
pub(crate) struct Readable {
    pub(crate) text: String,
    pub(crate) tokens: u64,
    pub(crate) items: usize,
    pub(crate) deferred: Option<SeqSpan>,
    pub(crate) ceiling: u64,
}

impl Window {
    /// The newest part of what is before a cut that the author can read, as text: of a last step that is too much alone,
    /// beginning and end. Nothing where the author can read nothing at all.
    pub(crate) fn readable(&self, cut: usize, held: &[usize], previous: u64, ceiling: u64) -> Option<Readable> {
        let first = self.view.first;
        let mut earlier = String::new();
        for at in self.let_go(held) {
            told(&self.entries[at], &mut earlier);
        }
        let ceiling = ceiling.saturating_sub(previous).saturating_sub(estimate_tokens(&earlier));
        let mut steps: Vec<String> = Vec::new();
        let (mut begin, mut end, mut used, mut items) = (cut, cut, 0u64, 0usize);
        while end > first {
            let start = (first..end).rev().find(|at| self.entries[*at].begins()).unwrap_or(first);
            let (mut text, mut told_here) = (String::new(), 0);
            for at in start..end {
                let entry = &self.entries[at];
                if !held.contains(&at) && !entry.pinned {
                    told_here += usize::from(told(entry, &mut text));
                }
            }
            if steps.is_empty() && ceiling >= LEAST_READ {
                text = words::clip_middle(&text, ceiling);
            }
            let tokens = estimate_tokens(&text);
            if used + tokens > ceiling {
                break;
            }
            used += tokens;
            items += told_here;
            steps.push(text);
            (begin, end) = (start, start);
        }
        if begin == cut {
            return None;
        }
        let tokens = self.entries[begin..cut].iter().map(|entry| entry.shown).sum();
        let deferred = (begin > first).then(|| SeqSpan {
            from_seq: self.entries[first].place.seq,
            to_seq: self.entries[begin].place.seq.saturating_sub(1),
        });
        let text = std::iter::once(earlier).chain(steps.into_iter().rev()).collect();
        Some(Readable { text, tokens, items, deferred, ceiling })
    }

    /// Messages before the window that the last checkpoint held in it and the next one does not: no document has told of
    /// them yet.
    fn let_go(&self, held: &[usize]) -> Vec<usize> {
        let before: &[u64] = self.known.state.checkpoint.as_ref().map_or(&[], |checkpoint| checkpoint.held.as_slice());
        let is_let_go = |at: &usize| {
            let entry = &self.entries[*at];
            before.contains(&entry.place.event) && !held.contains(at) && !entry.pinned
        };
        (0..self.view.first).filter(is_let_go).collect()
    }

    /// Everything that leaves with a cut, whole.
    pub(crate) fn archive_text(&self, cut: usize) -> String {
        let mut text = String::new();
        for entry in &self.entries[self.view.first..cut] {
            whole(entry, &mut text);
        }
        text
    }

    /// The exchanges before an entry that leave while their turns stay, whole.
    pub(crate) fn retired_text(&self, below: usize) -> String {
        let mut text = String::new();
        let leaving = self.entries[self.view.first..below].iter();
        leaving.filter(|entry| entry.shown > 0 && entry.retirable()).for_each(|entry| whole(entry, &mut text));
        text
    }

    /// A document that no model writes: what was asked for, what was done, newest first while there is room.
    pub(crate) fn rolled(&self, cut: usize, held: &[usize], tokens: u64) -> String {
        let mut document = String::new();
        let before = self.known.state.document();
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        let leaving = self.let_go(held).into_iter().chain(self.view.first..cut);
        for (at, entry) in leaving.filter_map(|at| Some((at, self.entries.get(at)?))) {
            match entry.item.as_ref() {
                _ if held.contains(&at) || entry.pinned => {}
                Item::User(message) if entry.is_message() => {
                    let said: Vec<&str> = message.parts.iter().filter_map(part_text).collect();
                    lines.push(format!("- user: {}", one_line(&said.join(" "), 400)));
                }
                Item::Assistant(answer) => {
                    if !answer.text.trim().is_empty() && answer.calls.is_empty() {
                        lines.push(format!("- answer: {}", one_line(&answer.text, 240)));
                    }
                    for call in &answer.calls {
                        let line = format!("- {}", words::clipped(&call.label.to_string(), 120));
                        if lines.last() != Some(&line) {
                            lines.push(line);
                        }
                    }
                }
                _ => {}
            }
        }
        let mut used = 0;
        let mut from = lines.len();
        while from > 0 {
            let cost = estimate_tokens(&lines[from - 1]) + 1;
            if used + cost > tokens {
                break;
            }
            used += cost;
            from -= 1;
        }
        for line in &lines[from..] {
            document.push_str(line);
            document.push('\n');
        }
        document.trim_end().to_owned()
    }
}

fn part_text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    }
}

fn one_line(text: &str, bytes: usize) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    words::clipped(&line.join(" "), bytes)
}

/// Writes an item as a document's author reads it; whether there was anything.
fn told(entry: &Entry, out: &mut String) -> bool {
    match entry.item.as_ref() {
        // A text that was pinned and no longer is was the pin's alone.
        Item::User(_) if matches!(entry.place.origin, Origin::Nudge | Origin::Pin) => return false,
        Item::User(message) => {
            let message = match &entry.made {
                Some((Some(_), made)) => match made.as_ref() {
                    Item::User(part) => part,
                    _ => message,
                },
                _ => message,
            };
            let _ = write!(out, "\n## User\n");
            for part in &message.parts {
                match part {
                    Part::Text { text } => {
                        let _ = writeln!(out, "{}", text.trim());
                    }
                    Part::Image { name, .. } => {
                        let _ = writeln!(out, "[image {}]", name.as_deref().unwrap_or("without a name"));
                    }
                }
            }
        }
        Item::Assistant(answer) => {
            if answer.text.trim().is_empty() && answer.calls.is_empty() {
                return false;
            }
            let _ = write!(out, "\n## Assistant\n");
            if !answer.text.trim().is_empty() {
                let _ = writeln!(out, "{}", answer.text.trim());
            }
            for call in &answer.calls {
                let _ = writeln!(out, "[call] {}", call.label);
            }
        }
        Item::Tool(result) => {
            let what = if result.error.is_some() { "error" } else { "result" };
            let kept = result.blob.as_ref().and_then(|blob| blob.name.as_deref());
            let kept = kept.map(|name| format!(", kept as {name}")).unwrap_or_default();
            let excerpt = if result.error.is_some() { ERROR_EXCERPT } else { EXCERPT };
            let _ = writeln!(out, "[{what} of {}, {}{kept}]", entry.label, words::size_of(&result.text));
            if entry.how != How::Stub {
                let _ = writeln!(out, "{}", words::clipped(result.text.trim(), excerpt));
            }
        }
    }
    true
}

/// Writes an item whole, for an archive.
fn whole(entry: &Entry, out: &mut String) {
    match entry.item.as_ref() {
        Item::User(message) => {
            let who = match entry.place.origin {
                Origin::Nudge => "Loop guard",
                Origin::Pin => "Pinned",
                _ => "User",
            };
            let _ = writeln!(out, "\n## {who}\n{}", words::text_of(message));
        }
        Item::Assistant(answer) => {
            let _ = writeln!(out, "\n## Assistant\n{}", answer.text.trim());
            for call in &answer.calls {
                let _ = writeln!(out, "[call] {} {}", call.name, call.arguments);
            }
        }
        Item::Tool(result) => {
            let kept = result.blob.as_ref().and_then(|blob| blob.name.as_deref());
            let kept = kept.map(|name| format!(" (the whole is {name})")).unwrap_or_default();
            let _ = writeln!(out, "[result of {}]{kept}\n{}", entry.label, result.text);
        }
    }
}

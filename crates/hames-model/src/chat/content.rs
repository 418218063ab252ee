//! What becomes of an answer's content: visible text, reasoning between tags, calls spoken as text.
//!
//! Content passes the [`Splitter`], and what is text the [`Gate`]. Reasoning found here joins what came in fields of its
//! own; where a server tells the same thoughts in both, they count once. What is shown is told as it is decided, so that
//! the pieces add up to the answer, with one exception: where an answer turns out to have begun inside its reasoning (or
//! not to have), what was shown as the one stays shown as it is, and only the answer as a whole says what it was.

use std::sync::Arc;

use hames_protocol::{Delta, Head};

use super::calls::Calls;
use super::reasoning::Reasoning;
use super::spoken::Gate;
use super::tags::{Piece, Splitter};

/// How content is read; see [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Whether thinking tags are split out.
    pub(crate) thinking_tags: bool,
    /// Whether this model's answers begin inside their reasoning.
    pub(crate) begins_inside: bool,
    /// The tools that were offered, where calls may be spoken as text.
    pub(crate) tools: Option<Arc<Head>>,
}

/// The content of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct Content {
    tags: Option<Splitter>,
    said: Said,
}

/// What is decided of it.
#[derive(Debug, Default)]
struct Said {
    text: String,
    gate: Option<Gate>,
    /// How much of the reasoning told apart the tags have told again, where it is all they told.
    echo: Option<usize>,
    /// Whether tags have told reasoning.
    thought: bool,
    /// Whether reasoning came apart.
    apart: bool,
    /// Whether anything was decided.
    is_something: bool,
}

impl Content {
    pub(crate) fn new(reading: Reading) -> Self {
        let said = Said { gate: reading.tools.map(Gate::new), ..Said::default() };
        Self { tags: reading.thinking_tags.then(|| Splitter::new(reading.begins_inside)), said }
    }

    /// The visible text so far.
    pub(crate) fn text(&self) -> &str {
        &self.said.text
    }

    /// Reasoning came in a field of its own.
    pub(crate) fn reasoning_comes_apart(&mut self) {
        self.said.apart = true;
        if let Some(tags) = &mut self.tags {
            tags.reasoning_comes_apart();
        }
    }

    /// Takes in content.
    pub(crate) fn push(&mut self, text: &str, reasoning: &mut Reasoning, out: &mut Vec<Delta>) {
        let Self { tags, said } = self;
        match tags {
            Some(tags) => tags.push(text, &mut |piece| said.piece(piece, reasoning, out)),
            None => said.text(text, out),
        }
    }

    /// The content has ended; well, if `is_whole`. Calls that were spoken go to `calls`, unless there are others.
    pub(crate) fn finish(
        &mut self,
        is_whole: bool,
        reasoning: &mut Reasoning,
        calls: &mut Calls,
        out: &mut Vec<Delta>,
    ) {
        let Self { tags, said } = self;
        if let Some(tags) = tags {
            tags.finish(&mut |piece| said.piece(piece, reasoning, out));
            if let Some(tag) = tags.tag().filter(|_| said.thought && !said.apart) {
                reasoning.came_in(tag);
            }
        }
        let Some(gate) = &mut said.gate else { return };
        match gate.finish(is_whole && calls.is_empty() && said.text.trim().is_empty()) {
            Ok(spoken) => {
                said.text.clear();
                spoken.into_iter().for_each(|call| calls.take_spoken(call, out));
            }
            Err(held) => said.show(&held, out),
        }
    }

    /// Whether the answer began inside its reasoning; `None` where it did not show.
    pub(crate) fn began_inside(&self) -> Option<bool> {
        self.tags.as_ref().filter(|_| self.said.is_something).map(Splitter::lacked_open)
    }

    pub(crate) fn into_text(self) -> String {
        self.said.text
    }
}

impl Said {
    fn piece(&mut self, piece: Piece<'_>, reasoning: &mut Reasoning, out: &mut Vec<Delta>) {
        self.is_something = true;
        match piece {
            Piece::Text(text) => self.text(text, out),
            Piece::Reasoning(text) => self.reasoning(text, reasoning, out),
            Piece::WasReasoning => {
                let held = self.gate.as_mut().map(Gate::begin_again).unwrap_or_default();
                self.thought = true;
                reasoning.push_tagged(&std::mem::take(&mut self.text));
                reasoning.push_tagged(&held);
                push_reasoning(&held, out);
            }
            Piece::WasText => {
                self.thought = false;
                let text = reasoning.take_tagged();
                // Shown it was already; it may be calls all the same.
                self.text(&text, &mut Vec::new());
            }
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<Delta>) {
        let Self { gate, text: all, .. } = self;
        match gate {
            Some(gate) => gate.push(text, &mut |text| show(all, text, out)),
            None => show(all, text, out),
        }
    }

    fn show(&mut self, text: &str, out: &mut Vec<Delta>) {
        show(&mut self.text, text, out);
    }

    fn reasoning(&mut self, text: &str, reasoning: &mut Reasoning, out: &mut Vec<Delta>) {
        if self.apart && !self.thought {
            let told = reasoning.text().trim_start();
            let seen = self.echo.unwrap_or(0);
            if told.get(seen..).is_some_and(|rest| rest.starts_with(text)) {
                self.echo = Some(seen + text.len());
                return;
            }
            // It is no echo: what was taken for one is told now.
            let held = told[..seen].to_owned();
            self.thought = true;
            for text in ["\n\n", &held, text] {
                reasoning.push_tagged(text);
                push_reasoning(text, out);
            }
            return;
        }
        self.thought = true;
        reasoning.push_tagged(text);
        push_reasoning(text, out);
    }
}

fn show(all: &mut String, text: &str, out: &mut Vec<Delta>) {
    if text.is_empty() {
        return;
    }
    all.push_str(text);
    match out.last_mut() {
        Some(Delta::Text(last)) => last.push_str(text),
        _ => out.push(Delta::Text(text.to_owned())),
    }
}

/// Tells a piece of reasoning, together with the one before where that is reasoning too.
pub(crate) fn push_reasoning(text: &str, out: &mut Vec<Delta>) {
    if text.is_empty() {
        return;
    }
    match out.last_mut() {
        Some(Delta::Reasoning(last)) => last.push_str(text),
        _ => out.push(Delta::Reasoning(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;

//! What streams just now: deltas and the snapshot of the open step, until their durable events replace them.

use std::collections::HashSet;

use hames_protocol::{Envelope, Event, OpenKind, RunId};

use super::block::{Block, Key, Kind, Prose, Streamed};
use super::text;

/// The step that was last heard of.
#[derive(Clone, Debug, Default)]
struct Step {
    at: (Option<RunId>, Option<u32>),
    /// Blocks of it that are in the log already.
    closed: HashSet<(Streamed, u32)>,
    calls: u32,
    is_done: bool,
}

/// A block that grows.
#[derive(Clone, Debug)]
struct Growing {
    /// Bytes of it that were heard.
    heard: u64,
    /// The last piece ended in CR: whether it belongs to a line end is not known yet.
    return_waits: bool,
}

/// Everything that streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    pub(super) blocks: Vec<Block>,
    growing: Vec<Growing>,
    step: Option<Step>,
}

impl Open {
    /// Takes in what concerns the open step; true where nothing else is to be done with the event.
    pub(super) fn see(&mut self, envelope: &Envelope) -> bool {
        match &envelope.event {
            Event::TextDelta(d) => self.delta(envelope, Streamed::Text, d.index, d.offset, None, &d.text),
            Event::ReasoningDelta(d) => self.delta(envelope, Streamed::Reasoning, d.index, d.offset, None, &d.text),
            Event::ToolInputDelta(d) => {
                self.delta(envelope, Streamed::Input, d.index, d.offset, d.name.as_deref(), &d.text);
            }
            Event::StepSnapshot(snapshot) => {
                self.clear();
                for block in &snapshot.blocks {
                    let what = match block.kind {
                        OpenKind::Text => Streamed::Text,
                        OpenKind::Reasoning => Streamed::Reasoning,
                        OpenKind::ToolInput => Streamed::Input,
                    };
                    self.delta(envelope, what, block.index, 0, block.name.as_deref(), &block.text);
                }
            }
            Event::TextDone(done) => return self.close(envelope, Streamed::Text, done.index),
            Event::ReasoningDone(done) => return self.close(envelope, Streamed::Reasoning, done.index),
            Event::ToolCall(_) => {
                let step = self.step(envelope);
                let index = step.calls;
                step.calls += 1;
                return self.close(envelope, Streamed::Input, index);
            }
            Event::StepStart(_) => {
                self.clear();
                let step = self.step(envelope);
                *step = Step { at: step.at.clone(), ..Step::default() };
            }
            Event::Retry(_) => {
                self.clear();
                return false;
            }
            Event::StepDone(_) => {
                self.clear();
                self.step(envelope).is_done = true;
                return false;
            }
            Event::RunStart(_) | Event::RunDone(_) | Event::SessionCut(_) => {
                *self = Self::default();
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Takes over what streams on top of a page of the log: without what of it is in the page already.
    pub(super) fn go_on(&mut self, live: Open) {
        for (block, growing) in live.blocks.into_iter().zip(live.growing) {
            let Key::Open(what, index) = &block.key else { continue };
            let step = self.step.as_ref();
            if step.is_none_or(|step| !step.is_done && !step.closed.contains(&(*what, *index))) {
                self.blocks.push(block);
                self.growing.push(growing);
            }
        }
        match (&mut self.step, live.step) {
            (Some(known), Some(step)) if known.at == step.at => {
                known.closed.extend(step.closed);
                known.calls = known.calls.max(step.calls);
            }
            (known, Some(step)) => *known = Some(step),
            (_, None) => {}
        }
    }

    /// Forgets everything that streams.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// What is being written, where one block is.
    pub(super) fn position(&self, key: &Key) -> Option<usize> {
        self.blocks.iter().position(|block| block.key == *key)
    }

    fn step(&mut self, envelope: &Envelope) -> &mut Step {
        let at = (envelope.run.clone(), envelope.step);
        let step = self.step.get_or_insert_with(|| Step { at: at.clone(), ..Step::default() });
        if step.at != at {
            *step = Step { at, ..Step::default() };
        }
        step
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.growing.clear();
    }

    /// The durable event has come: what was streamed of it goes.
    fn close(&mut self, envelope: &Envelope, what: Streamed, index: u32) -> bool {
        self.step(envelope).closed.insert((what, index));
        if let Some(at) = self.position(&Key::Open(what, index)) {
            self.blocks.remove(at);
            self.growing.remove(at);
        }
        false
    }

    fn delta(&mut self, envelope: &Envelope, what: Streamed, index: u32, offset: u64, name: Option<&str>, piece: &str) {
        let step = self.step(envelope);
        if step.is_done || step.closed.contains(&(what, index)) {
            return;
        }
        let key = Key::Open(what, index);
        let at = match self.position(&key) {
            Some(at) => at,
            None => self.begin(key, what, name),
        };
        let (block, growing) = (&mut self.blocks[at], &mut self.growing[at]);
        let end = offset.saturating_add(piece.len() as u64);
        if end <= growing.heard {
            return;
        }
        let known = growing.heard.saturating_sub(offset) as usize;
        // A place inside a character cannot come from the server; taking the piece whole loses nothing.
        let fresh = piece.get(known..).unwrap_or(piece);
        let gap = if offset > growing.heard { "…" } else { "" };
        growing.heard = end;
        block.version += 1;
        match &mut block.kind {
            Kind::Writing { bytes, .. } => *bytes = end as usize,
            Kind::Answer(prose) | Kind::Reasoning(prose) => {
                let waited = if std::mem::take(&mut growing.return_waits) { "\r" } else { "" };
                let whole = format!("{gap}{waited}{fresh}");
                let ready = whole.strip_suffix('\r').unwrap_or(&whole);
                growing.return_waits = ready.len() < whole.len();
                prose.push(ready);
            }
            _ => {}
        }
    }

    fn begin(&mut self, key: Key, what: Streamed, name: Option<&str>) -> usize {
        let prose = || Prose { is_open: true, ..Prose::default() };
        let kind = match what {
            Streamed::Text => Kind::Answer(prose()),
            Streamed::Reasoning => Kind::Reasoning(prose()),
            Streamed::Input => Kind::Writing { name: text::clean_line(name.unwrap_or("a call")), bytes: 0 },
        };
        self.blocks.push(Block { key, version: 0, kind });
        self.growing.push(Growing { heard: 0, return_waits: false });
        self.blocks.len() - 1
    }
}

//! What streams, as live events: every piece with its place in its block.

use std::collections::BTreeMap;

use hames_protocol::{Delta, Event, OpenKind, ReasoningDelta, TextDelta, ToolInputDelta};

/// Where the pieces of the open step stand.
#[derive(Default)]
pub(super) struct Pieces {
    text: u64,
    reasoning: u64,
    /// By ordinal. A map, because nobody vouches for how high an ordinal is.
    calls: BTreeMap<u32, u64>,
    last: Option<OpenKind>,
}

impl Pieces {
    /// What came last; `None` where nothing came.
    pub(super) fn last(&self) -> Option<OpenKind> {
        self.last
    }

    pub(super) fn events(&mut self, deltas: Vec<Delta>) -> Vec<Event> {
        deltas.into_iter().map(|delta| self.event(delta)).collect()
    }

    fn event(&mut self, delta: Delta) -> Event {
        match delta {
            Delta::Text(text) => {
                self.last = Some(OpenKind::Text);
                Event::TextDelta(TextDelta { index: 0, offset: advance(&mut self.text, &text), text })
            }
            Delta::Reasoning(text) => {
                self.last = Some(OpenKind::Reasoning);
                Event::ReasoningDelta(ReasoningDelta { index: 0, offset: advance(&mut self.reasoning, &text), text })
            }
            Delta::ToolInput { call, name, text } => {
                self.last = Some(OpenKind::ToolInput);
                let offset = advance(self.calls.entry(call).or_default(), &text);
                Event::ToolInputDelta(ToolInputDelta { index: call, offset, name, text })
            }
        }
    }
}

/// Moves a block's end past `text`; gives where it was.
fn advance(end: &mut u64, text: &str) -> u64 {
    let before = *end;
    *end += text.len() as u64;
    before
}

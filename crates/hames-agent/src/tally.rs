//! What a run has come to so far: a fold of its own events, so that its end says the same whether the run itself writes
//! it or whoever recovers it after a death.

use hames_protocol::{CallId, Envelope, Event, Usage};

/// Counts of the run that is open, or of the last one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u32,
    /// Calls asked for.
    pub(crate) calls: u32,
    /// Calls that gave no result.
    pub(crate) errors: u32,
    pub(crate) usage: Usage,
    /// When it began, in Unix milliseconds.
    pub(crate) began: u64,
    /// When its last event was recorded.
    pub(crate) last: u64,
    /// Whether a step has begun and not ended.
    pub(crate) in_step: bool,
    /// Files that calls without an answer were about to change.
    pub(crate) changing: Vec<(CallId, String)>,
}

impl Tally {
    pub(crate) fn apply(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::RunStart(_) => *self = Self { began: envelope.at, ..Self::default() },
            Event::StepStart(start) => {
                self.steps = start.number;
                self.in_step = true;
            }
            Event::StepDone(done) => {
                self.in_step = false;
                if let Some(usage) = &done.usage {
                    self.usage.add(usage);
                }
            }
            Event::ToolCall(_) => self.calls += 1,
            Event::FileChanged(changed) => self.changing.push((changed.call_id.clone(), changed.path.clone())),
            // Changes that were applied belong to no call that is open.
            Event::ChangesApplied(_) => self.changing.clear(),
            Event::ToolDone(done) => self.changing.retain(|(call, _)| *call != done.call_id),
            Event::ToolError(error) => {
                self.errors += 1;
                self.changing.retain(|(call, _)| *call != error.call_id);
            }
            _ => {}
        }
        self.last = envelope.at;
    }
}

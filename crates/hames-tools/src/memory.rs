//! What a run remembers of the calls it has made, as the door asks for it.

use std::time::Instant;

use hames_protocol::{CallId, Event, ToolCall};

/// What is to be done with a call that may run.
#[derive(Clone, Debug, PartialEq)]
pub enum Recall {
    /// Run it.
    Run,
    /// Record this `tool.done` or `tool.error` as its answer, without running it.
    Answer(Box<Event>),
    /// Give it what this call of the same step gives, once that has ended.
    Share(CallId),
}

/// Decides whether a call is worth making again: asked after the policy and before any lock, in call order, for every
/// kind of tool. It learns of calls and their ends from the events of the run.
pub trait CallMemory: Send + Sync {
    /// Whether it has to be known what the call reads. Looking costs, so this is asked first.
    fn wants_print(&self, call: &CallId) -> bool;

    /// What is to be done with the call. `print` stands for what the call reads as it looks now: where two are equal,
    /// nothing of it has changed. `None` where it was not wanted or cannot be told.
    fn consult(&self, call: &ToolCall, print: Option<u64>, now: Instant) -> Recall;
}

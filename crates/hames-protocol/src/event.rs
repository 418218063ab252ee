//! The one stream of events: a line of `--json`, an SSE event, a row of the log.
//!
//! Additive only. An unknown type is kept as it is and skipped by every fold.

mod session;
mod step;
mod tool;
mod window;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failure, Pending, RunId, SessionId, Timings};

pub use session::*;
pub use step::*;
pub use tool::*;
pub use window::*;

/// A body: public fields, and one derive for all.
macro_rules! body {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fmeta:meta])* $field:ident: $ty:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }
    };
}
use body;

/// The version of the envelope. A breaking change raises it and brings an upcaster.
pub const ENVELOPE_VERSION: u32 = 1;

/// An event with its place in the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// [`ENVELOPE_VERSION`].
    pub v: u32,
    /// Ordinal in the session's log, from 1; `null` for live-only events and before there is a session.
    pub seq: Option<u64>,
    /// Unix time in milliseconds.
    pub at: u64,
    /// The session, where there is one.
    pub session: Option<SessionId>,
    /// The run, where there is one.
    pub run: Option<RunId>,
    /// Ordinal of the run in its session, from 1.
    pub turn: Option<u32>,
    /// Ordinal of the step in its run, from 1; `null` outside a step.
    pub step: Option<u32>,
    /// Path of the child agent that spoke; empty for the run itself.
    #[serde(default)]
    pub agent: Vec<String>,
    /// What happened.
    pub event: Event,
}

macro_rules! events {
    ($( $(#[$doc:meta])* $variant:ident($body:ty) = $name:literal, durable: $durable:literal; )*) => {
        /// What happened.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type")]
        #[non_exhaustive]
        pub enum Event {
            $( $(#[$doc])* #[serde(rename = $name)] $variant($body), )*
            /// An event of a type this version does not know. Kept, never interpreted.
            #[serde(untagged)]
            Unknown(Value),
        }

        impl Event {
            /// The value of `type`.
            pub fn type_name(&self) -> &str {
                match self {
                    $( Event::$variant(_) => $name, )*
                    Event::Unknown(value) => value.get("type").and_then(Value::as_str).unwrap_or(""),
                }
            }
            /// Whether the event belongs in the log. What is unknown came from a log, so it does.
            pub fn is_durable(&self) -> bool {
                match self {
                    $( Event::$variant(_) => $durable, )*
                    Event::Unknown(_) => true,
                }
            }
            /// Whether this version knows the type but could not read the fields, or the log could not read the event.
            pub fn is_damaged(&self) -> bool {
                matches!(self, Event::Unknown(value) if match value.get("type").and_then(Value::as_str) {
                    None | Some("damaged") => true,
                    Some(name) => [$( $name ),*].contains(&name),
                })
            }
        }
        $( impl From<$body> for Event { fn from(body: $body) -> Event { Event::$variant(body) } } )*
    };
}

events! {
    /// The session begins; always seq 1.
    SessionCreated(SessionCreated) = "session.created", durable: true;
    /// A run begins, with everything that is frozen for its life.
    RunStart(RunStart) = "run.start", durable: true;
    /// A message of the user enters the transcript; at once its removal from pending.
    MessageUser(MessageUser) = "message.user", durable: true;
    /// A request is about to be sent.
    StepStart(StepStart) = "step.start", durable: true;
    /// A piece of visible text.
    TextDelta(TextDelta) = "text.delta", durable: false;
    /// A piece of reasoning.
    ReasoningDelta(ReasoningDelta) = "reasoning.delta", durable: false;
    /// A piece of a call's arguments.
    ToolInputDelta(ToolInputDelta) = "tool.input.delta", durable: false;
    /// A piece of a running tool's output.
    ToolOutputDelta(ToolOutputDelta) = "tool.output.delta", durable: false;
    /// The open step so far, for a client that attaches in its middle.
    StepSnapshot(StepSnapshot) = "step.snapshot", durable: false;
    /// A block of reasoning is complete, or cut.
    ReasoningDone(ReasoningDone) = "reasoning.done", durable: true;
    /// A block of text is complete, or cut.
    TextDone(TextDone) = "text.done", durable: true;
    /// The model asked for a call.
    ToolCall(ToolCall) = "tool.call", durable: true;
    /// The request is answered. Committed before any call runs.
    StepDone(StepDone) = "step.done", durable: true;
    /// Somebody has to decide.
    ApprovalAsked(ApprovalAsked) = "approval.asked", durable: true;
    /// Somebody decided.
    ApprovalAnswered(ApprovalAnswered) = "approval.answered", durable: true;
    /// The agent asks the user something.
    QuestionAsked(QuestionAsked) = "question.asked", durable: true;
    /// The user answered.
    QuestionAnswered(QuestionAnswered) = "question.answered", durable: true;
    /// Execution begins: from here on an effect may exist.
    ToolStart(ToolStart) = "tool.start", durable: true;
    /// A file is about to change (recorded before it does).
    FileChanged(FileChanged) = "file.changed", durable: true;
    /// A change was proposed in Analyze.
    ChangeProposed(ChangeProposed) = "change.proposed", durable: true;
    /// Proposed changes are about to be applied.
    ChangesApplyStarted(ChangePaths) = "changes.apply_started", durable: true;
    /// Proposed changes were applied.
    ChangesApplied(ChangesApplied) = "changes.applied", durable: true;
    /// Proposed changes were discarded.
    ChangesDiscarded(ChangesDiscarded) = "changes.discarded", durable: true;
    /// Proposed changes stay as they are; nobody is asked about them again.
    ChangesKept(ChangesKept) = "changes.kept", durable: true;
    /// A call gave a result.
    ToolDone(ToolDone) = "tool.done", durable: true;
    /// A call failed, was refused or never ran.
    ToolError(ToolError) = "tool.error", durable: true;
    /// Results are sent as stubs from now on.
    WindowMasked(WindowMasked) = "window.masked", durable: true;
    /// Exchanges left the window.
    WindowRetired(WindowRetired) = "window.retired", durable: true;
    /// The window begins anew, with a state document.
    WindowCheckpoint(WindowCheckpoint) = "window.checkpoint", durable: true;
    /// The model's window is smaller than was thought.
    WindowLimited(WindowLimited) = "window.limited", durable: true;
    /// A message that is too large is sent in part.
    WindowExternalised(WindowExternalised) = "window.externalised", durable: true;
    /// Something stays in the window from now on.
    PinAdded(PinAdded) = "pin.added", durable: true;
    /// Something need not stay any more.
    PinRemoved(PinRemoved) = "pin.removed", durable: true;
    /// A compaction begins.
    CompactionStart(CompactionStart) = "compaction.start", durable: true;
    /// A compaction removed something without a model.
    CompactionPruned(CompactionPruned) = "compaction.pruned", durable: true;
    /// A model was asked for a document.
    CompactionAsked(CompactionAsked) = "compaction.asked", durable: true;
    /// A compaction wrote a summary.
    CompactionSummary(CompactionSummary) = "compaction.summary", durable: true;
    /// A compaction ended.
    CompactionDone(CompactionDone) = "compaction.done", durable: true;
    /// A message waits.
    PendingAdded(Pending) = "pending.added", durable: true;
    /// A waiting message was changed.
    PendingEdited(PendingEdited) = "pending.edited", durable: true;
    /// A waiting message was withdrawn.
    PendingCancelled(PendingCancelled) = "pending.cancelled", durable: true;
    /// Waiting messages stay where they are until resumed.
    PendingPaused(PendingPaused) = "pending.paused", durable: true;
    /// Settings changed.
    SettingsChanged(SettingsChanged) = "settings.changed", durable: true;
    /// The todo list changed; carries the whole list.
    TodoUpdated(TodoUpdated) = "todo.updated", durable: true;
    /// The session has another name.
    SessionRenamed(SessionRenamed) = "session.renamed", durable: true;
    /// A person removed the tail.
    SessionCut(SessionCut) = "session.cut", durable: true;
    /// The session belongs to another folder.
    SessionMoved(SessionMoved) = "session.moved", durable: true;
    /// The session began as a copy of another.
    SessionBranched(SessionBranched) = "session.branched", durable: true;
    /// The session came from a file; everything before this was said elsewhere.
    SessionImported(SessionImported) = "session.imported", durable: true;
    /// The loop guard said something to the model.
    Nudge(Nudge) = "nudge", durable: true;
    /// Nudges did not end a loop; the run stops.
    LoopStopped(LoopStopped) = "loop.stopped", durable: true;
    /// A request is tried again.
    Retry(Retry) = "retry", durable: true;
    /// A refusal taught how requests to a model are written; the request was sent again that way.
    ParameterLearned(ParameterLearned) = "parameter.learned", durable: true;
    /// A child began.
    SubagentStart(SubagentStart) = "subagent.start", durable: true;
    /// A child ended.
    SubagentDone(SubagentDone) = "subagent.done", durable: true;
    /// A child failed.
    SubagentError(SubagentError) = "subagent.error", durable: true;
    /// Something failed.
    Error(Failure) = "error", durable: true;
    /// The agent has finished.
    Done(Done) = "done", durable: true;
    /// The turn has finished.
    TurnDone(TurnDone) = "turn.done", durable: true;
    /// The run has finished; always its last event.
    RunDone(RunDone) = "run.done", durable: true;
}

impl Envelope {
    /// An envelope outside any session: for errors before there is one.
    pub fn detached(at: u64, event: Event) -> Self {
        Self {
            v: ENVELOPE_VERSION,
            seq: None,
            at,
            session: None,
            run: None,
            turn: None,
            step: None,
            agent: vec![],
            event,
        }
    }
}

impl Event {
    /// A minimal `step.done`, so that examples and tests can close a step in one line.
    pub fn step_done_for_tests(finish_reason: &str) -> Event {
        Event::StepDone(StepDone {
            finish_reason: Some(finish_reason.into()),
            whole: true,
            usage: None,
            cost: None,
            timings: Timings::default(),
            request_id: None,
        })
    }
}

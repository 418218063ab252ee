//! The one stream of events: a line of `--json`, an SSE event, a row of the log.
//!
//! Additive only. An unknown type is kept as it is and skipped by every fold.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    BlobRef, CallId, Cost, Declaration, Delivery, Diff, Failure, FileHash, Label, Mode, ModelRef, Part, Pending,
    PendingId, RunId, SessionId, Settings, Timings, Usage,
};

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
    /// A compaction begins.
    CompactionStart(CompactionStart) = "compaction.start", durable: true;
    /// A compaction removed something without a model.
    CompactionPruned(CompactionPruned) = "compaction.pruned", durable: true;
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
    /// The loop guard said something to the model.
    Nudge(Nudge) = "nudge", durable: true;
    /// A request is tried again.
    Retry(Retry) = "retry", durable: true;
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

macro_rules! body {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fmeta:meta])* $field:ident: $ty:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }
    };
}

body! {
    /// Body of `session.created`.
    SessionCreated {
        /// Unique in its folder, without regard to case.
        name: String,
        /// Canonical absolute path.
        folder: String,
        /// Settings at birth.
        #[serde(default)] settings: Settings,
    }
}
body! {
    /// Body of `run.start`: what is frozen for the run.
    RunStart {
        /// The mode.
        mode: Mode,
        /// Whether children are allowed.
        #[serde(default)] parallel: bool,
        /// The model.
        model: ModelRef,
        /// The settings in force.
        #[serde(default)] settings: Settings,
        /// The tools and the hash of what each advertises.
        #[serde(default)] tools: Vec<NamedHash>,
        /// The instruction files read.
        #[serde(default)] instructions: Vec<InstructionFile>,
        /// The skills offered.
        #[serde(default)] skills: Vec<NamedHash>,
    }
}
body! {
    /// A name and the hash of what it stood for.
    NamedHash {
        /// The name.
        name: String,
        /// Lower-case hex of BLAKE3.
        hash: String,
    }
}
body! {
    /// An instruction file (AGENTS.md) as it entered the head.
    InstructionFile {
        /// Absolute path.
        path: String,
        /// Lower-case hex of BLAKE3 of the whole file.
        hash: String,
        /// Bytes of the whole file.
        bytes: u64,
        /// Bytes left out because the file passed the limit.
        #[serde(default)] dropped: u64,
    }
}
body! {
    /// Body of `message.user`.
    MessageUser {
        /// What it says.
        parts: Vec<Part>,
        /// How it was delivered; absent for a run's first message.
        #[serde(default, skip_serializing_if = "Option::is_none")] delivery: Option<Delivery>,
        /// The pending message that this is.
        #[serde(default, skip_serializing_if = "Option::is_none")] pending_id: Option<PendingId>,
        /// The sender's own id.
        #[serde(default, skip_serializing_if = "Option::is_none")] idempotency_id: Option<String>,
        /// Added by Hames, not typed: mode, date, folder.
        #[serde(default, skip_serializing_if = "Option::is_none")] note: Option<String>,
    }
}
body! {
    /// Body of `step.start`.
    StepStart {
        /// Ordinal in the run, from 1.
        number: u32,
        /// Hash of the request.
        fingerprint: String,
        /// Bytes of the request.
        bytes: u64,
        /// Offset of the first byte that differs from the request before.
        #[serde(default, skip_serializing_if = "Option::is_none")] changed_at: Option<u64>,
        /// Why: `first`, `appended`, `item`, `head`.
        changed_why: String,
    }
}
body! {
    /// Body of `text.delta`.
    TextDelta {
        /// Ordinal of the block in the step.
        index: u32,
        /// UTF-8 bytes of the block before this piece.
        offset: u64,
        /// The piece.
        text: String,
    }
}
body! {
    /// Body of `reasoning.delta`.
    ReasoningDelta {
        /// Ordinal of the block in the step.
        index: u32,
        /// UTF-8 bytes of the block before this piece.
        offset: u64,
        /// The piece.
        text: String,
    }
}
body! {
    /// Body of `tool.input.delta`.
    ToolInputDelta {
        /// Ordinal of the call in the step.
        index: u32,
        /// UTF-8 bytes of the arguments before this piece.
        offset: u64,
        /// The tool, with the first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")] name: Option<String>,
        /// The piece.
        text: String,
    }
}
body! {
    /// Body of `tool.output.delta`: at most ten a second and 4 KB each for one call.
    ToolOutputDelta {
        /// The call.
        call_id: CallId,
        /// Bytes of output before this piece; a gap means pieces were skipped.
        offset: u64,
        /// The piece, cleaned of terminal codes.
        text: String,
    }
}
body! {
    /// Body of `step.snapshot`: the open step so far.
    StepSnapshot {
        /// The blocks and calls, in order.
        blocks: Vec<OpenBlock>,
    }
}
body! {
    /// A block of the open step.
    OpenBlock {
        /// `text`, `reasoning` or `tool_input`.
        kind: OpenKind,
        /// Ordinal of the block, or of the call, in the step.
        index: u32,
        /// The tool, for `tool_input`.
        #[serde(default, skip_serializing_if = "Option::is_none")] name: Option<String>,
        /// All of it so far.
        text: String,
    }
}
/// What an open block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenKind {
    /// Visible text.
    Text,
    /// Reasoning.
    Reasoning,
    /// A call's arguments.
    ToolInput,
}
/// Why a block ended before the model ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The loop guard.
    Guard,
    /// A person, or the caller.
    Abort,
    /// A message that wanted to be heard at once.
    Interrupt,
    /// The process died.
    Crash,
    /// The output limit.
    Limit,
    /// The stream broke.
    Stream,
}
body! {
    /// Body of `reasoning.done`.
    ReasoningDone {
        /// Ordinal of the block in the step.
        index: u32,
        /// The block, with what has to go back to the provider.
        #[serde(flatten)] block: ReasoningBlock,
        /// Why it was cut, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")] cut: Option<Cut>,
    }
}
/// A block of reasoning that can go back to the provider exactly as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningBlock {
    /// What a person may read; empty where it is encrypted.
    pub text: String,
    /// The field it came in: `reasoning_content`, `reasoning` or `reasoning_details`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Opaque provider blocks, each the JSON text it was built from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
}
body! {
    /// Body of `text.done`.
    TextDone {
        /// Ordinal of the block in the step.
        index: u32,
        /// The text.
        text: String,
        /// Why it was cut, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")] cut: Option<Cut>,
    }
}
body! {
    /// Body of `tool.call`.
    ToolCall {
        /// Our id.
        call_id: CallId,
        /// The provider's id, as sent; may be empty.
        #[serde(default)] provider_id: String,
        /// The tool's name, as sent.
        name: String,
        /// The arguments, as sent.
        arguments: String,
        /// The arguments as they will be used; absent where they could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")] input: Option<Value>,
        /// What the call is called from here on.
        label: Label,
        /// What the tool declared of it; absent where there is no such tool or no readable input.
        #[serde(default, skip_serializing_if = "Option::is_none")] declaration: Option<Declaration>,
        /// What has to go back with the call verbatim, as JSON text.
        #[serde(default, skip_serializing_if = "Option::is_none")] extra: Option<String>,
    }
}
body! {
    /// Body of `step.done`.
    StepDone {
        /// As the provider named it; absent where it gave none.
        finish_reason: Option<String>,
        /// Whether the answer was whole, so that its calls run.
        whole: bool,
        /// Tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")] usage: Option<Usage>,
        /// Money.
        #[serde(default, skip_serializing_if = "Option::is_none")] cost: Option<Cost>,
        /// Times.
        #[serde(default)] timings: Timings,
        /// The provider's id of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")] request_id: Option<String>,
    }
}
body! {
    /// Body of `approval.asked`: exactly what will run.
    ApprovalAsked {
        /// The call.
        call_id: CallId,
        /// Its name for people.
        label: Label,
        /// Why it needs a decision.
        reason: String,
        /// The input that will run.
        input: Value,
        /// What would change, where that can be shown.
        #[serde(default, skip_serializing_if = "Option::is_none")] diff: Option<Diff>,
        /// Hash of what was shown; an answer is bound to it.
        digest: String,
    }
}
body! {
    /// Body of `approval.answered`.
    ApprovalAnswered {
        /// The call.
        call_id: CallId,
        /// What was decided.
        decision: Decision,
        /// By whom: `user`, `rule`, `callback`.
        by: String,
        /// Hash of what was shown.
        digest: String,
    }
}
/// An answer to an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This once.
    Once,
    /// For the rest of the session.
    Session,
    /// For this folder from now on.
    Folder,
    /// No.
    Deny,
}
body! {
    /// Body of `question.asked`.
    QuestionAsked {
        /// The call that asks.
        call_id: CallId,
        /// The question.
        text: String,
        /// Answers to choose from; empty for free text.
        #[serde(default)] choices: Vec<String>,
        /// Hash of what was shown.
        digest: String,
    }
}
body! {
    /// Body of `question.answered`.
    QuestionAnswered {
        /// The call that asked.
        call_id: CallId,
        /// The answer.
        text: String,
        /// By whom.
        by: String,
        /// Hash of what was shown.
        digest: String,
    }
}
body! {
    /// Body of `tool.start`.
    ToolStart {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
    }
}
body! {
    /// Body of `file.changed`, recorded before the change takes place.
    FileChanged {
        /// The call that changes it.
        call_id: CallId,
        /// Canonical absolute path.
        path: String,
        /// The content before; absent where there was no file.
        #[serde(default, skip_serializing_if = "Option::is_none")] before: Option<BlobRef>,
        /// Hash of the content after; absent where the file is removed.
        #[serde(default, skip_serializing_if = "Option::is_none")] after: Option<String>,
        /// Mode bits after.
        #[serde(default, skip_serializing_if = "Option::is_none")] mode: Option<u32>,
    }
}
body! {
    /// Body of `change.proposed`.
    ChangeProposed {
        /// The call.
        call_id: CallId,
        /// The file, absolute.
        path: String,
        /// Hash of the content on disk it was made against; absent where there was no file.
        #[serde(default, skip_serializing_if = "Option::is_none")] base: Option<String>,
        /// The proposed content; absent for a deletion.
        #[serde(default, skip_serializing_if = "Option::is_none")] content: Option<BlobRef>,
        /// Mode bits.
        #[serde(default, skip_serializing_if = "Option::is_none")] mode: Option<u32>,
    }
}
body! {
    /// Body of `changes.apply_started`.
    ChangePaths {
        /// The files, absolute.
        paths: Vec<String>,
    }
}
body! {
    /// Body of `changes.applied`.
    ChangesApplied {
        /// The files, absolute.
        paths: Vec<String>,
    }
}
body! {
    /// Body of `changes.discarded`.
    ChangesDiscarded {
        /// The files, absolute.
        paths: Vec<String>,
    }
}
body! {
    /// Body of `tool.done`.
    ToolDone {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// What the model gets.
        output: String,
        /// The whole output, where `output` is only a part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")] blob: Option<BlobRef>,
        /// What changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] diffs: Vec<Diff>,
        /// Contents this call read or left, for "changed since it was read".
        #[serde(default, skip_serializing_if = "Vec::is_empty")] files: Vec<FileHash>,
        /// A command's exit code; a signal is 128 + its number.
        #[serde(default, skip_serializing_if = "Option::is_none")] exit_code: Option<i32>,
        /// Milliseconds from start to end.
        duration_ms: u64,
    }
}
body! {
    /// Body of `tool.error`.
    ToolError {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: String,
        /// What the model gets: what happened and what to do instead.
        error: String,
        /// The kind.
        class: ToolErrorClass,
        /// The whole output, where there was more than `error` shows.
        #[serde(default, skip_serializing_if = "Option::is_none")] blob: Option<BlobRef>,
        /// Milliseconds from start to end; 0 where it never started.
        #[serde(default)] duration_ms: u64,
    }
}
/// Why a call gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorClass {
    /// No such tool, or arguments that do not fit.
    Invalid,
    /// Refused by mode, rule, border or person.
    Refused,
    /// It ran and failed.
    Failed,
    /// It took too long.
    Timeout,
    /// A person or the caller stopped it.
    Cancelled,
    /// It never ran: the step was cut, or the process died before it.
    NotRun,
    /// A read that was cut by the death of the process.
    Interrupted,
    /// Something that may have had an effect was cut by the death of the process.
    OutcomeUnknown,
}
body! {
    /// Body of `window.masked`.
    WindowMasked {
        /// Calls whose results are sent as stubs from now on.
        calls: Vec<CallId>,
        /// Estimated tokens saved.
        tokens: u64,
    }
}
body! {
    /// Body of `window.retired`.
    WindowRetired {
        /// Everything up to and including this event left the window, but for pins.
        up_to_seq: u64,
        /// Estimated tokens saved.
        tokens: u64,
    }
}
body! {
    /// Body of `window.checkpoint`.
    WindowCheckpoint {
        /// The window begins after this event.
        from_seq: u64,
        /// The state document the window opens with.
        document: String,
    }
}
body! {
    /// Body of `compaction.start`.
    CompactionStart {
        /// `threshold`, `overflow` or `manual`.
        reason: String,
        /// Estimated tokens before.
        tokens_before: u64,
    }
}
body! {
    /// Body of `compaction.pruned`.
    CompactionPruned {
        /// Estimated tokens removed.
        tokens_removed: u64,
        /// Messages removed.
        messages_removed: u64,
    }
}
body! {
    /// Body of `compaction.summary`.
    CompactionSummary {
        /// The summary.
        summary: String,
    }
}
body! {
    /// Body of `compaction.done`.
    CompactionDone {
        /// Estimated tokens before.
        tokens_before: u64,
        /// Estimated tokens after.
        tokens_after: u64,
    }
}
body! {
    /// Body of `pending.edited`.
    PendingEdited {
        /// The message as it is now.
        pending: Pending,
    }
}
body! {
    /// Body of `pending.cancelled`.
    PendingCancelled {
        /// The message.
        id: PendingId,
    }
}
body! {
    /// Body of `pending.paused`.
    PendingPaused {
        /// Whether the queue stands still.
        paused: bool,
    }
}
body! {
    /// Body of `settings.changed`.
    SettingsChanged {
        /// The fields that changed; absent ones stay.
        settings: Settings,
    }
}
body! {
    /// Body of `todo.updated`.
    TodoUpdated {
        /// The whole list.
        todos: Vec<Todo>,
    }
}
body! {
    /// One entry of the todo list.
    Todo {
        /// Stable in its session.
        id: String,
        /// What is to be done.
        content: String,
        /// How far it is.
        status: TodoStatus,
        /// How much it matters.
        #[serde(default)] priority: TodoPriority,
    }
}
/// How far a todo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}
/// How much a todo matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoPriority {
    /// First.
    High,
    /// As usual.
    #[default]
    Medium,
    /// Later.
    Low,
}
body! {
    /// Body of `session.renamed`.
    SessionRenamed {
        /// The new name.
        name: String,
    }
}
body! {
    /// Body of `session.cut`.
    SessionCut {
        /// The first event that was removed.
        from_seq: u64,
    }
}
body! {
    /// Body of `session.moved`.
    SessionMoved {
        /// The new folder, canonical.
        folder: String,
    }
}
body! {
    /// Body of `session.branched`.
    SessionBranched {
        /// The session it came from.
        from: SessionId,
        /// The last event of it that was copied.
        up_to_seq: u64,
    }
}
body! {
    /// Body of `nudge`.
    Nudge {
        /// The kind of loop.
        kind: String,
        /// What the model is told.
        text: String,
    }
}
body! {
    /// Body of `retry`.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Attempts there will be at most.
        max_attempts: u32,
        /// Milliseconds to wait first.
        delay_ms: u64,
        /// What failed.
        failure: Failure,
    }
}
body! {
    /// Body of `subagent.start`.
    SubagentStart {
        /// The child's profile.
        profile: String,
        /// What it is to do.
        task: String,
        /// The call that started it.
        call_id: CallId,
    }
}
body! {
    /// Body of `subagent.done`.
    SubagentDone {
        /// The call that started it.
        call_id: CallId,
        /// How it ended.
        result: RunResult,
        /// Milliseconds.
        duration_ms: u64,
    }
}
body! {
    /// Body of `subagent.error`.
    SubagentError {
        /// The call that started it.
        call_id: CallId,
        /// What happened.
        error: String,
    }
}
/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// The model had nothing more to do.
    Complete,
    /// Stopped short: output limit, filter, loop, an unanswerable question.
    Stopped,
    /// Stopped at the step limit.
    MaxSteps,
    /// Failed.
    Error,
    /// A person or the caller stopped it, or the process died.
    Interrupted,
}
body! {
    /// Body of `done`.
    Done {
        /// How it ended.
        result: RunResult,
        /// Why, where the result alone does not say: `output_limit`, `content_filter`, `question`.
        #[serde(default, skip_serializing_if = "Option::is_none")] reason: Option<String>,
        /// Tokens of all steps.
        usage: Usage,
        /// Steps taken.
        steps: u32,
        /// Calls asked for.
        calls: u32,
        /// Calls that gave no result.
        errors: u32,
    }
}
body! {
    /// Body of `turn.done`.
    TurnDone {
        /// Milliseconds from run.start.
        duration_ms: u64,
        /// Tokens of all steps.
        usage: Usage,
    }
}
body! {
    /// Body of `run.done`.
    RunDone {
        /// How it ended.
        result: RunResult,
        /// What `hames run` exits with: 0 complete, 1 model failure, 2 usage, 3 stopped short, 4 storage, 130 interrupted.
        exit_code: i32,
    }
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

/// Envelopes as they travel: shared, because several faces may watch one run.
pub type Envelopes = Arc<[Envelope]>;

//! Bodies of what concerns the session and its runs as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body;
use crate::{Delivery, Grant, Mode, ModelRef, Part, Pending, PendingId, SessionId, Settings, Usage};

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
    /// Body of `pending.edited`.
    PendingEdited {
        /// The message as it is now.
        pending: Pending,
        /// The message it stands before from now on; without it and without `last` it stays where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")] before: Option<PendingId>,
        /// Whether it stands at the end from now on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] last: bool,
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
        /// Names of fields that are not set any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] unset: Vec<String>,
    }
}
impl From<Settings> for SettingsChanged {
    fn from(settings: Settings) -> Self {
        Self { settings, unset: Vec::new() }
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
        /// The first event that was removed; seqs from here to the one of this event are not given again.
        from_seq: u64,
        /// Events that were removed.
        #[serde(default)] removed: u64,
        /// What lives outside the transcript and stays as it was.
        #[serde(default, skip_serializing_if = "Option::is_none")] outside: Option<Box<Outside>>,
        /// Paths whose proposal, made before the cut, was applied in what was removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] applied: Vec<String>,
        /// Paths whose proposal, made before the cut, was discarded in what was removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] discarded: Vec<String>,
    }
}
body! {
    /// What of a session lives outside its transcript, as it is from the event on that carries it.
    #[derive(Default)]
    Outside {
        /// The name.
        name: String,
        /// The folder, canonical.
        folder: String,
        /// The settings, all of them.
        #[serde(default)] settings: Settings,
        /// The todo list.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] todos: Vec<Todo>,
        /// Messages that wait, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] pending: Vec<Pending>,
        /// Whether they stay where they are until resumed.
        #[serde(default)] paused: bool,
        /// What a person allowed for the rest of the session.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] grants: Vec<Grant>,
        /// Outputs that were given a name so far, those of removed events too: the next one is named after them.
        #[serde(default)] outputs: u32,
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
        /// The last event of it that was copied. Those up to here but the first are copies under their own seqs.
        up_to_seq: u64,
        /// What lives outside the transcript, as the new session begins with it.
        #[serde(default, skip_serializing_if = "Option::is_none")] outside: Option<Box<Outside>>,
    }
}
body! {
    /// Body of `session.imported`.
    SessionImported {
        /// The id it had where it was exported.
        from: SessionId,
        /// What lives outside the transcript, as the session begins with it here.
        #[serde(default, skip_serializing_if = "Option::is_none")] outside: Option<Box<Outside>>,
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

impl RunResult {
    const ALL: [RunResult; 5] =
        [RunResult::Complete, RunResult::Stopped, RunResult::MaxSteps, RunResult::Error, RunResult::Interrupted];

    /// The name used in events, lists and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            RunResult::Complete => "complete",
            RunResult::Stopped => "stopped",
            RunResult::MaxSteps => "max_steps",
            RunResult::Error => "error",
            RunResult::Interrupted => "interrupted",
        }
    }

    /// The result of this name, where this version knows it.
    pub fn named(name: &str) -> Option<RunResult> {
        Self::ALL.into_iter().find(|result| result.as_str() == name)
    }

    /// A word or two for people, where the last run of a session is to be told of: nothing where it came to its end.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            RunResult::Complete => None,
            RunResult::Stopped => Some("stopped short"),
            RunResult::MaxSteps => Some("stopped at the step limit"),
            RunResult::Error => Some("failed"),
            RunResult::Interrupted => Some("interrupted"),
        }
    }
}
body! {
    /// Body of `done`.
    Done {
        /// How it ended.
        result: RunResult,
        /// Why, where the result alone does not say: `output_limit`, `content_filter`, `question`, `loop`.
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

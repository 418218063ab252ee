//! Bodies of what concerns the session and its runs as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body;
use crate::{Delivery, Mode, ModelRef, Part, Pending, PendingId, SessionId, Settings, Usage};

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

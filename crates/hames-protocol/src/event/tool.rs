//! Bodies of decisions, executions and the changes they make.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body;
use crate::{BlobRef, CallId, Diff, FileHash, Grant, Label, Part, RunId};

body! {
    /// Body of `approval.asked`: exactly what will run.
    ApprovalAsked {
        /// The call.
        call_id: CallId,
        /// The tool.
        #[serde(default)] name: String,
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
        /// What an answer for more than this once would allow; empty where only this once can be answered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] grants: Vec<Grant>,
    }
}
body! {
    /// Body of `approval.answered`.
    ApprovalAnswered {
        /// The call.
        call_id: CallId,
        /// What was decided.
        decision: Decision,
        /// By whom: `user`, `flag`, `callback`, `nobody`.
        by: String,
        /// Hash of what was shown.
        digest: String,
        /// What is allowed from now on, where the decision is for more than this once and what was shown still held.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] grants: Vec<Grant>,
        /// What a person should know of what became of the answer: that it could not be kept for the folder.
        #[serde(default, skip_serializing_if = "Option::is_none")] note: Option<String>,
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
impl From<bool> for Decision {
    /// Yes is for this once.
    fn from(yes: bool) -> Self {
        if yes { Decision::Once } else { Decision::Deny }
    }
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
        /// Mode bits after; where the file is removed, those it had.
        #[serde(default, skip_serializing_if = "Option::is_none")] mode: Option<u32>,
        /// What a symbolic link that was removed led to; `before` and `after` are absent then.
        #[serde(default, skip_serializing_if = "Option::is_none")] link: Option<String>,
    }
}
/// What a proposed change is made to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A file: written, or removed.
    #[default]
    File,
    /// A folder: removed, once it is empty. Folders that a file needs are made with it and are no change of their own.
    Dir,
    /// A symbolic link: removed. `base` is the hash of what it leads to.
    Link,
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
        /// Mode bits of the file as proposed, or as it was where it is removed; absent for a new file whose bits the
        /// system decides on.
        #[serde(default, skip_serializing_if = "Option::is_none")] mode: Option<u32>,
        /// What it is made to.
        #[serde(default, skip_serializing_if = "is_file")] kind: ChangeKind,
        /// Folders that are missing and would be made with the file, outermost first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] folders: Vec<String>,
    }
}
fn is_file(kind: &ChangeKind) -> bool {
    *kind == ChangeKind::File
}
body! {
    /// Body of `changes.apply_started`. Recorded together with one `file.changed` for each of them.
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
    /// Body of `changes.kept`.
    ChangesKept {
        /// The run that proposed them.
        run: RunId,
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
        /// Images of the result: they go to the model as a user message after the step's results.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] attachments: Vec<Part>,
        /// Milliseconds from start to end.
        duration_ms: u64,
        /// The call whose result this is, where this one did not run: there was nothing new to be had by it. There is no
        /// `tool.start` then.
        #[serde(default, skip_serializing_if = "Option::is_none")] served_from: Option<CallId>,
        /// Whether the result says what can be done or how (a skill, a contract of a tool): it leaves the window after other
        /// results.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] capability: bool,
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

impl ToolErrorClass {
    /// A word or two for people.
    pub fn words(self) -> &'static str {
        match self {
            ToolErrorClass::Invalid => "wrong arguments",
            ToolErrorClass::Refused => "refused",
            ToolErrorClass::Failed => "failed",
            ToolErrorClass::Timeout => "took too long",
            ToolErrorClass::Cancelled => "cancelled",
            ToolErrorClass::NotRun => "not run",
            ToolErrorClass::Interrupted => "interrupted",
            ToolErrorClass::OutcomeUnknown => "outcome unknown",
        }
    }
}

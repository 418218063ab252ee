//! Runs as a list shows them, and what there is to look up.

use super::{api, if_known};
use crate::{CallId, Cost, Mode, ModelRef, RunId, RunResult, Usage};

api! {
    /// A run that goes on.
    OpenRun {
        /// The run.
        run: RunId,
        /// Its ordinal in the session, from 1.
        turn: u32,
        /// The mode it keeps to its end.
        mode: Mode,
        /// The model it keeps to its end.
        model: ModelRef,
        /// The step it is in; 0 before the first.
        step: u32,
        /// When it began.
        started_at: u64,
        /// What it is doing, in a word or two: `thinking`, `answering`, `Shell npm test`, `waiting for you`.
        doing: String,
        /// Edits, commands and external calls that an interrupting message waits for.
        #[serde(default)] finishing: Vec<String>,
    }
}
api! {
    /// A call of a run in its ledger.
    LedgerCall {
        /// The call.
        call_id: CallId,
        /// The step that asked for it.
        step: u32,
        /// The tool.
        name: String,
        /// Tool, target and size, for people.
        label: String,
        /// `done`, or the class of its error, or `open`.
        outcome: String,
        /// The effect it declared.
        #[serde(default, skip_serializing_if = "Option::is_none")] effect: Option<String>,
        /// Milliseconds it took.
        duration_ms: u64,
    }
}
api! {
    /// `GET /v1/sessions/{id}/runs/{run}`: everything a run did. The list has the same without `calls`.
    Ledger {
        /// The run.
        run: RunId,
        /// Its ordinal in the session.
        turn: u32,
        /// The mode.
        mode: Mode,
        /// The model.
        model: ModelRef,
        /// When it began.
        started_at: u64,
        /// When it ended; absent while it goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")] ended_at: Option<u64>,
        /// How it ended.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_known")]
        result: Option<RunResult>,
        /// Why, where the result alone does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")] reason: Option<String>,
        /// Steps taken.
        steps: u32,
        /// Tokens of all steps.
        usage: Usage,
        /// Money of all steps, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")] cost: Option<Cost>,
        /// Paths of files it changed.
        #[serde(default)] files: Vec<String>,
        /// Its calls, in the order they were asked for.
        #[serde(default)] calls: Vec<LedgerCall>,
    }
}
api! {
    /// `GET /v1/sessions/{id}/runs`.
    Ledgers {
        /// The newest first.
        runs: Vec<Ledger>,
    }
}
api! {
    /// A proposed change of the session.
    Change {
        /// Absolute path.
        path: String,
        /// `write`, `remove` or `folder`.
        kind: String,
        /// Unified diff against the file as it was when the path was first proposed; absent for what is no text.
        #[serde(default, skip_serializing_if = "Option::is_none")] diff: Option<String>,
        /// Lines added.
        added: u64,
        /// Lines removed.
        removed: u64,
        /// Why it cannot be applied, where the file has changed meanwhile.
        #[serde(default, skip_serializing_if = "Option::is_none")] conflict: Option<String>,
    }
}
api! {
    /// `GET /v1/sessions/{id}/changes`.
    Changes {
        /// The open proposals by path.
        changes: Vec<Change>,
    }
}
api! {
    /// `POST /v1/sessions/{id}/changes/apply` and `…/discard`.
    ChangePathsGiven {
        /// The paths meant; none means all.
        #[serde(default)] paths: Vec<String>,
    }
}
api! {
    /// What was applied or discarded.
    ChangesSettled {
        /// The paths.
        paths: Vec<String>,
        /// What was left alone, and why.
        #[serde(default)] left: Vec<(String, String)>,
    }
}
api! {
    /// `GET /v1/sessions/{id}/files?q=…&limit=…`: for the completion of a mention.
    Files {
        /// Paths from the session's folder, best match first; folders end in a slash.
        files: Vec<String>,
        /// Whether there are more than the limit.
        more: bool,
    }
}

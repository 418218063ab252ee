//! Sessions as clients see them.

use serde_json::Value;

use super::{OpenRun, api, if_known, known_settings};
use crate::{
    CompactionDone, Mode, ModelRef, Pending, PinTarget, RunResult, SessionId, Settings, Todo, WindowPreview,
    WindowReport,
};

api! {
    /// A row of `GET /v1/sessions?folder=…`.
    SessionRow {
        /// Its id.
        id: SessionId,
        /// Its name, unique in its folder without regard to case.
        name: String,
        /// Its folder, canonical and absolute.
        folder: String,
        /// Whether that folder is gone.
        #[serde(default)] folder_missing: bool,
        /// When it was made.
        created_at: u64,
        /// When its latest event came.
        updated_at: u64,
        /// Seq of its last event.
        last_seq: u64,
        /// Runs so far.
        turns: u32,
        /// The model last set or used.
        #[serde(default, skip_serializing_if = "Option::is_none")] model: Option<String>,
        /// The mode last set or used.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_known")] mode: Option<Mode>,
        /// The first line the user wrote.
        first_line: String,
        /// What it is about now.
        state: SessionActivity,
        /// How its last run ended; absent before the first, and while one goes on.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_known")]
        last_result: Option<RunResult>,
        /// Messages that wait.
        #[serde(default)] pending: u32,
        /// Who holds it, where another process does.
        #[serde(default, skip_serializing_if = "Option::is_none")] held_by: Option<String>,
    }
}
/// What a session is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionActivity {
    /// Nothing goes on.
    #[default]
    Idle,
    /// A run goes on.
    Running,
    /// A run waits for a person: an approval, a question.
    WaitingForYou,
    /// Another process runs it; it can be watched.
    Elsewhere,
    /// Something this version does not know, of a newer server.
    #[serde(other)]
    Unknown,
}
api! {
    /// `GET /v1/sessions`.
    Sessions {
        /// The newest first.
        sessions: Vec<SessionRow>,
    }
}
api! {
    /// `POST /v1/sessions`.
    CreateSession {
        /// An existing folder, absolute.
        folder: String,
        /// Its name; the first message gives one where this does not.
        #[serde(default, skip_serializing_if = "Option::is_none")] name: Option<String>,
        /// What differs from the configuration.
        #[serde(default)] settings: Settings,
    }
}
api! {
    /// `GET /v1/sessions/{id}`: everything but the conversation.
    SessionView {
        /// What lists show.
        row: SessionRow,
        /// The session's own settings.
        #[serde(deserialize_with = "known_settings")] settings: Settings,
        /// What the next run will use: settings, configuration and defaults together.
        #[serde(deserialize_with = "known_settings")] effective: Settings,
        /// The run that goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")] run: Option<OpenRun>,
        /// Names of settings that were changed since that run began: they take effect with the next.
        #[serde(default)] next_run: Vec<String>,
        /// What waits, in the order of delivery.
        pending: Vec<Pending>,
        /// Whether the queue stands still.
        paused: bool,
        /// The todo list.
        todos: Vec<Todo>,
        /// Paths of open proposals.
        proposals: Vec<String>,
        /// What the next request would carry, in estimated tokens, and the room there is.
        window: WindowFill,
    }
}
api! {
    /// How full the window is.
    #[derive(Eq)]
    WindowFill {
        /// Tokens of the last request, as its provider counted them, or estimated.
        used: u64,
        /// Tokens of the window less the output reserve.
        usable: u64,
        /// Tokens of the window.
        window: u64,
    }
}
api! {
    /// `GET /v1/sessions/{id}/context`: the window of the next request, and what a compaction would do now. `POST` takes a
    /// [`ChangeSettings`] and tells the same as it would be with it; nothing is set.
    SessionContext {
        /// What the next request would carry, what was left out of it, and why.
        report: WindowReport,
        /// What `POST /v1/sessions/{id}/compact` would do.
        next: WindowPreview,
    }
}
api! {
    /// What `POST /v1/sessions/{id}/compact` did. 409 `busy` while a run goes on.
    #[derive(Eq)]
    SessionCompacted {
        /// Whether anything was gained; otherwise the session is as it was.
        compacted: bool,
        /// Estimated tokens of a request before.
        #[serde(default, skip_serializing_if = "Option::is_none")] tokens_before: Option<u64>,
        /// And after.
        #[serde(default, skip_serializing_if = "Option::is_none")] tokens_after: Option<u64>,
    }
}
api! {
    /// `POST /v1/sessions/{id}/pins`. Everything that is pinned has to fit the share of the window that pins may have.
    AddPin {
        /// What is pinned.
        target: PinTarget,
    }
}
api! {
    /// A pin that was placed; it is named in the report of `GET /v1/sessions/{id}/context`.
    #[derive(Eq)]
    PinPlaced {
        /// Its name, for taking it away.
        pin: u64,
    }
}
impl From<Option<CompactionDone>> for SessionCompacted {
    fn from(done: Option<CompactionDone>) -> Self {
        Self {
            compacted: done.is_some(),
            tokens_before: done.as_ref().map(|done| done.tokens_before),
            tokens_after: done.as_ref().map(|done| done.tokens_after),
        }
    }
}
api! {
    /// `PATCH /v1/sessions/{id}`.
    RenameSession {
        /// The new name.
        name: String,
    }
}
api! {
    /// `PATCH /v1/sessions/{id}/settings`: only what is given changes; a run that goes on keeps its own.
    #[derive(Default)]
    ChangeSettings {
        /// What changes.
        #[serde(default)] settings: Settings,
        /// Names of settings that go back to what the configuration says.
        #[serde(default)] unset: Vec<String>,
    }
}
api! {
    /// `POST /v1/sessions/{id}/branch`.
    BranchSession {
        /// The last event that is copied; everything where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")] up_to_seq: Option<u64>,
        /// The new session's name.
        #[serde(default, skip_serializing_if = "Option::is_none")] name: Option<String>,
    }
}
api! {
    /// `POST /v1/sessions/{id}/cut`.
    CutSession {
        /// The user's message that goes, with everything behind it.
        from_seq: u64,
    }
}
api! {
    /// What a cut removed.
    #[derive(Eq)]
    SessionCutDone {
        /// The seq of the event that says so.
        seq: u64,
        /// Events that went.
        removed: u64,
        /// Whether making the database smaller is worth its time now.
        #[serde(default)] suggest_vacuum: bool,
    }
}
api! {
    /// `POST /v1/sessions/{id}/move`.
    MoveSession {
        /// An existing folder, absolute.
        folder: String,
    }
}
api! {
    /// `GET /v1/sessions/{id}/log?before=…&after=…&limit=…`: a page of the log, without `before` and
    /// `after` its last events, with both those between, from `before` back.
    LogPage {
        /// In order of seq.
        events: Vec<crate::Envelope>,
        /// Whether there are older ones.
        older: bool,
        /// Whether there are newer ones.
        newer: bool,
    }
}
api! {
    /// One hit of a search.
    SearchResult {
        /// The session.
        session: SessionRow,
        /// The event that holds it.
        seq: u64,
        /// When it came.
        at: u64,
        /// `user`, `assistant`, `tool` and the like.
        kind: String,
        /// A piece of the text around it.
        text: String,
        /// Byte ranges of `text` that match.
        #[serde(default)] highlights: Vec<(u32, u32)>,
    }
}
api! {
    /// `GET /v1/search?q=…&folder=…&limit=…`.
    SearchResults {
        /// The newest first.
        results: Vec<SearchResult>,
        /// Where a search took too long: only what was said at this time (Unix milliseconds) or later was looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")] since: Option<u64>,
        /// Whether something was said that cannot be found yet. It can be a moment later.
        #[serde(default)] behind: bool,
    }
}
api! {
    /// A line of an imported or exported session is JSON of its own; see `hames sessions export`.
    Imported {
        /// The session it became.
        session: SessionRow,
        /// Events that were read.
        events: u64,
    }
}
api! {
    /// A model one can choose.
    ModelRow {
        /// `provider/id`.
        model: ModelRef,
        /// Tokens of its window, and where that is known from.
        #[serde(default, skip_serializing_if = "Option::is_none")] context_window: Option<u64>,
        /// Tokens one answer may have at most.
        #[serde(default, skip_serializing_if = "Option::is_none")] max_output_tokens: Option<u64>,
        /// Prices, capabilities and their sources, as `hames models --json` prints them.
        facts: Value,
    }
}

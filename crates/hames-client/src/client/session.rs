//! Sessions: list, lifecycle, log.

use hames_protocol::SessionId;
use hames_protocol::api::{
    BranchSession, ChangeSettings, CreateSession, CutSession, Imported, LogPage, MoveSession, RenameSession,
    SearchResults, SessionCutDone, SessionRow, SessionView, Sessions,
};

use super::Client;
use crate::{BodyStream, ClientError, Upload};

/// Which events a page of the log shows: without a bound its last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRange {
    /// Only events before this seq, the nearest ones.
    pub before: Option<u64>,
    /// Only events after this seq, the nearest ones.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: Option<u32>,
}

impl Client {
    /// The sessions of a folder, or all, the newest first.
    pub async fn sessions(&self, folder: Option<&str>) -> Result<Sessions, ClientError> {
        self.get(&["sessions"]).maybe("folder", folder).receive().await
    }

    /// Makes a session.
    pub async fn create_session(&self, create: &CreateSession) -> Result<SessionView, ClientError> {
        self.post(&["sessions"]).json(create).receive().await
    }

    /// Everything about a session but its conversation.
    pub async fn session(&self, id: &SessionId) -> Result<SessionView, ClientError> {
        self.get(&["sessions", id.as_str()]).receive().await
    }

    /// Gives a session another name.
    pub async fn rename_session(&self, id: &SessionId, rename: &RenameSession) -> Result<SessionRow, ClientError> {
        self.patch(&["sessions", id.as_str()]).json(rename).receive().await
    }

    /// Changes settings; a run that goes on keeps its own.
    pub async fn change_settings(&self, id: &SessionId, change: &ChangeSettings) -> Result<SessionView, ClientError> {
        self.patch(&["sessions", id.as_str(), "settings"]).json(change).receive().await
    }

    /// Deletes a session, for good.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), ClientError> {
        self.delete(&["sessions", id.as_str()]).patient().done().await
    }

    /// Makes a copy of a session up to an event.
    pub async fn branch_session(&self, id: &SessionId, branch: &BranchSession) -> Result<SessionRow, ClientError> {
        self.post(&["sessions", id.as_str(), "branch"]).json(branch).patient().receive().await
    }

    /// Removes a message and everything behind it.
    pub async fn cut_session(&self, id: &SessionId, cut: &CutSession) -> Result<SessionCutDone, ClientError> {
        self.post(&["sessions", id.as_str(), "cut"]).json(cut).patient().receive().await
    }

    /// Moves a session to another folder.
    pub async fn move_session(&self, id: &SessionId, to: &MoveSession) -> Result<SessionRow, ClientError> {
        self.post(&["sessions", id.as_str(), "move"]).json(to).receive().await
    }

    /// A session as lines of JSON, as they come.
    pub async fn export_session(&self, id: &SessionId) -> Result<BodyStream, ClientError> {
        self.get(&["sessions", id.as_str(), "export"]).patient().stream().await
    }

    /// Makes a session of this folder from an export.
    pub async fn import_session(&self, folder: &str, lines: Upload) -> Result<Imported, ClientError> {
        let ask = self.post(&["sessions", "import"]).query("folder", folder);
        ask.upload(lines, "application/x-ndjson").patient().receive().await
    }

    /// A page of the log.
    pub async fn log(&self, id: &SessionId, range: LogRange) -> Result<LogPage, ClientError> {
        let ask = self.get(&["sessions", id.as_str(), "log"]);
        ask.maybe("before", range.before).maybe("after", range.after).maybe("limit", range.limit).receive().await
    }

    /// Searches what was said, the newest first; in one folder where one is given.
    pub async fn search(
        &self,
        words: &str,
        folder: Option<&str>,
        limit: Option<u32>,
    ) -> Result<SearchResults, ClientError> {
        self.get(&["search"]).query("q", words).maybe("folder", folder).maybe("limit", limit).receive().await
    }
}

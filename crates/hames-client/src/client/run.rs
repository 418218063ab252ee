//! Messages, what waits, runs and what they leave.

use hames_protocol::api::{
    Abort, Aborted, AddPin, AnswerApproval, AnswerQuestion, Attached, ChangePathsGiven, ChangeSettings, Changes,
    ChangesSettled, DecideProposals, EditPending, Files, Ledger, Ledgers, PausePending, PendingList, PinPlaced,
    SendMessage, Sent, SessionCompacted, SessionContext, SessionView, Waiting,
};
use hames_protocol::{CallId, Pending, PendingId, RunId, SessionId};

use super::Client;
use crate::{ClientError, Upload};

impl Client {
    /// Sends a message. It is safe when this returns; sent again under the same idempotency id, it is taken once.
    pub async fn send(&self, id: &SessionId, message: &SendMessage) -> Result<Sent, ClientError> {
        self.post(&["sessions", id.as_str(), "messages"]).json(message).receive().await
    }

    /// What waits.
    pub async fn pending(&self, id: &SessionId) -> Result<PendingList, ClientError> {
        self.get(&["sessions", id.as_str(), "pending"]).receive().await
    }

    /// Changes a waiting message: its words, its delivery, its place.
    pub async fn edit_pending(
        &self,
        id: &SessionId,
        pending: &PendingId,
        edit: &EditPending,
    ) -> Result<PendingList, ClientError> {
        self.patch(&["sessions", id.as_str(), "pending", pending.as_str()]).json(edit).receive().await
    }

    /// Withdraws a waiting message and gives it back.
    pub async fn cancel_pending(&self, id: &SessionId, pending: &PendingId) -> Result<Pending, ClientError> {
        self.delete(&["sessions", id.as_str(), "pending", pending.as_str()]).receive().await
    }

    /// Lets the queue stand still, or go on.
    pub async fn pause_pending(&self, id: &SessionId, pause: &PausePending) -> Result<PendingList, ClientError> {
        self.post(&["sessions", id.as_str(), "pending", "pause"]).json(pause).receive().await
    }

    /// Ends the run that goes on; returns when it has ended.
    pub async fn abort(&self, id: &SessionId, abort: &Abort) -> Result<Aborted, ClientError> {
        self.post(&["sessions", id.as_str(), "abort"]).json(abort).patient().receive().await
    }

    /// What waits for a person.
    pub async fn waiting(&self, id: &SessionId) -> Result<Waiting, ClientError> {
        self.get(&["sessions", id.as_str(), "approvals"]).receive().await
    }

    /// Decides about a call.
    pub async fn answer_approval(
        &self,
        id: &SessionId,
        call: &CallId,
        answer: &AnswerApproval,
    ) -> Result<(), ClientError> {
        self.post(&["sessions", id.as_str(), "approvals", call.as_str()]).json(answer).done().await
    }

    /// Answers a question of the agent.
    pub async fn answer_question(
        &self,
        id: &SessionId,
        call: &CallId,
        answer: &AnswerQuestion,
    ) -> Result<(), ClientError> {
        self.post(&["sessions", id.as_str(), "questions", call.as_str()]).json(answer).done().await
    }

    /// Decides what becomes of the proposals that a run left.
    pub async fn decide_proposals(&self, id: &SessionId, decide: &DecideProposals) -> Result<SessionView, ClientError> {
        self.post(&["sessions", id.as_str(), "proposals"]).json(decide).patient().receive().await
    }

    /// The open proposals.
    pub async fn changes(&self, id: &SessionId) -> Result<Changes, ClientError> {
        self.get(&["sessions", id.as_str(), "changes"]).receive().await
    }

    /// Makes proposals real.
    pub async fn apply_changes(&self, id: &SessionId, paths: &ChangePathsGiven) -> Result<ChangesSettled, ClientError> {
        self.post(&["sessions", id.as_str(), "changes", "apply"]).json(paths).patient().receive().await
    }

    /// Drops proposals.
    pub async fn discard_changes(
        &self,
        id: &SessionId,
        paths: &ChangePathsGiven,
    ) -> Result<ChangesSettled, ClientError> {
        self.post(&["sessions", id.as_str(), "changes", "discard"]).json(paths).receive().await
    }

    /// The window of the next request, and what a compaction would do now.
    pub async fn context(&self, id: &SessionId) -> Result<SessionContext, ClientError> {
        self.get(&["sessions", id.as_str(), "context"]).receive().await
    }

    /// The same as it would be with settings that are not set.
    pub async fn preview_context(&self, id: &SessionId, draft: &ChangeSettings) -> Result<SessionContext, ClientError> {
        self.post(&["sessions", id.as_str(), "context"]).json(draft).receive().await
    }

    /// Makes the window of a session smaller.
    pub async fn compact(&self, id: &SessionId) -> Result<SessionCompacted, ClientError> {
        self.post(&["sessions", id.as_str(), "compact"]).patient().receive().await
    }

    /// Keeps something in the window whatever leaves it.
    pub async fn add_pin(&self, id: &SessionId, pin: &AddPin) -> Result<PinPlaced, ClientError> {
        self.post(&["sessions", id.as_str(), "pins"]).json(pin).receive().await
    }

    /// Takes a pin away.
    pub async fn remove_pin(&self, id: &SessionId, pin: u64) -> Result<(), ClientError> {
        self.delete(&["sessions", id.as_str(), "pins", &pin.to_string()]).done().await
    }

    /// Paths for the completion of a mention.
    pub async fn files(&self, id: &SessionId, typed: &str, limit: Option<u32>) -> Result<Files, ClientError> {
        self.get(&["sessions", id.as_str(), "files"]).query("q", typed).maybe("limit", limit).receive().await
    }

    /// Makes a file into parts of a message.
    pub async fn attach(
        &self,
        id: &SessionId,
        name: &str,
        media_type: Option<&str>,
        content: Upload,
    ) -> Result<Attached, ClientError> {
        let ask = self.post(&["sessions", id.as_str(), "attachments"]).query("name", name);
        ask.maybe("media_type", media_type).upload(content, "application/octet-stream").receive().await
    }

    /// Up to `limit` bytes from `offset` of what a session kept, by its name (`out-17`) or its hash.
    pub async fn blob(&self, id: &SessionId, blob: &str, offset: u64, limit: u64) -> Result<Vec<u8>, ClientError> {
        let ask = self.get(&["sessions", id.as_str(), "blobs", blob]);
        ask.query("offset", offset).query("limit", limit).bytes().await
    }

    /// What the runs of a session did, without their calls; the newest first.
    pub async fn ledgers(&self, id: &SessionId) -> Result<Ledgers, ClientError> {
        self.get(&["sessions", id.as_str(), "runs"]).receive().await
    }

    /// Everything a run did.
    pub async fn ledger(&self, id: &SessionId, run: &RunId) -> Result<Ledger, ClientError> {
        self.get(&["sessions", id.as_str(), "runs", run.as_str()]).receive().await
    }
}

//! Messages, what waits, and answers to questions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api;
use crate::{ApprovalAsked, Decision, Delivery, Part, Pending, PendingId, QuestionAsked, RunId};

api! {
    /// `POST /v1/sessions/{id}/messages`.
    SendMessage {
        /// What it says. Images are blobs that were uploaded before.
        parts: Vec<Part>,
        /// How it reaches a run that goes on; without one every delivery starts a run.
        #[serde(default)] delivery: Delivery,
        /// The sender's own id: the same message sent again is taken once and answered alike.
        #[serde(default, skip_serializing_if = "Option::is_none")] idempotency_id: Option<String>,
        /// On what terms the run goes that it may start.
        #[serde(default, skip_serializing_if = "Option::is_none")] terms: Option<RunTerms>,
    }
}
api! {
    /// What a client says about the run its message starts. Kept in memory only: after a restart of the server a message
    /// that waited starts a run on the usual terms.
    #[derive(Default, Eq)]
    RunTerms {
        /// What becomes of questions; without it they wait for whoever answers first.
        #[serde(default, skip_serializing_if = "Option::is_none")] answers: Option<RunAnswers>,
        /// The environment of the run's commands, in place of the server's own. Variables that hold keys are left out.
        #[serde(default, skip_serializing_if = "Option::is_none")] environment: Option<BTreeMap<String, String>>,
    }
}
/// What becomes of a run's questions where no person is to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunAnswers {
    /// Every question is answered with yes, for this once.
    Allow,
    /// There is nobody to ask: what would have to be asked about is refused.
    Nobody,
}
api! {
    /// What became of a message: it is safe when this is answered.
    Sent {
        /// Under which it waits. Once it is delivered its `message.user` event names it.
        pending_id: PendingId,
        /// The seq of the event that took it in; events after it tell what becomes of it.
        seq: u64,
        /// Whether it started a run at once.
        starts_run: bool,
        /// Whether it was sent before under the same idempotency id.
        #[serde(default)] repeated: bool,
    }
}
api! {
    /// `GET /v1/sessions/{id}/pending`.
    PendingList {
        /// What waits, in the order of delivery: interrupts and steers first, then the queue.
        pending: Vec<Pending>,
        /// Whether the queue stands still until it is resumed.
        paused: bool,
    }
}
api! {
    /// `PATCH /v1/sessions/{id}/pending/{pending}`: only what is given changes. 404 once it was delivered.
    EditPending {
        /// What it says from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")] parts: Option<Vec<Part>>,
        /// How it is delivered from now on. A steer made a queued message is withdrawn from the run.
        #[serde(default, skip_serializing_if = "Option::is_none")] delivery: Option<Delivery>,
        /// The message it stands before from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")] before: Option<PendingId>,
        /// Puts it at the end.
        #[serde(default)] last: bool,
    }
}
api! {
    /// `POST /v1/sessions/{id}/pending/pause`.
    PausePending {
        /// Whether the queue stands still.
        paused: bool,
    }
}
/// How much an abort ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbortScope {
    /// The run and its foreground children.
    #[default]
    Foreground,
    /// Background work of the session too.
    All,
}
api! {
    /// `POST /v1/sessions/{id}/abort`.
    #[derive(Default)]
    Abort {
        /// How much of it ends.
        #[serde(default)] scope: AbortScope,
        /// What `run.done` says a command exits with, 1 to 255: 128 and the number of the signal that asked for the end.
        /// 130 where nothing is said. Of several aborts the first holds.
        #[serde(default, skip_serializing_if = "Option::is_none")] exit_code: Option<i32>,
    }
}
api! {
    /// What an abort did. Answered when the run has ended.
    Aborted {
        /// The run that ended, where one went on.
        #[serde(default, skip_serializing_if = "Option::is_none")] run: Option<RunId>,
        /// Steers and interrupts that never reached the model: they go back to whoever typed them.
        returned: Vec<Pending>,
        /// How many queued messages stay, now paused.
        queued: u32,
    }
}
api! {
    /// `GET /v1/sessions/{id}/approvals`: what waits for a person.
    Waiting {
        /// Calls somebody has to decide about.
        approvals: Vec<ApprovalAsked>,
        /// Questions of the agent.
        questions: Vec<QuestionAsked>,
        /// A run ended in Analyze with proposals nobody has decided about.
        #[serde(default, skip_serializing_if = "Option::is_none")] proposals: Option<ProposalsAsked>,
    }
}
api! {
    /// What a run that ended in Analyze leaves to decide: apply, go on in Build, keep or discard. Asked once.
    ProposalsAsked {
        /// The run.
        run: RunId,
        /// The proposed paths.
        paths: Vec<String>,
    }
}
api! {
    /// `POST /v1/sessions/{id}/approvals/{call}`. The first answer holds; later ones get 409 `answered`.
    AnswerApproval {
        /// The digest of what was shown: an answer to something else gets 409 `stale`.
        digest: String,
        /// The decision.
        decision: Decision,
        /// Who decides, for the record: a face's name (`terminal`, `web`).
        #[serde(default, skip_serializing_if = "Option::is_none")] by: Option<String>,
    }
}
api! {
    /// `POST /v1/sessions/{id}/questions/{call}`. The first answer holds; later ones get 409 `answered`.
    AnswerQuestion {
        /// The digest of the question: an answer to another one, or to none, gets 409 `stale`.
        #[serde(default, skip_serializing_if = "Option::is_none")] digest: Option<String>,
        /// The answer.
        answer: String,
        /// Who answers.
        #[serde(default, skip_serializing_if = "Option::is_none")] by: Option<String>,
    }
}
/// What becomes of the proposals a run left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProposalsDecision {
    /// They are made now.
    Apply,
    /// A run in Build makes them; they stay proposed until it does.
    Build,
    /// They stay proposed.
    Keep,
    /// They are dropped.
    Discard,
}
api! {
    /// `POST /v1/sessions/{id}/proposals`: the answer to [`ProposalsAsked`].
    DecideProposals {
        /// The run that asked; another one gets 409 `stale`.
        run: RunId,
        /// The decision.
        decision: ProposalsDecision,
    }
}
api! {
    /// `POST /v1/sessions/{id}/attachments?name=…&media_type=…` with the bytes as body.
    Attached {
        /// Parts to send with a message: an image, or a line that says what the file is and its text.
        parts: Vec<Part>,
    }
}

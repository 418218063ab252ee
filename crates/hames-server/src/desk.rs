//! Calls that wait for a person and questions of tools, and their answers: the first one holds.
//!
//! What is asked is on the desk from the moment its event passes, so that an answer is never too early; it leaves with the
//! event that answers it or with the end of its call. Nobody has to be attached meanwhile.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_protocol::api::{ApiError, ApiErrorCode};
use hames_protocol::{ApprovalAsked, Approver, CallId, Decision, Envelope, Event, QuestionAsked};
use tokio::sync::{Notify, oneshot};

/// Answers that are remembered, to tell who was first.
const REMEMBERED: usize = 256;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Whether a call may run.
    Approval,
    /// Something a tool wants to know.
    Question,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// To whether a call may run.
    Decision(Decision),
    /// To a question.
    Text(String),
}

impl Given {
    fn kind(&self) -> Kind {
        match self {
            Given::Decision(_) => Kind::Approval,
            Given::Text(_) => Kind::Question,
        }
    }
}

struct Open {
    kind: Kind,
    call: CallId,
    digest: String,
    answer: Option<(Given, String)>,
    /// Told when the answer is in the log.
    recorded: Vec<oneshot::Sender<bool>>,
}

impl Open {
    fn is(&self, kind: Kind, call: &CallId) -> bool {
        self.kind == kind && &self.call == call
    }
}

#[derive(Default)]
struct State {
    open: Vec<Open>,
    answered: VecDeque<(Kind, CallId, String)>,
}

/// The desk of a session.
#[derive(Default)]
pub(crate) struct Desk {
    state: Mutex<State>,
    answered: Notify,
}

impl Desk {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what passes.
    pub(crate) fn take_in(&self, envelope: &Envelope) {
        match &envelope.event {
            Event::ApprovalAsked(asked) => self.put(Kind::Approval, &asked.call_id, &asked.digest),
            Event::ApprovalAnswered(answer) => self.close(Kind::Approval, &answer.call_id, Some(&answer.by)),
            Event::QuestionAsked(asked) => self.put(Kind::Question, &asked.call_id, &asked.digest),
            Event::QuestionAnswered(answer) => self.close(Kind::Question, &answer.call_id, Some(&answer.by)),
            Event::ToolDone(done) => self.end(&done.call_id),
            Event::ToolError(error) => self.end(&error.call_id),
            Event::RunDone(_) if envelope.agent.is_empty() => self.locked().open.clear(),
            _ => {}
        }
    }

    fn put(&self, kind: Kind, call: &CallId, digest: &str) {
        self.close(kind, call, None);
        let open = Open { kind, call: call.clone(), digest: digest.to_owned(), answer: None, recorded: Vec::new() };
        self.locked().open.push(open);
    }

    /// The call is over; nothing about it is asked any more.
    fn end(&self, call: &CallId) {
        self.close(Kind::Approval, call, None);
        self.close(Kind::Question, call, None);
    }

    fn close(&self, kind: Kind, call: &CallId, by: Option<&str>) {
        let mut state = self.locked();
        let Some(at) = state.open.iter().position(|open| open.is(kind, call)) else { return };
        let open = state.open.remove(at);
        if let Some(by) = by {
            state.answered.push_back((kind, call.clone(), by.to_owned()));
            let over = state.answered.len().saturating_sub(REMEMBERED);
            state.answered.drain(..over);
        }
        for told in open.recorded {
            // Whoever asked may be gone.
            let _ = told.send(by.is_some());
        }
    }

    /// Takes an answer. What is given back says whether it came to be recorded.
    pub(crate) fn answer(
        &self,
        call: &CallId,
        digest: &str,
        given: Given,
        by: &str,
    ) -> Result<oneshot::Receiver<bool>, ApiError> {
        let kind = given.kind();
        let mut state = self.locked();
        let State { open, answered } = &mut *state;
        let Some(open) = open.iter_mut().find(|open| open.is(kind, call)) else {
            return Err(match answered.iter().rev().find(|(of, answered, _)| *of == kind && answered == call) {
                Some((_, _, who)) => was_answered(who),
                None => not_asked(kind, call),
            });
        };
        if open.digest != digest {
            return Err(ApiError::new(ApiErrorCode::Stale, stale(kind)));
        }
        if let Some((_, who)) = &open.answer {
            return Err(was_answered(who));
        }
        open.answer = Some((given, by.to_owned()));
        let (tell, told) = oneshot::channel();
        open.recorded.push(tell);
        drop(state);
        self.answered.notify_waiters();
        Ok(told)
    }

    fn answer_to(&self, kind: Kind, call: &CallId, digest: &str) -> Option<(Given, String)> {
        let state = self.locked();
        let open = state.open.iter().find(|open| open.is(kind, call) && open.digest == digest);
        open.and_then(|open| open.answer.clone())
    }

    async fn wait_for(&self, kind: Kind, call: &CallId, digest: &str) -> (Given, String) {
        loop {
            let told = self.answered.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if let Some(answer) = self.answer_to(kind, call, digest) {
                return answer;
            }
            told.await;
        }
    }
}

fn not_asked(kind: Kind, call: &CallId) -> ApiError {
    let what = match kind {
        Kind::Approval => format!("No call {call} waits for an answer."),
        Kind::Question => format!("No question of call {call} waits for an answer."),
    };
    ApiError::new(ApiErrorCode::NotFound, what)
}

fn stale(kind: Kind) -> &'static str {
    match kind {
        Kind::Approval => {
            "What would run is not what was shown any more. Look at the question again before you answer."
        }
        Kind::Question => "That is not the question any more. Look at it again before you answer.",
    }
}

fn was_answered(who: &str) -> ApiError {
    ApiError::new(ApiErrorCode::Answered, format!("This was answered before, by {who}.")).by(who)
}

#[async_trait]
impl Approver for Desk {
    async fn decide(&self, asked: &ApprovalAsked) -> Option<(Decision, String)> {
        match self.wait_for(Kind::Approval, &asked.call_id, &asked.digest).await {
            (Given::Decision(decision), by) => Some((decision, by)),
            (Given::Text(_), _) => None,
        }
    }

    async fn answer(&self, asked: &QuestionAsked) -> Option<(String, String)> {
        match self.wait_for(Kind::Question, &asked.call_id, &asked.digest).await {
            (Given::Text(text), by) => Some((text, by)),
            (Given::Decision(_), _) => None,
        }
    }
}

//! Calls that wait for a person, and their answers: the first one holds.
//!
//! A question is on the desk from the moment its event passes, so that an answer is never too early; it leaves with the
//! event that answers it or with the end of its call. Nobody has to be attached meanwhile.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_protocol::api::{ApiError, ApiErrorCode};
use hames_protocol::{ApprovalAsked, Approver, CallId, Decision, Envelope, Event};
use tokio::sync::{Notify, oneshot};

/// Answers that are remembered, to tell who was first.
const REMEMBERED: usize = 256;

struct Open {
    asked: ApprovalAsked,
    answer: Option<(Decision, String)>,
    /// Told when the answer is in the log.
    recorded: Vec<oneshot::Sender<bool>>,
}

#[derive(Default)]
struct State {
    open: Vec<Open>,
    answered: VecDeque<(CallId, String)>,
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
            Event::ApprovalAsked(asked) => {
                self.close(&asked.call_id, None);
                self.locked().open.push(Open { asked: asked.clone(), answer: None, recorded: Vec::new() });
            }
            Event::ApprovalAnswered(answer) => self.close(&answer.call_id, Some(&answer.by)),
            Event::ToolDone(done) => self.close(&done.call_id, None),
            Event::ToolError(error) => self.close(&error.call_id, None),
            Event::RunDone(_) if envelope.agent.is_empty() => self.locked().open.clear(),
            _ => {}
        }
    }

    fn close(&self, call: &CallId, by: Option<&str>) {
        let mut state = self.locked();
        let Some(at) = state.open.iter().position(|open| &open.asked.call_id == call) else { return };
        let open = state.open.remove(at);
        if let Some(by) = by {
            state.answered.push_back((call.clone(), by.to_owned()));
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
        decision: Decision,
        by: &str,
    ) -> Result<oneshot::Receiver<bool>, ApiError> {
        let mut state = self.locked();
        let State { open, answered } = &mut *state;
        let Some(open) = open.iter_mut().find(|open| &open.asked.call_id == call) else {
            return Err(match answered.iter().rev().find(|(answered, _)| answered == call) {
                Some((_, who)) => was_answered(who),
                None => ApiError::new(ApiErrorCode::NotFound, format!("No call {call} waits for an answer.")),
            });
        };
        if let Some((_, who)) = &open.answer {
            return Err(was_answered(who));
        }
        if open.asked.digest != digest {
            return Err(ApiError::new(
                ApiErrorCode::Stale,
                "What would run is not what was shown any more. Look at the question again before you answer.",
            ));
        }
        open.answer = Some((decision, by.to_owned()));
        let (tell, told) = oneshot::channel();
        open.recorded.push(tell);
        drop(state);
        self.answered.notify_waiters();
        Ok(told)
    }

    fn answer_to(&self, asked: &ApprovalAsked) -> Option<(Decision, String)> {
        let state = self.locked();
        let is_it = |open: &&Open| open.asked.call_id == asked.call_id && open.asked.digest == asked.digest;
        state.open.iter().find(is_it).and_then(|open| open.answer.clone())
    }
}

fn was_answered(who: &str) -> ApiError {
    ApiError::new(ApiErrorCode::Answered, format!("This was answered before, by {who}.")).by(who)
}

#[async_trait]
impl Approver for Desk {
    async fn decide(&self, asked: &ApprovalAsked) -> Option<(Decision, String)> {
        loop {
            let told = self.answered.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if let Some(answer) = self.answer_to(asked) {
                return Some(answer);
            }
            told.await;
        }
    }
}

//! The plan of the next compaction under settings that are only tried.
//!
//! One question is on its way at a time. What is tried meanwhile is asked for when the answer is there, and an answer to what
//! is not tried any more is not shown.

use hames_protocol::SessionId;
use hames_protocol::api::{ApiError, SessionContext};

use super::dials::Change;
use crate::{Answer, Cx, Request, Ticket};

/// What is asked, and what was answered last.
#[derive(Debug, Default)]
pub(super) struct Plan {
    asked: Option<(Ticket, Change)>,
    told: Option<(Change, Result<Box<SessionContext>, ApiError>)>,
    /// It has to be asked again, whatever was answered.
    is_stale: bool,
}

impl Plan {
    /// Asks where what is known is not of this change.
    pub(super) fn want(&mut self, session: &SessionId, change: &Change, cx: &mut Cx<'_>) {
        let is_known = self.told.as_ref().is_some_and(|(of, _)| of == change) && !self.is_stale;
        if self.asked.is_some() || is_known {
            return;
        }
        self.is_stale = false;
        let (settings, unset) = (Box::new(change.settings.clone()), change.unset.clone());
        let ticket = cx.ask(Request::Preview(session.clone(), settings, unset));
        self.asked = Some((ticket, change.clone()));
    }

    /// What the session is has changed.
    pub(super) fn spoil(&mut self) {
        self.is_stale = true;
    }

    /// Takes an answer, where it is one to this.
    pub(super) fn answer(&mut self, ticket: Ticket, answer: &Result<Answer, ApiError>) -> bool {
        let Some((_, change)) = self.asked.take_if(|(asked, _)| *asked == ticket) else { return false };
        match answer {
            Ok(Answer::Context(told)) => self.told = Some((change, Ok(told.clone()))),
            Ok(_) => {}
            Err(error) => self.told = Some((change, Err(error.clone()))),
        }
        true
    }

    /// What is known of this change.
    pub(super) fn of(&self, change: &Change) -> Option<&Result<Box<SessionContext>, ApiError>> {
        self.told.as_ref().filter(|(of, _)| of == change).map(|(_, told)| told)
    }
}

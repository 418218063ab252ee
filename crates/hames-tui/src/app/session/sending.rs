//! Messages on their way: to the session that is shown, or to one that is made for them. Nothing that was typed is lost.

use hames_protocol::api::{CreateSession, SendMessage};
use hames_protocol::{Delivery, Part, Pending, SessionId};

use super::For;
use crate::app::App;
use crate::prompt::Kept;
use crate::{Effect, Link, Request};

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) parts: Vec<Part>,
    pub(super) delivery: Delivery,
    pub(super) id: String,
    /// What was written, should it come back.
    pub(super) draft: Option<Box<Kept>>,
}

impl App {
    /// Sends a message; without a session one is made for it.
    pub(in crate::app) fn send(
        &mut self,
        parts: Vec<Part>,
        delivery: Delivery,
        draft: Option<Box<Kept>>,
        effects: &mut Vec<Effect>,
    ) {
        self.upkeep.messages += 1;
        let id = format!("{}-{}", self.upkeep.start.seed, self.upkeep.messages);
        let message = Message { parts, delivery, id, draft };
        self.base.sending(&message.id, &message.parts);
        match self.face.session.clone() {
            Some(session) => self.send_to(session, message, effects),
            None if self.upkeep.is_creating || !self.upkeep.is_settled => self.upkeep.unsent.push_back(message),
            None => self.create(Some(message), effects),
        }
    }

    /// It is known now which session is meant: what was written before goes there.
    pub(super) fn send_what_waits(&mut self, effects: &mut Vec<Effect>) {
        self.upkeep.is_settled = true;
        match self.face.session.clone() {
            Some(session) => {
                for message in std::mem::take(&mut self.upkeep.unsent) {
                    self.base.sending(&message.id, &message.parts);
                    self.send_to(session.clone(), message, effects);
                }
            }
            None => {
                if let Some(message) = self.upkeep.unsent.pop_front() {
                    self.create(Some(message), effects);
                }
            }
        }
    }

    pub(super) fn create(&mut self, message: Option<Message>, effects: &mut Vec<Effect>) {
        self.upkeep.is_creating = true;
        let create = CreateSession {
            folder: self.face.folder.clone(),
            name: self.upkeep.name.clone(),
            settings: self.face.chosen.clone(),
        };
        self.ask(For::Create(message), Request::Create(create), effects);
    }

    /// Files that are to go along need a session that keeps them.
    pub(in crate::app) fn want_session(&mut self, effects: &mut Vec<Effect>) {
        let is_possible = matches!(self.face.link, Link::Up { .. }) && self.upkeep.is_settled;
        if is_possible && self.face.session.is_none() && !self.upkeep.is_creating && self.base.prompt().wants_session()
        {
            self.create(None, effects);
        }
    }

    pub(super) fn send_to(&mut self, session: SessionId, message: Message, effects: &mut Vec<Effect>) {
        let send = SendMessage {
            parts: message.parts.clone(),
            delivery: message.delivery,
            idempotency_id: Some(message.id.clone()),
            terms: self.upkeep.start.terms.clone(),
        };
        self.ask(For::Send(session.clone(), message), Request::Send(session, send), effects);
    }

    /// Messages that surely did not reach the server yet, as they were written.
    pub(in crate::app) fn on_way(&self) -> impl Iterator<Item = (Option<&SessionId>, &Kept)> {
        let is_linked = self.is_linked();
        let asked = self.upkeep.asked.values().filter_map(move |what| match what {
            For::Create(Some(message)) => Some((None, message)),
            // It may be there, and only the answer is missing.
            For::Send(session, message) if !is_linked => Some((Some(session), message)),
            _ => None,
        });
        let unsent = self.upkeep.unsent.iter().map(|message| (None, message));
        asked.chain(unsent).filter_map(|(session, message)| Some((session, message.draft.as_deref()?)))
    }

    /// Whether a message may have left and its answer is missing.
    pub(crate) fn is_sending(&self) -> bool {
        self.is_linked() && self.upkeep.asked.values().any(|what| matches!(what, For::Send(..) | For::Create(Some(_))))
    }

    /// Nothing that was typed is lost.
    pub(super) fn give_back(&mut self, session: Option<SessionId>, message: Message) {
        self.base.sent(&message.id);
        match (message.draft, session) {
            (Some(draft), session) => self.base.prompt().give_back(session, *draft),
            (None, Some(session)) => {
                let pending = Pending {
                    id: message.id.as_str().into(),
                    parts: message.parts,
                    delivery: message.delivery,
                    idempotency_id: None,
                };
                self.base.prompt().take_back(&session, vec![pending]);
            }
            // What a command said for a session that could not be made.
            (None, None) => {
                let text = message.parts.iter().find_map(|part| match part {
                    Part::Text { text } => Some(text.clone()),
                    Part::Image { .. } => None,
                });
                if let (Some(text), true) = (text, self.base.prompt().is_empty()) {
                    self.base.prompt().set_text(&text);
                }
            }
        }
    }
}

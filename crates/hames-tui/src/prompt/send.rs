//! Submitting: what Enter makes of the draft, and what comes back from it.

use hames_protocol::api::EditPending;
use hames_protocol::{Delivery, Part, Pending, SessionId};

use super::SavedText;
use super::attach::{Attachment, unpack};
use super::command::{self, Parsed};
use super::draft::{Draft, Piece};
use super::history::Browse;
use super::pending::no_change;
use super::{Asked, Command, Focus, Kept, Prompt, PromptOutcome};
use crate::{Cx, Request};

impl Prompt {
    /// Enter, or one of the other keys that send.
    pub(super) fn submit(&mut self, delivery: Delivery, cx: &mut Cx<'_>) -> PromptOutcome {
        if self.edited.is_some() {
            self.note = Some("your editor has this message; close it first".to_owned());
            return PromptOutcome::Taken;
        }
        let text = self.now.draft.piece().whole();
        if text.trim().is_empty() && self.now.attachments.is_empty() {
            return PromptOutcome::Passed;
        }
        if self.now.editing.is_none() {
            match command::parse(&text) {
                Parsed::Text => {}
                Parsed::Command(command) => return self.run(command, cx),
                // The hint line says what is wrong with it, and how it is sent as text.
                Parsed::Unknown { .. } | Parsed::Wrong(_) => return PromptOutcome::Taken,
            }
        }
        self.deliver(delivery, cx)
    }

    fn run(&mut self, command: Command, cx: &mut Cx<'_>) -> PromptOutcome {
        self.remember();
        let (text, delivery) = match command {
            Command::Steer(text) => (text, Delivery::Steer),
            Command::Queue(Some(text)) => (text, Delivery::Queue),
            Command::Queue(None) => {
                self.clear();
                let Some(view) = &cx.face.view else { return PromptOutcome::Taken };
                let ticket = cx.ask(Request::PausePending(view.row.id.clone(), !view.paused));
                self.asked.push((ticket, Asked::Change));
                return PromptOutcome::Taken;
            }
            Command::Attach(path) => {
                self.clear();
                self.attach(&path, cx);
                return PromptOutcome::Taken;
            }
            Command::Editor => {
                self.clear();
                self.edit(cx);
                return PromptOutcome::Taken;
            }
            command => {
                self.clear();
                return PromptOutcome::Command(command);
            }
        };
        self.now.draft.set(Piece::pasted(&text, false));
        self.deliver(delivery, cx)
    }

    /// Sends the draft as text, or remembers to as soon as everything is there.
    fn deliver(&mut self, delivery: Delivery, cx: &mut Cx<'_>) -> PromptOutcome {
        let session = self.session.clone();
        let failed = self.now.attachments.iter().any(|attachment| attachment.failure().is_some());
        if failed {
            self.now.attachments.iter_mut().for_each(|attachment| attachment.push_on(session.as_ref(), true, cx));
        }
        self.waits = Some(delivery);
        self.send_what_waits(cx).unwrap_or(PromptOutcome::Taken)
    }

    /// The message that waited for uploads or for the server, once nothing is missing.
    pub(super) fn send_what_waits(&mut self, cx: &mut Cx<'_>) -> Option<PromptOutcome> {
        let delivery = self.waits?;
        if !Self::is_connected(cx) || self.edited.is_some() {
            return None;
        }
        let along: Option<Vec<&[Part]>> = self.now.attachments.iter().map(Attachment::parts).collect();
        let along = along?.concat();
        self.waits = None;
        let text = self.now.draft.piece().whole();
        let mut parts = Vec::with_capacity(along.len() + 1);
        if !text.trim().is_empty() {
            parts.push(Part::Text { text });
        }
        parts.extend(along);
        if parts.is_empty() {
            return None;
        }
        self.remember();
        self.browse = Browse::default();
        if let (Some((id, true)), Some(session)) = (self.editing(cx.face), self.session.clone()) {
            let edit = EditPending { parts: Some(parts), ..no_change() };
            let ticket = cx.ask(Request::EditPending(session, id, edit));
            let kept = self.leave_edit();
            self.asked.push((ticket, Asked::Content(self.session.clone(), Box::new(kept))));
            return Some(PromptOutcome::Taken);
        }
        let draft = Box::new(self.leave_edit());
        Some(PromptOutcome::Submit { parts, delivery, draft })
    }

    /// Puts what is written into the history of the folder.
    pub(super) fn remember(&mut self) {
        let piece = self.now.draft.piece().clone();
        if !piece.text().trim().is_empty() {
            self.sent.push((self.folder.clone(), SavedText::of(&piece)));
        }
        self.histories.entry(self.folder.clone()).or_default().push(piece);
    }

    /// Empties the text; what goes along stays.
    fn clear(&mut self) {
        self.now.draft.set(Piece::default());
        self.browse = Browse::default();
        self.offer = None;
    }

    /// Takes the draft out, and what was put aside for it back.
    pub(super) fn leave_edit(&mut self) -> Kept {
        let aside = self.now.aside.take().map(|aside| *aside).unwrap_or_default();
        let mut kept = std::mem::replace(&mut self.now, aside);
        kept.editing = None;
        self.laid = None;
        self.offer = None;
        self.menu = None;
        self.dismissed = None;
        kept
    }

    /// A message that waits comes into the prompt, to be put back in its place; what was being written is put aside.
    pub(super) fn edit_pending(&mut self, message: &Pending) {
        self.focus = Focus::Text;
        if self.now.editing.as_ref() == Some(&message.id) {
            return;
        }
        if self.now.editing.is_some() {
            // The edit that was under way becomes part of what was put aside.
            let kept = self.leave_edit();
            self.now.put_ahead(kept);
        }
        let mut kept = unpacked(&message.parts);
        kept.editing = Some(message.id.clone());
        let aside = std::mem::replace(&mut self.now, kept);
        self.now.aside = (!aside.is_empty()).then(|| Box::new(aside));
        self.laid = None;
    }

    /// A message that was submitted in a session and not taken comes back there, ahead of what was written since.
    pub(crate) fn give_back(&mut self, session: Option<SessionId>, kept: Kept) {
        match session == self.session {
            true => self.now.put_ahead(kept),
            false => self.others.entry(session).or_default().put_ahead(kept),
        }
        self.laid = None;
    }

    /// Messages of a session that never reached the model come back in their order, ahead of what was written meanwhile.
    pub(crate) fn take_back(&mut self, session: &SessionId, returned: Vec<Pending>) {
        if self.session.as_ref() != Some(session) {
            for message in returned.iter().rev() {
                self.give_back(Some(session.clone()), unpacked(&message.parts));
            }
            return;
        }
        let mut back: Vec<Kept> = Vec::with_capacity(returned.len());
        for message in &returned {
            // One that is being edited comes back as what it has become.
            let is_edited = self.now.editing.as_ref() == Some(&message.id);
            back.push(if is_edited { self.leave_edit() } else { unpacked(&message.parts) });
        }
        for kept in back.into_iter().rev() {
            match (&self.now.editing, &mut self.now.aside) {
                (None, _) => self.now.put_ahead(kept),
                (Some(_), Some(aside)) => aside.put_ahead(kept),
                (Some(_), aside) => *aside = Some(Box::new(kept)),
            }
        }
        self.laid = None;
    }

    /// Whether nothing is written and nothing goes along.
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// Exchanges what is written; undo brings it back.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.now.draft.set(Piece::pasted(text, false));
    }
}

fn unpacked(parts: &[Part]) -> Kept {
    let (text, attachments) = unpack(parts);
    Kept { draft: Draft::of(Piece::pasted(&text, false)), attachments, ..Kept::default() }
}

//! The section of messages that wait: what it shows, and what keys do in it.
//!
//! The messages themselves are the server's; what is kept here is only which of them is marked, which are open and how far
//! it is scrolled, by their ids, so that nothing jumps when one is delivered meanwhile.

mod show;

use std::collections::BTreeSet;

use hames_protocol::api::{EditPending, SessionView};
use hames_protocol::{Delivery, Pending, PendingId};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{Action, Cx, Keymap, Request, Ticket};

/// The section, but for the messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingSection {
    marked: Option<PendingId>,
    /// Where the marked one stood, for when it is delivered.
    index: usize,
    open: BTreeSet<PendingId>,
    known: BTreeSet<PendingId>,
    is_folded: bool,
    /// The first row that is shown.
    top: usize,
}

/// What a key did in the section.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PendingOutcome {
    /// It is done with.
    Taken,
    /// The server was asked; a refusal comes under the ticket.
    Asked(Ticket),
    /// The message is to be edited in the prompt.
    Edit(Pending),
    /// Back to the prompt.
    Left,
    /// Not for the section.
    Passed,
}

/// The order in which messages are delivered.
fn class(delivery: Delivery) -> u8 {
    u8::from(delivery == Delivery::Queue)
}

/// The counts, for a header: `Now 1 · Steer 1 · Queued 2`.
pub(super) fn counts(pending: &[Pending]) -> String {
    let count = |delivery| pending.iter().filter(|message| message.delivery == delivery).count();
    [("Now", Delivery::Interrupt), ("Steer", Delivery::Steer), ("Queued", Delivery::Queue)]
        .into_iter()
        .map(|(name, delivery)| (name, count(delivery)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect::<Vec<_>>()
        .join(" · ")
}

impl PendingSection {
    /// Looks at what waits now: a new message opens the section again.
    pub(crate) fn see(&mut self, pending: &[Pending]) {
        if pending.iter().any(|message| !self.known.contains(&message.id)) {
            self.is_folded = false;
        }
        self.known = pending.iter().map(|message| message.id.clone()).collect();
        self.open.retain(|id| self.known.contains(id));
        match pending.iter().position(|message| Some(&message.id) == self.marked.as_ref()) {
            Some(index) => self.index = index,
            None => {
                self.index = self.index.min(pending.len().saturating_sub(1));
                self.marked = None;
            }
        }
    }

    /// Marks the message at the cursor of the section, the first one at the beginning.
    pub(crate) fn enter(&mut self, pending: &[Pending]) -> bool {
        self.see(pending);
        self.is_folded = false;
        self.mark(pending, self.index);
        self.marked.is_some()
    }

    fn mark(&mut self, pending: &[Pending], index: usize) {
        self.index = index.min(pending.len().saturating_sub(1));
        self.marked = pending.get(self.index).map(|message| message.id.clone());
    }

    /// Takes a key while the section has the keys.
    pub(crate) fn handle(
        &mut self,
        key: &KeyEvent,
        action: Option<Action>,
        view: &SessionView,
        cx: &mut Cx<'_>,
    ) -> PendingOutcome {
        let pending = &view.pending;
        self.see(pending);
        let Some(message) = pending.get(self.index) else { return PendingOutcome::Left };
        let session = view.row.id.clone();
        self.mark(pending, self.index);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let change = |edit: EditPending, cx: &mut Cx<'_>| {
            PendingOutcome::Asked(cx.ask(Request::EditPending(session.clone(), message.id.clone(), edit)))
        };
        let deliver = |delivery, cx: &mut Cx<'_>| match message.delivery == delivery {
            true => PendingOutcome::Taken,
            false => change(EditPending { delivery: Some(delivery), ..no_change() }, cx),
        };
        match key.code {
            KeyCode::Up if alt => self.shift(pending, false).map_or(PendingOutcome::Taken, |edit| change(edit, cx)),
            KeyCode::Down if alt => self.shift(pending, true).map_or(PendingOutcome::Taken, |edit| change(edit, cx)),
            KeyCode::Enter if key.modifiers.is_empty() => PendingOutcome::Edit(message.clone()),
            KeyCode::Delete | KeyCode::Backspace => {
                PendingOutcome::Asked(cx.ask(Request::CancelPending(session, message.id.clone())))
            }
            KeyCode::Right | KeyCode::Left | KeyCode::Char(' ') => self.fold(key.code, message),
            KeyCode::Char('s') if key.modifiers.is_empty() => deliver(Delivery::Steer, cx),
            KeyCode::Char('q') if key.modifiers.is_empty() => deliver(Delivery::Queue, cx),
            KeyCode::Char('n') if key.modifiers.is_empty() => deliver(Delivery::Interrupt, cx),
            KeyCode::Char('p') if key.modifiers.is_empty() => {
                PendingOutcome::Asked(cx.ask(Request::PausePending(session, !view.paused)))
            }
            KeyCode::Esc => PendingOutcome::Left,
            _ => match action {
                Some(Action::Previous) => self.step(pending, false),
                Some(Action::Next) => self.step(pending, true),
                Some(Action::Pending | Action::Abort) => PendingOutcome::Left,
                Some(Action::Steer) => deliver(Delivery::Steer, cx),
                Some(Action::Queue) => deliver(Delivery::Queue, cx),
                _ => PendingOutcome::Passed,
            },
        }
    }

    fn step(&mut self, pending: &[Pending], forward: bool) -> PendingOutcome {
        match (forward, self.index) {
            // Below the last one is the prompt.
            (true, index) if index + 1 >= pending.len() => PendingOutcome::Left,
            (true, index) => {
                self.mark(pending, index + 1);
                PendingOutcome::Taken
            }
            (false, index) => {
                self.mark(pending, index.saturating_sub(1));
                PendingOutcome::Taken
            }
        }
    }

    /// Opens or closes the marked row; closing a closed one folds the whole section.
    fn fold(&mut self, code: KeyCode, message: &Pending) -> PendingOutcome {
        let was_open = self.open.remove(&message.id);
        match (code, was_open) {
            (KeyCode::Right, _) | (KeyCode::Char(_), false) => {
                self.open.insert(message.id.clone());
                PendingOutcome::Taken
            }
            (KeyCode::Left, false) => {
                self.is_folded = true;
                PendingOutcome::Left
            }
            _ => PendingOutcome::Taken,
        }
    }

    /// What moves the marked message by one place among those that are delivered alike.
    fn shift(&self, pending: &[Pending], later: bool) -> Option<EditPending> {
        let message = pending.get(self.index)?;
        let other = if later { self.index + 1 } else { self.index.checked_sub(1)? };
        let alike = |index: usize| pending.get(index).filter(|m| class(m.delivery) == class(message.delivery));
        alike(other)?;
        let before = if later { alike(other + 1) } else { alike(other) };
        Some(EditPending { last: before.is_none(), before: before.map(|m| m.id.clone()), ..no_change() })
    }

    /// What the keys do here, for the hint line.
    pub(super) fn hint(&self, view: &SessionView, keys: &Keymap) -> Vec<String> {
        let key = |name: &str| keys.inner(&format!("pending.{name}"));
        let mut says = vec!["Enter edits".to_owned(), format!("{} withdraws", key("withdraw"))];
        match view.pending.get(self.index).map(|message| message.delivery) {
            Some(Delivery::Queue) => says.push(format!("{} steers it", key("steer"))),
            _ => says.push(format!("{} queues it", key("queue"))),
        }
        let pauses = if view.paused { "lets the queue go on" } else { "pauses the queue" };
        says.push(format!("{} {pauses}", key("pause")));
        says.extend(["Alt+↑↓ moves", "Space opens", "Esc back"].map(str::to_owned));
        says
    }
}

/// An edit that changes nothing yet.
pub(super) fn no_change() -> EditPending {
    EditPending { parts: None, delivery: None, before: None, last: false }
}

//! Messages: taken in, changed, withdrawn. Each is in the log before anybody is told that it is safe.

use hames_protocol::api::{ApiErrorCode, EditPending, PausePending, PendingList, SendMessage, Sent};
use hames_protocol::{Event, Part, Pending, PendingCancelled, PendingEdited, PendingId, PendingPaused, SessionRenamed};

use super::Actor;
use crate::names;
use crate::refusal::{Answer, refuse};
use crate::view::{is_for_a_run, listed};

/// Parts one message may have.
const MAX_PARTS: usize = 200;
/// Messages that may wait in one session.
const MAX_PENDING: usize = 1_000;

impl Actor {
    /// Takes in a message.
    pub(crate) async fn send(&mut self, message: SendMessage) -> Answer<Sent> {
        let journal = self.journal().await?;
        let known = message.idempotency_id.as_ref().and_then(|id| {
            let state = journal.state();
            let sent = state.sent.iter().find(|sent| &sent.idempotency_id == id);
            sent.map(|sent| (sent.pending_id.clone(), sent.seq))
        });
        if let Some((pending_id, seq)) = known {
            return Ok(Sent { pending_id, seq, starts_run: false, repeated: true });
        }
        self.not_stopping()?;
        if journal.state().pending.len() >= MAX_PENDING {
            let text = format!("{MAX_PENDING} messages wait already; withdraw some, or let the queue go on.");
            return Err(refuse(ApiErrorCode::Busy, text));
        }
        let pending = Pending {
            id: PendingId::generate(),
            parts: self.parts(message.parts).await?,
            delivery: message.delivery,
            idempotency_id: message.idempotency_id,
        };
        if let Some(terms) = message.terms {
            self.terms.insert(pending.id.clone(), terms);
        }
        let taken = self.take_in(pending.clone()).await;
        if taken.is_err() {
            self.terms.remove(&pending.id);
        }
        taken
    }

    async fn take_in(&mut self, pending: Pending) -> Answer<Sent> {
        // A run that cannot begin takes nothing in: the text stays where it was typed.
        let prepared = match self.run {
            Some(_) => None,
            None => Some(self.prepare(&pending.id).await?),
        };
        self.name_after(&pending.parts).await;
        let seq = self.record(vec![Event::PendingAdded(pending.clone())]).await?;
        let sent = Sent { pending_id: pending.id.clone(), seq, starts_run: prepared.is_some(), repeated: false };
        match (prepared, &self.run) {
            (Some(prepared), _) => self.start(pending, prepared),
            (None, Some(run)) if is_for_a_run(&pending) => run.inbox.push(pending),
            (None, _) => {}
        }
        Ok(sent)
    }

    /// A message's parts without keys; refused where they say nothing.
    async fn parts(&self, parts: Vec<Part>) -> Answer<Vec<Part>> {
        let invalid = |text: &str| Err(refuse(ApiErrorCode::Invalid, text));
        if parts.len() > MAX_PARTS {
            return invalid("The message has too many parts; 200 are possible.");
        }
        let says = |part: &Part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::Image { .. } => true,
        };
        if !parts.iter().any(says) {
            return invalid("The message is empty. Say what is to be done.");
        }
        for part in &parts {
            if let Part::Image { blob, .. } = part
                && self.hub.store.blobs().get(&blob.hash, 0, 1).await.is_err()
            {
                return invalid("An image of the message is not known here; attach it again.");
            }
        }
        let host = &self.hub.host;
        Ok(parts
            .into_iter()
            .map(|part| match part {
                // NUL cannot be part of any message a provider takes.
                Part::Text { text } => Part::Text { text: host.mask(text).replace('\0', "\u{fffd}") },
                image => image,
            })
            .collect())
    }

    /// Names a session that has no name of its own after the first thing that is said in it.
    async fn name_after(&mut self, parts: &[Part]) {
        let Some(own) = &self.own else { return };
        let (turn, name) = {
            let state = own.journal.state();
            (state.turn, state.name.clone())
        };
        let Some(wanted) = names::after(parts).filter(|_| turn == 0 && names::is_unnamed(&name)) else { return };
        for name in names::numbered(&wanted) {
            match self.record(vec![SessionRenamed { name: name.clone() }.into()]).await {
                Err(why) if why.code == ApiErrorCode::Busy => {}
                Ok(_) => return self.improve_name(name, text_of(parts)),
                Err(_) => return,
            }
        }
    }

    /// Asks for a better name where that is switched on; nobody waits for it.
    fn improve_name(&self, name: String, first_message: String) {
        let Some(own) = &self.own else { return };
        let (folder, settings) = {
            let state = own.journal.state();
            (state.folder.clone(), state.settings.clone())
        };
        let (hub, id) = (self.hub.clone(), self.id.clone());
        tokio::spawn(async move {
            let effective = hub.host.effective(folder.as_ref(), &settings);
            if let Some(better) = hub.host.title(&effective, &first_message).await {
                hub.rename_unless_renamed(&id, name, better).await;
            }
        });
    }

    /// What waits.
    pub(crate) async fn pending(&mut self) -> Answer<PendingList> {
        Ok(listed(&self.state().await?))
    }

    /// Changes, converts or moves a message that waits.
    pub(crate) async fn edit_pending(&mut self, id: &PendingId, edit: EditPending) -> Answer<PendingList> {
        let mut pending = self.waiting_message(id).await?;
        let before = edit.before.filter(|before| before != id);
        if let Some(before) = &before {
            self.waiting_message(before).await?;
        }
        if let Some(parts) = edit.parts {
            pending.parts = self.parts(parts).await?;
        }
        pending.delivery = edit.delivery.unwrap_or(pending.delivery);
        self.hold(id)?;
        let recorded = self.record(vec![PendingEdited { pending, before, last: edit.last }.into()]).await;
        self.let_go(id);
        recorded?;
        // A message made a steer where nothing runs begins a run.
        self.go_on().await;
        self.pending().await
    }

    /// Withdraws a message that waits.
    pub(crate) async fn cancel_pending(&mut self, id: &PendingId) -> Answer<Pending> {
        let pending = self.waiting_message(id).await?;
        self.hold(id)?;
        let recorded = self.record(vec![PendingCancelled { id: id.clone() }.into()]).await;
        self.let_go(id);
        recorded?;
        self.terms.remove(id);
        Ok(pending)
    }

    /// Stops the queue, or lets it go on.
    pub(crate) async fn pause(&mut self, pause: PausePending) -> Answer<PendingList> {
        let paused = self.journal().await?.state().paused;
        if paused != pause.paused {
            self.record(vec![PendingPaused { paused: pause.paused }.into()]).await?;
        }
        self.go_on().await;
        self.pending().await
    }

    async fn waiting_message(&mut self, id: &PendingId) -> Answer<Pending> {
        let journal = self.journal().await?;
        let found = journal.state().pending.iter().find(|pending| &pending.id == id).cloned();
        found.ok_or_else(|| delivered(id))
    }

    /// Keeps the run from taking a message while a change to it is recorded.
    fn hold(&self, id: &PendingId) -> Answer<()> {
        match &self.run {
            Some(run) if !run.inbox.hold(id) => Err(delivered(id)),
            _ => Ok(()),
        }
    }

    /// Gives the run what waits for it now.
    fn let_go(&self, id: &PendingId) {
        let (Some(run), Some(own)) = (&self.run, &self.own) else { return };
        run.inbox.release(id);
        run.inbox.arrange(own.journal.state().pending.iter().filter(|p| is_for_a_run(p)).cloned().collect());
    }
}

fn delivered(id: &PendingId) -> hames_protocol::api::ApiError {
    refuse(ApiErrorCode::NotFound, format!("Message {id} does not wait any more: it was delivered or withdrawn."))
}

/// What a message says in words.
fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

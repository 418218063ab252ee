//! Runs of a session: beginning the next one, and what becomes of what waits when one has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hames_agent::{RunControl, RunInput, Session};
use hames_protocol::api::{Aborted, ApiErrorCode, RunTerms};
use hames_protocol::{
    Delivery, Event, Inbox, Pending, PendingCancelled, PendingEdited, PendingId, PendingPaused, RunResult, SessionState,
};
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::{Actor, Ended, Running, StoppedBy};
use crate::inbox::RunInbox;
use crate::refusal::{Answer, failed, refuse, refused};
use crate::view::is_for_a_run;
use crate::{PreparedRun, RunJob};

/// The message the next run begins with.
fn next_message(state: &SessionState) -> Option<Pending> {
    // What was meant for a run that is over comes before what was meant for later, and does not wait with the queue.
    let late = state.pending.iter().find(|pending| is_for_a_run(pending));
    late.or_else(|| state.pending.first().filter(|_| !state.paused)).cloned()
}

impl Actor {
    /// Puts the next run together. Nothing is recorded by it.
    pub(super) async fn prepare(&mut self, first: &PendingId) -> Answer<PreparedRun> {
        let terms = self.terms.get(first).cloned().unwrap_or_default();
        self.prepare_under(terms).await
    }

    pub(super) async fn prepare_under(&mut self, terms: RunTerms) -> Answer<PreparedRun> {
        let state = self.owned()?.state().clone();
        self.prepare_as(state, terms).await
    }

    /// Puts a run together for a session in this state, whether it is in it or not.
    pub(super) async fn prepare_as(&self, state: SessionState, terms: RunTerms) -> Answer<PreparedRun> {
        let job = RunJob {
            session: self.id.clone(),
            folder: state.folder.clone().into(),
            state,
            approver: self.channel.approver(),
            terms,
        };
        self.hub.host.prepare(job).await.map_err(failed)
    }

    /// Begins the next run where something waits for one. What cannot begin stays, and waits for a person.
    pub(super) async fn go_on(&mut self) {
        if self.run.is_some() || self.hub.is_stopping() {
            return;
        }
        let Some(own) = &self.own else { return };
        let Some(next) = next_message(&own.journal.state()) else { return };
        match self.prepare(&next.id).await {
            Ok(prepared) => self.start(next, prepared),
            Err(why) => {
                let failure = hames_protocol::Failure::new(hames_protocol::ErrorClass::Configuration, why.message);
                if self.record(vec![Event::Error(failure)]).await.is_ok() {
                    self.stand_still().await;
                }
            }
        }
    }

    /// Begins a run with a message that waits. What else was meant for a run goes along.
    pub(super) fn start(&mut self, first: Pending, prepared: PreparedRun) {
        let Some(own) = &mut self.own else { return };
        let Some(mut session) = own.session.take() else { return };
        self.terms.remove(&first.id);
        let (settings, others): (_, Vec<Pending>) = {
            let state = own.journal.state();
            let others = state.pending.iter().filter(|other| is_for_a_run(other) && other.id != first.id);
            (state.settings.clone(), others.cloned().collect())
        };
        let inbox = Arc::new(RunInbox::new(Some(first.clone()), others));
        let control = RunControl {
            abort: CancellationToken::new(),
            inbox: Arc::clone(&inbox) as Arc<dyn Inbox>,
            ..RunControl::default()
        };
        let (abort, aborted_code) = (control.abort.clone(), Arc::clone(&control.aborted_code));
        let mode = prepared.settings.mode.unwrap_or_default();
        let input = RunInput {
            delivery: Some(first.delivery).filter(|delivery| *delivery != Delivery::Queue),
            pending_id: Some(first.id),
            parts: first.parts,
            note: prepared.note,
            idempotency_id: first.idempotency_id,
            mode,
            settings: prepared.settings,
            instructions: prepared.instructions,
        };
        let (watch, mut agent, shell) = (self.watch(), prepared.agent, prepared.shell);
        let task = tokio::spawn(async move {
            let end = Box::pin(session.run(&mut agent, input, &control, watch)).await;
            if let Some(shell) = shell {
                shell.sweep().await;
            }
            (session, Ended::Run(end.result))
        });
        self.hub.counts.send_modify(|counts| counts.runs += 1);
        self.run = Some(Running {
            task,
            inbox,
            abort,
            aborted_code,
            stopped: None,
            aborting: Vec::new(),
            settings,
            compacting: None,
        });
    }

    /// Asks the run to end, as a command that exits with `code`. What is given back says how it did.
    pub(crate) async fn abort(&mut self, code: i32) -> Answer<oneshot::Receiver<Answer<Aborted>>> {
        self.open().await?;
        let (tell, told) = oneshot::channel();
        match &mut self.run {
            Some(run) => {
                if run.stopped.replace(StoppedBy::Person).is_none() {
                    run.aborted_code.store(code, Ordering::SeqCst);
                }
                run.aborting.push(tell);
                run.abort.cancel();
            }
            None => {
                let queued = self.queued();
                let _ = tell.send(Ok(Aborted { run: None, returned: Vec::new(), queued }));
            }
        }
        Ok(told)
    }

    fn queued(&self) -> u32 {
        let count = self.own.as_ref().map_or(0, |own| own.journal.state().pending.len());
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// A run has ended. Stopped by a person: steers that did not reach the model go back, the queue waits. Failed or cut:
    /// everything waits. Otherwise the next message begins a run.
    pub(super) async fn after_run(&mut self, ended: Result<(Session, Ended), JoinError>) {
        let Some(run) = self.run.take() else { return };
        let mut compacted = None;
        self.hub.counts.send_modify(|counts| counts.runs = counts.runs.saturating_sub(1));
        let result = match ended {
            Ok((session, end)) => {
                if let Some(own) = &mut self.own {
                    own.session = Some(session);
                }
                match end {
                    Ended::Run(result) => result,
                    Ended::Compacted(answer) => {
                        compacted = Some(answer);
                        RunResult::Complete
                    }
                }
            }
            Err(error) => {
                tracing::error!(target: "hames::server", session = %self.id, %error, "a run broke down");
                self.reopen().await;
                RunResult::Error
            }
        };
        match (run.stopped, result) {
            (Some(StoppedBy::Person), _) => self.give_back(run.aborting).await,
            (Some(StoppedBy::Server), _) | (None, RunResult::Error | RunResult::Interrupted) => {
                self.stand_still().await;
            }
            (None, RunResult::Complete | RunResult::Stopped | RunResult::MaxSteps) => {}
        }
        self.forget_terms();
        self.drop_empty_question().await;
        self.go_on().await;
        if let (Some(tell), Some(answer)) = (run.compacting, compacted) {
            // Whoever asked may be gone.
            let _ = tell.send(answer);
        }
    }

    /// Forgets what was said about messages that were delivered or given back meanwhile.
    fn forget_terms(&mut self) {
        let Some(own) = &self.own else { return };
        let state = own.journal.state();
        self.terms.retain(|id, _| state.pending.iter().any(|pending| &pending.id == id));
    }

    /// The session's value was lost with its run: it is read anew, under the lease that is held.
    async fn reopen(&mut self) {
        let Some(own) = self.own.take() else { return };
        if let Err(why) = self.resume(own.lease).await {
            tracing::error!(target: "hames::server", session = %self.id, message = %why.message, "not reopened");
        }
    }

    /// Withdraws what was meant for the run that was stopped, and lets the queue wait.
    async fn give_back(&mut self, aborting: Vec<oneshot::Sender<Answer<Aborted>>>) {
        let Some(own) = &self.own else { return };
        let (run, returned, queued, is_paused) = {
            let state = own.journal.state();
            let (returned, queued): (Vec<_>, Vec<_>) = state.pending.iter().cloned().partition(is_for_a_run);
            (self.channel.last_run(), returned, queued.len(), state.paused)
        };
        let withdrawn = returned.iter().map(|pending| PendingCancelled { id: pending.id.clone() }.into());
        let mut events: Vec<Event> = withdrawn.collect();
        if queued > 0 && !is_paused {
            events.push(PendingPaused { paused: true }.into());
        }
        let recorded = self.record(events).await;
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        let mut aborted = Aborted { run, returned, queued };
        for tell in aborting {
            let answer = recorded.clone().map(|_| aborted.clone());
            // Each text goes back to one editor.
            if tell.send(answer).is_ok() {
                aborted.returned.clear();
            }
        }
    }

    /// Nothing begins by itself any more: what did not reach the run that is over stands at the head of the queue, and
    /// the queue waits for a person.
    pub(super) async fn stand_still(&mut self) {
        let Some(own) = &self.own else { return };
        let mut events: Vec<Event> = Vec::new();
        {
            let state = own.journal.state();
            let before = state.pending.iter().find(|pending| !is_for_a_run(pending)).map(|pending| pending.id.clone());
            for late in state.pending.iter().filter(|pending| is_for_a_run(pending)) {
                let pending = Pending { delivery: Delivery::Queue, ..late.clone() };
                events.push(PendingEdited { pending, last: before.is_none(), before: before.clone() }.into());
            }
            if !state.pending.is_empty() && !state.paused {
                events.push(PendingPaused { paused: true }.into());
            }
        }
        if let Err(why) = self.record(events).await {
            tracing::warn!(target: "hames::server", session = %self.id, message = %why.message, "the queue was not paused");
        }
    }

    /// A run that took back all that it had proposed leaves nothing to ask about; the session's row learns it here.
    async fn drop_empty_question(&mut self) {
        let Some(own) = &self.own else { return };
        let Some(run) = self.channel.take_proposing() else { return };
        if !own.journal.state().has_proposals()
            && let Err(why) = self.keep(run).await
        {
            tracing::warn!(target: "hames::server", session = %self.id, message = %why.message, "still asked about");
        }
    }

    /// Refuses new work while the server stops.
    pub(super) fn not_stopping(&self) -> Answer<()> {
        match self.hub.is_stopping() {
            true => {
                Err(refuse(ApiErrorCode::Stopping, "The server is stopping. Start it again and send this once more."))
            }
            false => Ok(()),
        }
    }

    /// The session itself, where no run has it.
    pub(super) async fn session(&mut self, what: &str) -> Answer<&mut Session> {
        self.open().await?;
        self.not_beside_a_run(what)?;
        let gone = refused(hames_protocol::LogError::NoSession(self.id.clone()));
        self.own.as_mut().and_then(|own| own.session.as_mut()).ok_or(gone)
    }
}

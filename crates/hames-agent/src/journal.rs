//! A session's journal: its log, what is folded of it, and whose turn it is to append.
//!
//! Everybody who writes in one session writes in one journal: the recorder of the run that goes on, and beside it
//! whoever records what a person decides. Appends come one after the other; each is in the log, in the folds and seen by
//! its watcher before the next begins, so all three have one order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hames_protocol::{
    Durability, ENVELOPE_VERSION, Envelope, Event, EventLog, Item, LogError, SessionId, SessionState, Transcript,
    WindowState, closing::Tally,
};

use tokio::runtime::Handle;

use crate::session::Ports;
use crate::{Clock, Watch};

/// Events read at once while a log is replayed.
const REPLAY_PAGE: usize = 1_000;
/// Events of a page that are taken in at once. More of them hold nobody else up: a thread that may block does it.
const REPLAYED_AT_ONCE: usize = 64;

/// The folds a run reads.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    pub(crate) transcript: Mutex<Transcript>,
    pub(crate) state: Arc<Mutex<SessionState>>,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) window: Mutex<WindowState>,
    /// Held while a page of the log is taken in.
    replaying: Mutex<()>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Folds {
    pub(crate) fn apply(&self, envelope: &Envelope) {
        locked(&self.state).apply(envelope);
        locked(&self.window).apply(envelope);
        // Children speak under their own path; their words are not this conversation's.
        if envelope.agent.is_empty() {
            match envelope.seq {
                Some(seq) => locked(&self.transcript).apply_at(seq, &envelope.event),
                None => locked(&self.transcript).apply(&envelope.event),
            }
            locked(&self.tally).apply(envelope);
        }
    }

    /// Takes in what of a page of the log is not known yet. Where whoever waited for a page is gone, the next one may take
    /// in the same events again: then what is known by now is left out.
    fn replay(&self, page: &[Envelope]) {
        let _turn = locked(&self.replaying);
        for envelope in page {
            if envelope.seq.is_none_or(|seq| seq > locked(&self.state).seq) {
                self.apply(envelope);
            }
        }
    }
}

/// What comes next in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An event with this seq.
    Seq(u64),
    /// Only the log knows: an append failed, or whoever waited for it was dropped.
    Unknown,
}

/// A session's journal. Whoever has a handle records beside the runs of the session.
pub struct Journal {
    session: SessionId,
    ports: Ports,
    pub(crate) folds: Arc<Folds>,
    /// Held across an append, so that all who record do so one after the other.
    next: tokio::sync::Mutex<Next>,
    /// `session.created`, until somebody has seen it.
    pub(crate) unseen: Mutex<Option<Envelope>>,
}

impl Journal {
    pub(crate) fn new(session: SessionId, ports: Ports) -> Self {
        let next = tokio::sync::Mutex::new(Next::Unknown);
        Self { session, ports, folds: Arc::default(), next, unseen: Mutex::default() }
    }

    /// The session's id.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    pub(crate) fn log(&self) -> &Arc<dyn EventLog> {
        &self.ports.log
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.ports.clock
    }

    /// Name, folder, settings, todos and the rest, for a moment; never across an await.
    pub fn state(&self) -> MutexGuard<'_, SessionState> {
        locked(&self.folds.state)
    }

    /// The conversation so far.
    pub fn items(&self) -> Vec<Arc<Item>> {
        locked(&self.folds.transcript).items().to_vec()
    }

    /// Records what belongs to no run, whether one goes on or not, and gives the seq of the last of these events. What is
    /// refused (a name that is taken) is not in the log, and nothing else is the worse for it.
    pub async fn record(&self, events: Vec<Event>, watch: &Arc<dyn Watch>) -> Result<u64, LogError> {
        let mut next = self.turn().await;
        let batch: Vec<Envelope> = events.into_iter().map(|event| self.envelope(event)).collect();
        if batch.is_empty() {
            return Ok(self.state().seq);
        }
        let batch = self.append(&mut next, batch).await?;
        watch.see(&batch).await;
        Ok(batch.last().and_then(|envelope| envelope.seq).unwrap_or_default())
    }

    fn envelope(&self, event: Event) -> Envelope {
        Envelope {
            v: ENVELOPE_VERSION,
            seq: None,
            at: self.ports.clock.now_ms(),
            session: Some(self.session.clone()),
            run: None,
            turn: None,
            step: None,
            agent: Vec::new(),
            event,
        }
    }

    /// The right to append next.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, Next> {
        self.next.lock().await
    }

    /// Takes in what the log holds beyond what is known.
    pub(crate) async fn replay(&self) -> Result<(), LogError> {
        let mut next = self.turn().await;
        self.catch_up(&mut next).await
    }

    async fn catch_up(&self, next: &mut Next) -> Result<(), LogError> {
        loop {
            let known = self.state().seq;
            let page = self.ports.log.read(&self.session, known, REPLAY_PAGE).await?;
            let first = self.take_in(page).await?;
            let now_known = self.state().seq;
            if now_known == known {
                *next = Next::Seq(known + 1);
                return Ok(());
            }
            *locked(&self.unseen) = first.filter(|_| now_known == 1);
        }
    }

    /// Takes in a page of the log and gives its first event.
    async fn take_in(&self, page: Vec<Envelope>) -> Result<Option<Envelope>, LogError> {
        let (folds, is_long) = (Arc::clone(&self.folds), page.len() > REPLAYED_AT_ONCE);
        let replay = move || {
            folds.replay(&page);
            page.into_iter().next()
        };
        match Handle::try_current() {
            Ok(runtime) if is_long => runtime
                .spawn_blocking(replay)
                .await
                .map_err(|error| LogError::Io(format!("session {} cannot be read: {error}", self.session))),
            _ => Ok(replay()),
        }
    }

    /// Appends and takes in. `next` is known afterwards only if this comes to an end: a task that is dropped in the
    /// middle leaves it open what the log holds, and then the log is asked before anything else is appended.
    pub(crate) async fn append(&self, next: &mut Next, batch: Vec<Envelope>) -> Result<Vec<Envelope>, LogError> {
        if *next == Next::Unknown {
            self.catch_up(next).await?;
        }
        if batch.iter().any(|e| matches!(e.event, Event::StepDone(_) | Event::RunDone(_))) {
            // The step before must be safe before the calls of this one run, and before the end is announced.
            self.ports.log.settle().await?;
        }
        let Next::Seq(seq) = std::mem::replace(next, Next::Unknown) else {
            return Err(LogError::Io(format!("it is not known what session {} holds", self.session)));
        };
        let durability = durability(&batch);
        let batch = match self.ports.log.append(&self.session, seq, batch, durability).await {
            Ok(batch) => batch,
            Err(error) => {
                if matches!(error, LogError::Busy(_) | LogError::Invalid(_)) {
                    *next = Next::Seq(seq);
                }
                return Err(error);
            }
        };
        for envelope in &batch {
            self.folds.apply(envelope);
        }
        *next = Next::Seq(seq + batch.len() as u64);
        Ok(batch)
    }
}

/// What must survive the loss of power: what a person said and the end, before they are acknowledged; what a model was
/// paid for, before the calls of the next step run. Until then the disk has all the time that calls and model take.
fn durability(events: &[Envelope]) -> Durability {
    let of = |envelope: &Envelope| match envelope.event {
        Event::MessageUser(_)
        | Event::PendingAdded(_)
        | Event::PendingEdited(_)
        | Event::PendingCancelled(_)
        | Event::RunDone(_) => Durability::Power,
        Event::StepDone(_) => Durability::PowerSoon,
        _ => Durability::Process,
    };
    events.iter().map(of).max().unwrap_or(Durability::Process)
}

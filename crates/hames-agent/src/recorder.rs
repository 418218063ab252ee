//! The recorder: the only one that appends.
//!
//! Every durable event goes into the log first, then into the folds, then to whoever watches; only then does the task
//! that emitted it go on. Live events go straight to the watcher. Beside the log it keeps what the open step has shown
//! so far, so that a death in its middle loses no more than the last moments.
//!
//! After the first append that fails, after `run.done`, and when its run is dropped it takes nothing more: a tool that
//! was given up on and comes back later is refused, so it does not act either.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hames_protocol::{
    Durability, ENVELOPE_VERSION, Emit, Envelope, ErrorClass, Event, EventLog, Failure, OpenBlock, OpenKind, RunId,
    SessionId, SessionState, Transcript, WindowState, join_open,
};

use crate::Clock;
use hames_protocol::closing::Tally;

/// The open step is kept about this often while it streams.
pub(crate) const OPEN_STEP_EVERY: Duration = Duration::from_secs(2);
/// And at least after so many new bytes.
const OPEN_STEP_BYTES: usize = 16 * 1024;

/// Somebody who sees a session's events.
#[async_trait]
pub trait Watch: Send + Sync {
    /// Takes events, in order. Durable ones are in the log already; the run goes on when this returns.
    async fn see(&self, batch: &[Envelope]);
    /// Takes a live event that may be dropped; must not block.
    fn glimpse(&self, live: Envelope);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

#[async_trait]
impl Watch for Nobody {
    async fn see(&self, _batch: &[Envelope]) {}
    fn glimpse(&self, _live: Envelope) {}
}

/// The folds a run reads.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    pub(crate) transcript: Mutex<Transcript>,
    pub(crate) state: Arc<Mutex<SessionState>>,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) window: Mutex<WindowState>,
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
}

/// What every envelope of a run carries.
#[derive(Clone, Debug, Default)]
struct Place {
    run: Option<RunId>,
    turn: Option<u32>,
    step: Option<u32>,
}

/// What of the open step is not kept beside the log yet.
#[derive(Debug, Default)]
struct OpenStep {
    pieces: Vec<OpenBlock>,
    bytes: usize,
    /// When pieces were kept last, or the first one came.
    saved_at: Option<u64>,
    /// A piece is lost. What came after it would leave a hole, so nothing more of this step is kept.
    broken: bool,
}

/// What comes next.
enum Next {
    /// An event with this seq.
    Seq(u64),
    /// Nothing, for this reason.
    Nothing(Failure),
}

/// Appends a session's events. One per session at a time; the lease outside sees to that.
pub(crate) struct Recorder {
    log: Arc<dyn EventLog>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    pub(crate) folds: Arc<Folds>,
    place: Mutex<Place>,
    open: Mutex<OpenStep>,
    /// Held across an append, so that tasks of one run append one after the other.
    next: tokio::sync::Mutex<Next>,
    over: AtomicBool,
    watch: Arc<dyn Watch>,
}

impl Recorder {
    pub(crate) fn new(
        log: Arc<dyn EventLog>,
        clock: Arc<dyn Clock>,
        session: SessionId,
        folds: Arc<Folds>,
        watch: Arc<dyn Watch>,
    ) -> Self {
        let next_seq = locked(&folds.state).seq + 1;
        Self {
            log,
            clock,
            session,
            folds,
            place: Mutex::default(),
            open: Mutex::default(),
            next: tokio::sync::Mutex::new(Next::Seq(next_seq)),
            over: AtomicBool::new(false),
            watch,
        }
    }

    /// From here on events belong to this run.
    pub(crate) fn enter_run(&self, run: RunId, turn: u32, step: Option<u32>) {
        *locked(&self.place) = Place { run: Some(run), turn: Some(turn), step };
    }

    /// Ends it when dropped: then the run is over, however it ended.
    pub(crate) fn ends_when_dropped(self: &Arc<Self>) -> impl Drop + use<> {
        struct Ends(Arc<Recorder>);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.over.store(true, Ordering::Release);
            }
        }
        Ends(Arc::clone(self))
    }

    /// Shows an event that could not be recorded, so that whoever watches learns how it ended.
    pub(crate) async fn announce(&self, events: Vec<Event>) {
        let batch: Vec<Envelope> = events.into_iter().map(|event| self.envelope(event)).collect();
        self.watch.see(&batch).await;
    }

    fn envelope(&self, event: Event) -> Envelope {
        let mut place = locked(&self.place);
        match &event {
            Event::StepStart(start) => place.step = Some(start.number),
            Event::MessageUser(_)
            | Event::RunStart(_)
            | Event::SettingsChanged(_)
            | Event::Done(_)
            | Event::TurnDone(_)
            | Event::RunDone(_) => place.step = None,
            _ => {}
        }
        Envelope {
            v: ENVELOPE_VERSION,
            seq: None,
            at: self.clock.now_ms(),
            session: Some(self.session.clone()),
            run: place.run.clone(),
            turn: place.turn,
            step: place.step,
            agent: Vec::new(),
            event,
        }
    }

    /// Remembers live pieces of the open step and says what is due to be kept beside the log.
    fn due_pieces(&self, events: &[Event]) -> Option<Vec<OpenBlock>> {
        let mut open = locked(&self.open);
        if open.broken {
            return None;
        }
        for piece in events.iter().filter_map(piece) {
            open.bytes += piece.text.len();
            join_open(&mut open.pieces, piece);
        }
        if open.pieces.is_empty() {
            return None;
        }
        let now = self.clock.now_ms();
        let saved_at = *open.saved_at.get_or_insert(now);
        // A clock may be set back; then the pieces are kept rather early than never.
        let is_time = u128::from(now.abs_diff(saved_at)) >= OPEN_STEP_EVERY.as_millis();
        if !is_time && open.bytes < OPEN_STEP_BYTES {
            return None;
        }
        open.saved_at = Some(now);
        open.bytes = 0;
        Some(std::mem::take(&mut open.pieces))
    }

    /// Appends, takes in and shows. `next` stays what it is only if all of that comes to an end: a task that is dropped
    /// in the middle leaves it open what the log holds.
    async fn append(&self, next: &mut Next, batch: Vec<Envelope>) -> Result<(), Failure> {
        let seq = match next {
            Next::Seq(_) if self.over.load(Ordering::Acquire) => return Err(given_up()),
            Next::Seq(seq) => *seq,
            Next::Nothing(why) => return Err(why.clone()),
        };
        if batch.iter().any(|e| matches!(e.event, Event::StepDone(_) | Event::RunDone(_))) {
            // The step before must be safe before the calls of this one run, and before the end is announced.
            self.log.settle().await?;
        }
        *next = Next::Nothing(given_up());
        let count = batch.len() as u64;
        let ends_step = batch.iter().any(|e| matches!(e.event, Event::StepDone(_) | Event::RunDone(_)));
        let ends_run = batch.iter().any(|e| matches!(e.event, Event::RunDone(_)));
        let durability = durability(&batch);
        let batch = match self.log.append(&self.session, seq, batch, durability).await {
            Ok(batch) => batch,
            Err(error) => {
                let failure = Failure::from(error);
                *next = Next::Nothing(failure.clone());
                return Err(failure);
            }
        };
        if ends_step {
            *locked(&self.open) = OpenStep::default();
        }
        for envelope in &batch {
            self.folds.apply(envelope);
        }
        *next = Next::Seq(seq + count);
        if ends_run {
            self.over.store(true, Ordering::Release);
        }
        self.watch.see(&batch).await;
        Ok(())
    }
}

fn given_up() -> Failure {
    Failure::new(ErrorClass::Interrupted, "The run is over; nothing more of it is recorded or done.")
}

/// A live piece of the open step, as it is kept.
fn piece(event: &Event) -> Option<OpenBlock> {
    let (kind, index, name, text) = match event {
        Event::TextDelta(d) => (OpenKind::Text, d.index, None, &d.text),
        Event::ReasoningDelta(d) => (OpenKind::Reasoning, d.index, None, &d.text),
        Event::ToolInputDelta(d) => (OpenKind::ToolInput, d.index, d.name.clone(), &d.text),
        _ => return None,
    };
    Some(OpenBlock { kind, index, name, text: text.clone() })
}

/// What must survive the loss of power: what a person said and the end, before they are acknowledged; what a model was
/// paid for, before the calls of the next step run. Until then the disk has all the time that calls and model take.
fn durability(events: &[Envelope]) -> Durability {
    let of = |envelope: &Envelope| match envelope.event {
        Event::MessageUser(_) | Event::RunDone(_) => Durability::Power,
        Event::StepDone(_) => Durability::PowerSoon,
        _ => Durability::Process,
    };
    events.iter().map(of).max().unwrap_or(Durability::Process)
}

#[async_trait]
impl Emit for Recorder {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        if events.is_empty() {
            return Ok(());
        }
        let mut next = self.next.lock().await;
        let batch = events.into_iter().map(|event| self.envelope(event)).collect();
        self.append(&mut next, batch).await
    }

    fn show(&self, event: Event) {
        if !self.over.load(Ordering::Acquire) {
            self.watch.glimpse(self.envelope(event));
        }
    }

    async fn flow(&self, events: Vec<Event>) {
        if let Some(pieces) = self.due_pieces(&events)
            && self.log.save_open(&self.session, pieces).await.is_err()
        {
            // A convenience beside the log; the log itself will report a disk that fails.
            locked(&self.open).broken = true;
        }
        if !events.is_empty() && !self.over.load(Ordering::Acquire) {
            let batch: Vec<Envelope> = events.into_iter().map(|event| self.envelope(event)).collect();
            self.watch.see(&batch).await;
        }
    }
}

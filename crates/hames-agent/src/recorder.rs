//! The recorder: the only one that appends.
//!
//! Every durable event goes into the log first, then into the folds, then to whoever watches; only then does the task
//! that emitted it go on. Live events go straight to the watcher. Beside the log it keeps what the open step has shown
//! so far, so that a death in its middle loses no more than the last moments.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_protocol::{
    Durability, ENVELOPE_VERSION, Emit, Envelope, Event, EventLog, Failure, OpenBlock, OpenKind, RunId, SessionId,
    SessionState, Transcript, join_open,
};

use crate::Clock;

/// The open step is kept at least this often while it streams.
const OPEN_STEP_MS: u64 = 2_000;
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
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Folds {
    pub(crate) fn apply(&self, envelope: &Envelope) {
        locked(&self.state).apply(envelope);
        // Children speak under their own path; their words are not this conversation's.
        if envelope.agent.is_empty() {
            locked(&self.transcript).apply(&envelope.event);
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

#[derive(Debug, Default)]
struct OpenStep {
    pieces: Vec<OpenBlock>,
    bytes: usize,
    saved_at: u64,
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
    next_seq: tokio::sync::Mutex<u64>,
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
            next_seq: tokio::sync::Mutex::new(next_seq),
            watch,
        }
    }

    /// From here on events belong to this run.
    pub(crate) fn enter_run(&self, run: RunId, turn: u32, step: Option<u32>) {
        *locked(&self.place) = Place { run: Some(run), turn: Some(turn), step };
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
        for event in events {
            let piece = match event {
                Event::TextDelta(d) => {
                    OpenBlock { kind: OpenKind::Text, index: d.index, name: None, text: d.text.clone() }
                }
                Event::ReasoningDelta(d) => {
                    OpenBlock { kind: OpenKind::Reasoning, index: d.index, name: None, text: d.text.clone() }
                }
                Event::ToolInputDelta(d) => {
                    OpenBlock { kind: OpenKind::ToolInput, index: d.index, name: d.name.clone(), text: d.text.clone() }
                }
                _ => continue,
            };
            open.bytes += piece.text.len();
            join_open(&mut open.pieces, piece);
        }
        let now = self.clock.now_ms();
        if open.saved_at == 0 {
            open.saved_at = now;
        }
        let due = open.bytes >= OPEN_STEP_BYTES || now.saturating_sub(open.saved_at) >= OPEN_STEP_MS;
        if !due || open.pieces.is_empty() {
            return None;
        }
        open.saved_at = now;
        open.bytes = 0;
        Some(std::mem::take(&mut open.pieces))
    }
}

/// What must survive the loss of power before it is acknowledged: what a person said, what a model was paid for, and
/// the end.
fn durability(events: &[Envelope]) -> Durability {
    let power =
        events.iter().any(|e| matches!(e.event, Event::MessageUser(_) | Event::StepDone(_) | Event::RunDone(_)));
    if power { Durability::Power } else { Durability::Process }
}

#[async_trait]
impl Emit for Recorder {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        if events.is_empty() {
            return Ok(());
        }
        let mut next_seq = self.next_seq.lock().await;
        let batch: Vec<Envelope> = events.into_iter().map(|event| self.envelope(event)).collect();
        let durability = durability(&batch);
        if batch.iter().any(|e| matches!(e.event, Event::StepDone(_) | Event::RunDone(_))) {
            *locked(&self.open) = OpenStep::default();
        }
        let batch = self.log.append(&self.session, *next_seq, batch, durability).await?;
        *next_seq += batch.len() as u64;
        for envelope in &batch {
            self.folds.apply(envelope);
        }
        self.watch.see(&batch).await;
        Ok(())
    }

    fn show(&self, event: Event) {
        self.watch.glimpse(self.envelope(event));
    }

    async fn flow(&self, events: Vec<Event>) {
        if let Some(pieces) = self.due_pieces(&events) {
            // The open step is a convenience beside the log; the log itself will report a disk that fails.
            let _ = self.log.save_open(&self.session, pieces).await;
        }
        let batch: Vec<Envelope> = events.into_iter().map(|event| self.envelope(event)).collect();
        self.watch.see(&batch).await;
    }
}

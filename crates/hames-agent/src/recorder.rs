//! The recorder: what stands between a run and the session's journal.
//!
//! Every durable event goes into the log first, then into the folds, then to whoever watches; only then does the task
//! that emitted it go on. Live events go straight to the watcher. Beside the log it keeps what the open step has shown
//! so far, so that a death in its middle loses no more than the last moments.
//!
//! After the first append that fails, after `run.done`, and when its run is dropped it takes nothing more: a tool that
//! was given up on and comes back later is refused, so it does not act either.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hames_protocol::{
    ENVELOPE_VERSION, Emit, Envelope, ErrorClass, Event, Failure, OpenBlock, OpenKind, RunId, join_open,
};

use crate::journal::{Journal, Next, locked};

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

/// Appends a run's events to the session's journal, or those of something else that has to come to one end.
pub(crate) struct Recorder {
    journal: Arc<Journal>,
    place: Mutex<Place>,
    open: Mutex<OpenStep>,
    over: AtomicBool,
    /// Why nothing more is taken, where an append failed or was dropped in its middle.
    broken: Mutex<Option<Failure>>,
    watch: Arc<dyn Watch>,
}

impl Recorder {
    pub(crate) fn new(journal: Arc<Journal>, watch: Arc<dyn Watch>) -> Self {
        Self {
            journal,
            place: Mutex::default(),
            open: Mutex::default(),
            over: AtomicBool::new(false),
            broken: Mutex::default(),
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
            at: self.journal.clock().now_ms(),
            session: Some(self.journal.session().clone()),
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
        let now = self.journal.clock().now_ms();
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

    /// Appends, takes in and shows. Until all of that has come to an end this recorder counts as broken: a task that is
    /// dropped in the middle leaves it open what the log holds, and then nothing more of this run may happen.
    async fn append(&self, next: &mut Next, batch: Vec<Envelope>) -> Result<(), Failure> {
        if self.over.load(Ordering::Acquire) {
            return Err(given_up());
        }
        if let Some(why) = locked(&self.broken).clone() {
            return Err(why);
        }
        *locked(&self.broken) = Some(given_up());
        let ends_step = batch.iter().any(|e| matches!(e.event, Event::StepDone(_) | Event::RunDone(_)));
        let ends_run = batch.iter().any(|e| matches!(e.event, Event::RunDone(_)));
        let batch = match self.journal.append(next, batch).await {
            Ok(batch) => batch,
            Err(error) => {
                let failure = Failure::from(error);
                *locked(&self.broken) = Some(failure.clone());
                return Err(failure);
            }
        };
        if ends_step {
            *locked(&self.open) = OpenStep::default();
        }
        *locked(&self.broken) = None;
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

#[async_trait]
impl Emit for Recorder {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        if events.is_empty() {
            return Ok(());
        }
        let mut next = self.journal.turn().await;
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
            && self.journal.log().save_open(self.journal.session(), pieces).await.is_err()
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

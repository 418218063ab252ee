//! A session's channel: everything that happens in it, in the order of the log, to everybody who watches.
//!
//! The recorder (or, for a session another process writes, whoever reads its log) puts events in; under one lock they
//! reach the glance, the questions and every subscriber's buffer. A subscriber registers under the same lock, so that it
//! knows exactly which events it has to read from the log and which will come by themselves.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_agent::Watch;
use hames_protocol::api::{ApiError, OpenRun};
use hames_protocol::{Approver, Envelope, RunId, SessionId};
use tokio::sync::{Notify, watch};

use crate::buffer::Buffer;
use crate::desk::Desk;
use crate::glance::Glance;
use crate::{Counts, News};

struct Live {
    /// Seq of the last durable event that passed.
    last_seq: u64,
    glance: Glance,
    subscribers: Vec<Arc<Buffer>>,
    closed: bool,
}

/// What subscribers of a session are told.
pub(crate) struct Channel {
    pub(crate) session: SessionId,
    live: Mutex<Live>,
    /// Who has to decide about calls.
    pub(crate) desk: Arc<Desk>,
    /// Subscriptions, those that still read the log among them.
    attached: AtomicUsize,
    /// Whether the session's actor has read it.
    ready: AtomicBool,
    /// Told when somebody comes or goes.
    pub(crate) watchers: Notify,
    counts: Arc<watch::Sender<Counts>>,
}

impl Channel {
    pub(crate) fn new(session: SessionId, last_seq: u64, counts: Arc<watch::Sender<Counts>>) -> Self {
        let live = Live { last_seq, glance: Glance::default(), subscribers: Vec::new(), closed: false };
        Self {
            session,
            live: Mutex::new(live),
            desk: Arc::default(),
            attached: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
            watchers: Notify::new(),
            counts,
        }
    }

    fn locked(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seq of the last event that passed.
    pub(crate) fn last_seq(&self) -> u64 {
        self.locked().last_seq
    }

    /// The run that goes on, and the seq up to which that is known.
    pub(crate) fn open_run(&self) -> (Option<OpenRun>, u64) {
        let live = self.locked();
        (live.glance.open_run(), live.last_seq)
    }

    /// What goes on, for a moment.
    pub(crate) fn glance<T>(&self, look: impl FnOnce(&Glance) -> T) -> T {
        look(&self.locked().glance)
    }

    /// The run that proposed last, once.
    pub(crate) fn take_proposing(&self) -> Option<RunId> {
        self.locked().glance.proposed_in.take()
    }

    /// The session is read: what is asked of it has an answer at once.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// The run that goes on, or the last one.
    pub(crate) fn last_run(&self) -> Option<RunId> {
        self.locked().glance.last_run.clone()
    }

    /// Who decides about calls: whoever answers first.
    pub(crate) fn approver(&self) -> Arc<dyn Approver> {
        Arc::clone(&self.desk) as Arc<dyn Approver>
    }

    /// Whether anybody is attached.
    pub(crate) fn is_watched(&self) -> bool {
        self.attached.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn attached(&self) {
        self.attached.fetch_add(1, Ordering::SeqCst);
        self.watchers.notify_one();
    }

    pub(crate) fn detached(&self) {
        self.attached.fetch_sub(1, Ordering::SeqCst);
        self.watchers.notify_one();
    }

    /// Hands events on. Durable ones that passed before are left out.
    pub(crate) fn publish(&self, batch: &[Envelope]) {
        let mut live = self.locked();
        let waited = live.glance.waits();
        for envelope in batch {
            if let Some(seq) = envelope.seq {
                if seq <= live.last_seq {
                    continue;
                }
                live.last_seq = seq;
            }
            live.glance.take_in(envelope);
            self.desk.take_in(envelope);
            if !live.subscribers.is_empty() {
                let news = News::new(envelope.clone());
                live.subscribers.retain(|subscriber| subscriber.push(&news));
            }
        }
        let waits = live.glance.waits();
        drop(live);
        if waits != waited {
            self.counts.send_modify(|counts| {
                counts.waiting = if waits { counts.waiting + 1 } else { counts.waiting.saturating_sub(1) };
            });
        }
    }

    /// Begins to hand events to this buffer, for somebody who has everything up to `cursor`. Gives the open steps so far;
    /// `None` where more than that has passed already.
    pub(crate) fn register(&self, buffer: &Arc<Buffer>, cursor: u64) -> Option<Vec<News>> {
        let mut live = self.locked();
        if live.last_seq > cursor {
            return None;
        }
        if live.closed {
            buffer.end(None);
        } else {
            live.subscribers.push(Arc::clone(buffer));
        }
        Some(live.glance.steps.iter().filter_map(|step| step.snapshot()).map(News::new).collect())
    }

    pub(crate) fn unregister(&self, buffer: &Arc<Buffer>) {
        self.locked().subscribers.retain(|other| !Arc::ptr_eq(other, buffer));
    }

    /// Takes in what passed before the channel was there, where nothing of it is known yet; nobody is told of it.
    pub(crate) fn recall(&self, earlier: &[Envelope]) {
        let mut live = self.locked();
        let waited = live.glance.waits();
        earlier.iter().for_each(|envelope| live.glance.take_in(envelope));
        let waits = live.glance.waits();
        drop(live);
        if waits && !waited {
            self.counts.send_modify(|counts| counts.waiting += 1);
        }
    }

    /// Sends every subscriber away.
    pub(crate) fn close(&self, why: Option<ApiError>) {
        let mut live = self.locked();
        live.closed = true;
        live.subscribers.drain(..).for_each(|subscriber| subscriber.end(why.clone()));
        let waits = live.glance.waits();
        live.glance = Glance::default();
        drop(live);
        if waits {
            self.counts.send_modify(|counts| counts.waiting = counts.waiting.saturating_sub(1));
        }
    }
}

#[async_trait]
impl Watch for Channel {
    async fn see(&self, batch: &[Envelope]) {
        self.publish(batch);
    }
    fn glimpse(&self, live: Envelope) {
        self.publish(&[live]);
    }
}

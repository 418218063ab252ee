//! A session's channel: everything that happens in it, in the order of the log, to everybody who watches.
//!
//! The recorder (or, for a session another process writes, whoever reads its log) puts events in; under one lock they
//! reach the glance, the questions and every subscriber's buffer. A subscriber registers under the same lock, so that it
//! knows exactly which events it has to read from the log and which will come by themselves.
//!
//! Live pieces that come close together wait a moment here and are handed on as one, the same to all; whatever else passes
//! goes at once, behind what waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use hames_agent::Watch;
use hames_protocol::api::{ApiError, OpenRun};
use hames_protocol::{Approver, Envelope, RunId, SessionId};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::buffer::Buffer;
use crate::desk::Desk;
use crate::glance::Glance;
use crate::pieces::{EVERY, Held, text_of};
use crate::{Counts, News};

struct Live {
    /// Seq of the last durable event that passed.
    last_seq: u64,
    glance: Glance,
    subscribers: Vec<Arc<Buffer>>,
    /// Live pieces that subscribers are still to get.
    held: Held,
    /// Whether a task sees to it that they do.
    is_timed: bool,
    closed: bool,
}

impl Live {
    /// Hands an event on to whoever watches, or keeps it for a moment; says whether a task has to see to the latter.
    fn hand_on(&mut self, envelope: &Envelope, now: Instant) -> bool {
        if self.subscribers.is_empty() {
            return false;
        }
        if text_of(&envelope.event).is_none() {
            self.release(now);
            self.held.begin_anew();
            self.push(&News::new(envelope.clone()));
            return false;
        }
        self.held.keep(envelope, now);
        if self.held.due().is_some_and(|due| due <= now) {
            self.release(now);
            return false;
        }
        !std::mem::replace(&mut self.is_timed, true)
    }

    /// Hands on what is held.
    fn release(&mut self, now: Instant) {
        for piece in self.held.release(now) {
            self.push(&News::new(piece));
        }
    }

    fn push(&mut self, news: &News) {
        self.subscribers.retain(|subscriber| subscriber.push(news));
    }
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
    /// Where its tasks run: events come from threads of tools as well.
    runtime: Handle,
    me: Weak<Channel>,
}

impl Channel {
    /// A channel whose tasks run in the runtime of whoever makes it.
    pub(crate) fn new(session: SessionId, last_seq: u64, counts: Arc<watch::Sender<Counts>>) -> Arc<Self> {
        let live = Live {
            last_seq,
            glance: Glance::default(),
            subscribers: Vec::new(),
            held: Held::default(),
            is_timed: false,
            closed: false,
        };
        Arc::new_cyclic(|me| Self {
            session,
            live: Mutex::new(live),
            desk: Arc::default(),
            attached: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
            watchers: Notify::new(),
            counts,
            runtime: Handle::current(),
            me: me.clone(),
        })
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
        let now = Instant::now();
        let has_to_be_timed = self.change(|live| {
            let mut has_to_be_timed = false;
            for envelope in batch {
                if let Some(seq) = envelope.seq {
                    if seq <= live.last_seq {
                        continue;
                    }
                    live.last_seq = seq;
                }
                live.glance.take_in(envelope);
                self.desk.take_in(envelope);
                has_to_be_timed |= live.hand_on(envelope, now);
            }
            has_to_be_timed
        });
        if has_to_be_timed {
            self.runtime.spawn(release_in_time(self.me.clone()));
        }
    }

    /// Changes what is known of the session, and counts it among those that wait for a person, or no more.
    fn change<T>(&self, change: impl FnOnce(&mut Live) -> T) -> T {
        let mut live = self.locked();
        let waited = live.glance.waits();
        let done = change(&mut live);
        let waits = live.glance.waits();
        drop(live);
        if waits != waited {
            self.counts.send_modify(|counts| {
                counts.waiting = if waits { counts.waiting + 1 } else { counts.waiting.saturating_sub(1) };
            });
        }
        done
    }

    /// Begins to hand events to this buffer, for somebody who has everything up to `cursor`. Gives the open steps so far;
    /// `None` where more than that has passed already.
    pub(crate) fn register(&self, buffer: &Arc<Buffer>, cursor: u64) -> Option<Vec<News>> {
        let mut live = self.locked();
        if live.last_seq > cursor {
            return None;
        }
        // It is in the snapshots already.
        live.release(Instant::now());
        if live.closed {
            buffer.end(None);
        } else {
            live.subscribers.push(Arc::clone(buffer));
        }
        Some(live.glance.steps.iter().filter_map(|step| step.snapshot()).map(News::new).collect())
    }

    pub(crate) fn unregister(&self, buffer: &Arc<Buffer>) {
        let mut live = self.locked();
        live.subscribers.retain(|other| !Arc::ptr_eq(other, buffer));
        if live.subscribers.is_empty() {
            live.held = Held::default();
        }
    }

    /// Hands on what is held and due. Gives when to look again; `None` where nothing is held.
    fn release_due(&self) -> Option<Instant> {
        let (mut live, now) = (self.locked(), Instant::now());
        if live.held.due().is_some_and(|due| due <= now) {
            live.release(now);
            // While a stream goes on, one task sees to all of it.
            return Some(now + EVERY);
        }
        let due = live.held.due();
        live.is_timed = due.is_some();
        due
    }

    /// Takes in what passed before the channel was there, where nothing of it is known yet; nobody is told of it.
    pub(crate) fn recall(&self, earlier: &[Envelope]) {
        self.change(|live| earlier.iter().for_each(|envelope| live.glance.take_in(envelope)));
    }

    /// Sends every subscriber away.
    pub(crate) fn close(&self, why: Option<ApiError>) {
        self.change(|live| {
            live.closed = true;
            live.release(Instant::now());
            live.subscribers.drain(..).for_each(|subscriber| subscriber.end(why.clone()));
            live.glance = Glance::default();
        });
    }
}

/// Lets live pieces go on in time, until none are held.
async fn release_in_time(channel: Weak<Channel>) {
    while let Some(at) = channel.upgrade().and_then(|channel| channel.release_due()) {
        tokio::time::sleep_until(at).await;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hames_protocol::{Event, StepStart, TextDelta};

    use super::*;

    fn channel() -> Arc<Channel> {
        Channel::new("s".into(), 0, Arc::new(watch::Sender::new(Counts::default())))
    }

    fn step_start(seq: u64) -> Envelope {
        let start = StepStart {
            number: 1,
            fingerprint: String::new(),
            bytes: 0,
            changed_at: None,
            changed_why: "first".into(),
            input_estimate: None,
        };
        Envelope { seq: Some(seq), ..Envelope::detached(1, start.into()) }
    }

    fn step_done(seq: u64) -> Envelope {
        Envelope { seq: Some(seq), ..Envelope::detached(1, Event::step_done_for_tests("stop")) }
    }

    fn piece(offset: u64, text: &str) -> Envelope {
        Envelope::detached(1, Event::TextDelta(TextDelta { index: 0, offset, text: text.into() }))
    }

    /// What waits for a subscriber: the seq of a durable event, the text of a piece.
    async fn taken(buffer: &Buffer) -> Vec<String> {
        let wait = Duration::from_secs(60);
        let news = tokio::time::timeout(wait, buffer.take()).await.map_or_else(|_| Default::default(), Result::unwrap);
        let shown = |news: &News| {
            let envelope = news.envelope();
            envelope.seq.map_or_else(|| text_of(&envelope.event).unwrap_or("?").to_owned(), |seq| seq.to_string())
        };
        news.iter().map(shown).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_that_come_together_go_together_and_ahead_of_what_is_durable() {
        let (channel, first, second) = (channel(), Arc::default(), Arc::default());
        channel.register(&first, 0).unwrap();
        channel.register(&second, 0).unwrap();
        channel.publish(&[step_start(1), piece(0, "a")]);
        assert_eq!(taken(&first).await, ["1", "a"], "the first goes at once");
        let began = Instant::now();
        channel.publish(&[piece(1, "b")]);
        channel.publish(&[piece(2, "c"), piece(3, "d")]);
        assert_eq!((taken(&first).await, began.elapsed()), (vec!["bcd".to_owned()], EVERY));
        channel.publish(&[piece(4, "e"), step_done(2)]);
        assert_eq!((taken(&first).await, began.elapsed()), (vec!["e".to_owned(), "2".to_owned()], EVERY));
        assert_eq!(taken(&first).await, [""; 0]);
        assert_eq!(taken(&second).await, ["1", "abcde", "2"], "who reads later gets the same, joined once more");
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "nobody wakes for nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_while_pieces_wait_has_them_in_the_snapshot_and_nobody_has_them_twice() {
        let (channel, first, second) = (channel(), Arc::default(), Arc::default());
        channel.register(&first, 0).unwrap();
        channel.publish(&[step_start(1), piece(0, "a"), piece(1, "b")]);
        let snapshots = channel.register(&second, 1).unwrap();
        let Event::StepSnapshot(snapshot) = &snapshots[0].envelope().event else { panic!("no snapshot") };
        assert_eq!(snapshot.blocks[0].text, "ab");
        channel.publish(&[piece(2, "c")]);
        assert_eq!(taken(&first).await, ["1", "ab"]);
        assert_eq!((taken(&first).await, taken(&second).await), (vec!["c".to_owned()], vec!["c".to_owned()]));
        // What waits for somebody who goes is nobody's; whoever comes next has it in the snapshot.
        channel.publish(&[piece(3, "d"), piece(4, "e")]);
        channel.unregister(&first);
        channel.unregister(&second);
        let third = Arc::default();
        let snapshots = channel.register(&third, 1).unwrap();
        let Event::StepSnapshot(snapshot) = &snapshots[0].envelope().event else { panic!("no snapshot") };
        assert_eq!(snapshot.blocks[0].text, "abcde");
        channel.publish(&[step_done(2)]);
        assert_eq!(taken(&third).await, ["2"]);
    }
}

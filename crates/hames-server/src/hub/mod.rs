//! The hub: every operation of the API, without a wire.

mod sessions;
mod system;
mod tails;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hames_protocol::api::{ApiErrorCode, StopServer};
use hames_protocol::{LogError, SessionId, SessionState};
use hames_store::{SessionInfo, Store};
use tokio::sync::{mpsc, oneshot, watch};

use crate::Host;
use crate::actor::{Actor, Job};
use crate::channel::Channel;
use crate::mentions::Mentions;
use crate::refusal::{Answer, blocking, refuse, refused};

pub(crate) use tails::Following;
use tails::Tails;

/// Requests that may wait for one session.
const MAILBOX: usize = 256;

/// What can be set of a hub.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// What this process calls itself where somebody else wants a session it holds.
    pub holder: String,
    /// How long a session stays open that nobody watches and in which nothing happens.
    pub close_after: Duration,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self { holder: "hames server".into(), close_after: Duration::from_secs(60) }
    }
}

/// What goes on in a hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Subscriptions.
    pub clients: u32,
    /// Sessions that are open.
    pub sessions: u32,
    /// Runs that go on, those that wait for a person among them.
    pub runs: u32,
    /// Runs that wait for a person.
    pub waiting: u32,
}

impl Counts {
    /// Whether nobody watches and nothing runs.
    pub fn is_idle(self) -> bool {
        self.clients == 0 && self.runs == 0
    }
}

/// A session that is open.
struct Entry {
    channel: Arc<Channel>,
    mailbox: mpsc::Sender<Job>,
}

/// What the hub and its actors share.
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) options: HubOptions,
    pub(crate) counts: Arc<watch::Sender<Counts>>,
    pub(crate) mentions: Mentions,
    entries: Mutex<HashMap<SessionId, Entry>>,
    /// Sessions that other processes write.
    pub(crate) tails: Tails,
    stopping: AtomicBool,
    stopped: watch::Sender<bool>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Takes a session off the list if `leaves` says so, under the lock that whoever opens it takes too.
    pub(crate) fn leave(&self, id: &SessionId, leaves: impl FnOnce() -> bool) -> bool {
        let mut entries = locked(&self.entries);
        let left = leaves();
        if left {
            entries.remove(id);
            self.count_sessions(entries.len());
        }
        left
    }

    /// Takes a session off the list.
    pub(crate) fn forget(&self, id: &SessionId) {
        self.leave(id, || true);
    }

    fn count_sessions(&self, sessions: usize) {
        self.counts.send_modify(|counts| counts.sessions = u32::try_from(sessions).unwrap_or(u32::MAX));
    }

    /// What a session is, from its log's outline: for one that nobody here has read yet and in which nothing has to be
    /// done. Reading it whole takes the longer the longer it is, and nobody who only looks should wait for that.
    pub(crate) async fn outline(&self, id: &SessionId) -> Answer<Option<(SessionInfo, SessionState)>> {
        if locked(&self.entries).get(id).is_some_and(|entry| entry.channel.is_ready()) {
            return Ok(None);
        }
        let (store, wanted) = (self.store.clone(), id.clone());
        // An actor that is just reading it holds it already.
        let me = (std::process::id(), self.options.holder.clone());
        let read = move || {
            let found = store.session(&wanted)?.zip(store.outline(&wanted)?);
            let held = store.holder(&wanted).is_some_and(|used| (used.pid, used.holder) != me);
            found.ok_or(LogError::NoSession(wanted)).map(|found| (found, held))
        };
        let (found, held) = blocking(read).await?.map_err(refused)?;
        // What a death left open is closed first, and what waits for nobody goes on.
        let rests = found.1.open_run.is_none() && (found.1.pending.is_empty() || found.1.paused);
        Ok(Some(found).filter(|_| rests && !held))
    }

    /// Who holds a session, by its lock file.
    pub(crate) async fn holder_of(&self, id: &SessionId) -> Option<String> {
        let (store, id) = (self.store.clone(), id.clone());
        let used = blocking(move || store.holder(&id)).await.ok()??;
        Some(named_holder(&used))
    }

    /// Gives a session a better name, unless it has another by now.
    pub(crate) async fn rename_unless_renamed(self: &Arc<Self>, id: &SessionId, from: String, better: String) {
        let better = self.in_session(id, move |actor| Box::pin(async move { actor.improve(&from, &better).await }));
        if let Err(why) = better.await {
            tracing::debug!(target: "hames::server", session = %id, message = %why.message, "no better name");
        }
    }

    /// Hands work to a session's actor and gives its answer. It is done to its end also where nobody waits any more.
    pub(crate) async fn in_session<T: Send + 'static>(
        self: &Arc<Self>,
        id: &SessionId,
        work: impl for<'a> FnOnce(&'a mut Actor) -> Pin<Box<dyn Future<Output = Answer<T>> + Send + 'a>> + Send + 'static,
    ) -> Answer<T> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |actor| {
            Box::pin(async move {
                let _ = tell.send(work(actor).await);
            })
        });
        self.post(id, job).await?;
        let gone = || refuse(ApiErrorCode::Internal, "The session was closed before this was done. Try it again.");
        told.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Puts work into a session's mailbox, opening the session where it is not.
    async fn post(self: &Arc<Self>, id: &SessionId, job: Job) -> Answer<()> {
        if let Some(entry) = locked(&self.entries).get(id) {
            return send(entry, job);
        }
        let last_seq = self.known(id).await?;
        let mut entries = locked(&self.entries);
        let entry = self.open(&mut entries, id, last_seq).ok_or_else(stopping)?;
        send(entry, job)
    }

    /// Seq of the last event of a session that exists.
    async fn known(&self, id: &SessionId) -> Answer<u64> {
        let (store, id) = (self.store.clone(), id.clone());
        blocking(move || store.last_seq(&id)).await?.map_err(refused)
    }

    /// The entry of a session, with an actor of its own; `None` while the server stops.
    fn open<'a>(
        self: &Arc<Self>,
        entries: &'a mut HashMap<SessionId, Entry>,
        id: &SessionId,
        last_seq: u64,
    ) -> Option<&'a Entry> {
        if !entries.contains_key(id) {
            if self.is_stopping() && *self.stopped.borrow() {
                return None;
            }
            let channel = Channel::new(id.clone(), last_seq, Arc::clone(&self.counts));
            let (mailbox, jobs) = mpsc::channel(MAILBOX);
            let actor = Actor::new(Arc::clone(self), id.clone(), Arc::clone(&channel));
            tokio::spawn(actor.live(jobs));
            entries.insert(id.clone(), Entry { channel, mailbox });
            self.count_sessions(entries.len());
        }
        entries.get(id)
    }

    /// The channel of a session, which is opened for it.
    pub(crate) async fn channel(self: &Arc<Self>, id: &SessionId) -> Answer<Arc<Channel>> {
        if let Some(entry) = locked(&self.entries).get(id) {
            entry.channel.attached();
            return Ok(Arc::clone(&entry.channel));
        }
        let last_seq = self.known(id).await?;
        let mut entries = locked(&self.entries);
        let entry = self.open(&mut entries, id, last_seq).ok_or_else(stopping)?;
        // Under the lock: the session cannot close before whoever asked for it is counted.
        entry.channel.attached();
        Ok(Arc::clone(&entry.channel))
    }

    /// Sessions that are open here.
    fn open_sessions(&self) -> Vec<(SessionId, Arc<Channel>)> {
        locked(&self.entries).iter().map(|(id, entry)| (id.clone(), Arc::clone(&entry.channel))).collect()
    }
}

fn send(entry: &Entry, job: Job) -> Answer<()> {
    entry
        .mailbox
        .try_send(job)
        .map_err(|_| refuse(ApiErrorCode::Busy, "Too many requests wait for this session. Try it again in a moment."))
}

pub(crate) fn stopping() -> hames_protocol::api::ApiError {
    refuse(ApiErrorCode::Stopping, "The server is stopping. Start it again and try once more.")
}

/// How many runs go on, in words.
fn go_on(runs: u32) -> String {
    if runs == 1 { "1 run goes on".into() } else { format!("{runs} runs go on") }
}

/// A holder as people read it.
fn named_holder(used: &hames_store::InUse) -> String {
    match used.holder.is_empty() {
        true => format!("process {}", used.pid),
        false => format!("{} (process {})", used.holder, used.pid),
    }
}

/// All sessions of a home, for clients. Clones are the same hub.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

impl Hub {
    /// A hub over a store.
    pub fn new(store: Store, host: Arc<dyn Host>, options: HubOptions) -> Self {
        let inner = Inner {
            store,
            host,
            options,
            counts: Arc::new(watch::Sender::new(Counts::default())),
            mentions: Mentions::default(),
            entries: Mutex::default(),
            tails: Tails::default(),
            stopping: AtomicBool::new(false),
            stopped: watch::Sender::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The store it stands on.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The host it was given.
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.inner.host
    }

    /// What goes on now, and a notice whenever that changes.
    pub fn counts(&self) -> watch::Receiver<Counts> {
        self.inner.counts.subscribe()
    }

    /// Whether nobody watches and nothing runs.
    pub fn is_idle(&self) -> bool {
        self.inner.counts.borrow().is_idle()
    }

    /// Whether a stop was asked for.
    pub fn is_stopping(&self) -> bool {
        self.inner.is_stopping()
    }

    /// Asks for the stop of the server. Returns once it is decided; [`stopped`](Self::stopped) says when it is done. From
    /// then on no message is taken in and no run begins; what waits is still there when the server starts again.
    pub async fn stop(&self, how: StopServer) -> Answer<()> {
        let runs = self.inner.counts.borrow().runs;
        if runs > 0 && !how.force && !how.when_idle {
            let text = format!("{}. Wait for that, or stop with force, which ends it.", go_on(runs));
            return Err(refuse(ApiErrorCode::Busy, text));
        }
        let was_stopping = self.inner.stopping.swap(true, Ordering::SeqCst);
        if was_stopping && !how.force {
            return Ok(());
        }
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            if !how.force {
                // Whoever counts is not gone before the hub is.
                let _ = inner.counts.subscribe().wait_for(|counts| counts.runs == 0).await;
            }
            let sessions: Vec<SessionId> = inner.open_sessions().into_iter().map(|(id, _)| id).collect();
            let shut = sessions.into_iter().map(|id| {
                let inner = Arc::clone(&inner);
                tokio::spawn(async move {
                    let done = inner.in_session(&id, |actor| {
                        Box::pin(async move {
                            actor.shut().await;
                            Ok(())
                        })
                    });
                    done.await
                })
            });
            for shut in shut.collect::<Vec<_>>() {
                let _ = shut.await;
            }
            inner.stopped.send_replace(true);
        });
        Ok(())
    }

    /// Returns when a stop that was asked for is done: no run goes on, every session is closed.
    pub async fn stopped(&self) {
        let _ = self.inner.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }
}

//! The actor of an open session: one task, one mailbox, one lease.
//!
//! Everything that changes a session goes through here, one thing after the other; only its run goes on beside. The
//! actor owns the session while no run does, and its journal always.

mod decide;
mod deliver;
mod foreign;
mod manage;
mod run;
mod window;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use hames_agent::{Journal, Ports, Session, Watch};
use hames_protocol::api::{Aborted, ApiError, ApiErrorCode, RunTerms, SessionCompacted};
use hames_protocol::{Envelope, Event, LogError, PendingId, RunResult, SessionId, SessionState, Settings};
use hames_store::Lease;
use hames_workspace::files::remove_staged_beside;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use self::foreign::Foreign;
pub(crate) use self::window::{Look, seen};
use crate::channel::Channel;
use crate::hub::{Inner, stopping};
use crate::inbox::RunInbox;
use crate::refusal::{Answer, blocking, refuse, refused};

/// Events read at once.
const PAGE: usize = 500;

/// Something to be done in a session.
pub(crate) type Job = Box<dyn for<'a> FnOnce(&'a mut Actor) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> + Send>;

/// A session this process may write.
struct Own {
    /// Lent to the run while one goes on.
    session: Option<Session>,
    journal: Arc<Journal>,
    lease: Lease,
}

/// Who stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoppedBy {
    Person,
    Server,
}

/// How what had the session came to its end.
enum Ended {
    Run(RunResult),
    Compacted(Answer<SessionCompacted>),
}

/// What has the session: the run that goes on, or a compaction by hand.
struct Running {
    task: JoinHandle<(Session, Ended)>,
    inbox: Arc<RunInbox>,
    abort: CancellationToken,
    /// What `run.done` says once `abort` ended it.
    aborted_code: Arc<AtomicI32>,
    stopped: Option<StoppedBy>,
    /// Told how it ended.
    aborting: Vec<oneshot::Sender<Answer<Aborted>>>,
    /// The session's own settings when it began.
    settings: Settings,
    /// Told what a compaction did.
    compacting: Option<oneshot::Sender<Answer<SessionCompacted>>>,
}

/// The actor.
pub(crate) struct Actor {
    pub(crate) hub: Arc<Inner>,
    pub(crate) id: SessionId,
    pub(crate) channel: Arc<Channel>,
    own: Option<Own>,
    foreign: Option<Foreign>,
    run: Option<Running>,
    /// What was said about runs that have not begun.
    terms: HashMap<PendingId, RunTerms>,
    /// The session is gone.
    gone: bool,
}

/// What the actor wakes up for.
enum Woken {
    Ended(Result<(Session, Ended), JoinError>),
    Asked(Option<Job>),
    /// The log of a foreign session has gone on.
    Moved,
    /// Its lease is tried.
    Try,
    Idle,
    Watchers,
}

impl Actor {
    pub(crate) fn new(hub: Arc<Inner>, id: SessionId, channel: Arc<Channel>) -> Self {
        Self { hub, id, channel, own: None, foreign: None, run: None, terms: HashMap::new(), gone: false }
    }

    /// Lives until nobody needs the session any more.
    pub(crate) async fn live(mut self, mut mailbox: mpsc::Receiver<Job>) {
        // What stands in the way is said to whoever asks for something.
        let _ = self.open().await;
        self.channel.set_ready();
        loop {
            match self.woken(&mut mailbox).await {
                Woken::Ended(ended) => self.after_run(ended).await,
                Woken::Asked(Some(job)) => job(&mut self).await,
                Woken::Asked(None) => return,
                Woken::Moved => self.tail().await,
                Woken::Try => self.try_again().await,
                Woken::Watchers => {}
                Woken::Idle => {
                    if self.leave(&mailbox) {
                        return;
                    }
                }
            }
            if self.gone {
                self.hub.forget(&self.id);
                mailbox.close();
                while let Some(job) = mailbox.recv().await {
                    job(&mut self).await;
                }
                return;
            }
        }
    }

    async fn woken(&mut self, mailbox: &mut mpsc::Receiver<Job>) -> Woken {
        let is_watched = self.channel.is_watched();
        let foreign = self.followed(is_watched).map(|(moved, try_at)| (moved, try_at.into()));
        let (moved, try_at) = foreign.unzip();
        let moved = async {
            match moved {
                Some(moved) => moved.notified().await,
                None => std::future::pending().await,
            }
        };
        let try_again = async {
            match try_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let idles = self.run.is_none() && !is_watched;
        let watchers = self.channel.watchers.notified();
        let run = &mut self.run;
        let ended = async {
            match run {
                Some(run) => (&mut run.task).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = ended => Woken::Ended(ended),
            job = mailbox.recv() => Woken::Asked(job),
            () = watchers => Woken::Watchers,
            () = moved => Woken::Moved,
            () = try_again => Woken::Try,
            () = tokio::time::sleep(self.hub.options.close_after), if idles => Woken::Idle,
        }
    }

    /// Closes the session, unless somebody has come in this very moment.
    fn leave(&mut self, mailbox: &mpsc::Receiver<Job>) -> bool {
        let hub = Arc::clone(&self.hub);
        hub.leave(&self.id, || {
            let leaves = mailbox.is_empty() && self.run.is_none() && !self.channel.is_watched();
            if leaves {
                self.channel.close(None);
                // The lease goes under the hub's lock, so that whoever opens the session next finds it free.
                self.own = None;
            }
            leaves
        })
    }

    /// Makes the session this process's own: takes its lease, closes what a death left open, and lets what waits go on.
    pub(crate) async fn open(&mut self) -> Answer<()> {
        if self.own.is_some() {
            return Ok(());
        }
        if self.gone {
            return Err(self.why_gone());
        }
        let crashed = match self.take_lease().await? {
            Ok(lease) => self.resume(lease).await?,
            Err(why) => {
                self.watch_foreign(why.clone()).await?;
                return Err(why);
            }
        };
        if crashed {
            self.stand_still().await;
        }
        self.go_on().await;
        Ok(())
    }

    async fn take_lease(&self) -> Answer<Result<Lease, ApiError>> {
        let (store, id, holder) = (self.hub.store.clone(), self.id.clone(), self.hub.options.holder.clone());
        match blocking(move || store.lease(&id, &holder)).await? {
            Ok(lease) => Ok(Ok(lease)),
            Err(LogError::Busy(text)) => {
                let who = self.hub.holder_of(&self.id).await;
                let why = refuse(ApiErrorCode::HeldElsewhere, format!("{text}."));
                Ok(Err(who.into_iter().fold(why, ApiError::by)))
            }
            Err(error) => Err(refused(error)),
        }
    }

    /// Replays the session; says whether a run was found that its process did not survive.
    async fn resume(&mut self, lease: Lease) -> Answer<bool> {
        let ports = Ports { log: self.hub.store.log(), clock: self.hub.host.clock() };
        let session = Session::resume(ports, self.id.clone()).await;
        let session = session.map_err(crate::refusal::failed)?;
        let cut = session.cut_changes();
        if !cut.is_empty() {
            blocking(move || cut.iter().for_each(|file| remove_staged_beside(file))).await?;
        }
        self.own = Some(Own { journal: session.journal(), session: Some(session), lease });
        self.foreign = None;
        let recovered = self.publish_log().await?;
        Ok(recovered.iter().any(|e| matches!(&e.event, Event::Done(done) if done.reason.as_deref() == Some("crash"))))
    }

    /// Hands on what the log holds and nobody has been told of.
    async fn publish_log(&self) -> Answer<Vec<Envelope>> {
        let mut all = Vec::new();
        loop {
            let known = self.channel.last_seq();
            let page = self.hub.store.log().read(&self.id, known, PAGE).await.map_err(refused)?;
            if page.is_empty() {
                return Ok(all);
            }
            self.channel.publish(&page);
            all.extend(page);
        }
    }

    /// The journal of a session that this process may write.
    async fn journal(&mut self) -> Answer<Arc<Journal>> {
        self.open().await?;
        self.owned()
    }

    /// The journal, where the session is open already.
    fn owned(&self) -> Answer<Arc<Journal>> {
        match (&self.own, &self.foreign) {
            (Some(own), _) => Ok(Arc::clone(&own.journal)),
            (None, Some(foreign)) => Err(foreign.why.clone()),
            (None, None) => Err(self.why_gone()),
        }
    }

    /// Why nothing can be done with it here any more: it was deleted, or the server stops.
    fn why_gone(&self) -> ApiError {
        match self.hub.is_stopping() {
            true => stopping(),
            false => refused(LogError::NoSession(self.id.clone())),
        }
    }

    /// The session as it is, whoever writes it.
    pub(crate) async fn state(&mut self) -> Answer<SessionState> {
        match self.open().await {
            Err(why) if why.code == ApiErrorCode::HeldElsewhere => {
                let news = self.publish_log().await?;
                let Some(foreign) = &mut self.foreign else { return Err(why) };
                foreign.take_in(&news);
                Ok(foreign.state.clone())
            }
            Err(why) => Err(why),
            Ok(()) => match &self.own {
                Some(own) => Ok(own.journal.state().clone()),
                None => Err(refused(LogError::NoSession(self.id.clone()))),
            },
        }
    }

    /// Records beside whatever goes on; everybody who watches sees it.
    async fn record(&mut self, events: Vec<Event>) -> Answer<u64> {
        let watch = self.watch();
        self.owned()?.record(events, &watch).await.map_err(refused)
    }

    fn watch(&self) -> Arc<dyn Watch> {
        Arc::clone(&self.channel) as Arc<dyn Watch>
    }

    /// Who else holds the session.
    pub(crate) fn held_by(&self) -> Option<String> {
        self.foreign.as_ref().map(|foreign| foreign.why.by.clone().unwrap_or_else(|| "another process".into()))
    }

    /// Refuses what cannot be done beside a run.
    fn not_beside_a_run(&self, what: &str) -> Answer<()> {
        match self.run {
            Some(_) => Err(refuse(
                ApiErrorCode::Busy,
                format!("A run goes on; {what} is possible once it has ended. Wait for it, or stop it."),
            )),
            None => Ok(()),
        }
    }

    /// Ends what goes on and closes the session: the server stops.
    pub(crate) async fn shut(&mut self) {
        if let Some(run) = &mut self.run {
            run.stopped.get_or_insert(StoppedBy::Server);
            run.abort.cancel();
            let ended = (&mut run.task).await;
            self.after_run(ended).await;
        }
        self.channel.close(None);
        self.own = None;
        self.gone = true;
    }
}

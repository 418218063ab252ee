//! The connection: found, lost, found again, started where there is none, and not where somebody stopped it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use hames_client::{Client, ClientError, Finder};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::{Input, Link};

/// How long a server that was lost may take to come back before one is started: somebody may be restarting it, and knows
/// how it was started.
const COMES_BACK: Duration = Duration::from_millis(700);
const LOOK: Duration = Duration::from_millis(40);
/// Between two looks for a server that was stopped: whoever stopped it may start it again.
const SELDOM: Duration = Duration::from_secs(3);
/// Before the next attempt where none could be started.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Why there is no connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Begin,
    Lost,
    Stopped,
}

/// The way to the server of a home.
pub(super) struct Links {
    finder: Finder,
    told: mpsc::Sender<Input>,
    client: watch::Sender<Option<Client>>,
    is_healing: AtomicBool,
    /// The process that was connected to last.
    pid: AtomicU32,
    /// Requests of a person that wait for a server.
    waiting: AtomicUsize,
    wanted: Notify,
}

/// Counts a request that waits, for as long as it does.
struct Waits<'a>(&'a Links);

impl<'a> Waits<'a> {
    fn begin(links: &'a Links) -> Self {
        links.waiting.fetch_add(1, Ordering::SeqCst);
        links.wanted.notify_one();
        Self(links)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Links {
    /// Begins to connect.
    pub(super) fn start(finder: Finder, told: mpsc::Sender<Input>) -> Arc<Links> {
        let links = Arc::new(Links {
            finder,
            told,
            client: watch::Sender::new(None),
            is_healing: AtomicBool::new(false),
            pid: AtomicU32::new(0),
            waiting: AtomicUsize::new(0),
            wanted: Notify::new(),
        });
        links.heal(Since::Begin);
        links
    }

    /// The client, as soon as there is one. A server that was stopped is started only for what is done `by_hand`.
    pub(super) async fn client(&self, by_hand: bool) -> Option<Client> {
        let _waits = by_hand.then(|| Waits::begin(self));
        let mut clients = self.client.subscribe();
        let found = clients.wait_for(Option::is_some).await.ok()?;
        found.clone()
    }

    /// It is gone: says so once, and looks for it.
    pub(super) async fn lost(self: &Arc<Self>, why: &str) {
        self.gone(Link::Lost(why.to_owned()), Since::Lost).await;
    }

    /// It said that it stops: says so, and waits until it is wanted again, or there again.
    pub(super) async fn stopped(self: &Arc<Self>) {
        self.gone(Link::Stopped, Since::Stopped).await;
    }

    async fn gone(self: &Arc<Self>, link: Link, since: Since) {
        if self.client.send_replace(None).is_some() {
            let _ = self.told.send(Input::Link(link)).await;
            self.heal(since);
        }
    }

    fn heal(self: &Arc<Self>, since: Since) {
        if self.is_healing.swap(true, Ordering::SeqCst) {
            return;
        }
        let links = Arc::clone(self);
        tokio::spawn(async move {
            links.until_there(since).await;
            links.is_healing.store(false, Ordering::SeqCst);
        });
    }

    async fn until_there(&self, since: Since) {
        let begun = Instant::now();
        let (mut wait, mut said) = (FIRST_WAIT, String::new());
        loop {
            let may_come_back = since != Since::Begin && begun.elapsed() < COMES_BACK;
            let is_unwanted = since == Since::Stopped && self.waiting.load(Ordering::SeqCst) == 0;
            let found = match may_come_back || is_unwanted {
                true => self.finder.connect().await,
                false => self.finder.connect_or_start().await,
            };
            match found {
                // It answers until it has ended.
                Ok(found) if since == Since::Stopped && found.health.pid == self.pid.load(Ordering::SeqCst) => {
                    tokio::time::sleep(LOOK).await;
                }
                Ok(found) => {
                    self.pid.store(found.health.pid, Ordering::SeqCst);
                    let notice = found.note();
                    self.client.send_replace(Some(found.client));
                    let _ = self.told.send(Input::Link(Link::Up { notice })).await;
                    return;
                }
                Err(ClientError::Unreachable { .. }) if may_come_back => tokio::time::sleep(LOOK).await,
                Err(ClientError::Unreachable { .. }) if is_unwanted => {
                    tokio::select! {
                        () = tokio::time::sleep(SELDOM) => {}
                        () = self.wanted.notified() => {}
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    if why != said {
                        let _ = self.told.send(Input::Link(Link::Lost(why.clone()))).await;
                        said = why;
                    }
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
            if self.told.is_closed() {
                return;
            }
        }
    }
}

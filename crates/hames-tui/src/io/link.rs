//! The connection: found, lost, found again, started where there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hames_client::{Client, ClientError, Finder};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::{Input, Link};

/// How long a server that was lost may take to come back before one is started: somebody may be restarting it, and knows
/// how it was started.
const COMES_BACK: Duration = Duration::from_millis(700);
const LOOK: Duration = Duration::from_millis(40);
/// Before the next attempt where none could be started.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The way to the server of a home.
pub(super) struct Links {
    finder: Finder,
    told: mpsc::Sender<Input>,
    client: watch::Sender<Option<Client>>,
    is_healing: AtomicBool,
}

impl Links {
    /// Begins to connect.
    pub(super) fn start(finder: Finder, told: mpsc::Sender<Input>) -> Arc<Links> {
        let links = Links { finder, told, client: watch::Sender::new(None), is_healing: AtomicBool::new(false) };
        let links = Arc::new(links);
        links.heal(false);
        links
    }

    /// The client, as soon as there is one.
    pub(super) async fn client(&self) -> Option<Client> {
        let mut clients = self.client.subscribe();
        let found = clients.wait_for(Option::is_some).await.ok()?;
        found.clone()
    }

    /// It is gone: says so once, and looks for it.
    pub(super) async fn lost(self: &Arc<Self>, why: &str) {
        if self.client.send_replace(None).is_some() {
            let _ = self.told.send(Input::Link(Link::Lost(why.to_owned()))).await;
            self.heal(true);
        }
    }

    fn heal(self: &Arc<Self>, was_there: bool) {
        if self.is_healing.swap(true, Ordering::SeqCst) {
            return;
        }
        let links = Arc::clone(self);
        tokio::spawn(async move {
            links.until_there(was_there).await;
            links.is_healing.store(false, Ordering::SeqCst);
        });
    }

    async fn until_there(&self, was_there: bool) {
        let begun = Instant::now();
        let (mut wait, mut said) = (FIRST_WAIT, String::new());
        loop {
            let found = if was_there && begun.elapsed() < COMES_BACK {
                self.finder.connect().await
            } else {
                self.finder.connect_or_start().await
            };
            match found {
                Ok(found) => {
                    let notice = found.note();
                    self.client.send_replace(Some(found.client));
                    let _ = self.told.send(Input::Link(Link::Up { notice })).await;
                    return;
                }
                Err(ClientError::Unreachable { .. }) if was_there && begun.elapsed() < COMES_BACK => {
                    tokio::time::sleep(LOOK).await;
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

//! What somebody who watches a session gets.

use std::sync::{Arc, OnceLock};

use hames_protocol::Envelope;
use hames_protocol::api::ApiError;
use hames_store::Store;
use tokio::sync::watch;

use crate::Counts;
use crate::buffer::Buffer;
use crate::channel::Channel;
use crate::refusal::refused;

/// Events read at once from the log for somebody who attaches.
const PAGE: usize = 250;

/// An event on its way to clients. Its JSON is written once, however many watch.
#[derive(Clone, Debug)]
pub struct News(Arc<Written>);

#[derive(Debug)]
struct Written {
    envelope: Envelope,
    json: OnceLock<Box<str>>,
}

impl News {
    /// This event.
    pub fn new(envelope: Envelope) -> Self {
        Self(Arc::new(Written { envelope, json: OnceLock::new() }))
    }

    /// The event.
    pub fn envelope(&self) -> &Envelope {
        &self.0.envelope
    }

    /// The event as one line of JSON, without a line end.
    pub fn json(&self) -> &str {
        self.0.json.get_or_init(|| serde_json::to_string(&self.0.envelope).unwrap_or_default().into())
    }
}

/// Where a subscription is.
enum Phase {
    /// It reads the log up to where the channel is.
    CatchingUp,
    /// What happens comes by itself.
    Live,
    /// Nothing comes any more.
    Ended,
}

/// A session being watched: first what the log holds, then what happens. Dropping it detaches.
pub struct Subscription {
    channel: Arc<Channel>,
    store: Store,
    counts: Arc<watch::Sender<Counts>>,
    buffer: Arc<Buffer>,
    /// Seq of the last durable event that was handed out.
    cursor: u64,
    phase: Phase,
}

impl Subscription {
    /// For a channel that counts it already.
    pub(crate) fn new(channel: Arc<Channel>, store: Store, counts: Arc<watch::Sender<Counts>>, cursor: u64) -> Self {
        counts.send_modify(|counts| counts.clients += 1);
        Self { channel, store, counts, buffer: Arc::default(), cursor, phase: Phase::CatchingUp }
    }

    /// The next events, at least one, in order; `None` once the session is gone or the server stops. A refusal is the last
    /// thing that comes: [`Resync`](hames_protocol::api::ApiErrorCode::Resync) where this subscriber was too slow, who
    /// attaches again after the last seq it has. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Vec<News>, ApiError>> {
        loop {
            let found = match self.phase {
                Phase::Ended => return None,
                Phase::CatchingUp => self.catch_up().await,
                Phase::Live => self.live().await,
            };
            match found {
                Ok(news) if news.is_empty() => {}
                Ok(news) => return Some(Ok(news)),
                Err(why) => {
                    self.phase = Phase::Ended;
                    return why.map(Err);
                }
            }
        }
    }

    /// Reads on in the log, and joins what happens once everything that has passed is read.
    async fn catch_up(&mut self) -> Result<Vec<News>, Option<ApiError>> {
        let head = self.channel.last_seq();
        if self.cursor < head {
            let page = self.store.log().read(&self.channel.session, self.cursor, PAGE).await;
            let page = page.map_err(|error| Some(refused(error)))?;
            // What is in the log and has not passed yet comes by itself.
            let news: Vec<News> =
                page.into_iter().filter(|e| e.seq.is_some_and(|s| s <= head)).map(News::new).collect();
            // Seqs have gaps where events were cut away.
            self.cursor = news.last().and_then(|news| news.envelope().seq).unwrap_or(head);
            return Ok(news);
        }
        match self.channel.register(&self.buffer, self.cursor) {
            Some(snapshots) => {
                self.phase = Phase::Live;
                Ok(snapshots)
            }
            None => Ok(Vec::new()),
        }
    }

    async fn live(&mut self) -> Result<Vec<News>, Option<ApiError>> {
        let news = self.buffer.take().await?;
        if let Some(seq) = news.iter().rev().find_map(|news| news.envelope().seq) {
            self.cursor = seq;
        }
        Ok(news.into())
    }

    /// Seq of the last durable event that was handed out.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.channel.unregister(&self.buffer);
        self.channel.detached();
        self.counts.send_modify(|counts| counts.clients = counts.clients.saturating_sub(1));
    }
}

//! Following a session: its events and what happens to the connection.
//!
//! The stream reconnects by itself and goes on behind the last durable event it gave, so nothing is missed and nothing comes
//! twice. Live events (deltas) are not replayed: whoever attaches in the middle of a step first gets a `step.snapshot` that
//! replaces what it holds of that step.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use hames_protocol::api::{ApiError, ApiErrorCode};
use hames_protocol::{Envelope, SessionId};
use hames_sse::{Event, Reader};

use crate::{BodyStream, Client, ClientError};

/// Bytes one event may have: an envelope with the longest answer and the largest call that a log takes.
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// The server sends something at least every 15 s; a connection that is silent for three times that is dead.
const SILENCE: Duration = Duration::from_secs(45);

/// Before the first and every later attempt to reconnect.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// What a follower learns.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// An event. Durable ones come in the order of their seq, each once.
    Event(Box<Envelope>),
    /// The connection stands: events follow from here on.
    Connected,
    /// The connection is gone; the stream is trying again.
    Lost {
        /// Why, for people.
        why: String,
        /// Whether the server said that it stops: somebody wants it gone.
        stopping: bool,
    },
    /// What was shown of events behind `after` is no longer good (and of the open step): they come again from there.
    Resync {
        /// The last event that still holds.
        after: u64,
    },
    /// The server will not give this session's events: it is deleted, or this client may not. Nothing follows.
    Ended(ClientError),
}

/// The news of a session. Ends only behind [`News::Ended`]; dropping it detaches.
pub struct EventStream {
    news: Pin<Box<dyn Stream<Item = News> + Send>>,
}

impl EventStream {
    pub(crate) fn new(client: Client, session: SessionId, after: u64) -> Self {
        let following = Following { client, session, after, queue: VecDeque::new(), at: At::Away { attempts: 0 } };
        Self { news: Box::pin(futures_util::stream::unfold(following, Following::next)) }
    }

    /// The next news; dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<News> {
        self.news.next().await
    }
}

impl Stream for EventStream {
    type Item = News;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<News>> {
        self.news.as_mut().poll_next(cx)
    }
}

struct Following {
    client: Client,
    session: SessionId,
    /// Seq of the last durable event given.
    after: u64,
    queue: VecDeque<News>,
    at: At,
}

enum At {
    /// Not connected; so many attempts failed since.
    Away { attempts: u32 },
    /// Connected.
    There { body: BodyStream, reader: Reader },
    /// Nothing more to come.
    Over,
}

impl Following {
    async fn next(mut self) -> Option<(News, Self)> {
        loop {
            if let Some(news) = self.queue.pop_front() {
                return Some((news, self));
            }
            match &mut self.at {
                At::Over => return None,
                At::Away { attempts } => {
                    let attempts = *attempts;
                    if let Some(wait) = wait_before(attempts) {
                        tokio::time::sleep(wait).await;
                    }
                    self.attach(attempts).await;
                }
                At::There { body, .. } => match tokio::time::timeout(SILENCE, body.next()).await {
                    Ok(Some(Ok(bytes))) => self.take(&bytes),
                    Ok(Some(Err(error))) => self.lose(error.to_string()),
                    Ok(None) => self.lose("the server closed the connection".into()),
                    Err(_) => self.lose(format!("the server said nothing for {} s", SILENCE.as_secs())),
                },
            }
        }
    }

    async fn attach(&mut self, attempts: u32) {
        match self.client.open_events(&self.session, self.after).await {
            Ok(body) => {
                self.queue.push_back(News::Connected);
                self.at = At::There { body, reader: Reader::new(MAX_EVENT_BYTES) };
            }
            Err(ClientError::Refused(refusal)) => self.refused(refusal, attempts),
            Err(error @ (ClientError::Unreachable { .. } | ClientError::Lost(_))) => {
                self.at = At::Away { attempts: attempts.saturating_add(1) };
                // Said once: after a loss it is known already.
                if attempts == 0 {
                    self.queue.push_back(News::Lost { why: error.to_string(), stopping: false });
                }
            }
            Err(error) => self.end(error),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let At::There { reader, .. } = &mut self.at else { return };
        let (after, queue) = (&mut self.after, &mut self.queue);
        let mut stop = None;
        let fed = reader.feed(bytes, &mut |event| {
            // Behind a refusal there is nothing; what is damaged ends the connection, and the log has it.
            if let (None, Event::Data { name, data }) = (&stop, event) {
                stop = give(name, data, after, queue).err();
            }
        });
        match (stop, fed) {
            (Some(Stop::Refusal(refusal)), _) => self.refused(refusal, 0),
            (Some(Stop::Damaged(why)), _) => self.lose(why),
            (None, Err(_)) => self.lose("one event was larger than any event may be".into()),
            (None, Ok(())) => {}
        }
    }

    fn refused(&mut self, refusal: ApiError, attempts: u32) {
        match refusal.code {
            // Too slow, or a log that is no longer the one we know: an `after` of 0 can be served always.
            ApiErrorCode::Resync => {
                let was_attached = matches!(self.at, At::There { .. });
                if !was_attached {
                    self.after = 0;
                }
                self.queue.push_back(News::Resync { after: self.after });
                self.at = At::Away { attempts: attempts.saturating_add(1) };
            }
            code @ (ApiErrorCode::Stopping | ApiErrorCode::Storage | ApiErrorCode::Internal | ApiErrorCode::Busy) => {
                if attempts == 0 {
                    self.queue.push_back(News::Lost { why: refusal.message, stopping: code == ApiErrorCode::Stopping });
                }
                self.at = At::Away { attempts: attempts.saturating_add(1) };
            }
            _ => self.end(ClientError::Refused(refusal)),
        }
    }

    fn lose(&mut self, why: String) {
        self.queue.push_back(News::Lost { why, stopping: false });
        // An attempt at once: a connection that was cut is usually there again.
        self.at = At::Away { attempts: 1 };
    }

    fn end(&mut self, error: ClientError) {
        self.queue.push_back(News::Ended(error));
        self.at = At::Over;
    }
}

enum Stop {
    Refusal(ApiError),
    Damaged(String),
}

/// Gives the event of a frame on, unless it was given before.
fn give(name: &[u8], data: &[u8], after: &mut u64, queue: &mut VecDeque<News>) -> Result<(), Stop> {
    let damaged = |error: serde_json::Error| Stop::Damaged(format!("an event cannot be read: {error}"));
    match name {
        b"" => {
            let envelope: Envelope = serde_json::from_slice(data).map_err(damaged)?;
            match envelope.seq {
                Some(seq) if seq <= *after => return Ok(()),
                Some(seq) => *after = seq,
                None => {}
            }
            queue.push_back(News::Event(Box::new(envelope)));
            Ok(())
        }
        b"refusal" => Err(Stop::Refusal(serde_json::from_slice(data).map_err(damaged)?)),
        // A kind of frame that a newer server may send.
        _ => Ok(()),
    }
}

/// Nothing before the first attempt; then twice as long each time.
fn wait_before(attempts: u32) -> Option<Duration> {
    let doublings = attempts.checked_sub(1)?;
    Some(FIRST_WAIT.saturating_mul(1 << doublings.min(10)).min(LONGEST_WAIT))
}

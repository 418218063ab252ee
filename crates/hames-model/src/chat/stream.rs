//! An answer as it arrives: reads the response, keeps the limits of time, lets go of the connection well.
//!
//! Only what carries something of the answer counts as life; comments and keep-alives may come for ever from a gateway
//! whose upstream is dead. After the end marker the rest of the body is read in the background, so that the connection can
//! be used again and the step does not wait for it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use hames_protocol::{Completion, Delta, ErrorClass, Failure, ModelStream};
use reqwest::Response;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};

use super::content::Reading;
use super::decode::Decoder;
use super::pace::Pace;
use crate::Timeouts;
use crate::error::Place;
use crate::http;

/// How long to wait for usage and end marker once the model has said why it stopped. Servers that send neither and keep
/// the connection open exist; the answer is whole without them.
const LINGER: Duration = Duration::from_secs(10);

/// Bytes and time spent on what follows the end marker, to get the connection back.
const DRAIN_BYTES: usize = 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Bytes taken in before the pieces so far are handed on, where more is ready.
const BATCH_BYTES: usize = 64 * 1024;

/// The task that reads the rest of the body before, for the next request to wait for.
pub(crate) type Draining = Arc<Mutex<Option<JoinHandle<()>>>>;

pub(crate) struct ChatStream {
    response: Option<Response>,
    decoder: Decoder,
    place: Arc<Place>,
    timeouts: Timeouts,
    started: Instant,
    first_delta: Option<Instant>,
    ended: Option<Instant>,
    /// Whether anything of the answer has come, so that the shorter limit holds.
    alive: bool,
    deadline: Instant,
    alarm: Pin<Box<Sleep>>,
    pace: Pace,
    draining: Draining,
    /// Whether answers of this model begin inside their reasoning, for the next one.
    begins_inside: Arc<AtomicBool>,
    request_id: Option<String>,
}

impl ChatStream {
    pub(crate) fn new(
        response: Response,
        place: Arc<Place>,
        timeouts: Timeouts,
        started: Instant,
        draining: Draining,
        reading: Reading,
        begins_inside: Arc<AtomicBool>,
    ) -> Self {
        let deadline = started + timeouts.first_byte;
        Self {
            request_id: crate::error::request_id(response.headers()),
            response: Some(response),
            decoder: Decoder::new(Arc::clone(&place), reading),
            place,
            timeouts,
            started,
            first_delta: None,
            ended: None,
            alive: false,
            deadline,
            alarm: Box::pin(sleep_until(deadline)),
            pace: Pace::default(),
            draining,
            begins_inside,
        }
    }

    /// Waits for the next bytes and takes in all that are there. Dropping the future loses nothing: bytes that were taken
    /// from the response are with the decoder before anything is awaited again.
    async fn read(&mut self) {
        let next = self.pace.next();
        if let Some(next) = next {
            sleep_until(next).await;
        }
        let Some(response) = &mut self.response else { return };
        tokio::select! {
            biased;
            chunk = response.chunk() => {
                self.heard(chunk);
            }
            () = self.alarm.as_mut() => return self.rung(),
        }
        if next.is_some() {
            self.read_on().await;
        }
    }

    /// Takes in what came while nobody read. The connection's task hands on one piece each time it is asked for more.
    async fn read_on(&mut self) {
        let mut taken = 0;
        while taken < BATCH_BYTES {
            tokio::task::yield_now().await;
            let Some(chunk) = self.response.as_mut().and_then(|response| response.chunk().now_or_never()) else {
                return;
            };
            taken += self.heard(chunk);
        }
        self.pace.begin_anew();
    }

    /// Takes in a piece and what else is ready; gives how many bytes that was.
    fn heard(&mut self, first: reqwest::Result<Option<bytes::Bytes>>) -> usize {
        self.pace.has_read(Instant::now());
        let mut chunk = first;
        let mut taken = 0;
        let mut carried = false;
        loop {
            match chunk {
                Ok(Some(bytes)) => {
                    taken += bytes.len();
                    carried |= self.decoder.feed(&bytes);
                }
                Ok(None) => {
                    self.end(None);
                    return taken;
                }
                Err(error) => {
                    let accident = http::accident(&error, &self.place);
                    self.end(Some(self.broken(accident)));
                    return taken;
                }
            }
            if self.decoder.is_over() {
                self.end_marked();
                return taken;
            }
            if taken >= BATCH_BYTES {
                break;
            }
            let Some(response) = &mut self.response else { break };
            match response.chunk().now_or_never() {
                Some(next) => chunk = next,
                None => break,
            }
        }
        if carried {
            self.postpone();
        }
        taken
    }

    /// A broken connection within an answer is one that is incomplete; before it, nothing came at all.
    fn broken(&self, mut accident: Failure) -> Failure {
        if self.alive {
            accident.class = ErrorClass::StreamIncomplete;
        }
        accident
    }

    /// Something of the answer came: the limit counts from now.
    fn postpone(&mut self) {
        self.alive = true;
        let closing = self.decoder.is_closing();
        let limit = if closing { self.timeouts.idle.min(LINGER) } else { self.timeouts.idle };
        self.deadline = Instant::now() + limit;
        // The alarm is only moved forward here; a later deadline is looked at when it rings.
        if self.deadline < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.deadline);
        }
    }

    fn rung(&mut self) {
        if Instant::now() < self.deadline {
            self.alarm.as_mut().reset(self.deadline);
            return;
        }
        let failure = silent(&self.place, self.alive, &self.timeouts);
        self.response = None;
        self.end(Some(failure));
    }

    fn end(&mut self, accident: Option<Failure>) {
        self.response = None;
        let broke = accident.is_some();
        self.decoder.end(accident);
        if let Some(inside) = self.decoder.began_inside().filter(|_| !broke) {
            self.begins_inside.store(inside, Ordering::Relaxed);
        }
        self.ended = Some(Instant::now());
    }

    fn end_marked(&mut self) {
        let rest = self.response.take();
        self.end(None);
        let Some(mut rest) = rest else { return };
        if matches!(rest.chunk().now_or_never(), Some(Ok(None) | Err(_))) {
            return;
        }
        let task = tokio::spawn(async move {
            let read_on = async {
                let mut left = DRAIN_BYTES;
                while let Ok(Some(bytes)) = rest.chunk().await {
                    match left.checked_sub(bytes.len()) {
                        Some(less) => left = less,
                        None => break,
                    }
                }
            };
            // Whatever was not read by then closes the connection with the response.
            let _ = tokio::time::timeout(DRAIN_TIME, read_on).await;
        });
        *self.draining.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    fn millis(&self, until: Instant) -> u64 {
        u64::try_from(until.duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }
}

/// The failure where nothing came in time.
pub(crate) fn silent(place: &Place, alive: bool, timeouts: &Timeouts) -> Failure {
    let what = match alive {
        true => format!("nothing of the answer came for {} s (keep-alives do not count)", secs(timeouts.idle)),
        false => format!("no answer began within {} s", secs(timeouts.first_byte)),
    };
    let next = "Try again, or raise the provider's timeouts if its model is slow";
    place.failure(ErrorClass::Timeout, &what, next).retryable()
}

fn secs(limit: Duration) -> f64 {
    (limit.as_secs_f64() * 10.0).round() / 10.0
}

#[async_trait]
impl ModelStream for ChatStream {
    async fn next(&mut self) -> Option<Vec<Delta>> {
        loop {
            if let Some(deltas) = self.decoder.take_deltas() {
                self.first_delta.get_or_insert_with(Instant::now);
                return Some(deltas);
            }
            if self.ended.is_some() {
                return None;
            }
            self.read().await;
        }
    }

    fn finish(self: Box<Self>) -> Completion {
        let total_ms = self.millis(self.ended.unwrap_or_else(Instant::now));
        let first_token_ms = self.first_delta.map(|at| self.millis(at));
        let mut completion = self.decoder.into_completion();
        completion.timings.total_ms = total_ms;
        completion.timings.first_token_ms = first_token_ms;
        completion.request_id = self.request_id;
        if let Some(failure) = &mut completion.failure {
            failure.request_id = failure.request_id.take().or_else(|| completion.request_id.clone());
        }
        completion
    }
}

//! What waits for one subscriber, in bounds.
//!
//! A subscriber that keeps up finds here what came since it looked last. One that does not is cut off once the bound is
//! reached and told so; neither the run nor any other subscriber notices. Pieces of the same block that wait one behind
//! the other are joined, so that a client that reads a little late gets fewer events and none less.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hames_protocol::Event;
use hames_protocol::api::{ApiError, ApiErrorCode};
use tokio::sync::Notify;

use crate::{News, pieces};

/// Events that may wait for a subscriber.
pub(crate) const MAX_EVENTS: usize = 2_048;
/// Bytes of text in them, roughly. One event alone may be larger.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Why nothing more comes.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Too slow.
    Slow,
    /// The session is gone, or the server stops.
    Gone(Option<ApiError>),
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<News>,
    bytes: usize,
    end: Option<End>,
}

/// A subscriber's buffer: the channel puts in, the subscription takes out.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    state: Mutex<State>,
    wake: Notify,
}

impl Buffer {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in; `false` once the subscriber takes no more.
    pub(crate) fn push(&self, news: &News) -> bool {
        let mut state = self.locked();
        if state.end.is_some() {
            return false;
        }
        let weight = weight(&news.envelope().event);
        let last = state.queue.back_mut().filter(|last| pieces::follows(last.envelope(), news.envelope()));
        if let Some(last) = last {
            let mut both = last.envelope().clone();
            pieces::join(&mut both, news.envelope());
            *last = News::new(both);
        } else if !state.queue.is_empty()
            && (state.queue.len() >= MAX_EVENTS || state.bytes.saturating_add(weight) > MAX_BYTES)
        {
            state.queue.clear();
            state.bytes = 0;
            state.end = Some(End::Slow);
        } else {
            state.queue.push_back(news.clone());
        }
        state.bytes = state.bytes.saturating_add(weight);
        let goes_on = state.end.is_none();
        drop(state);
        self.wake.notify_one();
        goes_on
    }

    /// Nothing more comes; what waits is still taken.
    pub(crate) fn end(&self, why: Option<ApiError>) {
        self.locked().end.get_or_insert(End::Gone(why));
        self.wake.notify_one();
    }

    /// Everything that waits, at least one event; or why nothing comes any more. Dropping the future loses nothing.
    pub(crate) async fn take(&self) -> Result<VecDeque<News>, Option<ApiError>> {
        loop {
            {
                let mut state = self.locked();
                if !state.queue.is_empty() {
                    state.bytes = 0;
                    return Ok(std::mem::take(&mut state.queue));
                }
                match &state.end {
                    Some(End::Slow) => return Err(Some(too_slow())),
                    Some(End::Gone(why)) => return Err(why.clone()),
                    None => {}
                }
            }
            self.wake.notified().await;
        }
    }
}

fn too_slow() -> ApiError {
    ApiError::new(
        ApiErrorCode::Resync,
        "This client did not read its events in time. Attach again after the last seq that came; nothing is lost.",
    )
}

/// Bytes an event holds, roughly: only what can be large is counted.
fn weight(event: &Event) -> usize {
    let base = 256;
    base + match event {
        Event::StepSnapshot(s) => s.blocks.iter().map(|block| block.text.len()).sum(),
        Event::TextDone(d) => d.text.len(),
        Event::ReasoningDone(d) => d.block.text.len(),
        Event::ToolCall(c) => c.arguments.len() * 2,
        Event::ToolDone(d) => d.output.len() + d.diffs.iter().map(|diff| diff.text.len()).sum::<usize>(),
        Event::ToolError(e) => e.error.len(),
        Event::ApprovalAsked(a) => a.diff.as_ref().map_or(0, |diff| diff.text.len()) * 2,
        _ => pieces::text_of(event).map_or(0, str::len),
    }
}

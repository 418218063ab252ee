//! What somebody who watches a session gets.

use std::sync::{Arc, OnceLock};

use hames_protocol::Envelope;
use hames_protocol::api::ApiError;

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

/// A session being watched: first what the log holds, then what happens. Dropping it detaches.
pub struct Subscription {
    pub(crate) ended: bool,
}

impl Subscription {
    /// The next events, at least one, in order; `None` once the session is gone or the server stops. A refusal is the last
    /// thing that comes: [`Resync`](hames_protocol::api::ApiErrorCode::Resync) where this subscriber was too slow, who
    /// attaches again after the last seq it has. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Vec<News>, ApiError>> {
        if self.ended {
            return None;
        }
        self.ended = true;
        Some(Err(crate::hub::unbuilt()))
    }
}

//! A session's events as server-sent events.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use hames_protocol::api::{ApiError, ApiErrorCode};

use super::beat::Listening;
use super::call::{Answered, Call, typed};
use super::refusal::invalid;
use crate::{Hub, News, Subscription};

const HEARTBEAT: &[u8] = b":\n\n";

/// Follows a session for a client.
pub(super) async fn follow(call: Call) -> Answered {
    let session = call.session()?;
    let after = last_known(&call)?;
    let subscription = call.app.hub.attach(&session, after).await?;
    let following = Following {
        hub: call.app.hub.clone(),
        subscription: Some(subscription),
        beat: call.app.beat.listen(),
        is_new: true,
    };
    let stream = futures_util::stream::unfold(following, Following::next);
    Ok(typed("text/event-stream", Body::from_stream(stream)))
}

/// The header counts before the parameter: a browser that reconnects sends both, and only the header is new.
fn last_known(call: &Call) -> Result<Option<u64>, ApiError> {
    match call.header("last-event-id") {
        None => Ok(call.number("after")),
        Some(value) => {
            let seq = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            match seq.map(str::parse) {
                Some(Ok(seq)) => Ok(Some(seq)),
                _ => Err(invalid("The header Last-Event-ID has to be the seq of an event.")),
            }
        }
    }
}

struct Following {
    hub: Hub,
    /// None once the last frame was written.
    subscription: Option<Subscription>,
    beat: Listening,
    is_new: bool,
}

impl Following {
    /// The next bytes.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let subscription = self.subscription.as_mut()?;
        // Something at once, so that whoever attached knows it before anything happens.
        if std::mem::take(&mut self.is_new) {
            return Some((Ok(Bytes::from_static(HEARTBEAT)), self));
        }
        let bytes = tokio::select! {
            biased;
            news = subscription.next() => match news {
                Some(Ok(batch)) => frames(&batch),
                Some(Err(refusal)) => self.last(&refusal),
                None => {
                    let refusal = self.why_over();
                    self.last(&refusal)
                }
            },
            () = self.beat.next() => Bytes::from_static(HEARTBEAT),
        };
        Some((Ok(bytes), self))
    }

    fn last(&mut self, refusal: &ApiError) -> Bytes {
        self.subscription = None;
        let json = serde_json::to_string(refusal).unwrap_or_default();
        Bytes::from(format!("event: refusal\ndata: {json}\n\n"))
    }

    fn why_over(&self) -> ApiError {
        if self.hub.is_stopping() {
            ApiError::new(ApiErrorCode::Stopping, "The server is stopping.")
        } else {
            ApiError::new(ApiErrorCode::NotFound, "The session was deleted.")
        }
    }
}

fn frames(batch: &[News]) -> Bytes {
    let size = batch.iter().map(|news| news.json().len() + 40).sum();
    let mut bytes = Vec::with_capacity(size);
    for news in batch {
        if let Some(seq) = news.envelope().seq {
            bytes.extend_from_slice(b"id: ");
            bytes.extend_from_slice(seq.to_string().as_bytes());
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(news.json().as_bytes());
        bytes.extend_from_slice(b"\n\n");
    }
    bytes.into()
}

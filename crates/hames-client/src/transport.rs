//! The port a client talks through.

use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{Request, Response};

use crate::ClientError;

/// The bytes of an answer as they come.
pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, ClientError>> + Send>>;

/// The bytes of a request.
pub enum Upload {
    /// All of them.
    Bytes(Bytes),
    /// As they come: an export to be imported, a large attachment. What fails here ends the request.
    Stream(BodyStream),
}

impl Upload {
    /// No bytes.
    pub fn empty() -> Self {
        Upload::Bytes(Bytes::new())
    }
}

impl From<Bytes> for Upload {
    fn from(bytes: Bytes) -> Self {
        Upload::Bytes(bytes)
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upload::Bytes(bytes) => write!(f, "Upload::Bytes({} bytes)", bytes.len()),
            Upload::Stream(_) => f.write_str("Upload::Stream"),
        }
    }
}

/// One request, one answer. Its two implementations are [`Socket`](crate::Socket) and the router in this process.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a request and returns once the head of its answer is there. [`ClientError::Unreachable`] only where nothing
    /// was sent. Dropping the body ends the answer.
    async fn send(&self, request: Request<Upload>) -> Result<Response<BodyStream>, ClientError>;

    /// Where it leads, for messages.
    fn place(&self) -> String;
}

/// All of a body, up to `limit` bytes.
pub(crate) async fn collect(mut body: BodyStream, limit: usize) -> Result<Vec<u8>, ClientError> {
    let mut all = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        if all.len() + piece.len() > limit {
            return Err(ClientError::BadAnswer(format!("it is larger than {} MB", limit / 1024 / 1024)));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

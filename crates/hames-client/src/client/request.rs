//! One request and its answer.

use std::time::Duration;

use bytes::Bytes;
use hames_protocol::api::{ApiError, ApiErrorCode};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use crate::transport::collect;
use crate::{BodyStream, ClientError, Upload};

/// How long the head of an answer may take. The server only looks something up or appends to a log.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of an answer that is read whole.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// Bytes of a refusal.
const MAX_REFUSAL: usize = 64 * 1024;

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request that is being put together.
pub(super) struct Ask<'a> {
    client: &'a Client,
    method: Method,
    path: String,
    has_query: bool,
    body: Result<Option<(Upload, &'static str)>, ClientError>,
    patience: Option<Duration>,
}

impl Client {
    pub(super) fn get(&self, path: &[&str]) -> Ask<'_> {
        Ask::new(self, Method::GET, path)
    }

    pub(super) fn post(&self, path: &[&str]) -> Ask<'_> {
        Ask::new(self, Method::POST, path)
    }

    pub(super) fn patch(&self, path: &[&str]) -> Ask<'_> {
        Ask::new(self, Method::PATCH, path)
    }

    pub(super) fn delete(&self, path: &[&str]) -> Ask<'_> {
        Ask::new(self, Method::DELETE, path)
    }
}

impl<'a> Ask<'a> {
    fn new(client: &'a Client, method: Method, segments: &[&str]) -> Self {
        let mut path = String::from("/v1");
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, UNRESERVED));
        }
        Self { client, method, path, has_query: false, body: Ok(None), patience: Some(PATIENCE) }
    }

    /// A parameter.
    pub(super) fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.path.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.path.push_str(name);
        self.path.push('=');
        self.path.extend(utf8_percent_encode(&value.to_string(), UNRESERVED));
        self
    }

    /// A parameter that may be absent.
    pub(super) fn maybe(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// A body of JSON.
    pub(super) fn json(mut self, body: &impl Serialize) -> Self {
        self.body = serde_json::to_vec(body)
            .map(|bytes| Some((Upload::Bytes(Bytes::from(bytes)), "application/json")))
            .map_err(|error| ClientError::BadAnswer(format!("the request cannot be written: {error}")));
        self
    }

    /// A body of bytes.
    pub(super) fn upload(mut self, body: Upload, media_type: &'static str) -> Self {
        self.body = Ok(Some((body, media_type)));
        self
    }

    /// The answer comes when something has ended that takes as long as it takes.
    pub(super) fn patient(mut self) -> Self {
        self.patience = None;
        self
    }

    /// An answer of JSON.
    pub(super) async fn receive<T: DeserializeOwned + Send + 'static>(self) -> Result<T, ClientError> {
        let bytes = self.bytes().await?;
        let is_small = bytes.len() <= READ_AT_ONCE;
        let read = move || serde_json::from_slice(&bytes).map_err(|error| ClientError::BadAnswer(error.to_string()));
        if is_small {
            return read();
        }
        // Who waits for it may draw frames on this thread.
        let reading = tokio::task::spawn_blocking(read).await;
        reading.unwrap_or_else(|error| Err(ClientError::BadAnswer(format!("it could not be read: {error}"))))
    }

    /// An answer that says nothing but that it is done.
    pub(super) async fn done(self) -> Result<(), ClientError> {
        self.bytes().await.map(drop)
    }

    /// An answer of bytes, whole.
    pub(super) async fn bytes(self) -> Result<Vec<u8>, ClientError> {
        collect(self.stream().await?, MAX_ANSWER).await
    }

    /// An answer of bytes as they come.
    pub(super) async fn stream(self) -> Result<BodyStream, ClientError> {
        let (client, patience) = (self.client, self.patience);
        let sending = client.transport.send(self.request()?);
        let answer = match patience {
            Some(patience) => tokio::time::timeout(patience, sending).await.unwrap_or_else(|_| {
                Err(ClientError::Lost(format!("the server did not answer within {} s", patience.as_secs())))
            })?,
            None => sending.await?,
        };
        if answer.status().is_success() { Ok(answer.into_body()) } else { Err(refusal(answer).await) }
    }

    fn request(self) -> Result<http::Request<Upload>, ClientError> {
        let (body, media_type) = match self.body? {
            Some((body, media_type)) => (body, Some(media_type)),
            None => (Upload::empty(), None),
        };
        let mut request = http::Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self
            .path
            .parse()
            .map_err(|error| ClientError::BadAnswer(format!("the request cannot be written: {error}")))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(API_HEADER, HeaderValue::from_static(API));
        if let Some(media_type) = media_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        Ok(request)
    }
}

/// An answer up to this size is read in a millisecond or so, larger ones on a thread of their own.
const READ_AT_ONCE: usize = 256 * 1024;
/// Says which version of the API the client speaks.
const API_HEADER: HeaderName = HeaderName::from_static("x-hames-api");
const API: &str = "1.0";

async fn refusal(answer: Response<BodyStream>) -> ClientError {
    let status = answer.status();
    match collect(answer.into_body(), MAX_REFUSAL).await {
        Ok(bytes) => match serde_json::from_slice::<ApiError>(&bytes) {
            Ok(refusal) => ClientError::Refused(refusal),
            Err(_) => ClientError::BadAnswer(format!("status {status} without a reason")),
        },
        Err(ClientError::Lost(why)) => ClientError::Lost(why),
        Err(_) => ClientError::Refused(ApiError::new(ApiErrorCode::Internal, format!("status {status}"))),
    }
}

//! One request, held to its row of the table: parameters, media type and body are read here, and what does not fit is named.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use hames_protocol::SessionId;
use hames_protocol::api::endpoint::{
    self, Endpoint, MAX_JSON_BODY, MAX_PARAMETER, MAX_SEGMENT, Parameter, ParameterKind,
};
use hames_protocol::api::{ApiError, ApiErrorCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::App;
use super::refusal::{broken, invalid};

/// A body may pause so long.
const BODY_PAUSE: Duration = Duration::from_secs(30);
/// A body of JSON may take so long altogether.
const BODY_TIME: Duration = Duration::from_secs(60);
/// What is read of a body that is too large, so that its sender comes to read the refusal.
const DRAIN: usize = 8 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// What an endpoint gives back.
pub(super) type Answered = Result<Response<Body>, ApiError>;

/// A request that fits its row so far.
pub(super) struct Call {
    pub(super) app: Arc<App>,
    row: &'static Endpoint,
    path: HashMap<String, String>,
    query: HashMap<&'static str, String>,
    headers: HeaderMap,
    body: Body,
}

impl Call {
    pub(super) async fn read(app: Arc<App>, row: &'static Endpoint, request: Request<Body>) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let path = path_of(&mut parts).await?;
        let query = query_of(row, parts.uri.query().unwrap_or(""))?;
        let expected = match row.body {
            endpoint::Body::Nothing => None,
            endpoint::Body::Json(_) => Some(("application/json", Some(MAX_JSON_BODY))),
            endpoint::Body::Bytes { max } => Some(("application/octet-stream", Some(max))),
            endpoint::Body::Lines => Some(("application/x-ndjson", None)),
        };
        let mut call = Self { app, row, path, query, headers: parts.headers, body };
        if let Some((media_type, max)) = expected {
            call.check_media_type(media_type)?;
            if let Some(max) = max
                && announced(&call.headers).is_some_and(|length| length > max as u64)
            {
                call.drain().await;
                return Err(too_large(max));
            }
        }
        Ok(call)
    }

    fn check_media_type(&self, expected: &str) -> Result<(), ApiError> {
        let refuse = |found: &str| {
            let message = format!("{} {} takes {expected}, not {found}.", self.row.method.as_str(), self.row.path);
            Err(ApiError::new(ApiErrorCode::UnsupportedMediaType, message))
        };
        let mut values = self.headers.get_all(CONTENT_TYPE).iter();
        let found = match (values.next().map(HeaderValue::to_str), values.next()) {
            (None, _) => return refuse("a body without a media type"),
            (Some(Ok(found)), None) => found,
            (Some(_), _) => return refuse("a body whose media type is unclear"),
        };
        let essence = found.split(';').next().unwrap_or("").trim();
        if essence.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        refuse(&format!("\"{}\"", essence.chars().take(100).flat_map(char::escape_debug).collect::<String>()))
    }

    /// A parameter of the path.
    pub(super) fn segment(&self, name: &str) -> Result<&str, ApiError> {
        self.path.get(name).map(String::as_str).ok_or_else(broken)
    }

    /// The session of the path.
    pub(super) fn session(&self) -> Result<SessionId, ApiError> {
        Ok(SessionId::from(self.segment("id")?))
    }

    /// A parameter of text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// A parameter of text that the row says is there.
    pub(super) fn needed(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name).ok_or_else(broken)
    }

    /// A number, or what the row says where it is absent.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let default =
            self.row.query.iter().find(|parameter| parameter.name == name).and_then(|found| match found.kind {
                ParameterKind::Number { default, .. } => default,
                ParameterKind::Text => None,
            });
        self.query.get(name).and_then(|digits| digits.parse().ok()).or(default)
    }

    pub(super) fn header(&self, name: &str) -> Option<&HeaderValue> {
        self.headers.get(name)
    }

    /// The body as JSON.
    pub(super) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, ApiError> {
        let bytes = tokio::time::timeout(BODY_TIME, self.bytes(MAX_JSON_BODY)).await.map_err(|_| late())??;
        // A list would do for a struct, field by field: nobody means that.
        if !bytes.trim_ascii_start().starts_with(b"{") {
            return Err(invalid("The body is no JSON object."));
        }
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let (path, error) = (error.path().to_string(), error.inner());
            let place = if path == "." { String::new() } else { format!(" at {path}") };
            invalid(format!("The body does not fit{place}: {error}."))
        })?;
        reader.end().map_err(|error| invalid(format!("The body goes on behind its JSON object: {error}.")))?;
        Ok(value)
    }

    /// The body whole, up to `max` bytes.
    pub(super) async fn bytes(&mut self, max: usize) -> Result<Vec<u8>, ApiError> {
        let mut pieces = self.pieces();
        let mut all = Vec::with_capacity(announced(&self.headers).map_or(0, |n| (n as usize).min(max)).min(64 * 1024));
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            if all.len() + piece.len() > max {
                pieces.drain().await;
                return Err(too_large(max));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// The body as it comes.
    pub(super) fn pieces(&mut self) -> Pieces {
        Pieces(std::mem::take(&mut self.body).into_data_stream())
    }

    async fn drain(&mut self) {
        self.pieces().drain().await;
    }
}

/// A body as it comes.
pub(super) struct Pieces(BodyDataStream);

impl Pieces {
    /// The next piece; a body that pauses for too long is refused.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, ApiError>> {
        match tokio::time::timeout(BODY_PAUSE, self.0.next()).await {
            Ok(Some(Ok(bytes))) => Some(Ok(bytes)),
            Ok(Some(Err(error))) => Some(Err(invalid(format!("The body broke off: {error}.")))),
            Ok(None) => None,
            Err(_) => Some(Err(late())),
        }
    }

    async fn drain(mut self) {
        let mut drained = 0;
        let draining = async {
            while let Some(Ok(piece)) = self.0.next().await {
                drained += piece.len();
                if drained > DRAIN {
                    break;
                }
            }
        };
        // Whether it worked makes no difference: the refusal is sent anyway.
        let _ = tokio::time::timeout(DRAIN_TIME, draining).await;
    }
}

async fn path_of(parts: &mut Parts) -> Result<HashMap<String, String>, ApiError> {
    let found = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| invalid("The path is not written as UTF-8."))?;
    let mut path = HashMap::new();
    for (name, value) in &found {
        if value.is_empty() || value.len() > MAX_SEGMENT {
            return Err(invalid(format!("The {name} in the path has to have 1 to {MAX_SEGMENT} bytes.")));
        }
        path.insert(name.to_owned(), value.to_owned());
    }
    Ok(path)
}

fn query_of(row: &'static Endpoint, text: &str) -> Result<HashMap<&'static str, String>, ApiError> {
    let mut query = HashMap::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        // What is not known may be known to a later version.
        let Some(parameter) = row.query.iter().find(|parameter| parameter.name == name) else { continue };
        check_parameter(parameter, &value)?;
        if query.insert(parameter.name, value.into_owned()).is_some() {
            return Err(invalid(format!("The parameter {name} is there twice.")));
        }
    }
    for parameter in row.query.iter().filter(|parameter| parameter.is_required) {
        if query.get(parameter.name).is_none_or(String::is_empty) {
            return Err(invalid(format!("The parameter {} is missing: {}", parameter.name, parameter.summary)));
        }
    }
    Ok(query)
}

fn check_parameter(parameter: &Parameter, value: &str) -> Result<(), ApiError> {
    let name = parameter.name;
    match parameter.kind {
        ParameterKind::Text if value.len() <= MAX_PARAMETER => Ok(()),
        ParameterKind::Text => Err(invalid(format!("The parameter {name} has more than {MAX_PARAMETER} bytes."))),
        ParameterKind::Number { min, max, .. } => {
            let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            match value.parse::<u64>() {
                Ok(number) if is_plain && (min..=max).contains(&number) => Ok(()),
                _ => Err(invalid(format!("The parameter {name} has to be a whole number from {min} to {max}."))),
            }
        }
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(max: usize) -> ApiError {
    ApiError::new(ApiErrorCode::TooLarge, format!("The body is larger than {} MB.", max / 1024 / 1024))
}

fn late() -> ApiError {
    ApiError::new(ApiErrorCode::Timeout, "The body did not come in time.")
}

/// An answer of JSON.
pub(super) fn json(value: &impl Serialize) -> Answered {
    let bytes = serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written");
        broken()
    })?;
    Ok(typed("application/json", Body::from(Bytes::from(bytes))))
}

/// An answer of this media type.
pub(super) fn typed(media_type: &'static str, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// An answer that says nothing but that it is done.
pub(super) fn done() -> Answered {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}

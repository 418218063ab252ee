//! Refusals as answers.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use hames_protocol::api::{ApiError, ApiErrorCode};

/// The one shape of every refusal.
pub(super) fn refuse(refusal: &ApiError) -> Response<Body> {
    let json = serde_json::to_vec(refusal).unwrap_or_default();
    let mut answer = Response::new(Body::from(Bytes::from(json)));
    *answer.status_mut() = StatusCode::from_u16(refusal.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// The request is not what the endpoint takes.
pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ApiErrorCode::Invalid, message)
}

/// Something went wrong that no input should make go wrong.
pub(super) fn broken() -> ApiError {
    ApiError::new(
        ApiErrorCode::Internal,
        "The server failed at this request; `hames server logs` shows why. The session is as its log says.",
    )
}

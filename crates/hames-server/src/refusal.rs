//! Failures of the parts below, as refusals of the API.

use hames_protocol::api::{ApiError, ApiErrorCode};
use hames_protocol::{ErrorClass, Failure, LogError};

pub(crate) type Answer<T> = Result<T, ApiError>;

/// A refusal in words.
pub(crate) fn refuse(code: ApiErrorCode, message: impl Into<String>) -> ApiError {
    ApiError::new(code, message)
}

/// What the store could not do.
pub(crate) fn refused(error: LogError) -> ApiError {
    let code = match &error {
        LogError::NoSession(_) => ApiErrorCode::NotFound,
        LogError::Busy(_) => ApiErrorCode::Busy,
        LogError::Invalid(_) => ApiErrorCode::Invalid,
        LogError::Conflict { .. } => ApiErrorCode::HeldElsewhere,
        _ => ApiErrorCode::Storage,
    };
    ApiError::new(code, error.to_string())
}

/// What was asked for and cannot be done as things are set.
pub(crate) fn failed(failure: Failure) -> ApiError {
    let code = match failure.class {
        ErrorClass::Storage => ApiErrorCode::Storage,
        ErrorClass::Internal => ApiErrorCode::Internal,
        ErrorClass::Usage => ApiErrorCode::Invalid,
        _ => ApiErrorCode::Configuration,
    };
    ApiError::new(code, failure.message)
}

/// Runs work that may wait for the disk where it holds up no other task.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| refuse(ApiErrorCode::Internal, format!("Work on the disk was broken off: {error}.")))
}

//! How a command ends early: a failure for people and programs, and the exit code that belongs to its class.

use hames_client::ClientError;
use hames_protocol::api::ApiErrorCode;
use hames_protocol::{ErrorClass, Failure, LogError};

/// Everything went as asked.
pub(crate) const COMPLETE: u8 = 0;
/// The model or its provider failed.
pub(crate) const MODEL: u8 = 1;
/// The command line or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;
/// Something was left undone that can be done otherwise.
pub(crate) const STOPPED: u8 = 3;
/// The database or a file of it failed.
pub(crate) const STORAGE: u8 = 4;
/// Stopped by a person.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something failed and has to be said.
    Failed(Box<Failure>),
    /// Whoever read our output went away: nothing is left to be said, and nothing went wrong.
    OutputClosed,
}

impl Stop {
    /// A wrong command line.
    pub(crate) fn usage(message: impl Into<String>) -> Stop {
        Stop::from(Failure::new(ErrorClass::Usage, message))
    }

    /// A wrong or missing setting.
    pub(crate) fn configuration(message: impl Into<String>) -> Stop {
        Stop::from(Failure::new(ErrorClass::Configuration, message))
    }

    /// A failure of the disk or the database.
    pub(crate) fn storage(message: impl Into<String>) -> Stop {
        Stop::from(Failure::new(ErrorClass::Storage, message))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Stop::OutputClosed => COMPLETE,
            Stop::Failed(failure) => code_of(failure.class),
        }
    }
}

/// The exit code of a failure's class.
pub(crate) fn code_of(class: ErrorClass) -> u8 {
    match class {
        ErrorClass::Usage | ErrorClass::Configuration => USAGE,
        ErrorClass::Storage => STORAGE,
        ErrorClass::Interrupted => INTERRUPTED,
        _ => MODEL,
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(Box::new(failure))
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Stop {
        let class = match &error {
            ClientError::Refused(refused) => class_of(refused.code),
            ClientError::Incompatible { .. } | ClientError::Place(_) | ClientError::NotStarted(_) => {
                ErrorClass::Configuration
            }
            ClientError::Unreachable { .. } | ClientError::Lost(_) | ClientError::BadAnswer(_) => {
                ErrorClass::Connection
            }
        };
        Stop::from(Failure::new(class, error.to_string()))
    }
}

/// The class of what the server refused.
fn class_of(code: ApiErrorCode) -> ErrorClass {
    use ApiErrorCode::*;
    match code {
        Invalid | NotFound | Busy | Answered | Stale | NameTaken | HeldElsewhere | TooLarge => ErrorClass::Usage,
        Unauthorized | Forbidden | Configuration => ErrorClass::Configuration,
        Storage => ErrorClass::Storage,
        Resync | Stopping => ErrorClass::Connection,
        _ => ErrorClass::Internal,
    }
}

impl From<LogError> for Stop {
    fn from(error: LogError) -> Stop {
        match error {
            // The command asked for the wrong session; nothing is broken.
            LogError::NoSession(_) | LogError::Busy(_) | LogError::Invalid(_) => Stop::usage(error.to_string()),
            other => Stop::from(Failure::from(other)),
        }
    }
}

/// What writing output may end with: a reader that went away is no failure.
impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Stop::OutputClosed,
            _ => Stop::storage(format!("the output cannot be written: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_the_exit_code_of_the_contract() {
        use ErrorClass::*;
        for (class, code) in [
            (Usage, 2),
            (Configuration, 2),
            (Storage, 4),
            (Interrupted, 130),
            (Auth, 1),
            (Connection, 1),
            (Timeout, 1),
            (ContentFilter, 1),
            (ContextOverflow, 1),
            (StreamIncomplete, 1),
            (ModelNotFound, 1),
        ] {
            assert_eq!(code_of(class), code, "{class}");
        }
        assert_eq!(Stop::OutputClosed.code(), 0);
        assert_eq!(Stop::from(LogError::Busy("held".into())).code(), 2);
        assert_eq!(Stop::from(LogError::Locked("database locked".into())).code(), 4);
        assert_eq!(Stop::from(LogError::Damaged("x".into())).code(), 4);
    }
}

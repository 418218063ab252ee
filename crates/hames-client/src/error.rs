//! Why a request had no good answer.

use hames_protocol::api::{ApiError, ApiErrorCode, ApiVersion};

/// What a client can meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there: the request was not sent.
    #[error("no server answers at {place} ({why})")]
    Unreachable {
        /// The socket or address.
        place: String,
        /// What the system said.
        why: String,
    },
    /// The connection broke after the request was sent: what became of it is not known.
    #[error("the connection to the server broke ({0})")]
    Lost(String),
    /// The server refuses.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The server speaks another major version of the API.
    #[error(
        "the running server speaks version {}.{} of the API and this program {}.{}; end it with `hames server stop --now`, then try again",
        theirs.major, theirs.minor, ours.major, ours.minor
    )]
    Incompatible {
        /// What this program speaks.
        ours: ApiVersion,
        /// What the server speaks.
        theirs: ApiVersion,
    },
    /// What answered is no server of Hames, or a broken one.
    #[error("the answer cannot be understood ({0})")]
    BadAnswer(String),
    /// The folder or socket of the server cannot be trusted or used.
    #[error("{0}")]
    Place(String),
    /// A server was started and did not come up.
    #[error("{0}")]
    NotStarted(String),
}

impl ClientError {
    /// The code, where the server refused.
    pub fn code(&self) -> Option<ApiErrorCode> {
        match self {
            ClientError::Refused(error) => Some(error.code),
            _ => None,
        }
    }
}

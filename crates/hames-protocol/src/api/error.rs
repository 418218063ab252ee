//! How the API refuses.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api;

/// What kind of refusal it is. Programs branch on it; names are only ever added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApiErrorCode {
    /// The body, the path or a parameter is not what this endpoint takes (400).
    Invalid,
    /// No token, or a wrong one (401).
    Unauthorized,
    /// A host or origin that may not talk to this server, or a place that nobody may reach (403).
    Forbidden,
    /// There is no such session, message, run, blob or endpoint (404).
    NotFound,
    /// Not while a run goes on, or while something else has the session to itself (409).
    Busy,
    /// Somebody answered before; the message says who (409).
    Answered,
    /// What was shown is not what is asked now: look again (409).
    Stale,
    /// The name is taken in that folder (409).
    NameTaken,
    /// Another process holds the session; the message says which (409).
    HeldElsewhere,
    /// A subscriber was too slow, or asked for events that are gone; attach again (410).
    Resync,
    /// A body, an attachment or a line is larger than the limit, which the message names (413).
    TooLarge,
    /// The configuration does not allow it: no model, no key, a wrong setting (422).
    Configuration,
    /// The server is stopping (503).
    Stopping,
    /// The store failed: disk full, read only, damaged (507).
    Storage,
    /// A fault of Hames itself (500).
    Internal,
    /// There is such a path, but not for this method (405).
    MethodNotAllowed,
    /// The body is of another media type than the endpoint takes (415).
    UnsupportedMediaType,
    /// The request did not come in time (408).
    Timeout,
    /// The server has more connections than it takes (503).
    Overloaded,
    /// A refusal that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ApiErrorCode {
    /// The HTTP status that goes with it.
    pub fn status(self) -> u16 {
        use ApiErrorCode::*;
        match self {
            Invalid => 400,
            Unauthorized => 401,
            Forbidden => 403,
            NotFound => 404,
            Busy | Answered | Stale | NameTaken | HeldElsewhere => 409,
            Resync => 410,
            TooLarge => 413,
            Configuration => 422,
            Internal | Unknown => 500,
            MethodNotAllowed => 405,
            UnsupportedMediaType => 415,
            Timeout => 408,
            Stopping | Overloaded => 503,
            Storage => 507,
        }
    }
}

api! {
    /// Every refusal of the API: what happened, where, what to do next.
    #[derive(Eq, thiserror::Error)]
    ApiError {
        /// For programs.
        code: ApiErrorCode,
        /// For people: one or two sentences.
        message: String,
        /// Who did what stands in the way: who answered, who holds the session.
        #[serde(default, skip_serializing_if = "Option::is_none")] by: Option<String>,
    }
}

impl ApiError {
    /// A refusal in words.
    pub fn new(code: ApiErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), by: None }
    }

    /// The same refusal, naming who stands in the way.
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.by = Some(who.into());
        self
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

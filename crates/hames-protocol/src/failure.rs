//! Failures as people and programs read them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a failure. Others script against these names; they are only ever added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The key is missing, wrong or not allowed.
    Auth,
    /// Too many requests for now; waiting helps.
    RateLimit,
    /// Credit, plan or long-term quota is used up; waiting a minute does not help.
    QuotaExhausted,
    /// The endpoint does not know this model.
    ModelNotFound,
    /// The provider refuses the request as it stands.
    InvalidRequest,
    /// Refused for one parameter that can be dropped or renamed.
    InvalidRequestFixable,
    /// The provider failed.
    ServerError,
    /// The provider has no capacity now.
    Overloaded,
    /// The provider's filter stopped the request or the answer.
    ContentFilter,
    /// The request alone is larger than the tokens-per-minute allowance.
    RequestExceedsTpm,
    /// The requested output is larger than the model allows.
    MaxTokensTooLarge,
    /// The provider could not parse the model's own tool call; asking again may help.
    ToolUseFailed,
    /// The base URL points at something that is not a Chat Completions endpoint.
    WrongBaseUrl,
    /// The model does not take this kind of input (images, say).
    UnsupportedInput,
    /// The conversation breaks a rule of the wire format.
    WireRule,
    /// The input does not fit the model's window.
    ContextOverflow,
    /// The stream ended before the answer was whole.
    StreamIncomplete,
    /// Nothing came in time.
    Timeout,
    /// The endpoint could not be reached or the connection broke.
    Connection,
    /// The command line or a call was used wrongly.
    Usage,
    /// A setting is missing or wrong.
    Configuration,
    /// The session database or a file of it failed.
    Storage,
    /// A person or the caller stopped it.
    Interrupted,
    /// A fault of Hames itself.
    Internal,
}

impl ErrorClass {
    /// The name used in events, logs and scripts.
    pub fn as_str(self) -> &'static str {
        use ErrorClass::*;
        match self {
            Auth => "auth",
            RateLimit => "rate_limit",
            QuotaExhausted => "quota_exhausted",
            ModelNotFound => "model_not_found",
            InvalidRequest => "invalid_request",
            InvalidRequestFixable => "invalid_request_fixable",
            ServerError => "server_error",
            Overloaded => "overloaded",
            ContentFilter => "content_filter",
            RequestExceedsTpm => "request_exceeds_tpm",
            MaxTokensTooLarge => "max_tokens_too_large",
            ToolUseFailed => "tool_use_failed",
            WrongBaseUrl => "wrong_base_url",
            UnsupportedInput => "unsupported_input",
            WireRule => "wire_rule",
            ContextOverflow => "context_overflow",
            StreamIncomplete => "stream_incomplete",
            Timeout => "timeout",
            Connection => "connection",
            Usage => "usage",
            Configuration => "configuration",
            Storage => "storage",
            Interrupted => "interrupted",
            Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure: what happened, where, and what to do next. Also the payload of the `error` event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The kind.
    pub class: ErrorClass,
    /// One or two sentences for a person: what, where, what next.
    pub message: String,
    /// The provider's own words, unmodified but for length (2 KB) and masked keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message: Option<String>,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The provider's id of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How long the provider asked to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What the provider stated besides words, where it stated anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<Box<Stated>>,
}

/// What a refusal states in a form that can be acted on. Everything is the provider's claim and nothing is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stated {
    /// The most specific code or type, as the provider spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The parameter of the request that it refuses, in snake case (`max_tokens`, `messages[0].role`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The parameter it wants instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// The most tokens it takes, of whatever kind the class names: of the window at `context_overflow`, of the output at
    /// `max_tokens_too_large`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_tokens: Option<u64>,
    /// The tokens the request asked for by its count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_tokens: Option<u64>,
    /// Those of them that were the input, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Whether what does not fit is counted in something else than tokens: bytes of the body, messages. It says nothing
    /// about the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_in_tokens: bool,
    /// Whether the server is still loading its model: it will answer, but not within seconds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_loading: bool,
}

impl Failure {
    /// A failure with only a class and a message; not retryable.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            provider_message: None,
            status: None,
            retryable: false,
            request_id: None,
            retry_after_ms: None,
            stated: None,
        }
    }

    /// The parameter of the request that the provider refused, where it named one.
    pub fn parameter(&self) -> Option<&str> {
        self.stated.as_ref()?.parameter.as_deref()
    }

    /// Whether the server is still loading its model.
    pub fn is_loading(&self) -> bool {
        self.stated.as_ref().is_some_and(|stated| stated.is_loading)
    }

    /// The same failure, marked as worth trying again.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Failure {}

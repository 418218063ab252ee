//! Names the kind of a refusal and says whether the same request may succeed later.
//!
//! An ordered list of questions: the first that is answered yes decides. Codes are asked before words and the status last,
//! because providers use the same status for opposite things. A status that says "not about this request" (401, 402, 429,
//! 5xx) vetoes reading an overflow out of words.

use std::time::Duration;

use hames_protocol::ErrorClass;

use super::envelope::Envelope;

/// A provider that asks to wait longer than this is not busy: a quota is used up.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What is known of a refusal.
pub(crate) struct Refusal<'a> {
    /// The status in force: of the response, or as stated by an event; 0 where there is none.
    pub(crate) status: u16,
    pub(crate) body: &'a Envelope,
    pub(crate) delay: Option<Duration>,
}

impl Refusal<'_> {
    /// The kind, and whether trying again may help.
    pub(crate) fn class(&self) -> (ErrorClass, bool) {
        use ErrorClass::*;
        let class =
            self.quota().or_else(|| self.access()).or_else(|| self.request()).unwrap_or_else(|| self.by_status());
        let retryable = match class {
            RateLimit | Overloaded | Timeout | ToolUseFailed | InvalidRequestFixable => true,
            // A crashed model stays crashed until somebody loads it again; 501 and 505 are answers, not accidents.
            ServerError => !self.says(&["model has crashed"]) && !matches!(self.status, 501 | 505),
            _ => false,
        };
        (class, retryable)
    }

    fn quota(&self) -> Option<ErrorClass> {
        let per_minute = self.says(&["tokens per min", "tpm"]);
        if per_minute && (self.says(&["request too large"]) || self.asks_more_than_the_limit()) {
            return Some(ErrorClass::RequestExceedsTpm);
        }
        if self.status == 401 {
            return None;
        }
        let used_up = self.status == 402
            || self.has(&QUOTA_CODES)
            || self.body.codes.iter().any(|c| c.ends_with("usagelimiterror"))
            || self.says(&QUOTA_WORDS)
            || self.body.is_daily
            || (self.says(&["exceeded your current quota"]) && self.delay.is_none())
            || (matches!(self.status, 0 | 429) && self.delay.is_some_and(|d| d > LONGEST_WAIT));
        used_up.then_some(ErrorClass::QuotaExhausted)
    }

    /// `Limit 6000, Requested 12328`: no waiting makes room for it.
    fn asks_more_than_the_limit(&self) -> bool {
        let number_after = |word: &str| {
            let rest = self.body.words.split_once(word)?.1.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse::<u64>().ok()
        };
        matches!((number_after("limit "), number_after("requested ")), (Some(limit), Some(asked)) if asked > limit)
    }

    fn access(&self) -> Option<ErrorClass> {
        if matches!(self.status, 401 | 407) {
            return Some(ErrorClass::Auth);
        }
        let may_be = matches!(self.status, 0 | 400 | 403 | 422);
        let about_key = self.says(&["api key", "api-key", "apikey", "access token"])
            && self.says(&["invalid", "incorrect", "not valid", "missing", "expired", "no api key", "must provide"]);
        (may_be && (about_key || self.has(&AUTH_CODES))).then_some(ErrorClass::Auth)
    }

    fn request(&self) -> Option<ErrorClass> {
        use ErrorClass::*;
        let is_refusal = matches!(self.status, 0 | 400 | 403 | 404 | 409 | 410 | 413 | 422 | 451);
        if self.has(&["tool_use_failed"]) || self.says(&["tool call validation failed", "failed_generation"]) {
            return Some(ToolUseFailed);
        }
        if self.has(&["exceed_context_size_error"]) {
            return Some(ContextOverflow);
        }
        if self.says(&UNSUPPORTED_INPUT_WORDS) {
            return Some(UnsupportedInput);
        }
        if self.says(&["requires --jinja", "json_schema and grammar"]) {
            return Some(InvalidRequest);
        }
        if !is_refusal {
            return None;
        }
        if self.has(&FIXABLE_CODES) || self.says(&["unsupported parameter", "unrecognized request argument"]) {
            return Some(InvalidRequestFixable);
        }
        if self.is_output_cap() {
            return Some(MaxTokensTooLarge);
        }
        if self.is_overflow() {
            return Some(ContextOverflow);
        }
        if self.is_model() {
            return Some(ModelNotFound);
        }
        if self.has(&FILTER_CODES) || self.says(&FILTER_WORDS) {
            return Some(ContentFilter);
        }
        self.says(&WIRE_WORDS).then_some(WireRule)
    }

    /// The output asked for is too large, whatever the input.
    fn is_output_cap(&self) -> bool {
        self.says(&["max_tokens", "max_completion_tokens", "max_output_tokens", "maximum tokens you requested"])
            && self.says(&["less than or equal", "at most", "too large", "exceeds the model limit", "above maximum"])
            && !self.says(&["input tokens", "in the messages", "your prompt", "input length"])
    }

    fn is_overflow(&self) -> bool {
        if !matches!(self.status, 0 | 400 | 413 | 422) {
            return false;
        }
        let vetoed = self.says(&OVERFLOW_VETO);
        !vetoed && (self.status == 413 || self.has(&OVERFLOW_CODES) || self.says(&OVERFLOW_WORDS))
    }

    fn is_model(&self) -> bool {
        self.has(&MODEL_CODES)
            || (self.has(&["not_found_error"]) && self.body.words.starts_with("model:"))
            || (self.says(&["model"]) && self.says(&MODEL_WORDS))
    }

    fn by_status(&self) -> ErrorClass {
        use ErrorClass::*;
        let busy = self.has(&OVERLOAD_CODES) || self.says(&OVERLOAD_WORDS);
        let limited = self.has(&RATE_CODES) || self.says(&["rate limit", "rate-limit", "too many requests", "throttl"]);
        match self.status {
            503 | 529 => Overloaded,
            429 if busy && !limited => Overloaded,
            429 => RateLimit,
            403 => Auth,
            404 | 405 => WrongBaseUrl,
            408 => Timeout,
            _ if limited => RateLimit,
            409 | 425 => ServerError,
            400..=499 => InvalidRequest,
            _ if busy => Overloaded,
            500.. => ServerError,
            _ if self.has(&["invalid_request_error", "invalid_argument", "badrequesterror", "validation_error"]) => {
                InvalidRequest
            }
            _ => ServerError,
        }
    }

    fn has(&self, codes: &[&str]) -> bool {
        self.body.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.body.words.contains(word))
    }
}

const QUOTA_CODES: [&str; 8] = [
    "insufficient_quota",
    "usage_limit_reached",
    "usage_not_included",
    "billing_hard_limit_reached",
    "insufficient_balance",
    "insufficient_credits",
    "billing_not_active",
    "user_weekly_rate_limited",
];
const QUOTA_WORDS: [&str; 17] = [
    "credit balance",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "can only afford",
    "more credits",
    "have any credits",
    "out of credits",
    "no credits",
    "purchase credits",
    "subscription quota",
    "monthly limit",
    "monthly spend",
    "weekly rate limit",
    "weekly limit",
    "usage limit has been reached",
    "account is in arrears",
];
const AUTH_CODES: [&str; 8] = [
    "invalid_api_key",
    "api_key_invalid",
    "authentication_error",
    "unauthenticated",
    "unauthorized",
    "token_expired",
    "accessdeniedexception",
    "unrecognizedclientexception",
];
const FIXABLE_CODES: [&str; 4] =
    ["unsupported_parameter", "unsupported_value", "unknown_parameter", "previous_response_not_found"];
const FILTER_CODES: [&str; 9] = [
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
    "bio_policy",
    "responsibleaipolicyviolation",
    "data_inspection_failed",
    "moderation_blocked",
    "prohibited_content",
    "sensitive",
];
const FILTER_WORDS: [&str; 7] = [
    "content management policy",
    "content policy",
    "usage policy",
    "safety reasons",
    "safety system",
    "flagged",
    "inappropriate content",
];
const MODEL_CODES: [&str; 5] =
    ["model_not_found", "deploymentnotfound", "invalid_model", "model_not_exist", "model_not_available"];
const MODEL_WORDS: [&str; 22] = [
    "not found",
    "does not exist",
    "doesn't exist",
    "not exist",
    "identifier is invalid",
    "not a valid model",
    "invalid model",
    "unknown model",
    "no such model",
    "supported api model names",
    "end of its life",
    "was removed",
    "has been removed",
    "has been deprecated",
    "has been decommissioned",
    "on-demand throughput",
    "no longer available",
    "is not available",
    "pulling it first",
    "no endpoints found for",
    "unsupported model",
    "do not have access to",
];
const WIRE_WORDS: [&str; 9] = [
    "no tool output found",
    "tool_call_id",
    "must be followed by tool",
    "preceding message with",
    "tool_result",
    "function call turn",
    "roles must alternate",
    "reasoning_content",
    "thinking blocks",
];
const UNSUPPORTED_INPUT_WORDS: [&str; 10] = [
    "image input is not supported",
    "support image",
    "not support vision",
    "unknown variant `image_url`",
    "unknown variant `input_audio`",
    "unsupported content[].type",
    "mmproj",
    "image_url is only supported",
    "images are not supported",
    "not a multimodal model",
];
const OVERFLOW_CODES: [&str; 5] = [
    "context_length_exceeded",
    "too_many_prompt_tokens",
    "too_many_tokens",
    "request_too_large",
    "model_context_window_exceeded",
];
const OVERFLOW_WORDS: [&str; 24] = [
    "context length",
    "context window",
    "contextwindow",
    "context size",
    "context limit",
    "context_length",
    "max context",
    "maximum context",
    "exceed context",
    "context the overflows",
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max",
    "too many tokens",
    "input tokens exceeded",
    "input length",
    "input is too long",
    "messages is too long",
    "length of the messages",
    "tokens + `max_new_tokens`",
    "maximum allowed length",
    "initial prompt is greater",
    "token limit reached",
    "number of input tokens",
];
const OVERFLOW_VETO: [&str; 9] =
    ["rate limit", "per minute", "per min", "tpm", "throttl", "please wait", "quota", "afford", "credit"];
const OVERLOAD_CODES: [&str; 7] = [
    "overloaded_error",
    "overloaded",
    "server_is_overloaded",
    "slow_down",
    "unavailable",
    "unavailable_error",
    "engine_overloaded",
];
const OVERLOAD_WORDS: [&str; 8] = [
    "overloaded",
    "capacity exceeded",
    "at capacity",
    "no capacity",
    "high demand",
    "loading model",
    "is loading",
    "server is busy",
];
const RATE_CODES: [&str; 7] = [
    "rate_limit_exceeded",
    "rate_limit_error",
    "rate_limited",
    "ratelimitreached",
    "resource_exhausted",
    "too_many_requests",
    "throttlingexception",
];

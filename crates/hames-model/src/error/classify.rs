//! Names the kind of a refusal and says whether the same request may succeed later.
//!
//! An ordered list of questions: the first that is answered yes decides. Codes are asked before words and the status last,
//! because providers use the same status for opposite things. A status that says "not about this request" (401, 402, 429,
//! 5xx) vetoes reading an overflow out of words. The words are in [`words`](super::words), so that this page stays
//! readable as what it is: the order of the questions.

use std::time::Duration;

use hames_protocol::ErrorClass;

use super::envelope::Envelope;
use super::parameter;
use super::words::*;

/// A provider that asks to wait longer than this is not busy: a quota is used up.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Lines of words that are looked at one by one.
const MAX_LINES: usize = 64;

/// What is known of a refusal.
pub(crate) struct Refusal<'a> {
    /// The status in force: of the response, or as stated by an event; 0 where there is none.
    pub(crate) status: u16,
    pub(crate) body: &'a Envelope,
    pub(crate) delay: Option<Duration>,
    /// The model that was asked for.
    pub(crate) model: &'a str,
}

impl Refusal<'_> {
    /// The kind, and whether trying again may help.
    pub(crate) fn class(&self) -> (ErrorClass, bool) {
        use ErrorClass::*;
        let class =
            self.quota().or_else(|| self.access()).or_else(|| self.request()).unwrap_or_else(|| self.by_status());
        let retryable = match class {
            RateLimit | Overloaded | Timeout | ToolUseFailed | InvalidRequestFixable => true,
            // 501 and 505 are answers, not accidents.
            ServerError => !self.says(FOR_GOOD_WORDS) && !matches!(self.status, 501 | 505),
            _ => false,
        };
        (class, retryable)
    }

    /// Whether the server has not finished loading its model.
    pub(crate) fn is_loading(&self) -> bool {
        matches!(self.status, 0 | 425 | 429 | 500..) && self.says(LOADING_WORDS)
    }

    fn quota(&self) -> Option<ErrorClass> {
        let per_minute = self.says(&["tokens per min", "tpm", "token per minute"]);
        if per_minute && (self.says(&["request too large"]) || self.asks_more_than_the_limit()) {
            return Some(ErrorClass::RequestExceedsTpm);
        }
        if self.status == 401 {
            return None;
        }
        let is_far = self.delay.is_none_or(|delay| delay > LONGEST_WAIT);
        let used_up = self.status == 402
            || self.has(QUOTA_CODES)
            || self.body.codes.iter().any(|c| c.ends_with("usagelimiterror"))
            || self.says(QUOTA_WORDS)
            || self.body.is_daily
            || (is_far && self.says(QUOTA_WORDS_UNLESS_SOON))
            || (is_far && matches!(self.status, 0 | 400 | 403 | 429) && self.is_per_day())
            || (matches!(self.status, 0 | 429) && self.delay.is_some_and(|d| d > LONGEST_WAIT));
        used_up.then_some(ErrorClass::QuotaExhausted)
    }

    /// A limit of a day or more: no run waits for its end.
    fn is_per_day(&self) -> bool {
        self.says(LONG_PERIOD_WORDS) && self.says(&["limit", "quota", "exceeded", "exhausted", "too many"])
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
        if matches!(self.status, 401 | 407) || self.has(KEY_CODES) {
            return Some(ErrorClass::Auth);
        }
        if !matches!(self.status, 0 | 400 | 403 | 404 | 422) {
            return None;
        }
        // Who may not use one model may use others, and who may not say this may say that.
        let of_model = self.has(MODEL_CODES) || self.says(&["access to the model", "access to model"]);
        if of_model || self.is_filter() {
            return None;
        }
        let about_key = self.says(KEY_WORDS) && self.says(BAD_KEY_WORDS);
        (about_key || self.has(AUTH_CODES) || self.says(AUTH_WORDS)).then_some(ErrorClass::Auth)
    }

    fn request(&self) -> Option<ErrorClass> {
        use ErrorClass::*;
        let is_refusal =
            matches!(self.status, 0 | 400 | 403 | 404 | 406 | 409 | 410 | 412 | 413 | 415 | 422 | 424 | 451);
        if self.has(TOOL_USE_CODES) || self.says(TOOL_USE_WORDS) {
            return Some(ToolUseFailed);
        }
        if self.has(&["exceed_context_size_error"]) {
            return Some(ContextOverflow);
        }
        if self.says(UNSUPPORTED_INPUT_WORDS) {
            return Some(UnsupportedInput);
        }
        if (is_refusal || self.status >= 500) && self.says(WIRE_WORDS) {
            return Some(WireRule);
        }
        if self.says(SET_UP_WORDS) {
            return Some(InvalidRequest);
        }
        if !is_refusal {
            return None;
        }
        if self.has(FIXABLE_CODES) || self.says(FIXABLE_WORDS) {
            return Some(InvalidRequestFixable);
        }
        if self.is_output_cap() {
            return Some(MaxTokensTooLarge);
        }
        if self.is_overflow() {
            return Some(ContextOverflow);
        }
        if self.is_filter() {
            return Some(ContentFilter);
        }
        self.is_model().then_some(ModelNotFound)
    }

    /// The output asked for is too large, whatever the input.
    fn is_output_cap(&self) -> bool {
        let about_output = self.body.param.as_deref().is_some_and(|param| OUTPUT_WORDS.contains(&param));
        (about_output || self.says(OUTPUT_WORDS)) && self.says(TOO_LARGE_WORDS) && !self.says(INPUT_WORDS)
    }

    fn is_overflow(&self) -> bool {
        let names_another = |param: &str| OTHER_PARAMETERS.iter().any(|other| param.starts_with(other));
        let of_another = self.body.param.as_deref().is_some_and(names_another);
        if !matches!(self.status, 0 | 400 | 413 | 422) || of_another || self.says(OVERFLOW_VETO) {
            return false;
        }
        self.status == 413
            || self.is_too_long_a_list()
            || self.says(BODY_WORDS)
            || self.has(OVERFLOW_CODES)
            || self.says(OVERFLOW_WORDS)
            || self.sounds_too_long()
    }

    /// A message with too many characters, or too many messages.
    fn is_too_long_a_list(&self) -> bool {
        let of_input = self.body.param.as_deref().is_some_and(|p| p.starts_with("messages") || p.starts_with("input"));
        let of_all = self.body.param.as_deref().is_some_and(|p| matches!(p, "messages" | "input"));
        (of_input && self.has(&["string_above_max_length"])) || (of_all && self.has(&["array_above_max_length"]))
    }

    /// Whether what did not fit is counted in bytes, characters or messages: nothing is said about the window.
    pub(crate) fn is_not_in_tokens(&self) -> bool {
        let says_anything = !self.body.message.is_empty() || self.body.code.is_some() || self.body.page.is_some();
        let speaks_of_tokens = self.has(OVERFLOW_CODES) && !self.has(&["request_too_large"]);
        (self.status == 413 && says_anything && !speaks_of_tokens)
            || self.is_too_long_a_list()
            || (self.says(BODY_WORDS) && !self.says(&["token"]))
    }

    /// A wording nobody has written down yet: something of the input, counted in tokens, is more than may be.
    fn sounds_too_long(&self) -> bool {
        self.body.words.lines().take(MAX_LINES).any(|line| {
            let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
            says(&["token", "context"])
                && says(&["prompt", "input", "context", "messages", "conversation", "request"])
                && says(EXCESS_WORDS)
                && !says(OTHER_LIMIT_WORDS)
        })
    }

    fn is_filter(&self) -> bool {
        let says_policy = self.says(POLICY_WORDS) && self.says(BREACH_WORDS);
        self.has(FILTER_CODES)
            || self.body.codes.iter().any(|code| code.contains("sensitivecontent"))
            || self.says(FILTER_WORDS)
            || says_policy
    }

    fn is_model(&self) -> bool {
        // A parameter, an input or a file may be not found too.
        let about_other = self.body.param.as_deref().is_some_and(|param| param != "model");
        let asked_for = || self.model.len() > 3 && self.body.words.contains(&self.model.to_lowercase());
        let subject = || self.says(&["model", "deployment", "engine"]) || asked_for();
        self.has(MODEL_CODES)
            || (self.has(&["not_found_error"]) && self.body.words.starts_with("model:"))
            || self.says(MODEL_PHRASES)
            || (!about_other && subject() && (self.says(MODEL_WORDS) || self.status == 404))
    }

    fn by_status(&self) -> ErrorClass {
        use ErrorClass::*;
        let busy = self.has(OVERLOAD_CODES) || self.says(OVERLOAD_WORDS);
        let limited = self.has(RATE_CODES) || self.says(RATE_WORDS);
        match self.status {
            498 | 503 | 529 => Overloaded,
            429 if busy && !limited => Overloaded,
            429 => RateLimit,
            403 if limited => RateLimit,
            403 => Auth,
            404 | 405 => WrongBaseUrl,
            408 => Timeout,
            _ if limited => RateLimit,
            _ if busy => Overloaded,
            409 | 425 => ServerError,
            0 | 200 if self.says(ADDRESS_WORDS) => WrongBaseUrl,
            400..=499 => InvalidRequest,
            500.. => ServerError,
            _ if self.has(REQUEST_CODES) => InvalidRequest,
            _ => ServerError,
        }
    }

    fn has(&self, codes: &[&str]) -> bool {
        self.body.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.body.words.contains(word))
    }

    /// The parameter that is refused, where the class is about one.
    pub(crate) fn parameter(&self, class: ErrorClass) -> Option<String> {
        use ErrorClass::*;
        let about_request =
            matches!(class, InvalidRequest | InvalidRequestFixable | MaxTokensTooLarge | UnsupportedInput | WireRule);
        let named = || parameter::named(&self.body.message);
        about_request.then(|| self.body.param.clone().or_else(named)).flatten()
    }
}

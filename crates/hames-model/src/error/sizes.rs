//! How many tokens a refusal says there may be, and how many were asked for.
//!
//! Providers put these numbers in any order, and other numbers beside them: what one asked beyond the limit, the code of
//! the error, a range's lower end, a limit plus one. So each wording has its rule, the narrow ones first; only then do
//! wordings come that name one of the two. Members (`n_ctx`) say it without words and come before all.

use hames_protocol::{ErrorClass, Stated};

use super::envelope::Envelope;
use super::pattern::{Numbers, find};

/// Words that are looked through: what a provider says first, not the request it may quote behind it.
const MAX_WORDS_BYTES: usize = 8 * 1024;

/// Numbers beyond this are no counts of tokens, and do not survive JSON either.
const MAX_TOKENS: u64 = 1 << 53;

/// Wordings of a full window.
const WINDOW: &[&str] = &[
    "is too large: {asked}…maximum context length is {limit} tokens…your request has {input} input tokens",
    "maximum context length is {limit} tokens…requested {asked} output tokens…{input} input tokens",
    "maximum context length is {limit} tokens…({input} in the messages, {asked} in the completion)",
    "maximum context length is {limit} tokens…({input} in your prompt; {asked} for the completion)",
    "maximum context length is {limit} tokens…({input} of text input, {asked} in the output)",
    "maximum context length is {limit} tokens…({input} from the input messages and {asked} for the completion)",
    "maximum context length is {limit} tokens…requested about {asked} tokens",
    "maximum context length is {limit} tokens…requested {asked} tokens",
    "maximum context length is {limit} tokens…resulted in {asked} tokens",
    "maximum context length is {limit} tokens…request has {asked} input tokens",
    "maximum context length of {limit} tokens…requested a total of {x} tokens: {input} tokens from the input messages and {asked} tokens",
    "maximum context length of {limit} tokens…requested a total of {asked} tokens",
    "maximum prompt length is {limit}…contains {asked} tokens",
    "token limit: {limit} (requested: {asked})",
    "token count ({asked}) exceeds the maximum number of tokens allowed ({limit})",
    "token count of {asked} exceeds the limit of {limit}",
    "current length is {asked} while limit is {limit}",
    "you passed {input} input tokens and requested {asked} output tokens…context length is only {limit}",
    "context limit: {input} + {asked} > {limit}",
    "tokens + `max_new_tokens` must be <= {limit}. given: {input}…{asked} `max_new_tokens`",
    "must have less than {limit} tokens. given: {asked}",
    "({asked} tokens) is longer than the model's context length ({limit}",
    "too long: {asked}, model maximum context length: {limit}",
    "({asked} tokens) exceeds the maximum allowed length ({limit}",
    "({asked} tokens) is too long and exceeds limit of {limit}",
    "(length {asked}) is longer than the maximum model length of {limit}",
    "token count is {asked} but model only supports up to {limit}",
    "number of input tokens {asked} cannot exceed the total tokens limit {limit}",
    "sequence length of {asked}, but the maximum supported sequence length is just {limit}",
    "input length ({asked}) exceeds model's maximum context length ({limit}",
    "requested tokens ({asked}) exceed context window of {limit}",
    "({asked} tokens) exceeds the available context size ({limit}",
    "contains {asked} tokens…too large for model with {limit} maximum context",
    "{asked} tokens exceeds max context window of {limit}",
    "keep the first {asked} tokens…context length of only {limit}",
    "n_keep: {asked} >= n_ctx: {limit}",
    "cannot exceed {limit} - received {asked}",
    "exceeded by {excess} tokens…limit for this model is {limit}",
    "range of input length should be [{x}, {limit}]",
    "input length {asked} exceeds the maximum length {limit}",
    "input tokens [{asked}] exceed context window [{limit}]",
    "prompt has {asked} tokens…context size is {limit}",
    "limit of {limit} tokens…resulted in {asked} tokens",
    "tokens ({asked}) exceeded this model context window limit ({limit}",
    "maximum context length is {limit} tokens…resulted in over {asked} tokens",
    "prompt_tokens ({asked}) must be less than max_seq_len ({limit}",
    // What was asked for, and then what it is too much for; what is too much by so many tokens names no window.
    "exceeds…by {excess} tokens",
    "exceed…by {excess} tokens",
    "length {asked} is greater than max_seq_len {limit}",
    "length {asked} is greater than the maximum…{limit}",
    "length {asked} exceeds maximum…{limit}",
    "length {asked} exceeds the maximum…{limit}",
    "length {asked} exceeds the limit of {limit}",
    "length ({asked}) exceeds maximum…{limit}",
    "length ({asked}) exceeds the maximum…{limit}",
    "length of {asked} exceeds maximum…{limit}",
    "length of {asked} exceeds the maximum…{limit}",
    "length of {asked} exceeds the limit of {limit}",
    "length of {asked} tokens exceeds the maximum…{limit}",
    "{asked} tokens, which exceeds the maximum…{limit}",
    "{asked} tokens, which exceeds the limit of {limit}",
    "{asked} tokens, which is more than the…{limit}",
    "{asked} tokens exceeds the maximum…{limit}",
    "{asked} tokens exceed the maximum…{limit}",
    "{asked} tokens exceed the limit of {limit}",
    "{asked} tokens > {limit}",
    "{asked} > {limit}",
];

/// Wordings that name the window alone.
const WINDOW_ALONE: &[&str] = &[
    "context length is only {limit}",
    "context length of only {limit}",
    "maximum context length is {limit}",
    "maximum context length of {limit}",
    "maximum context length: {limit}",
    "maximum context length ({limit}",
    "context length of {limit}",
    "context length is {limit}",
    "context length ({limit}",
    "context window of {limit}",
    "context window is {limit}",
    "context window ({limit}",
    "context size of {limit}",
    "context size is {limit}",
    "context size ({limit}",
    "context limit of {limit}",
    "limit of {limit} tokens",
    "maximum of {limit} tokens",
    "max size: {limit} tokens",
    "model token limit: {limit}",
];

/// Wordings that name what was asked for alone.
const ASKED_ALONE: &[&str] = &[
    "requested about {asked} tokens",
    "requested {asked} tokens",
    "resulted in {asked} tokens",
    "contains {asked} tokens",
    "request has {asked} input tokens",
    "has {asked} tokens",
    "({asked} tokens)",
    "received {asked} tokens",
];

/// Wordings of an output that may not be so long.
const OUTPUT: &[&str] = &[
    "({asked}) is too large…at most {limit}",
    "value of {asked} but the supported range is from {x} (inclusive) to {above} (exclusive)",
    "less than or equal to `{limit}`",
    "less than or equal to {limit}",
    "too large: {asked}…at most {limit}",
    "supports at most {limit}",
    "at most {limit}",
    "max_tokens: {asked} > {limit}",
    "{asked} > {limit}",
    "exceeds the model limit of {limit}",
    "<= {limit}, but got {asked}",
    "should be [{x}, {limit}]",
    "is [{x}, {limit}]",
    "between {x} and {limit}",
    "must be <= {limit}",
    "cannot exceed {limit}",
    "maximum value is {limit}",
    "maximum is {limit}",
    "limit is {limit}",
    "must not exceed {limit}",
];

/// Wordings of an allowance per minute that is smaller than the request.
const ALLOWANCE: &[&str] = &["limit {limit}, requested {asked}", "limit {limit}, used {x}, requested {asked}"];

/// What a refusal states of sizes, put into `stated`.
pub(crate) fn state(class: ErrorClass, body: &Envelope, stated: &mut Stated) {
    let end = super::boundary(&body.words, MAX_WORDS_BYTES);
    let words = &body.words[..end];
    let first = |rules: &[&str]| rules.iter().find_map(|rule| find(rule, words));
    let numbers = match class {
        ErrorClass::ContextOverflow => {
            let stated = Numbers { limit: body.window, asked: body.prompt_tokens, ..Numbers::default() };
            let in_words = || {
                first(WINDOW).unwrap_or_else(|| Numbers {
                    limit: first(WINDOW_ALONE).and_then(|n| n.limit),
                    asked: first(ASKED_ALONE).and_then(|n| n.asked),
                    ..Numbers::default()
                })
            };
            if stated.limit.is_some() { stated } else { in_words() }
        }
        ErrorClass::MaxTokensTooLarge => first(OUTPUT).unwrap_or_default(),
        ErrorClass::RequestExceedsTpm => first(ALLOWANCE).unwrap_or_default(),
        _ => return,
    };
    let asked = numbers.asked.or_else(|| numbers.limit?.checked_add(numbers.excess?));
    let is_sane = |number: &u64| (1..MAX_TOKENS).contains(number);
    let limit = numbers.limit.filter(is_sane);
    // Somebody who asked for less than the limit was not refused for it: the numbers mean something else.
    if limit.zip(asked).is_some_and(|(limit, asked)| limit > asked.saturating_add(asked / 20)) {
        return;
    }
    stated.limit_tokens = limit;
    stated.requested_tokens = asked.filter(is_sane);
    stated.input_tokens = numbers.input.filter(is_sane);
}

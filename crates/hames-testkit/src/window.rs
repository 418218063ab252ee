//! A window as real servers have one: each refuses, or cuts, in its own words.

use serde_json::{Value, json};

use crate::plan::{TOKEN_BYTES, error_body};
use crate::{ChatRequest, Turn};

/// What a server does with a request that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// States window, sum, input and answer, in this order.
    Sum,
    /// States the answer first, then window and input.
    AnswerFirst,
    /// States the input, then the window, and looks at nothing else.
    InputOnly,
    /// States both as members beside words without numbers, and looks at the input only.
    Members,
    /// Says no number.
    NoNumber,
    /// Refuses by a status for bodies that are too large, without a word.
    Silent413,
    /// Answers with a stream that holds nothing.
    EmptyStream,
    /// Ends at once for its length, having read a whole window.
    LengthAtOnce,
}

impl TooLong {
    /// All of them.
    pub const ALL: [TooLong; 8] = [
        TooLong::Sum,
        TooLong::AnswerFirst,
        TooLong::InputOnly,
        TooLong::Members,
        TooLong::NoNumber,
        TooLong::Silent413,
        TooLong::EmptyStream,
        TooLong::LengthAtOnce,
    ];

    /// Whether the answer that is allowed counts too.
    fn counts_answer(self) -> bool {
        matches!(self, TooLong::Sum | TooLong::AnswerFirst)
    }

    /// The answer to a request that does not fit into so many tokens; nothing where it fits.
    pub fn refusal(self, request: &ChatRequest, window: u64) -> Option<Turn> {
        let (input, answer) = (request.tokens(), request.answer_limit());
        let asked = if self.counts_answer() { input.saturating_add(answer) } else { input };
        if asked <= window {
            return None;
        }
        let refused = |message: String, code: &str| {
            Turn::error(400, error_body(&message, "invalid_request_error", code, Some("messages")))
        };
        Some(match self {
            TooLong::Sum => refused(
                format!(
                    "This model's maximum context length is {window} tokens, but you requested {asked} tokens ({input} in \
                     the messages, {answer} in the completion)."
                ),
                "context_length_exceeded",
            ),
            TooLong::AnswerFirst => refused(
                format!(
                    "'max_tokens' is too large: {answer}. This model's maximum context length is {window} tokens and your \
                     request has {input} input tokens."
                ),
                "bad_request",
            ),
            TooLong::InputOnly => {
                refused(format!("prompt is too long: {input} tokens > {window} maximum"), "bad_request")
            }
            TooLong::Members => Turn::error(
                400,
                json!({"error": {"code": 400, "message": "there is no room for this", "type": "exceed_context_size_error",
                    "n_ctx": window, "n_prompt_tokens": input}}),
            ),
            TooLong::NoNumber => {
                refused("Your input exceeds the context window of this model.".into(), "context_length_exceeded")
            }
            TooLong::Silent413 => Turn::error(413, Value::String(String::new())),
            TooLong::EmptyStream => Turn::new().finish(None).usage(None),
            TooLong::LengthAtOnce => Turn::new().finish("length").usage(json!({
                "prompt_tokens": window, "completion_tokens": 0, "total_tokens": window,
            })),
        })
    }
}

impl ChatRequest {
    /// Tokens of messages and tools, as this provider counts: four bytes each.
    pub fn tokens(&self) -> u64 {
        let bytes = |key: &str| match &self.body[key] {
            Value::Null => 0,
            value => value.to_string().len(),
        };
        (bytes("messages") + bytes("tools")).div_ceil(TOKEN_BYTES) as u64
    }

    /// Tokens the answer may have; 0 where nothing is said.
    pub fn answer_limit(&self) -> u64 {
        let limit = |key: &str| self.body[key].as_u64();
        limit("max_completion_tokens").or_else(|| limit("max_tokens")).unwrap_or(0)
    }
}

//! What a client asked, and how much of it the request before had said already.

use bytes::Bytes;
use serde_json::Value;

use crate::wire::Violation;

/// One request to `chat/completions`.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// Its number among the chat requests of this provider, from 1; refused ones count too.
    pub n: usize,
    /// Headers in the order they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it was sent.
    pub raw: Bytes,
    /// The body; null where it is not a JSON object.
    pub body: Value,
    /// What is wrong with it. Empty where the provider is not strict and the body is JSON.
    pub violations: Vec<Violation>,
    /// How it compares with the request before; `None` for the first one.
    pub prefix: Option<Prefix>,
    /// Where the last message ends in `raw`.
    pub(crate) end_of_messages: usize,
}

/// How a request compares with the request before it in the same conversation: the latest one with the same first
/// user message, or else the latest of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Leading bytes of the body that are the same in both.
    pub shared: usize,
    /// Bytes of the earlier body up to the end of its last message.
    pub before: usize,
}

impl Prefix {
    /// Whether everything said before is there again, byte for byte: a provider's prompt cache takes all of it.
    pub fn is_kept(&self) -> bool {
        self.shared >= self.before
    }
}

impl ChatRequest {
    /// The first value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The messages; empty where there are none.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The role of the last message, or an empty text.
    pub fn last_role(&self) -> &str {
        self.messages().last().and_then(|message| message["role"].as_str()).unwrap_or_default()
    }

    /// The text of the last message, its parts joined by newlines.
    pub fn last_text(&self) -> String {
        self.messages().last().map(text_of).unwrap_or_default()
    }

    /// All tool results in order: the id of the call, and the text.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        self.messages()
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| (message["tool_call_id"].as_str().unwrap_or_default().to_owned(), text_of(message)))
            .collect()
    }

    /// The names of the tools offered, in order.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
    }

    /// Whether a stream was asked for.
    pub(crate) fn wants_stream(&self) -> bool {
        self.body["stream"] == true
    }

    /// Whether a streamed answer shall end with its usage.
    pub(crate) fn wants_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == true
    }

    /// What tells one conversation from another.
    pub(crate) fn opening(&self) -> Option<&Value> {
        self.messages().iter().find(|message| message["role"] == "user")
    }
}

/// The text of a message, its parts joined by newlines.
fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

//! What the strictest real providers would refuse in one Chat Completions request.
//!
//! Each rule has a name, by which tests and reports speak of it. The check sees one request and nothing else: no
//! earlier request, no model list.
//!
//! | rule | refused |
//! |---|---|
//! | `model_missing` | no model name |
//! | `private_key` | a top-level member that begins with `_` |
//! | `stream_options_without_stream` | `stream_options` in a request that asks for no stream |
//! | `max_tokens_both`, `max_tokens_value` | both names of the output limit; one that is no positive integer |
//! | `temperature`, `n` | outside 0 to 2; other than 1 |
//! | `lone_surrogate` | half of a surrogate pair escaped in a string |
//! | `messages_empty`, `message_type`, `unknown_role` | no message; one that is no object; a role nobody knows |
//! | `system_not_first`, `first_not_user` | system text after the start; a conversation that the user does not open |
//! | `tool_call_unanswered` | a call without a result right after its message |
//! | `tool_message_orphan`, `tool_message_duplicate` | a result without an open call; a second result |
//! | `assistant_empty`, `tool_calls_empty`, `tool_calls_role` | nothing said; an empty list of calls; calls by another role |
//! | `tool_call_id`, `tool_call_id_duplicate` | a call without an id; an id used before |
//! | `tool_call_type`, `tool_call_name`, `tool_call_arguments` | not a function; an impossible name; arguments that are no text of a JSON object |
//! | `user_content_empty`, `tool_content_empty`, `content_type` | blank content; content that is neither text nor parts |
//! | `content_part`, `content_part_empty` | a part the role cannot hold; a blank text part |
//! | `image_not_user`, `image_url` | media outside a user message; an image that is neither a URL nor inline data |
//! | `tool_choice_without_tools`, `tools_empty`, `tool_type` | tool settings without tools; an empty list; not a function |
//! | `tool_name`, `tool_name_duplicate` | an impossible name; one used twice |
//! | `tool_parameters` | parameters that are no schema of an object |
//! | `tool_schema`, `tool_schema_items`, `tool_schema_ref` | a broken schema; an array without `items`; a dangling `$ref` |
//!
//! The provider adds `invalid_json`, `bad_http` and `scenario_exhausted`.

mod messages;
mod tools;

use std::fmt;

use serde_json::{Map, Value};

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name.
    pub rule: &'static str,
    /// Where in the request, such as `messages[2].content`; may be empty.
    pub param: String,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}: {}", self.rule, self.param, self.message)
    }
}

/// Every broken rule of a request, in the order of the request. `raw` is the text the body was read from; it is needed
/// for what does not survive reading.
pub fn check(body: &Value, raw: &str) -> Vec<Violation> {
    let mut found = Findings::default();
    let empty = Map::new();
    let members = body.as_object().unwrap_or(&empty);
    top_level(members, raw, &mut found);
    messages::check(members.get("messages"), &mut found);
    tools::check(members, &mut found);
    found.0
}

#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, rule: &'static str, param: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation { rule, param: param.into(), message: message.into() });
    }
}

fn top_level(members: &Map<String, Value>, raw: &str, found: &mut Findings) {
    let given = |key: &str| members.get(key).filter(|value| !value.is_null());
    if given("model").and_then(Value::as_str).is_none_or(str::is_empty) {
        found.add("model_missing", "model", "name the model");
    }
    for key in members.keys().filter(|key| key.starts_with('_')) {
        found.add("private_key", key, format!("{key:?} is not a parameter of this API"));
    }
    if given("stream_options").is_some() && members.get("stream") != Some(&Value::Bool(true)) {
        found.add("stream_options_without_stream", "stream_options", "needs \"stream\": true");
    }
    let limits: Vec<_> =
        ["max_tokens", "max_completion_tokens"].into_iter().filter_map(|key| Some((key, given(key)?))).collect();
    if limits.len() == 2 {
        found.add("max_tokens_both", "max_tokens", "set max_tokens or max_completion_tokens, not both");
    }
    for (key, limit) in limits {
        if limit.as_u64().is_none_or(|limit| limit == 0) {
            found.add("max_tokens_value", key, format!("must be a positive integer, not {limit}"));
        }
    }
    if let Some(heat) = given("temperature")
        && heat.as_f64().is_none_or(|heat| !(0.0..=2.0).contains(&heat))
    {
        found.add("temperature", "temperature", format!("must be a number from 0 to 2, not {heat}"));
    }
    if let Some(n) = given("n")
        && n.as_u64() != Some(1)
    {
        found.add("n", "n", format!("must be 1, not {n}"));
    }
    if crate::json::has_lone_surrogate(raw) {
        found.add("lone_surrogate", "", "a string escapes half of a surrogate pair");
    }
}

/// Bytes of a function name at most.
const NAME_LIMIT: usize = 64;

fn is_name(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|name| {
        (1..=NAME_LIMIT).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    })
}

fn name_message(value: Option<&Value>) -> String {
    let name = value.unwrap_or(&Value::Null);
    format!("{name} is no function name: 1 to {NAME_LIMIT} letters, digits, '_' or '-'")
}

/// Whether a text holds nothing to read. The four separators are white space to providers written in Python.
fn is_blank(text: &str) -> bool {
    text.chars().all(|char| char.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&char))
}

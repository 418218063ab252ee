//! The rules of the conversation: who speaks when, and what a message may hold.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Findings, is_blank, is_name, name_message};
use crate::json::is_object;

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];
const MEDIA_PARTS: [&str; 6] = ["image_url", "image", "input_image", "input_audio", "file", "video_url"];
const USER_PARTS: [&str; 5] = ["text", "image_url", "input_audio", "file", "video_url"];
const ASSISTANT_PARTS: [&str; 2] = ["text", "refusal"];
const OTHER_PARTS: [&str; 1] = ["text"];

pub(super) fn check(messages: Option<&Value>, found: &mut Findings) {
    let messages = messages.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        found.add("messages_empty", "messages", "must be a list of at least one message");
        return;
    }
    let mut conversation = Conversation { found, used: BTreeSet::new(), answered: BTreeSet::new(), open: Vec::new() };
    let mut at_start = true;
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        if !message.is_object() {
            conversation.found.add("message_type", at, "must be an object");
            continue;
        }
        let role = message["role"].as_str().unwrap_or_default();
        conversation.order(message, role, &at, &mut at_start);
        conversation.calls_and_results(message, role, &at);
        content(message, role, &at, conversation.found);
    }
    conversation.close_calls();
    if at_start {
        found.add("first_not_user", "messages", "the user says nothing");
    }
}

/// The calls of a conversation so far.
struct Conversation<'a> {
    found: &'a mut Findings,
    used: BTreeSet<&'a str>,
    answered: BTreeSet<&'a str>,
    /// Calls without a result yet, and where they were made.
    open: Vec<(&'a str, String)>,
}

impl<'a> Conversation<'a> {
    fn order(&mut self, message: &Value, role: &str, at: &str, at_start: &mut bool) {
        if !ROLES.contains(&role) {
            self.found.add("unknown_role", format!("{at}.role"), format!("{} is no role", message["role"]));
        }
        if matches!(role, "system" | "developer") {
            if !*at_start {
                self.found.add("system_not_first", at, format!("a {role} message must come before all others"));
            }
        } else if *at_start {
            *at_start = false;
            if role != "user" {
                self.found.add("first_not_user", at, "the conversation must begin with the user");
            }
        }
    }

    fn calls_and_results(&mut self, message: &'a Value, role: &str, at: &str) {
        if role == "tool" {
            self.result(message, at);
        } else {
            self.close_calls();
        }
        if role == "assistant" {
            self.assistant(message, at);
        } else if message.get("tool_calls").is_some() {
            self.found.add("tool_calls_role", at, "only the assistant calls tools");
        }
    }

    fn close_calls(&mut self) {
        for (id, at) in self.open.drain(..) {
            self.found.add("tool_call_unanswered", at, format!("no tool message answers the call {id:?}"));
        }
    }

    fn result(&mut self, message: &'a Value, at: &str) {
        let id = message["tool_call_id"].as_str();
        let open = id.and_then(|id| self.open.iter().position(|(open, _)| *open == id));
        if let (Some(id), Some(open)) = (id, open) {
            self.open.remove(open);
            self.answered.insert(id);
        } else if let Some(id) = id.filter(|id| self.answered.contains(id)) {
            self.found.add("tool_message_duplicate", at, format!("the call {id:?} has its result already"));
        } else {
            let id = &message["tool_call_id"];
            self.found.add("tool_message_orphan", at, format!("no open call before it has the id {id}"));
        }
    }

    fn assistant(&mut self, message: &'a Value, at: &str) {
        let calls = match &message["tool_calls"] {
            Value::Null => {
                if is_nothing(&message["content"]) {
                    self.found.add("assistant_empty", at, "an assistant message needs text or calls");
                }
                return;
            }
            Value::Array(calls) if !calls.is_empty() => calls,
            _ => {
                self.found.add("tool_calls_empty", format!("{at}.tool_calls"), "must be a list of at least one call");
                return;
            }
        };
        for (index, call) in calls.iter().enumerate() {
            self.call(call, &format!("{at}.tool_calls[{index}]"));
        }
    }

    fn call(&mut self, call: &'a Value, at: &str) {
        match call["id"].as_str().filter(|id| !id.is_empty()) {
            None => self.found.add("tool_call_id", format!("{at}.id"), "must be a text that is not empty"),
            Some(id) if !self.used.insert(id) => {
                self.found.add("tool_call_id_duplicate", format!("{at}.id"), format!("{id:?} was used before"));
            }
            Some(id) => self.open.push((id, at.to_owned())),
        }
        if call["type"] != "function" {
            self.found.add("tool_call_type", format!("{at}.type"), "must be \"function\"");
        }
        let name = call["function"].get("name");
        if !is_name(name) {
            self.found.add("tool_call_name", format!("{at}.function.name"), name_message(name));
        }
        if !call["function"]["arguments"].as_str().is_some_and(is_object) {
            let at = format!("{at}.function.arguments");
            self.found.add("tool_call_arguments", at, "must be a text that is one JSON object");
        }
    }
}

/// Whether content says nothing at all; a list of blank parts is the concern of another rule.
fn is_nothing(content: &Value) -> bool {
    match content {
        Value::Null => true,
        Value::String(text) => is_blank(text),
        Value::Array(parts) => parts.is_empty(),
        Value::Object(members) => members.is_empty(),
        other => *other == json!(false) || other.as_f64() == Some(0.0),
    }
}

fn content(message: &Value, role: &str, at: &str, found: &mut Findings) {
    let at = format!("{at}.content");
    let empty_rule = match role {
        "user" => Some("user_content_empty"),
        "tool" => Some("tool_content_empty"),
        _ => None,
    };
    match &message["content"] {
        Value::Null if role == "assistant" => {}
        Value::String(text) => {
            if let Some(rule) = empty_rule.filter(|_| is_blank(text)) {
                found.add(rule, at, "must hold more than white space");
            }
        }
        Value::Array(parts) if !parts.is_empty() => {
            for (index, part) in parts.iter().enumerate() {
                self::part(part, role, &format!("{at}[{index}]"), found);
            }
        }
        _ => found.add(empty_rule.unwrap_or("content_type"), at, "must be a text or a list of at least one part"),
    }
}

fn part(part: &Value, role: &str, at: &str, found: &mut Findings) {
    let allowed = match role {
        "user" => &USER_PARTS[..],
        "assistant" => &ASSISTANT_PARTS[..],
        _ => &OTHER_PARTS[..],
    };
    match part["type"].as_str() {
        Some(kind) if role != "user" && MEDIA_PARTS.contains(&kind) => {
            found.add("image_not_user", at, format!("only the user can send a {kind} part"));
        }
        Some("text") => {
            if part["text"].as_str().is_none_or(is_blank) {
                found.add("content_part_empty", at, "a text part must hold more than white space");
            }
        }
        Some("image_url") if !part["image_url"]["url"].as_str().is_some_and(is_image) => {
            found.add("image_url", at, "needs an http(s) URL or base64 data of an image");
        }
        Some(kind) if allowed.contains(&kind) => {}
        _ => found.add("content_part", at, format!("a part of type {} is not known here", part["type"])),
    }
}

/// Whether an image can be fetched or is given inline.
fn is_image(url: &str) -> bool {
    let says_something = |rest: &str| !rest.is_empty() && !rest.starts_with('\n');
    if let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) {
        return says_something(rest);
    }
    url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,")).is_some_and(|(kind, data)| {
        let is_kind = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '+' | '-');
        !kind.is_empty() && kind.chars().all(is_kind) && says_something(data)
    })
}

//! Reads what a provider says when it refuses: every shape of error body, unwrapped to its words.
//!
//! Objects, bare strings, arrays, JSON inside strings, JSON behind prose, SSE bodies, web pages. It collects; it does not
//! judge.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{delay, parameter};

/// JSON inside strings is unwrapped this often: gateways in front of gateways quote each other.
const MAX_DEPTH: usize = 8;

/// What a body says.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// The words meant for a person; empty where there are none.
    pub(crate) message: String,
    /// All words, in lower case, one line each.
    pub(crate) words: String,
    /// Codes, types and reasons, in lower case.
    pub(crate) codes: Vec<String>,
    /// The code that says most, as it is spelt.
    pub(crate) code: Option<String>,
    /// The parameter the refusal is about, as it is spelt.
    pub(crate) param: Option<String>,
    /// A status stated in the body.
    pub(crate) status: Option<u16>,
    /// A delay stated in the body.
    pub(crate) delay: Option<Duration>,
    /// A point in time (Unix seconds) stated in the body, after which trying again helps.
    pub(crate) resets_at: Option<u64>,
    /// Whether a quota of a whole day is named.
    pub(crate) is_daily: bool,
    /// The title of the page, where the body is a web page and no error at all.
    pub(crate) page: Option<String>,
    nested: bool,
}

impl Envelope {
    /// Reads a body of any kind.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut out = Self::default();
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.starts_with('<') && is_page(text) {
            out.page = Some(title(text));
            return out;
        }
        match parse(text) {
            Some(value) => out.value(&value, 0),
            None if ["data:", "event:", ":"].iter().any(|field| text.starts_with(field)) => out.sse(text),
            None => out.text(text, 0),
        }
        out
    }

    /// Reads the error member of an event.
    pub(crate) fn read_value(value: &Value) -> Self {
        let mut out = Self::default();
        out.value(value, 0);
        out
    }

    fn sse(&mut self, text: &str) {
        for data in text.lines().filter_map(|line| line.strip_prefix("data:")) {
            self.text(data.trim(), 0);
        }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::String(text) => self.text(text, depth),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, depth + 1)),
            Value::Object(members) => self.object(members, depth),
            _ => {}
        }
    }

    fn object(&mut self, members: &Map<String, Value>, depth: usize) {
        for (name, value) in members {
            match name.as_str() {
                "message" | "msg" | "detail" | "error" | "errors" | "details" | "response" | "metadata"
                | "error_message" | "error_description" | "body" | "cause" | "violations" | "previous_errors" => {
                    self.value(value, depth + 1);
                }
                // A gateway quotes the provider behind it: those are the words that explain.
                "raw" => {
                    self.nested = false;
                    self.message.clear();
                    self.value(value, depth + 1);
                    self.nested |= !self.message.is_empty();
                }
                "code" | "type" | "status" | "reason" | "error_type" | "error_code" | "limitName" | "param" => {
                    self.code(name, value);
                }
                "status_code" | "raw_status_code" | "statusCode" | "http_status" => self.number(value),
                "retryDelay" | "retry_after" | "resets_in_seconds" => {
                    let seconds = value.as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok());
                    self.delay = self.delay.or(seconds).or_else(|| delay::spoken(value.as_str()?));
                }
                "resets_at" => self.resets_at = value.as_u64(),
                "loc" => self.param = self.param.take().or_else(|| parameter::of_place(value)),
                "quotaId" => self.is_daily |= value.as_str().is_some_and(|id| id.contains("PerDay")),
                _ => {}
            }
        }
    }

    fn text(&mut self, text: &str, depth: usize) {
        let text = text.trim();
        if text.is_empty() || depth > MAX_DEPTH {
            return;
        }
        self.words.push_str(&text.to_lowercase());
        self.words.push('\n');
        let inner = text.find(['{', '[']).and_then(|at| parse(&text[at..]));
        if self.message.is_empty() {
            self.message = text.to_owned();
        }
        if let Some(inner) = inner
            && (inner.is_object() || inner.as_array().is_some_and(|a| a.iter().any(Value::is_object)))
            && !self.nested
        {
            let outer = std::mem::take(&mut self.message);
            self.value(&inner, depth + 1);
            self.nested = !self.message.is_empty();
            if !self.nested {
                self.message = outer;
            }
        }
    }

    fn code(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(code) if !code.is_empty() => {
                if let Ok(number) = code.parse::<u16>() {
                    self.status = self.status.or(as_status(u64::from(number)));
                }
                if name == "param" {
                    self.param.get_or_insert_with(|| parameter::snake(code));
                } else {
                    // What is called a code says more than a type, and a word more than a number.
                    let says_more = name == "code" || self.code.is_none();
                    if says_more && !code.contains(' ') && code.parse::<u64>().is_err() {
                        self.code = Some(code.clone());
                    }
                    let code = code.to_lowercase();
                    if code.contains(' ') {
                        self.words.push_str(&code);
                        self.words.push('\n');
                    }
                    self.codes.push(code);
                }
            }
            Value::Number(_) => self.number(value),
            _ => {}
        }
    }

    fn number(&mut self, value: &Value) {
        self.status = self.status.or(value.as_u64().and_then(as_status));
    }
}

fn as_status(number: u64) -> Option<u16> {
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

/// JSON, or JSON followed by something else (a stream that went on after its error).
fn parse(text: &str) -> Option<Value> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()
}

fn is_page(text: &str) -> bool {
    let head: String = text.chars().take(1024).collect::<String>().to_lowercase();
    ["<!doctype", "<html", "<head", "<body", "<?xml", "<title"].iter().any(|tag| head.contains(tag))
}

fn title(page: &str) -> String {
    /// A title longer than this is no title.
    const MAX_CHARS: usize = 100;
    let lower = page.to_ascii_lowercase();
    let between = lower.find("<title").and_then(|at| {
        let from = at + lower[at..].find('>')? + 1;
        Some(from..from + lower[from..].find("</title")?)
    });
    let title = between.and_then(|range| page.get(range)).unwrap_or("");
    title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_CHARS).collect()
}

//! Reads what a provider says when it refuses: every shape of error body, unwrapped to its words.
//!
//! Objects, bare strings, arrays, JSON inside strings, JSON behind prose, several documents one after another, JSON
//! followed by a stream, streams, web pages, XML. It collects; it does not judge. What is quoted deepest explains best: a
//! gateway wraps the words of the provider behind it. All it keeps is bounded.

use std::time::Duration;

use hames_sse::{Event, Reader};
use serde_json::{Map, Value};

use super::{boundary, delay, parameter};
use crate::MAX_EVENT_BYTES;

/// JSON inside strings is unwrapped this often: gateways in front of gateways quote each other.
const MAX_QUOTES: u8 = 5;

/// Objects inside objects are looked into this deep; the parser itself stops at 128.
const MAX_DEPTH: u8 = 32;

/// Documents of one body that are read, one after another.
const MAX_DOCUMENTS: usize = 16;

/// Places in a text where JSON may begin that are tried.
const MAX_BRACKETS: usize = 8;

/// Bytes of words that are kept, and of codes how many: errors that are longer quote the request.
const MAX_WORDS_BYTES: usize = 64 * 1024;
const MAX_CODES: usize = 256;

/// A point in time above this is in milliseconds: as seconds it would be in the year 5138.
const MILLISECONDS_FROM: u64 = 100_000_000_000;

/// What a body says.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// The words meant for a person; empty where there are none.
    pub(crate) message: String,
    /// All words, in lower case and with plain apostrophes, one line each.
    pub(crate) words: String,
    /// Codes, types and reasons, in lower case.
    pub(crate) codes: Vec<String>,
    /// The code that says most, as it is spelt.
    pub(crate) code: Option<String>,
    /// The parameter the refusal is about, in snake case.
    pub(crate) param: Option<String>,
    /// A status stated in the body.
    pub(crate) status: Option<u16>,
    /// A delay stated in the body.
    pub(crate) delay: Option<Duration>,
    /// A point in time (Unix seconds) stated in the body, after which trying again helps.
    pub(crate) resets_at: Option<u64>,
    /// Whether a quota of a whole day is named as such.
    pub(crate) is_daily: bool,
    /// The provider's id of the request, where the body holds it.
    pub(crate) request_id: Option<String>,
    /// Tokens of the window, in a member of its own.
    pub(crate) window: Option<u64>,
    /// Tokens of the prompt, in a member of its own.
    pub(crate) prompt_tokens: Option<u64>,
    /// The title of the page, where the body is a web page and no error at all.
    pub(crate) page: Option<String>,
    message_rank: u8,
    code_rank: u8,
}

/// Where in a body something stands.
#[derive(Clone, Copy, Default)]
struct Depth {
    /// Members and items around it.
    members: u8,
    /// Strings around it that were JSON themselves.
    quotes: u8,
    /// How likely its member holds the words for people: 2 where that is its purpose, 1 where it may.
    weight: u8,
}

impl Depth {
    fn inner(self, weight: u8) -> Self {
        Self { members: self.members + 1, weight, ..self }
    }

    fn quoted(self) -> Self {
        Self { quotes: self.quotes + 1, members: self.members + 1, ..self }
    }
}

impl Envelope {
    /// Reads a body of any kind.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut out = Self::default();
        let text = String::from_utf8_lossy(body);
        out.body(text.trim_start_matches('\u{feff}').trim());
        out
    }

    /// Reads the error member of an event.
    pub(crate) fn read_value(value: &Value) -> Self {
        let mut out = Self::default();
        // An event whose data is no JSON comes as a string, which may be a whole body of any kind.
        match value {
            Value::String(text) => out.body(text.trim()),
            value => out.value(value, Depth::default()),
        }
        out
    }

    /// Takes in a code from elsewhere than the body.
    pub(crate) fn push_code(&mut self, code: &str) {
        if self.codes.len() < MAX_CODES {
            self.codes.push(code.to_lowercase());
        }
    }

    fn body(&mut self, text: &str) {
        if text.starts_with('<') && is_page(text) {
            return self.page(text);
        }
        let rest = if text.starts_with(['{', '[']) { self.documents(text) } else { text };
        if ["data:", "event:", ":", "id:"].iter().any(|field| rest.starts_with(field)) {
            return self.events(rest);
        }
        self.text(rest, Depth::default());
    }

    /// Reads documents that follow each other; gives what is none.
    fn documents<'t>(&mut self, text: &'t str) -> &'t str {
        let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut end = 0;
        for _ in 0..MAX_DOCUMENTS {
            let Some(Ok(document)) = documents.next() else { break };
            end = documents.byte_offset();
            self.value(&document, Depth::default());
        }
        text[end..].trim()
    }

    fn events(&mut self, text: &str) {
        let mut reader = Reader::new(MAX_EVENT_BYTES);
        let mut count = 0;
        let mut sink = |event: Event<'_>| {
            let (Event::Data { data: bytes, .. } | Event::Stray(bytes)) = event;
            count += 1;
            if count <= MAX_DOCUMENTS && !bytes.eq_ignore_ascii_case(b"[DONE]") {
                self.text(&String::from_utf8_lossy(bytes), Depth::default());
            }
        };
        // An event too large to be read is none to explain an error with.
        let _ = reader.feed(text.as_bytes(), &mut sink).and_then(|()| reader.finish(&mut sink));
    }

    /// A web page says nothing but its title; an XML document may be an error that says more.
    fn page(&mut self, text: &str) {
        if let Some(message) = between(text, "message") {
            if let Some(code) = between(text, "code") {
                self.code("code", &Value::String(code), Depth::default());
            }
            return self.text(&message, Depth::default());
        }
        self.page = Some(title(text));
    }

    fn value(&mut self, value: &Value, depth: Depth) {
        if depth.members > MAX_DEPTH {
            return;
        }
        match value {
            Value::String(text) => self.text(text, depth),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, depth.inner(depth.weight))),
            Value::Object(members) => members.iter().for_each(|(name, value)| self.member(name, value, members, depth)),
            _ => {}
        }
    }

    fn member(&mut self, name: &str, value: &Value, beside: &Map<String, Value>, depth: Depth) {
        // One spelling for `statusCode`, `status_code` and `StatusCode`.
        let plain: String =
            name.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).take(40).collect();
        match plain.as_str() {
            "message" | "msg" | "detail" | "errormessage" | "errormsg" | "statusmsg" => {
                self.value(value, depth.inner(2));
            }
            "error" | "faultstring" => self.value(value, depth.inner(1)),
            "title" | "errors" | "details" | "response" | "metadata" | "errordescription" | "description" | "body"
            | "cause" | "violations" | "previouserrors" | "innererror" | "baseresp" | "err" | "fault" | "exception"
            | "errordata" | "data" | "promptfeedback" | "xgroq" | "result" | "output" => {
                self.value(value, depth.inner(0));
            }
            // What the model wrote is no message, whatever it holds.
            "failedgeneration" => self.push_code("failed_generation"),
            // A gateway quotes the provider behind it: those are the words that explain.
            "raw" => self.value(value, Depth { weight: 2, ..depth.quoted() }),
            "code" | "type" | "status" | "reason" | "errortype" | "errorcode" | "limitname" | "errorname" | "kind" => {
                self.code(&plain, value, depth);
            }
            "blockreason" => self.push_code("prohibited_content"),
            "param" => {
                if let Some(name) = value.as_str().filter(|name| !name.is_empty()) {
                    self.param.get_or_insert_with(|| parameter::snake(name));
                }
            }
            "loc" => self.param = self.param.take().or_else(|| parameter::of_place(value)),
            "statuscode" | "rawstatuscode" | "httpstatus" | "httpstatuscode" | "httpcode" => self.number(value),
            "retrydelay" | "retryafter" | "retryafterseconds" | "resetsinseconds" | "estimatedtime" => {
                self.delay = self.delay.or_else(|| stated_delay(value));
            }
            "retryafterms" => {
                let seconds = value.as_f64().map(|ms| ms / 1000.0);
                self.delay = self.delay.or_else(|| Duration::try_from_secs_f64(seconds?).ok());
            }
            "resetsat" | "resetat" => self.resets_at = value.as_u64().map(unix_seconds),
            "quotaid" => self.is_daily |= value.as_str().is_some_and(|id| id.contains("PerDay")),
            "requestid" => self.request_id = value.as_str().map(str::to_owned).or_else(|| self.request_id.take()),
            "nctx" => self.window = value.as_u64(),
            "nprompttokens" => self.prompt_tokens = value.as_u64(),
            // Amazon puts the kind here.
            _ if name == "__type" && !beside.contains_key("code") => self.code("code", value, depth),
            _ if name == "__type" => self.code("type", value, depth),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, depth: Depth) {
        let text = text.trim();
        if text.is_empty() || depth.members > MAX_DEPTH {
            return;
        }
        let inner = inner_document(text).filter(|_| depth.quotes < MAX_QUOTES);
        self.push_words(text);
        let rank = 1 + depth.quotes * 3 + depth.weight;
        if rank > self.message_rank {
            text[..boundary(text, MAX_WORDS_BYTES)].clone_into(&mut self.message);
            self.message_rank = rank;
        }
        match inner {
            Some(inner) => self.value(&inner, depth.quoted()),
            None => self.codes_in(text),
        }
    }

    fn push_words(&mut self, text: &str) {
        let room = MAX_WORDS_BYTES.saturating_sub(self.words.len());
        let text = &text[..boundary(text, room)];
        self.words.extend(text.chars().flat_map(char::to_lowercase).map(|c| if c == '\u{2019}' { '\'' } else { c }));
        self.words.push('\n');
    }

    /// Codes that stand in prose: `ThrottlingException: …`, `Error code: 400 - {'code': 'insufficient_quota'}`.
    fn codes_in(&mut self, text: &str) {
        let head = &text[..boundary(text, MAX_WORDS_BYTES)];
        for word in head.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let is_kind = ["Error", "Exception"].iter().any(|end| word.len() > end.len() && word.ends_with(end));
            if is_kind || (word.contains('_') && word.len() > 4) {
                self.push_code(word);
            }
        }
    }

    fn code(&mut self, name: &str, value: &Value, depth: Depth) {
        let code = match value {
            Value::String(code) => code.trim(),
            Value::Number(_) => return self.number(value),
            Value::Array(_) | Value::Object(_) => return self.value(value, depth.inner(0)),
            _ => return,
        };
        // Amazon adds where the kind is defined: `com.amazon.coral#ThrottlingException:http://…`.
        let code = code.rsplit_once('#').map_or(code, |(_, kind)| kind);
        let code = code.split_once(":http").map_or(code, |(kind, _)| kind);
        if code.is_empty() {
            return;
        }
        if let Ok(number) = code.parse::<u64>() {
            self.status = self.status.or(as_status(number));
            return;
        }
        // A code says more than a type, and the one quoted deepest more than those around it.
        let kind = if name.ends_with("code") || name == "errorname" { 2 } else { 1 };
        let rank = depth.quotes * 2 + kind;
        let is_generic = ["error", "failed", "fail"].contains(&code);
        if rank > self.code_rank && !code.contains(' ') && !is_generic {
            code.clone_into(self.code.get_or_insert_default());
            self.code_rank = rank;
        }
        if code.contains(' ') {
            self.push_words(code);
        }
        self.push_code(code);
    }

    fn number(&mut self, value: &Value) {
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        self.status = self.status.or(number.and_then(as_status));
    }
}

fn as_status(number: u64) -> Option<u16> {
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

fn unix_seconds(time: u64) -> u64 {
    if time >= MILLISECONDS_FROM { time / 1000 } else { time }
}

/// A delay in a member: seconds, or a text such as `48s`, or an object of seconds.
fn stated_delay(value: &Value) -> Option<Duration> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    let seconds =
        seconds.or_else(|| value.get("seconds").and_then(|s| s.as_f64().or_else(|| s.as_str()?.parse().ok())));
    seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()).or_else(|| delay::spoken(value.as_str()?))
}

/// The JSON document inside a text, where it holds an object.
fn inner_document(text: &str) -> Option<Value> {
    let has_object =
        |value: &Value| value.is_object() || value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
    text.match_indices(['{', '[']).take(MAX_BRACKETS).find_map(|(at, _)| {
        let first = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()?.ok();
        first.filter(has_object)
    })
}

fn is_page(text: &str) -> bool {
    let head = text[..boundary(text, 1024)].to_ascii_lowercase();
    ["<!doctype", "<html", "<head", "<body", "<?xml", "<title", "<error", "<center"]
        .iter()
        .any(|tag| head.contains(tag))
}

fn title(page: &str) -> String {
    /// A title longer than this is no title.
    const MAX_CHARS: usize = 100;
    let title = between(page, "title").unwrap_or_default();
    title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_CHARS).collect()
}

/// What stands in the first element of a name, in a page or an XML document.
fn between(page: &str, tag: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let open = format!("<{tag}");
    let (at, _) = lower.match_indices(&open).find(|(at, _)| lower[at + open.len()..].starts_with(['>', ' ']))?;
    let from = at + lower[at..].find('>')? + 1;
    let to = from + lower[from..].find(&format!("</{tag}"))?;
    page.get(from..to).map(|text| text.trim().to_owned())
}

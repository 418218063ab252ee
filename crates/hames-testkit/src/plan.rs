//! From a turn to the bytes of its response. Pure: the clock and the ids come in with the [`Context`].

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    ChatRequest, Gate, Turn,
    turn::{Cuts, Delivery, Fault, Finish, Part, Reply, Sever, Source, UsageChoice},
};

/// Bytes taken to be one token.
pub(crate) const TOKEN_BYTES: usize = 4;

const COMMENT: &str = ": ping";

/// A response to deliver.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes of the whole body where they are announced; a stream announces nothing.
    pub(crate) length: Option<usize>,
    pub(crate) head_gate: Option<Gate>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) end: End,
}

/// One write.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// How long to wait first.
    pub(crate) wait: Duration,
    pub(crate) bytes: Vec<u8>,
    /// Where to wait afterwards.
    pub(crate) gates: Vec<Gate>,
}

/// What comes after the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// Nothing is sent at all, not even the head.
    SeverBeforeHead(Sever),
    Sever(Sever),
    Stall,
    /// The last piece again, for ever.
    Endless,
    /// Bytes that say nothing, at an interval, for ever.
    Keepalives(Duration, &'static [u8]),
}

/// What a plan needs beyond turn and request.
pub(crate) struct Context<'a> {
    /// Makes ids that were never used before.
    pub(crate) fresh_id: &'a dyn Fn(&str) -> String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// Estimated tokens of the request.
    pub(crate) prompt_tokens: u64,
}

/// The response to a request.
pub(crate) fn plan(turn: Turn, request: &ChatRequest, context: &Context<'_>) -> Plan {
    let Turn { source, headers, delivery } = turn;
    let mut plan = match source {
        Source::Error { status, body } => error(status, &body),
        Source::RawSse(bytes) => streamed(raw_events(&bytes)),
        Source::Reply(reply) => {
            let said = Said::new(reply, request, context);
            if request.wants_stream() && !said.reply.plain_json {
                streamed(frames(said.events(request), &said.reply, &delivery))
            } else {
                json_plan(200, &said.whole())
            }
        }
    };
    for (name, value) in headers {
        plan.headers.retain(|(known, _)| *known != name);
        plan.headers.push((name, value));
    }
    pace(&mut plan.pieces, &delivery);
    plan.pieces = recut(plan.pieces, &delivery.cuts);
    plan.head_gate = delivery.head_gate;
    if let Some(fault) = delivery.fault {
        break_off(&mut plan, fault);
    }
    plan
}

/// A complete JSON response.
pub(crate) fn json_plan(status: u16, body: &Value) -> Plan {
    whole(status, "application/json", body.to_string().into_bytes())
}

/// An error object in the common shape.
pub(crate) fn error_body(message: &str, kind: &str, code: &str, param: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

fn error(status: u16, body: &Value) -> Plan {
    match body {
        Value::String(text) => whole(status, "text/plain; charset=utf-8", text.clone().into_bytes()),
        other => json_plan(status, other),
    }
}

fn whole(status: u16, content_type: &str, bytes: Vec<u8>) -> Plan {
    Plan {
        status,
        headers: vec![("content-type".to_owned(), content_type.to_owned())],
        length: Some(bytes.len()),
        head_gate: None,
        pieces: vec![Piece { bytes, ..Piece::default() }],
        end: End::Complete,
    }
}

/// A stream of events, each one piece.
fn streamed(events: Vec<Vec<u8>>) -> Plan {
    Plan {
        status: 200,
        headers: vec![
            ("content-type".to_owned(), "text/event-stream; charset=utf-8".to_owned()),
            ("cache-control".to_owned(), "no-cache".to_owned()),
        ],
        length: None,
        head_gate: None,
        pieces: events.into_iter().map(|bytes| Piece { bytes, ..Piece::default() }).collect(),
        end: End::Complete,
    }
}

/// Sets the delays and gates of events.
fn pace(events: &mut [Piece], delivery: &Delivery) {
    let last = events.len().saturating_sub(1);
    for (index, event) in events.iter_mut().enumerate() {
        if index > 0 {
            event.wait = delivery.delay;
        }
        let here = delivery.gates.iter().filter(|(at, _)| (*at).min(last) == index);
        event.gates = here.map(|(_, gate)| gate.clone()).collect();
    }
}

/// A given stream, taken apart after each blank line.
fn raw_events(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let mut event = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        event.extend_from_slice(line);
        if matches!(line, b"\n" | b"\r\n") {
            events.push(std::mem::take(&mut event));
        }
    }
    if !event.is_empty() {
        events.push(event);
    }
    events
}

/// Events as they go over the wire.
fn frames(events: Vec<Value>, reply: &Reply, delivery: &Delivery) -> Vec<Vec<u8>> {
    let line_end = if delivery.crlf { "\r\n" } else { "\n" };
    let done = reply.done_marker.then(|| "[DONE]".to_owned());
    let data = events.iter().map(Value::to_string).chain(done);
    let frames = data.enumerate().map(|(index, data)| {
        let commented = index.checked_rem(delivery.comments_every) == Some(0);
        let comment = if commented { format!("{COMMENT}{line_end}{line_end}") } else { String::new() };
        format!("{comment}data: {data}{line_end}{line_end}").into_bytes()
    });
    frames.collect()
}

/// Joins and cuts pieces so that each ends where it should. What must wait, or be waited for, is not joined.
fn recut(pieces: Vec<Piece>, cuts: &Cuts) -> Vec<Piece> {
    if matches!(cuts, Cuts::Events) {
        return pieces;
    }
    let next_cut = |sent: usize| match cuts {
        Cuts::Events => None,
        Cuts::Every(size) => Some(sent - sent % size + size),
        Cuts::At(offsets) => offsets.get(offsets.partition_point(|&offset| offset <= sent)).copied(),
    };
    let mut result = Vec::new();
    let mut held = Piece::default();
    let mut sent = 0;
    for piece in pieces {
        if !piece.wait.is_zero() {
            flush(&mut held, &mut result);
            held.wait = piece.wait;
        }
        let mut rest = &piece.bytes[..];
        while !rest.is_empty() {
            let room = next_cut(sent).map_or(rest.len(), |cut| cut - sent);
            let (now, later) = rest.split_at(room.min(rest.len()));
            held.bytes.extend_from_slice(now);
            sent += now.len();
            rest = later;
            if now.len() == room {
                flush(&mut held, &mut result);
            }
        }
        if !piece.gates.is_empty() {
            held.gates = piece.gates;
            flush(&mut held, &mut result);
        }
    }
    flush(&mut held, &mut result);
    result
}

fn flush(held: &mut Piece, result: &mut Vec<Piece>) {
    let piece = std::mem::take(held);
    if !piece.bytes.is_empty() || !piece.gates.is_empty() {
        result.push(piece);
    }
}

/// Drops what a fault leaves out, and sets how the response ends. A gate that the kept bytes reach stays.
fn break_off(plan: &mut Plan, fault: Fault) {
    let kept = match fault {
        Fault::SeverBeforeHead(_) | Fault::KeepaliveOnly(_) => 0,
        Fault::SeverAfter(bytes, _) | Fault::StallAfter(bytes) => bytes,
        Fault::Endless => usize::MAX,
    };
    plan.end = match fault {
        Fault::SeverBeforeHead(sever) => End::SeverBeforeHead(sever),
        Fault::SeverAfter(_, sever) => End::Sever(sever),
        Fault::StallAfter(_) => End::Stall,
        Fault::Endless => {
            // What has no end has no length.
            plan.length = None;
            End::Endless
        }
        // White space is to one JSON object what a comment is to a stream. Neither has a length.
        Fault::KeepaliveOnly(interval) if plan.length.take().is_some() => End::Keepalives(interval, b"\n"),
        Fault::KeepaliveOnly(interval) => End::Keepalives(interval, b": keep-alive\n\n"),
    };
    let mut left = kept;
    plan.pieces.retain_mut(|piece| {
        if piece.bytes.len() > left {
            piece.bytes.truncate(left);
            piece.gates.clear();
        }
        left -= piece.bytes.len();
        !piece.bytes.is_empty() || !piece.gates.is_empty()
    });
}

/// A reply with everything settled that the turn left open.
struct Said {
    reply: Reply,
    finish: Value,
    usage: Option<Value>,
    /// The members every chunk begins with.
    base: Map<String, Value>,
}

impl Said {
    fn new(mut reply: Reply, request: &ChatRequest, context: &Context<'_>) -> Said {
        let mut calls = false;
        for part in &mut reply.parts {
            if let Part::Call { id, .. } = part {
                calls = true;
                id.get_or_insert_with(|| (context.fresh_id)("call"));
            }
        }
        let finish = match &reply.finish {
            Finish::Fitting => json!(if calls { "tool_calls" } else { "stop" }),
            Finish::Reason(reason) => json!(reason),
            Finish::Never => Value::Null,
        };
        let usage = match &reply.usage {
            UsageChoice::Estimated => Some(estimate(&reply, request, context.prompt_tokens)),
            UsageChoice::Given(usage) => Some(usage.clone()),
            UsageChoice::Never => None,
        };
        let base = [
            ("id", json!((context.fresh_id)("chatcmpl"))),
            ("object", json!("chat.completion.chunk")),
            ("created", json!(context.created)),
            ("model", request.body["model"].clone()),
        ];
        let base = base.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Said { reply, finish, usage, base }
    }

    /// The chunks of a stream.
    fn events(&self, request: &ChatRequest) -> Vec<Value> {
        let wants_usage = request.wants_usage();
        let chunk = |delta: Value, finish: Value| {
            let mut chunk = self.base.clone();
            chunk.insert("choices".to_owned(), json!([{"index": 0, "delta": delta, "finish_reason": finish}]));
            if wants_usage {
                chunk.insert("usage".to_owned(), Value::Null);
            }
            Value::Object(chunk)
        };
        let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
        let mut call = 0;
        for part in &self.reply.parts {
            let deltas = self.deltas(part, call);
            events.extend(deltas.into_iter().map(|delta| chunk(delta, Value::Null)));
            call += usize::from(matches!(part, Part::Call { .. }));
        }
        if !self.finish.is_null() {
            events.push(chunk(json!({}), self.finish.clone()));
        }
        if let Some(usage) = self.usage.as_ref().filter(|_| wants_usage) {
            let mut last = self.base.clone();
            last.insert("choices".to_owned(), json!([]));
            last.insert("usage".to_owned(), usage.clone());
            events.push(Value::Object(last));
        }
        events
    }

    fn deltas(&self, part: &Part, index: usize) -> Vec<Value> {
        let size = self.reply.chunk_chars;
        match part {
            Part::Text(text) => chunks(text, size).into_iter().map(|piece| json!({"content": piece})).collect(),
            Part::Reasoning { text, signature: None } => {
                chunks(text, size).into_iter().map(|piece| self.reasoning_delta(piece)).collect()
            }
            Part::Reasoning { text, signature: Some(signature) } => {
                let mut deltas: Vec<_> = chunks(text, size).into_iter().map(signed_delta).collect();
                deltas.push(json!({"reasoning_details": [detail("signature", signature)]}));
                deltas
            }
            Part::Call { id, name, arguments } => {
                let head = json!({"index": index, "id": id, "type": "function",
                    "function": {"name": name, "arguments": ""}});
                let mut deltas = vec![json!({"tool_calls": [head]})];
                deltas.extend(
                    chunks(arguments, size)
                        .into_iter()
                        .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})),
                );
                deltas
            }
        }
    }

    fn reasoning_delta(&self, text: &str) -> Value {
        let field = self.reply.reasoning_field.as_str();
        let value = if field == "reasoning_details" { json!([detail("text", text)]) } else { json!(text) };
        json!({ field: value })
    }

    /// The answer in one object.
    fn whole(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": null});
        let mut text = String::new();
        let mut calls = Vec::new();
        for part in &self.reply.parts {
            match part {
                Part::Text(more) => text.push_str(more),
                Part::Reasoning { text, signature: None } => merge(&mut message, self.reasoning_delta(text)),
                Part::Reasoning { text, signature: Some(signature) } => {
                    let mut block = detail("text", text);
                    block["signature"] = json!(signature);
                    merge(&mut message, json!({"reasoning": text, "reasoning_details": [block]}));
                }
                Part::Call { id, name, arguments } => calls.push(json!({"id": id, "type": "function",
                    "function": {"name": name, "arguments": arguments}})),
            }
        }
        if !text.is_empty() || calls.is_empty() {
            message["content"] = json!(text);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let mut completion = self.base.clone();
        completion.insert("object".to_owned(), json!("chat.completion"));
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish});
        completion.insert("choices".to_owned(), json!([choice]));
        if let Some(usage) = &self.usage {
            completion.insert("usage".to_owned(), usage.clone());
        }
        Value::Object(completion)
    }
}

/// One entry of `reasoning_details`.
fn detail(key: &str, text: &str) -> Value {
    json!({"type": "reasoning.text", key: text, "format": "anthropic-claude-v1", "index": 0})
}

/// Signed reasoning comes under both names, as gateways send it.
fn signed_delta(text: &str) -> Value {
    json!({"reasoning": text, "reasoning_details": [detail("text", text)]})
}

/// Adds members to an object; texts and lists that are there already grow.
fn merge(object: &mut Value, more: Value) {
    let Value::Object(more) = more else { return };
    for (key, value) in more {
        match (&mut object[&key], value) {
            (Value::String(known), Value::String(more)) => known.push_str(&more),
            (Value::Array(known), Value::Array(more)) => known.extend(more),
            (known, value) => *known = value,
        }
    }
}

/// A text in pieces of `size` characters; 0: one piece. An empty text has none.
fn chunks(text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = match size {
            0 => rest.len(),
            _ => rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at),
        };
        let (piece, later) = rest.split_at(end);
        pieces.push(piece);
        rest = later;
    }
    pieces
}

fn estimate(reply: &Reply, request: &ChatRequest, prompt: u64) -> Value {
    let (mut all, mut reasoning) = (0, 0);
    for part in &reply.parts {
        all += match part {
            Part::Text(text) => text.len(),
            Part::Call { name, arguments, .. } => name.len() + arguments.len(),
            Part::Reasoning { text, .. } => {
                reasoning += text.len();
                text.len()
            }
        };
    }
    let output = all.div_ceil(TOKEN_BYTES).max(1) as u64;
    let cached = (request.prefix.map_or(0, |prefix| prefix.shared) / TOKEN_BYTES) as u64;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached.min(prompt)},
        "completion_tokens_details": {"reasoning_tokens": reasoning.div_ceil(TOKEN_BYTES)},
    })
}

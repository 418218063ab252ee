//! Puts an answer together from its chunks.
//!
//! Only choice 0 counts. Text comes from `content`, a string or a list of parts; a `message` counts only where there is
//! no `delta`. The last finish reason and the last usage that are not null win. Nothing here knows bytes, lines or time.

use hames_protocol::{Completion, Delta, ErrorClass, Failure};
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::{Calls, MAX_CALLS};
use super::content::{Content, Reading, push_reasoning};
use super::reasoning::{FIELD_CONTENT, Reasoning, gathered};
use super::usage;
use super::wire::{self, Choice, Chunk, Scalar};
use crate::error::{Place, clipped};

/// Bytes an answer may have in all. A window of a million tokens is about 4 MB of text; this is far beyond any.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// What a call, or a block of reasoning, costs besides its text, so that endless empty ones meet the limit too.
const OVERHEAD_BYTES: usize = 1024;

/// Bytes of a finish reason that are kept.
const MAX_REASON_BYTES: usize = 200;

/// An answer so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    content: Content,
    /// All content so far, where a server tells all of it in each message.
    told: Option<String>,
    reasoning: Reasoning,
    calls: Calls,
    refusal: String,
    finish_reason: Option<String>,
    native_finish_reason: Option<String>,
    usage: Option<Box<RawValue>>,
    groq_usage: Option<Box<RawValue>>,
    cost: Option<Box<RawValue>>,
    failure: Option<Failure>,
    /// Whether a choice was seen, whatever it held.
    begun: bool,
    /// Whether any content came, shown or not.
    has_content: bool,
    bytes: usize,
    done_marker: bool,
    /// Whether the stream cannot be read on.
    stopped: bool,
}

impl Answer {
    pub(crate) fn new(reading: Reading) -> Self {
        Self { content: Content::new(reading), ..Self::default() }
    }

    /// Whether the answer began inside its reasoning; `None` where it did not show.
    pub(crate) fn began_inside(&self) -> Option<bool> {
        self.content.began_inside()
    }

    /// Whether the model has said why it stopped, or failed: little can follow.
    pub(crate) fn is_closing(&self) -> bool {
        self.finish_reason.is_some() || self.failure.is_some()
    }

    /// Whether anything of an answer has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether nothing more will be taken.
    pub(crate) fn is_over(&self) -> bool {
        self.done_marker || self.stopped
    }

    /// The end marker was seen.
    pub(crate) fn mark_done(&mut self) {
        self.done_marker = true;
    }

    /// Keeps the first failure and takes nothing more.
    pub(crate) fn stop(&mut self, failure: Failure) {
        self.fail(failure);
        self.stopped = true;
    }

    /// Keeps the first failure.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Takes in a chunk. Gives whether it carried anything: a repeated role, an empty text or the same usage again may
    /// be all that a dead upstream's gateway still sends.
    pub(crate) fn take(&mut self, chunk: &Chunk<'_>, place: &Place, out: &mut Vec<Delta>) -> bool {
        let before = self.bytes;
        let mut carried = self.take_side(chunk);
        let choice_errors = chunk.choices.0.iter().map(|choice| choice.error);
        for error in std::iter::once(chunk.error).chain(choice_errors).flatten() {
            carried |= self.take_error(error, place);
        }
        for choice in &chunk.choices.0 {
            if choice.index.integer().unwrap_or(0) == 0 {
                carried |= !std::mem::replace(&mut self.begun, true);
                carried |= self.take_choice(choice, out);
            }
        }
        if self.bytes > MAX_ANSWER_BYTES {
            self.stop(place.failure(
                ErrorClass::StreamIncomplete,
                &format!("the answer passed {} MB and was cut", MAX_ANSWER_BYTES / 1024 / 1024),
                "Use another model or a lower output limit",
            ));
        }
        if self.calls.has_too_many() {
            self.stop(place.failure(
                ErrorClass::StreamIncomplete,
                &format!("the answer asked for more than {MAX_CALLS} calls at once and was cut"),
                "Use another model",
            ));
        }
        carried || self.bytes > before
    }

    fn take_side(&mut self, chunk: &Chunk<'_>) -> bool {
        let mut carried = false;
        // An empty object says less than what came before it.
        let usage = chunk.usage.filter(|raw| is_object(raw) && (self.usage.is_none() || raw.get().len() > 2));
        carried |= replace(&mut self.usage, usage);
        if let Some(groq) = chunk.x_groq
            && let Ok(groq) = serde_json::from_str::<wire::Groq<'_>>(groq.get())
        {
            carried |= replace(&mut self.groq_usage, groq.usage.filter(|raw| is_object(raw)));
        }
        carried | replace(&mut self.cost, chunk.cost)
    }

    fn take_error(&mut self, error: &RawValue, place: &Place) -> bool {
        if matches!(error.get(), "\"\"" | "{}" | "[]" | "false" | "0") {
            return false;
        }
        let value = serde_json::from_str(error.get()).unwrap_or_else(|_| Value::String(error.get().to_owned()));
        self.fail(place.failed_in_stream(&value));
        true
    }

    fn take_choice(&mut self, choice: &Choice<'_>, out: &mut Vec<Delta>) -> bool {
        let message = || choice.message.and_then(|raw| serde_json::from_str::<wire::Delta<'_>>(raw.get()).ok());
        match &choice.delta.0 {
            Some(delta) => self.take_delta(delta, out),
            None => match message() {
                Some(message) => self.take_message(&message, out),
                None => self.push_text(choice.text.text().unwrap_or(""), out),
            },
        }
        let mut carried = false;
        if let Some(reason) = choice.finish_reason.name() {
            let reason = clipped(&reason, MAX_REASON_BYTES);
            carried |= self.finish_reason.as_deref() != Some(reason.as_str());
            self.finish_reason = Some(reason);
            // A server that streams nothing but its end.
            if self.is_empty()
                && let Some(message) = message()
            {
                self.take_delta(&message, out);
            }
        }
        if let Some(reason) = choice.native_finish_reason.name() {
            self.native_finish_reason = Some(clipped(&reason, MAX_REASON_BYTES));
        }
        carried
    }

    fn is_empty(&self) -> bool {
        !self.has_content && self.calls.is_empty() && self.reasoning.text().is_empty() && self.refusal.is_empty()
    }

    fn take_delta(&mut self, delta: &wire::Delta<'_>, out: &mut Vec<Delta>) {
        let blocks = self.reasoning.blocks();
        let reasoned = self.reasoning.take(delta);
        let has_reasoned = reasoned.is_some();
        if let Some(text) = reasoned {
            self.bytes += text.len();
            self.content.reasoning_comes_apart();
            push_reasoning(&text, out);
        }
        if let Some(details) = delta.reasoning_details {
            self.bytes += details.get().len().saturating_sub(2);
        }
        self.bytes += (self.reasoning.blocks() - blocks) * OVERHEAD_BYTES;
        match &delta.content {
            Scalar::Other(parts) => self.take_parts(parts, has_reasoned, out),
            content => self.push_text(content.text().unwrap_or(""), out),
        }
        if let Some(refusal) = delta.refusal.text() {
            self.bytes += refusal.len();
            self.refusal.push_str(refusal);
        }
        let calls_before = self.calls.len();
        for piece in &delta.tool_calls.0 {
            self.bytes += self.calls.take(piece, out);
        }
        if let Some(function) = delta.function_call.0.as_ref().filter(|_| delta.tool_calls.0.is_empty()) {
            self.bytes += self.calls.take_function(function, out);
        }
        self.bytes += (self.calls.len() - calls_before) * OVERHEAD_BYTES;
    }

    /// A whole message where a delta should be. A server that repeats all of it in every chunk only adds what is new.
    fn take_message(&mut self, message: &wire::Delta<'_>, out: &mut Vec<Delta>) {
        let all = message.content.text();
        if self.is_empty() {
            self.told = all.map(str::to_owned);
            return self.take_delta(message, out);
        }
        let told = self.told.as_deref().unwrap_or(self.content.text());
        if let Some(new) = all.and_then(|all| all.strip_prefix(told)).filter(|new| !new.is_empty()) {
            let new = new.to_owned();
            if let Some(told) = &mut self.told {
                told.push_str(&new);
            }
            self.push_text(&new, out);
        }
        if self.calls.is_empty() {
            for piece in &message.tool_calls.0 {
                self.bytes += self.calls.take(piece, out) + OVERHEAD_BYTES;
            }
        }
    }

    fn take_parts(&mut self, parts: &Value, has_reasoned: bool, out: &mut Vec<Delta>) {
        let one;
        let parts = match parts {
            Value::Array(parts) => parts.as_slice(),
            other => {
                one = [other.clone()];
                &one
            }
        };
        for part in parts {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or("");
            let is_thought = matches!(kind, "thinking" | "reasoning") || part.get("thinking").is_some();
            if !is_thought {
                let text = part.as_str().or_else(|| part.get("text")?.as_str()).unwrap_or("");
                self.push_text(text, out);
            } else if !has_reasoned {
                let text = gathered(part);
                self.bytes += text.len();
                self.reasoning.push(FIELD_CONTENT, &text);
                self.content.reasoning_comes_apart();
                push_reasoning(&text, out);
            }
        }
    }

    fn push_text(&mut self, text: &str, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        self.has_content = true;
        self.content.push(text, &mut self.reasoning, out);
    }

    /// What there is, with nothing judged: for an answer that the caller cut.
    pub(crate) fn into_completion(mut self) -> Completion {
        // What an answer that was cut still holds back is text; of one that has ended, nothing is.
        self.content.finish(false, &mut self.reasoning, &mut self.calls, &mut Vec::new());
        let usage_raw = self.usage.or(self.groq_usage);
        let usage: Option<Value> = usage_raw.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        let cost: Option<Value> = self.cost.and_then(|raw| serde_json::from_str(raw.get()).ok());
        Completion {
            text: self.content.into_text(),
            reasoning: self.reasoning.into_blocks(),
            calls: self.calls.into_calls(),
            finish_reason: self.finish_reason,
            native_finish_reason: self.native_finish_reason,
            refusal: (!self.refusal.is_empty()).then_some(self.refusal),
            usage: usage.as_ref().map(usage::normalised),
            cost: usage::stated_cost(usage.as_ref(), cost.as_ref()),
            usage_raw: usage_raw.map(|raw| String::from(Box::<str>::from(raw))),
            done_marker: self.done_marker,
            failure: self.failure,
            ..Completion::default()
        }
    }

    /// Judges an answer whose stream has ended: what a finish reason means, and whether there is one. `accident` is why
    /// the stream ended, where that was not of its own accord. What was held back comes out.
    pub(crate) fn conclude(&mut self, place: &Place, accident: Option<Failure>, out: &mut Vec<Delta>) {
        let has_usage = self.usage.is_some() || self.groq_usage.is_some();
        let has_ended = match self.finish_reason.as_deref() {
            Some(reason) => !matches!(reason, "content_filter" | "error"),
            None => self.done_marker && has_usage,
        };
        let is_whole = has_ended && self.failure.is_none();
        self.content.finish(is_whole, &mut self.reasoning, &mut self.calls, out);
        if let Some(reason) = self.finish_reason.clone() {
            return self.conclude_with(&reason, place);
        }
        if let Some(accident) = accident {
            self.fail(accident);
        }
        if !(self.done_marker && has_usage) {
            let what = if self.begun { "the answer broke off before its end" } else { "the answer was empty" };
            self.fail(place.failure(ErrorClass::StreamIncomplete, what, "Try again").retryable());
        }
    }

    fn conclude_with(&mut self, reason: &str, place: &Place) {
        match reason.to_ascii_lowercase().as_str() {
            "content_filter" | "safety" | "recitation" | "prohibited_content" | "blocklist" | "spii" => {
                self.fail(place.failure(
                    ErrorClass::ContentFilter,
                    &format!("the provider's content filter cut the answer ({reason})"),
                    "Say it differently, or use another model",
                ));
            }
            "model_context_window_exceeded" => self.fail(place.failure(
                ErrorClass::ContextOverflow,
                "the conversation has filled the model's window",
                "Start a new session, or use a model with a larger window",
            )),
            // The model wrote a call that its server could not read; the next time it may write a better one.
            "malformed_function_call" | "malformed_response" | "unexpected_tool_call" => self.fail(
                place
                    .failure(
                        ErrorClass::ToolUseFailed,
                        &format!("it could not read the call its model wrote ({reason})"),
                        "Try again, or use another model",
                    )
                    .retryable(),
            ),
            "error" => self.fail(
                place
                    .failure(ErrorClass::ServerError, "the provider failed within the answer", "Try again")
                    .retryable(),
            ),
            // One meaning, one name: whoever looks for a cut answer looks for `length`.
            "max_tokens" | "max_output_tokens" => {
                self.native_finish_reason.get_or_insert_with(|| reason.to_owned());
                self.finish_reason = Some("length".into());
            }
            _ => {}
        }
    }

    /// A plain JSON answer ends where its document ends, even if it does not say why.
    pub(crate) fn close_document(&mut self) {
        if self.begun && self.finish_reason.is_none() && self.failure.is_none() {
            self.finish_reason = Some("stop".into());
        }
    }
}

fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Puts a new value in; gives whether it differs from the old one.
fn replace(slot: &mut Option<Box<RawValue>>, new: Option<&RawValue>) -> bool {
    let Some(new) = new else { return false };
    if slot.as_ref().is_some_and(|old| old.get() == new.get()) {
        return false;
    }
    *slot = Some(new.to_owned());
    true
}

//! What comes back from a model, and the port through which it is asked.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Failure, Item, ParameterLearned, Price, ReasoningBlock, Sampling, ThinkingLevel, Timings, ToolSpec, Usage,
};

/// What is known of a model before it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// `provider/id`.
    pub model: crate::ModelRef,
    /// Tokens of its window.
    pub context_window: u64,
    /// Tokens one answer may have at most.
    pub max_output_tokens: u64,
    /// Whether it takes images; unknown where unset, and then they are sent.
    pub images: Option<bool>,
    /// What it charges, where anybody says so: a step whose provider states no cost is given the computed one.
    pub price: Option<Price>,
}

impl ModelInfo {
    /// A model with a window and an answer's limit, of which nothing else is known.
    pub fn new(model: crate::ModelRef, context_window: u64, max_output_tokens: u64) -> Self {
        Self { model, context_window, max_output_tokens, images: None, price: None }
    }
}

/// The fixed beginning of every request of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Tools in the order they are sent.
    pub tools: Vec<ToolSpec>,
    /// The system text.
    pub system: String,
}

/// What may differ from request to request without touching head or items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// Tokens this answer may have.
    pub max_output_tokens: Option<u64>,
    /// How much to think.
    pub thinking: Option<ThinkingLevel>,
    /// How words are picked.
    pub sampling: Sampling,
    /// A stable id of the session, for providers that route or cache by it.
    pub session: Option<String>,
}

/// One piece of an answer, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Visible text.
    Text(String),
    /// Reasoning text.
    Reasoning(String),
    /// Part of a call's arguments. `call` is the ordinal of the call in the step.
    ToolInput {
        /// Ordinal of the call in this step, from 0.
        call: u32,
        /// The tool's name, with the first piece.
        name: Option<String>,
        /// Argument text; may be empty.
        text: String,
    },
}

/// A call as the model asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawCall {
    /// The provider's id; may be empty or repeated.
    pub id: String,
    /// The tool's name as sent.
    pub name: String,
    /// The arguments as sent; should be a JSON object.
    pub arguments: String,
    /// What must go back with the call verbatim (a signature, say), as JSON text of extra members.
    pub extra: Option<String>,
}

/// A whole answer, or what there was of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// All text.
    pub text: String,
    /// Reasoning, in blocks that can be sent back.
    pub reasoning: Vec<ReasoningBlock>,
    /// Calls in the order they were opened.
    pub calls: Vec<RawCall>,
    /// The last finish reason that was not null.
    pub finish_reason: Option<String>,
    /// The upstream's own finish reason, where a gateway passes it on.
    pub native_finish_reason: Option<String>,
    /// A refusal text, where the provider has a field for it.
    pub refusal: Option<String>,
    /// Tokens, normalised.
    pub usage: Option<Usage>,
    /// The provider's usage object, as JSON text.
    pub usage_raw: Option<String>,
    /// Money as the provider states it.
    pub cost: Option<crate::Cost>,
    /// Whether the end marker was seen.
    pub done_marker: bool,
    /// The first error in the stream, or why it ended early.
    pub failure: Option<Failure>,
    /// Times.
    pub timings: Timings,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

impl Completion {
    /// Whether the answer is whole: a finish reason other than `length`, `content_filter` or `error`, or the end marker
    /// together with usage; and no error in the stream.
    pub fn is_whole(&self) -> bool {
        if self.failure.is_some() {
            return false;
        }
        match self.finish_reason.as_deref() {
            Some("length" | "content_filter" | "error") => false,
            Some(reason) if !reason.is_empty() => true,
            _ => self.done_marker && self.usage_raw.is_some(),
        }
    }
}

/// An answer being streamed. `next` is cancel-safe: dropping its future loses nothing.
#[async_trait]
pub trait ModelStream: Send {
    /// The next pieces, at least one; `None` when the stream has ended, well or badly.
    async fn next(&mut self) -> Option<Vec<Delta>>;
    /// What there is so far. After `next` gave `None` this is the whole answer.
    fn finish(self: Box<Self>) -> Completion;
}

/// A conversation's connection to one model: renders requests (keeping the bytes of unchanged items) and sends them.
#[async_trait]
pub trait ModelClient: Send {
    /// What is known of the model.
    fn info(&self) -> &ModelInfo;
    /// Renders a request and remembers it as the one to send. Fails where an item cannot be put on the wire.
    async fn prepare(
        &mut self,
        head: &Arc<Head>,
        items: &[Arc<Item>],
        options: &RequestOptions,
    ) -> Result<PreparedInfo, Failure>;
    /// Sends the request prepared last. Failures before the first byte of the answer come back here.
    async fn send(&mut self) -> Result<Box<dyn ModelStream>, Failure>;
    /// Another connection to the same model that has rendered nothing yet, for requests that are no part of the
    /// conversation. Nothing where there can be only one.
    fn fork(&self) -> Option<Box<dyn ModelClient>> {
        None
    }
    /// Takes note that the model's window has no more than `tokens`, and keeps it with what refusals taught. Never raises
    /// the window. A client that keeps nothing does nothing.
    async fn limit_window(&mut self, _tokens: u64, _words: Option<&str>) {}
    /// Takes note that the model answered a request of so many tokens: a smaller window that was learned before is none.
    async fn window_holds(&mut self, _tokens: u64) {}
    /// What refusals taught since this was asked last, for the record. A client that learns nothing says nothing.
    fn take_learned(&mut self) -> Vec<ParameterLearned> {
        Vec::new()
    }
}

/// What the loop records of a prepared request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedInfo {
    /// Bytes of the body.
    pub bytes: u64,
    /// Hash of the body, made from the hashes of its items.
    pub fingerprint: String,
    /// Offset of the first byte that differs from the request before; `None` for a first request.
    pub changed_at: Option<u64>,
    /// Why it differs there: `first`, `appended`, `item` or `head`.
    pub changed_why: &'static str,
}

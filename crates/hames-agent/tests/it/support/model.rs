//! A model that answers by script, piece by piece, and stops at gates. What a cut leaves is what had come by then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{
    Completion, Delta, Failure, Head, Item, ModelClient, ModelInfo, ModelStream, PreparedInfo, RawCall, ReasoningBlock,
    RequestOptions, Usage,
};
use serde_json::Value;

use super::{Gate, Trace};

#[derive(Clone)]
enum Beat {
    Delta(Delta),
    Gate(Gate),
}

/// One answer.
#[derive(Clone)]
pub(crate) struct Reply {
    head: Option<Gate>,
    refused: Option<Failure>,
    beats: Vec<Beat>,
    calls: u32,
    /// What is known once the stream has ended.
    end: Completion,
}

impl Reply {
    pub(crate) fn new() -> Self {
        let usage = Usage { input: Some(100), output: Some(10), ..Usage::default() };
        let end = Completion {
            usage: Some(usage),
            usage_raw: Some("{}".into()),
            done_marker: true,
            finish_reason: Some("stop".into()),
            ..Completion::default()
        };
        Self { head: None, refused: None, beats: Vec::new(), calls: 0, end }
    }
    pub(crate) fn text(text: &str) -> Self {
        Self::new().then_text(text)
    }
    pub(crate) fn call(name: &str, arguments: Value) -> Self {
        Self::new().then_call(name, arguments)
    }
    /// The request fails before anything of an answer.
    pub(crate) fn refused(failure: Failure) -> Self {
        Self { refused: Some(failure), ..Self::new() }
    }
    pub(crate) fn then_text(self, text: &str) -> Self {
        self.beat(Beat::Delta(Delta::Text(text.to_owned())))
    }
    pub(crate) fn reasoning(self, text: &str) -> Self {
        self.beat(Beat::Delta(Delta::Reasoning(text.to_owned())))
    }
    pub(crate) fn then_call(self, name: &str, arguments: Value) -> Self {
        self.raw_call(name, &[&arguments.to_string()])
    }
    /// A call whose arguments come in these pieces, JSON or not.
    pub(crate) fn raw_call(mut self, name: &str, pieces: &[&str]) -> Self {
        let call = self.calls;
        self.calls += 1;
        self.end.finish_reason = Some("tool_calls".into());
        let first = Delta::ToolInput { call, name: Some(name.to_owned()), text: String::new() };
        self = self.beat(Beat::Delta(first));
        for piece in pieces {
            self = self.beat(Beat::Delta(Delta::ToolInput { call, name: None, text: (*piece).to_owned() }));
        }
        self
    }
    pub(crate) fn delta(self, delta: Delta) -> Self {
        self.beat(Beat::Delta(delta))
    }
    pub(crate) fn gate(self, gate: &Gate) -> Self {
        self.beat(Beat::Gate(gate.clone()))
    }
    pub(crate) fn gate_head(mut self, gate: &Gate) -> Self {
        self.head = Some(gate.clone());
        self
    }
    pub(crate) fn finish(self, reason: Option<&str>) -> Self {
        self.ending(|end| end.finish_reason = reason.map(str::to_owned))
    }
    pub(crate) fn no_done(self) -> Self {
        self.ending(|end| end.done_marker = false)
    }
    pub(crate) fn no_usage(self) -> Self {
        self.ending(|end| (end.usage, end.usage_raw) = (None, None))
    }
    /// The stream breaks off.
    pub(crate) fn breaks(self, failure: Failure) -> Self {
        self.finish(None).no_done().no_usage().ending(|end| end.failure = Some(failure))
    }
    /// Anything else that is known at the end.
    pub(crate) fn ending(mut self, change: impl FnOnce(&mut Completion)) -> Self {
        change(&mut self.end);
        self
    }
    fn beat(mut self, beat: Beat) -> Self {
        self.beats.push(beat);
        self
    }
}

/// What the model was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) items: Vec<Arc<Item>>,
    pub(crate) options: RequestOptions,
}

#[derive(Clone)]
pub(crate) struct ScriptModel {
    info: ModelInfo,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    prepared: Option<Asked>,
    /// Called with the number of the request, from 0, before it is answered.
    on_send: Arc<Mutex<Option<OnSend>>>,
    trace: Trace,
}

type OnSend = Box<dyn Fn(usize) + Send>;

impl ScriptModel {
    pub(crate) fn new(info: ModelInfo, replies: VecDeque<Reply>, trace: &Trace) -> Self {
        let replies = Arc::new(Mutex::new(replies));
        Self { info, replies, asked: Arc::default(), prepared: None, on_send: Arc::default(), trace: trace.clone() }
    }
    pub(crate) fn on_send(&self, hook: impl Fn(usize) + Send + 'static) {
        *self.on_send.lock().unwrap() = Some(Box::new(hook));
    }
    pub(crate) fn push(&self, reply: Reply) {
        self.replies.lock().unwrap().push_back(reply);
    }
    /// Forgets the rest of the script.
    pub(crate) fn clear(&self) {
        self.replies.lock().unwrap().clear();
    }
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl ModelClient for ScriptModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }
    fn fork(&self) -> Option<Box<dyn ModelClient>> {
        Some(Box::new(self.clone()))
    }
    async fn prepare(
        &mut self,
        _head: &Arc<Head>,
        items: &[Arc<Item>],
        options: &RequestOptions,
    ) -> Result<PreparedInfo, Failure> {
        let bytes = items.len() as u64;
        self.prepared = Some(Asked { items: items.to_vec(), options: options.clone() });
        Ok(PreparedInfo { bytes, fingerprint: format!("{bytes:08x}"), changed_at: None, changed_why: "first" })
    }
    async fn send(&mut self) -> Result<Box<dyn ModelStream>, Failure> {
        self.trace.mark("sent");
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.extend(self.prepared.clone());
            asked.len().saturating_sub(1)
        };
        if let Some(hook) = self.on_send.lock().unwrap().as_ref() {
            hook(number);
        }
        let reply = self.replies.lock().unwrap().pop_front().unwrap_or_else(|| Reply::text("(the script is over)"));
        if let Some(gate) = &reply.head {
            gate.pass().await;
        }
        match reply.refused {
            Some(failure) => Err(failure),
            None => Ok(Box::new(ScriptStream {
                beats: reply.beats.into(),
                so_far: Completion::default(),
                end: Some(reply.end),
                trace: self.trace.clone(),
            })),
        }
    }
}

struct ScriptStream {
    beats: VecDeque<Beat>,
    so_far: Completion,
    /// Taken when the stream has ended.
    end: Option<Completion>,
    trace: Trace,
}

impl ScriptStream {
    fn take(&mut self, delta: &Delta) {
        let so_far = &mut self.so_far;
        match delta {
            Delta::Text(text) => so_far.text.push_str(text),
            Delta::Reasoning(text) => {
                if so_far.reasoning.is_empty() {
                    so_far.reasoning.push(ReasoningBlock::default());
                }
                so_far.reasoning[0].text.push_str(text);
            }
            Delta::ToolInput { call, name, text } => {
                let at = *call as usize;
                if at < 1_000 {
                    so_far.calls.resize_with(so_far.calls.len().max(at + 1), RawCall::default);
                    so_far.calls[at].id = "call_0".into();
                    so_far.calls[at].name.push_str(name.as_deref().unwrap_or(""));
                    so_far.calls[at].arguments.push_str(text);
                }
            }
        }
    }
}

#[async_trait]
impl ModelStream for ScriptStream {
    async fn next(&mut self) -> Option<Vec<Delta>> {
        loop {
            // Cancel-safe: a gate is left in its place until it is passed.
            match self.beats.front().cloned() {
                Some(Beat::Gate(gate)) => gate.pass().await,
                Some(Beat::Delta(delta)) => {
                    self.beats.pop_front();
                    self.take(&delta);
                    self.trace.mark("delta");
                    return Some(vec![delta]);
                }
                None => {
                    let Completion { text, reasoning, calls, .. } = std::mem::take(&mut self.so_far);
                    self.so_far = Completion { text, reasoning, calls, ..self.end.take().unwrap_or_default() };
                    return None;
                }
            }
            self.beats.pop_front();
        }
    }
    fn finish(self: Box<Self>) -> Completion {
        self.so_far
    }
}

//! A model that follows a script, in process: for tests of whatever drives a model.
//!
//! It speaks no wire. A test of the wire needs a real server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hames_protocol::{
    Completion, Delta, ErrorClass, Failure, Head, Item, ModelClient, ModelInfo, ModelRef, ModelStream, PreparedInfo,
    RawCall, RequestOptions, Usage,
};

/// What the model does when it is asked.
#[derive(Clone, Debug)]
pub enum ScriptedTurn {
    /// It answers: pieces, each handed over by one call of `next`, then the whole.
    Answer {
        /// What comes piece by piece.
        deltas: Vec<Vec<Delta>>,
        /// What the answer is in the end.
        completion: Completion,
    },
    /// It begins to answer and then says nothing more, until it is dropped. `finish` gives what there was.
    Hang {
        /// What comes before the silence.
        deltas: Vec<Vec<Delta>>,
        /// What there is so far.
        completion: Completion,
    },
    /// The request fails before anything of an answer.
    Fail(Failure),
}

impl ScriptedTurn {
    /// An answer of text alone.
    pub fn text(text: &str) -> Self {
        Self::whole(Completion { text: text.to_owned(), finish_reason: Some("stop".into()), ..whole() })
    }

    /// An answer that asks for calls, given as name and arguments. Their ids are `call_0`, `call_1` and so on.
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        let calls = calls.iter().enumerate().map(|(at, (name, arguments))| RawCall {
            id: format!("call_{at}"),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            extra: None,
        });
        Self::whole(Completion { calls: calls.collect(), finish_reason: Some("tool_calls".into()), ..whole() })
    }

    /// An answer with the given whole, its pieces made from it: reasoning, then text, then calls.
    pub fn whole(completion: Completion) -> Self {
        Self::Answer { deltas: pieces(&completion), completion }
    }

    /// The beginning of an answer, then silence.
    pub fn hang(text: &str) -> Self {
        let completion = Completion { text: text.to_owned(), ..Completion::default() };
        Self::Hang { deltas: pieces(&completion), completion }
    }
}

fn whole() -> Completion {
    let usage = Usage { input: Some(100), output: Some(10), ..Usage::default() };
    Completion {
        usage: Some(usage),
        usage_raw: Some(r#"{"prompt_tokens":100,"completion_tokens":10}"#.into()),
        done_marker: true,
        ..Completion::default()
    }
}

fn pieces(completion: &Completion) -> Vec<Vec<Delta>> {
    let mut pieces: Vec<Vec<Delta>> = Vec::new();
    for block in completion.reasoning.iter().filter(|b| !b.text.is_empty()) {
        pieces.push(vec![Delta::Reasoning(block.text.clone())]);
    }
    if !completion.text.is_empty() {
        pieces.push(vec![Delta::Text(completion.text.clone())]);
    }
    for (at, call) in (0u32..).zip(&completion.calls) {
        pieces.push(vec![Delta::ToolInput { call: at, name: Some(call.name.clone()), text: call.arguments.clone() }]);
    }
    pieces
}

/// What the model was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The head.
    pub head: Arc<Head>,
    /// The items.
    pub items: Vec<Arc<Item>>,
    /// The options.
    pub options: RequestOptions,
}

#[derive(Debug, Default)]
struct Script {
    turns: VecDeque<ScriptedTurn>,
    asked: Vec<Asked>,
}

/// A model that follows a script. Clones share the script and what was asked, so one can be kept aside to look at.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use std::sync::Arc;
/// use hames_model::{ScriptedModel, ScriptedTurn};
/// use hames_protocol::{Head, ModelClient, RequestOptions};
///
/// let mut model = ScriptedModel::new([ScriptedTurn::text("Hello."), ScriptedTurn::calls(&[("Read", "{}")])]);
/// let head = Arc::new(Head { tools: vec![], system: "Be brief.".into() });
/// model.prepare(&head, &[], &RequestOptions::default()).await?;
/// let mut stream = model.send().await?;
/// while stream.next().await.is_some() {}
/// assert_eq!(stream.finish().text, "Hello.");
/// assert_eq!(model.asked()[0].head.system, "Be brief.");
/// # Ok::<(), hames_protocol::Failure>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    info: ModelInfo,
    script: Arc<Mutex<Script>>,
    prepared: Option<Asked>,
    count: u64,
}

impl ScriptedModel {
    /// A model with a window of 128,000 tokens that answers with these turns, one a request.
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        let info = ModelInfo::new(ModelRef { provider: "scripted".into(), id: "model".into() }, 128_000, 16_384);
        let script = Script { turns: turns.into_iter().collect(), asked: Vec::new() };
        Self { info, script: Arc::new(Mutex::new(script)), prepared: None, count: 0 }
    }

    /// Adds a turn at the end of the script.
    pub fn push(&self, turn: ScriptedTurn) {
        self.locked().turns.push_back(turn);
    }

    /// Everything that was sent so far, oldest first.
    pub fn asked(&self) -> Vec<Asked> {
        self.locked().asked.clone()
    }

    /// Turns not yet used.
    pub fn left(&self) -> usize {
        self.locked().turns.len()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ModelClient for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn fork(&self) -> Option<Box<dyn ModelClient>> {
        Some(Box::new(Self { prepared: None, ..self.clone() }))
    }

    async fn prepare(
        &mut self,
        head: &Arc<Head>,
        items: &[Arc<Item>],
        options: &RequestOptions,
    ) -> Result<PreparedInfo, Failure> {
        self.prepared = Some(Asked { head: Arc::clone(head), items: items.to_vec(), options: options.clone() });
        self.count += 1;
        let is_first = self.count == 1;
        Ok(PreparedInfo {
            bytes: 0,
            fingerprint: format!("scripted-{}", self.count),
            changed_at: (!is_first).then_some(0),
            changed_why: if is_first { "first" } else { "appended" },
        })
    }

    async fn send(&mut self) -> Result<Box<dyn ModelStream>, Failure> {
        let fault = |what: &str| Failure::new(ErrorClass::Internal, format!("scripted model: {what}"));
        let asked = self.prepared.clone().ok_or_else(|| fault("a request was sent before it was prepared"))?;
        let mut script = self.locked();
        script.asked.push(asked);
        match script.turns.pop_front() {
            Some(ScriptedTurn::Answer { deltas, completion }) => {
                Ok(Box::new(ScriptedStream { deltas: deltas.into(), completion, hangs: false }))
            }
            Some(ScriptedTurn::Hang { deltas, completion }) => {
                Ok(Box::new(ScriptedStream { deltas: deltas.into(), completion, hangs: true }))
            }
            Some(ScriptedTurn::Fail(failure)) => Err(failure),
            None => Err(fault("the script has no turn left")),
        }
    }
}

struct ScriptedStream {
    deltas: VecDeque<Vec<Delta>>,
    completion: Completion,
    hangs: bool,
}

#[async_trait]
impl ModelStream for ScriptedStream {
    async fn next(&mut self) -> Option<Vec<Delta>> {
        match self.deltas.pop_front() {
            Some(deltas) => Some(deltas),
            None if self.hangs => std::future::pending().await,
            None => None,
        }
    }

    fn finish(self: Box<Self>) -> Completion {
        self.completion
    }
}

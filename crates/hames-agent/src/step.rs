//! One step: send the request, hand on what arrives, record what it came to. Retrying lives here and nowhere else.

mod pieces;

use std::pin::Pin;

use hames_protocol::{
    Completion, Cut, ErrorClass, Event, Failure, OpenKind, PreparedInfo, Price, ReasoningDone, Retry, StepDone,
    StepStart, TextDone, Usage,
};
use hames_tools::Admitted;
use tokio::time::{Instant, MissedTickBehavior};

use crate::Agent;
use crate::overflow::{self, Overflow, Sent};
use crate::recorder::OPEN_STEP_EVERY;
use crate::retry::Tried;
use crate::run_loop::LoopCx;
use pieces::Pieces;

/// An item differs because there is no room for its images any more.
const IMAGES: &str = "images";

/// What a step came to.
pub(crate) struct StepOutcome {
    pub(crate) end: StepEnd,
    /// Recorded, not yet run.
    pub(crate) calls: Vec<Admitted>,
    pub(crate) has_text: bool,
    /// Tokens of the input as the provider counted them, none of them from a cache.
    pub(crate) counted: Option<u64>,
    /// The same, wherever they came from.
    pub(crate) input: Option<u64>,
}

/// How a step ended.
pub(crate) enum StepEnd {
    /// The answer is whole; its calls run.
    Whole,
    /// Cut by a person or by a message.
    Cut(Cut),
    /// The output limit; no call runs.
    OutputLimit,
    /// The request did not fit.
    Overflow(Box<Overflow>),
    /// Anything else.
    Failed(Failure),
}

/// What one request came to.
#[derive(Default)]
struct Answer {
    completion: Completion,
    /// Why we left it, if we did.
    cut: Option<Cut>,
    /// What was being streamed last; `None` where nothing was visible.
    last: Option<OpenKind>,
    /// Whether its failure may mean that the request did not fit.
    is_suspect: bool,
}

impl Answer {
    fn cut(cut: Cut) -> Self {
        Self { cut: Some(cut), ..Self::default() }
    }

    fn failed(failure: Failure) -> Self {
        Self { completion: Completion { failure: Some(failure), ..Completion::default() }, ..Self::default() }
    }

    fn end(&self) -> StepEnd {
        match self.cut {
            // What the model has asked for already is better than telling it to ask.
            Some(Cut::Guard) if !self.completion.calls.is_empty() => StepEnd::Whole,
            Some(cut) => StepEnd::Cut(cut),
            None if self.completion.is_whole() => StepEnd::Whole,
            None => unfinished(&self.completion),
        }
    }

    fn is_seen(&self) -> bool {
        let Completion { text, calls, refusal, .. } = &self.completion;
        self.last.is_some() || !text.is_empty() || !calls.is_empty() || refusal.is_some()
    }

    /// Why asking again may help: it failed, and nobody has seen anything of it.
    fn worth_another(&self) -> Option<Failure> {
        match self.end() {
            StepEnd::Failed(failure) if !self.is_seen() => Some(failure),
            _ => None,
        }
    }

    /// Whether the request did not fit.
    fn overflow(&self, sent: &Sent) -> Option<Overflow> {
        if self.cut.is_some() {
            return None;
        }
        overflow::read(&self.completion, self.is_seen(), self.is_suspect, sent)
    }
}

impl Agent {
    /// Takes one step. The outer error is the recorder's; the inner one is a failure before there was a request.
    pub(crate) async fn step(
        &mut self,
        cx: &LoopCx,
        sent: &Sent,
        number: u32,
    ) -> Result<Result<StepOutcome, Failure>, Failure> {
        let options = self.request_options(sent.output, cx.session.as_str());
        let prepared = match self.model.prepare(&self.head, self.compacting.window.items(), &options).await {
            Ok(prepared) => prepared,
            Err(failure) => return Ok(Err(failure)),
        };
        let start =
            StepStart { changed_why: self.changed_why(&prepared), ..step_start(number, &prepared, sent.estimate) };
        cx.emit.record(vec![start.into()]).await?;
        let answer = self.ask(cx, seed(&prepared), sent).await?;
        let overflow = answer.overflow(sent).map(Box::new);
        let outcome = conclude(cx, answer, self.model.info().price.as_ref()).await?;
        Ok(Ok(StepOutcome { end: overflow.map_or(outcome.end, StepEnd::Overflow), ..outcome }))
    }

    /// Why the request differs from the one before: the model sees that an item did, and here is known that its images
    /// went.
    fn changed_why(&mut self, prepared: &PreparedInfo) -> String {
        let left_out = self.compacting.window.images_left_out();
        let before = std::mem::replace(&mut self.compacting.images_left_out, left_out);
        let went = prepared.changed_why == "item" && left_out > before;
        if went { IMAGES.to_owned() } else { prepared.changed_why.to_owned() }
    }

    /// Sends the prepared request until there is something to record: an answer, a cut, or a failure that is final.
    async fn ask(&mut self, cx: &LoopCx, seed: u64, sent: &Sent) -> Result<Answer, Failure> {
        let cut = cx.cut();
        tokio::pin!(cut);
        let mut tried = Tried::default();
        let mut before = None;
        loop {
            let answer = self.attempt(cx, cut.as_mut()).await?;
            let Some(failure) = answer.worth_another() else { return Ok(answer) };
            if overflow::is_suspect(&failure, before.as_ref(), sent) {
                return Ok(Answer { is_suspect: true, ..answer });
            }
            before = Some(failure.clone());
            let Some(delay) = self.retry.delay(&mut tried, &failure, seed) else { return Ok(answer) };
            let retry = Retry {
                attempt: tried.attempt(),
                max_attempts: self.retry.most(&tried, &failure, delay),
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                failure,
            };
            cx.emit.record(vec![Event::Retry(retry)]).await?;
            tokio::select! {
                biased;
                cut = cut.as_mut() => return Ok(Answer::cut(cut)),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    /// Sends the prepared request once and streams what comes. What the client had to learn on the way is recorded
    /// before any of it.
    async fn attempt(&mut self, cx: &LoopCx, mut cut: Pin<&mut impl Future<Output = Cut>>) -> Result<Answer, Failure> {
        let sent = tokio::select! {
            biased;
            cut = cut.as_mut() => Err(Answer::cut(cut)),
            sent = self.model.send() => sent.map_err(Answer::failed),
        };
        cx.emit.record(self.model.take_learned().into_iter().map(Event::ParameterLearned).collect()).await?;
        let mut stream = match sent {
            Ok(stream) => stream,
            Err(answer) => return Ok(answer),
        };
        let mut pieces = Pieces::default();
        let mut pause = tokio::time::interval_at(Instant::now() + OPEN_STEP_EVERY, OPEN_STEP_EVERY);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let cut = loop {
            let deltas = tokio::select! {
                biased;
                cut = cut.as_mut() => break Some(cut),
                deltas = stream.next() => deltas,
                // A stream that pauses: what it has said so far is kept all the same.
                _ = pause.tick() => Some(Vec::new()),
            };
            let Some(deltas) = deltas else { break None };
            let is_loop = cx.guard.watch(&deltas).is_some();
            cx.emit.flow(pieces.events(deltas)).await;
            if is_loop {
                break Some(Cut::Guard);
            }
        };
        let mut completion = stream.finish();
        if cut == Some(Cut::Guard) {
            completion.calls.retain(|call| is_whole_object(&call.arguments));
            if let Some(keeps) = cx.guard.keeps() {
                completion.text.truncate(boundary(&completion.text, keeps));
            }
        }
        Ok(Answer { completion, cut, last: pieces.last(), is_suspect: false })
    }
}

/// Records what a step came to, in one append: reasoning, text, calls, `step.done`.
async fn conclude(cx: &LoopCx, answer: Answer, price: Option<&Price>) -> Result<StepOutcome, Failure> {
    let end = answer.end();
    let shown_cut = match &end {
        StepEnd::Whole => answer.cut,
        StepEnd::Cut(cut) => Some(*cut),
        StepEnd::OutputLimit => Some(Cut::Limit),
        StepEnd::Failed(_) | StepEnd::Overflow(_) => Some(Cut::Stream),
    };
    // Only the block that was being streamed is cut; what came before it is complete.
    let cut_of = |kind| shown_cut.filter(|_| answer.last == Some(kind));
    let whole = matches!(end, StepEnd::Whole);
    let Completion { text, reasoning, calls, refusal, finish_reason, usage, cost, timings, request_id, .. } =
        answer.completion;

    let mut events = Vec::with_capacity(reasoning.len() + calls.len() + 2);
    let last_block = reasoning.len().saturating_sub(1);
    for (at, block) in reasoning.into_iter().enumerate() {
        let cut = cut_of(OpenKind::Reasoning).filter(|_| at == last_block);
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        events.push(Event::ReasoningDone(ReasoningDone { index, block, cut }));
    }
    let text = if text.trim().is_empty() { refusal.unwrap_or_default() } else { text };
    let has_text = !text.trim().is_empty();
    if has_text {
        events.push(Event::TextDone(TextDone { index: 0, text, cut: cut_of(OpenKind::Text) }));
    }
    let calls: Vec<Admitted> = calls.into_iter().map(|call| cx.door.admit(call)).collect();
    events.extend(calls.iter().map(|call| Event::ToolCall(call.event.clone())));
    tracing::info!(
        target: "hames::step",
        session = %cx.session,
        finish = finish_reason.as_deref().unwrap_or("-"),
        whole,
        calls = calls.len(),
        input = usage.as_ref().and_then(|u| u.input).unwrap_or(0),
        output = usage.as_ref().and_then(|u| u.output).unwrap_or(0),
        ms = timings.total_ms,
    );
    let is_cached = |usage: &Usage| usage.cache_read.unwrap_or(0) > 0;
    let input = usage.as_ref().and_then(|usage| usage.input);
    let counted = input.filter(|_| !usage.as_ref().is_some_and(is_cached));
    // What the provider states is what it bills; a price list is the next best.
    let cost = cost.or_else(|| price?.cost(usage.as_ref()?));
    events.push(Event::StepDone(StepDone { finish_reason, whole, usage, cost, timings, request_id }));
    cx.emit.record(events).await?;
    Ok(StepOutcome { end, calls, has_text, counted, input })
}

/// Whether the arguments of a call had all come.
fn is_whole_object(arguments: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok()
}

/// The last boundary between characters that is not beyond this byte.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn step_start(number: u32, prepared: &PreparedInfo, input_estimate: u64) -> StepStart {
    StepStart {
        number,
        fingerprint: prepared.fingerprint.clone(),
        bytes: prepared.bytes,
        changed_at: prepared.changed_at,
        changed_why: prepared.changed_why.to_owned(),
        input_estimate: Some(input_estimate),
    }
}

/// Spreads the waits of clients that fail together: requests differ, so do their fingerprints.
fn seed(prepared: &PreparedInfo) -> u64 {
    prepared.fingerprint.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()))
}

/// What an answer that is not whole comes to.
fn unfinished(completion: &Completion) -> StepEnd {
    if let Some(failure) = completion.failure.clone() {
        return StepEnd::Failed(failure);
    }
    StepEnd::Failed(match completion.finish_reason.as_deref() {
        Some("length") => return StepEnd::OutputLimit,
        Some("content_filter") => Failure::new(
            ErrorClass::ContentFilter,
            "The provider's content filter stopped the answer. Rephrase the request, or use another model.",
        ),
        Some("error") => Failure::new(
            ErrorClass::ServerError,
            "The provider ended the answer with an error and no words of its own. Try again, or use another model.",
        )
        .retryable(),
        _ => Failure::new(
            ErrorClass::StreamIncomplete,
            "The answer ended before the provider said it was complete. What arrived is kept; continue the session to go on.",
        )
        .retryable(),
    })
}

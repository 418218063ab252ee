//! One step: send the request, hand on what arrives, record what it came to. Retrying lives here and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use hames_protocol::{
    Completion, Cut, Delta, ErrorClass, Event, Failure, Item, PreparedInfo, ReasoningDelta, ReasoningDone,
    RequestOptions, Retry, StepDone, StepStart, TextDelta, TextDone, ToolInputDelta, Usage,
};
use hames_tools::Admitted;

use crate::Agent;
use crate::run_loop::LoopCx;

/// What a step came to.
pub(crate) struct StepOutcome {
    pub(crate) end: StepEnd,
    /// Recorded, not yet run.
    pub(crate) calls: Vec<Admitted>,
    pub(crate) has_text: bool,
    pub(crate) usage: Option<Usage>,
}

/// How a step ended.
pub(crate) enum StepEnd {
    /// The answer is whole; its calls run.
    Whole,
    /// Cut by a person or by a message.
    Cut(Cut),
    /// The output limit; no call runs.
    OutputLimit,
    /// Anything else.
    Failed(Failure),
}

/// One attempt at an answer.
enum Attempt {
    /// There is something to record.
    Answer(Box<Completion>, Option<Cut>),
    /// Nothing was visible; it may be tried again.
    Nothing(Failure),
}

impl Attempt {
    fn answer(completion: Completion, cut: Option<Cut>) -> Self {
        Self::Answer(Box::new(completion), cut)
    }
}

/// Where the pieces of the open step stand.
#[derive(Default)]
struct Offsets {
    text: u64,
    reasoning: u64,
    calls: Vec<u64>,
    visible: bool,
}

impl Agent {
    /// Takes one step. The outer error is the recorder's; the inner one is a failure before anything was visible.
    pub(crate) async fn step(
        &mut self,
        cx: &LoopCx,
        items: &[Arc<Item>],
        options: &RequestOptions,
        number: u32,
    ) -> Result<Result<StepOutcome, Failure>, Failure> {
        let prepared = match self.model.prepare(&self.head, items, options).await {
            Ok(prepared) => prepared,
            Err(failure) => return Ok(Err(failure)),
        };
        cx.emit.record(vec![step_start(number, &prepared)]).await?;
        let mut attempt = 1;
        loop {
            let failure = match self.attempt(cx).await {
                Attempt::Answer(completion, cut) => return self.conclude(cx, *completion, cut).await.map(Ok),
                Attempt::Nothing(failure) => failure,
            };
            if cx.abort.is_cancelled() {
                return self.conclude(cx, Completion::default(), Some(Cut::Abort)).await.map(Ok);
            }
            let seed = u64::from_str_radix(prepared.fingerprint.get(..8).unwrap_or("0"), 16).unwrap_or(0);
            let Some(delay) = self.retry.delay(attempt, &failure, seed) else {
                let completion = Completion { failure: Some(failure), ..Completion::default() };
                return self.conclude(cx, completion, None).await.map(Ok);
            };
            let retry = Retry {
                attempt,
                max_attempts: self.retry.max_attempts,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                failure,
            };
            cx.emit.record(vec![Event::Retry(retry)]).await?;
            wait(cx, delay).await;
            attempt += 1;
        }
    }

    /// Sends the prepared request once and streams what comes.
    async fn attempt(&mut self, cx: &LoopCx) -> Attempt {
        let sent = tokio::select! {
            sent = self.model.send() => sent,
            () = cx.abort.cancelled() => return Attempt::answer(Completion::default(), Some(Cut::Abort)),
            () = cx.interrupted() => return Attempt::answer(Completion::default(), Some(Cut::Interrupt)),
        };
        let mut stream = match sent {
            Ok(stream) => stream,
            Err(failure) => return Attempt::Nothing(failure),
        };
        let mut offsets = Offsets::default();
        let cut = loop {
            let deltas = tokio::select! {
                biased;
                () = cx.abort.cancelled() => break Some(Cut::Abort),
                () = cx.interrupted() => break Some(Cut::Interrupt),
                deltas = stream.next() => deltas,
            };
            match deltas {
                Some(deltas) => cx.emit.flow(offsets.events(deltas)).await,
                None => break None,
            }
        };
        let completion = stream.finish();
        let nothing = cut.is_none() && !offsets.visible && completion.calls.is_empty();
        match completion.failure.clone().or_else(|| incomplete(&completion)) {
            Some(failure) if nothing => Attempt::Nothing(failure),
            _ => Attempt::answer(completion, cut),
        }
    }

    /// Records what a step came to, in one append: reasoning, text, calls, `step.done`.
    async fn conclude(&self, cx: &LoopCx, completion: Completion, cut: Option<Cut>) -> Result<StepOutcome, Failure> {
        let whole = cut.is_none() && completion.is_whole();
        let end = step_end(&completion, cut, whole);
        let shown_cut = cut.or(match &end {
            StepEnd::OutputLimit => Some(Cut::Limit),
            StepEnd::Failed(_) => Some(Cut::Stream),
            _ => None,
        });
        let Completion { text, reasoning, calls, refusal, finish_reason, usage, cost, timings, request_id, .. } =
            completion;
        let mut events = Vec::with_capacity(reasoning.len() + calls.len() + 2);
        for (index, block) in (0..).zip(reasoning) {
            events.push(Event::ReasoningDone(ReasoningDone { index, block, cut: shown_cut }));
        }
        let text = if text.is_empty() { refusal.unwrap_or_default() } else { text };
        let has_text = !text.trim().is_empty();
        if has_text {
            events.push(Event::TextDone(TextDone { index: 0, text, cut: shown_cut }));
        }
        let calls: Vec<Admitted> = calls.into_iter().map(|call| self.door.admit(call)).collect();
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
        let done = StepDone { finish_reason, whole, usage: usage.clone(), cost, timings, request_id };
        events.push(Event::StepDone(done));
        cx.emit.record(events).await?;
        Ok(StepOutcome { end, calls, has_text, usage })
    }
}

fn step_start(number: u32, prepared: &PreparedInfo) -> Event {
    Event::StepStart(StepStart {
        number,
        fingerprint: prepared.fingerprint.clone(),
        bytes: prepared.bytes,
        changed_at: prepared.changed_at,
        changed_why: prepared.changed_why.to_owned(),
    })
}

fn step_end(completion: &Completion, cut: Option<Cut>, whole: bool) -> StepEnd {
    if let Some(cut) = cut {
        return StepEnd::Cut(cut);
    }
    if whole {
        return StepEnd::Whole;
    }
    if let Some(failure) = completion.failure.clone() {
        return StepEnd::Failed(failure);
    }
    match completion.finish_reason.as_deref() {
        Some("length") => StepEnd::OutputLimit,
        Some("content_filter") => StepEnd::Failed(Failure::new(
            ErrorClass::ContentFilter,
            "The provider's content filter stopped the answer. Rephrase the request, or use another model.",
        )),
        Some("error") => StepEnd::Failed(Failure::new(
            ErrorClass::ServerError,
            "The provider ended the answer with an error and no words of its own. Try again, or use another model.",
        )),
        _ => StepEnd::Failed(
            incomplete(completion).unwrap_or_else(|| Failure::new(ErrorClass::StreamIncomplete, CUT_SHORT)),
        ),
    }
}

const CUT_SHORT: &str =
    "The answer ended before the provider said it was complete. What arrived is kept; continue the session to go on.";

/// The failure of an answer that ended without saying how. Worth another try while nothing was visible.
fn incomplete(completion: &Completion) -> Option<Failure> {
    let unfinished = completion.finish_reason.as_deref().is_none_or(str::is_empty) && !completion.is_whole();
    unfinished.then(|| Failure::new(ErrorClass::StreamIncomplete, CUT_SHORT).retryable())
}

async fn wait(cx: &LoopCx, delay: Duration) {
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = cx.abort.cancelled() => {}
    }
}

impl Offsets {
    fn events(&mut self, deltas: Vec<Delta>) -> Vec<Event> {
        self.visible |= !deltas.is_empty();
        deltas.into_iter().map(|delta| self.event(delta)).collect()
    }

    fn event(&mut self, delta: Delta) -> Event {
        fn step(offset: &mut u64, text: &str) -> u64 {
            let before = *offset;
            *offset += text.len() as u64;
            before
        }
        match delta {
            Delta::Text(text) => Event::TextDelta(TextDelta { index: 0, offset: step(&mut self.text, &text), text }),
            Delta::Reasoning(text) => {
                Event::ReasoningDelta(ReasoningDelta { index: 0, offset: step(&mut self.reasoning, &text), text })
            }
            Delta::ToolInput { call, name, text } => {
                let at = call as usize;
                if self.calls.len() <= at {
                    self.calls.resize(at + 1, 0);
                }
                Event::ToolInputDelta(ToolInputDelta {
                    index: call,
                    offset: step(&mut self.calls[at], &text),
                    name,
                    text,
                })
            }
        }
    }
}

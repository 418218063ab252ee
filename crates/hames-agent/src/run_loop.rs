//! The loop. Everything clever is outside it.

use std::sync::Arc;

use hames_protocol::{
    Cut, Delivery, Done, Emit, ErrorClass, Event, Failure, Inbox, MessageUser, RunResult, SessionId, ToolErrorClass,
    Usage,
};
use hames_tools::{Admitted, RunCx};
use tokio_util::sync::CancellationToken;

use crate::Agent;
use crate::recorder::{Folds, locked};
use crate::step::{StepEnd, StepOutcome};

/// So many steps in a row may end at the output limit with calls before the run stops: each time the model was told to
/// write smaller pieces.
const MAX_LIMITED_STEPS: u32 = 3;

/// What a run is lent.
pub(crate) struct LoopCx {
    pub(crate) session: SessionId,
    pub(crate) mode: hames_protocol::Mode,
    pub(crate) folds: Arc<Folds>,
    pub(crate) emit: Arc<dyn Emit>,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) abort: CancellationToken,
}

impl LoopCx {
    /// Returns when a message that waits wants to interrupt. A signal left over from a message that was delivered
    /// meanwhile is no reason to cut anything.
    pub(crate) async fn interrupted(&self) {
        loop {
            self.inbox.interrupt().await;
            if self.inbox.waiting().iter().any(|pending| pending.delivery == Delivery::Interrupt) {
                return;
            }
        }
    }
}

/// Counts of a run, for its `done`.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u32,
    pub(crate) calls: u32,
    pub(crate) usage: Usage,
    limited: u32,
}

/// How the loop ended.
pub(crate) struct LoopEnd {
    pub(crate) result: RunResult,
    pub(crate) reason: Option<&'static str>,
    pub(crate) failure: Option<Failure>,
}

impl LoopEnd {
    fn new(result: RunResult) -> Self {
        Self { result, reason: None, failure: None }
    }
    fn stopped(reason: &'static str) -> Self {
        Self { result: RunResult::Stopped, reason: Some(reason), failure: None }
    }
    fn failed(failure: Failure) -> Self {
        Self { result: RunResult::Error, reason: None, failure: Some(failure) }
    }
}

impl Agent {
    /// Takes steps until there is nothing more to do. `Err` only where recording failed: then nothing more may happen.
    pub(crate) async fn run_loop(&mut self, cx: &LoopCx, tally: &mut Tally) -> Result<LoopEnd, Failure> {
        loop {
            if cx.abort.is_cancelled() {
                return Ok(LoopEnd::new(RunResult::Interrupted));
            }
            if self.max_steps.is_some_and(|max| tally.steps >= max) {
                return Ok(LoopEnd::new(RunResult::MaxSteps));
            }
            deliver_waiting(cx).await?;
            let items = locked(&cx.folds.transcript).items().to_vec();
            let options = match self.plan(&items, cx.session.as_str()) {
                Ok(options) => options,
                Err(failure) => return Ok(LoopEnd::failed(failure)),
            };
            tally.steps += 1;
            let step = match self.step(cx, &items, &options, tally.steps).await? {
                Ok(step) => step,
                Err(failure) => return Ok(LoopEnd::failed(failure)),
            };
            if let Some(end) = self.after_step(cx, step, tally).await? {
                return Ok(end);
            }
        }
    }

    /// Runs or answers the calls of a step, and says whether the run is over.
    async fn after_step(
        &mut self,
        cx: &LoopCx,
        step: StepOutcome,
        tally: &mut Tally,
    ) -> Result<Option<LoopEnd>, Failure> {
        let StepOutcome { end, calls, has_text, usage } = step;
        if let Some(usage) = &usage {
            tally.usage.add(usage);
        }
        tally.calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let asked = !calls.is_empty();
        if !matches!(end, StepEnd::OutputLimit) {
            tally.limited = 0;
        }
        match end {
            StepEnd::Whole if asked => {
                self.run_calls(cx, calls).await?;
                Ok(None)
            }
            StepEnd::Whole if !cx.inbox.close_if_empty() => Ok(None),
            StepEnd::Whole if has_text => Ok(Some(LoopEnd::new(RunResult::Complete))),
            StepEnd::Whole => Ok(Some(LoopEnd::stopped("empty_answer"))),
            StepEnd::Cut(Cut::Abort) => {
                self.answer(cx, calls, ToolErrorClass::NotRun, "Not run: the run was stopped.").await?;
                Ok(Some(LoopEnd::new(RunResult::Interrupted)))
            }
            StepEnd::Cut(_) => {
                self.answer(cx, calls, ToolErrorClass::NotRun, "Not run: the user added a message.").await?;
                Ok(None)
            }
            StepEnd::OutputLimit => {
                self.answer(
                    cx,
                    calls,
                    ToolErrorClass::NotRun,
                    "Not run: the answer reached the output limit, so this call may be cut. Send it again in smaller pieces.",
                )
                .await?;
                tally.limited += 1;
                let go_on = asked && tally.limited < MAX_LIMITED_STEPS;
                Ok((!go_on).then(|| LoopEnd::stopped("output_limit")))
            }
            StepEnd::Failed(failure) => {
                self.answer(cx, calls, ToolErrorClass::NotRun, "Not run: the answer was not complete.").await?;
                Ok(Some(LoopEnd::failed(failure)))
            }
        }
    }

    async fn run_calls(&self, cx: &LoopCx, calls: Vec<Admitted>) -> Result<(), Failure> {
        let interrupt = CancellationToken::new();
        let run_cx = RunCx {
            session: cx.session.clone(),
            mode: cx.mode,
            emit: Arc::clone(&cx.emit),
            state: Arc::clone(&cx.folds.state),
            abort: cx.abort.clone(),
            interrupt: interrupt.clone(),
        };
        let work = self.door.run(calls, run_cx);
        tokio::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = cx.interrupted() => interrupt.cancel(),
        }
        work.await
    }

    async fn answer(
        &self,
        cx: &LoopCx,
        calls: Vec<Admitted>,
        class: ToolErrorClass,
        text: &str,
    ) -> Result<(), Failure> {
        if calls.is_empty() {
            return Ok(());
        }
        self.door.refuse(calls, class, text, cx.emit.as_ref()).await
    }
}

/// Puts waiting steers and interrupts into the transcript: each event is at once its removal from pending.
async fn deliver_waiting(cx: &LoopCx) -> Result<(), Failure> {
    for pending in cx.inbox.waiting() {
        if pending.delivery == Delivery::Queue {
            continue;
        }
        let message = MessageUser {
            parts: pending.parts,
            delivery: Some(pending.delivery),
            pending_id: Some(pending.id.clone()),
            idempotency_id: pending.idempotency_id,
            note: None,
        };
        cx.emit.record(vec![Event::MessageUser(message)]).await?;
        cx.inbox.delivered(&pending.id);
    }
    Ok(())
}

/// `done` of a run.
pub(crate) fn done_event(end: &LoopEnd, tally: &Tally, errors: u32) -> Event {
    Event::Done(Done {
        result: end.result,
        reason: end.reason.map(str::to_owned),
        usage: tally.usage.clone(),
        steps: tally.steps,
        calls: tally.calls,
        errors,
    })
}

/// What `hames run` exits with.
pub(crate) fn exit_code(end: &LoopEnd) -> i32 {
    match end.result {
        RunResult::Complete => 0,
        RunResult::Stopped | RunResult::MaxSteps => 3,
        RunResult::Interrupted => 130,
        RunResult::Error => match end.failure.as_ref().map(|f| f.class) {
            Some(ErrorClass::Storage) => 4,
            Some(ErrorClass::Usage | ErrorClass::Configuration) => 2,
            _ => 1,
        },
    }
}

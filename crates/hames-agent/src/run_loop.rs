//! The loop. Everything clever is outside it.

use std::sync::Arc;

use hames_context::Moment;
use hames_protocol::{
    Cut, Delivery, Emit, ErrorClass, Event, Failure, Inbox, MessageUser, Mode, Part, Pending, RunResult, SessionId,
    ToolErrorClass,
};
use hames_tools::{Admitted, Door, PinRoom, RunCx};
use tokio_util::sync::CancellationToken;

use crate::compaction::{Planned, Recovered, Recovery};
use crate::guard::{SharedGuard, StepEnded, Verdict};
use crate::journal::{Folds, locked};
use crate::step::{StepEnd, StepOutcome};
use crate::{Agent, RunEnd};

/// So many steps in a row may end at the output limit with calls before the run stops: each time the model was told to
/// write smaller pieces.
const MAX_LIMITED_STEPS: u32 = 3;

/// What a run is lent.
pub(crate) struct LoopCx {
    pub(crate) session: SessionId,
    pub(crate) door: Arc<Door>,
    pub(crate) mode: Mode,
    pub(crate) folds: Arc<Folds>,
    pub(crate) emit: Arc<dyn Emit>,
    pub(crate) guard: SharedGuard,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) abort: CancellationToken,
}

impl Agent {
    /// Takes steps until there is nothing more to do. `Err` only where recording failed: then nothing more may happen.
    pub(crate) async fn run_loop(&mut self, cx: &LoopCx) -> Result<RunEnd, Failure> {
        let mut limited = 0;
        // Steps whose request did not fit: they were taken again, and count once.
        let mut again = 0;
        let mut recovery = Recovery::default();
        loop {
            let taken = cx.steps();
            if cx.abort.is_cancelled() {
                return Ok(RunEnd::new(RunResult::Interrupted));
            }
            if self.max_steps.is_some_and(|max| taken >= max.saturating_add(again)) {
                return Ok(RunEnd::new(RunResult::MaxSteps));
            }
            cx.deliver_waiting().await?;
            let moment = if taken == 0 { Moment::BeforeRequest } else { Moment::AtBoundary };
            let ready = match self.plan(cx, moment).await? {
                Planned::Ready(ready) => ready,
                Planned::Cut => continue,
                Planned::Refused(failure) => return Ok(RunEnd::failed(failure)),
                Planned::Nothing => return Ok(RunEnd::failed(nothing_to_send())),
            };
            let sent = self.sent(cx, ready, &recovery);
            let step = match self.step(cx, &sent, taken + 1).await? {
                Ok(step) => step,
                Err(failure) => return Ok(RunEnd::failed(failure)),
            };
            if let StepEnd::Overflow(overflow) = step.end {
                match self.recover(cx, *overflow, &sent, &mut recovery).await? {
                    Recovered::Again => again += 1,
                    Recovered::Cut => {}
                    Recovered::No(failure) => return Ok(RunEnd::failed(failure)),
                }
                continue;
            }
            recovery = Recovery::default();
            self.learn_of(cx, &step, &sent).await?;
            let pins = self.pin_room(&cx.folds);
            if let Some(end) = cx.after_step(step, pins, &mut limited).await? {
                if end.result == RunResult::Complete {
                    self.plan(cx, Moment::AfterResponse).await?;
                }
                return Ok(end);
            }
        }
    }
}

fn nothing_to_send() -> Failure {
    let what = "There was nothing to send. This is a fault of Hames; please report it.";
    Failure::new(ErrorClass::Internal, what)
}

const LIMIT_REACHED: &str =
    "Not run: the answer reached the output limit, so this call may be cut. Send it again in smaller pieces.";

impl LoopCx {
    /// Runs or answers the calls of a step, and says whether the run is over.
    async fn after_step(&self, step: StepOutcome, pins: PinRoom, limited: &mut u32) -> Result<Option<RunEnd>, Failure> {
        let StepOutcome { end, calls, has_text, .. } = step;
        let asked = !calls.is_empty();
        *limited = if matches!(end, StepEnd::OutputLimit) { *limited + 1 } else { 0 };
        match end {
            StepEnd::Whole if asked => {
                self.run_calls(calls, pins).await?;
                self.guarded(StepEnded::Calls).await
            }
            StepEnd::Whole => self.without_calls(has_text).await,
            StepEnd::Cut(Cut::Guard) => self.guarded(StepEnded::Cut).await,
            StepEnd::Cut(Cut::Abort) => {
                self.answer(calls, "Not run: the run was stopped.").await?;
                Ok(Some(RunEnd::new(RunResult::Interrupted)))
            }
            StepEnd::Cut(_) => {
                self.answer(calls, "Not run: the user added a message.").await?;
                Ok(None)
            }
            StepEnd::OutputLimit => {
                self.answer(calls, LIMIT_REACHED).await?;
                let go_on = if asked { *limited < MAX_LIMITED_STEPS } else { self.somebody_waits() };
                Ok((!go_on).then(|| RunEnd::because(RunResult::Stopped, "output_limit")))
            }
            StepEnd::Failed(failure) => {
                self.answer(calls, "Not run: the answer was not complete.").await?;
                Ok(Some(RunEnd::failed(failure)))
            }
            // Nothing was asked for, and whoever takes steps sends it again.
            StepEnd::Overflow(overflow) => Ok(Some(RunEnd::failed(overflow.failure))),
        }
    }

    /// Ends the run after an answer without calls, unless a message waits or the guard has something to say.
    async fn without_calls(&self, has_text: bool) -> Result<Option<RunEnd>, Failure> {
        if self.inbox.waiting().iter().any(is_for_this_run) {
            return Ok(None);
        }
        match self.guard.conclude(if has_text { StepEnded::Text } else { StepEnded::Empty }) {
            Verdict::Fine if self.somebody_waits() => Ok(None),
            Verdict::Fine if has_text => Ok(Some(RunEnd::new(RunResult::Complete))),
            Verdict::Fine => Ok(Some(RunEnd::because(RunResult::Stopped, "empty_answer"))),
            verdict => self.perform(verdict).await,
        }
    }

    /// Lets the guard judge the step, and does what it says.
    async fn guarded(&self, ended: StepEnded) -> Result<Option<RunEnd>, Failure> {
        if self.abort.is_cancelled() {
            return Ok(None);
        }
        self.perform(self.guard.conclude(ended)).await
    }

    async fn perform(&self, verdict: Verdict) -> Result<Option<RunEnd>, Failure> {
        match verdict {
            Verdict::Fine => Ok(None),
            Verdict::Nudge(nudges) => {
                self.emit.record(nudges.into_iter().map(Event::Nudge).collect()).await?;
                Ok(None)
            }
            Verdict::Stop(stopped) => {
                self.emit.record(vec![Event::LoopStopped(stopped)]).await?;
                Ok(Some(RunEnd::because(RunResult::Stopped, "loop")))
            }
        }
    }

    async fn run_calls(&self, calls: Vec<Admitted>, pins: PinRoom) -> Result<(), Failure> {
        let interrupt = CancellationToken::new();
        let run_cx = RunCx {
            session: self.session.clone(),
            mode: self.mode,
            emit: Arc::clone(&self.emit),
            state: Arc::clone(&self.folds.state),
            abort: self.abort.clone(),
            interrupt: interrupt.clone(),
            memory: self.guard.memory(),
            pins,
        };
        let work = self.door.run(calls, run_cx);
        tokio::pin!(work);
        tokio::select! {
            // A message that is there already comes before the first call starts.
            biased;
            () = self.interrupted() => interrupt.cancel(),
            done = &mut work => return done,
        }
        work.await
    }

    async fn answer(&self, calls: Vec<Admitted>, text: &str) -> Result<(), Failure> {
        self.door.refuse(calls, ToolErrorClass::NotRun, text, self.emit.as_ref()).await
    }

    fn steps(&self) -> u32 {
        locked(&self.folds.tally).steps
    }

    /// Puts waiting steers and interrupts into the transcript: each event is at once its removal from pending.
    async fn deliver_waiting(&self) -> Result<(), Failure> {
        // Looked at anew for each: while one is recorded, a person may change or reorder the others.
        while let Some(next) = self.inbox.waiting().into_iter().find(is_for_this_run) {
            let Some(pending) = self.inbox.claim(&next.id) else { continue };
            let message = MessageUser {
                parts: pending.parts,
                delivery: Some(pending.delivery),
                pending_id: Some(pending.id.clone()),
                idempotency_id: pending.idempotency_id,
                note: None,
            };
            self.emit.record(vec![Event::MessageUser(message)]).await?;
            self.inbox.delivered(&pending.id);
        }
        Ok(())
    }

    /// Closes the inbox, unless a message has come for this run.
    fn somebody_waits(&self) -> bool {
        !self.inbox.close_if_empty() && self.inbox.waiting().iter().any(is_for_this_run)
    }

    /// Returns when a message that waits wants to interrupt. A signal left over from a message that was delivered
    /// meanwhile is no reason to cut anything.
    async fn interrupted(&self) {
        while !self.inbox.waiting().iter().any(|pending| pending.delivery == Delivery::Interrupt) {
            self.inbox.interrupt().await;
        }
    }

    /// Returns when what is under way has to be cut, and says by whom. A person who stops the run comes first.
    pub(crate) async fn cut(&self) -> Cut {
        tokio::select! {
            biased;
            () = self.abort.cancelled() => Cut::Abort,
            () = self.interrupted() => Cut::Interrupt,
        }
    }
}

/// Whether a message of the user holds anything to send.
pub(crate) fn says_something(parts: &[Part], note: Option<&str>) -> bool {
    let is_something = |part: &Part| match part {
        Part::Text { text } => !text.trim().is_empty(),
        Part::Image { .. } => true,
    };
    parts.iter().any(is_something) || note.is_some_and(|note| !note.trim().is_empty())
}

fn is_for_this_run(pending: &Pending) -> bool {
    pending.delivery != Delivery::Queue
}

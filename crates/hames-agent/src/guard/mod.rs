//! The loop guard: notices when a run goes round in circles, breaks it, and says so.
//!
//! It is a fold of the run's own events and of what streams, and answers with decisions: whether to cut a stream, what is
//! to be done with a call, what to tell the model when a step has ended. It does no I/O, reads no clock and never keeps
//! more than a bounded part of anything; the loop and the door do what it decides. Each kind of loop has its file.
//!
//! One value guards one run. A message that arrives meanwhile makes it forget what was tried, but not how often it has
//! nudged. What it deliberately does not do: count steps, time or money.

mod across;
mod answer;
mod calls;
mod escalation;
mod failures;
mod repeats;
mod repetition;
mod says;
mod shared;
mod signature;
mod streak;
mod words;

#[cfg(test)]
mod tests;

use std::time::Instant;

use hames_protocol::{
    CallId, Delta, Event, GuardDials, GuardParameter, GuardSettings, LoopKind, LoopStopped, Nudge, ToolCall,
};
use hames_tools::Recall;

use across::{Across, Thought};
use answer::Answer;
use calls::Calls;
use escalation::Escalation;
use repetition::Repetition;
use says::Said;
use streak::Streak;

pub(crate) use shared::SharedGuard;

/// Bytes of a step's reasoning that are compared with that of other steps.
const MOST_REASONING: usize = 256 << 10;

/// How a step ended, as far as the guard is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnded {
    /// Its calls are answered.
    Calls,
    /// It gave text and no calls.
    Text,
    /// It gave neither.
    Empty,
    /// The guard cut it.
    Cut,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing was found.
    Fine,
    /// The model is told, and goes on.
    Nudge(Vec<Nudge>),
    /// Telling it did not help; the run stops.
    Stop(LoopStopped),
}

/// The present step.
#[derive(Default)]
struct Step {
    reasoning: Repetition,
    answer: Answer,
    /// What the stream was cut for.
    cut: Option<LoopKind>,
    /// Reasoning as recorded.
    thought: String,
}

/// Watches one run.
pub struct Guard {
    dials: GuardDials,
    calls: Calls,
    across: Across,
    streak: Streak,
    escalation: Escalation,
    step: Step,
}

impl Guard {
    /// A guard with these settings.
    pub fn new(settings: &GuardSettings) -> Self {
        let dials = settings.in_force();
        Self {
            calls: Calls::new(&dials),
            dials,
            across: Across::default(),
            streak: Streak::default(),
            escalation: Escalation::default(),
            step: Step::default(),
        }
    }

    /// Whether it does anything.
    pub fn is_on(&self) -> bool {
        self.dials.is_on()
    }

    /// Takes in a recorded event of the run.
    pub fn apply(&mut self, event: &Event) {
        if !self.is_on() {
            return;
        }
        calls::apply(&mut self.calls, event);
        match event {
            Event::StepStart(_) => self.step = Step::default(),
            Event::ReasoningDone(done) if self.step.thought.len() < MOST_REASONING => {
                self.step.thought.push_str(&done.block.text);
                self.step.thought.push('\n');
            }
            Event::MessageUser(_) => {
                self.across.forget();
                self.streak.forget();
            }
            _ => {}
        }
    }

    /// Looks at what streams, and says whether the stream is to be cut, and for what.
    pub fn watch(&mut self, deltas: &[Delta]) -> Option<LoopKind> {
        if !self.is_on() || self.step.cut.is_some() {
            return None;
        }
        for delta in deltas {
            let found = match delta {
                Delta::Reasoning(text) => {
                    self.step.reasoning.feed(text);
                    let (threshold, tokens) = (GuardParameter::ReasoningThreshold, GuardParameter::ReasoningMinTokens);
                    let due = self.step.reasoning.is_due();
                    (due && self.is_loop(&self.step.reasoning, threshold, tokens)).then_some(LoopKind::Reasoning)
                }
                Delta::Text(text) if self.dials.guard_response => {
                    self.step.answer.feed(text);
                    let due = self.step.answer.counted.is_due();
                    (due && self.answer_is_loop()).then_some(LoopKind::Answer)
                }
                _ => None,
            };
            if found.is_some() {
                self.step.cut = found;
                return found;
            }
        }
        None
    }

    /// How much of an answer that was cut is kept, in bytes: up to where it began to repeat itself. `None` where it was not
    /// the answer that was cut.
    pub fn keeps(&self) -> Option<usize> {
        let at = self.step.cut.filter(|kind| *kind == LoopKind::Answer).and(self.step.answer.counted.begins_at())?;
        usize::try_from(at).ok()
    }

    /// Whether a result of this call may be given again, so that it has to be known what it reads.
    pub fn wants_print(&self, call: &CallId) -> bool {
        self.is_on() && self.calls.wants_print(call)
    }

    /// What is to be done with a call that may run. Asked in call order; `print` stands for what it reads as it looks now,
    /// where that can be told.
    pub fn consult(&mut self, call: &ToolCall, print: Option<u64>, now: Instant) -> Recall {
        if self.is_on() { self.calls.consult(call, print, now) } else { Recall::Run }
    }

    /// The step has ended and its calls are answered: what comes next.
    pub fn conclude(&mut self, ended: StepEnded) -> Verdict {
        if !self.is_on() {
            return Verdict::Fine;
        }
        let found = self.found(ended);
        let kinds: Vec<LoopKind> = found.iter().map(|(kind, _)| *kind).collect();
        let verdict = self.escalate(found);
        self.escalation.step(&kinds);
        verdict
    }

    fn escalate(&mut self, found: Vec<(LoopKind, Said)>) -> Verdict {
        let max = u32::try_from(self.dials.count(GuardParameter::MaxNudges)).unwrap_or(u32::MAX);
        let mut nudges = Vec::with_capacity(found.len());
        for (kind, said) in found {
            let Said { detected, done, text } = said;
            match self.escalation.found(kind, max) {
                Ok(count) => {
                    nudges.push(Nudge { kind: kind.as_str().into(), text, detected, done: done.into(), count, max });
                }
                Err(nudges) => return Verdict::Stop(LoopStopped { kind: kind.as_str().into(), detected, nudges }),
            }
        }
        if nudges.is_empty() { Verdict::Fine } else { Verdict::Nudge(nudges) }
    }

    /// The loops of this step, each kind once.
    fn found(&mut self, ended: StepEnded) -> Vec<(LoopKind, Said)> {
        let mut found = Vec::new();
        let cut = self.step.cut.filter(|_| ended == StepEnded::Cut);
        match cut {
            Some(LoopKind::Answer) => {
                found.push((LoopKind::Answer, says::answer(self.step.answer.counted.share(), true)));
            }
            Some(_) => found.push((LoopKind::Reasoning, says::reasoning(self.step.reasoning.share()))),
            None => {}
        }
        if let Some(likeness) = self.likeness().filter(|_| cut.is_none()) {
            found.push((LoopKind::CrossTurn, says::across(likeness)));
        }
        if ended == StepEnded::Empty {
            found.push((LoopKind::EmptyTurn, says::empty()));
        }
        let calls = std::mem::take(&mut self.calls.step);
        if !calls.failing.is_empty() {
            found.push((LoopKind::ToolFailure, says::failing(&calls.failing)));
        }
        let most = self.dials.count(GuardParameter::ErrorStreakTurns);
        if let Some((steps, failures)) = self.streak.take(&calls.errors, calls.successes, most) {
            found.push((LoopKind::ErrorStreak, says::streak(steps, &failures)));
        }
        if !calls.repeated.is_empty() {
            found.push((LoopKind::ToolRepeat, says::repeated(&calls.repeated)));
        }
        if ended == StepEnded::Text && self.dials.guard_response && self.answer_is_loop() {
            found.push((LoopKind::Answer, says::answer(self.step.answer.counted.share(), false)));
        }
        found
    }

    /// How alike the step's reasoning is to an earlier one, where that is too much.
    fn likeness(&mut self) -> Option<f64> {
        let reasoning = std::mem::take(&mut self.step.thought);
        if reasoning.trim().is_empty() {
            return None;
        }
        let thought = Thought::new(reasoning.trim(), self.calls.step.did.clone());
        let likeness = self.across.take(thought, self.dials.count(GuardParameter::CrossTurnMinLength));
        (likeness >= self.dials.get(GuardParameter::CrossTurnSimilarity)).then_some(likeness)
    }

    fn answer_is_loop(&self) -> bool {
        self.is_loop(&self.step.answer.counted, GuardParameter::AnswerThreshold, GuardParameter::AnswerMinTokens)
    }

    fn is_loop(&self, text: &Repetition, threshold: GuardParameter, min_tokens: GuardParameter) -> bool {
        text.tokens() >= self.dials.count(min_tokens) as u64 && text.share() >= self.dials.get(threshold)
    }
}

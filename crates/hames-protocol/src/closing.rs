//! What is left open where a log ends, and the events that close it: after a death, behind a cut, in a branch.
//!
//! A log is *whole* when no run, no step and no call in it is open; only then can its conversation be sent. Whoever holds
//! the session's lease writes what closes it, never a reader.

use crate::{
    CallId, Cut, Declaration, Done, ENVELOPE_VERSION, Effect, Envelope, Event, OpenBlock, OpenCall, OpenKind,
    ReasoningBlock, ReasoningDone, Resource, RunDone, RunId, RunResult, SessionId, StepDone, TextDone, Timings,
    ToolError, ToolErrorClass, Transcript, TurnDone, Usage,
};

/// What a command exits with that was interrupted: 128 and SIGINT.
pub const INTERRUPTED_CODE: i32 = 130;

/// What a run has come to so far: a fold of its own events, so that its end says the same whether the run itself writes
/// it or whoever closes it later.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Steps begun.
    pub steps: u32,
    /// Calls asked for.
    pub calls: u32,
    /// Calls that gave no result.
    pub errors: u32,
    /// Tokens of all steps.
    pub usage: Usage,
    /// When it began, in Unix milliseconds.
    pub began: u64,
    /// When its last event was recorded.
    pub last: u64,
    /// Whether a step has begun and not ended.
    pub in_step: bool,
    /// Files that calls without an answer were about to change.
    pub changing: Vec<(CallId, String)>,
}

impl Tally {
    /// Takes in one event of the run itself; a child has its own.
    pub fn apply(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::RunStart(_) => *self = Self { began: envelope.at, ..Self::default() },
            Event::StepStart(start) => {
                self.steps = start.number;
                self.in_step = true;
            }
            Event::StepDone(done) => {
                self.in_step = false;
                if let Some(usage) = &done.usage {
                    self.usage.add(usage);
                }
            }
            Event::CompactionAsked(asked) => asked.usage.iter().for_each(|usage| self.usage.add(usage)),
            Event::ToolCall(_) => self.calls += 1,
            Event::FileChanged(changed) => self.changing.push((changed.call_id.clone(), changed.path.clone())),
            // Changes that were applied belong to no call that is open.
            Event::ChangesApplied(_) => self.changing.clear(),
            Event::ToolDone(done) => self.changing.retain(|(call, _)| *call != done.call_id),
            Event::ToolError(error) => {
                self.errors += 1;
                self.changing.retain(|(call, _)| *call != error.call_id);
            }
            _ => {}
        }
        self.last = envelope.at;
    }

    /// The three events that end a run, at `now` in Unix milliseconds.
    pub fn end(&self, ended: RunDone, reason: Option<String>, now: u64) -> [Event; 3] {
        let done = Done {
            result: ended.result,
            reason,
            usage: self.usage.clone(),
            steps: self.steps,
            calls: self.calls,
            errors: self.errors,
        };
        let turn = TurnDone { duration_ms: now.saturating_sub(self.began), usage: self.usage.clone() };
        [done.into(), turn.into(), ended.into()]
    }
}

/// The open step as far as it was kept, and its `step.done`. Text and reasoning that were shown stay; a call whose
/// arguments were still arriving was never asked for.
pub fn close_step(kept: Vec<OpenBlock>) -> Vec<Event> {
    let cut = Some(Cut::Crash);
    let shown = kept.into_iter().filter(|block| !block.text.trim().is_empty()).filter_map(|block| match block.kind {
        OpenKind::Text => Some(Event::TextDone(TextDone { index: block.index, text: block.text, cut })),
        OpenKind::Reasoning => {
            let reasoning = ReasoningBlock { text: block.text, ..ReasoningBlock::default() };
            Some(Event::ReasoningDone(ReasoningDone { index: block.index, block: reasoning, cut }))
        }
        OpenKind::ToolInput => None,
    });
    let done = StepDone {
        finish_reason: None,
        whole: false,
        usage: None,
        cost: None,
        timings: Timings::default(),
        request_id: None,
    };
    shown.chain([Event::StepDone(done)]).collect()
}

/// The answer to a call that has none.
pub fn close_call(open: &OpenCall) -> Event {
    let (class, text) = match (open.started, open.declaration.as_ref().is_some_and(only_reads)) {
        (false, _) => (ToolErrorClass::NotRun, "Not run: the run ended before this call began."),
        (true, true) => {
            (ToolErrorClass::Interrupted, "Interrupted: the run ended during this call. Nothing was changed by it.")
        }
        (true, false) => (
            ToolErrorClass::OutcomeUnknown,
            "Outcome unknown: the run ended during this call, and it may have had an effect. Look at the present state \
             before you change anything again.",
        ),
    };
    Event::ToolError(ToolError {
        call_id: open.call.call_id.clone(),
        name: open.call.name.clone(),
        error: text.to_owned(),
        class,
        blob: None,
        duration_ms: 0,
    })
}

fn only_reads(declaration: &Declaration) -> bool {
    declaration.effect == Effect::Read && !declaration.resources.iter().any(Resource::is_written)
}

/// Follows a log to see what it leaves open. Needs no more of it than the last run.
#[derive(Debug, Default)]
pub struct OpenEnd {
    transcript: Transcript,
    tally: Tally,
    run: Option<RunId>,
    turn: Option<u32>,
    step: Option<u32>,
}

impl OpenEnd {
    /// Takes in one event with its envelope, in order.
    pub fn apply(&mut self, envelope: &Envelope) {
        if !envelope.agent.is_empty() {
            return;
        }
        self.transcript.apply(&envelope.event);
        self.tally.apply(envelope);
        match &envelope.event {
            Event::RunStart(_) => {
                (self.run, self.turn, self.step) = (envelope.run.clone(), envelope.turn, None);
            }
            Event::RunDone(_) => self.run = None,
            Event::StepStart(start) => self.step = Some(start.number),
            _ => {}
        }
    }

    /// Whether nothing is open.
    pub fn is_whole(&self) -> bool {
        self.run.is_none() && self.transcript.open_calls().is_empty() && !self.transcript.has_open_answer()
    }

    /// The events, still without seqs, that close what is open: step, calls, run. `reason` is why the run ended here.
    pub fn close(&self, session: &SessionId, reason: &str, now: u64) -> Vec<Envelope> {
        let mut tally = self.tally.clone();
        let mut inner = Vec::new();
        if self.transcript.has_open_answer() || (self.run.is_some() && tally.in_step) {
            inner.extend(close_step(Vec::new()));
        }
        let calls = self.transcript.open_calls();
        inner.extend(calls.iter().map(close_call));
        tally.errors = tally.errors.saturating_add(u32::try_from(calls.len()).unwrap_or(u32::MAX));
        let envelope = |step: Option<u32>, event: Event| Envelope {
            v: ENVELOPE_VERSION,
            seq: None,
            at: now,
            session: Some(session.clone()),
            run: self.run.clone(),
            turn: self.run.as_ref().and(self.turn),
            step,
            agent: Vec::new(),
            event,
        };
        let step = self.run.as_ref().and(self.step);
        let mut events: Vec<Envelope> = inner.into_iter().map(|event| envelope(step, event)).collect();
        if self.run.is_some() {
            let ended = RunDone { result: RunResult::Interrupted, exit_code: INTERRUPTED_CODE };
            let last = tally.end(ended, Some(reason.to_owned()), self.tally.last.max(tally.began));
            events.extend(last.map(|event| envelope(None, event)));
        }
        events
    }
}

//! What a list or a status line says of a session while it goes: a fold of what passes through its channel.

use hames_protocol::api::OpenRun;
use hames_protocol::{
    ApprovalAsked, CallId, Effect, Envelope, Event, OpenBlock, OpenKind, QuestionAsked, RunId, join_open,
};

/// A call that was asked for and has no answer yet.
#[derive(Clone, Debug)]
struct OpenCall {
    id: CallId,
    label: String,
    /// Whether an interrupting message has to wait for it once it has begun.
    finishes: bool,
    started: bool,
}

/// The step of one agent that is being streamed.
#[derive(Clone, Debug)]
pub(crate) struct OpenStep {
    /// What its snapshot is sent as.
    place: Envelope,
    pub(crate) blocks: Vec<OpenBlock>,
}

impl OpenStep {
    /// The step so far, for whoever comes in its middle.
    pub(crate) fn snapshot(&self) -> Option<Envelope> {
        let blocks = self.blocks.clone();
        let event = Event::StepSnapshot(hames_protocol::StepSnapshot { blocks });
        (!self.blocks.is_empty()).then(|| Envelope { event, ..self.place.clone() })
    }
}

/// What is known of a session without reading its log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Glance {
    run: Option<OpenRun>,
    calls: Vec<OpenCall>,
    /// Calls somebody has to decide about.
    pub(crate) approvals: Vec<ApprovalAsked>,
    /// Questions somebody has to answer.
    pub(crate) questions: Vec<QuestionAsked>,
    /// Open steps: the run's own, and those of its children.
    pub(crate) steps: Vec<OpenStep>,
    /// The run that last proposed a change.
    pub(crate) proposed_in: Option<RunId>,
    /// The run that goes on, or the last one.
    pub(crate) last_run: Option<RunId>,
}

impl Glance {
    pub(crate) fn take_in(&mut self, envelope: &Envelope) {
        self.follow_step(envelope);
        match &envelope.event {
            Event::ToolCall(call) => {
                let effect = call.declaration.as_ref().map(|declared| declared.effect);
                self.calls.push(OpenCall {
                    id: call.call_id.clone(),
                    label: call.label.to_string(),
                    finishes: matches!(effect, Some(Effect::Edit | Effect::Run | Effect::External)),
                    started: false,
                });
            }
            Event::ToolStart(start) => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == start.call_id) {
                    call.started = true;
                }
            }
            Event::ApprovalAsked(asked) => {
                self.approvals.retain(|open| open.call_id != asked.call_id);
                self.approvals.push(asked.clone());
            }
            Event::ApprovalAnswered(answer) => self.approvals.retain(|asked| asked.call_id != answer.call_id),
            Event::QuestionAsked(asked) => {
                self.questions.retain(|open| open.call_id != asked.call_id);
                self.questions.push(asked.clone());
            }
            Event::QuestionAnswered(answer) => self.questions.retain(|asked| asked.call_id != answer.call_id),
            Event::ToolDone(done) => self.close_call(&done.call_id),
            Event::ToolError(error) => self.close_call(&error.call_id),
            Event::ChangeProposed(_) => self.proposed_in.clone_from(&envelope.run),
            _ if !envelope.agent.is_empty() => {}
            Event::RunStart(start) => {
                let Some(run) = envelope.run.clone() else { return };
                self.last_run = Some(run.clone());
                self.run = Some(OpenRun {
                    run,
                    turn: envelope.turn.unwrap_or_default(),
                    mode: start.mode,
                    model: start.model.clone(),
                    step: 0,
                    started_at: envelope.at,
                    doing: String::new(),
                    finishing: Vec::new(),
                });
            }
            Event::StepStart(start) => {
                if let Some(run) = &mut self.run {
                    run.step = start.number;
                }
            }
            Event::RunDone(_) => {
                let (proposed_in, last_run) = (self.proposed_in.take(), self.last_run.take());
                *self = Self { proposed_in, last_run, ..Self::default() };
            }
            _ => {}
        }
    }

    fn close_call(&mut self, id: &CallId) {
        self.calls.retain(|call| &call.id != id);
        self.approvals.retain(|asked| &asked.call_id != id);
        self.questions.retain(|asked| &asked.call_id != id);
    }

    fn follow_step(&mut self, envelope: &Envelope) {
        let (kind, index, name, text) = match &envelope.event {
            Event::StepStart(_) => {
                self.steps.retain(|step| step.place.agent != envelope.agent);
                let event = Event::StepSnapshot(hames_protocol::StepSnapshot { blocks: Vec::new() });
                let place = Envelope { seq: None, event, ..envelope.clone() };
                self.steps.push(OpenStep { place, blocks: Vec::new() });
                return;
            }
            Event::StepDone(_) => {
                self.steps.retain(|step| step.place.agent != envelope.agent);
                return;
            }
            Event::TextDelta(d) => (OpenKind::Text, d.index, None, &d.text),
            Event::ReasoningDelta(d) => (OpenKind::Reasoning, d.index, None, &d.text),
            Event::ToolInputDelta(d) => (OpenKind::ToolInput, d.index, d.name.clone(), &d.text),
            _ => return,
        };
        if let Some(step) = self.steps.iter_mut().find(|step| step.place.agent == envelope.agent) {
            join_open(&mut step.blocks, OpenBlock { kind, index, name, text: text.clone() });
        }
    }

    /// Whether a run goes on.
    pub(crate) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Whether the run waits for a person.
    pub(crate) fn waits(&self) -> bool {
        !self.approvals.is_empty() || !self.questions.is_empty()
    }

    /// The run that goes on, and what it does.
    pub(crate) fn open_run(&self) -> Option<OpenRun> {
        let mut run = self.run.clone()?;
        let started = self.calls.iter().rev().find(|call| call.started);
        let streams = self.steps.iter().find(|step| step.place.agent.is_empty()).and_then(|step| step.blocks.last());
        run.doing = match (self.waits(), started, streams.map(|block| block.kind)) {
            (true, ..) => "waiting for you".into(),
            (_, Some(call), _) => call.label.clone(),
            (_, None, Some(OpenKind::Text)) => "answering".into(),
            (_, None, Some(OpenKind::ToolInput)) => "writing a call".into(),
            _ => "thinking".into(),
        };
        run.finishing = self.calls.iter().filter(|c| c.started && c.finishes).map(|c| c.label.clone()).collect();
        Some(run)
    }
}

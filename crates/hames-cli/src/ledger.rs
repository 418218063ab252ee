//! A run's ledger: every call with its effect, the files changed, usage and timings; folded from the log.

use std::collections::{BTreeMap, BTreeSet};

use hames_protocol::{Cost, Effect, Envelope, Event, Mode, ModelRef, RunId, RunResult, Timings, ToolErrorClass, Usage};
use serde::Serialize;

use crate::output::clean;
use crate::output::money::Spent;
use crate::output::text::{count, duration, shortened, tokens};

/// One call.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Call {
    call_id: String,
    step: Option<u32>,
    name: String,
    label: String,
    effect: Option<Effect>,
    /// `done`, the class of its error, or `open` where the log says neither.
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    duration_ms: u64,
    #[serde(skip_serializing_if = "is_zero")]
    added: u32,
    #[serde(skip_serializing_if = "is_zero")]
    removed: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Created,
    Changed,
    Removed,
}

/// One step's times and tokens.
#[derive(Clone, Debug, Serialize)]
struct Step {
    step: Option<u32>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    timings: Timings,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ledger {
    run: Option<RunId>,
    turn: Option<u32>,
    at: u64,
    mode: Mode,
    model: ModelRef,
    /// Absent while the run goes on.
    result: Option<RunResult>,
    exit_code: Option<i32>,
    duration_ms: Option<u64>,
    usage: Usage,
    cost: Spent,
    steps: Vec<Step>,
    calls: Vec<Call>,
    files: BTreeMap<String, Change>,
    /// Files that changes were proposed of.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    proposed: BTreeSet<String>,
    retries: u32,
    errors: Vec<String>,
}

/// Folds a log into ledgers, handing each over when its run ends, so that a long session is never held whole.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    open: Option<Ledger>,
}

impl Ledgers {
    /// Takes in one event; gives the ledger of a run that ended with it.
    pub(crate) fn apply(&mut self, envelope: &Envelope) -> Option<Ledger> {
        if let Event::RunStart(start) = &envelope.event
            && envelope.agent.is_empty()
        {
            let before = self.open.take();
            self.open = Some(Ledger {
                run: envelope.run.clone(),
                turn: envelope.turn,
                at: envelope.at,
                mode: start.mode,
                model: start.model.clone(),
                result: None,
                exit_code: None,
                duration_ms: None,
                usage: Usage::default(),
                cost: Spent::default(),
                steps: Vec::new(),
                calls: Vec::new(),
                files: BTreeMap::new(),
                proposed: BTreeSet::new(),
                retries: 0,
                errors: Vec::new(),
            });
            return before;
        }
        self.open.as_mut()?.take_in(envelope);
        let ended = matches!(envelope.event, Event::RunDone(_)) && envelope.agent.is_empty();
        if ended { self.open.take() } else { None }
    }

    /// The ledger of a run that has not ended.
    pub(crate) fn finish(self) -> Option<Ledger> {
        self.open
    }
}

impl Ledger {
    fn take_in(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::ToolCall(call) => self.calls.push(Call {
                call_id: call.call_id.to_string(),
                step: envelope.step,
                name: call.name.clone(),
                label: call.label.to_string(),
                effect: call.declaration.as_ref().map(|declared| declared.effect),
                outcome: "open".into(),
                exit_code: None,
                duration_ms: 0,
                added: 0,
                removed: 0,
            }),
            Event::ToolDone(done) => {
                if let Some(call) = self.call(done.call_id.as_str()) {
                    call.outcome = "done".into();
                    call.exit_code = done.exit_code;
                    call.duration_ms = done.duration_ms;
                    call.added = done.diffs.iter().map(|diff| diff.added).fold(0, u32::saturating_add);
                    call.removed = done.diffs.iter().map(|diff| diff.removed).fold(0, u32::saturating_add);
                }
            }
            Event::ToolError(error) => {
                if let Some(call) = self.call(error.call_id.as_str()) {
                    call.outcome = outcome(error.class).into();
                    call.duration_ms = error.duration_ms;
                }
            }
            Event::FileChanged(changed) => {
                let change = match (&changed.before, &changed.after) {
                    (_, None) => Change::Removed,
                    (None, Some(_)) => Change::Created,
                    (Some(_), Some(_)) => Change::Changed,
                };
                // A file made by this run stays new, however often it is changed later.
                let was = self.files.get(&changed.path).copied();
                let now =
                    if was == Some(Change::Created) && change == Change::Changed { Change::Created } else { change };
                self.files.insert(changed.path.clone(), now);
            }
            Event::ChangeProposed(change) => {
                self.proposed.insert(change.path.clone());
            }
            Event::StepDone(done) => {
                if let Some(usage) = &done.usage {
                    self.usage.add(usage);
                }
                self.cost.add(done.cost.as_ref());
                self.steps.push(Step {
                    step: envelope.step,
                    finish_reason: done.finish_reason.clone(),
                    usage: done.usage.clone(),
                    cost: done.cost.clone(),
                    timings: done.timings.clone(),
                });
            }
            Event::Retry(_) => self.retries += 1,
            Event::Error(failure) => self.errors.push(failure.message.clone()),
            Event::TurnDone(turn) => self.duration_ms = Some(turn.duration_ms),
            Event::RunDone(done) => {
                self.result = Some(done.result);
                self.exit_code = Some(done.exit_code);
            }
            _ => {}
        }
    }

    /// The newest call of that id.
    fn call(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|call| call.call_id == id)
    }

    /// The ledger for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let result = self.result.map_or("going on", result_name);
        let mut head = vec![
            format!("run {}", self.turn.unwrap_or(0)),
            self.mode.to_string(),
            clean::line(&self.model.to_string()),
            result.to_owned(),
            format!("{} steps", count(self.steps.len() as u64)),
        ];
        head.extend(tokens(&self.usage));
        head.push(self.cost.text().unwrap_or_else(|| "cost not known".into()));
        head.extend(self.duration_ms.map(duration));
        let mut lines = vec![head.join(" · ")];
        for call in &self.calls {
            let effect = call.effect.map_or("-", effect_name);
            let mut parts = vec![clean::line(&call.label)];
            if call.added + call.removed > 0 {
                parts.push(format!("+{}/−{}", call.added, call.removed));
            }
            parts.extend(call.exit_code.map(|code| format!("exit {code}")));
            if call.outcome != "done" {
                parts.push(call.outcome.replace('_', " "));
            }
            parts.push(duration(call.duration_ms));
            lines.push(format!("  {effect:<8} {}", shortened(&parts.join(" · "))));
        }
        for (path, change) in &self.files {
            let what = match change {
                Change::Created => "created",
                Change::Changed => "changed",
                Change::Removed => "removed",
            };
            lines.push(format!("  file     {} {what}", clean::line(path)));
        }
        lines.extend(self.proposed.iter().map(|path| format!("  proposed {}", clean::line(path))));
        let model_ms: u64 = self.steps.iter().map(|step| step.timings.total_ms).fold(0, u64::saturating_add);
        let first = self.steps.first().and_then(|step| step.timings.first_token_ms);
        let first = first.map(|ms| format!(", first token after {}", duration(ms))).unwrap_or_default();
        lines.push(format!("  time     the model took {}{first}", duration(model_ms)));
        if self.retries > 0 {
            lines.push(format!("  retries  {}", self.retries));
        }
        lines.extend(self.errors.iter().map(|error| format!("  error    {}", shortened(&clean::line(error)))));
        lines
    }
}

/// The word for how a run ended.
pub(crate) fn result_name(result: RunResult) -> &'static str {
    match result {
        RunResult::Complete => "complete",
        RunResult::Stopped => "stopped",
        RunResult::MaxSteps => "step limit",
        RunResult::Error => "error",
        RunResult::Interrupted => "interrupted",
    }
}

fn outcome(class: ToolErrorClass) -> &'static str {
    match class {
        ToolErrorClass::Invalid => "invalid",
        ToolErrorClass::Refused => "refused",
        ToolErrorClass::Failed => "failed",
        ToolErrorClass::Timeout => "timeout",
        ToolErrorClass::Cancelled => "cancelled",
        ToolErrorClass::NotRun => "not_run",
        ToolErrorClass::Interrupted => "interrupted",
        ToolErrorClass::OutcomeUnknown => "outcome_unknown",
    }
}

fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Edit => "edit",
        Effect::Run => "run",
        Effect::External => "external",
        Effect::Session => "session",
    }
}

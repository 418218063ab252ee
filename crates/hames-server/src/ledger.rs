//! What each run did: a fold of the log.

use hames_protocol::api::{Ledger, LedgerCall};
use hames_protocol::{CallId, Cost, Envelope, Event, Usage};

/// Folds a log into one ledger for each run.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    runs: Vec<Ledger>,
    /// Whether calls are kept.
    with_calls: bool,
}

impl Ledgers {
    /// With the calls of the runs, or without.
    pub(crate) fn new(with_calls: bool) -> Self {
        Self { runs: Vec::new(), with_calls }
    }

    /// Takes in one event.
    pub(crate) fn apply(&mut self, envelope: &Envelope) {
        if let (Event::RunStart(start), Some(run), true) = (&envelope.event, &envelope.run, envelope.agent.is_empty()) {
            self.runs.push(Ledger {
                run: run.clone(),
                turn: envelope.turn.unwrap_or_default(),
                mode: start.mode,
                model: start.model.clone(),
                started_at: envelope.at,
                ended_at: None,
                result: None,
                reason: None,
                steps: 0,
                usage: Usage::default(),
                cost: None,
                files: Vec::new(),
                calls: Vec::new(),
            });
        }
        let (with_calls, own) = (self.with_calls, envelope.agent.is_empty());
        let Some(ledger) = self.runs.last_mut().filter(|ledger| envelope.run.as_ref() == Some(&ledger.run)) else {
            return;
        };
        match &envelope.event {
            Event::StepStart(start) if own => ledger.steps = start.number,
            Event::StepDone(done) => {
                if let Some(usage) = &done.usage {
                    ledger.usage.add(usage);
                }
                add(&mut ledger.cost, done.cost.as_ref());
            }
            Event::ToolCall(call) if with_calls => ledger.calls.push(LedgerCall {
                call_id: call.call_id.clone(),
                step: envelope.step.unwrap_or_default(),
                name: call.name.clone(),
                label: call.label.to_string(),
                outcome: "open".into(),
                effect: call.declaration.as_ref().and_then(|declared| word(&declared.effect)),
                duration_ms: 0,
            }),
            Event::ToolDone(done) => close(ledger, &done.call_id, "done".into(), done.duration_ms),
            Event::ToolError(error) => {
                close(ledger, &error.call_id, word(&error.class).unwrap_or_default(), error.duration_ms);
            }
            Event::FileChanged(changed) if !ledger.files.contains(&changed.path) => {
                ledger.files.push(changed.path.clone());
            }
            Event::Done(done) if own => ledger.reason.clone_from(&done.reason),
            Event::RunDone(done) if own => {
                ledger.result = Some(done.result);
                ledger.ended_at = Some(envelope.at);
            }
            _ => {}
        }
    }

    /// The ledgers, the newest first.
    pub(crate) fn newest_first(mut self) -> Vec<Ledger> {
        self.runs.reverse();
        self.runs
    }
}

fn close(ledger: &mut Ledger, id: &CallId, outcome: String, duration_ms: u64) {
    if let Some(call) = ledger.calls.iter_mut().rev().find(|call| &call.call_id == id) {
        call.outcome = outcome;
        call.duration_ms = duration_ms;
    }
}

/// A sum in one currency; what is in another is left out, as it cannot be added.
fn add(sum: &mut Option<Cost>, cost: Option<&Cost>) {
    match (sum, cost) {
        (Some(sum), Some(cost)) if sum.currency == cost.currency => {
            sum.micros = sum.micros.saturating_add(cost.micros);
            sum.computed |= cost.computed;
        }
        (sum @ None, Some(cost)) => *sum = Some(cost.clone()),
        _ => {}
    }
}

/// The word a value is written as.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

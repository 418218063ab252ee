//! How a run ends: its result, what a command exits with, and its last three events.

use hames_protocol::closing::{INTERRUPTED_CODE, Tally};
use hames_protocol::{ErrorClass, Event, Failure, RunDone, RunResult};

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// The result.
    pub result: RunResult,
    /// Why, where the result alone does not say.
    pub reason: Option<String>,
    /// What a command exits with.
    pub exit_code: i32,
    /// What failed, where something did.
    pub failure: Option<Failure>,
}

impl RunEnd {
    /// An end that `result` alone explains.
    pub(crate) fn new(result: RunResult) -> Self {
        Self { result, reason: None, exit_code: exit_code(result, None), failure: None }
    }

    pub(crate) fn because(result: RunResult, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Self::new(result) }
    }

    pub(crate) fn failed(failure: Failure) -> Self {
        Self {
            result: RunResult::Error,
            reason: Some(failure.class.as_str().to_owned()),
            exit_code: exit_code(RunResult::Error, Some(failure.class)),
            failure: Some(failure),
        }
    }

    /// The events that end the run: the failure, if there was one, then `done`, `turn.done`, `run.done`.
    pub(crate) fn events(&self, tally: &Tally, now: u64) -> Vec<Event> {
        let mut events: Vec<Event> = self.failure.clone().map(Event::Error).into_iter().collect();
        events.extend(tally.end(self.ended(), self.reason.clone(), now));
        events
    }

    fn ended(&self) -> RunDone {
        RunDone { result: self.result, exit_code: self.exit_code }
    }

    pub(crate) fn run_done(&self) -> Event {
        Event::RunDone(self.ended())
    }
}

/// What `hames run` exits with.
fn exit_code(result: RunResult, class: Option<ErrorClass>) -> i32 {
    match result {
        RunResult::Complete => 0,
        RunResult::Stopped | RunResult::MaxSteps => 3,
        RunResult::Interrupted => INTERRUPTED_CODE,
        RunResult::Error => match class {
            Some(ErrorClass::Storage) => 4,
            Some(ErrorClass::Usage | ErrorClass::Configuration) => 2,
            _ => 1,
        },
    }
}

//! Identical calls that fail, and fail the same way.

use hames_protocol::{Effect, ToolErrorClass};

use super::signature::Signature;

/// Failures that are remembered; the oldest goes first.
const MOST: usize = 64;

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) class: ToolErrorClass,
    pub(super) text: String,
}

struct Record {
    signature: Signature,
    effect: Option<Effect>,
    failed: Failed,
    times: usize,
}

/// The failures of a run that nothing has outdated.
#[derive(Default)]
pub(super) struct Failures(Vec<Record>);

impl Failures {
    /// Nothing is as it was: a call changed something, or somebody spoke.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// A file changed: a command may end otherwise now.
    pub(super) fn forget_commands(&mut self) {
        self.0.retain(|record| record.effect != Some(Effect::Run));
    }

    /// The call worked after all.
    pub(super) fn forget_call(&mut self, signature: &Signature) {
        self.0.retain(|record| record.signature != *signature);
    }

    /// Takes in a failure, and says how often this call has now failed so. Another failure of the same call begins anew.
    pub(super) fn take(&mut self, signature: Signature, effect: Option<Effect>, failed: Failed) -> usize {
        if let Some(record) = self.0.iter_mut().find(|record| record.signature == signature) {
            record.times = if record.failed == failed { record.times + 1 } else { 1 };
            record.failed = failed;
            return record.times;
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(Record { signature, effect, failed, times: 1 });
        1
    }

    /// How this call failed and how often.
    pub(super) fn of(&self, signature: &Signature) -> Option<(&Failed, usize)> {
        let record = self.0.iter().find(|record| record.signature == *signature)?;
        Some((&record.failed, record.times))
    }
}

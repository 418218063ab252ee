//! Identical calls that succeed and give the same again.
//!
//! Two calls are repetitions of each other where call and result are the same and nothing has moved on in between: a
//! command or an edit that was not made before in the window is progress, and what came before it does not count against
//! what comes after. So tests may be run again after every edit, while two commands that alternate for nothing are found.

use std::collections::{HashSet, VecDeque};

use super::signature::Signature;

/// What a call gave, as a hash; `None` where it failed.
pub(super) type Gave = Option<[u8; 16]>;

#[derive(Clone, Copy)]
struct Past {
    signature: Signature,
    gave: Gave,
    /// Progress made before it.
    epoch: u64,
}

/// A repetition that is one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeated {
    /// How often the call was made.
    pub(super) times: usize,
    /// Whether nothing else was called in between.
    pub(super) in_a_row: bool,
}

/// The last calls of a run.
#[derive(Default)]
pub(super) struct Repeats {
    /// Calls in a row that are too many.
    consecutive: usize,
    /// Calls that are looked back on.
    window: usize,
    /// Calls among them that are too many.
    threshold: usize,
    past: VecDeque<Past>,
    run: usize,
    epoch: u64,
    /// Flagged by the window; once is enough until they have left it.
    flagged: HashSet<Signature>,
}

impl Repeats {
    /// Nothing was called yet. One call alone repeats nothing, so less than two is two.
    pub(super) fn new(consecutive: usize, window: usize, threshold: usize) -> Self {
        Self { consecutive: consecutive.max(2), window, threshold: threshold.max(2), ..Self::default() }
    }

    /// Forgets what was called.
    pub(super) fn forget(&mut self) {
        (self.run, self.epoch) = (0, 0);
        self.past.clear();
        self.flagged.clear();
    }

    /// Whether this call was made in the window.
    pub(super) fn knows(&self, signature: &Signature) -> bool {
        self.past.iter().any(|past| past.signature == *signature)
    }

    /// Whether the call would be one too many if it gave this once more.
    pub(super) fn would_be_too_many(&self, signature: &Signature, gave: Gave) -> bool {
        self.run_with(signature, gave) >= self.consecutive || self.count(signature, gave) + 1 >= self.threshold
    }

    /// Takes in a call. `changes` is whether it may have changed anything.
    pub(super) fn take(&mut self, signature: Signature, gave: Gave, changes: bool) -> Option<Repeated> {
        let is_new = !self.past.iter().any(|past| past.signature == signature && past.gave == gave);
        let run = self.run_with(&signature, gave);
        if changes && is_new && gave.is_some() {
            self.epoch += 1;
        }
        self.run = if gave.is_some() { run } else { 0 };
        self.past.push_back(Past { signature, gave, epoch: self.epoch });
        while self.past.len() > self.window {
            self.past.pop_front();
        }
        let past = &self.past;
        self.flagged.retain(|flagged| past.iter().any(|past| past.signature == *flagged));
        gave?;
        let times = self.count(&signature, gave);
        if run >= self.consecutive {
            self.flagged.insert(signature);
            return Some(Repeated { times: run, in_a_row: true });
        }
        let is_flagged = times >= self.threshold && self.flagged.insert(signature);
        is_flagged.then_some(Repeated { times, in_a_row: false })
    }

    /// Calls in a row that this one would make.
    fn run_with(&self, signature: &Signature, gave: Gave) -> usize {
        let goes_on = self.past.back().is_some_and(|last| last.signature == *signature && last.gave == gave);
        if goes_on && gave.is_some() { self.run + 1 } else { 1 }
    }

    fn count(&self, signature: &Signature, gave: Gave) -> usize {
        let same = |past: &&Past| past.signature == *signature && past.gave == gave && past.epoch == self.epoch;
        self.past.iter().filter(same).count()
    }
}

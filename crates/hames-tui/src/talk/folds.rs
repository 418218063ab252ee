//! What of a conversation somebody opened or closed, in a form that outlives the program.

use serde::{Deserialize, Serialize};

use super::Talk;
use super::block::Key;
use super::view::Seen;

/// Blocks of a session whose folds are kept; of more the newest are.
const MAX_FOLDS: usize = 2_000;

/// The folds of a session. A block is named by the seq of its event and its ordinal there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFolds {
    /// Whether everything is open that is not named here.
    #[serde(default)]
    all: bool,
    /// Blocks that were opened.
    #[serde(default)]
    open: Vec<(u64, u8)>,
    /// Blocks that were closed.
    #[serde(default)]
    closed: Vec<(u64, u8)>,
}

impl Talk {
    /// What is open and closed now.
    pub(crate) fn saved_folds(&self) -> SavedFolds {
        let named = |wanted: Seen| {
            let log = self.folds.iter().filter(|(_, seen)| **seen == wanted).filter_map(|(key, _)| match key {
                Key::Log(seq, ordinal) => Some((*seq, *ordinal)),
                _ => None,
            });
            let mut all: Vec<_> = log.collect();
            all.sort_unstable();
            all.split_off(all.len().saturating_sub(MAX_FOLDS))
        };
        SavedFolds { all: self.all == Some(Seen::Whole), open: named(Seen::Whole), closed: named(Seen::Folded) }
    }

    /// Opens and closes what was open and closed before; what somebody did since then stays.
    pub(crate) fn recall_folds(&mut self, saved: &SavedFolds) {
        if saved.all && self.folds.is_empty() {
            self.all = self.all.or(Some(Seen::Whole));
        }
        for (named, seen) in [(&saved.open, Seen::Whole), (&saved.closed, Seen::Folded)] {
            for (seq, ordinal) in named.iter().take(MAX_FOLDS) {
                self.folds.entry(Key::Log(*seq, *ordinal)).or_insert(seen);
            }
        }
    }

    /// Grows with everything that is opened or closed.
    pub(crate) fn folds_mark(&self) -> u64 {
        self.folded
    }
}

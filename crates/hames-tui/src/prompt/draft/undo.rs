//! What was changed, so that it can be taken back in groups that make sense.

use super::Piece;

/// Changes that are kept; the oldest groups go first.
const MAX_CHANGES: usize = 2_000;
/// Bytes that they hold together. The last group stays, whatever it weighs.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// What kind of change it was: those of one kind that follow each other are one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// A letter.
    Typed,
    /// A space or a sign between words: ends a group of letters.
    Between,
    /// Deleted backwards, one by one.
    Back,
    /// Deleted forwards, one by one.
    Ahead,
    /// Anything that stands for itself.
    Alone,
}

/// One change: at `at`, `removed` went and `added` came.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: usize,
    pub(super) removed: Piece,
    pub(super) added: Piece,
    pub(super) cursor: usize,
    group: u64,
}

/// Done and undone changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    done: Vec<Change>,
    undone: Vec<Change>,
    group: u64,
    last: Option<Why>,
    /// Bytes of what is done.
    bytes: usize,
}

impl Change {
    fn bytes(&self) -> usize {
        self.removed.bytes() + self.added.bytes()
    }
}

impl Undo {
    /// Takes note of a change. `cursor` is where the cursor stood before it.
    pub(super) fn note(&mut self, why: Why, at: usize, removed: Piece, added: Piece, cursor: usize) {
        let joins = match (self.last, why) {
            (_, Why::Alone) | (None, _) => false,
            // The space behind a word belongs to it; the next letter begins a group.
            (Some(Why::Typed), Why::Between) => true,
            (Some(last), why) => last == why,
        };
        if !joins {
            self.group += 1;
        }
        self.last = Some(why);
        self.undone.clear();
        let change = Change { at, removed, added, cursor, group: self.group };
        self.bytes += change.bytes();
        self.done.push(change);
        self.forget();
    }

    /// Lets the oldest groups go, whole, a quarter of what may be kept at a time.
    fn forget(&mut self) {
        if self.done.len() <= MAX_CHANGES && self.bytes <= MAX_BYTES {
            return;
        }
        let (mut changes, mut bytes, mut gone) = (self.done.len(), self.bytes, 0);
        for group in self.done.chunk_by(|a, b| a.group == b.group) {
            let fits = changes <= MAX_CHANGES * 3 / 4 && bytes <= MAX_BYTES * 3 / 4;
            if fits || gone + group.len() == self.done.len() {
                break;
            }
            gone += group.len();
            changes -= group.len();
            bytes -= group.iter().map(Change::bytes).sum::<usize>();
        }
        self.done.drain(..gone);
        self.bytes = bytes;
    }

    /// The next change begins a group, whatever it is: the cursor went elsewhere.
    pub(super) fn end_group(&mut self) {
        self.last = None;
    }

    /// The changes of the last group, the newest first; they count as undone.
    pub(super) fn take_done(&mut self) -> Vec<Change> {
        let taken = Self::take(&mut self.done, &mut self.undone, &mut self.last);
        self.bytes -= taken.iter().map(Change::bytes).sum::<usize>();
        taken
    }

    /// The changes of the group that was undone last, in the order they were made; they count as done.
    pub(super) fn take_undone(&mut self) -> Vec<Change> {
        let taken = Self::take(&mut self.undone, &mut self.done, &mut self.last);
        self.bytes += taken.iter().map(Change::bytes).sum::<usize>();
        taken
    }

    fn take(from: &mut Vec<Change>, to: &mut Vec<Change>, last: &mut Option<Why>) -> Vec<Change> {
        *last = None;
        let Some(group) = from.last().map(|change| change.group) else { return Vec::new() };
        let begin = from.iter().rposition(|change| change.group != group).map_or(0, |index| index + 1);
        let mut taken = from.split_off(begin);
        taken.reverse();
        to.extend(taken.iter().cloned());
        taken
    }
}

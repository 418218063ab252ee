//! What was sent before, by folder, to be had again.

use std::collections::{BTreeMap, VecDeque};

use super::draft::Piece;

/// Messages of a folder that are kept.
pub(crate) const MAX_ENTRIES: usize = 200;
/// Bytes of them together, pastes included.
pub(crate) const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The messages of one folder, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    entries: VecDeque<Piece>,
    bytes: usize,
}

impl History {
    /// Takes a message in; the same again is not taken twice.
    pub(crate) fn push(&mut self, piece: Piece) {
        if piece.text().trim().is_empty() || self.entries.back() == Some(&piece) {
            return;
        }
        self.bytes += piece.bytes();
        self.entries.push_back(piece);
        while self.entries.len() > MAX_ENTRIES || (self.bytes > MAX_BYTES && self.entries.len() > 1) {
            self.bytes -= self.entries.pop_front().as_ref().map_or(0, Piece::bytes);
        }
    }

    /// The messages, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Piece> {
        self.entries.iter().rev()
    }

    fn back(&self, steps: usize) -> Option<&Piece> {
        self.entries.len().checked_sub(steps).and_then(|index| self.entries.get(index))
    }
}

/// Going through a history. What was changed on the way is kept until the message is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browse {
    /// Steps back from the draft; 0 is the draft itself.
    steps: usize,
    changed: BTreeMap<usize, Piece>,
}

impl Browse {
    /// One step back, to older ones. `now` is what the prompt holds; the answer is what it holds then.
    pub(crate) fn older(&mut self, history: &History, now: &Piece) -> Option<Piece> {
        self.go(history, now, self.steps + 1)
    }

    /// One step forward.
    pub(crate) fn newer(&mut self, history: &History, now: &Piece) -> Option<Piece> {
        self.go(history, now, self.steps.checked_sub(1)?)
    }

    fn go(&mut self, history: &History, now: &Piece, to: usize) -> Option<Piece> {
        let found = match (self.changed.get(&to), to) {
            (Some(changed), _) => changed.clone(),
            (None, 0) => Piece::default(),
            (None, steps) => history.back(steps)?.clone(),
        };
        if history.back(self.steps) != Some(now) {
            self.changed.insert(self.steps, now.clone());
        }
        self.steps = to;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Piece {
        Piece::pasted(text, false)
    }

    #[test]
    fn what_is_written_and_what_is_changed_on_the_way_comes_back() {
        let mut history = History::default();
        for text in ["one", "two", "two", "  "] {
            history.push(piece(text));
        }
        assert_eq!(history.entries.len(), 2);
        let mut browse = Browse::default();
        assert_eq!(browse.newer(&history, &piece("draft")), None);
        assert_eq!(browse.older(&history, &piece("draft")), Some(piece("two")));
        assert_eq!(browse.older(&history, &piece("two, changed")), Some(piece("one")));
        assert_eq!(browse.older(&history, &piece("one")), None);
        assert_eq!(browse.newer(&history, &piece("one")), Some(piece("two, changed")));
        assert_eq!(browse.newer(&history, &piece("two, changed")), Some(piece("draft")));
        assert_eq!(history.newest_first().next(), Some(&piece("two")));
    }

    #[test]
    fn it_is_bounded_in_number_and_bytes_and_keeps_the_newest() {
        let mut history = History::default();
        for number in 0..MAX_ENTRIES + 50 {
            history.push(piece(&number.to_string()));
        }
        assert_eq!(history.entries.len(), MAX_ENTRIES);
        let large = "x".repeat(MAX_BYTES / 2 + 1);
        for end in ["a", "b", "c"] {
            history.push(piece(&format!("{large}{end}")));
        }
        assert_eq!(history.entries.len(), 1);
        assert!(history.newest_first().next().unwrap().whole().ends_with('c'));
    }
}

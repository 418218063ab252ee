//! What was deleted by word and line, to be put back elsewhere.

use std::collections::VecDeque;
use std::ops::Range;

use super::draft::Piece;

/// Deletions that are kept.
const MAX_KILLS: usize = 16;

/// The last deletions, the newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kills {
    kept: VecDeque<Piece>,
    /// Whether the last key deleted too: then what goes next belongs to it.
    goes_on: bool,
    /// Where the last key put something back, and which one it was.
    yanked: Option<(Range<usize>, usize)>,
}

impl Kills {
    /// Takes in what was deleted before or behind the cursor.
    pub(crate) fn push(&mut self, mut piece: Piece, is_before: bool) {
        if piece.is_empty() {
            return;
        }
        match self.kept.front_mut() {
            Some(front) if self.goes_on && is_before => {
                piece.append(front);
                *front = piece;
            }
            Some(front) if self.goes_on => front.append(&piece),
            _ => {
                self.kept.push_front(piece);
                self.kept.truncate(MAX_KILLS);
            }
        }
        self.goes_on = true;
    }

    /// Another key was pressed.
    pub(crate) fn pause(&mut self) {
        self.goes_on = false;
        self.yanked = None;
    }

    /// The newest.
    pub(crate) fn newest(&self) -> Option<Piece> {
        self.kept.front().cloned()
    }

    /// Takes note of where it was put.
    pub(crate) fn put(&mut self, range: Range<usize>) {
        let index = self.yanked.take().map_or(0, |(_, index)| index);
        self.yanked = Some((range, index));
    }

    /// The one before the one that was just put back, and where that stands.
    pub(crate) fn older(&mut self) -> Option<(Range<usize>, Piece)> {
        let (range, index) = self.yanked.take()?;
        let next = (index + 1) % self.kept.len().max(1);
        let piece = self.kept.get(next)?.clone();
        self.yanked = Some((range.clone(), next));
        Some((range, piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_in_a_row_are_one_and_older_ones_come_round() {
        let mut kills = Kills::default();
        let piece = Piece::typed;
        kills.push(piece("world"), true);
        kills.push(piece("hello "), true);
        kills.push(piece("!"), false);
        assert_eq!(kills.newest(), Some(piece("hello world!")));
        kills.pause();
        kills.push(piece("other"), false);
        kills.push(piece(""), false);
        assert_eq!(kills.newest(), Some(piece("other")));
        assert_eq!(kills.older(), None);
        kills.put(3..8);
        assert_eq!(kills.older(), Some((3..8, piece("hello world!"))));
        kills.put(3..15);
        assert_eq!(kills.older(), Some((3..15, piece("other"))));
        kills.pause();
        assert_eq!(kills.older(), None);
    }
}

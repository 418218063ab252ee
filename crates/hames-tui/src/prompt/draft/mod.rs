//! What is being written: text, the units in it, a cursor, a selection, and what can be taken back.
//!
//! Text is one string. Positions are byte offsets, and always where a character as people see it begins, so nothing can be
//! cut within an emoji or before its accent. Every change goes through one function, [`Draft::splice`]. Long pastes are
//! units outside of the string, which therefore stays as short as what somebody can have on a screen; the cost of a key
//! depends on that, not on what was pasted.
//!
//! It knows no keys and draws nothing.

mod edit;
mod piece;
mod undo;
pub(crate) mod wrap;

use std::ops::Range;

pub(crate) use edit::{Edit, To};
pub(crate) use piece::{Chip, Piece, grouped};
use undo::{Undo, Why};

use super::text::{CHIP, ceil, floor};

/// Bytes of text in the open; above, whatever is pasted becomes a unit.
const OPEN_BYTES: usize = 32 * 1024;
/// A unit of more bytes is not written out in the prompt; the user's editor shows it.
const MAX_EXPANDED: usize = 32 * 1024;

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    held: Piece,
    cursor: usize,
    /// The other end of the selection.
    anchor: Option<usize>,
    /// The column that moves between rows try to keep.
    goal: Option<usize>,
    undo: Undo,
    /// Grows with every change of the text.
    version: u64,
}

impl Draft {
    /// A draft of a piece, with the cursor behind it.
    pub(crate) fn of(held: Piece) -> Self {
        Self { cursor: held.text.len(), held, ..Self::default() }
    }

    /// What it holds.
    pub(crate) fn piece(&self) -> &Piece {
        &self.held
    }

    /// The text in the open; units are [`CHIP`].
    pub(crate) fn text(&self) -> &str {
        &self.held.text
    }

    /// The cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Grows with every change of the text.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// What is selected; never empty.
    pub(crate) fn selection(&self) -> Option<Range<usize>> {
        let anchor = self.anchor.filter(|anchor| *anchor != self.cursor)?;
        Some(anchor.min(self.cursor)..anchor.max(self.cursor))
    }

    /// The unit that begins at `at`.
    pub(crate) fn chip_at(&self, at: usize) -> Option<&Chip> {
        self.held.text[at..].starts_with(CHIP).then(|| self.held.chips.get(self.chips_before(at)))?
    }

    fn chips_before(&self, at: usize) -> usize {
        self.held.text[..at].matches(CHIP).count()
    }

    /// A copy of a part.
    pub(crate) fn slice(&self, range: Range<usize>) -> Piece {
        let first = self.chips_before(range.start);
        let text = self.held.text[range].to_owned();
        let chips = self.held.chips[first..first + text.matches(CHIP).count()].to_vec();
        Piece { text, chips }
    }

    /// The one place where text changes. The range has to begin and end at characters; the cursor goes behind what came.
    fn splice(&mut self, why: Why, range: Range<usize>, added: Piece) -> Piece {
        let removed = self.slice(range.clone());
        if removed.is_empty() && added.is_empty() {
            return removed;
        }
        self.undo.note(why, range.start, removed.clone(), added.clone(), self.cursor);
        self.put(range.start, &removed, &added);
        removed
    }

    /// Exchanges `removed`, which stands at `at`, for `added`.
    fn put(&mut self, at: usize, removed: &Piece, added: &Piece) {
        let first = self.chips_before(at);
        self.held.chips.splice(first..first + removed.chips.len(), added.chips.iter().cloned());
        self.held.text.replace_range(at..at + removed.text.len(), &added.text);
        // What came may join with what stands behind it: an accent, a joiner.
        self.cursor = ceil(&self.held.text, at + added.text.len());
        self.anchor = None;
        self.goal = None;
        self.version += 1;
    }

    /// Puts a piece in place of the selection, or at the cursor.
    pub(crate) fn insert(&mut self, piece: Piece) {
        let range = self.selection().unwrap_or(self.cursor..self.cursor);
        self.splice(Why::Alone, range, piece);
    }

    /// Takes in a character that was typed.
    pub(crate) fn type_char(&mut self, c: char) {
        if c.is_control() && c != '\n' && c != '\t' {
            return;
        }
        let why = if c.is_alphanumeric() { Why::Typed } else { Why::Between };
        match self.selection() {
            Some(range) => self.splice(Why::Alone, range, Piece::typed(c.encode_utf8(&mut [0; 4]))),
            None => self.splice(why, self.cursor..self.cursor, Piece::typed(c.encode_utf8(&mut [0; 4]))),
        };
    }

    /// Takes in text that came at once. It cannot submit, end or steer anything.
    pub(crate) fn paste(&mut self, text: &str) -> Range<usize> {
        let piece = Piece::pasted(text, self.held.text.len() + text.len() > OPEN_BYTES);
        let start = self.selection().map_or(self.cursor, |range| range.start);
        let length = piece.text.len();
        self.insert(piece);
        self.undo.end_group();
        start..start + length
    }

    /// Exchanges a part for another, as one change.
    pub(crate) fn replace(&mut self, range: Range<usize>, piece: Piece) {
        let range = floor(&self.held.text, range.start)..ceil(&self.held.text, range.end);
        self.splice(Why::Alone, range, piece);
    }

    /// Puts a piece before everything; the cursor stays where it is in what was there.
    pub(crate) fn put_ahead(&mut self, piece: Piece) {
        let (cursor, length) = (self.cursor, piece.text.len());
        self.splice(Why::Alone, 0..0, piece);
        self.cursor = ceil(&self.held.text, cursor + length);
    }

    /// Exchanges everything, as one change that can be taken back.
    pub(crate) fn set(&mut self, piece: Piece) {
        if piece != self.held {
            self.splice(Why::Alone, 0..self.held.text.len(), piece);
        }
        self.cursor = self.held.text.len();
    }

    /// Writes the unit out at the cursor, before it or in the selection. Says why not where it cannot.
    pub(crate) fn expand(&mut self) -> Result<(), &'static str> {
        let before = super::text::before(&self.held.text, self.cursor);
        let at = [self.cursor, before].into_iter().find(|at| self.chip_at(*at).is_some());
        let Some((at, chip)) = at.and_then(|at| Some((at, self.chip_at(at)?.clone()))) else {
            return Err("no paste at the cursor to open");
        };
        if chip.text().len() > MAX_EXPANDED {
            return Err("this paste is too long to open here; your editor shows it");
        }
        let text = Piece { text: chip.text().to_string(), chips: Vec::new() };
        self.splice(Why::Alone, at..at + CHIP.len_utf8(), text);
        Ok(())
    }

    /// Takes back the last group of changes.
    pub(crate) fn undo(&mut self) -> bool {
        let changes = self.undo.take_done();
        for change in &changes {
            self.put(change.at, &change.added, &change.removed);
            self.cursor = floor(&self.held.text, change.cursor);
        }
        !changes.is_empty()
    }

    /// Makes the last group of changes again that was taken back.
    pub(crate) fn redo(&mut self) -> bool {
        let changes = self.undo.take_undone();
        for change in &changes {
            self.put(change.at, &change.removed, &change.added);
        }
        !changes.is_empty()
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

//! Where the reader is, and how far it is to somewhere else.
//!
//! The place is a row of a piece of a block, not a count of rows from the top: nobody has to know how high everything above
//! is. A place is kept by the text that stands there, so it stays through resizes and through whatever comes behind it.

use ratatui::layout::Position;

use super::Talk;
use super::block::Key;

/// So near to the first block that is loaded, older ones are wanted.
pub(super) const NEAR: usize = 40;
/// Rows shown above what is jumped to.
const CONTEXT: usize = 2;

/// Where the first row of the screen stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Anchor {
    /// As far down as there is something.
    #[default]
    End,
    At {
        key: Key,
        piece: usize,
        /// Counted from the first row of the piece; below 0 is above the block.
        row: isize,
        /// The text at that row, for other widths.
        offset: u32,
        width: u16,
    },
}

/// A row: of a piece of a block, counted from what stands above the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) block: usize,
    pub(super) piece: usize,
    pub(super) row: usize,
}

impl Talk {
    /// The place of the first row of a screen of so many rows.
    pub(super) fn top(&mut self, height: usize) -> Place {
        let lowest = |talk: &mut Self| talk.lowest(height);
        let Anchor::At { key, piece, row, offset, width } = self.anchor.clone() else { return lowest(self) };
        let known = self.index(&key);
        // A place that is still to be loaded stays the reader's until it is.
        let is_to_come = known.is_none() && self.older;
        let Some(block) = known.or_else(|| self.nearest(&key)) else { return lowest(self) };
        let count = self.pieces(block).len();
        let piece = piece.min(count.saturating_sub(1));
        let lead = if piece == 0 { self.lead(block).len() } else { 0 };
        let laid = self.laid(block, piece);
        let row = if width == self.stage.width || row < 0 {
            row.saturating_add_unsigned(lead).max(0) as usize
        } else {
            lead + laid.sheet.rows.iter().rposition(|row| row.range.start <= offset).unwrap_or(0)
        };
        let place = Place { block, piece, row: row.min((lead + laid.sheet.rows.len()).saturating_sub(1)) };
        // The walk below ends after a screen, however long the conversation is.
        if self.down(place, height.saturating_sub(1)).1 > 0 {
            if !is_to_come {
                self.anchor = Anchor::End;
            }
            return lowest(self);
        }
        if is_to_come {
            return place;
        }
        // The text it is kept by stays the one that was scrolled to, so that resizes there and back move nothing.
        let row = place.row as isize - lead as isize;
        self.anchor = Anchor::At { key, piece, row, offset, width: self.stage.width };
        place
    }

    /// Keeps a place as the reader's.
    pub(super) fn keep(&mut self, place: Place) {
        if place.block >= self.len() {
            self.anchor = Anchor::End;
            return;
        }
        let lead = if place.piece == 0 { self.lead(place.block).len() } else { 0 };
        let laid = self.laid(place.block, place.piece);
        let offset =
            place.row.checked_sub(lead).and_then(|row| laid.sheet.rows.get(row)).map_or(0, |row| row.range.start);
        let key = self.block(place.block).key.clone();
        let width = self.stage.width;
        let row = place.row as isize - lead as isize;
        self.anchor = Anchor::At { key, piece: place.piece, row, offset, width };
    }

    fn nearest(&self, key: &Key) -> Option<usize> {
        let at = self.fold.blocks.iter().position(|block| block.key >= *key)?;
        Some(at.min(self.len().saturating_sub(1)))
    }

    /// The place from which the end just fits.
    pub(super) fn lowest(&mut self, height: usize) -> Place {
        let Some(block) = self.len().checked_sub(1) else { return Place::default() };
        let piece = self.pieces(block).len().saturating_sub(1);
        let row = self.rows(block, piece).saturating_sub(1);
        self.up(Place { block, piece, row }, height.saturating_sub(1))
    }

    /// So many rows further up, or the first row there is.
    pub(super) fn up(&mut self, mut place: Place, mut rows: usize) -> Place {
        loop {
            if rows <= place.row {
                return Place { row: place.row - rows, ..place };
            }
            rows -= place.row;
            let Some(before) = self.piece_before(place) else { return Place { row: 0, ..place } };
            let count = self.rows(before.block, before.piece);
            place = Place { row: count, ..before };
        }
    }

    /// So many rows further down, or the last row there is, and how many rows were lacking.
    pub(super) fn down(&mut self, mut place: Place, mut rows: usize) -> (Place, usize) {
        loop {
            let count = self.rows(place.block, place.piece);
            if place.row + rows < count {
                return (Place { row: place.row + rows, ..place }, 0);
            }
            let left = count.saturating_sub(place.row);
            let Some(next) = self.piece_after(place) else {
                let lacking = (rows + 1).saturating_sub(left);
                return (Place { row: count.saturating_sub(1), ..place }, lacking);
            };
            rows -= left;
            place = next;
        }
    }

    fn piece_before(&mut self, place: Place) -> Option<Place> {
        if let Some(piece) = place.piece.checked_sub(1) {
            return Some(Place { piece, row: 0, ..place });
        }
        let block = place.block.checked_sub(1)?;
        Some(Place { block, piece: self.pieces(block).len().saturating_sub(1), row: 0 })
    }

    pub(super) fn piece_after(&mut self, place: Place) -> Option<Place> {
        if place.piece + 1 < self.pieces(place.block).len() {
            return Some(Place { piece: place.piece + 1, row: 0, ..place });
        }
        (place.block + 1 < self.len()).then(|| Place { block: place.block + 1, piece: 0, row: 0 })
    }

    /// Moves by rows.
    pub(super) fn scroll(&mut self, rows: isize) {
        let height = usize::from(self.area.height);
        if self.len() == 0 || height == 0 {
            return;
        }
        let top = self.top(height);
        if rows < 0 {
            let place = self.up(top, rows.unsigned_abs());
            if place != top {
                self.keep(place);
            }
            return;
        }
        let (place, _) = self.down(top, rows.unsigned_abs());
        if self.down(place, height).1 > 0 {
            self.anchor = Anchor::End;
        } else {
            self.keep(place);
        }
    }

    pub(super) fn go_to_top(&mut self) {
        if self.len() > 0 {
            self.keep(Place::default());
        }
    }

    pub(super) fn go_to_end(&mut self) {
        self.anchor = Anchor::End;
        self.marker = None;
    }

    /// Brings a piece of a block on the screen, where it is not on it already.
    pub(super) fn show(&mut self, key: &Key, piece: usize) {
        let Some(block) = self.index(key) else { return };
        let lead = if piece == 0 { self.lead(block).len() } else { 0 };
        let place = Place { block, piece, row: lead };
        if self.drawn.contains(&place) {
            return;
        }
        let place = self.up(place, CONTEXT);
        self.keep(place);
    }

    /// What stands at a position of the screen.
    pub(super) fn place_at(&self, at: Position) -> Option<Place> {
        self.drawn.get(usize::from(at.y.checked_sub(self.area.y)?)).copied()
    }
}

//! Moves and deletions, by character, word, line and row.

use super::wrap::Rows;
use super::{Draft, Piece, Why};
use crate::prompt::text::{before, behind, floor, line_end, line_start, word_before, word_behind};

/// Where the cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    /// The row above, as rows are shown.
    Up,
    /// The row below.
    Down,
    Start,
    End,
}

/// What is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Back,
    Ahead,
    WordBack,
    WordAhead,
    /// To the beginning of the line; the line end before it where the cursor is there already.
    ToLineStart,
    /// To the end of the line; the line end where the cursor is there already.
    ToLineEnd,
}

impl Draft {
    /// Moves the cursor, and selects where `is_selecting`. Says whether it could.
    pub(crate) fn go(&mut self, to: To, is_selecting: bool, rows: &Rows) -> bool {
        let from = self.cursor;
        let selected = self.selection().filter(|_| !is_selecting);
        let target = match (to, selected) {
            // Without shift a selection is left at its end, as everywhere.
            (To::Left, Some(range)) => range.start,
            (To::Right, Some(range)) => range.end,
            (to, _) => self.target(to, rows),
        };
        self.anchor = is_selecting.then(|| self.anchor.unwrap_or(from));
        self.cursor = floor(&self.held.text, target);
        if !matches!(to, To::Up | To::Down) {
            self.goal = None;
        }
        self.undo.end_group();
        self.cursor != from
    }

    fn target(&mut self, to: To, rows: &Rows) -> usize {
        let (text, at) = (&self.held.text, self.cursor);
        match to {
            To::Left => before(text, at),
            To::Right => behind(text, at),
            To::WordLeft => word_before(text, at),
            To::WordRight => word_behind(text, at),
            To::LineStart => line_start(text, at),
            To::LineEnd => line_end(text, at),
            To::Start => 0,
            To::End => text.len(),
            To::Up | To::Down => {
                let (row, column) = rows.place(text, &self.held.chips, at);
                let goal = self.goal.unwrap_or(column);
                self.goal = Some(goal);
                match (to, row) {
                    (To::Up, 0) => at,
                    (To::Up, row) => rows.at(text, &self.held.chips, row - 1, goal),
                    (_, row) if row + 1 < rows.len() => rows.at(text, &self.held.chips, row + 1, goal),
                    _ => at,
                }
            }
        }
    }

    /// Puts the cursor somewhere: a click.
    pub(crate) fn go_to(&mut self, at: usize, is_selecting: bool) {
        self.anchor = is_selecting.then(|| self.anchor.unwrap_or(self.cursor));
        self.cursor = floor(&self.held.text, at);
        self.goal = None;
        self.undo.end_group();
    }

    /// Selects everything.
    pub(crate) fn select_all(&mut self) {
        self.anchor = Some(0);
        self.cursor = self.held.text.len();
    }

    /// Deletes, and gives what went.
    pub(crate) fn delete(&mut self, edit: Edit) -> Piece {
        let (text, at) = (&self.held.text, self.cursor);
        let (why, range) = match (self.selection(), edit) {
            (Some(range), _) => (Why::Alone, range),
            (None, Edit::Back) => (Why::Back, before(text, at)..at),
            (None, Edit::Ahead) => (Why::Ahead, at..behind(text, at)),
            (None, Edit::WordBack) => (Why::Alone, word_before(text, at)..at),
            (None, Edit::WordAhead) => (Why::Alone, at..word_behind(text, at)),
            (None, Edit::ToLineStart) => (Why::Alone, line_start(text, at).min(before(text, at))..at),
            (None, Edit::ToLineEnd) => (Why::Alone, at..line_end(text, at).max(behind(text, at).min(text.len()))),
        };
        self.splice(why, range, Piece::default())
    }
}

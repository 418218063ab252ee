//! The diff of one change, of which only what is looked at is laid out and coloured.

use std::ops::Range;

use hames_protocol::api::Change;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::layers::pager::{Chunks, Pager};
use crate::talk::code::{Fences, Painter};
use crate::talk::diff;
use crate::talk::split::chunks;
use crate::talk::text::{Row, Sheet, Wrap};
use crate::{Action, Input, Theme};

/// The diff on the screen, and where one reads it.
#[derive(Default)]
pub(super) struct Shown {
    body: Body,
    pager: Pager,
    fences: Fences,
    lacks: bool,
}

/// The lines of a diff behind its head.
#[derive(Default)]
struct Body {
    path: String,
    /// The reading of the changes that it is of.
    reading: u64,
    text: String,
    chunks: Vec<Range<usize>>,
}

/// A diff with what colours it.
struct Coloured<'a> {
    body: &'a Body,
    fences: &'a mut Fences,
    theme: Theme,
    lacks: bool,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").field("path", &self.body.path).finish_non_exhaustive()
    }
}

impl Chunks for Coloured<'_> {
    fn count(&self) -> usize {
        self.body.chunks.len()
    }

    fn lay(&mut self, chunk: usize, width: u16) -> Vec<Row> {
        let Body { path, text, chunks, .. } = self.body;
        let range = chunks[chunk].clone();
        let mut lines: Vec<&str> = text[range.clone()].lines().collect();
        // A chunk that begins inside of a long line has that line's sign, so that its colour goes on.
        let goes_on;
        let line = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        if line < range.start
            && let Some(first) = lines.first_mut()
        {
            goes_on = format!("{}{first}", text.get(line..=line).unwrap_or(" "));
            *first = &goes_on;
        }
        let mut sheet = Sheet::new(width);
        let mut painter = Painter::new(self.fences, self.theme.text());
        diff::lay(&mut sheet, &lines, path, self.theme, &mut painter, Wrap::Anywhere);
        self.lacks |= painter.lacks;
        sheet.rows
    }
}

impl Shown {
    /// Takes a key that moves.
    pub(super) fn handle(&mut self, input: &Input, action: Option<Action>) {
        self.pager.handle(input, action);
    }

    /// Moves by rows.
    pub(super) fn scroll(&mut self, rows: isize) {
        self.pager.scroll(rows);
    }

    /// Whether colours are on their way.
    pub(super) fn is_waiting(&self) -> bool {
        self.lacks && self.fences.is_waiting()
    }

    /// Waits for all colours.
    #[cfg(test)]
    pub(super) fn wait(&mut self) {
        self.fences.wait();
    }

    /// Draws the diff of a change of that reading, from its beginning where another one was shown before.
    pub(super) fn draw(&mut self, change: &Change, reading: u64, area: Rect, buf: &mut Buffer, theme: Theme) {
        if self.body.path != change.path {
            self.pager.reset();
        }
        if (self.body.path.as_str(), self.body.reading) != (change.path.as_str(), reading) {
            let text = diff::hunks(change.diff.as_deref().unwrap_or_default()).to_owned();
            self.pager.forget();
            self.body = Body { path: change.path.clone(), reading, chunks: chunks(&text), text };
        }
        if self.fences.frame(theme) || self.lacks {
            self.pager.forget();
        }
        let mut coloured = Coloured { body: &self.body, fences: &mut self.fences, theme, lacks: false };
        self.pager.draw(area, buf, &mut coloured);
        self.lacks = coloured.lacks;
    }
}

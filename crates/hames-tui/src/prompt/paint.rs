//! Drawing text into one row, cut at its end and never beyond it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;

use super::text::shown;

/// A row that is written from the left.
pub(crate) struct Line {
    row: Rect,
    column: usize,
}

impl Line {
    /// The row `index` of an area; one without cells where it lies outside.
    pub(crate) fn new(area: Rect, index: u16) -> Self {
        let row = Rect { y: area.y.saturating_add(index), height: u16::from(index < area.height), ..area };
        Self { row: if row.height == 0 { Rect { width: 0, ..row } } else { row }, column: 0 }
    }

    /// Cells that are left.
    pub(crate) fn room(&self) -> usize {
        (self.row.width as usize).saturating_sub(self.column)
    }

    /// The next cell.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// Goes on at a column, if that is not passed yet.
    pub(crate) fn go_to(&mut self, column: usize) -> &mut Self {
        self.column = self.column.max(column);
        self
    }

    /// Writes text, as far as there is room.
    pub(crate) fn put(&mut self, buf: &mut Buffer, text: &str, style: Style) -> &mut Self {
        for cluster in text.graphemes(true) {
            let (symbol, cells) = shown(cluster, self.column);
            if cells > self.room() {
                self.column = self.row.width as usize;
                break;
            }
            let x = self.row.x + self.column as u16;
            buf.set_string(x, self.row.y, symbol, style);
            self.column += cells;
        }
        self
    }

    /// Gives the rest of the row a style.
    pub(crate) fn fill(&mut self, buf: &mut Buffer, style: Style) {
        while self.room() > 0 {
            self.put(buf, " ", style);
        }
    }
}

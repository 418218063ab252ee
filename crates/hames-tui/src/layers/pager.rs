//! A long text, of which only what is looked at is laid out.
//!
//! The text comes in chunks that can be laid out one by one. Where the reader is, is a row of a chunk; moves are wishes that
//! the next frame carries out, because only then the width is known. So neither the length of a text nor that of a line
//! decides what a frame costs.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, MouseEventKind};
use ratatui::layout::Rect;

use crate::talk::paint::draw_row;
use crate::talk::text::Row;
use crate::{Action, Input};

/// Chunks that stay laid out: what a screen shows, and what is around it.
const KEPT: usize = 12;
/// Rows the wheel moves.
const WHEEL_ROWS: isize = 3;

/// A row of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chunk: usize,
    row: usize,
}

/// Where the next frame is to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    Stay,
    Rows(isize),
    Top,
    End,
}

/// The chunks of a text and how each is laid out.
pub(super) trait Chunks {
    /// How many there are.
    fn count(&self) -> usize;
    /// The rows of one, in a width of at least 1.
    fn lay(&mut self, chunk: usize, width: u16) -> Vec<Row>;
}

/// Shows a text.
#[derive(Debug, Default)]
pub(super) struct Pager {
    at: Place,
    wish: Wish,
    width: u16,
    height: u16,
    laid: Vec<(usize, Vec<Row>)>,
    is_end: bool,
}

impl Pager {
    /// Takes a key or the wheel that moves; false where it is none.
    pub(super) fn handle(&mut self, input: &Input, action: Option<Action>) -> bool {
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        match (action, input) {
            (Some(Action::PageUp), _) => self.scroll(-page),
            (Some(Action::PageDown), _) => self.scroll(page),
            (Some(Action::ToTop), _) => self.wish = Wish::Top,
            (Some(Action::ToEnd), _) => self.wish = Wish::End,
            (_, Input::Mouse(mouse)) => match mouse.kind {
                MouseEventKind::ScrollUp => self.scroll(-WHEEL_ROWS),
                MouseEventKind::ScrollDown => self.scroll(WHEEL_ROWS),
                _ => return false,
            },
            (None, Input::Key(key)) => match key.code {
                KeyCode::Home => self.wish = Wish::Top,
                KeyCode::End => self.wish = Wish::End,
                KeyCode::Char(' ') => self.scroll(page),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// Moves by rows.
    pub(super) fn scroll(&mut self, rows: isize) {
        self.wish = match self.wish {
            Wish::Rows(before) => Wish::Rows(before.saturating_add(rows)),
            _ => Wish::Rows(rows),
        };
    }

    /// Goes to the end.
    pub(super) fn end(&mut self) {
        self.wish = Wish::End;
    }

    /// Another text: from its beginning.
    pub(super) fn reset(&mut self) {
        *self = Self { width: self.width, height: self.height, ..Self::default() };
    }

    /// What was laid out looks different now.
    pub(super) fn forget(&mut self) {
        self.laid.clear();
    }

    /// The chunk at the top.
    pub(super) fn chunk(&self) -> usize {
        self.at.chunk
    }

    /// Whether the end was in the last frame.
    pub(super) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Draws what is in the area.
    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, text: &mut dyn Chunks) {
        let area = area.intersection(buf.area);
        self.is_end = true;
        if area.is_empty() || text.count() == 0 {
            return;
        }
        self.settle(area, text);
        let mut place = self.at;
        let last = text.count() - 1;
        for line in area.rows() {
            let rows = self.rows(place.chunk, text);
            let Some(row) = rows.get(place.row) else { return };
            draw_row(row, line, buf);
            place.row += 1;
            if place.row >= rows.len() {
                if place.chunk == last {
                    return;
                }
                place = Place { chunk: place.chunk + 1, row: 0 };
            }
        }
        self.is_end = place.chunk == last && place.row >= self.rows(last, text).len();
    }

    /// Goes where it is wished, and nowhere beyond the end.
    fn settle(&mut self, area: Rect, text: &mut dyn Chunks) {
        self.at.chunk = self.at.chunk.min(text.count() - 1);
        if self.width != area.width {
            let start = self.laid.iter().find(|(chunk, _)| *chunk == self.at.chunk);
            let start = start.and_then(|(_, rows)| rows.get(self.at.row)).map(|row| row.range.start);
            (self.width, self.laid) = (area.width, Vec::new());
            if let Some(start) = start {
                let rows = self.rows(self.at.chunk, text);
                self.at.row = rows.iter().rposition(|row| row.range.start <= start).unwrap_or(0);
            }
        }
        self.height = area.height;
        match std::mem::take(&mut self.wish) {
            Wish::Stay => {}
            Wish::Top => self.at = Place::default(),
            Wish::End => self.at = Place { chunk: text.count() - 1, row: usize::MAX },
            Wish::Rows(rows) if rows < 0 => self.back(rows.unsigned_abs(), text),
            Wish::Rows(rows) => self.on(rows.unsigned_abs(), text),
        }
        if !self.fills(text) {
            self.at = self.lowest(text);
        }
    }

    /// Whether there is text from here on for the whole screen.
    fn fills(&mut self, text: &mut dyn Chunks) -> bool {
        let mut wanted = usize::from(self.height);
        for chunk in self.at.chunk..text.count() {
            let skip = if chunk == self.at.chunk { self.at.row } else { 0 };
            let rows = self.rows(chunk, text).len().saturating_sub(skip);
            if rows >= wanted {
                return true;
            }
            wanted -= rows;
        }
        false
    }

    fn on(&mut self, mut rows: usize, text: &mut dyn Chunks) {
        loop {
            let left = self.rows(self.at.chunk, text).len().saturating_sub(self.at.row + 1);
            if rows <= left || self.at.chunk + 1 >= text.count() {
                self.at.row += rows.min(left);
                return;
            }
            rows -= left + 1;
            self.at = Place { chunk: self.at.chunk + 1, row: 0 };
        }
    }

    fn back(&mut self, mut rows: usize, text: &mut dyn Chunks) {
        while rows > self.at.row {
            let Some(chunk) = self.at.chunk.checked_sub(1) else {
                self.at.row = 0;
                return;
            };
            rows -= self.at.row + 1;
            self.at = Place { chunk, row: self.rows(chunk, text).len().saturating_sub(1) };
        }
        self.at.row -= rows;
    }

    /// The top of a screen that ends with the text.
    fn lowest(&mut self, text: &mut dyn Chunks) -> Place {
        let mut wanted = usize::from(self.height);
        for chunk in (0..text.count()).rev() {
            let rows = self.rows(chunk, text).len();
            if rows >= wanted {
                return Place { chunk, row: rows - wanted };
            }
            wanted -= rows;
        }
        Place::default()
    }

    fn rows(&mut self, chunk: usize, text: &mut dyn Chunks) -> &[Row] {
        let at = match self.laid.iter().position(|(known, _)| *known == chunk) {
            Some(at) => at,
            None => {
                if self.laid.len() >= KEPT {
                    // What is furthest from where the reader is goes first.
                    let far = |(known, _): &&(usize, Vec<Row>)| known.abs_diff(chunk);
                    let far = self.laid.iter().max_by_key(far).map(|(known, _)| *known);
                    self.laid.retain(|(known, _)| Some(*known) != far);
                }
                self.laid.push((chunk, text.lay(chunk, self.width.max(1))));
                self.laid.len() - 1
            }
        };
        &self.laid[at].1
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::talk::text::{Run, Sheet, Wrap};

    /// Chunks of numbered lines; counts what is laid out.
    struct Numbers {
        chunks: usize,
        lines: usize,
        laid: usize,
    }

    impl Chunks for Numbers {
        fn count(&self) -> usize {
            self.chunks
        }
        fn lay(&mut self, chunk: usize, width: u16) -> Vec<Row> {
            self.laid += 1;
            let lines: Vec<String> = (0..self.lines).map(|line| (chunk * self.lines + line).to_string()).collect();
            let mut sheet = Sheet::new(width);
            sheet.flow(&[], &[], &[Run::new(lines.join("\n"), ratatui::style::Style::new())], Wrap::Anywhere);
            sheet.rows
        }
    }

    fn shown(pager: &mut Pager, text: &mut Numbers, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, 8, height);
        let mut buf = Buffer::empty(area);
        pager.draw(area, &mut buf, text);
        area.rows()
            .map(|row| row.positions().map(|at| buf[at].symbol()).collect::<String>().trim().to_owned())
            .collect()
    }

    fn press(pager: &mut Pager, code: KeyCode) {
        let action = match code {
            KeyCode::PageUp => Some(Action::PageUp),
            KeyCode::PageDown => Some(Action::PageDown),
            _ => None,
        };
        assert!(pager.handle(&Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), action));
    }

    #[test]
    fn one_moves_over_chunks_and_never_beyond_the_ends() {
        let mut text = Numbers { chunks: 5, lines: 3, laid: 0 };
        let mut pager = Pager::default();
        assert_eq!(shown(&mut pager, &mut text, 4), ["0", "1", "2", "3"]);
        for (code, rows) in [
            (KeyCode::PageDown, ["3", "4", "5", "6"]),
            (KeyCode::PageDown, ["6", "7", "8", "9"]),
            (KeyCode::PageUp, ["3", "4", "5", "6"]),
            (KeyCode::End, ["11", "12", "13", "14"]),
            (KeyCode::PageDown, ["11", "12", "13", "14"]),
            (KeyCode::Home, ["0", "1", "2", "3"]),
            (KeyCode::PageUp, ["0", "1", "2", "3"]),
        ] {
            press(&mut pager, code);
            assert_eq!(shown(&mut pager, &mut text, 4), rows, "{code:?}");
            assert_eq!(pager.is_end(), rows[3] == "14");
        }
        // More room than text.
        let few = |chunks| shown(&mut Pager::default(), &mut Numbers { chunks, lines: 2, laid: 0 }, 4);
        assert_eq!(few(1), ["0", "1", "", ""]);
        assert_eq!(few(0), ["", "", "", ""]);
    }

    #[test]
    fn a_frame_lays_out_what_it_shows_and_no_more() {
        let mut text = Numbers { chunks: 100_000, lines: 3, laid: 0 };
        let mut pager = Pager::default();
        shown(&mut pager, &mut text, 20);
        press(&mut pager, KeyCode::End);
        assert_eq!(shown(&mut pager, &mut text, 2), ["299998", "299999"]);
        for _ in 0..10 {
            press(&mut pager, KeyCode::PageUp);
            shown(&mut pager, &mut text, 20);
        }
        assert!(text.laid < 120, "{}", text.laid);
        assert!(pager.laid.len() <= KEPT);
    }

    #[test]
    fn another_width_keeps_the_place() {
        let mut text = Numbers { chunks: 5, lines: 3, laid: 0 };
        let mut pager = Pager::default();
        shown(&mut pager, &mut text, 3);
        press(&mut pager, KeyCode::PageDown);
        press(&mut pager, KeyCode::PageDown);
        shown(&mut pager, &mut text, 3);
        let narrow = Rect::new(0, 0, 1, 3);
        let mut buf = Buffer::empty(narrow);
        pager.draw(narrow, &mut buf, &mut text);
        assert_eq!(buf[(0, 0)].symbol(), "4");
    }
}

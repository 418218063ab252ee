//! Text that is scrolled: lines in pieces of a look, wrapped to the width, of any length and number.
//!
//! Nobody knows how many rows there are: the place is a row of a line, and only what is on the screen is laid out. A line
//! that is very long is taken apart beforehand, so that no frame costs more than a screen of short ones.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{Look, numbers};
use crate::talk::paint::draw_row;
use crate::talk::text::{Row, Run, Sheet, Wrap, clean, floor};
use crate::{Action, Input, Theme};

/// Bytes of a line that are laid out at once.
const MAX_LINE: usize = 4096;
/// Rows the wheel moves.
const WHEEL_ROWS: usize = 3;

/// A line: its pieces, one behind the other.
pub(crate) type Pieces = Vec<(String, Look)>;

/// Text and the place in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scroll {
    lines: Vec<Pieces>,
    /// The line and the row of it that stands first.
    top: (usize, usize),
    area: Rect,
}

impl Scroll {
    /// Text from its beginning.
    pub(crate) fn new(lines: impl IntoIterator<Item = Pieces>) -> Self {
        let mut scroll = Self::default();
        scroll.set(lines);
        scroll
    }

    /// Other text, at the same place as far as there is one.
    pub(crate) fn set(&mut self, lines: impl IntoIterator<Item = Pieces>) {
        self.lines = lines.into_iter().flat_map(apart).collect();
    }

    /// Lines there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Shows a line at the top, as far as what follows fills the area.
    #[cfg(test)]
    pub(crate) fn go_to(&mut self, line: usize) {
        self.top = (line, 0);
    }

    /// Takes a key or the wheel; `false` where it means nothing here.
    pub(crate) fn handle(&mut self, input: &Input, action: Option<Action>) -> bool {
        let page = usize::from(self.area.height.saturating_sub(1).max(1));
        match (input, action) {
            (Input::Mouse(mouse), _) if self.area.contains(Position::new(mouse.column, mouse.row)) => {
                match mouse.kind {
                    MouseEventKind::ScrollUp => self.up(WHEEL_ROWS),
                    MouseEventKind::ScrollDown => self.down(WHEEL_ROWS),
                    _ => return false,
                }
            }
            (Input::Key(_), Some(Action::Previous)) => self.up(1),
            (Input::Key(_), Some(Action::Next)) => self.down(1),
            (Input::Key(_), Some(Action::PageUp)) => self.up(page),
            (Input::Key(_), Some(Action::PageDown)) => self.down(page),
            (Input::Key(_), Some(Action::ToTop)) => self.top = (0, 0),
            (Input::Key(_), Some(Action::ToEnd)) => self.top = (self.lines.len(), 0),
            (Input::Key(key), None) if key.modifiers.is_empty() => match key.code {
                KeyCode::Home => self.top = (0, 0),
                KeyCode::End => self.top = (self.lines.len(), 0),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    fn up(&mut self, mut rows: usize) {
        while rows > self.top.1 {
            let Some(before) = self.top.0.checked_sub(1) else {
                self.top = (0, 0);
                return;
            };
            rows -= self.top.1 + 1;
            self.top = (before, self.height(before) - 1);
        }
        self.top.1 -= rows;
    }

    fn down(&mut self, mut rows: usize) {
        while self.top.0 < self.lines.len() {
            let left = self.height(self.top.0).saturating_sub(self.top.1);
            if rows < left {
                self.top.1 += rows;
                return;
            }
            rows -= left;
            self.top = (self.top.0 + 1, 0);
        }
    }

    /// Rows of a line: one at least.
    fn height(&self, line: usize) -> usize {
        self.lay(line, &Theme::default()).len().max(1)
    }

    fn lay(&self, line: usize, theme: &Theme) -> Vec<Row> {
        self.lay_in(line, self.area.width, theme)
    }

    fn lay_in(&self, line: usize, width: u16, theme: &Theme) -> Vec<Row> {
        let mut sheet = Sheet::new(width);
        let pieces = self.lines.get(line).map(Vec::as_slice).unwrap_or_default();
        let runs: Vec<Run<'_>> = pieces.iter().map(|(text, look)| Run::new(text.as_str(), look.style(theme))).collect();
        sheet.flow(&[], &[], &runs, Wrap::Words);
        sheet.rows
    }

    /// The place from which the end just fills the area.
    fn lowest(&self) -> (usize, usize) {
        let mut wanted = usize::from(self.area.height);
        for line in (0..self.lines.len()).rev() {
            let height = self.height(line);
            if height >= wanted {
                return (line, height - wanted);
            }
            wanted -= height;
        }
        (0, 0)
    }

    /// Draws what the area, of any size, has room for.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let area = area.intersection(buf.area);
        if area.width != self.area.width {
            self.top.1 = 0;
        }
        self.area = area;
        if area.is_empty() {
            return;
        }
        self.top = self.top.min(self.lowest());
        let mut places = area.rows();
        let mut skip = self.top.1;
        for line in self.top.0..self.lines.len() {
            for row in self.lay(line, theme).iter().skip(skip) {
                let Some(place) = places.next() else { return };
                draw_row(row, place, buf);
            }
            skip = 0;
        }
    }

    /// Brings a line on the screen.
    pub(crate) fn show(&mut self, line: usize) {
        if line < self.top.0 {
            self.top = (line, 0);
            return;
        }
        let rows: usize = (self.top.0..=line).map(|line| self.height(line)).sum();
        let over = rows.saturating_sub(self.top.1 + usize::from(self.area.height));
        self.down(over);
    }

    /// Rows that it takes in a width, `most` at most.
    pub(crate) fn rows(&self, width: u16, most: usize) -> usize {
        let theme = Theme::default();
        let mut rows = 0;
        for line in 0..self.lines.len() {
            rows += self.lay_in(line, width, &theme).len().max(1);
            if rows >= most {
                return most;
            }
        }
        rows
    }

    /// Whether something stands below what is on the screen.
    pub(crate) fn has_more(&self) -> bool {
        self.top < self.lowest()
    }

    /// Where one is, where not everything is on the screen: `line 12 of 340`.
    pub(crate) fn place(&self) -> Option<String> {
        let is_more = self.top != (0, 0) || self.lowest() != (0, 0);
        is_more.then(|| {
            let (line, all) = (self.top.0 as u64 + 1, self.lines.len() as u64);
            format!("line {} of {}", numbers::count(line), numbers::count(all))
        })
    }
}

/// A line in pieces that are laid out at once, clean of what could harm; line ends in it begin another one.
fn apart(pieces: Pieces) -> Vec<Pieces> {
    let mut lines = vec![Pieces::new()];
    let mut length = 0;
    for (text, look) in pieces {
        for (at, part) in clean(&text).split('\n').enumerate() {
            if at > 0 {
                lines.push(Pieces::new());
                length = 0;
            }
            let mut rest = part;
            while !rest.is_empty() {
                if length >= MAX_LINE {
                    lines.push(Pieces::new());
                    length = 0;
                }
                // One character at least.
                let end = floor(rest, (MAX_LINE - length).max(4));
                if let Some(line) = lines.last_mut() {
                    line.push((rest[..end].to_owned(), look));
                }
                length += end;
                rest = &rest[end..];
            }
        }
    }
    lines
}

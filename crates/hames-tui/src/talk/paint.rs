//! The frame: rows into cells, with what is selected, found and marked over them.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use super::Talk;
use super::numbers::count;
use super::scroll::Place;
use super::stage::Lead;
use super::text::{Row, cut_to};
use crate::{Sight, Theme};

impl Talk {
    /// Draws into an area of any size.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let area = area.intersection(buf.area);
        let theme = *sight.theme;
        self.stage.begin(area.width, theme);
        if !area.is_empty() {
            self.arrive();
        }
        self.continue_find();
        let (area, find) = self.find_area(area);
        self.area = area;
        self.drawn.clear();
        if area.is_empty() || self.len() == 0 {
            return;
        }
        let height = usize::from(area.height);
        let top = self.top(height);
        let selected = self.selected_span();
        let mut place = Some(top);
        while let Some(at) = place {
            let lead = if at.piece == 0 { self.lead(at.block) } else { Vec::new() };
            let laid = self.laid(at.block, at.piece);
            let rows = lead.len() + laid.sheet.rows.len();
            let found = self.found_in(&laid.sheet.text);
            let chosen = selected.as_ref().and_then(|span| span.within(at.block, at.piece));
            for row in at.row..rows {
                let y = area.y + self.drawn.len() as u16;
                let line = Rect { y, height: 1, ..area };
                match row.checked_sub(lead.len()) {
                    None => draw_lead(&lead[row], line, buf, theme),
                    Some(row) => {
                        let row = &laid.sheet.rows[row];
                        draw_row(row, line, buf);
                        for range in &found {
                            overlay(row, range, line, buf, theme.matched());
                        }
                        if let Some(range) = &chosen {
                            overlay(row, range, line, buf, theme.chosen());
                        }
                    }
                }
                if row == lead.len() && at.piece == 0 && self.is_marked(at) {
                    buf.set_style(Rect { width: line.width.min(2), ..line }, theme.chosen());
                }
                self.drawn.push(Place { row, ..at });
                if self.drawn.len() == height {
                    break;
                }
            }
            place = if self.drawn.len() < height { self.piece_after(at) } else { None };
        }
        self.draw_cursor(area, buf, theme);
        if let Some(line) = find {
            self.draw_find(line, buf, theme);
        }
    }

    fn is_marked(&self, at: Place) -> bool {
        self.marker.as_ref().is_some_and(|key| self.block(at.block).key == *key)
    }
}

pub(crate) fn draw_row(row: &Row, line: Rect, buf: &mut Buffer) {
    let mut x = line.x;
    for span in &row.spans {
        let left = line.right().saturating_sub(x);
        if left == 0 {
            return;
        }
        (x, _) = buf.set_stringn(x, line.y, &span.text, usize::from(left), span.style);
    }
}

fn overlay(row: &Row, range: &Range<u32>, line: Rect, buf: &mut Buffer, style: Style) {
    if range.end <= row.range.start || range.start > row.range.end {
        return;
    }
    for columns in row.columns_of(range) {
        let (from, to) = (columns.start.min(line.width), columns.end.min(line.width));
        buf.set_style(Rect { x: line.x + from, width: to - from, ..line }, style);
    }
}

fn draw_lead(lead: &Lead, line: Rect, buf: &mut Buffer, theme: Theme) {
    match lead {
        Lead::Blank => {}
        Lead::Divider { above, is_all } => {
            let more = if *is_all { "" } else { "+" };
            let plural = if *above == 1 && *is_all { "" } else { "s" };
            let says = format!(
                " {}{more} message{plural} above · kept in the session, out of the context window ",
                count(*above as u64)
            );
            let room = usize::from(line.width);
            let says = cut_to(&says, room);
            let left = room.saturating_sub(says.width());
            let drawn = format!("{}{says}{}", "─".repeat(left / 2), "─".repeat(left - left / 2));
            buf.set_stringn(line.x, line.y, drawn, room, theme.checkpoint());
        }
    }
}

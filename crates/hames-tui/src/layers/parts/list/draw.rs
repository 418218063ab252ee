//! How a list is drawn: the filter, headings and rows, columns at the right, and what was found.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;

use super::super::{Look, cut_to, numbers, wrapped};
use super::{Hit, Item, List};
use crate::Sight;
use crate::prompt::paint::Line;
use crate::prompt::text::cells;

/// Cells of a row's text before its columns give way.
const MIN_TEXT: usize = 20;
/// Cells before a column.
const GAP: usize = 2;

impl List {
    /// Draws the filter and the rows into an area of any size. `empty` is said where there is no row at all.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, empty: &str, sight: Sight<'_>) -> Option<Position> {
        let says = if self.items.is_empty() { empty } else { "Nothing here matches; Backspace takes letters back." };
        self.draw_or(area, buf, says, sight)
    }

    /// The same; `says` is said where no row is shown, for whatever reason.
    pub(crate) fn draw_or(&mut self, area: Rect, buf: &mut Buffer, says: &str, sight: Sight<'_>) -> Option<Position> {
        let area = area.intersection(buf.area);
        let first = Rect { height: area.height.min(1), ..area };
        let count = match (self.hits.len() as u64, self.items.len() as u64) {
            _ if self.items.is_empty() => String::new(),
            (shown, all) if shown == all => numbers::count(all),
            (shown, all) => format!("{} of {}", numbers::count(shown), numbers::count(all)),
        };
        let room = usize::from(area.width).saturating_sub(cells(&count) + 1);
        let cursor = self.field.draw(Rect { width: room as u16, ..first }, buf, "› ", sight);
        Line::new(first, 0).go_to(room + 1).put(buf, &count, sight.theme.dim());
        let rows = Rect { y: area.y + first.height, height: area.height - first.height, ..area };
        self.area = rows;
        self.drawn.clear();
        if self.hits.is_empty() {
            for (at, text) in wrapped(says, rows.width).iter().enumerate() {
                Line::new(rows, at as u16).put(buf, text, sight.theme.dim());
            }
            return cursor;
        }
        self.draw_rows(rows, buf, sight);
        cursor
    }

    fn draw_rows(&mut self, rows: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let lines = self.lines();
        let at = lines.iter().position(|line| *line == (self.chosen, false)).unwrap_or(0);
        let height = usize::from(rows.height).max(1);
        // The heading of the first row comes along.
        let wanted = if at > 0 && lines[at - 1].1 && height > 1 { at - 1 } else { at };
        self.top = self.top.min(wanted).max((at + 1).saturating_sub(height)).min(lines.len().saturating_sub(height));
        let columns = self.columns_shown(rows.width);
        for (index, (hit, is_heading)) in lines.iter().enumerate().skip(self.top).take(rows.height.into()) {
            let mut place = Line::new(rows, (index - self.top) as u16);
            self.drawn.push((!is_heading).then_some(*hit));
            if *is_heading {
                let group = cut_to(&self.items[self.hits[*hit].item].group, place.room());
                place.put(buf, &group, sight.theme.name());
            } else {
                self.draw_row(place, buf, *hit, columns, sight);
            }
        }
    }

    /// Headings and rows, in order: the hit, and whether it is the heading above it that stands there.
    fn lines(&self) -> Vec<(usize, bool)> {
        let mut lines = Vec::with_capacity(self.hits.len());
        let mut last = "";
        for (at, hit) in self.hits.iter().enumerate() {
            let group = self.items[hit.item].group.as_str();
            if group != last {
                lines.push((at, true));
                last = group;
            }
            lines.push((at, false));
        }
        lines
    }

    /// How many of the columns there is room for.
    fn columns_shown(&self, width: u16) -> usize {
        let mut left = usize::from(width).saturating_sub(MIN_TEXT);
        let fits = self.widths.iter().take_while(|width| {
            let room = left.checked_sub(**width + GAP);
            left = room.unwrap_or(0);
            room.is_some()
        });
        fits.count()
    }

    fn draw_row(&self, mut place: Line, buf: &mut Buffer, hit: usize, columns: usize, sight: Sight<'_>) {
        let Hit { item, lit } = &self.hits[hit];
        let item = &self.items[*item];
        let is_chosen = hit == self.chosen;
        let style = |look: Look| if is_chosen { look.reversed(sight.theme) } else { look.style(sight.theme) };
        let plain = style(Look::Text);
        place.put(buf, if is_chosen { "› " } else { "  " }, plain);
        let text_at = if self.items.iter().any(|item| !item.mark.0.is_empty()) { 4 } else { 2 };
        place.put(buf, item.mark.0, style(item.mark.1));
        fill_to(&mut place, buf, text_at, plain);
        let right: usize = self.widths.iter().take(columns).map(|width| width + GAP).sum();
        let end = (place.room() + place.column()).saturating_sub(right);
        let room = end.saturating_sub(text_at);
        draw_found(&mut place, buf, item, lit, room, plain, style(Look::Matched));
        let left = end.saturating_sub(place.column());
        if !item.about.is_empty() && left > 6 {
            place.put(buf, "  ", plain);
            place.put(buf, &cut_to(&item.about, left - 2), style(Look::Dim));
        }
        fill_to(&mut place, buf, end, plain);
        for ((text, look), width) in item.columns.iter().zip(&self.widths).take(columns) {
            let from = place.column() + GAP + width - cells(text).min(*width);
            fill_to(&mut place, buf, from, plain);
            place.put(buf, text, style(*look));
        }
        if is_chosen {
            place.fill(buf, plain);
        }
    }
}

/// Blank up to a column.
fn fill_to(place: &mut Line, buf: &mut Buffer, column: usize, style: Style) {
    while place.column() < column && place.room() > 0 {
        place.put(buf, " ", style);
    }
}

/// The text with what matches, cut to its room. A hit that lies far behind is brought into sight.
fn draw_found(
    place: &mut Line,
    buf: &mut Buffer,
    item: &Item,
    lit: &[usize],
    room: usize,
    plain: Style,
    matched: Style,
) {
    let from = item.found.first().map_or(0, |found| into_sight(&item.text, found, room));
    let shown = &item.text[from..];
    let lead = if from > 0 { "…" } else { "" };
    let shown = cut_to(shown, room.saturating_sub(lead.len().min(1)));
    place.put(buf, lead, plain);
    let mut at = from;
    for cluster in shown.graphemes(true) {
        let is_found = item.found.iter().any(|found| found.contains(&at)) || lit.contains(&at);
        place.put(buf, cluster, if is_found && cluster != "…" { matched } else { plain });
        at += cluster.len();
    }
}

/// From which byte on a text is shown so that what was found is on the screen.
fn into_sight(text: &str, found: &Range<usize>, room: usize) -> usize {
    let wanted = cells(text.get(found.clone()).unwrap_or_default()).min(room);
    if cells(&text[..found.start]) + wanted <= room.saturating_sub(1) {
        return 0;
    }
    // A third of the room stays for what stands before it.
    let before = room.saturating_sub(wanted).min(room / 3);
    let mut from = found.start;
    let mut used = 0;
    for (begin, cluster) in text[..found.start].grapheme_indices(true).rev() {
        used += cells(cluster);
        if used > before {
            break;
        }
        from = begin;
    }
    from
}

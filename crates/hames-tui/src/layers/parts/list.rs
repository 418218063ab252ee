//! A list one chooses from: it is filtered as one types, and keeps what is chosen when other rows come.
//!
//! Rows may stand under headings. What stands at the right are columns of one width; the last ones go where there is no
//! room. A list whose rows are found by the server does not filter: it says that the query has changed.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;

use super::{Edited, Field, Look, cut_to, line, numbers};
use crate::prompt::fuzzy;
use crate::prompt::paint::Line;
use crate::prompt::text::cells;
use crate::{Action, Input, Sight};

/// Rows the wheel moves.
const WHEEL_ROWS: usize = 3;
/// Cells of a row's text before its columns give way.
const MIN_TEXT: usize = 20;
/// Cells before a column.
const GAP: usize = 2;

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Item {
    /// What it stands for; no two have the same.
    pub(crate) id: String,
    /// The heading it stands under; rows of one heading stand together.
    pub(crate) group: String,
    /// What stands before the text: one or two cells, in the same place in every row.
    pub(crate) mark: (&'static str, Look),
    /// What it is called; the filter looks here first.
    pub(crate) text: String,
    /// Bytes of the text that a search found.
    pub(crate) found: Vec<Range<usize>>,
    /// More about it, where there is room. The filter looks here too.
    pub(crate) about: String,
    /// At the right. Every row of a list has as many.
    pub(crate) columns: Vec<(String, Look)>,
    /// What the filter finds though it is not shown.
    pub(crate) also: String,
}

/// What an input did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing: it is for somebody else.
    Passed,
    /// Another row may be chosen.
    Taken,
    /// Another query is written.
    Query,
    /// This row is meant.
    Picked(String),
}

/// A row that is shown: which, and the characters that match.
#[derive(Clone, Debug, PartialEq)]
struct Hit {
    item: usize,
    lit: Vec<usize>,
}

/// Rows, a filter, and what is chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    items: Vec<Item>,
    hits: Vec<Hit>,
    /// Cells of each column.
    widths: Vec<usize>,
    field: Field,
    /// Whether somebody else finds the rows.
    is_remote: bool,
    chosen: usize,
    /// The first row on the screen, headings counted.
    top: usize,
    /// Where rows were drawn, and which.
    area: Rect,
    drawn: Vec<Option<usize>>,
}

impl List {
    /// One that filters.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One whose rows somebody else finds.
    pub(crate) fn remote(query: &str) -> Self {
        Self { is_remote: true, field: Field::new(query), ..Self::default() }
    }

    /// Other rows. What was chosen stays so by its id, else its place does.
    pub(crate) fn set(&mut self, items: Vec<Item>) {
        let id = self.chosen().map(|item| item.id.clone());
        self.items = items;
        for item in &mut self.items {
            for text in [&mut item.group, &mut item.about, &mut item.also] {
                *text = line(text);
            }
            clean_found(item);
            for (text, _) in &mut item.columns {
                *text = line(text);
            }
        }
        self.filter();
        let at = id.and_then(|id| self.hits.iter().position(|hit| self.items[hit.item].id == id));
        self.chosen = at.unwrap_or(self.chosen).min(self.hits.len().saturating_sub(1));
    }

    /// Chooses a row, where it is shown.
    pub(crate) fn choose(&mut self, id: &str) {
        if let Some(at) = self.hits.iter().position(|hit| self.items[hit.item].id == id) {
            self.chosen = at;
        }
    }

    /// What is written into the filter.
    pub(crate) fn query(&self) -> &str {
        self.field.text()
    }

    /// The row that is chosen.
    pub(crate) fn chosen(&self) -> Option<&Item> {
        self.hits.get(self.chosen).map(|hit| &self.items[hit.item])
    }

    /// How many rows stand above the chosen one, where there is one.
    pub(crate) fn above(&self) -> Option<usize> {
        self.chosen().map(|_| self.chosen)
    }

    /// Whether there is nothing, whatever is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn filter(&mut self) {
        let words: Vec<String> = self.field.text().split_whitespace().map(str::to_lowercase).collect();
        if self.is_remote || words.is_empty() {
            self.hits = (0..self.items.len()).map(|item| Hit { item, lit: Vec::new() }).collect();
        } else {
            let mut scored: Vec<(i32, Hit)> = Vec::new();
            for (item, row) in self.items.iter().enumerate() {
                if let Some((score, lit)) = matched(&words, row) {
                    scored.push((score, Hit { item, lit }));
                }
            }
            // The best first, but what stands under one heading stays together where its best one stands.
            scored.sort_by_key(|(score, hit)| (-score, hit.item));
            let mut groups: Vec<&str> = Vec::new();
            for (_, hit) in &scored {
                let group = self.items[hit.item].group.as_str();
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
            scored.sort_by_key(|(_, hit)| groups.iter().position(|group| *group == self.items[hit.item].group));
            self.hits = scored.into_iter().map(|(_, hit)| hit).collect();
        }
        let columns = self.items.first().map_or(0, |item| item.columns.len());
        let width = |column: usize| {
            let of = |hit: &Hit| self.items[hit.item].columns.get(column).map_or(0, |(text, _)| cells(text));
            self.hits.iter().map(of).max().unwrap_or(0)
        };
        self.widths = (0..columns).map(width).collect();
    }

    /// Takes a key, a paste or the mouse.
    pub(crate) fn handle(&mut self, input: &Input, action: Option<Action>) -> Said {
        match input {
            Input::Key(key) => {
                if let Some(said) = self.key(key, action) {
                    return said;
                }
            }
            Input::Mouse(mouse) => return self.mouse(mouse.kind, Position::new(mouse.column, mouse.row)),
            _ => {}
        }
        match self.field.handle(input, action) {
            Edited::Passed => Said::Passed,
            Edited::Moved => Said::Taken,
            Edited::Changed => {
                self.chosen = 0;
                self.top = 0;
                if !self.is_remote {
                    self.filter();
                }
                Said::Query
            }
        }
    }

    fn key(&mut self, key: &KeyEvent, action: Option<Action>) -> Option<Said> {
        let last = self.hits.len().saturating_sub(1);
        let page = usize::from(self.area.height.saturating_sub(1).max(1));
        let is_next = key.code == KeyCode::Char('n') && key.modifiers == KeyModifiers::CONTROL;
        match (key.code, action) {
            (_, Some(Action::Next)) => self.step(true),
            // Ctrl+N goes with Ctrl+P in every list, whatever it does elsewhere.
            _ if is_next => self.step(true),
            (_, Some(Action::Previous)) => self.step(false),
            (_, Some(Action::PageDown)) => self.chosen = (self.chosen + page).min(last),
            (_, Some(Action::PageUp)) => self.chosen = self.chosen.saturating_sub(page),
            (KeyCode::Home, None) | (_, Some(Action::ToTop)) => self.chosen = 0,
            (KeyCode::End, None) | (_, Some(Action::ToEnd)) => self.chosen = last,
            (_, Some(Action::Submit)) => {
                return Some(self.chosen().map_or(Said::Taken, |item| Said::Picked(item.id.clone())));
            }
            _ => return None,
        }
        Some(Said::Taken)
    }

    /// The next row, round about.
    fn step(&mut self, forward: bool) {
        let count = self.hits.len();
        if count > 0 {
            self.chosen = (self.chosen + if forward { 1 } else { count - 1 }) % count;
        }
    }

    /// A click chooses a row, and means it where it is chosen already; the wheel moves the choice.
    fn mouse(&mut self, kind: MouseEventKind, at: Position) -> Said {
        if !self.area.contains(at) {
            return Said::Taken;
        }
        let last = self.hits.len().saturating_sub(1);
        match kind {
            MouseEventKind::ScrollDown => self.chosen = (self.chosen + WHEEL_ROWS).min(last),
            MouseEventKind::ScrollUp => self.chosen = self.chosen.saturating_sub(WHEEL_ROWS),
            MouseEventKind::Down(MouseButton::Left) => {
                let row = usize::from(at.y - self.area.y);
                match self.drawn.get(row) {
                    Some(Some(hit)) if *hit == self.chosen => {
                        return self.chosen().map_or(Said::Taken, |item| Said::Picked(item.id.clone()));
                    }
                    Some(Some(hit)) => self.chosen = *hit,
                    _ => {}
                }
            }
            _ => {}
        }
        Said::Taken
    }

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
            for (at, text) in super::wrapped(says, rows.width).iter().enumerate() {
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

/// Makes the text one clean line, and keeps the places that were found in it.
fn clean_found(item: &mut Item) {
    let mut clean = String::with_capacity(item.text.len());
    let mut places = Vec::with_capacity(item.found.len());
    let mut last = 0;
    let mut ranges: Vec<Range<usize>> = std::mem::take(&mut item.found);
    ranges.sort_by_key(|range| range.start);
    for range in ranges {
        let (Some(before), Some(found)) = (item.text.get(last..range.start), item.text.get(range.clone())) else {
            continue;
        };
        clean.push_str(&line(before));
        let from = clean.len();
        clean.push_str(&line(found));
        places.push(from..clean.len());
        last = range.end;
    }
    clean.push_str(&line(item.text.get(last..).unwrap_or_default()));
    item.text = clean;
    item.found = places;
}

/// How well a row matches all words, and the bytes of its text that do.
fn matched(words: &[String], item: &Item) -> Option<(i32, Vec<usize>)> {
    let mut score = 0;
    let mut lit = Vec::new();
    for word in words {
        if let Some(found) = fuzzy::find(word, &item.text) {
            score += found.score;
            lit.extend(found.at);
        } else {
            let behind = [&item.about, &item.also, &item.group];
            if !behind.into_iter().any(|text| text.to_lowercase().contains(word.as_str())) {
                return None;
            }
        }
    }
    Some((score, lit))
}

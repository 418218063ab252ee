//! What is selected, by the mouse or by keys, and its text without traces of how it was wrapped.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;

use super::Talk;
use super::block::Key;
use super::scroll::Place;
use super::text::floor;
use crate::{Action, Cx, Effect, Input, Outcome, Theme};

/// Bytes that are copied at most: terminals take no more.
const MAX_COPY: usize = 4 * 1024 * 1024;

/// A place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    key: Key,
    piece: usize,
    offset: u32,
}

/// What is selected, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Selection {
    from: Spot,
    to: Spot,
    /// The mouse button is down.
    is_dragged: bool,
    /// The keyboard moves its end.
    by_keys: bool,
}

impl Selection {
    pub(super) fn rename(&mut self, old: &Key, new: &Key) {
        for spot in [&mut self.from, &mut self.to] {
            if spot.key == *old {
                spot.key = new.clone();
            }
        }
    }
}

/// A selection by where its ends stand now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    from: (usize, usize, u32),
    to: (usize, usize, u32),
}

impl Selected {
    /// The part of it inside a piece.
    pub(super) fn within(&self, block: usize, piece: usize) -> Option<Range<u32>> {
        let at = (block, piece);
        let (first, last) = ((self.from.0, self.from.1), (self.to.0, self.to.1));
        if at < first || at > last {
            return None;
        }
        let from = if at == first { self.from.2 } else { 0 };
        let to = if at == last { self.to.2 } else { u32::MAX };
        (from < to).then_some(from..to)
    }
}

impl Talk {
    /// Whether keys select.
    pub(super) fn is_selecting(&self) -> bool {
        self.selection.as_ref().is_some_and(|selection| selection.by_keys)
    }

    pub(super) fn is_dragging(&self) -> bool {
        self.selection.as_ref().is_some_and(|selection| selection.is_dragged)
    }

    pub(super) fn selected_span(&self) -> Option<Selected> {
        let selection = self.selection.as_ref()?;
        let place = |spot: &Spot| Some((self.index(&spot.key)?, spot.piece, spot.offset));
        let (a, b) = (place(&selection.from)?, place(&selection.to)?);
        Some(Selected { from: a.min(b), to: a.max(b) })
    }

    /// The text that is selected.
    pub(super) fn selected_text(&mut self) -> Option<String> {
        let span = self.selected_span()?;
        let mut text = String::new();
        let mut place = Some(Place { block: span.from.0, piece: span.from.1, row: 0 });
        while let Some(at) = place.filter(|at| (at.block, at.piece) <= (span.to.0, span.to.1)) {
            let laid = self.laid(at.block, at.piece);
            if let Some(range) = span.within(at.block, at.piece) {
                let logical = &laid.sheet.text;
                let (from, to) = (floor(logical, range.start as usize), floor(logical, range.end as usize));
                text.push_str(&logical[from..to]);
            }
            if text.len() > MAX_COPY {
                text.truncate(floor(&text, MAX_COPY));
                break;
            }
            place = self.piece_after(at);
        }
        let text = text.trim_end_matches('\n');
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn spot_at(&mut self, at: Position) -> Option<Spot> {
        let place = self.place_at(at).or_else(|| self.drawn.last().copied())?;
        let lead = if place.piece == 0 { self.lead(place.block).len() } else { 0 };
        let laid = self.laid(place.block, place.piece);
        let column = usize::from(at.x.saturating_sub(self.area.x));
        let offset = match place.row.checked_sub(lead).and_then(|row| laid.sheet.rows.get(row)) {
            Some(row) => row.offset_at(column),
            None => 0,
        };
        Some(Spot { key: self.block(place.block).key.clone(), piece: place.piece, offset })
    }

    pub(super) fn press(&mut self, at: Position) {
        let spot = self.spot_at(at);
        self.selection = spot.map(|spot| Selection { from: spot.clone(), to: spot, is_dragged: true, by_keys: false });
    }

    /// The mouse moves with its button down; past an edge the text moves too.
    pub(super) fn drag(&mut self, at: Position) {
        if !self.is_dragging() {
            return;
        }
        let area = self.area;
        if at.y < area.y {
            self.scroll(-1);
        } else if at.y >= area.bottom() {
            self.scroll(1);
        }
        let y = at.y.clamp(area.y, area.bottom().saturating_sub(1).max(area.y));
        // The cell under the mouse belongs to it.
        let to = self.spot_at(Position::new(at.x.saturating_add(1), y));
        if let (Some(selection), Some(to)) = (&mut self.selection, to) {
            selection.to = to;
        }
    }

    /// The button is up: what is selected, or nothing where it was only a click.
    pub(super) fn release(&mut self) -> Option<String> {
        let selection = self.selection.as_mut()?;
        selection.is_dragged = false;
        let text = if selection.from == selection.to { None } else { self.selected_text() };
        if text.is_none() {
            self.selection = None;
        }
        text
    }

    /// Selecting by keys begins at the first row of the last block that is on the screen.
    pub(super) fn begin_select(&mut self) {
        let Some(place) = self.drawn.iter().rev().find(|place| place.piece == 0 || place.row == 0).copied() else {
            return;
        };
        let lead = if place.piece == 0 { self.lead(place.block).len() } else { 0 };
        let laid = self.laid(place.block, place.piece);
        let row = place.row.saturating_sub(lead);
        let offset = laid.sheet.rows.get(row).map_or(0, |row| row.range.start);
        let spot = Spot { key: self.block(place.block).key.clone(), piece: place.piece, offset };
        self.selection = Some(Selection { from: spot.clone(), to: spot, is_dragged: false, by_keys: true });
    }

    /// A key while something is being selected by keys: arrows move, with Shift they select, Enter copies.
    pub(super) fn select_key(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Option<Outcome> {
        let Input::Key(key) = input else { return None };
        if !self.selection.as_ref()?.by_keys {
            if key.code == KeyCode::Esc {
                self.selection = None;
                return Some(Outcome::Taken);
            }
            return None;
        }
        let extends = key.modifiers.contains(KeyModifiers::SHIFT);
        match (key.code, action) {
            (KeyCode::Esc, _) | (_, Some(Action::Select)) => self.selection = None,
            (KeyCode::Enter, _) | (_, Some(Action::Copy)) => {
                if let Some(text) = self.selected_text() {
                    cx.push(Effect::Copy(text));
                }
                self.selection = None;
            }
            (KeyCode::Left, _) => self.step(false, extends),
            (KeyCode::Right, _) => self.step(true, extends),
            (KeyCode::Up, _) => self.line(-1, extends),
            (KeyCode::Down, _) => self.line(1, extends),
            (KeyCode::PageUp | KeyCode::PageDown, _) => return None,
            _ => {}
        }
        Some(Outcome::Taken)
    }

    fn put(&mut self, spot: Spot, extends: bool) {
        if let Some(selection) = &mut self.selection {
            if !extends {
                selection.from = spot.clone();
            }
            selection.to = spot;
        }
    }

    /// One grapheme on or back, over the ends of pieces too.
    fn step(&mut self, forward: bool, extends: bool) {
        let Some(mut spot) = self.selection.as_ref().map(|selection| selection.to.clone()) else { return };
        let Some(block) = self.index(&spot.key) else { return };
        let text = self.laid(block, spot.piece).sheet.text.clone();
        let at = floor(&text, spot.offset as usize);
        let next = if forward {
            text[at..].graphemes(true).next().map(|g| at + g.len()).filter(|at| *at < text.len())
        } else {
            text[..at].graphemes(true).next_back().map(|g| at - g.len())
        };
        match next {
            Some(next) => spot.offset = next as u32,
            None => return self.line(if forward { 1 } else { -1 }, extends),
        }
        self.put(spot, extends);
    }

    /// One row on or back; the conversation follows.
    fn line(&mut self, rows: isize, extends: bool) {
        let Some(spot) = self.selection.as_ref().map(|selection| selection.to.clone()) else { return };
        let Some(place) = self.place_of(&spot) else { return };
        let to = if rows < 0 { self.up(place, 1) } else { self.down(place, 1).0 };
        let lead = if to.piece == 0 { self.lead(to.block).len() } else { 0 };
        let laid = self.laid(to.block, to.piece);
        let offset = to.row.checked_sub(lead).and_then(|row| laid.sheet.rows.get(row)).map_or(0, |row| row.range.start);
        let key = self.block(to.block).key.clone();
        self.put(Spot { key, piece: to.piece, offset }, extends);
        if !self.drawn.contains(&to) {
            self.scroll(rows);
        }
    }

    fn place_of(&mut self, spot: &Spot) -> Option<Place> {
        let block = self.index(&spot.key)?;
        let lead = if spot.piece == 0 { self.lead(block).len() } else { 0 };
        let laid = self.laid(block, spot.piece);
        let row = laid.sheet.rows.iter().rposition(|row| row.range.start <= spot.offset).unwrap_or(0);
        Some(Place { block, piece: spot.piece, row: row + lead })
    }

    /// The cell the keyboard stands at.
    pub(super) fn draw_cursor(&mut self, area: Rect, buf: &mut Buffer, theme: Theme) {
        let Some(selection) = self.selection.clone().filter(|selection| selection.by_keys) else { return };
        let Some(place) = self.place_of(&selection.to) else { return };
        let Some(y) = self.drawn.iter().position(|drawn| *drawn == place) else { return };
        let lead = if place.piece == 0 { self.lead(place.block).len() } else { 0 };
        let laid = self.laid(place.block, place.piece);
        let Some(row) = place.row.checked_sub(lead).and_then(|row| laid.sheet.rows.get(row)) else { return };
        let at = selection.to.offset;
        let x = row.columns_of(&(at..at + 1)).first().map_or(0, |columns| columns.start);
        if x < area.width {
            let cell = Rect { x: area.x + x, y: area.y + y as u16, width: 1, height: 1 };
            buf.set_style(cell, theme.matched().patch(theme.chosen()));
        }
    }
}

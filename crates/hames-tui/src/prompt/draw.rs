//! How the prompt is drawn: what waits, an open list, what goes along, the text, the hint line.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::command::{self, Parsed};
use super::draft::wrap::{Row, Rows};
use super::hint::{Situation, hint};
use super::menu::Of;
use super::paint::Line;
use super::text::{cells, fit, shown};
use super::{Focus, Prompt, path};
use crate::{Sight, Theme};

/// Rows of text at most.
const MAX_TEXT: usize = 12;
/// Rows of attachments at most.
const MAX_ALONG: usize = 3;
/// Narrower screens get a second row of hints while an agent works.
const NARROW: usize = 72;

/// Rows of each part, from the top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    pending: usize,
    list: usize,
    along: usize,
    text: usize,
    hint: usize,
}

impl Parts {
    fn sum(self) -> usize {
        self.pending + self.list + self.along + self.text + self.hint
    }

    /// As much of it as there is room for: a row of text, the hint, the header of what waits, then the rest.
    fn within(self, height: usize) -> Self {
        let mut left = height;
        let mut take = |wanted: usize| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let mut parts = Self { text: take(1), hint: take(1), pending: take(self.pending.min(1)), ..Self::default() };
        parts.list = take(self.list);
        parts.hint += take(self.hint.saturating_sub(1));
        parts.along = take(self.along);
        parts.text += take(self.text.saturating_sub(1));
        parts.pending += take(self.pending.saturating_sub(1));
        parts
    }
}

impl Prompt {
    /// Rows it wants in a width, `max` at most.
    pub(crate) fn height(&mut self, width: u16, max: u16, sight: Sight<'_>) -> u16 {
        self.follow(sight.face);
        self.wanted(width, sight).sum().min(max as usize) as u16
    }

    fn wanted(&mut self, width: u16, sight: Sight<'_>) -> Parts {
        let (_, inner) = margins(width);
        self.width = inner;
        let rows = self.rows();
        let text = rows.len().min(MAX_TEXT);
        self.laid = Some((self.now.draft.version(), rows));
        let pending = sight.face.view.as_ref().map(|view| view.pending.as_slice()).unwrap_or_default();
        Parts {
            pending: self.section.height(pending, width as usize),
            list: self.menu.as_ref().map_or(0, |menu| menu.height()),
            along: self.along(width as usize).len().min(MAX_ALONG),
            text,
            hint: self.hint_rows(width as usize, sight).len().max(1),
        }
    }

    /// Draws it, and says where the cursor stands, where keys go into the text.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        self.follow(sight.face);
        let area = area.intersection(buf.area);
        if area.is_empty() {
            self.seen = (Rect::default(), 0);
            return None;
        }
        let parts = self.wanted(area.width, sight).within(area.height as usize);
        let mut y = area.y;
        let mut next = |height: usize| {
            let part = Rect { y, height: height as u16, ..area };
            y += height as u16;
            part
        };
        let view = sight.face.view.as_ref();
        let pending = view.map(|view| view.pending.as_slice()).unwrap_or_default();
        let paused = view.is_some_and(|view| view.paused);
        let has_keys = self.focus == Focus::Pending;
        self.section.draw(pending, paused, has_keys, next(parts.pending), buf, sight.theme);
        let list = next(parts.list);
        if let Some(menu) = &self.menu {
            menu.draw(list, buf, sight.theme);
        }
        self.draw_along(next(parts.along), buf, sight.theme);
        let cursor = self.draw_text(next(parts.text), buf, sight);
        self.draw_hint(next(parts.hint), buf, sight);
        cursor.filter(|_| {
            self.focus == Focus::Text && !matches!(self.menu.as_ref().map(|menu| menu.of), Some(Of::History))
        })
    }

    /// What goes along, in rows.
    fn along(&self, width: usize) -> Vec<Vec<(usize, String)>> {
        let mut rows: Vec<Vec<(usize, String)>> = Vec::new();
        let mut used = 0;
        for (index, attachment) in self.now.attachments.iter().enumerate() {
            let label = fit(&attachment.label(), width.saturating_sub(3)).into_owned();
            let cells = cells(&label) + 1;
            match rows.last_mut() {
                Some(row) if used + cells < width => row.push((index, label)),
                _ => {
                    rows.push(vec![(index, label)]);
                    used = 2;
                }
            }
            used += cells;
        }
        rows
    }

    fn draw_along(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let rows = self.along(area.width as usize);
        let marked = match self.focus {
            Focus::Attachment(index) => rows.iter().position(|row| row.iter().any(|(i, _)| *i == index)).unwrap_or(0),
            _ => 0,
        };
        let first = (marked + 1).saturating_sub(area.height as usize);
        for (line, row) in rows.iter().skip(first).take(area.height as usize).enumerate() {
            let mut out = Line::new(area, line as u16);
            out.put(buf, "+ ", theme.dim());
            for (index, label) in row {
                let attachment = &self.now.attachments[*index];
                let style = match (attachment.failure(), attachment.parts()) {
                    (Some(_), _) => theme.bad(),
                    (None, Some(_)) => theme.name(),
                    (None, None) => theme.dim(),
                };
                let style = if self.focus == Focus::Attachment(*index) { style.patch(theme.chosen()) } else { style };
                out.put(buf, label, style).put(buf, " ", theme.text());
            }
        }
    }

    fn draw_text(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let (margin, _) = margins(area.width);
        let text = Rect { x: area.x + margin, width: area.width - margin, ..area };
        let height = area.height as usize;
        if height == 0 {
            self.seen = (Rect::default(), 0);
            return None;
        }
        let rows = self.rows();
        let draft = &self.now.draft;
        let (row, column) = rows.place(draft.text(), draft.piece().chips(), draft.cursor());
        let lowest = rows.len().saturating_sub(height);
        let first = self.seen.1.min(row).max((row + 1).saturating_sub(height)).min(lowest);
        for line in 0..height {
            let Some(shown) = rows.get(first + line) else { break };
            self.draw_row(&rows, shown, text, line as u16, buf, sight.theme);
            if margin > 0 {
                let mark = match line {
                    0 if first > 0 => "↑ ",
                    line if line + 1 == height && first + height < rows.len() => "↓ ",
                    0 => "› ",
                    _ => "  ",
                };
                let style = if mark == "› " { sight.theme.user() } else { sight.theme.dim() };
                Line::new(area, line as u16).put(buf, mark, style);
            }
        }
        if draft.is_empty() {
            let says = if sight.face.is_busy() { "say something while it works" } else { "what is to be done?" };
            Line::new(Rect { x: text.x + 1.min(text.width), width: text.width.saturating_sub(1), ..text }, 0).put(
                buf,
                &fit(says, text.width.saturating_sub(1) as usize),
                sight.theme.dim(),
            );
        }
        self.seen = (text, first);
        self.laid = Some((self.now.draft.version(), rows));
        let x = text.x + (column as u16).min(text.width.saturating_sub(1));
        Some(Position { x, y: text.y + (row - first) as u16 })
    }

    fn draw_row(&self, rows: &Rows, row: Row, area: Rect, line: u16, buf: &mut Buffer, theme: &Theme) {
        let draft = &self.now.draft;
        let selected = draft.selection();
        let mut out = Line::new(area, line);
        rows.walk(draft.text(), draft.piece().chips(), row, |at, cluster, chip| {
            let mut style = if chip.is_some() { theme.name() } else { theme.text() };
            if chip.is_none() && shown(cluster, 0).0 != cluster && cluster != "\t" {
                style = theme.warn();
            }
            if selected.as_ref().is_some_and(|range| range.contains(&at)) {
                style = style.patch(theme.chosen());
            }
            match chip {
                Some(chip) => out.put(buf, &fit(chip.label(), rows.width()), style),
                None => out.put(buf, cluster, style),
            };
            out.room() > 0
        });
        // A selected line end is to be seen too.
        if selected.is_some_and(|range| range.contains(&row.end)) && !row.goes_on {
            out.put(buf, " ", theme.chosen());
        }
    }

    /// The hints in rows: as many as fit, and a second row where several keys send and the screen is narrow.
    fn hint_rows(&self, width: usize, sight: Sight<'_>) -> Vec<String> {
        let several = sight.face.is_busy() && !self.now.draft.is_empty() && self.menu.is_none();
        let limit = if (several && width < NARROW) || self.focus == Focus::Pending { 2 } else { 1 };
        let mut rows: Vec<String> = Vec::new();
        for part in self.hints(sight).into_iter().filter(|part| !part.is_empty()) {
            let part = super::text::clean(&part).replace('\n', " ");
            let is_full = rows.len() == limit;
            match rows.last_mut() {
                Some(row) if cells(row) + 3 + cells(&part) <= width => {
                    row.push_str(" · ");
                    row.push_str(&part);
                }
                Some(_) if is_full => break,
                _ => rows.push(fit(&part, width).into_owned()),
            }
        }
        rows
    }

    fn draw_hint(&self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let is_noted = self.note.is_some() || self.now.attachments.iter().any(|a| a.failure().is_some());
        let style: Style = if is_noted { sight.theme.warn() } else { sight.theme.dim() };
        for (row, line) in self.hint_rows(area.width as usize, sight).iter().enumerate() {
            let mut out = Line::new(area, row as u16);
            for (index, piece) in line.split("Build").enumerate() {
                if index > 0 {
                    out.put(buf, "Build", sight.theme.build());
                }
                out.put(buf, piece, style);
            }
        }
    }

    /// What the hint line says, the most important first.
    pub(crate) fn hints(&self, sight: Sight<'_>) -> Vec<String> {
        let view = sight.face.view.as_ref();
        if let (Focus::Pending, Some(view)) = (self.focus, view) {
            return self.note.iter().cloned().chain(self.section.hint(view, sight.keys)).collect();
        }
        let draft = &self.now.draft;
        let may_be_command = self.now.editing.is_none();
        let attachments = &self.now.attachments;
        hint(&Situation {
            keys: sight.keys,
            link: &sight.face.link,
            view,
            menu: self.menu.as_ref(),
            parsed: if may_be_command {
                command::parse(&draft.piece().text().replace(super::text::CHIP, "x"))
            } else {
                Parsed::Text
            },
            text: draft.text(),
            is_empty: draft.is_empty() && attachments.is_empty(),
            waits: self.waits,
            uploading: attachments
                .iter()
                .filter(|a| a.parts().is_none() && a.failure().is_none())
                .map(|a| a.name())
                .collect(),
            failed: attachments.iter().find_map(|a| Some((a.name(), a.failure()?))),
            editing: self.editing(sight.face).map(|(_, waits)| waits),
            on_attachments: matches!(self.focus, Focus::Attachment(_)),
            offer: self.offer.as_ref().map(|(_, paths)| match paths.as_slice() {
                [path] => path::name(path).to_owned(),
                paths => format!("{} files", paths.len()),
            }),
            note: self.note.as_deref(),
        })
    }
}

/// Cells before the text, and cells of a row of text: one is left for the cursor.
fn margins(width: u16) -> (u16, usize) {
    let margin = if width >= 6 { 2 } else { 0 };
    (margin, (width - margin).saturating_sub(1).max(1) as usize)
}

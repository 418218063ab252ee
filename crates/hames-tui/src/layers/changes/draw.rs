//! The screen of proposed changes: the list, and beside or below it what the chosen one would do.

use hames_protocol::api::Change;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Proposed, folder, relative};
use crate::Sight;
use crate::layers::parts::{Look, asking, frame, line, numbers, wrapped};
use crate::prompt::paint::Line;
use crate::prompt::text::cells;
use crate::talk::text::cut_to;

/// From this width on, list and diff stand side by side.
const WIDE: u16 = 110;

impl Proposed {
    pub(super) fn draw_all(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let inner = frame(area, buf, sight, &self.title());
        if inner.is_empty() {
            return;
        }
        if self.all().is_empty() {
            self.list = Rect::ZERO;
            self.draw_nothing(inner, buf, sight);
        } else {
            let (list, rest) = parts(inner, self.all().len());
            self.draw_list(list, buf, sight);
            self.draw_chosen(rest, buf, sight);
        }
        if let Some((confirm, _)) = &mut self.confirm {
            confirm.draw(area, buf, sight);
        }
    }

    fn title(&self) -> String {
        let all = self.all();
        if all.is_empty() {
            return "Proposed changes".into();
        }
        let (added, removed) =
            all.iter().fold((0u64, 0u64), |(a, r), c| (a.saturating_add(c.added), r.saturating_add(c.removed)));
        let marked = if self.marked.is_empty() { String::new() } else { format!(" · {} marked", self.marked.len()) };
        let (added, removed) = (numbers::count(added), numbers::count(removed));
        format!("Proposed changes · {} · +{added} −{removed}{marked}", numbers::count(all.len() as u64))
    }

    /// Where there is nothing, what to do next.
    fn draw_nothing(&self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let mut said = self.said.clone();
        match (&self.session, &self.unreadable, &self.open) {
            (None, ..) => said.push(("There is no session yet; your first message makes one.".into(), Look::Text)),
            (_, Some(why), _) => said.push((format!("The changes cannot be read: {why} · r tries again"), Look::Bad)),
            (.., None) => said.push((asking(sight).into(), Look::Dim)),
            (.., Some(_)) => {
                said.push(("Nothing is proposed.".into(), Look::Text));
                let how = "In Analyze the agent changes no file; what it would change is listed here, to be applied or \
                           discarded.";
                said.push((how.into(), Look::Dim));
            }
        }
        draw_said(&said, area, buf, sight);
    }

    fn draw_list(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let height = usize::from(area.height).max(1);
        self.list = area;
        self.top = self.top.min(self.chosen).max((self.chosen + 1).saturating_sub(height));
        self.top = self.top.min(self.all().len().saturating_sub(height));
        for (at, change) in self.all().iter().enumerate().skip(self.top).take(height) {
            self.draw_row(Line::new(area, (at - self.top) as u16), buf, at, change, sight);
        }
    }

    fn draw_row(&self, mut row: Line, buf: &mut Buffer, at: usize, change: &Change, sight: Sight<'_>) {
        let is_chosen = at == self.chosen;
        let style = |style: Style| if is_chosen { sight.theme.chosen() } else { style };
        let theme = sight.theme;
        let mark = if self.marked.contains(&change.path) { "●" } else { " " };
        row.put(buf, if is_chosen { "›" } else { " " }, style(theme.text())).put(buf, mark, style(theme.warn()));
        row.put(buf, " ", style(theme.text()));
        let facts = facts(change);
        let wide: usize = facts.iter().map(|(text, _)| cells(text) + 1).sum();
        let room = row.room().saturating_sub(wide);
        let path = from_its_end(&relative(&change.path, folder(sight.face)), room);
        row.put(buf, &path, style(theme.text()));
        for (text, look) in facts {
            row.put(buf, " ", style(theme.text())).put(buf, &text, style(look.style(theme)));
        }
        if is_chosen {
            row.fill(buf, style(theme.text()));
        }
    }

    fn draw_chosen(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let Some(change) = self.open.as_ref().and_then(|open| open.get(self.chosen)) else { return };
        let area = if self.said.is_empty() {
            area
        } else {
            let rows = draw_said(&self.said, area, buf, sight);
            Rect { y: area.y + rows, height: area.height - rows, ..area }
        };
        let conflict = change.conflict.as_deref().map(|why| format!("It cannot be applied: {}", line(why)));
        let about = match (conflict, change.diff.as_deref().unwrap_or_default(), change.kind.as_str()) {
            (Some(why), ..) => Some((why, Look::Warn)),
            (None, "", "folder") => Some(("A folder would be made.".to_owned(), Look::Dim)),
            (None, "", "remove") => Some(("It would be removed; there is no text to show.".to_owned(), Look::Dim)),
            (None, "", _) => Some(("It is no text, or nothing of its text changes.".to_owned(), Look::Dim)),
            _ => None,
        };
        let rows = about.map_or(0, |about| draw_said(&[about], area, buf, sight));
        let area = Rect { y: area.y + rows, height: area.height - rows, ..area };
        self.diff.draw(change, self.readings, area, buf, *sight.theme);
    }
}

/// List and diff, with a row or a column between them.
fn parts(area: Rect, changes: usize) -> (Rect, Rect) {
    if area.width >= WIDE {
        let width = area.width / 3;
        let list = Rect { width, ..area };
        return (list, Rect { x: area.x + width + 2, width: area.width - width - 2, ..area });
    }
    let most = (area.height / 3).max(1);
    let height = u16::try_from(changes).unwrap_or(u16::MAX).min(most);
    let gap = u16::from(area.height > height + 2);
    let y = area.y + height + gap;
    (Rect { height, ..area }, Rect { y, height: area.bottom().saturating_sub(y), ..area })
}

/// What a row says behind the path.
fn facts(change: &Change) -> Vec<(String, Look)> {
    let mut facts = Vec::new();
    if change.conflict.is_some() {
        facts.push(("conflict".to_owned(), Look::Warn));
    }
    match change.kind.as_str() {
        "remove" => facts.push(("removed".to_owned(), Look::Bad)),
        "folder" => facts.push(("folder".to_owned(), Look::Dim)),
        _ => {}
    }
    if change.diff.is_some() {
        facts.push((format!("+{}", numbers::count(change.added)), Look::Good));
        facts.push((format!("−{}", numbers::count(change.removed)), Look::Bad));
    }
    facts
}

/// A path whose end tells it from others: its beginning gives way.
fn from_its_end(path: &str, room: usize) -> String {
    if cells(path) <= room {
        return path.to_owned();
    }
    let tail = path.char_indices().map(|(at, _)| &path[at..]).find(|tail| cells(tail) < room);
    match tail {
        Some(tail) => format!("…{tail}"),
        None => cut_to(path, room),
    }
}

/// Lines of words, wrapped; says how many rows they took. Half of the room stays for what they are about.
fn draw_said(said: &[(String, Look)], area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> u16 {
    let most = area.height.div_ceil(2).max(area.height.min(3));
    let mut at = 0;
    for (text, look) in said {
        for row in wrapped(text, area.width) {
            if at >= most {
                return at;
            }
            Line::new(area, at).put(buf, &row, look.style(sight.theme));
            at += 1;
        }
    }
    at
}

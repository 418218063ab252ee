//! A line to write into.

use hames_protocol::is_unprintable;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};

use crate::prompt::is_typed;
use crate::prompt::paint::Line;
use crate::prompt::text::{before, behind, ceil, cells, clean, floor, word_before, word_behind};
use crate::{Action, Input, Sight};

/// Bytes it holds where nothing else is said: no name, path or query is longer.
const MAX_BYTES: usize = 4096;

/// What an input did to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// Nothing: it is for somebody else.
    Passed,
    /// The cursor may have moved.
    Moved,
    /// The text is another one.
    Changed,
}

/// Text of one line, and a cursor in it. A paste is joined into the line; characters that rule a terminal or turn the
/// direction are left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    text: String,
    cursor: usize,
    /// Bytes it holds.
    limit: usize,
}

impl Default for Field {
    fn default() -> Self {
        Self { text: String::new(), cursor: 0, limit: MAX_BYTES }
    }
}

impl Field {
    /// With text in it, the cursor behind it.
    pub(crate) fn new(text: &str) -> Self {
        let mut field = Self::default();
        field.insert(text);
        field
    }

    /// The same, for so many bytes.
    pub(crate) fn up_to(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// What is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn insert(&mut self, text: &str) {
        let spaced = clean(text).into_owned();
        let spaced = spaced.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c });
        for c in spaced.filter(|c| !is_unprintable(*c)) {
            if self.text.len() + c.len_utf8() > self.limit {
                return;
            }
            self.text.insert(self.cursor, c);
            self.cursor += c.len_utf8();
        }
        // What was typed may have joined with what stands behind it.
        self.cursor = ceil(&self.text, self.cursor);
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = floor(&self.text, from);
    }

    /// Takes a key or a paste.
    pub(crate) fn handle(&mut self, input: &Input, action: Option<Action>) -> Edited {
        let length = self.text.len();
        match input {
            Input::Paste(text) => self.insert(text),
            Input::Key(key) if !self.key(key, action) => return Edited::Passed,
            Input::Key(_) => {}
            _ => return Edited::Passed,
        }
        // Every change makes it longer or shorter.
        if self.text.len() == length { Edited::Moved } else { Edited::Changed }
    }

    fn key(&mut self, key: &KeyEvent, action: Option<Action>) -> bool {
        let (text, at) = (self.text.as_str(), self.cursor);
        let is_bare = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        match (key.code, action) {
            (_, Some(Action::LineStart)) => self.cursor = 0,
            (_, Some(Action::LineEnd)) => self.cursor = text.len(),
            (_, Some(Action::WordLeft)) => self.cursor = word_before(text, at),
            (_, Some(Action::WordRight)) => self.cursor = word_behind(text, at),
            (_, Some(Action::DeleteBack)) => self.delete(before(text, at), at),
            (_, Some(Action::KillWord)) => self.delete(word_before(text, at), at),
            (_, Some(Action::KillWordAhead)) => self.delete(at, word_behind(text, at)),
            (_, Some(Action::KillToStart)) => self.delete(0, at),
            (_, Some(Action::KillToEnd)) => self.delete(at, text.len()),
            // It opens an editor elsewhere; in a line it ends it, as everywhere in terminals.
            (KeyCode::Char('e'), _) if key.modifiers == KeyModifiers::CONTROL => self.cursor = text.len(),
            (KeyCode::Left, None) if is_bare => self.cursor = before(text, at),
            (KeyCode::Right, None) if is_bare => self.cursor = behind(text, at),
            (KeyCode::Home, None) if is_bare => self.cursor = 0,
            (KeyCode::End, None) if is_bare => self.cursor = text.len(),
            (KeyCode::Backspace, None) if is_bare => self.delete(before(text, at), at),
            (KeyCode::Delete, None) if is_bare => self.delete(at, behind(text, at)),
            (KeyCode::Char(c), None) if is_typed(key) => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => return false,
        }
        true
    }

    /// Draws it behind a label, scrolled so that the cursor is seen; says where that is.
    pub(crate) fn draw(&self, row: Rect, buf: &mut Buffer, label: &str, sight: Sight<'_>) -> Option<Position> {
        if row.is_empty() {
            return None;
        }
        let mut line = Line::new(row, 0);
        line.put(buf, label, sight.theme.user());
        // One cell for the cursor, one for what tells that something stands before.
        let room = line.room().saturating_sub(2);
        let mut from = 0;
        while cells(&self.text[from..self.cursor]) > room {
            from = behind(&self.text, from);
        }
        line.put(buf, if from > 0 { "…" } else { "" }, sight.theme.dim());
        line.put(buf, &self.text[from..self.cursor], sight.theme.text());
        let x = row.x + line.column().min(usize::from(row.width) - 1) as u16;
        line.put(buf, &self.text[self.cursor..], sight.theme.text());
        Some(Position::new(x, row.y))
    }
}

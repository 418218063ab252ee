//! A list one chooses from: it is filtered as one types, and keeps what is chosen when other rows come.
//!
//! Rows may stand under headings. What stands at the right are columns of one width; the last ones go where there is no
//! room. A list whose rows are found by the server does not filter: it says that the query has changed.

mod draw;
mod filter;

use std::ops::Range;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{Edited, Field, Look, line};
use crate::{Action, Input};
use filter::clean_found;

/// Rows the wheel moves.
const WHEEL_ROWS: usize = 3;

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
}

//! The list over the prompt: commands, files, earlier messages. It holds what is chosen and draws; what a choice means is
//! the prompt's matter.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::paint::Line;
use crate::Theme;

/// Rows it shows at once.
const MAX_ROWS: usize = 8;

/// What the list is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Commands.
    Commands,
    /// Files; the mention begins at this byte of the draft.
    Files(usize),
    /// What was sent before.
    History,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// What it stands for.
    pub(crate) value: String,
    /// Its first bytes that match.
    pub(crate) matched: Vec<usize>,
    /// What stands behind it.
    pub(crate) about: String,
}

/// A list.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    /// Of what.
    pub(crate) of: Of,
    /// What was typed to choose.
    pub(crate) query: String,
    items: Vec<Item>,
    chosen: usize,
    /// Whether more is being looked for.
    pub(crate) is_looking: bool,
    /// Whether there are more than are listed.
    pub(crate) more: bool,
}

impl Menu {
    /// An empty list.
    pub(crate) fn new(of: Of) -> Self {
        Self { of, query: String::new(), items: Vec::new(), chosen: 0, is_looking: false, more: false }
    }

    /// Other rows; what was chosen stays chosen where it still stands at its place.
    pub(crate) fn set(&mut self, items: Vec<Item>) {
        let kept = self.chosen().map(|item| item.value.clone());
        let same = kept.and_then(|kept| items.get(self.chosen).filter(|item| item.value == kept));
        if same.is_none() {
            self.chosen = 0;
        }
        self.items = items;
    }

    /// Whether there is nothing to choose from.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The row that is chosen.
    pub(crate) fn chosen(&self) -> Option<&Item> {
        self.items.get(self.chosen)
    }

    /// Another row, round about.
    pub(crate) fn step(&mut self, forward: bool) {
        let count = self.items.len();
        if count > 0 {
            self.chosen = (self.chosen + if forward { 1 } else { count - 1 }) % count;
        }
    }

    /// Rows it wants.
    pub(crate) fn height(&self) -> usize {
        match (self.items.len(), self.of) {
            (0, Of::Files(_) | Of::History) => 1,
            (count, _) => count.min(MAX_ROWS),
        }
    }

    /// Draws as many rows as there are, the chosen one among them.
    pub(crate) fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        if self.items.is_empty() && area.height > 0 {
            let says = match (self.of, self.is_looking) {
                (Of::Files(_), true) => "looking for files …",
                (Of::Files(_), false) => "no file of this name",
                _ => "nothing was sent like this",
            };
            Line::new(area, 0).put(buf, "  ", theme.text()).put(buf, says, theme.dim());
            return;
        }
        let rows = area.height as usize;
        let first = (self.chosen + 1).saturating_sub(rows);
        let longest = self.items.iter().map(|item| super::text::cells(&item.value)).max().unwrap_or(0);
        let column = longest.min(area.width as usize / 2) + 4;
        for (row, (index, item)) in self.items.iter().enumerate().skip(first).take(rows).enumerate() {
            let is_chosen = index == self.chosen;
            let style = if is_chosen { theme.chosen() } else { theme.text() };
            let mut line = Line::new(area, row as u16);
            line.put(buf, if is_chosen { "› " } else { "  " }, style);
            draw_value(&mut line, buf, item, style, theme);
            if !item.about.is_empty() {
                line.go_to(column).put(buf, &item.about, if is_chosen { style } else { theme.dim() });
            }
            if is_chosen {
                line.fill(buf, style);
            }
        }
    }
}

fn draw_value(line: &mut Line, buf: &mut Buffer, item: &Item, style: Style, theme: &Theme) {
    let mut from = 0;
    for at in &item.matched {
        let Some(letter) = item.value.get(*at..).and_then(|rest| rest.chars().next()) else { continue };
        line.put(buf, &item.value[from..*at], style);
        from = at + letter.len_utf8();
        line.put(buf, &item.value[*at..from], style.patch(theme.matched()));
    }
    line.put(buf, &item.value[from..], style);
}

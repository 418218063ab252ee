//! What layers are made of: a list that is filtered as one types, a line to write into, a question before something is done
//! that cannot be taken back, text that is scrolled, and the frame around them.
//!
//! They are values like everything here: inputs go in, what happened comes out, and they can be drawn into an area of any
//! size. They ask nothing of the server and know no layer. Text from outside goes through [`line()`] or is drawn by parts that
//! do that: control characters are shown and never obeyed.

mod ago;
mod ask;
mod confirm;
mod field;
mod frame;
#[cfg(test)]
pub(crate) mod kit;
mod list;
mod scroll;
#[cfg(test)]
mod tests;

use ratatui::style::{Modifier, Style};

pub(crate) use crate::talk::numbers;
use crate::talk::text::{Run, Sheet, Wrap};
pub(crate) use crate::talk::text::{clean_line as line, cut_to};
use crate::{Sight, Theme};
pub(crate) use ago::ago;
pub(crate) use ask::{Ask, Asked};
pub(crate) use confirm::{Confirm, Decided};
pub(crate) use field::{Edited, Field};
pub(crate) use frame::{dialog, foot, frame, frame_in};
pub(crate) use list::{Item, List, Said};
pub(crate) use scroll::Scroll;

/// What a piece of text looks like, by what it means: colours are known only when it is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    /// Ordinary.
    #[default]
    Text,
    /// What stands back.
    Dim,
    /// A name, a heading.
    Name,
    /// Success, added lines.
    Good,
    /// Errors, removed lines.
    Bad,
    /// What should be noticed.
    Warn,
    /// What a search found.
    Matched,
}

impl Look {
    pub(crate) fn style(self, theme: &Theme) -> Style {
        match self {
            Look::Text => theme.text(),
            Look::Dim => theme.dim(),
            Look::Name => theme.name(),
            Look::Good => theme.good(),
            Look::Bad => theme.bad(),
            Look::Warn => theme.warn(),
            Look::Matched => theme.matched(),
        }
    }

    /// The same in a row that is reversed: what the look adds to it besides its colour.
    fn reversed(self, theme: &Theme) -> Style {
        theme.chosen().add_modifier(self.style(theme).add_modifier & !Modifier::DIM)
    }
}

/// What stands in place of something that was asked for: nothing at first, because an answer mostly comes at once.
pub(crate) fn asking(sight: Sight<'_>) -> &'static str {
    if sight.face.slow.is_some() { "asking the server …" } else { "" }
}

/// A number with its noun: `1 turn`, `3 turns`.
pub(crate) fn plural(n: u64, one: &str) -> String {
    format!("{} {one}{}", numbers::count(n), if n == 1 { "" } else { "s" })
}

/// Paths that are named where there may be many.
const PATHS: usize = 4;

/// The first paths, as they are called in a folder, and how many more there are.
pub(crate) fn some_paths<'a>(paths: impl ExactSizeIterator<Item = &'a str>, folder: &str) -> String {
    let more = paths.len().saturating_sub(PATHS) as u64;
    let below = |path: &'a str| path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
    let named: Vec<&str> = paths.take(PATHS).map(below).collect();
    let more = if more > 0 { format!(" and {} more", numbers::count(more)) } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// A text in rows of a width.
pub(crate) fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut sheet = Sheet::new(width);
    sheet.flow(&[], &[], &[Run::new(text, Style::new())], Wrap::Words);
    sheet.rows.iter().map(|row| row.spans.iter().map(|span| span.text.as_str()).collect()).collect()
}

//! The line that says what keys do now, and what is said in its place: what just happened, and what is wrong with the
//! connection. What does not fit into it stands above it, so that nothing is cut.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{Link, Sight};

/// Rows of what has to be read whole.
const NOTICE_ROWS: usize = 20;
/// Rows of what the keys of a layer do.
const HINT_ROWS: usize = 3;
/// Between two parts of a hint.
const GAP: &str = " · ";

/// Where it is said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The last row of the hint.
    pub(super) row: Rect,
    /// What is free above it.
    pub(super) room: Rect,
}

/// What the keys of a layer do, in rows: the first parts are the last to go.
pub(crate) fn rows(hint: &str, width: u16) -> Vec<String> {
    let width = usize::from(width);
    let mut rows: Vec<String> = Vec::new();
    for part in clean(hint).split(GAP) {
        let is_full = rows.len() == HINT_ROWS;
        match rows.last_mut() {
            Some(row) if row.width() + GAP.width() + part.width() <= width => {
                row.push_str(GAP);
                row.push_str(part);
            }
            _ if is_full => break,
            _ => rows.push(part.to_owned()),
        }
    }
    rows
}

/// Says what is to be said; `top` are the rows of the keys that hold now, where they are not the prompt's own.
pub(super) fn draw(place: Place, buf: &mut Buffer, sight: Sight<'_>, top: &[String]) {
    let lost = match &sight.face.link {
        Link::Lost(why) if top.is_empty() => Some(format!("Connecting again: {why}")),
        _ => None,
    };
    let said = sight.face.notice.clone().or(lost);
    let fits = said.as_ref().is_some_and(|text| !text.contains('\n') && text.width() <= usize::from(place.row.width));
    let count = top.len().min(usize::from(place.row.y - place.room.y) + 1) as u16;
    let hints = Rect { y: (place.row.y + 1).saturating_sub(count), height: count, ..place.row };
    Clear.render(hints, buf);
    for (row, text) in hints.rows().zip(&top[top.len() - usize::from(count)..]) {
        put(text, row, buf, sight.theme.dim());
    }
    let Some(said) = said else { return };
    if fits || place.room.height == 0 {
        put(&clean(&said), place.row, buf, sight.theme.warn());
        return;
    }
    let free = Rect { height: place.room.height.min(hints.y.saturating_sub(place.room.y)), ..place.room };
    let most = NOTICE_ROWS.min(free.height.into());
    let lines = notice(&said, free.width.into(), most);
    let height = lines.len().min(most) as u16;
    let rows = Rect { y: free.bottom() - height, height, ..free };
    for (row, line) in rows.rows().zip(&lines) {
        put(line, row, buf, sight.theme.warn());
    }
}

fn put(text: &str, row: Rect, buf: &mut Buffer, style: Style) {
    Clear.render(row, buf);
    Line::styled(text, style).render(row, buf);
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What has to be read whole, in rows: by its lines, as long as there is room for them.
fn notice(text: &str, width: usize, most: usize) -> Vec<String> {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let by_lines: Vec<String> = lines.flat_map(|line| wrapped(&clean(line), width)).collect();
    if by_lines.len() <= most {
        return by_lines;
    }
    wrapped(&clean(text).split_whitespace().collect::<Vec<_>>().join(" "), width)
}

/// A text in rows that are broken between words where that is possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        if used > 0 && used + word.trim_end().width() > width {
            rows.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width && c != ' ' {
                rows.push(String::new());
                used = 0;
            }
            if let Some(row) = rows.last_mut() {
                row.push(c);
            }
            used += wide;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_broken_between_words_and_loses_none() {
        assert_eq!(wrapped("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrapped("abcdefghij 節点", 4), ["abcd", "efgh", "ij ", "節点"]);
        let text = "no model is configured. Any one of these gives one: a flag, a file, a variable";
        for width in 2..90 {
            let rows = wrapped(text, width);
            assert_eq!(rows.concat(), text);
            assert!(rows.iter().all(|row| row.trim_end().width() <= width), "{width}: {rows:?}");
        }
    }

    #[test]
    fn a_notice_keeps_its_lines_where_there_is_room_for_them() {
        let text = "no model. Any of these:\n\n  - a key\u{7}\n  - a file\n";
        assert_eq!(notice(text, 40, 5), ["no model. Any of these:", "  - a key ", "  - a file"]);
        assert_eq!(notice(text, 40, 2), ["no model. Any of these: - a key - a file"]);
    }

    #[test]
    fn what_keys_do_goes_on_in_more_rows_and_the_first_parts_stay() {
        let hint = "Enter opens · Tab all folders · Alt+Enter more · Ctrl+R search · F2 rename";
        assert_eq!(rows(hint, 80), [hint]);
        assert_eq!(rows(hint, 50), ["Enter opens · Tab all folders · Alt+Enter more", "Ctrl+R search · F2 rename"]);
        assert_eq!(rows(hint, 16), ["Enter opens", "Tab all folders", "Alt+Enter more"]);
        assert_eq!(rows("", 10), [""]);
    }
}

//! Long text in few rows: all of it where it is short, else its beginning, how much is hidden, and its end.
//!
//! What it costs does not grow with the text: only what is shown is looked at, and how many lines there are.

use ratatui::style::Style;

use super::numbers::{bytes, count};
use super::text::{Deco, Run, Sheet, Span, Wrap, clean, floor};
use crate::Theme;

/// Rows of an output that is shown whole.
pub(super) const OUTPUT_ROWS: usize = 12;
/// Rows of an error or a diff that is shown whole.
pub(super) const DIFF_ROWS: usize = 40;
/// Rows of the beginning and of the end of what is folded.
pub(super) const EDGE: usize = 4;
/// Rows of what streams.
const TAIL: usize = 6;

/// Lays out a text of so many lines in about so many rows.
pub(super) fn lay(sheet: &mut Sheet, text: &str, lines: usize, rows: usize, style: Style, theme: Theme) {
    if text.is_empty() {
        return;
    }
    let width = sheet.width.max(1);
    // A row holds at most four bytes a column, so a longer text needs more rows whatever it consists of.
    if lines <= rows && text.len() <= 4 * rows * width {
        let before = sheet.rows.len();
        let mut whole = Sheet { width: sheet.width, ..Sheet::default() };
        let shown = clean(text);
        whole.flow(&[], &[], &[Run::new(shown.trim_end_matches('\n'), style)], Wrap::Words);
        if whole.rows.len() <= rows {
            append(sheet, whole);
            debug_assert!(sheet.rows.len() > before);
            return;
        }
    }
    if lines > 2 * EDGE {
        edge(sheet, head_lines(text), style);
        hidden(sheet, &format!("… {} lines more", count((lines - 2 * EDGE) as u64)), theme);
        edge(sheet, tail_lines(text, EDGE), style);
    } else {
        // Few lines, long ones: each in a row of its own.
        let lines: Vec<&str> = text.lines().collect();
        edge(sheet, lines, style);
        hidden(sheet, &format!("… {} in all", bytes(text.len() as u64)), theme);
    }
}

/// The end of a text that grows.
pub(super) fn tail(sheet: &mut Sheet, text: &str, style: Style) {
    edge(sheet, tail_lines(text, TAIL), style);
}

/// How many lines or bytes of it are not shown.
pub(super) fn hidden(sheet: &mut Sheet, what: &str, theme: Theme) {
    sheet.flow(&[], &[], &[Run::new(what, theme.dim())], Wrap::Cut);
}

fn edge(sheet: &mut Sheet, lines: Vec<&str>, style: Style) {
    for line in lines {
        // A row needs no more of a line than this, whatever its characters are.
        let end = floor(line, 16 * sheet.width + 256);
        let is_cut = end < line.len();
        let more = if is_cut { "…" } else { "" };
        let shown = clean(&line[..end]);
        sheet.flow(&[], &[], &[Run::new(shown, style), Run::new(more, style)], Wrap::Cut);
    }
}

fn head_lines(text: &str) -> Vec<&str> {
    text.lines().take(EDGE).collect()
}

/// The last lines, found from the end.
fn tail_lines(text: &str, lines: usize) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let from = text.rmatch_indices('\n').nth(lines - 1).map_or(0, |(at, _)| at + 1);
    text[from..].lines().collect()
}

/// Puts the rows of a sheet behind those of another, with something before each.
pub(super) fn indent(sheet: &mut Sheet, mut inner: Sheet, deco: &Deco) {
    if sheet.width >= 4 {
        for row in &mut inner.rows {
            row.spans.insert(0, Span { text: deco.0.clone(), style: deco.1, at: 0, len: 0 });
        }
    }
    append(sheet, inner);
}

/// Puts the rows of a sheet behind those of another.
pub(super) fn append(sheet: &mut Sheet, inner: Sheet) {
    let base = sheet.text.len() as u32;
    sheet.text.push_str(&inner.text);
    sheet.rows.extend(inner.rows.into_iter().map(|mut row| {
        row.range = row.range.start + base..row.range.end + base;
        row.spans.iter_mut().filter(|span| span.len > 0).for_each(|span| span.at += base);
        row
    }));
}

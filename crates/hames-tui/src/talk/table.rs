//! Tables of Markdown: columns as wide as they need to be, narrower where the row is not wide enough, cells wrapped.

use pulldown_cmark::Alignment;
use ratatui::style::Modifier;

use super::markdown::is_right;
use super::text::{Deco, Row, Run, Sheet, Span, Wrap, columns};
use crate::Theme;

/// What stands between two columns.
const BETWEEN: &str = " │ ";
/// Columns a cell has at least, so that a word can be read.
const NARROWEST: usize = 4;
/// Rows and columns of a table that are laid out as one; what is beyond is shown row by row.
const MAX_COLUMNS: usize = 64;

/// A table that is being read.
pub(super) struct Table<'a> {
    aligned: Vec<Alignment>,
    rows: Vec<Vec<Vec<Run<'a>>>>,
    row: Vec<Vec<Run<'a>>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(aligned: Vec<Alignment>) -> Self {
        Self { aligned, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn cell(&mut self, runs: Vec<Run<'a>>) {
        self.row.push(runs);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }
}

/// Lays a table out.
pub(super) fn lay(sheet: &mut Sheet, table: Table<'_>, first: &[Deco], rest: &[Deco], theme: Theme) {
    let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    if count == 0 {
        return;
    }
    let used: usize = rest.iter().map(|(text, _)| columns(text)).sum();
    let room = sheet.width.saturating_sub(used);
    let Some(widths) = widths(&table, count, room) else { return as_lists(sheet, &table, first, rest, theme) };
    let mut before = first;
    for (at, row) in table.rows.iter().enumerate() {
        lay_row(sheet, row, &widths, &table.aligned, (before, rest), (at == 0, theme));
        before = rest;
        if at == 0 {
            let lines: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            let mut decos = rest.to_vec();
            decos.push((lines.join("─┼─"), theme.frame()));
            sheet.deco(&decos);
        }
    }
}

/// The width of each column; none where they do not fit at all.
fn widths(table: &Table<'_>, count: usize, room: usize) -> Option<Vec<usize>> {
    let room = room.checked_sub((count - 1) * columns(BETWEEN))?;
    if count > MAX_COLUMNS || room < count * NARROWEST {
        return None;
    }
    let width = |runs: &Vec<Run<'_>>| runs.iter().map(|run| columns(&run.text)).sum::<usize>();
    let mut widths = vec![1; count];
    for row in &table.rows {
        for (at, cell) in row.iter().enumerate() {
            widths[at] = widths[at].max(width(cell));
        }
    }
    // The widest columns give first, down to a common width.
    let mut cap = widths.iter().copied().max().unwrap_or(1);
    let sum = |cap: usize| widths.iter().map(|width| (*width).min(cap)).sum::<usize>();
    if sum(cap) > room {
        let (mut low, mut high) = (NARROWEST, cap);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if sum(middle) <= room { low = middle } else { high = middle - 1 }
        }
        cap = low;
    }
    Some(widths.iter().map(|width| (*width).min(cap)).collect())
}

/// One row: its cells are laid out by themselves and put side by side. Its text is the cells with bars between.
fn lay_row(
    sheet: &mut Sheet,
    row: &[Vec<Run<'_>>],
    widths: &[usize],
    aligned: &[Alignment],
    (first, rest): (&[Deco], &[Deco]),
    (is_head, theme): (bool, Theme),
) {
    let mut cells = Vec::new();
    for (at, width) in widths.iter().enumerate() {
        let mut cell = Sheet { width: *width, ..Sheet::default() };
        let mut runs = row.get(at).cloned().unwrap_or_default();
        if is_head {
            runs.iter_mut().for_each(|run| run.style = run.style.add_modifier(Modifier::BOLD));
        }
        cell.flow(&[], &[], &runs, Wrap::Words);
        let start = sheet.text.len() as u32;
        sheet.text.push_str(cell.text.trim_end_matches('\n'));
        sheet.text.push_str(if at + 1 < widths.len() { " | " } else { "\n" });
        cells.push((cell, start));
    }
    let height = cells.iter().map(|(cell, _)| cell.rows.len()).max().unwrap_or(1);
    let begin = cells.first().map_or(0, |(_, start)| *start);
    for line in 0..height {
        let decos = if line == 0 { first } else { rest };
        let deco = |text: String, style| Span { text, style, at: 0, len: 0 };
        let mut spans: Vec<Span> = decos.iter().map(|(text, style)| deco(text.clone(), *style)).collect();
        for (at, (cell, start)) in cells.iter().enumerate() {
            if at > 0 {
                spans.push(deco(BETWEEN.to_owned(), theme.frame()));
            }
            let shown = cell.rows.get(line).map(|row| row.spans.as_slice()).unwrap_or_default();
            let width: usize = shown.iter().map(|span| columns(&span.text)).sum();
            let pad = deco(" ".repeat(widths[at].saturating_sub(width)), theme.text());
            let shown = shown.iter().map(|span| Span { at: span.at + start, ..span.clone() });
            if is_right(aligned.get(at).copied().unwrap_or(Alignment::None)) {
                spans.push(pad);
                spans.extend(shown);
            } else {
                spans.extend(shown);
                spans.push(pad);
            }
        }
        sheet.rows.push(Row { spans, range: begin..sheet.text.len() as u32 - 1 });
    }
}

/// Too narrow for columns: each row as lines, named by the head.
fn as_lists(sheet: &mut Sheet, table: &Table<'_>, first: &[Deco], rest: &[Deco], theme: Theme) {
    let mut before = first;
    let Some((head, rows)) = table.rows.split_first() else { return };
    let rows = if rows.is_empty() { std::slice::from_ref(head) } else { rows };
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            let mut runs = Vec::new();
            if let Some(name) = head.get(at).filter(|_| !std::ptr::eq(row, head)) {
                runs.extend(name.iter().cloned().map(|run| Run { style: theme.name(), ..run }));
                runs.push(Run::new(": ", theme.name()));
            }
            runs.extend(cell.iter().cloned());
            sheet.flow(before, rest, &runs, Wrap::Words);
            before = rest;
        }
    }
}

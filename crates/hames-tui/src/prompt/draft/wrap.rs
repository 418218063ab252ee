//! How a draft lies in rows of a width: long lines go on in the next row, between words where there are any.

use unicode_segmentation::UnicodeSegmentation;

use super::Chip;
use crate::prompt::text::{CHIP, cells, shown};

/// A row: the bytes it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its first byte.
    pub(crate) start: usize,
    /// Behind its last byte; a line end is in no row.
    pub(crate) end: usize,
    /// Whether the line goes on in the next row.
    pub(crate) goes_on: bool,
}

/// The rows of a draft; always at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    width: usize,
}

/// Cells of a character of a draft. A unit takes its label, a row at most.
fn cells_of(cluster: &str, column: usize, width: usize, chip: Option<&Chip>) -> usize {
    match chip {
        Some(chip) => cells(chip.label()).clamp(1, width.max(1)),
        None => shown(cluster, column).1,
    }
}

impl Rows {
    /// Lays a text out.
    pub(crate) fn new(text: &str, chips: &[Chip], width: usize) -> Self {
        let width = width.max(1);
        let mut rows = Vec::new();
        let mut chips = chips.iter();
        let mut start = 0;
        for line in text.split('\n') {
            wrap(line, start, width, &mut chips, &mut rows);
            start += line.len() + 1;
        }
        Self { rows, width }
    }

    /// The width they were laid out for, in cells.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// A row.
    pub(crate) fn get(&self, row: usize) -> Option<Row> {
        self.rows.get(row).copied()
    }

    /// The row of a position: where a line goes on, its end is the next row's beginning.
    pub(crate) fn row_of(&self, at: usize) -> usize {
        self.rows.partition_point(|row| row.start <= at).saturating_sub(1)
    }

    /// The row and the column of a position.
    pub(crate) fn place(&self, text: &str, chips: &[Chip], at: usize) -> (usize, usize) {
        let index = self.row_of(at);
        let Some(row) = self.get(index) else { return (0, 0) };
        let end = at.min(row.end).max(row.start);
        let mut column = 0;
        self.walk(text, chips, row, |begin, cluster, chip| {
            let goes_on = begin < end;
            if goes_on {
                column += cells_of(cluster, column, self.width, chip);
            }
            goes_on
        });
        (index, column)
    }

    /// The position in a row that is nearest to a column.
    pub(crate) fn at(&self, text: &str, chips: &[Chip], row: usize, column: usize) -> usize {
        let Some(row) = self.get(row.min(self.rows.len().saturating_sub(1))) else { return 0 };
        let (mut used, mut at) = (0, row.start);
        self.walk(text, chips, row, |begin, cluster, chip| {
            let cells = cells_of(cluster, used, self.width, chip);
            let is_before = used + cells.div_ceil(2) <= column;
            if is_before {
                // Behind the last character of a row that goes on is the next row already.
                let next = begin + cluster.len();
                at = if row.goes_on && next >= row.end { begin } else { next };
                used += cells;
            }
            is_before
        });
        at
    }

    /// Calls `each` with every character of a row, until it says no.
    pub(crate) fn walk<'t>(
        &self,
        text: &'t str,
        chips: &[Chip],
        row: Row,
        mut each: impl FnMut(usize, &'t str, Option<&Chip>) -> bool,
    ) {
        let mut next = if chips.is_empty() { 0 } else { text[..row.start].matches(CHIP).count() };
        for (offset, cluster) in text[row.start..row.end].grapheme_indices(true) {
            let chip = if cluster.starts_with(CHIP) {
                next += 1;
                chips.get(next - 1)
            } else {
                None
            };
            if !each(row.start + offset, cluster, chip) {
                break;
            }
        }
    }
}

/// Lays one line out, whose first byte is at `base`.
fn wrap<'c>(line: &str, base: usize, width: usize, chips: &mut impl Iterator<Item = &'c Chip>, rows: &mut Vec<Row>) {
    // `rest` is where the next row would begin: behind the last space, with the cells that stand behind it.
    let (mut start, mut column) = (0, 0);
    let mut rest: Option<usize> = None;
    let mut behind_rest = 0;
    for (begin, cluster) in line.grapheme_indices(true) {
        let chip = if cluster.starts_with(CHIP) { chips.next() } else { None };
        let mut cells = cells_of(cluster, column, width, chip);
        let is_space = chip.is_none() && cluster.chars().all(char::is_whitespace);
        // Spaces at the end of a row hang over it, so that none begins the next.
        if column + cells > width && begin > start && !is_space {
            let at = rest.filter(|at| *at > start).unwrap_or(begin);
            rows.push(Row { start: base + start, end: base + at, goes_on: true });
            column = if at == begin { 0 } else { behind_rest };
            start = at;
            rest = None;
            cells = cells_of(cluster, column, width, chip);
            if column + cells > width && begin > start {
                rows.push(Row { start: base + start, end: base + begin, goes_on: true });
                (start, column) = (begin, 0);
            }
        }
        column += cells;
        if is_space {
            rest = Some(begin + cluster.len());
            behind_rest = 0;
        } else {
            behind_rest += cells;
        }
    }
    rows.push(Row { start: base + start, end: base + line.len(), goes_on: false });
}

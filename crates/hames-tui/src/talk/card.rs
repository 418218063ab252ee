//! Tool cards: a line that says what the call is and how it went, then what it printed or changed; opened, its input, its
//! output and its diffs.

use std::ops::Range;

use ratatui::style::Style;

use super::block::{Card, Progress};
use super::code::Painter;
use super::numbers::{bytes, seconds};
use super::split::{chunks, count};
use super::text::{Run, Sheet, Wrap, clean};
use super::view::{Part, Piece, Seen};
use super::{diff, preview};
use crate::Theme;

/// A section of an open card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Section {
    Input,
    Output,
    /// The diff with this ordinal.
    Diff(u16),
}

/// The pieces of an open card behind its head.
pub(super) fn pieces(card: &Card, stamp: u32) -> Vec<Piece> {
    let diffs = (0..card.diffs.len().min(usize::from(u16::MAX))).map(|at| Section::Diff(at as u16));
    let sections = [Section::Input, Section::Output].into_iter().chain(diffs);
    let mut all = Vec::new();
    for section in sections {
        let text = text(card, section);
        if text.is_empty() {
            continue;
        }
        all.push(Piece::new(Part::Section(section), stamp));
        let lines = chunks(text).into_iter().map(|range| Part::Lines(section, range.start as u32, range.end as u32));
        all.extend(lines.map(|part| Piece::new(part, stamp)));
    }
    all
}

fn text(card: &Card, section: Section) -> &str {
    match section {
        Section::Input => &card.input,
        Section::Output if card.output.is_empty() => &card.live,
        Section::Output => &card.output,
        Section::Diff(at) => card.diffs.get(usize::from(at)).map_or("", |diff| diff::hunks(&diff.text)),
    }
}

/// The name of a section.
pub(super) fn title(sheet: &mut Sheet, card: &Card, section: Section, theme: Theme) {
    let mut runs = vec![];
    match section {
        Section::Input => runs.push(Run::new("Input", theme.dim())),
        Section::Output => runs.push(Run::new("Output", theme.dim())),
        Section::Diff(at) => {
            runs.push(Run::new("Diff ", theme.dim()));
            runs.extend(card.diffs.get(usize::from(at)).into_iter().flat_map(|diff| diff::title(diff, theme)));
        }
    }
    sheet.flow(&[], &[], &runs, Wrap::Cut);
}

/// Bytes of a section.
pub(super) fn lines(
    sheet: &mut Sheet,
    card: &Card,
    section: Section,
    range: Range<u32>,
    theme: Theme,
    painter: &mut Painter<'_>,
) {
    let Some(text) = text(card, section).get(range.start as usize..range.end as usize) else { return };
    let mut inner = Sheet::new(sheet.width.saturating_sub(2) as u16);
    match section {
        Section::Diff(at) => {
            let path = card.diffs.get(usize::from(at)).map_or("", |diff| &diff.path);
            let lines: Vec<&str> = text.lines().collect();
            diff::lay(&mut inner, &lines, path, theme, painter, Wrap::Anywhere);
        }
        _ => {
            let style = if is_bad(card) && section == Section::Output { theme.bad() } else { theme.text() };
            let shown = clean(text);
            let shown = shown.strip_suffix('\n').unwrap_or(&shown);
            inner.flow(&[], &[], &[Run::new(shown, style)], Wrap::Anywhere);
        }
    }
    preview::indent(sheet, inner, &("  ".to_owned(), theme.text()));
}

fn is_bad(card: &Card) -> bool {
    matches!(card.progress, Progress::Failed(_)) || card.exit_code.is_some_and(|code| code != 0)
}

/// What the call is and how it went; folded, with what there is to see of it.
pub(super) fn head(sheet: &mut Sheet, card: &Card, seen: Seen, theme: Theme, painter: &mut Painter<'_>) {
    title_line(sheet, card, theme, Wrap::Words);
    let mut inner = Sheet::new(sheet.width.saturating_sub(2) as u16);
    if !card.decision.is_empty() {
        let style = if card.progress == Progress::Waiting { theme.warn() } else { theme.dim() };
        inner.flow(&[], &[], &[Run::new(card.decision.as_str(), style)], Wrap::Words);
    }
    if seen == Seen::Folded {
        look(&mut inner, card, theme, painter);
    }
    preview::indent(sheet, inner, &("  ".to_owned(), theme.text()));
}

/// What the call is and how it went, in a line.
pub(super) fn title_line(sheet: &mut Sheet, card: &Card, theme: Theme, wrap: Wrap) {
    let (sign, style) = sign(card, theme);
    let (tool, target) = card.label.split_once(' ').unwrap_or((&card.label, ""));
    let mut runs = vec![Run::new(tool.to_owned(), theme.name())];
    if !target.is_empty() {
        runs.push(Run::new(format!(" {target}"), theme.text()));
    }
    for (fact, style) in facts(card, theme) {
        runs.push(Run::new(" · ", theme.dim()));
        runs.push(Run::new(fact, style));
    }
    sheet.flow(&[(format!("{sign} "), style)], &[("  ".to_owned(), style)], &runs, wrap);
}

fn sign(card: &Card, theme: Theme) -> (&'static str, Style) {
    match card.progress {
        Progress::Asked => ("○", theme.dim()),
        Progress::Waiting => ("?", theme.warn()),
        Progress::Running => ("◌", theme.warn()),
        Progress::Done if is_bad(card) => ("✗", theme.bad()),
        Progress::Done => ("✓", theme.good()),
        Progress::Failed(_) => ("✗", theme.bad()),
    }
}

fn facts(card: &Card, theme: Theme) -> Vec<(String, Style)> {
    let mut facts = Vec::new();
    let (added, removed) =
        card.diffs.iter().fold((0u64, 0u64), |(a, r), diff| (a + u64::from(diff.added), r + u64::from(diff.removed)));
    if !card.diffs.is_empty() {
        facts.push((format!("+{added}/−{removed}"), theme.text()));
    }
    if card.is_proposed {
        facts.push(("proposed".into(), theme.warn()));
    }
    match card.progress {
        Progress::Running => facts.push(("running".into(), theme.warn())),
        Progress::Failed(class) => facts.push((class.words().into(), theme.bad())),
        _ => {}
    }
    if let Some(code) = card.exit_code {
        facts.push((format!("exit {code}"), if code == 0 { theme.dim() } else { theme.bad() }));
    }
    if card.images > 0 {
        facts.push((format!("{} image{}", card.images, if card.images == 1 { "" } else { "s" }), theme.dim()));
    }
    if card.is_served {
        facts.push(("from memory".into(), theme.dim()));
    } else if let Some(ms) = card.duration_ms {
        facts.push((seconds(ms), theme.dim()));
    }
    if let Some(whole) = &card.whole {
        let name = if whole.name.is_empty() { "whole output" } else { &whole.name };
        facts.push((format!("{name} {}", bytes(whole.bytes)), theme.dim()));
    }
    if card.is_masked {
        facts.push(("a stub in the window".into(), theme.dim()));
    }
    facts
}

/// The part of a folded card that says most: its diffs, else what it printed.
fn look(sheet: &mut Sheet, card: &Card, theme: Theme, painter: &mut Painter<'_>) {
    if !card.diffs.is_empty() && !is_bad(card) {
        let mut left = preview::DIFF_ROWS;
        for one in &card.diffs {
            if left == 0 {
                preview::hidden(sheet, "… more files", theme);
                return;
            }
            sheet.flow(&[], &[], &diff::title(one, theme), Wrap::Cut);
            left = left.saturating_sub(folded_diff(sheet, diff::hunks(&one.text), &one.path, left, theme, painter));
        }
        return;
    }
    match card.progress {
        Progress::Running => preview::tail(sheet, card.live.trim_end(), theme.dim()),
        Progress::Failed(_) => preview::lay(sheet, &card.output, card.lines, preview::DIFF_ROWS, theme.bad(), theme),
        _ if is_bad(card) => preview::lay(sheet, &card.output, card.lines, preview::DIFF_ROWS, theme.text(), theme),
        _ => preview::lay(sheet, &card.output, card.lines, preview::OUTPUT_ROWS, theme.dim(), theme),
    }
}

/// A diff in at most so many rows, else its edges; says how many rows it took.
fn folded_diff(
    sheet: &mut Sheet,
    text: &str,
    path: &str,
    rows: usize,
    theme: Theme,
    painter: &mut Painter<'_>,
) -> usize {
    let total = count(text);
    if total <= rows {
        let lines: Vec<&str> = text.lines().collect();
        diff::lay(sheet, &lines, path, theme, painter, Wrap::Cut);
        return lines.len();
    }
    let head: Vec<&str> = text.lines().take(preview::EDGE).collect();
    let from = text.trim_end_matches('\n').rmatch_indices('\n').nth(preview::EDGE - 1).map_or(0, |(at, _)| at + 1);
    let tail: Vec<&str> = text[from..].lines().collect();
    diff::lay(sheet, &head, path, theme, painter, Wrap::Cut);
    let hidden = total.saturating_sub(head.len() + tail.len());
    preview::hidden(sheet, &format!("… {hidden} lines more"), theme);
    diff::lay(sheet, &tail, path, theme, painter, Wrap::Cut);
    head.len() + tail.len() + 1
}

//! A block as pieces, and a piece as rows.
//!
//! A piece is what is laid out at once, and what the scroller walks over: small enough that the longest output costs no
//! more than what of it is on the screen.

use hames_protocol::{Cut, Delivery};
use ratatui::style::{Modifier, Style};

use super::block::{Block, Kind, Note, Prose, Tone};
use super::code::{Fences, Painter};
use super::preview;
use super::split::{Reading, Stretch, chunks, count};
use super::text::{Deco, Run, Sheet, Wrap};
use super::{badge, card, child, markdown, numbers};
use crate::Theme;

/// Lines of a user's message that are shown before it is folded.
const USER_LINES: usize = 40;

/// What a piece shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// The beginning, and a preview where the block is folded.
    Head,
    /// A stretch of the block's text.
    Prose(Stretch),
    /// The name of a section of a card.
    Section(card::Section),
    /// Bytes of a section of a card.
    Lines(card::Section, u32, u32),
    /// Why the text ends.
    Foot,
}

/// A part of a block that is laid out at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) part: Part,
    /// The version of the block it depends on; 0 where it never changes.
    pub(super) stamp: u32,
    /// The block of a child that it is a part of.
    pub(super) inner: Option<Inner>,
}

/// A block in a bubble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inner {
    /// Its ordinal there.
    pub(super) at: u32,
    /// Whether an empty row sets it apart from the one before.
    pub(super) gap: bool,
}

impl Piece {
    pub(super) fn new(part: Part, stamp: u32) -> Self {
        Self { part, stamp, inner: None }
    }

    /// The block whose part it is: the one it was made of, or one in its bubble.
    pub(super) fn block<'b>(&self, block: &'b Block) -> Option<&'b Block> {
        match (self.inner, &block.kind) {
            (None, _) => Some(block),
            (Some(inner), Kind::Child(child)) => child.block(inner.at as usize),
            (Some(_), _) => None,
        }
    }
}

/// How a block is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seen {
    /// As it is shown without anybody's wish.
    Folded,
    /// All of it.
    Whole,
}

/// The pieces of a block.
pub(super) fn pieces(block: &Block, seen: Seen) -> Vec<Piece> {
    let stamp = block.version.wrapping_add(1).max(1);
    let head = Piece::new(Part::Head, stamp);
    let is_whole = seen == Seen::Whole;
    match &block.kind {
        Kind::User(user) => {
            let mut all = Vec::new();
            if is_whole || !is_long(&user.prose) {
                if user.delivery.is_some() || !user.images.is_empty() {
                    all.push(head);
                }
                all.extend(as_written(&user.prose.text, stamp));
            } else {
                all.push(head);
            }
            all
        }
        Kind::Answer(text) => {
            let mut all = prose(text, stamp);
            if text.cut.is_some() {
                all.push(Piece::new(Part::Foot, stamp));
            }
            all
        }
        Kind::Reasoning(text) if is_whole => [head].into_iter().chain(prose(text, stamp)).collect(),
        Kind::Checkpoint(made) if is_whole => [head].into_iter().chain(prose(&made.prose, stamp)).collect(),
        Kind::Card(it) if is_whole => [head].into_iter().chain(card::pieces(it, stamp)).collect(),
        Kind::Child(it) if is_whole => [head].into_iter().chain(child::pieces(it, stamp)).collect(),
        _ => vec![head],
    }
}

/// Whether anybody would see a difference if it were opened.
pub(super) fn is_foldable(block: &Block) -> bool {
    match &block.kind {
        Kind::User(user) => is_long(&user.prose),
        Kind::Reasoning(_) | Kind::Checkpoint(_) | Kind::Card(_) | Kind::Child(_) => true,
        Kind::Note(note) => count(&note.detail) > 0,
        _ => false,
    }
}

fn is_long(prose: &Prose) -> bool {
    count(&prose.text) > USER_LINES || prose.text.len() > 100 * USER_LINES
}

fn prose(prose: &Prose, stamp: u32) -> Vec<Piece> {
    let stable = prose.split.stable();
    let all = prose.split.stretches(&prose.text).into_iter().enumerate();
    all.map(|(at, stretch)| Piece::new(Part::Prose(stretch), if at < stable { 0 } else { stamp })).collect()
}

/// What a person wrote, by its lines: a fence in it is text like everything else.
fn as_written(text: &str, stamp: u32) -> impl Iterator<Item = Piece> {
    chunks(text).into_iter().map(move |range| {
        let (from, to) = (range.start as u32, range.end as u32);
        Piece::new(Part::Prose(Stretch { from, to, reading: Reading::Markdown, gap: false }), stamp)
    })
}

/// What is laid out of a piece.
#[derive(Debug, Default)]
pub(super) struct Laid {
    pub(super) sheet: Sheet,
    /// Colours are still to come.
    pub(super) lacks: bool,
}

/// Lays out a piece in so many columns.
pub(super) fn lay(block: &Block, piece: Piece, seen: Seen, width: u16, theme: Theme, fences: &mut Fences) -> Laid {
    if let (Some(inner), Kind::Child(child)) = (piece.inner, &block.kind) {
        return child::lay(child, inner, piece, width, theme, fences);
    }
    let mut bars: Vec<Deco> = Vec::new();
    match block.kind {
        Kind::User(_) => bars.push(("▌ ".to_owned(), theme.user())),
        Kind::Checkpoint(_) => bars.push(("▌ ".to_owned(), theme.checkpoint())),
        Kind::Reasoning(_) => bars.push(("  ".to_owned(), theme.dim())),
        Kind::Card(_) if piece.part != Part::Head => bars.push(("  ".to_owned(), theme.dim())),
        _ => {}
    }
    let taken: usize = bars.iter().map(|(text, _)| super::text::columns(text)).sum();
    // Bars never take more than half of the row.
    let bars = if taken * 2 > usize::from(width) { Vec::new() } else { bars };
    let taken = if bars.is_empty() { 0 } else { taken as u16 };
    let mut sheet = Sheet::new(width - taken);
    let base = if matches!(block.kind, Kind::Reasoning(_)) { theme.dim() } else { theme.text() };
    let mut painter = Painter::new(fences, base);
    match (piece.part, &block.kind) {
        (Part::Prose(stretch), kind) => {
            if let Some(prose) = prose_of(kind) {
                lay_prose(&mut sheet, block, prose, stretch, (base, theme), &mut painter);
            }
        }
        (Part::Head, Kind::Card(it)) => card::head(&mut sheet, it, seen, theme, &mut painter),
        (Part::Head, Kind::Child(it)) => child::head(&mut sheet, it, seen, theme),
        (Part::Section(section), Kind::Card(it)) => card::title(&mut sheet, it, section, theme),
        (Part::Lines(section, from, to), Kind::Card(it)) => {
            card::lines(&mut sheet, it, section, from..to, theme, &mut painter);
        }
        (Part::Foot, Kind::Answer(prose)) => {
            let why = prose.cut.map_or("", cut_words);
            sheet.flow(&[], &[], &[Run::new(why, theme.warn())], Wrap::Words);
        }
        (_, kind) => head(&mut sheet, kind, seen, theme),
    }
    let lacks = painter.lacks;
    for row in &mut sheet.rows {
        let before =
            bars.iter().map(|(text, style)| super::text::Span { text: text.clone(), style: *style, at: 0, len: 0 });
        row.spans.splice(0..0, before);
    }
    Laid { sheet, lacks }
}

fn prose_of(kind: &Kind) -> Option<&Prose> {
    match kind {
        Kind::User(user) => Some(&user.prose),
        Kind::Answer(prose) | Kind::Reasoning(prose) => Some(prose),
        Kind::Checkpoint(made) => Some(&made.prose),
        _ => None,
    }
}

fn lay_prose(
    sheet: &mut Sheet,
    block: &Block,
    prose: &Prose,
    stretch: Stretch,
    (base, theme): (Style, Theme),
    painter: &mut Painter<'_>,
) {
    if stretch.gap {
        sheet.blank(&[]);
    }
    let Some(text) = prose.text.get(stretch.range()) else { return };
    match stretch.reading {
        // What a person wrote is shown as they wrote it.
        Reading::Markdown if matches!(block.kind, Kind::User(_)) => {
            sheet.flow(&[], &[], &[Run::new(text.strip_suffix('\n').unwrap_or(text), base)], Wrap::Words);
        }
        Reading::Markdown => markdown::lay(sheet, text, base, theme, painter),
        Reading::Code { fence, line } => {
            let indent = [("  ".to_owned(), base)];
            for runs in painter.paint_lines(&block.key, &prose.text, fence, line, stretch.range()) {
                sheet.flow(&indent, &indent, &runs, Wrap::Anywhere);
            }
        }
    }
}

fn head(sheet: &mut Sheet, kind: &Kind, seen: Seen, theme: Theme) {
    match kind {
        Kind::User(user) => {
            let delivery = match user.delivery {
                Some(Delivery::Interrupt) => "cut in",
                Some(Delivery::Steer) => "steered",
                Some(Delivery::Queue) => "queued",
                None => "",
            };
            let images = user.images.iter().map(|name| format!("[image: {name}]"));
            let facts: Vec<String> =
                Some(delivery.to_owned()).into_iter().chain(images).filter(|s| !s.is_empty()).collect();
            if !facts.is_empty() {
                sheet.flow(&[], &[], &[Run::new(facts.join(" · "), theme.dim())], Wrap::Words);
            }
            if seen == Seen::Folded && is_long(&user.prose) {
                let lines = count(&user.prose.text);
                preview::lay(sheet, &user.prose.text, lines, USER_LINES, theme.text(), theme);
            }
        }
        Kind::Reasoning(prose) => {
            let lines = count(prose.text.trim_end());
            let sign = if seen == Seen::Whole { "▾" } else { "▸" };
            let what = match (prose.is_open, prose.cut) {
                (true, _) => "Thinking".to_owned(),
                (false, Some(cut)) => format!("Thought, {}", cut_words(cut)),
                (false, None) => "Thought".to_owned(),
            };
            let plural = if lines == 1 { "" } else { "s" };
            let line = format!("{sign} {what} · {} line{plural}", numbers::count(lines as u64));
            sheet.flow(&[], &[], &[Run::new(line, theme.dim())], Wrap::Cut);
            if prose.is_open && seen == Seen::Folded {
                preview::tail(sheet, prose.text.trim_end(), theme.dim().add_modifier(Modifier::ITALIC));
            }
        }
        Kind::Writing { name, bytes } => {
            let line = format!("… writing {name} · {}", numbers::bytes(*bytes as u64));
            sheet.flow(&[], &[], &[Run::new(line, theme.dim())], Wrap::Cut);
        }
        Kind::Note(note) => lay_note(sheet, note, seen, theme),
        Kind::Checkpoint(made) => {
            let by = match made.kind {
                hames_protocol::CheckpointKind::Summary => "written by a model",
                hames_protocol::CheckpointKind::Rolled => "carried forward without a model",
                hames_protocol::CheckpointKind::Trim => "the one before, as it was",
            };
            let deferred = if made.deferred { " · a part was more than could be read" } else { "" };
            let of = format!(" · {by} · for {} tokens{deferred}", numbers::tokens(made.span_tokens));
            let runs = [
                Run::new("Checkpoint", theme.checkpoint().add_modifier(Modifier::BOLD)),
                Run::new(of, theme.checkpoint()),
            ];
            sheet.flow(&[], &[], &runs, Wrap::Words);
            if seen == Seen::Folded {
                let text = made.prose.text.trim_end();
                preview::lay(sheet, text, count(text), preview::OUTPUT_ROWS, theme.text(), theme);
            }
        }
        Kind::Badge(it) => sheet.flow(&[], &[], &badge::runs(it, theme), Wrap::Words),
        Kind::Answer(_) | Kind::Card(_) | Kind::Child(_) => {}
    }
}

fn lay_note(sheet: &mut Sheet, note: &Note, seen: Seen, theme: Theme) {
    let (sign, style) = match note.tone {
        Tone::Nudge => ("● ", theme.nudge()),
        Tone::Retry => ("↻ ", theme.warn()),
        Tone::Warn => ("! ", theme.warn()),
        Tone::Bad => ("✗ ", theme.bad()),
        Tone::Plain => ("· ", theme.dim()),
    };
    let before = [(sign.to_owned(), style)];
    let rest = [("  ".to_owned(), style)];
    sheet.flow(&before, &rest, &[Run::new(note.text.as_str(), style)], Wrap::Words);
    if note.detail.is_empty() {
        return;
    }
    let limit = if note.tone == Tone::Bad { preview::DIFF_ROWS } else { preview::OUTPUT_ROWS };
    let limit = if seen == Seen::Whole { usize::MAX } else { limit };
    let mut inner = Sheet::new(sheet.width.saturating_sub(2) as u16);
    match limit {
        usize::MAX => {
            for range in chunks(&note.detail) {
                inner.flow(&[], &[], &[Run::new(note.detail[range].trim_end_matches('\n'), theme.dim())], Wrap::Words);
            }
        }
        limit => preview::lay(&mut inner, &note.detail, count(&note.detail), limit, theme.dim(), theme),
    }
    preview::indent(sheet, inner, &("  ".to_owned(), style));
}

/// Why a text ends where it does.
fn cut_words(cut: Cut) -> &'static str {
    match cut {
        Cut::Guard => "cut by the loop guard",
        Cut::Abort => "cut: stopped",
        Cut::Interrupt => "cut by your message",
        Cut::Crash => "cut: the process died here",
        Cut::Limit => "cut at the output limit",
        Cut::Stream => "cut: the connection broke",
    }
}

//! Children: what one says and does stands in one bubble, at the place where it began, however many work side by side.
//!
//! A bubble is a conversation of its own, folded from events like the one around it. Folded it shows what it is doing, and
//! once it is done its report; open it shows everything.

use hames_protocol::{Envelope, Event, RunResult};
use ratatui::style::Style;

use super::block::{Block, Kind};
use super::code::Fences;
use super::fold::Fold;
use super::numbers::seconds;
use super::split::count;
use super::stage::is_apart;
use super::text::{self, Deco, Run, Sheet, Wrap};
use super::view::{self, Inner, Laid, Piece, Seen};
use super::{card, preview};
use crate::Theme;

/// Rows that tell what a child is doing.
const DOING_ROWS: usize = 4;

/// How far a child is.
#[derive(Clone, Debug, Default, PartialEq)]
enum Going {
    #[default]
    On,
    Ended(RunResult),
    Failed(String),
}

/// A child.
#[derive(Clone, Debug, Default)]
pub(super) struct Child {
    /// Its name among its siblings.
    pub(super) name: String,
    profile: String,
    task: String,
    /// Whether the event that began it is loaded.
    has_begun: bool,
    going: Going,
    /// The event that told its end.
    ended_at: u64,
    duration_ms: Option<u64>,
    fold: Fold,
}

impl PartialEq for Child {
    /// Whether both show the same; how often they changed until then does not count.
    fn eq(&self, other: &Self) -> bool {
        let head = |child: &Self| (child.name.clone(), child.profile.clone(), child.task.clone(), child.has_begun);
        let end = |child: &Self| (child.going.clone(), child.ended_at, child.duration_ms);
        let shows = |block: &Block| (block.key.clone(), block.kind.clone());
        head(self) == head(other) && end(self) == end(other) && self.blocks().map(shows).eq(other.blocks().map(shows))
    }
}

impl Child {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// What it said and did, then what of it streams.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.fold.blocks.iter().chain(&self.fold.open.blocks)
    }

    pub(super) fn block(&self, at: usize) -> Option<&Block> {
        let log = self.fold.blocks.len();
        if at < log { self.fold.blocks.get(at) } else { self.fold.open.blocks.get(at - log) }
    }

    /// What of it stands in no block.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut all = vec![self.name.as_str(), &self.profile, &self.task];
        if let Going::Failed(why) = &self.going {
            all.push(why);
        }
        all
    }

    /// Takes in the next event of it, or of a child of its own.
    pub(super) fn hear(&mut self, envelope: &Envelope) {
        match &envelope.event {
            _ if !envelope.agent.is_empty() => return self.fold.apply(envelope),
            Event::SubagentStart(start) => {
                self.has_begun = true;
                self.profile = text::clean_line(&start.profile);
                self.task = text::clean(&start.task).into_owned();
            }
            Event::SubagentDone(done) => {
                self.duration_ms = Some(done.duration_ms);
                self.end(envelope, Going::Ended(done.result));
            }
            Event::SubagentError(error) => self.end(envelope, Going::Failed(text::clean(&error.error).into_owned())),
            _ => return self.fold.apply(envelope),
        }
        self.fold.is_next(envelope);
    }

    fn end(&mut self, envelope: &Envelope, going: Going) {
        self.going = going;
        self.ended_at = envelope.seq.unwrap_or_default();
        self.fold.open.reset();
    }

    /// Whether what a later page has may be the rest of this one.
    pub(super) fn is_begun_by(&self, later: &Block) -> bool {
        self.going == Going::On && matches!(&later.kind, Kind::Child(later) if !later.has_begun)
    }

    /// Takes over what a later page has of it.
    pub(super) fn absorb(&mut self, later: Child) {
        if later.going != Going::On {
            (self.going, self.ended_at, self.duration_ms) = (later.going, later.ended_at, later.duration_ms);
        }
        let older = std::mem::replace(&mut self.fold, later.fold);
        self.fold.put_behind(older);
    }

    /// Takes away everything from an event on.
    pub(super) fn cut_from(&mut self, seq: u64) {
        if self.ended_at >= seq {
            (self.going, self.ended_at, self.duration_ms) = (Going::On, 0, None);
        }
        self.fold.cut_from(seq);
    }

    /// The last thing it said: its report, once it is done.
    fn report(&self) -> Option<&str> {
        self.fold.blocks.iter().rev().find_map(|block| match &block.kind {
            Kind::Answer(prose) => Some(prose.text.trim_end()),
            _ => None,
        })
    }

    fn calls(&self) -> usize {
        self.fold.blocks.iter().filter(|block| matches!(block.kind, Kind::Card(_))).count()
    }
}

/// The pieces of an open bubble behind its head.
pub(super) fn pieces(child: &Child, stamp: u32) -> Vec<Piece> {
    let mut all = Vec::new();
    let mut before: Option<&Block> = None;
    for (at, block) in child.blocks().enumerate() {
        let is_apart = before.is_none_or(|before| is_apart(before, block));
        let pieces = view::pieces(block, Seen::Folded).into_iter().enumerate();
        all.extend(pieces.map(|(ordinal, piece)| {
            let inner = Some(Inner { at: at as u32, gap: is_apart && ordinal == 0 });
            Piece { inner, stamp, ..piece }
        }));
        before = Some(block);
    }
    all
}

/// Lays out a piece of an open bubble.
pub(super) fn lay(child: &Child, inner: Inner, piece: Piece, width: u16, theme: Theme, fences: &mut Fences) -> Laid {
    let Some(block) = child.block(inner.at as usize) else { return Laid::default() };
    let bar = bar("│ ", width, theme);
    let taken = bar.as_ref().map_or(0, |_| 2);
    let mut laid = view::lay(block, Piece { inner: None, ..piece }, Seen::Folded, width - taken, theme, fences);
    let mut sheet = Sheet::new(width);
    if inner.gap {
        sheet.blank(bar.as_slice());
    }
    match &bar {
        Some(bar) => preview::indent(&mut sheet, std::mem::take(&mut laid.sheet), bar),
        None => preview::append(&mut sheet, std::mem::take(&mut laid.sheet)),
    }
    Laid { sheet, ..laid }
}

/// What stands before a row of a bubble; nothing where there is no room.
fn bar(sign: &str, width: u16, theme: Theme) -> Option<Deco> {
    (width >= 4).then(|| (sign.to_owned(), theme.nudge()))
}

/// Who the child is and how it goes; folded, what it does or its report.
pub(super) fn head(sheet: &mut Sheet, child: &Child, seen: Seen, theme: Theme) {
    let width = sheet.width as u16;
    let (first, rest) = (bar("┌ ", width, theme), bar("│ ", width, theme));
    title(sheet, child, seen, theme, first.as_slice(), rest.as_slice());
    let mut inner = Sheet::new(width.saturating_sub(rest.as_ref().map_or(0, |_| 2)));
    let task = child.task.trim_end();
    if task.is_empty() {
        // Its beginning is not loaded.
    } else if seen == Seen::Whole {
        inner.flow(&[], &[], &[Run::new(task, theme.dim())], Wrap::Words);
    } else {
        let line = task.lines().next().unwrap_or_default();
        let more = if line.len() < task.len() { " …" } else { "" };
        inner.flow(&[], &[], &[Run::new(format!("{line}{more}"), theme.dim())], Wrap::Cut);
    }
    if seen == Seen::Folded {
        look(&mut inner, child, theme);
    }
    match &rest {
        Some(bar) => preview::indent(sheet, inner, bar),
        None => preview::append(sheet, inner),
    }
}

fn title(sheet: &mut Sheet, child: &Child, seen: Seen, theme: Theme, first: &[Deco], rest: &[Deco]) {
    let (sign, says, style) = how(child, theme);
    let fold = if seen == Seen::Whole { "▾" } else { "▸" };
    let mut runs = vec![
        Run::new(format!("{fold} "), theme.dim()),
        Run::new(format!("{sign} "), style),
        Run::new(child.name.as_str(), theme.name()),
    ];
    let mut facts = vec![(child.profile.clone(), theme.dim()), (says.to_owned(), style)];
    match child.calls() {
        0 => {}
        1 => facts.push(("1 call".into(), theme.dim())),
        calls => facts.push((format!("{calls} calls"), theme.dim())),
    }
    facts.extend(child.duration_ms.map(|ms| (seconds(ms), theme.dim())));
    for (fact, style) in facts.into_iter().filter(|(fact, _)| !fact.is_empty() && *fact != child.name) {
        runs.push(Run::new(" · ", theme.dim()));
        runs.push(Run::new(fact, style));
    }
    sheet.flow(first, rest, &runs, Wrap::Words);
}

fn how(child: &Child, theme: Theme) -> (&'static str, &'static str, Style) {
    match &child.going {
        Going::On => ("◌", "running", theme.warn()),
        Going::Ended(RunResult::Complete) => ("✓", "done", theme.good()),
        Going::Ended(RunResult::MaxSteps) => ("✗", "stopped at the step limit", theme.bad()),
        Going::Ended(RunResult::Stopped) => ("✗", "stopped short", theme.bad()),
        Going::Ended(RunResult::Interrupted) => ("✗", "stopped", theme.warn()),
        Going::Ended(RunResult::Error) | Going::Failed(_) => ("✗", "failed", theme.bad()),
    }
}

/// The part of a folded bubble that says most.
fn look(sheet: &mut Sheet, child: &Child, theme: Theme) {
    match &child.going {
        Going::Failed(why) => preview::lay(sheet, why, count(why), preview::DIFF_ROWS, theme.bad(), theme),
        Going::Ended(_) => {
            let report = child.report().unwrap_or_default();
            preview::lay(sheet, report, count(report), preview::OUTPUT_ROWS, theme.text(), theme);
        }
        Going::On => {
            let all: Vec<&Block> = child.blocks().collect();
            for block in &all[all.len().saturating_sub(DOING_ROWS)..] {
                line(sheet, block, theme);
            }
        }
    }
}

/// A block in one row.
fn line(sheet: &mut Sheet, block: &Block, theme: Theme) {
    let last = |text: &str| text.trim_end().lines().next_back().unwrap_or_default().to_owned();
    let (says, style) = match &block.kind {
        Kind::Card(it) => return card::title_line(sheet, it, theme, Wrap::Cut),
        Kind::User(user) => (format!("▌ {}", last(&user.prose.text)), theme.user()),
        Kind::Answer(prose) => (last(&prose.text), theme.text()),
        Kind::Reasoning(prose) => (last(&prose.text), theme.dim()),
        Kind::Writing { name, .. } => (format!("… writing {name}"), theme.dim()),
        Kind::Note(note) => (note.text.clone(), theme.dim()),
        Kind::Child(child) => (format!("{} · {}", child.name, how(child, theme).1), theme.dim()),
        Kind::Checkpoint(_) | Kind::Badge(_) => return,
    };
    sheet.flow(&[], &[], &[Run::new(says, style)], Wrap::Cut);
}

//! The conversation: what was said, asked, run and answered, as far back as it is loaded.
//!
//! Three layers, each of which can be thought of alone. The `fold` turns envelopes into blocks and knows nothing of screens.
//! The `view` turns a block into pieces and a piece into rows. The scroller walks over pieces from where the reader is, so
//! what a frame costs is what it shows: neither the length of the session nor that of an output matters. Rows are kept by
//! block, version and width; while an answer streams, only its last piece changes its version.
//!
//! It deliberately asks nothing of the server: `wants_older` says that a page would be welcome, and whoever owns this gives
//! it.

mod badge;
mod block;
mod card;
mod child;
pub(crate) mod code;
pub(crate) mod diff;
mod find;
mod fold;
mod folds;
mod markdown;
mod merge;
mod notes;
pub(crate) mod numbers;
mod open;
pub(crate) mod paint;
mod preview;
mod scroll;
mod select;
pub(crate) mod split;
mod stage;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod view;

use std::collections::HashMap;

use hames_protocol::api::LogPage;
use hames_protocol::{Envelope, Event};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

pub use folds::SavedFolds;

use block::{Block, Card, Key, Kind, Streamed};
use fold::Fold;
use scroll::Anchor;
use stage::{Lead, Stage};
use view::Seen;

use crate::{Action, Cx, Effect, Input, Outcome};

/// Rows the wheel moves.
const WHEEL_ROWS: isize = 3;

/// An output that is kept whole outside of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    /// The call that gave it.
    pub(crate) label: String,
    /// The name or the hash it is read by.
    pub(crate) name: String,
    /// Its size, where it is known.
    pub(crate) bytes: Option<u64>,
}

/// The conversation on the screen.
#[derive(Default)]
pub struct Talk {
    fold: Fold,
    /// What somebody opened or closed.
    folds: HashMap<Key, Seen>,
    /// How everything else is seen, where somebody said so.
    all: Option<Seen>,
    /// How often something was opened or closed.
    folded: u64,
    stage: Stage,
    anchor: Anchor,
    /// Where it was drawn last.
    area: Rect,
    /// What stands in each row of it.
    drawn: Vec<scroll::Place>,
    marker: Option<Key>,
    selection: Option<select::Selection>,
    find: Option<find::Find>,
    /// The block before which the window begins, messages above it, and whether those are all.
    divider: Option<(Key, usize, bool)>,
    older: bool,
    /// Where it is to be shown as soon as that is loaded: the event, and what was found there.
    seek: Option<(u64, String)>,
}

impl Talk {
    /// Takes in the next events of the session, durable and live. What came already changes nothing.
    pub fn apply(&mut self, envelopes: &[Envelope]) {
        for envelope in envelopes {
            let streamed = streamed(envelope);
            let (bounds, blocks) = (self.fold.bounds.len(), self.fold.blocks.len());
            self.fold.apply(envelope);
            if let Some(old) = streamed
                && self.fold.blocks.len() > blocks
                && let Some(new) = self.fold.blocks.back().map(|block| block.key.clone())
            {
                self.rename(&old, &new);
            }
            let is_shorter = self.fold.blocks.len() < blocks;
            if bounds != self.fold.bounds.len() || is_shorter || (bounds > 0 && self.divider.is_none()) {
                self.settle_divider();
            }
        }
    }

    /// Puts a page of the log in front of what is there; the first one is the end of the log.
    pub fn prepend(&mut self, page: &LogPage) {
        self.fold.prepend(page);
        self.older = page.older;
        self.settle_divider();
        self.look_further();
    }

    /// Forgets what was said, because it is read anew. What was opened, and where the reader is, stays.
    pub fn forget(&mut self) {
        let Self { folds, all, folded, anchor, area, marker, .. } = std::mem::take(self);
        *self = Self { folds, all, folded, anchor, area, marker, ..Self::default() };
    }

    /// The seq of the oldest event that is loaded: a page before it is the next older one.
    pub fn oldest_seq(&self) -> Option<u64> {
        self.fold.first
    }

    /// The seq of the newest event that is loaded; 0 for none. Events are to be watched from behind it.
    pub fn newest_seq(&self) -> u64 {
        self.fold.seq
    }

    /// Whether an older page is wanted: the reader is near the beginning of what is loaded, or looks for something that is
    /// not in it.
    pub fn wants_older(&self) -> bool {
        let is_near = self.drawn.first().is_none_or(|place| place.block < scroll::NEAR);
        self.older
            && self.fold.first.is_some()
            && (is_near || self.is_seeking() || self.find.as_ref().is_some_and(find::Find::wants_older))
    }

    /// When it has to be drawn again though nothing came: colours or a search that were not finished in one frame.
    pub fn wake_at(&self, now: u64) -> Option<u64> {
        let goes_on = self.find.as_ref().is_some_and(find::Find::goes_on);
        (self.stage.lacks && self.stage.fences.is_waiting() || goes_on).then_some(now + 33)
    }

    /// Whether it shows the end and goes on doing so.
    pub fn is_following(&self) -> bool {
        self.anchor == Anchor::End
    }

    /// The text of the last answer, as the model wrote it but for characters that could do harm.
    pub fn last_answer(&self) -> Option<String> {
        self.fold.blocks.iter().rev().find_map(|block| match &block.kind {
            Kind::Answer(prose) if !prose.text.trim().is_empty() => Some(prose.text.trim_end().to_owned()),
            _ => None,
        })
    }

    /// The event of the user's message or the answer under the marker, for branch and cut.
    pub fn selected(&self) -> Option<u64> {
        let at = self.index(self.marker.as_ref()?)?;
        match (&self.block(at).key, &self.block(at).kind) {
            (Key::Log(seq, _), Kind::User(_) | Kind::Answer(_)) => Some(*seq),
            _ => None,
        }
    }

    /// The outputs that are kept whole outside of the conversation, as far back as it is loaded, and the ordinal of the one
    /// that the reader looks at: the last of those on the screen, else the last of all.
    pub(crate) fn outputs(&self) -> (Vec<Output>, usize) {
        let (first, last) = (self.drawn.first().map(|place| place.block), self.drawn.last().map(|place| place.block));
        let (mut all, mut seen) = (Vec::new(), None);
        for at in 0..self.len() {
            let is_seen = first.is_some_and(|first| at >= first) && last.is_some_and(|last| at <= last);
            for card in cards(self.block(at)) {
                let Some(whole) = &card.whole else { continue };
                if is_seen {
                    seen = Some(all.len());
                }
                let name = if whole.name.is_empty() { &whole.hash } else { &whole.name };
                all.push(Output { label: card.label.clone(), name: name.clone(), bytes: Some(whole.bytes) });
            }
        }
        let at = seen.unwrap_or(all.len().saturating_sub(1));
        (all, at)
    }

    /// What keys do while it takes them for itself; none while it does not.
    pub fn hint(&self) -> Option<&'static str> {
        if self.is_finding() {
            return Some("Enter finds the one before, Down the one after, Esc ends");
        }
        self.is_selecting().then_some("arrows move, with Shift they select, Enter copies, Esc ends")
    }

    /// Takes a key or the mouse.
    pub fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        if let Input::Mouse(mouse) = input {
            return self.mouse(mouse, cx);
        }
        if let Some(outcome) = self.find_key(input, action).or_else(|| self.select_key(input, action, cx)) {
            return outcome;
        }
        if action == Some(Action::Copy) {
            let Some(text) = self.selected_text().or_else(|| self.last_answer()) else { return Outcome::Passed };
            cx.push(Effect::Copy(text));
            return Outcome::Taken;
        }
        if action.is_some_and(|action| self.act(action)) { Outcome::Taken } else { Outcome::Passed }
    }

    /// Does what needs nobody else; false where the action is none of this part's.
    pub fn act(&mut self, action: Action) -> bool {
        let page = isize::from(self.area.height.saturating_sub(2).clamp(1, 1_000) as i16);
        match action {
            Action::PageUp => self.scroll(-page),
            Action::PageDown => self.scroll(page),
            Action::ToTop => self.go_to_top(),
            Action::ToEnd => self.go_to_end(),
            Action::Previous => return self.mark(false),
            Action::Next => return self.mark(true),
            Action::Fold => self.toggle_fold(),
            Action::FoldAll => self.toggle_all(),
            Action::Select => self.begin_select(),
            Action::Find => self.begin_find(),
            _ => return false,
        }
        true
    }

    fn mouse(&mut self, mouse: &MouseEvent, cx: &mut Cx<'_>) -> Outcome {
        let at = Position::new(mouse.column, mouse.row);
        let is_dragged = matches!(mouse.kind, MouseEventKind::Drag(_) | MouseEventKind::Up(_)) && self.is_dragging();
        if !self.area.contains(at) && !is_dragged {
            return Outcome::Passed;
        }
        match mouse.kind {
            MouseEventKind::ScrollUp => self.scroll(-WHEEL_ROWS),
            MouseEventKind::ScrollDown => self.scroll(WHEEL_ROWS),
            MouseEventKind::Down(MouseButton::Left) => self.press(at),
            MouseEventKind::Drag(MouseButton::Left) => self.drag(at),
            MouseEventKind::Up(MouseButton::Left) => match self.release() {
                Some(text) => cx.push(Effect::Copy(text)),
                None => self.click(at),
            },
            _ => return Outcome::Passed,
        }
        Outcome::Taken
    }

    /// A click on the first row of a block opens or closes it.
    fn click(&mut self, at: Position) {
        let Some(place) = self.place_at(at) else { return };
        let block = self.block(place.block);
        if place.piece == 0 && view::is_foldable(block) && place.row == self.lead(place.block).len() {
            let key = block.key.clone();
            self.flip(key);
        }
    }

    /// Moves the marker to the message or the bubble before or after; past the last one it goes.
    fn mark(&mut self, forward: bool) -> bool {
        let at = self.marker.as_ref().and_then(|key| self.fold.position(key));
        let is_stop =
            |at: &usize| matches!(self.fold.blocks[*at].kind, Kind::User(_) | Kind::Answer(_) | Kind::Child(_));
        let found = match (at, forward) {
            (None, true) => return false,
            (None, false) => (0..self.fold.blocks.len()).rev().find(is_stop),
            (Some(at), true) => (at + 1..self.fold.blocks.len()).find(is_stop),
            (Some(at), false) => (0..at).rev().find(is_stop).or(Some(at)),
        };
        self.marker = found.map(|at| self.fold.blocks[at].key.clone());
        match self.marker.clone() {
            Some(key) => self.show(&key, 0),
            None => self.go_to_end(),
        }
        true
    }

    fn toggle_fold(&mut self) {
        let marked =
            self.marker.clone().filter(|key| self.index(key).is_some_and(|at| view::is_foldable(self.block(at))));
        let last = || (0..self.len()).rev().find(|at| view::is_foldable(self.block(*at)));
        if let Some(key) = marked.or_else(|| last().map(|at| self.block(at).key.clone())) {
            self.flip(key);
        }
    }

    fn flip(&mut self, key: Key) {
        let Some(at) = self.index(&key) else { return };
        let seen = if self.seen(self.block(at)) == Seen::Whole { Seen::Folded } else { Seen::Whole };
        self.folds.insert(key, seen);
        self.folded += 1;
    }

    fn toggle_all(&mut self) {
        self.folds.clear();
        self.all = if self.all == Some(Seen::Whole) { None } else { Some(Seen::Whole) };
        self.folded += 1;
    }

    /// What was streamed has its place in the log now: whatever points at it follows.
    fn rename(&mut self, old: &Key, new: &Key) {
        if let Some(seen) = self.folds.remove(old) {
            self.folds.insert(new.clone(), seen);
        }
        if let Anchor::At { key, .. } = &mut self.anchor
            && key == old
        {
            *key = new.clone();
        }
        if let Some(selection) = &mut self.selection {
            selection.rename(old, new);
        }
    }

    fn settle_divider(&mut self) {
        self.divider = None;
        let Some(behind) = self.fold.window_behind() else { return };
        let is_before =
            |key: &Key| matches!(key, Key::Log(seq, ordinal) if *seq < behind || (*seq == behind && *ordinal < 2));
        let Some(at) = self.fold.blocks.iter().position(|block| !is_before(&block.key)) else { return };
        let above =
            self.fold.blocks.iter().take(at).filter(|block| matches!(block.kind, Kind::User(_) | Kind::Answer(_)));
        let above = above.count();
        self.divider = Some((self.fold.blocks[at].key.clone(), above, !self.older));
    }

    /// What stands above a block and is none of its rows.
    fn lead(&self, at: usize) -> Vec<Lead> {
        let mut lead = Vec::new();
        let block = self.block(at);
        let before = at.checked_sub(1).map(|at| self.block(at));
        if before.is_some_and(|before| stage::is_apart(before, block)) {
            lead.push(Lead::Blank);
        }
        if let Some((_, above, is_all)) = self.divider.as_ref().filter(|(key, ..)| *key == block.key) {
            lead.push(Lead::Divider { above: *above, is_all: *is_all });
        }
        lead
    }
}

/// What was streamed of a durable event.
fn streamed(envelope: &Envelope) -> Option<Key> {
    let (what, index) = match &envelope.event {
        _ if !envelope.agent.is_empty() => return None,
        Event::TextDone(done) => (Streamed::Text, done.index),
        Event::ReasoningDone(done) => (Streamed::Reasoning, done.index),
        _ => return None,
    };
    Some(Key::Open(what, index))
}

/// The calls of a block: its own, or those of a child and of its children.
fn cards(block: &Block) -> Vec<&Card> {
    match &block.kind {
        Kind::Card(card) => vec![card],
        Kind::Child(child) => child.blocks().flat_map(cards).collect(),
        _ => Vec::new(),
    }
}

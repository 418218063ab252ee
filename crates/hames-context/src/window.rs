//! The window: what the next request carries, and what has to be decided first.
//!
//! Plan, perform, go on. [`Window::sync`] takes in what the log holds by now, [`Window::plan`] says what comes next, and
//! whoever asked performs it: keeps texts and records a [`Decision`], asks a model for a document and hands its answer to
//! [`Window::resume`], or sends [`Window::items`]. Nothing here does I/O or reads a clock, and what is sent follows from
//! what was recorded alone, so whoever folds the same log sends the same bytes.
//!
//! A new item costs what it is; only a decision costs what the window holds.

mod decision;
mod entry;
mod fit;
mod pins;
mod plan;
mod report;
mod shape;
mod summary;
mod view;
mod words;

use std::sync::Arc;

use hames_protocol::{Item, Label, Transcript, WindowState};

use self::entry::Entry;
use self::plan::Pending;
use self::view::View;
use self::words::Recaller;
use crate::policy::{Limits, Terms};
use crate::wire_rules::{RuleBroken, WireRules};
use crate::{Budget, ImageRoom};

pub use decision::{Decision, Keep};
pub use pins::PinRefused;
pub use plan::{Plan, Ready, Refused};
pub(crate) use shape::Shape;
pub use summary::{SummaryAnswer, SummaryRequest};

/// The window of one conversation.
#[derive(Debug)]
pub struct Window {
    entries: Vec<Entry>,
    view: View,
    revision: u64,
    recaller: Recaller,
    limits: Limits,
    /// Entries that are pinned themselves, oldest first.
    pinned: Vec<usize>,
    /// Estimated tokens of the document the window opens with.
    document_tokens: u64,
    /// What is kept of the fold: what plans go by.
    known: Known,
    rules: WireRules,
    images: ImageRoom,
    /// What is sent where images had to be left out; otherwise it is what is shown.
    fitted: Option<Vec<Arc<Item>>>,
    pending: Option<Pending>,
}

/// What plans need of the fold of decisions.
#[derive(Debug, Default)]
struct Known {
    state: WindowState,
}

impl Window {
    /// An empty window. `recaller` is the tool that shows kept texts, where the model has one.
    pub fn new(recaller: Option<&str>) -> Self {
        let terms = Terms::new(Budget { window: 0, wanted_output: 0 }, 0);
        Self {
            entries: Vec::new(),
            view: View::default(),
            revision: 0,
            recaller: Recaller(recaller.map(Arc::from)),
            limits: Limits::of(&terms),
            pinned: Vec::new(),
            document_tokens: 0,
            known: Known::default(),
            rules: WireRules::default(),
            images: ImageRoom::default(),
            fitted: None,
            pending: None,
        }
    }

    /// Takes in what was recorded since. Costs what is new, unless a decision changed what is shown.
    pub fn sync(&mut self, transcript: &Transcript, state: &WindowState) {
        let (items, places) = (transcript.items(), transcript.places());
        let same = self.common(items);
        let changed = state.revision != self.revision;
        let mut anew = changed || (same < self.entries.len() && !self.view.truncate(&self.entries, same));
        self.entries.truncate(same);
        for (item, place) in items.iter().zip(places).skip(same) {
            let label = self.label_of(item);
            self.entries.push(Entry::new(item, place, label));
            self.mark_capability();
            if !anew {
                let at = self.entries.len() - 1;
                // Whatever stands among what left is no matter of the end.
                anew = place.seq <= state.archived_up_to.max(state.retired_up_to);
                if !anew {
                    self.view.append(at, &mut self.entries, state, &self.recaller);
                }
            }
        }
        if changed {
            self.known.state = state.clone();
            self.revision = state.revision;
            self.document_tokens = crate::estimate_tokens(state.document());
        }
        if anew {
            self.view.rebuild(&mut self.entries, state, &self.recaller);
            let is_pinned = |at: &usize| {
                let place = &self.entries[*at].place;
                state.is_pinned(place.seq, place.event)
            };
            self.pinned =
                if state.pins.is_empty() { Vec::new() } else { (0..self.entries.len()).filter(is_pinned).collect() };
        }
        self.fitted = self.view.has_images.then(|| self.images.fit(self.view.items.clone()));
        if let Some(fitted) = &self.fitted {
            self.view.leave_out_images(&mut self.entries, fitted);
        }
    }

    /// Carries what the newest entry says of its step to the rest of it, and the other way.
    fn mark_capability(&mut self) {
        let Some(begin) = self.entries.iter().rposition(Entry::begins) else { return };
        let step = &mut self.entries[begin..];
        if step.iter().any(|entry| entry.capability || entry.of_capability) {
            step.iter_mut().for_each(|entry| entry.of_capability = entry.is_exchange());
        }
    }

    /// How many of the items are known and stand where they stood.
    fn common(&self, items: &[Arc<Item>]) -> usize {
        let shorter = self.entries.len().min(items.len());
        // Items are only added, or inserted near the end: what is the same there is the same before.
        (0..shorter).rev().find(|at| Arc::ptr_eq(&self.entries[*at].item, &items[*at])).map_or(0, |at| at + 1)
    }

    fn label_of(&self, item: &Item) -> Label {
        let Item::Tool(result) = item else { return Label::default() };
        let calls = self.entries.iter().rev().find_map(|entry| match entry.item.as_ref() {
            Item::Assistant(answer) => Some(&answer.calls),
            _ => None,
        });
        let call = calls.and_then(|calls| calls.iter().find(|call| call.call_id == result.call_id));
        let named = call.map(|call| call.label.clone()).filter(|label| !label.tool.is_empty());
        named.unwrap_or_else(|| Label::new(result.name.as_str(), ""))
    }

    /// What the next request carries, once a plan says it is [`Plan::Ready`].
    pub fn items(&self) -> &[Arc<Item>] {
        self.fitted.as_deref().unwrap_or(&self.view.items)
    }

    /// Items whose images the next request has no room for. Where it grows between two requests, and nothing was decided
    /// between them, that is what changed the bytes of the second.
    pub fn images_left_out(&self) -> usize {
        if self.view.has_images { self.images.left_out() } else { 0 }
    }

    /// Estimated tokens of what is shown now, tools and system text left aside.
    pub fn tokens(&self) -> u64 {
        self.view.tokens
    }

    /// Holds what would be sent against the rules of the wire.
    fn check(&mut self) -> Result<(), RuleBroken> {
        self.rules.check(self.fitted.as_deref().unwrap_or(&self.view.items))
    }
}

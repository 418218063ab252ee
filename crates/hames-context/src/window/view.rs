//! The conversation as it is sent: a projection of the items by the decisions that were recorded. It decides nothing.
//!
//! What was made for an item (a stub, a part of a message) is kept and shared, so that whoever renders items by pointer
//! renders each once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hames_protocol::{Item, Label, Origin, Part, WindowState};

use super::entry::{Entry, How};
use super::words::{self, Recaller};
use crate::estimate_item;

/// What is sent, item by item.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) items: Vec<Arc<Item>>,
    /// The entry each comes from; those made of several have that of the first.
    pub(crate) from: Vec<usize>,
    /// Estimated tokens of all.
    pub(crate) tokens: u64,
    /// Of the opening.
    pub(crate) opening_tokens: u64,
    /// Index of the first entry that is not archived.
    pub(crate) first: usize,
    /// Tokens of the largest message shown whole.
    pub(crate) largest_message: u64,
    /// Whether any of them carries an image.
    pub(crate) has_images: bool,
    /// Digests, by the entries they stand for.
    digests: HashMap<(usize, usize), Arc<Item>>,
    opening: Option<Arc<Item>>,
}

impl View {
    /// Makes it anew.
    pub(crate) fn rebuild(&mut self, entries: &mut [Entry], state: &WindowState, recaller: &Recaller) {
        self.items.clear();
        self.from.clear();
        (self.tokens, self.opening_tokens, self.largest_message) = (0, 0, 0);
        self.has_images = false;
        mark_pinned(entries, state);
        self.first = entries.partition_point(|entry| state.is_archived(entry.place.seq));
        for entry in entries.iter_mut() {
            (entry.how, entry.shown, entry.is_without_images) = (How::Omitted, 0, false);
        }
        self.open(entries, state, recaller);
        let mut at = self.first;
        let before = std::mem::take(&mut self.digests);
        while at < entries.len() {
            let is_left =
                |entry: &Entry| entry.retirable() && entry.place.seq <= state.retired_up_to && state.retired_up_to > 0;
            if !is_left(&entries[at]) {
                self.append(at, entries, state, recaller);
                at += 1;
                continue;
            }
            let end = (at..entries.len()).find(|next| !is_left(&entries[*next])).unwrap_or(entries.len());
            let digest =
                before.get(&(at, end)).cloned().unwrap_or_else(|| digest_of(&entries[at..end], state, recaller));
            self.push(at, Arc::clone(&digest));
            self.digests.insert((at, end), digest);
            at = end;
        }
    }

    /// Adds one entry at the end.
    pub(crate) fn append(&mut self, at: usize, entries: &mut [Entry], state: &WindowState, recaller: &Recaller) {
        let alone = at.checked_sub(1).is_none_or(|before| matches!(entries[before].item.as_ref(), Item::Assistant(_)));
        let Some(entry) = entries.get_mut(at) else { return };
        let is_old_nudge = |kind: &str| state.nudges.get(kind).is_some_and(|newest| *newest != entry.place.event);
        let dropped = match &entry.place.origin {
            // Where it parts two answers it stays: two in a row are refused by some.
            Origin::Nudge => entry.nudge().is_some_and(is_old_nudge) && !alone && !entry.pinned,
            _ => !entry.says_something(),
        };
        if dropped {
            (entry.how, entry.shown) = (How::Omitted, 0);
            return;
        }
        let item = show(entry, state, recaller);
        if entry.is_message() && entry.how == How::Full {
            self.largest_message = self.largest_message.max(entry.shown);
        }
        let shown = entry.shown;
        self.add(at, item, shown);
    }

    /// Drops what comes from this entry and later ones, where that is only a matter of the end.
    pub(crate) fn truncate(&mut self, entries: &[Entry], to: usize) -> bool {
        while let Some(from) = self.from.last().filter(|from| **from >= to) {
            if self.digests.keys().any(|(first, _)| first == from) || *from < self.first {
                return false;
            }
            self.tokens -= entries[*from].shown;
            self.from.pop();
            self.items.pop();
        }
        true
    }

    /// Counts what is sent in place of items whose images there is no room for.
    pub(crate) fn leave_out_images(&mut self, entries: &mut [Entry], fitted: &[Arc<Item>]) {
        for ((item, sent), from) in self.items.iter().zip(fitted).zip(&self.from) {
            let is_without = !Arc::ptr_eq(item, sent);
            let Some(entry) = entries.get_mut(*from).filter(|entry| entry.is_without_images != is_without) else {
                continue;
            };
            let tokens = estimate_item(sent);
            self.tokens = (self.tokens + tokens).saturating_sub(entry.shown);
            (entry.shown, entry.is_without_images) = (tokens, is_without);
        }
    }

    /// Digests, by the first of the entries they stand for.
    pub(crate) fn digests(&self) -> impl Iterator<Item = (usize, &Arc<Item>)> {
        self.digests.iter().map(|((first, _), item)| (*first, item))
    }

    fn push(&mut self, from: usize, item: Arc<Item>) {
        let tokens = estimate_item(&item);
        self.add(from, item, tokens);
    }

    fn add(&mut self, from: usize, item: Arc<Item>, tokens: u64) {
        self.tokens += tokens;
        self.has_images |= carries_image(&item);
        self.items.push(item);
        self.from.push(from);
    }

    /// What stands in front where something left: document, pins, and the messages that are being worked on.
    fn open(&mut self, entries: &mut [Entry], state: &WindowState, recaller: &Recaller) {
        if state.archived_up_to == 0 || self.first == 0 {
            self.opening = None;
            return;
        }
        let held: &[u64] = state.checkpoint.as_ref().map_or(&[], |checkpoint| checkpoint.held.as_slice());
        let is_held = |entry: &Entry| held.contains(&entry.place.event);
        let pinned: Vec<&Entry> = entries[..self.first]
            .iter()
            .filter(|entry| state.is_pinned(entry.place.seq, entry.place.event) && !is_held(entry))
            .collect();
        let pins = pin_texts(&pinned, state.checkpoint.as_ref().and_then(|checkpoint| checkpoint.pin_tokens));
        let item = Item::User(recaller.opening(state.document(), &state.archives, &pins));
        let opening = match self.opening.take() {
            Some(known) if *known == item => known,
            _ => Arc::new(item),
        };
        self.opening_tokens = estimate_item(&opening);
        self.opening = Some(Arc::clone(&opening));
        self.push(0, opening);
        let mut last_held = None;
        for (at, entry) in entries[..self.first].iter_mut().enumerate() {
            if is_held(entry) && entry.says_something() {
                let item = show(entry, state, recaller);
                self.push(at, item);
                last_held = Some(at);
            }
        }
        // Where nothing of the work itself stayed, the message would be the last word, as if it had just been said.
        let is_work = |entry: &Entry| matches!(entry.item.as_ref(), Item::Assistant(_) | Item::Tool(_));
        let has_begun = last_held.is_some_and(|at| entries[at..self.first].iter().any(is_work));
        let nothing_stayed = entries.get(self.first).is_none_or(|next| next.place.seq > state.checkpoint_seq);
        if has_begun && nothing_stayed {
            self.push(self.first - 1, Arc::new(Item::User(Recaller::under_way())));
        }
    }
}

/// Texts of pins, together within a limit where there is one: then each has its share.
fn pin_texts(pinned: &[&Entry], limit: Option<u64>) -> Vec<String> {
    let share = limit.map(|limit| limit / (pinned.len() as u64).max(1));
    let text = |entry: &&Entry| {
        let text = words::pinned_text(&entry.item);
        share.map_or(text.clone(), |share| words::clip_tokens(&text, share.saturating_sub(8)))
    };
    pinned.iter().map(text).filter(|text| !text.trim().is_empty()).collect()
}

/// Marks what is pinned, and the rest of its step: calls and results go together.
fn mark_pinned(entries: &mut [Entry], state: &WindowState) {
    let pins: HashSet<u64> = state.pins.iter().map(hames_protocol::Pin::item).collect();
    let mut begin = 0;
    for at in 0..entries.len() {
        if entries[at].begins() {
            begin = at;
        }
        let place = &entries[at].place;
        entries[at].pinned = !pins.is_empty() && (pins.contains(&place.seq) || pins.contains(&place.event));
        if at > begin && entries[at].pinned != entries[begin].pinned {
            entries[begin..=at].iter_mut().for_each(|entry| entry.pinned = true);
        }
    }
}

fn show(entry: &mut Entry, state: &WindowState, recaller: &Recaller) -> Arc<Item> {
    let item = match entry.item.as_ref() {
        Item::Tool(result) if !entry.pinned && state.masked.contains_key(&result.call_id) => {
            let kept = state.masked.get(&result.call_id).and_then(Option::as_ref).or(result.blob.as_ref());
            let made = entry.made.take().filter(|(how, _)| how.is_none());
            made.unwrap_or_else(|| (None, Arc::new(Item::Tool(recaller.stub(result, &entry.label, kept)))))
        }
        Item::User(message) if state.externalised.contains_key(&entry.place.event) => {
            let how = state.externalised.get(&entry.place.event).cloned();
            let made = entry.made.take().filter(|(known, _)| *known == how);
            made.unwrap_or_else(|| {
                let part = how.as_ref().map_or_else(|| message.clone(), |how| recaller.part(message, how));
                (how, Arc::new(Item::User(part)))
            })
        }
        _ => {
            (entry.how, entry.shown) = (How::Full, entry.tokens);
            return Arc::clone(&entry.item);
        }
    };
    (entry.how, entry.shown) = (How::Stub, estimate_item(&item.1));
    let shown = Arc::clone(&item.1);
    entry.made = Some(item);
    shown
}

fn carries_image(item: &Item) -> bool {
    let parts: &[Part] = match item {
        Item::User(message) => &message.parts,
        Item::Tool(result) => &result.attachments,
        Item::Assistant(_) => &[],
    };
    parts.iter().any(|part| matches!(part, Part::Image { .. }))
}

fn digest_of(entries: &[Entry], state: &WindowState, recaller: &Recaller) -> Arc<Item> {
    let labels: Vec<&Label> = entries
        .iter()
        .filter_map(|entry| match entry.item.as_ref() {
            Item::Assistant(answer) => Some(answer.calls.iter().map(|call| &call.label)),
            _ => None,
        })
        .flatten()
        .collect();
    let mut kept: Vec<&str> = entries.iter().filter_map(|entry| state.retired_in(entry.place.seq)).collect();
    kept.dedup();
    kept.drain(..kept.len().saturating_sub(words::DIGEST_KEPT));
    Arc::new(Item::User(recaller.digest(&labels, &kept)))
}

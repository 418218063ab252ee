//! The window told item by item, and what the next compaction would do. Both change nothing.

use hames_protocol::{
    Item, ItemKind, ItemState, Origin, Part, Pin, Projection, ReportBudget, ReportItem, ReportOpening, ReportPin,
    ReportRequest, ReportSent, ReportSum, WindowPreview, WindowReport, WindowState,
};

use super::entry::{Entry, How};
use super::{Shape, Window, words};
use crate::policy::{Limits, Terms};
use crate::strategy::{Author, Choice, Moment, Situation};
use crate::{estimate_item, estimate_tokens};

/// Bytes of an item's label.
const LABEL: usize = 80;

impl Window {
    /// Tells what the window holds and why. `state` is the fold that was taken in last.
    pub fn report(&self, state: &WindowState, terms: &Terms) -> WindowReport {
        let items: Vec<ReportItem> = (0..self.entries.len()).map(|at| self.told(at, state)).collect();
        let (mut masked, mut retired, mut archived) = Default::default();
        for (entry, item) in self.entries.iter().zip(&items) {
            let sum: &mut ReportSum = match (item.state, item.projection) {
                (ItemState::Archived, _) => &mut archived,
                (_, Projection::Stub) => &mut masked,
                (ItemState::Retained, Projection::Omitted) if entry.is_exchange() => &mut retired,
                _ => continue,
            };
            sum.add(item.tokens.saturating_sub(item.sent_tokens), item.bytes.saturating_sub(item.sent_bytes));
        }
        let mut sent = ReportSum::default();
        self.items().iter().for_each(|item| sent.add(estimate_item(item), bytes_of(item)));
        WindowReport {
            strategy: terms.policy.strategy.name().to_owned(),
            budget: self.budget(terms),
            items,
            sent,
            masked,
            retired,
            archived,
            opening: self.opening(state),
            pins: state.pins.iter().map(|pin| self.told_pin(pin, state)).collect(),
            request: state.last_request.as_ref().map(request),
            requests: ReportSent {
                requests: state.sent.requests,
                bytes: state.sent.bytes,
                uncached_bytes: state.sent.uncached,
                breaks: state.sent.breaks.iter().map(|(what, n)| ((*what).to_owned(), *n)).collect(),
            },
            repairs: state.repairs.clone(),
        }
    }

    /// The marks, as the provider would count them.
    pub fn budget(&self, terms: &Terms) -> ReportBudget {
        let limits = Limits::of(terms);
        let counted = |tokens: u64| terms.counted(tokens);
        ReportBudget {
            window: terms.budget.window,
            reserve: terms.budget.reserve(),
            margin: terms.budget.margin(),
            usable: terms.budget.usable(),
            trigger: counted(limits.trigger),
            landing: counted(limits.keep),
            head: counted(limits.head),
            fill: counted(limits.head + self.view.tokens),
            pin_limit: counted(limits.pins),
            pinned: counted(self.pinned_tokens()),
            ratio: terms.ratio,
        }
    }

    fn told(&self, at: usize, state: &WindowState) -> ReportItem {
        let entry = &self.entries[at];
        let is_archived = at < self.view.first;
        let is_pinned = state.is_pinned(entry.place.seq, entry.place.event);
        let archive = match entry.how {
            How::Omitted if is_archived => state.archive_of(entry.place.seq),
            How::Omitted if entry.retirable() => state.retired_in(entry.place.seq),
            _ => None,
        };
        let projection = match entry.how {
            How::Full => Projection::Full,
            How::Stub => Projection::Stub,
            How::Omitted if is_archived && is_pinned => Projection::Opening,
            How::Omitted => Projection::Omitted,
        };
        let item_state = match projection {
            _ if is_pinned => ItemState::Pinned,
            Projection::Full => ItemState::Active,
            _ if is_archived && projection == Projection::Omitted => ItemState::Archived,
            _ => ItemState::Retained,
        };
        let bytes = bytes_of(&entry.item);
        let made = entry.made.as_ref().filter(|_| entry.how == How::Stub).map(|(_, item)| bytes_of(item));
        let sent_bytes = match projection {
            Projection::Full => bytes,
            Projection::Stub => made.unwrap_or(0),
            Projection::Opening | Projection::Omitted => 0,
        };
        ReportItem {
            event: entry.place.event,
            turn: entry.place.turn,
            kind: kind(entry.place.origin),
            label: label(entry),
            state: item_state,
            projection,
            tokens: entry.tokens,
            sent_tokens: entry.shown,
            bytes,
            sent_bytes,
            kept: kept(entry, state),
            archive: archive.map(str::to_owned),
        }
    }

    fn told_pin(&self, pin: &Pin, state: &WindowState) -> ReportPin {
        let at = self.entries.iter().position(|entry| [entry.place.event, entry.place.seq].contains(&pin.item()));
        let is_cut = state.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.pin_tokens.is_some());
        let projection = match at.map(|at| (at < self.view.first, self.entries[at].how)) {
            None => Projection::Omitted,
            Some((_, How::Full)) => Projection::Full,
            Some((_, How::Stub)) => Projection::Stub,
            Some((true, How::Omitted)) if is_cut => Projection::Stub,
            Some((true, How::Omitted)) => Projection::Opening,
            Some((false, How::Omitted)) => Projection::Omitted,
        };
        ReportPin { pin: pin.seq, item: pin.item(), by: pin.by, projection }
    }

    fn opening(&self, state: &WindowState) -> Option<ReportOpening> {
        let checkpoint = state.checkpoint.as_ref()?;
        Some(ReportOpening {
            event: state.checkpoint_seq,
            kind: checkpoint.kind,
            document_tokens: estimate_tokens(&checkpoint.document),
            tokens: self.view.opening_tokens,
            items_above: self.view.first as u64,
            archives: state.archives.iter().filter_map(|blob| blob.name.clone()).collect(),
            deferred: state.deferred.clone(),
        })
    }

    /// What the next compaction would do if somebody asked for it now.
    pub fn preview(&mut self, terms: &Terms) -> WindowPreview {
        self.limits = Limits::of(terms);
        let fill = self.fill();
        let limits = self.limits;
        let situation = Situation {
            moment: Moment::Manual,
            fill,
            trigger: limits.trigger,
            low: limits.low,
            usable: limits.usable,
            keep: limits.keep,
            keep_tidied: limits.keep_tidied,
            window: self,
        };
        let (shape, stage) = match terms.policy.strategy.choose(&situation) {
            Choice::Nothing => (Shape::default(), "nothing"),
            Choice::Tidy(sketch) if sketch.shape.retire_below > 0 => (sketch.shape, "retire"),
            Choice::Tidy(sketch) => (sketch.shape, "mask"),
            Choice::Checkpoint(sketch, author) => match author {
                Author::Carried | Author::Afresh => (sketch.shape, "summary"),
                Author::Rolled | Author::Own(_) => (sketch.shape, "rolled"),
            },
        };
        let after = self.size(&shape).min(fill);
        let can_be_sent = limits.has_room();
        let (stage, after) = if after < fill && can_be_sent { (stage, after) } else { ("nothing", fill) };
        let shape = if can_be_sent { shape } else { Shape::default() };
        let from = shape.cut.max(self.view.first);
        let kept: u64 = self.entries[from..].iter().map(|entry| entry.shown).sum();
        let floor = self.document_tokens.max(limits.document.min(fill / 10)) + self.last_turn();
        let counted = |tokens: u64| terms.counted(tokens);
        WindowPreview {
            fill: counted(fill),
            trigger: counted(limits.trigger),
            stage: stage.to_owned(),
            after: counted(after),
            kept: counted(kept),
            leaving: (from - self.view.first) as u64,
            floor_percent: u8::try_from(floor * 100 / limits.usable.max(1)).unwrap_or(100).min(100),
            ceiling_percent: limits.trigger_percent(&terms.policy).saturating_sub(1),
            document: counted(limits.document),
        }
    }

    /// Estimated tokens of the last turn that was answered, and what came since.
    fn last_turn(&self) -> u64 {
        let turn = self.entries.iter().rposition(Entry::opens_turn).unwrap_or(0);
        self.entries[turn.min(self.entries.len())..].iter().map(|entry| entry.shown).sum()
    }
}

fn request(last: &hames_protocol::LastRequest) -> ReportRequest {
    let changed_by = last.changed_by();
    let cause = last.causes.first().filter(|cause| changed_by == Some(cause.what));
    ReportRequest {
        event: last.seq,
        bytes: last.bytes,
        changed_at: last.changed_at,
        changed_why: last.changed_why.clone(),
        changed_by,
        changed_by_event: cause.map(|cause| cause.seq),
    }
}

fn kind(origin: Origin) -> ItemKind {
    match origin {
        Origin::Opening | Origin::Message => ItemKind::User,
        Origin::Nudge => ItemKind::Nudge,
        Origin::Pin => ItemKind::Pin,
        Origin::Answer => ItemKind::Answer,
        Origin::Result => ItemKind::Result,
    }
}

fn label(entry: &Entry) -> String {
    let text = match entry.item.as_ref() {
        Item::User(message) => words::text_of(message),
        Item::Assistant(answer) if answer.text.trim().is_empty() => {
            let calls: Vec<String> = answer.calls.iter().map(|call| call.label.to_string()).collect();
            calls.join(", ")
        }
        Item::Assistant(answer) => answer.text.clone(),
        Item::Tool(_) => entry.label.to_string(),
    };
    let line = text.lines().next().unwrap_or("");
    words::clipped(line, LABEL)
}

fn kept(entry: &Entry, state: &WindowState) -> Option<String> {
    let blob = match entry.item.as_ref() {
        Item::Tool(result) => state.masked.get(&result.call_id).and_then(Option::as_ref).or(result.blob.as_ref()),
        Item::User(_) => state.externalised.get(&entry.place.event).and_then(|part| part.blob.as_ref()),
        Item::Assistant(_) => None,
    };
    blob.and_then(|blob| blob.name.clone())
}

/// Bytes of an item's text, arguments and passed-back reasoning included.
fn bytes_of(item: &Item) -> u64 {
    let parts = |parts: &[Part]| -> usize {
        parts.iter().map(|part| if let Part::Text { text } = part { text.len() } else { 0 }).sum()
    };
    let bytes = match item {
        Item::User(user) => parts(&user.parts) + user.note.as_deref().map_or(0, str::len),
        Item::Assistant(answer) => {
            let extra = |extra: &Option<String>| extra.as_ref().map_or(0, String::len);
            let calls: usize =
                answer.calls.iter().map(|call| call.name.len() + call.arguments.len() + extra(&call.extra)).sum();
            let thoughts = answer
                .reasoning
                .iter()
                .map(|block| block.text.len() + block.blocks.iter().map(String::len).sum::<usize>());
            answer.text.len() + calls + thoughts.sum::<usize>()
        }
        Item::Tool(result) => result.text.len(),
    };
    bytes as u64
}

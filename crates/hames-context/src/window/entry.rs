//! One item of the conversation as the window sees it: where it stands, what it costs, how it is shown.

use std::sync::Arc;

use hames_protocol::{CallId, Externalised, Item, Label, Origin, Place};

use crate::{estimate_item, estimate_tokens};

/// Estimated tokens of the words of a stub, its label left aside.
const STUB_TOKENS: u64 = 34;
/// A result is worth a stub when that saves so many tokens at least.
const LEAST_SAVED: u64 = 48;

/// How an item is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Full,
    /// A stub, or beginning and end.
    Stub,
    Omitted,
}

/// An item and what is known of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) item: Arc<Item>,
    pub(crate) place: Place,
    /// Estimated tokens as it is.
    pub(crate) tokens: u64,
    /// Estimated tokens as it is shown; 0 where it is not.
    pub(crate) shown: u64,
    pub(crate) how: How,
    /// Estimated tokens as a stub at most; 0 for what cannot become one.
    pub(crate) stub: u64,
    /// Estimated tokens of the names of its calls in a digest at most.
    pub(crate) named: u64,
    /// Of a result, what the call is called.
    pub(crate) label: Label,
    /// Whether its images are left out of what is sent.
    pub(crate) is_without_images: bool,
    /// Whether it, or something of its step, is pinned.
    pub(crate) pinned: bool,
    /// Whether it says what can be done or how.
    pub(crate) capability: bool,
    /// Whether something of its step does: such a step is no exchange to be left out.
    pub(crate) of_capability: bool,
    /// What was made to stand in its place, and of what.
    pub(crate) made: Option<(Option<Externalised>, Arc<Item>)>,
}

impl Entry {
    /// An item; `label` is that of the call that a result answers.
    pub(crate) fn new(item: &Arc<Item>, place: &Place, label: Label) -> Self {
        let tokens = estimate_item(item);
        let mut entry = Self {
            item: Arc::clone(item),
            place: place.clone(),
            tokens,
            shown: 0,
            how: How::Omitted,
            stub: 0,
            named: names(item),
            label,
            is_without_images: false,
            pinned: false,
            capability: matches!(item.as_ref(), Item::Tool(result) if result.capability),
            of_capability: false,
            made: None,
        };
        if entry.call().is_some() {
            let stub = STUB_TOKENS + label_tokens(&entry.label);
            entry.stub = if tokens >= stub + LEAST_SAVED { stub } else { 0 };
        }
        entry
    }

    /// The call that it answers.
    pub(crate) fn call(&self) -> Option<&CallId> {
        match self.item.as_ref() {
            Item::Tool(result) => Some(&result.call_id),
            _ => None,
        }
    }

    /// Whether it begins something that can be left out alone: anything but a result.
    pub(crate) fn begins(&self) -> bool {
        !matches!(self.item.as_ref(), Item::Tool(_))
    }

    /// Whether it belongs to an exchange: an answer with calls, or a result.
    pub(crate) fn is_exchange(&self) -> bool {
        match self.item.as_ref() {
            Item::Assistant(answer) => !answer.calls.is_empty(),
            Item::Tool(_) => true,
            Item::User(_) => false,
        }
    }

    /// The kind of loop it is a nudge about.
    pub(crate) fn nudge(&self) -> Option<&str> {
        match self.item.as_ref() {
            Item::User(message) => message.nudge.as_deref(),
            _ => None,
        }
    }

    /// Whether a person said it.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.place.origin, Origin::Opening | Origin::Message)
    }

    pub(crate) fn opens_turn(&self) -> bool {
        self.place.origin == Origin::Opening
    }

    /// Whether it can still become a stub; what says what can be done only where that is meant too.
    pub(crate) fn maskable(&self, capabilities: bool) -> bool {
        self.stub > 0 && self.how == How::Full && !self.pinned && (capabilities || !self.capability)
    }

    /// Whether it may be left out with the rest of its exchange while its turn stays.
    pub(crate) fn retirable(&self) -> bool {
        self.is_exchange() && !self.pinned && !self.of_capability
    }

    /// Whether there is anything to send of it.
    pub(crate) fn says_something(&self) -> bool {
        match self.item.as_ref() {
            Item::User(user) => {
                user.parts.iter().any(|part| match part {
                    hames_protocol::Part::Text { text } => !text.trim().is_empty(),
                    hames_protocol::Part::Image { .. } => true,
                }) || user.note.as_deref().is_some_and(|note| !note.trim().is_empty())
            }
            Item::Assistant(answer) => !answer.text.trim().is_empty() || !answer.calls.is_empty(),
            Item::Tool(_) => true,
        }
    }
}

/// Estimated tokens that the names of an answer's calls have in a digest, separators and counts included.
fn names(item: &Item) -> u64 {
    const MOST: u64 = 16;
    const AROUND: u64 = 2;
    let Item::Assistant(answer) = item else { return 0 };
    answer.calls.iter().map(|call| label_tokens(&call.label).min(MOST) + AROUND).sum()
}

/// Estimated tokens of a label at most, without writing it out.
fn label_tokens(label: &Label) -> u64 {
    estimate_tokens(&label.tool) + estimate_tokens(&label.target) + estimate_tokens(&label.size) + 1
}

//! What a window holds, item by item: the words in which it is told to people and programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Break, Repairs};
use crate::{CheckpointKind, PinnedBy, SeqSpan};

/// What an item is to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// It stays whatever leaves.
    Pinned,
    /// It is sent as it is.
    Active,
    /// It is still part of the window, but not sent as it is.
    Retained,
    /// It left the window; the session keeps it.
    Archived,
}

/// How an item is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    /// As it is.
    Full,
    /// As a line that says what it was, or its beginning and end.
    Stub,
    /// Inside what the window opens with.
    Opening,
    /// Not at all.
    Omitted,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A message of the user.
    User,
    /// A message of the loop guard.
    Nudge,
    /// A text that was pinned.
    Pin,
    /// An answer of the model.
    Answer,
    /// What a call gave.
    Result,
}

/// One item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportItem {
    /// The event that closed it; its name for pins.
    pub event: u64,
    /// Ordinal of its run.
    pub turn: u32,
    /// What it is.
    pub kind: ItemKind,
    /// What it is about: the beginning of what was said, or the calls.
    pub label: String,
    /// What it is to the window.
    pub state: ItemState,
    /// How it is sent.
    pub projection: Projection,
    /// Estimated tokens as it is.
    pub tokens: u64,
    /// Estimated tokens as it is sent.
    pub sent_tokens: u64,
    /// Bytes of its text.
    pub bytes: u64,
    /// Bytes of it that are sent.
    pub sent_bytes: u64,
    /// The name under which it is kept whole, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// The name of the text of everything that left the window with it, where it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
}

/// A sum of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportSum {
    /// How many.
    pub items: u64,
    /// Estimated tokens.
    pub tokens: u64,
    /// Bytes.
    pub bytes: u64,
}

impl ReportSum {
    /// One more.
    pub fn add(&mut self, tokens: u64, bytes: u64) {
        self.items += 1;
        self.tokens += tokens;
        self.bytes += bytes;
    }
}

/// The marks of the budget. All in tokens as the provider would count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportBudget {
    /// The window.
    pub window: u64,
    /// Kept for the answer.
    pub reserve: u64,
    /// Kept free because estimates are estimates.
    pub margin: u64,
    /// The window less the reserve.
    pub usable: u64,
    /// At this fill the window is tidied.
    pub trigger: u64,
    /// What stays verbatim then.
    pub landing: u64,
    /// Tools and system text.
    pub head: u64,
    /// What a request has now, head included.
    pub fill: u64,
    /// What may be pinned.
    pub pin_limit: u64,
    /// What is pinned.
    pub pinned: u64,
    /// Thousandths of a counted token to an estimated one.
    pub ratio: u64,
}

/// What the window opens with, where something left it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportOpening {
    /// The checkpoint's event.
    pub event: u64,
    /// Who wrote the document.
    pub kind: CheckpointKind,
    /// Estimated tokens of the document.
    pub document_tokens: u64,
    /// Estimated tokens of all of it, pins included.
    pub tokens: u64,
    /// Items before the window, kept in the session.
    pub items_above: u64,
    /// Names of the texts of what left, oldest first.
    pub archives: Vec<String>,
    /// What no document tells of.
    pub deferred: Vec<SeqSpan>,
}

/// Where a pin stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportPin {
    /// The event that added it.
    pub pin: u64,
    /// The event of what is pinned.
    pub item: u64,
    /// By whom.
    pub by: PinnedBy,
    /// How it is sent: `stub` where pins had to be cut short.
    pub projection: Projection,
}

/// The last request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportRequest {
    /// Its `step.start`.
    pub event: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// The first byte that differs from the request before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<u64>,
    /// `first`, `appended`, `item`, `images` or `head`.
    pub changed_why: String,
    /// The decision that changed it, where it changed before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<Break>,
    /// The event of that decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by_event: Option<u64>,
}

/// What was sent since the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportSent {
    /// Requests.
    pub requests: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes behind the first that differed.
    pub uncached_bytes: u64,
    /// Requests that changed before their end, by what changed them.
    pub breaks: std::collections::BTreeMap<String, u64>,
}

/// A window, told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowReport {
    /// The strategy.
    pub strategy: String,
    /// The marks.
    pub budget: ReportBudget,
    /// Every item, oldest first.
    pub items: Vec<ReportItem>,
    /// What is sent, the opening included.
    pub sent: ReportSum,
    /// What stubs and parts leave out.
    pub masked: ReportSum,
    /// Exchanges that left while their turn stays.
    pub retired: ReportSum,
    /// What is before the window.
    pub archived: ReportSum,
    /// What the window opens with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<ReportOpening>,
    /// The pins.
    pub pins: Vec<ReportPin>,
    /// The last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ReportRequest>,
    /// All requests.
    pub requests: ReportSent,
    /// What was repaired, and how often.
    pub repairs: Repairs,
}

/// What the next compaction would do. Tokens as the provider would count them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowPreview {
    /// What a request has now, head included.
    pub fill: u64,
    /// At this fill it begins by itself.
    pub trigger: u64,
    /// What would be done: `nothing`, `mask`, `retire`, `summary`, `rolled` or `trim`.
    pub stage: String,
    /// What a request has then.
    pub after: u64,
    /// What stays verbatim.
    pub kept: u64,
    /// Items that would leave.
    pub leaving: u64,
    /// The lowest landing point that means anything, in percent: what document and last turn have already.
    pub floor_percent: u8,
    /// The highest: one less than the trigger.
    pub ceiling_percent: u8,
    /// What a document would have at most.
    pub document: u64,
}

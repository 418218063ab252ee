//! Bodies of what is decided about the window: what leaves it, what opens it, what stays in it. And of what children
//! report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body;
use crate::{BlobRef, CallId, Cost, ModelRef, RunResult, Usage};

body! {
    /// Body of `window.masked`.
    WindowMasked {
        /// Calls whose results are sent as stubs from now on.
        calls: Vec<CallId>,
        /// Estimated tokens saved.
        tokens: u64,
        /// What of them was kept whole for it, so that it can be recalled: results that the window had whole until now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] kept: Vec<KeptOutput>,
    }
}
body! {
    /// A result that was kept whole when it left the window.
    KeptOutput {
        /// The call.
        call_id: CallId,
        /// Where it is.
        blob: BlobRef,
    }
}
/// What of the beginning of a conversation left the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetireScope {
    /// All of it, but for pins.
    #[default]
    Turns,
    /// Answers with calls, and what the calls gave. Messages and answers without calls stay.
    Exchanges,
}
body! {
    /// Body of `window.retired`.
    WindowRetired {
        /// Up to and including this event.
        up_to_seq: u64,
        /// Estimated tokens saved.
        tokens: u64,
        /// What of it.
        #[serde(default)] scope: RetireScope,
        /// The whole text of what left with it, for Recall.
        #[serde(default, skip_serializing_if = "Option::is_none")] archive: Option<BlobRef>,
    }
}
/// Who wrote the document of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// A model.
    #[default]
    Summary,
    /// Hames, from what was said and done; no model was asked.
    Rolled,
    /// Nobody: the one before is carried on as it was.
    Trim,
}
body! {
    /// Events between two seqs, both included.
    SeqSpan {
        /// The first.
        from_seq: u64,
        /// The last.
        to_seq: u64,
    }
}
body! {
    /// Body of `window.checkpoint`.
    WindowCheckpoint {
        /// The window begins after this event.
        from_seq: u64,
        /// The state document the window opens with.
        document: String,
        /// Who wrote it.
        #[serde(default)] kind: CheckpointKind,
        /// Messages before `from_seq` that stay in the window as they are: what is being worked on, by their seq.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] held: Vec<u64>,
        /// What no document tells of, because it was more than could be read at once.
        #[serde(default, skip_serializing_if = "Option::is_none")] deferred: Option<SeqSpan>,
        /// The whole text of what left the window with it, for Recall.
        #[serde(default, skip_serializing_if = "Option::is_none")] archive: Option<BlobRef>,
        /// Estimated tokens that pins before `from_seq` may have in all; absent where they stay whole.
        #[serde(default, skip_serializing_if = "Option::is_none")] pin_tokens: Option<u64>,
        /// Estimated tokens of what the document tells of.
        #[serde(default)] span_tokens: u64,
        /// Estimated tokens that could have been read at once.
        #[serde(default)] ceiling_tokens: u64,
    }
}
body! {
    /// Body of `window.externalised`: a message that is too large for the window is sent as its beginning and end.
    WindowExternalised {
        /// The message's event.
        seq: u64,
        /// The whole text, for Recall.
        #[serde(default, skip_serializing_if = "Option::is_none")] blob: Option<BlobRef>,
        /// Bytes of text sent of its beginning.
        head_bytes: u64,
        /// Bytes of text sent of its end.
        tail_bytes: u64,
        /// Whether its images are left out too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] without_images: bool,
        /// Estimated tokens saved.
        tokens: u64,
    }
}
/// What is pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PinTarget {
    /// Something in the conversation.
    Message {
        /// Its event: `message.user`, `step.done`, `tool.done`.
        seq: u64,
    },
    /// A text of its own.
    Text {
        /// The text.
        text: String,
    },
}
/// Who pinned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinnedBy {
    /// A person.
    User,
    /// The model.
    Model,
}
body! {
    /// Body of `pin.added`: it stays in the window whatever leaves it.
    PinAdded {
        /// What.
        target: PinTarget,
        /// By whom.
        by: PinnedBy,
    }
}
body! {
    /// Body of `pin.removed`.
    PinRemoved {
        /// The event that added it.
        pin: u64,
    }
}
body! {
    /// Body of `window.limited`: the model takes less than was thought. A window is never raised this way.
    WindowLimited {
        /// The model.
        model: ModelRef,
        /// Tokens of its window from now on.
        tokens: u64,
        /// Tokens it was thought to have.
        before: u64,
        /// How it is known: `stated` by the provider, `observed` in what it counted, `estimated` where it said no number.
        how: String,
        /// The provider's own words, where it gave any.
        #[serde(default, skip_serializing_if = "Option::is_none")] words: Option<String>,
    }
}
body! {
    /// Body of `compaction.start`.
    CompactionStart {
        /// `threshold`, `overflow` or `manual`.
        reason: String,
        /// Estimated tokens before.
        tokens_before: u64,
    }
}
body! {
    /// Body of `compaction.pruned`.
    CompactionPruned {
        /// Estimated tokens removed.
        tokens_removed: u64,
        /// Messages removed.
        messages_removed: u64,
    }
}
body! {
    /// Body of `compaction.asked`: a model was asked for a document, and what that cost.
    CompactionAsked {
        /// The model.
        model: ModelRef,
        /// Whether it was asked to make one shorter.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] compress: bool,
        /// Tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")] usage: Option<Usage>,
        /// Money.
        #[serde(default, skip_serializing_if = "Option::is_none")] cost: Option<Cost>,
        /// Milliseconds.
        duration_ms: u64,
        /// Why there is no document, or only a part of one.
        #[serde(default, skip_serializing_if = "Option::is_none")] failure: Option<String>,
    }
}
body! {
    /// Body of `compaction.summary`.
    CompactionSummary {
        /// The summary.
        summary: String,
    }
}
body! {
    /// Body of `compaction.done`.
    CompactionDone {
        /// Estimated tokens before.
        tokens_before: u64,
        /// Estimated tokens after.
        tokens_after: u64,
    }
}
body! {
    /// Body of `subagent.start`.
    SubagentStart {
        /// The child's profile.
        profile: String,
        /// What it is to do.
        task: String,
        /// The call that started it.
        call_id: CallId,
    }
}
body! {
    /// Body of `subagent.done`.
    SubagentDone {
        /// The call that started it.
        call_id: CallId,
        /// How it ended.
        result: RunResult,
        /// Milliseconds.
        duration_ms: u64,
    }
}
body! {
    /// Body of `subagent.error`.
    SubagentError {
        /// The call that started it.
        call_id: CallId,
        /// What happened.
        error: String,
    }
}

//! Bodies of what is decided about the window, and of what children report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body;
use crate::{CallId, ModelRef, RunResult};

body! {
    /// Body of `window.masked`.
    WindowMasked {
        /// Calls whose results are sent as stubs from now on.
        calls: Vec<CallId>,
        /// Estimated tokens saved.
        tokens: u64,
    }
}
body! {
    /// Body of `window.retired`.
    WindowRetired {
        /// Everything up to and including this event left the window, but for pins.
        up_to_seq: u64,
        /// Estimated tokens saved.
        tokens: u64,
    }
}
body! {
    /// Body of `window.checkpoint`.
    WindowCheckpoint {
        /// The window begins after this event.
        from_seq: u64,
        /// The state document the window opens with.
        document: String,
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

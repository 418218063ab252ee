//! Bodies of what one request and its answer come to, piece by piece.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body;
use crate::{CallId, Cost, Declaration, Failure, Label, Lesson, ModelRef, Timings, Usage};

body! {
    /// Body of `step.start`.
    StepStart {
        /// Ordinal in the run, from 1.
        number: u32,
        /// Hash of the request.
        fingerprint: String,
        /// Bytes of the request.
        bytes: u64,
        /// Offset of the first byte that differs from the request before.
        #[serde(default, skip_serializing_if = "Option::is_none")] changed_at: Option<u64>,
        /// Why: `first`, `appended`, `item`, `images` (an item, of which images are sent no more), `head`.
        changed_why: String,
        /// Tokens of the input as estimated, before any correction.
        #[serde(default, skip_serializing_if = "Option::is_none")] input_estimate: Option<u64>,
    }
}
body! {
    /// Body of `text.delta`.
    TextDelta {
        /// Ordinal of the block in the step.
        index: u32,
        /// UTF-8 bytes of the block before this piece.
        offset: u64,
        /// The piece.
        text: String,
    }
}
body! {
    /// Body of `reasoning.delta`.
    ReasoningDelta {
        /// Ordinal of the block in the step.
        index: u32,
        /// UTF-8 bytes of the block before this piece.
        offset: u64,
        /// The piece.
        text: String,
    }
}
body! {
    /// Body of `tool.input.delta`.
    ToolInputDelta {
        /// Ordinal of the call in the step.
        index: u32,
        /// UTF-8 bytes of the arguments before this piece.
        offset: u64,
        /// The tool, with the first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")] name: Option<String>,
        /// The piece.
        text: String,
    }
}
body! {
    /// Body of `tool.output.delta`: at most ten a second and 4 KB each for one call.
    ToolOutputDelta {
        /// The call.
        call_id: CallId,
        /// Bytes of output before this piece; a gap means pieces were skipped.
        offset: u64,
        /// The piece, cleaned of terminal codes.
        text: String,
    }
}
body! {
    /// Body of `step.snapshot`: the open step so far.
    StepSnapshot {
        /// The blocks and calls, in order.
        blocks: Vec<OpenBlock>,
    }
}
body! {
    /// A block of the open step.
    OpenBlock {
        /// `text`, `reasoning` or `tool_input`.
        kind: OpenKind,
        /// Ordinal of the block, or of the call, in the step.
        index: u32,
        /// The tool, for `tool_input`.
        #[serde(default, skip_serializing_if = "Option::is_none")] name: Option<String>,
        /// All of it so far.
        text: String,
    }
}
/// What an open block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenKind {
    /// Visible text.
    Text,
    /// Reasoning.
    Reasoning,
    /// A call's arguments.
    ToolInput,
}
/// Why a block ended before the model ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The loop guard.
    Guard,
    /// A person, or the caller.
    Abort,
    /// A message that wanted to be heard at once.
    Interrupt,
    /// The process died.
    Crash,
    /// The output limit.
    Limit,
    /// The stream broke.
    Stream,
}
body! {
    /// Body of `reasoning.done`.
    ReasoningDone {
        /// Ordinal of the block in the step.
        index: u32,
        /// The block, with what has to go back to the provider.
        #[serde(flatten)] block: ReasoningBlock,
        /// Why it was cut, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")] cut: Option<Cut>,
    }
}
/// A block of reasoning that can go back to the provider exactly as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningBlock {
    /// What a person may read; empty where it is encrypted.
    pub text: String,
    /// The field it came in: `reasoning_content`, `reasoning` or `reasoning_details`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Opaque provider blocks, each the JSON text it was built from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
}
body! {
    /// Body of `text.done`.
    TextDone {
        /// Ordinal of the block in the step.
        index: u32,
        /// The text.
        text: String,
        /// Why it was cut, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")] cut: Option<Cut>,
    }
}
body! {
    /// Body of `tool.call`.
    ToolCall {
        /// Our id.
        call_id: CallId,
        /// The provider's id, as sent; may be empty.
        #[serde(default)] provider_id: String,
        /// The tool's name, as sent.
        name: String,
        /// The arguments, as sent.
        arguments: String,
        /// The arguments as they will be used; absent where they could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")] input: Option<Value>,
        /// What the call is called from here on.
        label: Label,
        /// What the tool declared of it; absent where there is no such tool or no readable input.
        #[serde(default, skip_serializing_if = "Option::is_none")] declaration: Option<Declaration>,
        /// What has to go back with the call verbatim, as JSON text.
        #[serde(default, skip_serializing_if = "Option::is_none")] extra: Option<String>,
    }
}
body! {
    /// Body of `step.done`.
    StepDone {
        /// As the provider named it; absent where it gave none.
        finish_reason: Option<String>,
        /// Whether the answer was whole, so that its calls run.
        whole: bool,
        /// Tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")] usage: Option<Usage>,
        /// Money.
        #[serde(default, skip_serializing_if = "Option::is_none")] cost: Option<Cost>,
        /// Times.
        #[serde(default)] timings: Timings,
        /// The provider's id of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")] request_id: Option<String>,
    }
}
body! {
    /// Body of `retry`.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Attempts there will be at most.
        max_attempts: u32,
        /// Milliseconds to wait first.
        delay_ms: u64,
        /// What failed.
        failure: Failure,
    }
}
body! {
    /// Body of `parameter.learned`.
    ParameterLearned {
        /// The model that refused.
        model: ModelRef,
        /// What is done from now on in requests to it.
        lesson: Lesson,
        /// The provider's own words, where it gave any.
        #[serde(default, skip_serializing_if = "Option::is_none")] words: Option<String>,
    }
}
body! {
    /// Body of `nudge`.
    Nudge {
        /// The kind of loop.
        kind: String,
        /// What the model is told.
        text: String,
        /// What was seen, in one sentence for people.
        #[serde(default, skip_serializing_if = "String::is_empty")] detected: String,
        /// What was done about it.
        #[serde(default, skip_serializing_if = "String::is_empty")] done: String,
        /// How many nudges of this kind that makes.
        #[serde(default)] count: u32,
        /// How many there may be before the run stops.
        #[serde(default)] max: u32,
    }
}
body! {
    /// Body of `loop.stopped`: a loop that nudges did not end. The run stops with it.
    LoopStopped {
        /// The kind of loop.
        kind: String,
        /// What was seen, in one sentence for people.
        detected: String,
        /// Nudges of this kind the model was given before.
        nudges: u32,
    }
}

//! What the conversation on the screen consists of.

use hames_protocol::{
    CallId, CheckpointKind, Cost, Cut, Delivery, Diff, Effect, Mode, RunId, RunResult, ToolErrorClass, Usage,
};

use super::child::Child;
use super::split::Splitter;

/// Names a block as long as it is shown: by the event that made it, so that folds and anchors outlive everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    /// Something of the log: the seq, and an ordinal where one event makes several.
    Log(u64, u8),
    /// Something that streams: what it is, and its ordinal in the step.
    Open(Streamed, u32),
    /// Something that is in no log.
    Loose(u64),
}

/// What streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Streamed {
    Reasoning,
    Text,
    Input,
}

/// One thing in the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) key: Key,
    /// Rises with every change.
    pub(super) version: u32,
    pub(super) kind: Kind,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    User(User),
    Reasoning(Prose),
    Answer(Prose),
    /// Arguments of a call that the model is writing.
    Writing {
        name: String,
        bytes: usize,
    },
    Card(Box<Card>),
    Note(Note),
    Checkpoint(Checkpoint),
    Badge(Badge),
    /// Everything of a child.
    Child(Box<Child>),
}

/// What the user said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct User {
    pub(super) prose: Prose,
    pub(super) images: Vec<String>,
    pub(super) delivery: Option<Delivery>,
}

/// Text, clean, and how it is split.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Prose {
    pub(super) text: String,
    pub(super) split: Splitter,
    pub(super) cut: Option<Cut>,
    pub(super) is_open: bool,
}

impl Prose {
    pub(super) fn whole(text: &str, cut: Option<Cut>) -> Self {
        let mut prose = Self { cut, ..Self::default() };
        prose.push(text);
        prose
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(&super::text::clean(text));
        self.split.read(&self.text);
    }
}

/// How far a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Progress {
    #[default]
    Asked,
    Waiting,
    Running,
    Done,
    Failed(ToolErrorClass),
}

/// An output that is kept whole outside of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Whole {
    /// The session's name for it; may be empty.
    pub(super) name: String,
    pub(super) hash: String,
    pub(super) bytes: u64,
}

/// A call. Where its beginning is not loaded, what is known of its end waits here for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Card {
    pub(super) call_id: Option<CallId>,
    /// Whether the event that asked for it is loaded.
    pub(super) has_call: bool,
    pub(super) label: String,
    pub(super) effect: Option<Effect>,
    pub(super) input: String,
    pub(super) progress: Progress,
    /// The end of what a running command printed.
    pub(super) live: String,
    pub(super) live_read: u64,
    pub(super) output: String,
    pub(super) lines: usize,
    pub(super) diffs: Vec<Diff>,
    pub(super) images: usize,
    /// The whole output, where only a part is here.
    pub(super) whole: Option<Whole>,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
    pub(super) is_served: bool,
    pub(super) is_proposed: bool,
    /// The model is sent a stub instead of the output.
    pub(super) is_masked: bool,
    /// Why somebody has to decide, or what was decided.
    pub(super) decision: String,
}

impl Card {
    /// Takes over what a later part of the log said of the same call.
    pub(super) fn absorb(&mut self, later: Card) {
        let is_newer = |a: Progress, b: Progress| rank(b) > rank(a);
        if is_newer(self.progress, later.progress) {
            self.progress = later.progress;
            self.output = later.output;
            self.lines = later.lines;
            self.live = later.live;
            self.live_read = later.live_read;
            self.images = later.images;
            self.whole = later.whole;
            self.exit_code = later.exit_code;
            self.duration_ms = later.duration_ms;
            self.is_served = later.is_served;
        }
        if !later.diffs.is_empty() {
            self.diffs = later.diffs;
        }
        self.is_proposed |= later.is_proposed;
        self.is_masked |= later.is_masked;
        if !later.decision.is_empty() {
            self.decision = later.decision;
        }
    }
}

fn rank(progress: Progress) -> u8 {
    match progress {
        Progress::Asked => 0,
        Progress::Waiting => 1,
        Progress::Running => 2,
        Progress::Done | Progress::Failed(_) => 3,
    }
}

/// What a note tells of, for its colour and its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Nudge,
    Retry,
    Bad,
    Warn,
    Plain,
}

/// Something said by Hames.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Note {
    pub(super) tone: Tone,
    /// In one line.
    pub(super) text: String,
    /// More of it; may be empty.
    pub(super) detail: String,
    /// The run whose end it tells of.
    pub(super) ends: Option<(RunId, RunResult)>,
}

impl Note {
    pub(super) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into(), detail: String::new(), ends: None }
    }

    pub(super) fn with(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}

/// A document the window was opened with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Checkpoint {
    pub(super) prose: Prose,
    pub(super) kind: CheckpointKind,
    /// The event that recorded it.
    pub(super) made_at: u64,
    /// The window begins behind this event: the card stands there.
    pub(super) behind: u64,
    pub(super) span_tokens: u64,
    pub(super) deferred: bool,
}

/// What a turn came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Badge {
    pub(super) run: Option<RunId>,
    pub(super) mode: Option<Mode>,
    pub(super) model: String,
    pub(super) usage: Usage,
    /// One sum for each currency.
    pub(super) costs: Vec<Cost>,
    pub(super) duration_ms: u64,
    pub(super) first_token_ms: Option<u64>,
}

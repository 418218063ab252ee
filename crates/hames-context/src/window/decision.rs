//! What has to be recorded before a request can be planned on.

use std::sync::Arc;

use hames_protocol::{
    BlobRef, CallId, CompactionDone, CompactionPruned, CompactionStart, CompactionSummary, Event, Item, KeptOutput,
    Repairs, WindowCheckpoint, WindowExternalised, WindowMasked, WindowRetired,
};

use super::words;

/// A text to be kept whole, so that it can be recalled.
#[derive(Clone, Debug)]
pub struct Keep(KeepText);

#[derive(Clone, Debug)]
enum KeepText {
    Item(Arc<Item>),
    Text(Arc<str>),
}

impl Keep {
    pub(crate) fn item(item: &Arc<Item>) -> Self {
        Self(KeepText::Item(Arc::clone(item)))
    }

    pub(crate) fn text_of(text: String) -> Self {
        Self(KeepText::Text(text.into()))
    }

    /// The text.
    pub fn text(&self) -> String {
        match &self.0 {
            KeepText::Item(item) => words::pinned_text(item),
            KeepText::Text(text) => text.to_string(),
        }
    }
}

/// Events to be recorded, and texts to be kept for them first. Planning goes on once they are.
#[derive(Clone, Debug)]
pub struct Decision {
    /// To be kept, each under a name of its own; what cannot be kept is `None` in [`events`](Self::events).
    pub keeps: Vec<Keep>,
    steps: Vec<Step>,
    /// What was done and how often by now, for the log.
    pub line: String,
    /// Estimated tokens before, head included.
    pub tokens_before: u64,
    /// Estimated tokens after, head included.
    pub tokens_after: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Plain(Box<Event>),
    /// Calls, and which of `keeps` is whose.
    Mask {
        calls: Vec<CallId>,
        tokens: u64,
        kept: Vec<(CallId, usize)>,
    },
    Retire {
        retired: WindowRetired,
        archive: usize,
    },
    Checkpoint {
        checkpoint: WindowCheckpoint,
        archive: Option<usize>,
    },
    Externalise {
        message: WindowExternalised,
        kept: Option<usize>,
    },
}

impl Decision {
    pub(crate) fn new(tokens_before: u64, tokens_after: u64) -> Self {
        Self { keeps: Vec::new(), steps: Vec::new(), line: String::new(), tokens_before, tokens_after }
    }

    pub(crate) fn starts(&mut self, reason: &str) {
        let start = CompactionStart { reason: reason.to_owned(), tokens_before: self.tokens_before };
        self.steps.push(Step::Plain(Box::new(start.into())));
    }

    pub(crate) fn mask(&mut self, results: &[Arc<Item>], tokens: u64) {
        let (mut calls, mut kept) = (Vec::new(), Vec::new());
        for item in results {
            let Item::Tool(result) = item.as_ref() else { continue };
            calls.push(result.call_id.clone());
            if result.blob.is_none() {
                kept.push((result.call_id.clone(), self.keeps.len()));
                self.keeps.push(Keep::item(item));
            }
        }
        let messages_removed = calls.len() as u64;
        self.steps.push(Step::Mask { calls, tokens, kept });
        let pruned = CompactionPruned { tokens_removed: tokens, messages_removed };
        self.steps.push(Step::Plain(Box::new(pruned.into())));
    }

    pub(crate) fn retire(&mut self, retired: WindowRetired, text: String) {
        self.keeps.push(Keep::text_of(text));
        self.steps.push(Step::Retire { retired, archive: self.keeps.len() - 1 });
    }

    pub(crate) fn checkpoint(&mut self, checkpoint: WindowCheckpoint, archive: Option<String>) {
        if !checkpoint.document.is_empty() {
            let summary = CompactionSummary { summary: checkpoint.document.clone() };
            self.steps.push(Step::Plain(Box::new(summary.into())));
        }
        let archive = archive.map(|text| {
            self.keeps.push(Keep::text_of(text));
            self.keeps.len() - 1
        });
        self.steps.push(Step::Checkpoint { checkpoint, archive });
    }

    pub(crate) fn externalise(&mut self, message: WindowExternalised, text: Option<String>) {
        let kept = text.map(|text| {
            self.keeps.push(Keep::text_of(text));
            self.keeps.len() - 1
        });
        self.steps.push(Step::Externalise { message, kept });
    }

    pub(crate) fn ends(&mut self) {
        let done = CompactionDone { tokens_before: self.tokens_before, tokens_after: self.tokens_after };
        self.steps.push(Step::Plain(Box::new(done.into())));
    }

    /// Writes the line, counting what is decided: nothing is logged uncounted.
    pub(crate) fn counted(mut self, what: &str, repairs: &Repairs) -> Self {
        let mut repairs = repairs.clone();
        for event in self.events(&[]) {
            repairs.apply(&event, true);
        }
        self.line = format!("{what}: {} -> {} tokens | {}", self.tokens_before, self.tokens_after, repairs.line());
        self
    }

    /// The events to record, in order. `kept` says where each of [`keeps`](Self::keeps) is by now.
    pub fn events(&self, kept: &[Option<BlobRef>]) -> Vec<Event> {
        let blob = |at: usize| kept.get(at).cloned().flatten();
        let event = |step: &Step| match step {
            Step::Plain(event) => event.as_ref().clone(),
            Step::Mask { calls, tokens, kept } => {
                let kept =
                    kept.iter().filter_map(|(call, at)| Some(KeptOutput { call_id: call.clone(), blob: blob(*at)? }));
                WindowMasked { calls: calls.clone(), tokens: *tokens, kept: kept.collect() }.into()
            }
            Step::Retire { retired, archive } => WindowRetired { archive: blob(*archive), ..retired.clone() }.into(),
            Step::Checkpoint { checkpoint, archive } => {
                WindowCheckpoint { archive: archive.and_then(blob), ..checkpoint.clone() }.into()
            }
            Step::Externalise { message, kept } => {
                WindowExternalised { blob: kept.and_then(blob), ..message.clone() }.into()
            }
        };
        self.steps.iter().map(event).collect()
    }
}

//! How often the window was repaired, and by what: one log line says what happened here, only a count says whether it
//! is the rule or the exception.

use std::fmt;

use crate::{CheckpointKind, Event};

/// Of a session's own agent, and of its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct RepairCount {
    /// The session's own.
    pub session: u64,
    /// Its children's.
    pub children: u64,
}

impl RepairCount {
    fn add(&mut self, is_own: bool) {
        if is_own { self.session += 1 } else { self.children += 1 }
    }

    /// Both.
    pub fn total(&self) -> u64 {
        self.session + self.children
    }
}

impl fmt::Display for RepairCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} session/{} sub)", self.total(), self.session, self.children)
    }
}

/// Counts of what was done to windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Repairs {
    /// Batches of results that became stubs.
    pub masks: RepairCount,
    /// Exchanges or turns that left without a document.
    pub retirements: RepairCount,
    /// Documents, by a model or by Hames.
    pub compactions: RepairCount,
    /// Windows moved without one.
    pub trims: RepairCount,
    /// Messages sent in part.
    pub externalised: RepairCount,
    /// Estimated tokens of the widest span a document was written of.
    pub widest_span: u64,
    /// What could have been read at once then.
    pub ceiling: u64,
    /// Spans that came within a tenth of what could be read.
    pub near_ceiling: u64,
}

impl Repairs {
    /// Counts an event; [`line`](Self::line) says what it comes to.
    pub fn apply(&mut self, event: &Event, is_own: bool) {
        match event {
            Event::WindowMasked(_) => self.masks.add(is_own),
            Event::WindowRetired(_) => self.retirements.add(is_own),
            Event::WindowExternalised(_) => self.externalised.add(is_own),
            Event::WindowCheckpoint(checkpoint) => {
                match checkpoint.kind {
                    CheckpointKind::Trim => self.trims.add(is_own),
                    CheckpointKind::Summary | CheckpointKind::Rolled => self.compactions.add(is_own),
                }
                let (span, ceiling) = (checkpoint.span_tokens, checkpoint.ceiling_tokens);
                if span > self.widest_span {
                    (self.widest_span, self.ceiling) = (span, ceiling);
                }
                self.near_ceiling += u64::from(ceiling > 0 && span.saturating_mul(10) >= ceiling.saturating_mul(9));
            }
            _ => {}
        }
    }

    /// The counts in one line for a log.
    pub fn line(&self) -> String {
        let mut line = format!(
            "tally: mask {} · retire {} · compaction {} · trim {} · externalised {}",
            self.masks, self.retirements, self.compactions, self.trims, self.externalised
        );
        if self.ceiling > 0 {
            let (widest, ceiling) = (self.widest_span, self.ceiling);
            line.push_str(&format!(" · widest span {widest} of {ceiling} tokens"));
        }
        if self.near_ceiling > 0 {
            line.push_str(&format!(" · {} within 10% of the ceiling", self.near_ceiling));
        }
        if self.trims.total() > self.compactions.total() {
            line.push_str(" · windows are trimmed more often than summarised");
        }
        line
    }
}

//! How much may be pinned.

use std::fmt;

use hames_protocol::{PinTarget, PinnedBy};

use super::Window;
use crate::estimate_tokens;
use crate::policy::{Limits, Terms};

/// Why something cannot be pinned. Numbers are estimated tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinRefused {
    /// Nothing stands there.
    Unknown {
        /// The event that was named.
        seq: u64,
    },
    /// There is nothing in it.
    Empty,
    /// Pins would take more of the window than they may.
    TooMuch {
        /// What it has.
        tokens: u64,
        /// What is pinned already.
        pinned: u64,
        /// What may be pinned in all.
        limit: u64,
    },
}

impl fmt::Display for PinRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinRefused::Unknown { seq } => {
                write!(
                    f,
                    "Nothing in the conversation stands at event {seq}. Name a message, an answer or a result by its event."
                )
            }
            PinRefused::Empty => f.write_str("There is no text to pin."),
            PinRefused::TooMuch { tokens, pinned, limit } => write!(
                f,
                "This has about {tokens} tokens; {pinned} are pinned already, and pins may have {limit} in all (15% of the usable \
                 window). Remove a pin first, or pin a shorter text."
            ),
        }
    }
}

impl std::error::Error for PinRefused {}

impl Terms {
    /// Whether these texts and no others may be pinned besides what has so many estimated tokens.
    pub fn check_texts(&self, texts: &[String], others: u64) -> Result<(), PinRefused> {
        let tokens = texts.iter().map(|text| estimate_tokens(text)).sum();
        let limit = Limits::of(self).pins;
        if others + tokens > limit { Err(PinRefused::TooMuch { tokens, pinned: others, limit }) } else { Ok(()) }
    }
}

impl Window {
    /// Whether something may be pinned besides what is.
    pub fn check_pin(&self, target: &PinTarget, terms: &Terms) -> Result<(), PinRefused> {
        let tokens = match target {
            PinTarget::Text { text } if text.trim().is_empty() => return Err(PinRefused::Empty),
            PinTarget::Text { text } => estimate_tokens(text),
            PinTarget::Message { seq } => {
                let named = |entry: &&super::Entry| entry.place.event == *seq || entry.place.seq == *seq;
                let entry = self.entries.iter().find(named).ok_or(PinRefused::Unknown { seq: *seq })?;
                if !entry.says_something() {
                    return Err(PinRefused::Empty);
                }
                // Calls and results stay together.
                let step = self.entries.iter().filter(|other| other.place.seq == entry.place.seq);
                step.map(|entry| entry.tokens).sum()
            }
        };
        let pinned = self.pinned_tokens();
        let limit = Limits::of(terms).pins;
        if pinned + tokens > limit { Err(PinRefused::TooMuch { tokens, pinned, limit }) } else { Ok(()) }
    }

    /// Estimated tokens of what is pinned and not by the model.
    pub fn pinned_by_people(&self) -> u64 {
        let by_model = |entry: &&super::Entry| {
            let is_it = |pin: &&hames_protocol::Pin| pin.item() == entry.place.event;
            self.known.state.pins.iter().find(is_it).is_some_and(|pin| pin.by == PinnedBy::Model)
        };
        self.pinned_tokens()
            - self.entries.iter().filter(by_model).map(|entry| entry.tokens).sum::<u64>().min(self.pinned_tokens())
    }

    /// Estimated tokens of everything that is pinned, the rest of its steps included.
    pub fn pinned_tokens(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.pinned).map(|entry| entry.tokens).sum()
    }
}

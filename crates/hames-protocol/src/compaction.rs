//! How a session's window is kept, as a person sets it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ModelRef, UnknownName};

/// Which stages a window goes through when it is tidied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CompactionStrategy {
    /// Results become stubs, finished calls leave, and a model updates one document.
    #[default]
    Carried,
    /// The same without a model: the document is rolled from what was said and done.
    Deterministic,
    /// Old results are pruned; where that is not enough, a model sums everything up anew.
    PruneThenSummarize,
}

impl CompactionStrategy {
    /// `carried`, `deterministic` or `prune-then-summarize`.
    pub fn as_str(self) -> &'static str {
        match self {
            CompactionStrategy::Carried => "carried",
            CompactionStrategy::Deterministic => "deterministic",
            CompactionStrategy::PruneThenSummarize => "prune-then-summarize",
        }
    }
}

impl fmt::Display for CompactionStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CompactionStrategy {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "carried" => Ok(CompactionStrategy::Carried),
            "deterministic" => Ok(CompactionStrategy::Deterministic),
            "prune-then-summarize" | "prune-then-summarise" => Ok(CompactionStrategy::PruneThenSummarize),
            _ => Err(UnknownName { given: text.into(), allowed: "carried, deterministic, prune-then-summarize" }),
        }
    }
}

/// When a window is tidied, how far, and how. A field that is absent is not set here. Numbers out of bounds are brought
/// within them where they are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionSettings {
    /// Whether it happens by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
    /// How.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<CompactionStrategy>,
    /// Percent of the usable window at which it begins; 80 where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<u8>,
    /// Percent of the usable window that stays verbatim; 10 where nobody says, 0 for the last complete turn alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<u8>,
    /// The model that writes documents, where it is not the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_model: Option<ModelRef>,
}

impl CompactionSettings {
    /// These settings with every field that `patch` sets replaced.
    pub fn patched(&self, patch: &Self) -> Self {
        Self {
            auto: patch.auto.or(self.auto),
            strategy: patch.strategy.or(self.strategy),
            trigger: patch.trigger.or(self.trigger),
            landing: patch.landing.or(self.landing),
            summary_model: patch.summary_model.clone().or_else(|| self.summary_model.clone()),
        }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

//! How a session's window is kept, as a person sets it.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

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

/// The lowest and the highest trigger, in percent. Below it a session would do little else than tidy; above it what comes
/// between a look at the fill and the next would have no room.
pub const TRIGGER_PERCENT: RangeInclusive<u8> = 20..=95;
/// The trigger where nobody says.
pub const DEFAULT_TRIGGER: u8 = 80;
/// The landing point where nobody says.
pub const DEFAULT_LANDING: u8 = 10;

/// When a window is tidied, how far, and how. A field that is absent is not set here. Numbers out of bounds are brought
/// within them when they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionSettings {
    /// Whether it happens by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
    /// How.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<CompactionStrategy>,
    /// Percent of the usable window at which it begins, 20 to 95; 80 where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trigger")]
    #[schemars(range(min = 20, max = 95))]
    pub trigger: Option<u8>,
    /// Percent of the usable window that stays verbatim, less than the trigger; 10 where nobody says, 0 for the last
    /// complete turn alone.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "landing")]
    #[schemars(range(min = 0, max = 94))]
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

    /// Trigger and landing in force: what is set or the defaults, each within its bounds.
    pub fn marks(&self) -> (u8, u8) {
        let trigger = within(&TRIGGER_PERCENT, self.trigger.unwrap_or(DEFAULT_TRIGGER).into());
        (trigger, self.landing.unwrap_or(DEFAULT_LANDING).min(trigger - 1))
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The percentage next to a number; none for what is no number.
fn percent<'de, D: Deserializer<'de>>(from: D, bounds: RangeInclusive<u8>) -> Result<Option<u8>, D::Error> {
    let given = Value::deserialize(from)?.as_f64().filter(|number| !number.is_nan());
    Ok(given.map(|number| within(&bounds, number)))
}

fn within(bounds: &RangeInclusive<u8>, number: f64) -> u8 {
    // Between two bounds of a u8, so the cast is exact.
    number.round().clamp((*bounds.start()).into(), (*bounds.end()).into()) as u8
}

fn trigger<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    percent(from, TRIGGER_PERCENT)
}

fn landing<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    percent(from, 0..=TRIGGER_PERCENT.end() - 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_are_brought_within_their_bounds_when_they_are_read() {
        for (given, marks) in [
            (json!({}), (80, 10)),
            (json!({"trigger": 50}), (50, 10)),
            (json!({"trigger": 5}), (20, 10)),
            (json!({"trigger": -3, "landing": -1}), (20, 0)),
            (json!({"trigger": 300, "landing": 1e9}), (95, 94)),
            (json!({"trigger": 49.6, "landing": 9.4}), (50, 9)),
            (json!({"trigger": 30, "landing": 30}), (30, 29)),
            (json!({"trigger": "50", "landing": [1]}), (80, 10)),
            (json!({"trigger": null, "landing": null}), (80, 10)),
        ] {
            let settings: CompactionSettings = serde_json::from_value(given.clone()).unwrap();
            assert_eq!(settings.marks(), marks, "{given}");
        }
        let by_hand = CompactionSettings { trigger: Some(0), landing: Some(255), ..CompactionSettings::default() };
        assert_eq!(by_hand.marks(), (20, 19));
    }
}

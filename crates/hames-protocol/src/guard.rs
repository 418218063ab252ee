//! The loop guard's dials: twelve numbers, a sensitivity that sets them all, and one switch.
//!
//! Every number lies on a scale of its own; one that does not is brought to the nearest place on it, so that a file
//! somebody edited can never put the guard out of bounds. Reading a command line refuses it instead.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::UnknownName;

/// How soon the guard calls something a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardLevel {
    /// Never: nothing is detected, refused or served from memory.
    Off,
    /// Only clear and lasting loops.
    Low,
    /// As usual.
    #[default]
    Medium,
    /// Sooner.
    High,
}

impl GuardLevel {
    /// `off`, `low`, `medium` or `high`.
    pub fn as_str(self) -> &'static str {
        match self {
            GuardLevel::Off => "off",
            GuardLevel::Low => "low",
            GuardLevel::Medium => "medium",
            GuardLevel::High => "high",
        }
    }
}

impl FromStr for GuardLevel {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text.to_ascii_lowercase().as_str() {
            "off" => Ok(GuardLevel::Off),
            "low" => Ok(GuardLevel::Low),
            "medium" | "normal" => Ok(GuardLevel::Medium),
            "high" => Ok(GuardLevel::High),
            _ => Err(UnknownName { given: text.into(), allowed: "off, low, medium, high" }),
        }
    }
}

/// A number in hundredths, which every step on every scale is a multiple of.
type Hundredths = u32;

/// A scale, and where the presets stand on it.
struct Scale {
    name: &'static str,
    min: Hundredths,
    max: Hundredths,
    step: Hundredths,
    low: Hundredths,
    medium: Hundredths,
    high: Hundredths,
}

macro_rules! parameters {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal: $min:literal to $max:literal by $step:literal,
        low $low:literal, medium $medium:literal, high $high:literal; )*) => {
        /// One of the guard's numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum GuardParameter { $( $(#[$doc])* $variant, )* }

        impl GuardParameter {
            /// All of them, in the order they are shown.
            pub const ALL: [GuardParameter; 12] = [$( GuardParameter::$variant ),*];

            fn scale(self) -> Scale {
                match self {
                    $( GuardParameter::$variant => Scale {
                        name: $name, min: $min, max: $max, step: $step, low: $low, medium: $medium, high: $high,
                    }, )*
                }
            }
        }
    };
}

parameters! {
    /// Nudges that a kind of loop gets before it ends the run.
    MaxNudges = "max_nudges": 100 to 1_000 by 100, low 200, medium 200, high 300;
    /// Share of repeated trigrams in the reasoning of one step that makes it a loop.
    ReasoningThreshold = "reasoning_threshold": 5 to 100 by 5, low 65, medium 50, high 45;
    /// Tokens of reasoning before that is looked at.
    ReasoningMinTokens = "reasoning_min_tokens": 1_000 to 50_000 by 1_000, low 12_000, medium 6_000, high 5_000;
    /// Likeness of the reasoning of two steps that makes them a loop. 0.92 is a preset off the scale's steps.
    CrossTurnSimilarity = "cross_turn_similarity": 5 to 100 by 5, low 92, medium 85, high 75;
    /// Characters that both must have.
    CrossTurnMinLength = "cross_turn_min_length": 0 to 100_000 by 1_000, low 12_000, medium 12_000, high 12_000;
    /// How often an identical call that fails may run.
    ToolFailureRepeats = "tool_failure_repeats": 100 to 1_000 by 100, low 200, medium 200, high 200;
    /// Steps in a row with failed calls and none that succeeded.
    ErrorStreakTurns = "error_streak_turns": 100 to 1_000 by 100, low 500, medium 300, high 200;
    /// Identical successful calls in a row.
    ToolRepeatConsecutive = "tool_repeat_consecutive": 100 to 1_000 by 100, low 400, medium 300, high 200;
    /// Calls that are looked back on.
    ToolRepeatWindow = "tool_repeat_window": 100 to 5_000 by 100, low 2_000, medium 1_600, high 1_000;
    /// Identical successful calls among those.
    ToolRepeatWindowThreshold = "tool_repeat_window_threshold": 100 to 1_000 by 100, low 400, medium 300, high 200;
    /// Share of repeated trigrams in an answer that makes it a loop.
    AnswerThreshold = "answer_threshold": 5 to 100 by 5, low 70, medium 60, high 50;
    /// Tokens of an answer before that is looked at.
    AnswerMinTokens = "answer_min_tokens": 1_000 to 100_000 by 1_000, low 40_000, medium 30_000, high 20_000;
}

fn number(hundredths: Hundredths) -> f64 {
    f64::from(hundredths) / 100.0
}

impl GuardParameter {
    /// Its name in settings and configuration.
    pub fn name(self) -> &'static str {
        self.scale().name
    }

    /// The smallest number, the largest, and the step between two.
    pub fn range(self) -> (f64, f64, f64) {
        let Scale { min, max, step, .. } = self.scale();
        (number(min), number(max), number(step))
    }

    /// The scale in words: `from 1 to 10 in steps of 1`.
    pub fn scale_text(self) -> String {
        let (min, max, step) = self.range();
        format!("from {min} to {max} in steps of {step}")
    }

    /// The number of a preset. Off has none of its own and shows those of medium.
    pub fn preset(self, level: GuardLevel) -> f64 {
        number(self.preset_hundredths(level))
    }

    fn preset_hundredths(self, level: GuardLevel) -> Hundredths {
        let Scale { low, medium, high, .. } = self.scale();
        match level {
            GuardLevel::Low => low,
            GuardLevel::Off | GuardLevel::Medium => medium,
            GuardLevel::High => high,
        }
    }

    /// The place on the scale that is nearest; `None` for what is no number.
    pub fn nearest(self, value: f64) -> Option<f64> {
        self.nearest_hundredths(value).map(number)
    }

    fn nearest_hundredths(self, value: f64) -> Option<Hundredths> {
        if value.is_nan() {
            return None;
        }
        let Scale { min, max, step, low, medium, high, .. } = self.scale();
        let wanted = (value * 100.0).clamp(f64::from(min), f64::from(max));
        // A preset may stand between two steps; whoever stored it gets it back.
        if let Some(preset) = [low, medium, high].into_iter().find(|preset| (f64::from(*preset) - wanted).abs() < 1e-6)
        {
            return Some(preset);
        }
        let steps = ((wanted - f64::from(min)) / f64::from(step)).round();
        // Between 0 and 1,000 steps by the clamp above.
        Some(min + steps as Hundredths * step)
    }
}

impl fmt::Display for GuardParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for GuardParameter {
    type Err = UnknownName;
    /// Takes `max_nudges` and `maxNudges` alike.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
        let allowed = "max_nudges, reasoning_threshold, reasoning_min_tokens, cross_turn_similarity, cross_turn_min_length, \
                       tool_failure_repeats, error_streak_turns, tool_repeat_consecutive, tool_repeat_window, \
                       tool_repeat_window_threshold, answer_threshold, answer_min_tokens, guard_response";
        Self::ALL
            .into_iter()
            .find(|parameter| plain(parameter.name()) == plain(text))
            .ok_or_else(|| UnknownName { given: text.into(), allowed })
    }
}

/// The guard as a session or a file sets it. What is absent is not set here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardSettings {
    /// The preset.
    pub level: Option<GuardLevel>,
    /// Whether the visible answer is watched too.
    pub guard_response: Option<bool>,
    values: [Option<Hundredths>; 12],
}

impl GuardSettings {
    /// A preset and nothing else.
    pub fn level(level: GuardLevel) -> Self {
        Self { level: Some(level), ..Self::default() }
    }

    /// The number set here.
    pub fn get(&self, parameter: GuardParameter) -> Option<f64> {
        self.values[parameter as usize].map(number)
    }

    /// Sets a number, at the nearest place on its scale; what is no number unsets it.
    pub fn set(&mut self, parameter: GuardParameter, value: f64) {
        self.values[parameter as usize] = parameter.nearest_hundredths(value);
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These settings with what `patch` sets. Naming a level takes its preset: numbers set before are dropped.
    pub fn patched(&self, patch: &GuardSettings) -> GuardSettings {
        let mut out = self.clone();
        if patch.level.is_some() {
            out.level = patch.level;
            out.values = [None; 12];
        }
        out.guard_response = patch.guard_response.or(out.guard_response);
        for (value, new) in out.values.iter_mut().zip(patch.values) {
            *value = new.or(*value);
        }
        out
    }

    /// What holds: every number, the preset's where none is set.
    pub fn in_force(&self) -> GuardDials {
        let level = self.level.unwrap_or_default();
        let mut values = [0; 12];
        for parameter in GuardParameter::ALL {
            let at = parameter as usize;
            values[at] = self.values[at].unwrap_or_else(|| parameter.preset_hundredths(level));
        }
        // More repetitions than the window holds could never be counted.
        let window = values[GuardParameter::ToolRepeatWindow as usize];
        let threshold = &mut values[GuardParameter::ToolRepeatWindowThreshold as usize];
        *threshold = (*threshold).min(window);
        GuardDials { level, guard_response: self.guard_response.unwrap_or(false), values }
    }
}

/// One dial as a person names it: `reasoning_threshold=0.6`, `guard_response=on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardChange(GuardSettings);

impl GuardChange {
    /// These settings with the dial changed.
    pub fn on(&self, settings: &GuardSettings) -> GuardSettings {
        settings.patched(&self.0)
    }
}

impl FromStr for GuardChange {
    type Err = BadGuardChange;
    /// Refuses what is not on the dial's scale, with the scale.
    fn from_str(text: &str) -> Result<Self, BadGuardChange> {
        let (name, given) = text.split_once('=').ok_or(BadGuardChange::Form)?;
        let (name, given) = (name.trim(), given.trim());
        let mut settings = GuardSettings::default();
        if name == "guard_response" || name == "guardResponse" {
            settings.guard_response = Some(match given {
                "on" | "true" => true,
                "off" | "false" => false,
                _ => return Err(BadGuardChange::Switch),
            });
            return Ok(Self(settings));
        }
        let parameter = name.parse::<GuardParameter>()?;
        let number = given.parse::<f64>().ok();
        let on_scale = number.filter(|number| parameter.nearest(*number).is_some_and(|at| (at - number).abs() < 1e-9));
        let number = on_scale.ok_or_else(|| BadGuardChange::OffScale(parameter, parameter.scale_text()))?;
        settings.set(parameter, number);
        Ok(Self(settings))
    }
}

/// Why a dial cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGuardChange {
    /// It names no dial and no value.
    #[error("it has the form NAME=VALUE, reasoning_threshold=0.6 say")]
    Form,
    /// There is no such dial.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// The switch knows two places.
    #[error("guard_response is on or off")]
    Switch,
    /// The number is not on the scale.
    #[error("{0} goes {1}")]
    OffScale(GuardParameter, String),
}

/// All dials of a guard, set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardDials {
    /// The preset they began as.
    pub level: GuardLevel,
    /// Whether the visible answer is watched too.
    pub guard_response: bool,
    values: [Hundredths; 12],
}

impl GuardDials {
    /// Whether anything is detected at all.
    pub fn is_on(&self) -> bool {
        self.level != GuardLevel::Off
    }

    /// A number.
    pub fn get(&self, parameter: GuardParameter) -> f64 {
        number(self.values[parameter as usize])
    }

    /// Every dial by its name, as JSON.
    pub fn to_json(&self) -> Value {
        let mut all = Map::new();
        all.insert("level".into(), json!(self.level.as_str()));
        all.insert("guard_response".into(), json!(self.guard_response));
        for parameter in GuardParameter::ALL {
            all.insert(parameter.name().into(), written(self.values[parameter as usize]));
        }
        Value::Object(all)
    }

    /// A number that counts something.
    pub fn count(&self, parameter: GuardParameter) -> usize {
        (self.values[parameter as usize] / 100) as usize
    }
}

/// A number as it is written: without a fraction where it has none.
fn written(hundredths: Hundredths) -> Value {
    if hundredths.is_multiple_of(100) { json!(hundredths / 100) } else { json!(number(hundredths)) }
}

impl Serialize for GuardSettings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        if let Some(level) = self.level {
            map.serialize_entry("level", level.as_str())?;
        }
        if let Some(on) = self.guard_response {
            map.serialize_entry("guard_response", &on)?;
        }
        for parameter in GuardParameter::ALL {
            if let Some(value) = self.values[parameter as usize] {
                map.serialize_entry(parameter.name(), &written(value))?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for GuardSettings {
    /// Never fails on a JSON value: what cannot be used is as good as not set.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Value::Object(members) = Value::deserialize(from)? else { return Ok(Self::default()) };
        let mut out = Self::default();
        for (name, value) in &members {
            match name.as_str() {
                "level" => out.level = value.as_str().and_then(|level| level.parse().ok()),
                "guard_response" | "guardResponse" => out.guard_response = value.as_bool(),
                name => {
                    if let (Ok(parameter), Some(number)) = (name.parse(), value.as_f64()) {
                        out.set(parameter, number);
                    }
                }
            }
        }
        Ok(out)
    }
}

impl JsonSchema for GuardSettings {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GuardSettings".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        properties.insert("level".into(), json!({"enum": ["off", "low", "medium", "high"]}));
        properties.insert("guard_response".into(), json!({"type": "boolean"}));
        for parameter in GuardParameter::ALL {
            let Scale { name, min, max, .. } = parameter.scale();
            let shape = json!({"type": "number", "minimum": written(min), "maximum": written(max)});
            properties.insert(name.into(), shape);
        }
        json_schema!({
            "description": "The loop guard: a preset, and numbers that differ from it.",
            "type": "object",
            "properties": properties,
        })
    }
}

/// A kind of loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// Reasoning that repeats itself within a step.
    Reasoning,
    /// Reasoning that repeats that of a step before.
    CrossTurn,
    /// A step with neither text nor a call.
    EmptyTurn,
    /// A call that fails again as it failed before.
    ToolFailure,
    /// Steps in which every call fails.
    ErrorStreak,
    /// A call that gives again what it gave before.
    ToolRepeat,
    /// An answer that repeats itself.
    Answer,
}

impl LoopKind {
    /// All kinds.
    pub const ALL: [LoopKind; 7] = [
        LoopKind::Reasoning,
        LoopKind::CrossTurn,
        LoopKind::EmptyTurn,
        LoopKind::ToolFailure,
        LoopKind::ErrorStreak,
        LoopKind::ToolRepeat,
        LoopKind::Answer,
    ];

    /// Its name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            LoopKind::Reasoning => "reasoning",
            LoopKind::CrossTurn => "cross_turn",
            LoopKind::EmptyTurn => "empty_turn",
            LoopKind::ToolFailure => "tool_failure",
            LoopKind::ErrorStreak => "error_streak",
            LoopKind::ToolRepeat => "tool_repeat",
            LoopKind::Answer => "answer",
        }
    }
}

impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;

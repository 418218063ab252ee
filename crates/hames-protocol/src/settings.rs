//! What a session is set to. Every field is optional in storage, so that old sessions read under new versions.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CompactionSettings, GuardSettings, Penalty, Sampler, Sampling};

/// What a run may do to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing is modified.
    #[default]
    Analyze,
    /// Tools act for real inside the workspace.
    Build,
}

impl Mode {
    /// `analyze` or `build`.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Analyze => "analyze",
            Mode::Build => "build",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much a model should think before it answers. Absent in settings means: say nothing, the provider decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    /// Switched off where the provider can.
    Off,
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// As much as it takes.
    High,
}

impl ThinkingLevel {
    /// `off`, `low`, `medium` or `high`.
    pub fn as_str(self) -> &'static str {
        match self {
            ThinkingLevel::Off => "off",
            ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            ThinkingLevel::High => "high",
        }
    }
}

/// Text that names no value of a closed set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{given}\" is not one of {allowed}")]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// What would have been accepted.
    pub allowed: &'static str,
}

impl FromStr for Mode {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text.to_ascii_lowercase().as_str() {
            "analyze" | "analyse" => Ok(Mode::Analyze),
            "build" => Ok(Mode::Build),
            _ => Err(UnknownName { given: text.into(), allowed: "analyze, build" }),
        }
    }
}

impl FromStr for ThinkingLevel {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text.to_ascii_lowercase().as_str() {
            "off" | "none" => Ok(ThinkingLevel::Off),
            "low" | "minimal" => Ok(ThinkingLevel::Low),
            "medium" => Ok(ThinkingLevel::Medium),
            "high" => Ok(ThinkingLevel::High),
            _ => Err(UnknownName { given: text.into(), allowed: "off, low, medium, high" }),
        }
    }
}

/// A model, named as `provider/id`. The split is at the first slash: the id may hold more of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ModelRef {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's id as the provider knows it.
    pub id: String,
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.id)
    }
}

impl FromStr for ModelRef {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text.split_once('/') {
            Some((provider, id)) if !provider.trim().is_empty() && !id.trim().is_empty() => {
                Ok(ModelRef { provider: provider.trim().into(), id: id.trim().into() })
            }
            _ => Err(UnknownName { given: text.into(), allowed: "the form PROVIDER/MODEL" }),
        }
    }
}

impl TryFrom<String> for ModelRef {
    type Error = UnknownName;
    fn try_from(text: String) -> Result<Self, UnknownName> {
        text.parse()
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> String {
        model.to_string()
    }
}

/// A session's settings. An absent field means "not set here"; the layers are flag, session, file, environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Analyze or build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether the agent may split work among children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// How much the model should think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// Temperature or top-p: the one in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampler: Option<Sampler>,
    /// Pushes towards new topics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<Penalty>,
    /// Pushes away from what was said often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<Penalty>,
    /// Tokens of the window, overriding what the model is known to have. None is no window: 0 is not set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// Tokens one answer may have. None is no answer: 0 is not set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// Steps a run may take; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// The loop guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardSettings>,
    /// How the window is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionSettings>,
}

fn positive<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<u64>::deserialize(from)?.filter(|number| *number > 0))
}

impl Settings {
    /// These settings with every field that `patch` sets replaced.
    pub fn patched(&self, patch: &Settings) -> Settings {
        let mut out = self.clone();
        macro_rules! take { ($($field:ident),*) => { $(if patch.$field.is_some() { out.$field = patch.$field.clone(); })* } }
        take!(
            model,
            mode,
            parallel,
            thinking_level,
            sampler,
            presence_penalty,
            frequency_penalty,
            context_window,
            max_output_tokens,
            max_steps
        );
        if let Some(guard) = &patch.guard {
            out.guard = Some(out.guard.unwrap_or_default().patched(guard));
        }
        if let Some(compaction) = &patch.compaction {
            out.compaction = Some(out.compaction.unwrap_or_default().patched(compaction));
        }
        out
    }

    /// These settings with the fields of these names not set: `guard` is all of the guard, `guard.max_nudges` one number
    /// of it. Names of no field change nothing.
    pub fn without(&self, names: &[String]) -> Settings {
        if names.is_empty() {
            return self.clone();
        }
        let Ok(mut fields) = serde_json::to_value(self) else { return self.clone() };
        for name in names {
            let (group, field) = name.split_once('.').map_or(("", name.as_str()), |(group, field)| (group, field));
            let within = if group.is_empty() { Some(&mut fields) } else { fields.get_mut(group) };
            if let Some(serde_json::Value::Object(within)) = within {
                within.remove(field);
            }
        }
        let rest: Settings = serde_json::from_value(fields).unwrap_or_else(|_| self.clone());
        Settings {
            guard: rest.guard.filter(|guard| !guard.is_empty()),
            compaction: rest.compaction.filter(|compaction| !compaction.is_empty()),
            ..rest
        }
    }

    /// Whether there is a setting of that name, as [`without`](Self::without) takes it.
    pub fn is_name(name: &str) -> bool {
        let (schema, field) = match name.split_once('.') {
            None => (schemars::schema_for!(Settings), name),
            Some(("guard", field)) => (schemars::schema_for!(GuardSettings), field),
            Some(("compaction", field)) => (schemars::schema_for!(CompactionSettings), field),
            Some(_) => return false,
        };
        schema.get("properties").is_some_and(|fields| fields.get(field).is_some())
    }

    /// What is set here of sampling.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            sampler: self.sampler,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_and_an_answer_of_nothing_are_not_set() {
        for (given, window, output) in [
            (json!({"context_window": 0, "max_output_tokens": 0}), None, None),
            (json!({"context_window": 1, "max_output_tokens": 2}), Some(1), Some(2)),
            (json!({"context_window": null}), None, None),
        ] {
            let read: Settings = serde_json::from_value(given).unwrap();
            assert_eq!((read.context_window, read.max_output_tokens), (window, output));
        }
    }

    #[test]
    fn a_setting_or_one_field_of_a_group_can_be_taken_away() {
        let all: Settings = serde_json::from_value(json!({
            "mode": "build",
            "guard": {"level": "high", "max_nudges": 1},
            "compaction": {"trigger": 60},
        }))
        .unwrap();
        for (names, rest) in [
            (vec![], json!(all)),
            (vec!["mode"], json!({"guard": {"level": "high", "max_nudges": 1}, "compaction": {"trigger": 60}})),
            (vec!["guard.max_nudges", "mode"], json!({"guard": {"level": "high"}, "compaction": {"trigger": 60}})),
            (vec!["compaction.trigger", "guard"], json!({"mode": "build"})),
            (vec!["compaction.landing", "nothing", "mode.x", "guard."], json!(all)),
        ] {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            assert_eq!(json!(all.without(&names)), rest, "{names:?}");
        }
        for (name, known) in [
            ("mode", true),
            ("guard", true),
            ("guard.max_nudges", true),
            ("guard.level", true),
            ("compaction.summary_model", true),
            ("colour", false),
            ("guard.colour", false),
            ("mode.build", false),
            ("guard.", false),
            ("", false),
        ] {
            assert_eq!(Settings::is_name(name), known, "{name}");
        }
    }
}

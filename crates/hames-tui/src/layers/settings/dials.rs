//! The settings of a session as dials: what each is at, where that comes from, and how it is turned, written and given back.
//!
//! Everything here is a function of values; what is sent to the server is the layer's business.

mod turn;

use hames_protocol::{CompactionSettings, GuardParameter, GuardSettings, Penalty, Sampler, Settings};
use serde_json::Value;

use super::super::parts::{line, numbers};

/// Tokens of the smallest and the largest window, and between two places of its dial.
const WINDOW: (u64, u64, u64) = (2_000, 10_000_000, 1_000);
/// The same of an answer.
const OUTPUT: (u64, u64, u64) = (256, 1_000_000, 256);
/// Percent of the usable window at which one can let it be compacted.
const TRIGGER: (u8, u8) = (20, 95);
/// What counts where nobody says.
const DEFAULT_TRIGGER: u8 = 80;
const DEFAULT_LANDING: u8 = 10;

/// One thing that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dial {
    Thinking,
    Sampler,
    SamplerValue,
    Presence,
    Frequency,
    Window,
    Output,
    Auto,
    Strategy,
    Trigger,
    Landing,
    SummaryModel,
    GuardLevel,
    GuardAnswers,
    Guard(GuardParameter),
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Session,
    Configuration,
    Default,
}

/// What is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// What the session itself sets.
    pub(super) own: Settings,
    /// What its next run will use.
    pub(super) effective: Settings,
    /// Tokens of the window in force, where it is known.
    pub(super) window: Option<u64>,
    /// The configuration in force, as the server tells it.
    pub(super) configuration: Value,
}

/// What is to be changed: names that go back to the configuration first, then what is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Change {
    pub(super) settings: Settings,
    pub(super) unset: Vec<String>,
}

impl Change {
    fn set(settings: Settings) -> Option<Change> {
        Some(Change { settings, unset: Vec::new() })
    }

    fn back(name: &str) -> Change {
        Change { settings: Settings::default(), unset: vec![name.to_owned()] }
    }

    /// This one, then another one.
    pub(super) fn then(&mut self, next: Change) {
        self.settings = self.settings.without(&next.unset).patched(&next.settings);
        for name in next.unset {
            if !self.unset.contains(&name) {
                self.unset.push(name);
            }
        }
    }

    /// These settings with it.
    pub(super) fn on(&self, settings: &Settings) -> Settings {
        settings.without(&self.unset).patched(&self.settings)
    }
}

/// The samplers by their ordinal; the first sends nothing.
const SAMPLERS: [&str; 3] = ["none", "temperature", "top_p"];

impl Known {
    fn compaction(&self) -> CompactionSettings {
        self.effective.compaction.clone().unwrap_or_default()
    }

    fn guard(&self) -> GuardSettings {
        self.effective.guard.clone().unwrap_or_default()
    }

    fn sampler_ordinal(&self) -> usize {
        match self.effective.sampler {
            Some(Sampler::Temperature(dial)) if dial.value().is_some() => 1,
            Some(Sampler::TopP(dial)) if dial.value().is_some() => 2,
            _ => 0,
        }
    }

    fn trigger(&self) -> u8 {
        self.compaction().trigger.unwrap_or(DEFAULT_TRIGGER)
    }

    /// Whether the file says it of the model's provider.
    fn provider_says(&self, name: &str) -> bool {
        let provider = self.effective.model.as_ref().map(|model| model.provider.as_str()).unwrap_or_default();
        self.configuration["providers"][provider].get(name).is_some()
    }
}

impl Dial {
    /// All of them, in the order they are shown.
    pub(super) fn all() -> Vec<Dial> {
        use Dial::*;
        let mut all = vec![
            Thinking,
            Sampler,
            SamplerValue,
            Presence,
            Frequency,
            Window,
            Output,
            Auto,
            Strategy,
            Trigger,
            Landing,
            SummaryModel,
            GuardLevel,
            GuardAnswers,
        ];
        all.extend(GuardParameter::ALL.map(Guard));
        all
    }

    pub(super) fn group(self) -> &'static str {
        match self {
            Dial::Thinking | Dial::Sampler | Dial::SamplerValue | Dial::Presence | Dial::Frequency => "Model",
            Dial::Window | Dial::Output => "Sizes",
            Dial::Auto | Dial::Strategy | Dial::Trigger | Dial::Landing | Dial::SummaryModel => "Compaction",
            Dial::GuardLevel | Dial::GuardAnswers | Dial::Guard(_) => "Loop guard",
        }
    }

    /// Whether the plan of the next compaction depends on it.
    pub(super) fn is_of_plan(self) -> bool {
        matches!(self.group(), "Sizes" | "Compaction")
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Dial::Thinking => "thinking",
            Dial::Sampler => "sampler",
            Dial::SamplerValue => "sampler value",
            Dial::Presence => "presence penalty",
            Dial::Frequency => "frequency penalty",
            Dial::Window => "context window",
            Dial::Output => "output tokens",
            Dial::Auto => "by itself",
            Dial::Strategy => "strategy",
            Dial::Trigger => "begins at",
            Dial::Landing => "lands at",
            Dial::SummaryModel => "summary model",
            Dial::GuardLevel => "preset",
            Dial::GuardAnswers => "watches answers",
            Dial::Guard(parameter) => parameter.name(),
        }
    }

    /// The name of the setting that holds it.
    pub(super) fn setting(self) -> &'static str {
        match self {
            Dial::Thinking => "thinking_level",
            Dial::Sampler | Dial::SamplerValue => "sampler",
            Dial::Presence => "presence_penalty",
            Dial::Frequency => "frequency_penalty",
            Dial::Window => "context_window",
            Dial::Output => "max_output_tokens",
            Dial::Auto | Dial::Strategy | Dial::Trigger | Dial::Landing | Dial::SummaryModel => "compaction",
            Dial::GuardLevel | Dial::GuardAnswers | Dial::Guard(_) => "guard",
        }
    }

    /// What it does, and what it can be.
    pub(super) fn about(self) -> String {
        let scale = |(min, max, step): (u64, u64, u64)| {
            format!("{} to {} in steps of {}", numbers::count(min), numbers::count(max), numbers::count(step))
        };
        match self {
            Dial::Thinking => "How much the model thinks before it answers: off, low, medium, high.".into(),
            Dial::Sampler => "What is sent of how words are drawn: none, temperature, or top_p; one at a time.".into(),
            Dial::SamplerValue => {
                "Temperature from 0 to 2, top-p from 0 to 1, in steps of 0.1; auto sends nothing.".into()
            }
            Dial::Presence => "Pushes towards new topics: 0 to 2 in steps of 0.1; auto sends nothing.".into(),
            Dial::Frequency => {
                "Pushes away from what was said often: 0 to 2 in steps of 0.1; auto sends nothing.".into()
            }
            Dial::Window => format!("Tokens of the window: {}. A smaller one is compacted sooner.", scale(WINDOW)),
            Dial::Output => format!("Tokens one answer may have: {}.", scale(OUTPUT)),
            Dial::Auto => "Whether the window is compacted by itself, or only when you say so.".into(),
            Dial::Strategy => {
                "carried: a model keeps one document up to date. deterministic: without a model. prune-then-summarize: \
                 old results go first, then all is summed up anew."
                    .into()
            }
            Dial::Trigger => {
                format!("Percent of the usable window at which it begins: {} to {}.", TRIGGER.0, TRIGGER.1)
            }
            Dial::Landing => {
                "Percent of it that stays verbatim: 0 (the last complete turn alone) to one less than where it \
                              begins."
                    .into()
            }
            Dial::SummaryModel => "The model that writes documents, as PROVIDER/MODEL; else the session's own.".into(),
            Dial::GuardLevel => {
                "How soon something is called a loop: off, low, medium, high. Another preset takes all its numbers."
                    .into()
            }
            Dial::GuardAnswers => "Whether the visible answer is watched too: on or off.".into(),
            Dial::Guard(parameter) => format!("{}: {}.", guards(parameter), parameter.scale_text()),
        }
    }

    /// What it is at, for people.
    pub(super) fn value(self, known: &Known) -> String {
        let now = &known.effective;
        let auto = |value: Option<f64>| value.map_or("auto".to_owned(), |value| value.to_string());
        let switch = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
        let of = known.compaction();
        match self {
            Dial::Thinking => now.thinking_level.map_or("as the provider does", |level| level.as_str()).to_owned(),
            Dial::Sampler => SAMPLERS[known.sampler_ordinal()].to_owned(),
            Dial::SamplerValue => auto(now.sampler.and_then(Sampler::value)),
            Dial::Presence => auto(now.presence_penalty.and_then(Penalty::value)),
            Dial::Frequency => auto(now.frequency_penalty.and_then(Penalty::value)),
            Dial::Window => match now.context_window.or(known.window) {
                Some(tokens) => numbers::count(tokens),
                None => "the model's".into(),
            },
            Dial::Output => now.max_output_tokens.map_or("as configured".to_owned(), numbers::count),
            Dial::Auto => switch(of.auto.unwrap_or(true)),
            Dial::Strategy => of.strategy.unwrap_or_default().as_str().to_owned(),
            Dial::Trigger => format!("{}%", known.trigger()),
            Dial::Landing => format!("{}%", of.landing.unwrap_or(DEFAULT_LANDING)),
            Dial::SummaryModel => of.summary_model.map_or("the session's".to_owned(), |model| line(&model.to_string())),
            Dial::GuardLevel => known.guard().in_force().level.as_str().to_owned(),
            Dial::GuardAnswers => switch(known.guard().in_force().guard_response),
            Dial::Guard(parameter) => known.guard().in_force().get(parameter).to_string(),
        }
    }

    /// Where that comes from.
    pub(super) fn source(self, known: &Known) -> Source {
        fn of(own: bool, effective: bool) -> Source {
            match (own, effective) {
                (true, _) => Source::Session,
                (false, true) => Source::Configuration,
                (false, false) => Source::Default,
            }
        }
        fn part<T>(own: &Option<T>, effective: &Option<T>, is_set: impl Fn(&T) -> bool) -> Source {
            of(own.as_ref().is_some_and(&is_set), effective.as_ref().is_some_and(&is_set))
        }
        let (own, now) = (&known.own, &known.effective);
        let compaction = |is_set: fn(&CompactionSettings) -> bool| part(&own.compaction, &now.compaction, is_set);
        match self {
            Dial::Thinking => of(own.thinking_level.is_some(), now.thinking_level.is_some()),
            Dial::Sampler | Dial::SamplerValue => of(own.sampler.is_some(), now.sampler.is_some()),
            Dial::Presence => of(own.presence_penalty.is_some(), now.presence_penalty.is_some()),
            Dial::Frequency => of(own.frequency_penalty.is_some(), now.frequency_penalty.is_some()),
            Dial::Window => of(own.context_window.is_some(), now.context_window.is_some()),
            // What holds names no source; only the file does.
            Dial::Output => of(own.max_output_tokens.is_some(), known.provider_says("max_tokens")),
            Dial::Auto => compaction(|of| of.auto.is_some()),
            Dial::Strategy => compaction(|of| of.strategy.is_some()),
            Dial::Trigger => compaction(|of| of.trigger.is_some()),
            Dial::Landing => compaction(|of| of.landing.is_some()),
            Dial::SummaryModel => compaction(|of| of.summary_model.is_some()),
            Dial::GuardLevel => part(&own.guard, &now.guard, |guard| guard.level.is_some()),
            Dial::GuardAnswers => part(&own.guard, &now.guard, |guard| guard.guard_response.is_some()),
            Dial::Guard(parameter) => part(&own.guard, &now.guard, |guard| guard.get(parameter).is_some()),
        }
    }
}

fn guards(parameter: GuardParameter) -> &'static str {
    match parameter {
        GuardParameter::MaxNudges => "Nudges a kind of loop gets before it ends the run",
        GuardParameter::ReasoningThreshold => "Share of repeated reasoning in a step that is a loop",
        GuardParameter::ReasoningMinTokens => "Tokens of reasoning before that is looked at",
        GuardParameter::CrossTurnSimilarity => "Likeness of the reasoning of two steps that is a loop",
        GuardParameter::CrossTurnMinLength => "Characters both must have",
        GuardParameter::ToolFailureRepeats => "How often a call that fails alike may run",
        GuardParameter::ErrorStreakTurns => "Steps in a row with failed calls and none that succeeded",
        GuardParameter::ToolRepeatConsecutive => "Identical calls in a row",
        GuardParameter::ToolRepeatWindow => "Calls that are looked back on",
        GuardParameter::ToolRepeatWindowThreshold => "Identical calls among those",
        GuardParameter::AnswerThreshold => "Share of a repeated answer that is a loop",
        GuardParameter::AnswerMinTokens => "Tokens of an answer before that is looked at",
    }
}

#[cfg(test)]
mod tests;

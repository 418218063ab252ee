//! How a dial is turned by one place, how what somebody wrote is read, and how it is given back.

use hames_protocol::{
    CompactionSettings, CompactionStrategy, GuardChange, GuardLevel, GuardSettings, ModelRef, Penalty, Sampler,
    Settings, Temperature, ThinkingLevel, TopP,
};

use super::super::super::parts::numbers;
use super::{Change, DEFAULT_LANDING, Dial, Known, OUTPUT, SAMPLERS, Source, TRIGGER, WINDOW};

/// The next or the last one of a few.
fn turned<T: Copy + PartialEq>(all: &[T], now: T, up: bool) -> Option<T> {
    let at = all.iter().position(|one| *one == now)?;
    let next = if up { at.checked_add(1) } else { at.checked_sub(1) };
    all.get(next?).copied()
}

/// The next place of a dial with tenths.
fn tenth(value: f64, up: bool, max: f64) -> f64 {
    let next = (value * 10.0).round() + if up { 1.0 } else { -1.0 };
    (next / 10.0).clamp(0.0, max)
}

/// A number of tokens as people write it: `128000`, `128k`, `1.5m`, `128,000`.
fn tokens(text: &str) -> Option<u64> {
    let plain: String = text.chars().filter(|c| !matches!(c, ',' | '_' | ' ')).collect();
    let lower = plain.to_lowercase();
    let (digits, times) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1_000.0),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 1.0), |digits| (digits, 1_000_000.0)),
    };
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
    Some((number * times).round() as u64)
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "yes" => Ok(true),
        "off" | "false" | "no" => Ok(false),
        _ => Err("it is on or off".into()),
    }
}

const LEVELS: [ThinkingLevel; 4] = [ThinkingLevel::Off, ThinkingLevel::Low, ThinkingLevel::Medium, ThinkingLevel::High];
const GUARDS: [GuardLevel; 4] = [GuardLevel::Off, GuardLevel::Low, GuardLevel::Medium, GuardLevel::High];
const STRATEGIES: [CompactionStrategy; 3] =
    [CompactionStrategy::Carried, CompactionStrategy::Deterministic, CompactionStrategy::PruneThenSummarize];
fn sampler(ordinal: usize) -> Option<Sampler> {
    Some(match ordinal {
        0 => Sampler::Temperature(Temperature::AUTO),
        1 => Sampler::Temperature(Temperature::at(1.0).ok()?),
        _ => Sampler::TopP(TopP::at(1.0).ok()?),
    })
}

fn compaction(change: impl FnOnce(&mut CompactionSettings)) -> Option<Change> {
    let mut settings = CompactionSettings::default();
    change(&mut settings);
    Change::set(Settings { compaction: Some(settings), ..Settings::default() })
}

fn guard(change: impl FnOnce(&mut GuardSettings)) -> Option<Change> {
    let mut settings = GuardSettings::default();
    change(&mut settings);
    Change::set(Settings { guard: Some(settings), ..Settings::default() })
}

impl Dial {
    /// One place up or down; none where it ends there.
    pub(in crate::layers::settings) fn turned(self, known: &Known, up: bool) -> Option<Change> {
        let now = &known.effective;
        let penalty = |value: Option<f64>| match (value, up) {
            (None, true) => Penalty::at(0.1).ok(),
            (None, false) => None,
            (Some(value), false) if value <= 0.0 => Some(Penalty::AUTO),
            (Some(value), _) => Penalty::at(tenth(value, up, 2.0)).ok().filter(|next| next.value() != Some(value)),
        };
        let count = |now: u64, (min, max, step): (u64, u64, u64)| {
            let next = if up { now.saturating_add(step) } else { now.saturating_sub(step) };
            let next = (next / step * step).clamp(min, max);
            (next != now).then_some(next)
        };
        match self {
            Dial::Thinking => {
                let next = match now.thinking_level {
                    Some(level) => turned(&LEVELS, level, up)?,
                    None => ThinkingLevel::Medium,
                };
                Change::set(Settings { thinking_level: Some(next), ..Settings::default() })
            }
            Dial::Sampler => {
                let next = turned(&[0, 1, 2], known.sampler_ordinal(), up)?;
                Change::set(Settings { sampler: Some(sampler(next)?), ..Settings::default() })
            }
            Dial::SamplerValue => {
                let next = match now.sampler {
                    Some(Sampler::TopP(dial)) => {
                        let value = dial.value().map_or(1.0, |value| tenth(value, up, 1.0));
                        Sampler::TopP(TopP::at(value).ok()?)
                    }
                    Some(Sampler::Temperature(dial)) => {
                        let value = dial.value().map_or(1.0, |value| tenth(value, up, 2.0));
                        Sampler::Temperature(Temperature::at(value).ok()?)
                    }
                    None => sampler(1)?,
                };
                (Some(next) != now.sampler)
                    .then(|| Change::set(Settings { sampler: Some(next), ..Settings::default() }))?
            }
            Dial::Presence => {
                let next = penalty(now.presence_penalty.and_then(Penalty::value))?;
                Change::set(Settings { presence_penalty: Some(next), ..Settings::default() })
            }
            Dial::Frequency => {
                let next = penalty(now.frequency_penalty.and_then(Penalty::value))?;
                Change::set(Settings { frequency_penalty: Some(next), ..Settings::default() })
            }
            Dial::Window => {
                let next = count(now.context_window.or(known.window).unwrap_or(128_000), WINDOW)?;
                Change::set(Settings { context_window: Some(next), ..Settings::default() })
            }
            Dial::Output => {
                let next = count(now.max_output_tokens.unwrap_or(16_384), OUTPUT)?;
                Change::set(Settings { max_output_tokens: Some(next), ..Settings::default() })
            }
            Dial::Auto => {
                (known.compaction().auto.unwrap_or(true) != up).then(|| compaction(|of| of.auto = Some(up)))?
            }
            Dial::Strategy => {
                let next = turned(&STRATEGIES, known.compaction().strategy.unwrap_or_default(), up)?;
                compaction(|of| of.strategy = Some(next))
            }
            Dial::Trigger => {
                let now = known.trigger();
                let next = if up { now.saturating_add(1) } else { now.saturating_sub(1) }.clamp(TRIGGER.0, TRIGGER.1);
                (next != now).then(|| compaction(|of| of.trigger = Some(next)))?
            }
            Dial::Landing => {
                let now = known.compaction().landing.unwrap_or(DEFAULT_LANDING);
                let next = if up { now.saturating_add(1) } else { now.saturating_sub(1) };
                let next = next.min(known.trigger().saturating_sub(1));
                (next != now).then(|| compaction(|of| of.landing = Some(next)))?
            }
            Dial::SummaryModel => None,
            Dial::GuardLevel => {
                let next = turned(&GUARDS, known.guard().in_force().level, up)?;
                guard(|guard| guard.level = Some(next))
            }
            Dial::GuardAnswers => (known.guard().in_force().guard_response != up)
                .then(|| guard(|guard| guard.guard_response = Some(up)))?,
            Dial::Guard(parameter) => {
                let (now, (_, _, step)) = (known.guard().in_force().get(parameter), parameter.range());
                let next = parameter.nearest(if up { now + step } else { now - step })?;
                ((next - now).abs() > 1e-9).then(|| guard(|guard| guard.set(parameter, next)))?
            }
        }
    }

    /// What somebody wrote.
    pub(in crate::layers::settings) fn written(self, known: &Known, text: &str) -> Result<Change, String> {
        let text = text.trim();
        if text.is_empty() {
            return self.given_back(known).ok_or_else(|| "nothing is set here that could be given back".to_owned());
        }
        let lower = text.to_lowercase();
        let of_settings = |settings: Settings| Ok(Change { settings, unset: Vec::new() });
        let within = |(min, max, _): (u64, u64, u64)| {
            let scale = format!("it is a number of tokens from {} to {}", numbers::count(min), numbers::count(max));
            tokens(&lower).filter(|tokens| (min..=max).contains(tokens)).ok_or(scale)
        };
        let percent = |min: u8, max: u8| {
            let number = lower.trim_end_matches('%').trim().parse::<u8>().ok();
            number.filter(|n| (min..=max).contains(n)).ok_or(format!("it is a percentage from {min} to {max}"))
        };
        let set = |change: Option<Change>| change.ok_or_else(|| "it cannot be set so".to_owned());
        match self {
            Dial::Thinking => {
                let level = lower.parse().map_err(|e: hames_protocol::UnknownName| e.to_string())?;
                of_settings(Settings { thinking_level: Some(level), ..Settings::default() })
            }
            Dial::Sampler => {
                let plain = lower.replace('-', "_");
                let at = SAMPLERS.iter().position(|name| *name == plain).or((lower == "auto").then_some(0));
                let at = at.ok_or_else(|| format!("it is one of {}", SAMPLERS.join(", ")))?;
                of_settings(Settings { sampler: sampler(at), ..Settings::default() })
            }
            Dial::SamplerValue => {
                let off = |e: hames_protocol::OffScale| e.to_string();
                let next = match known.effective.sampler {
                    Some(Sampler::TopP(_)) => Sampler::TopP(lower.parse().map_err(off)?),
                    _ => Sampler::Temperature(lower.parse().map_err(off)?),
                };
                of_settings(Settings { sampler: Some(next), ..Settings::default() })
            }
            Dial::Presence | Dial::Frequency => {
                let penalty: Penalty = lower.parse().map_err(|e: hames_protocol::OffScale| e.to_string())?;
                of_settings(match self {
                    Dial::Presence => Settings { presence_penalty: Some(penalty), ..Settings::default() },
                    _ => Settings { frequency_penalty: Some(penalty), ..Settings::default() },
                })
            }
            Dial::Window => of_settings(Settings { context_window: Some(within(WINDOW)?), ..Settings::default() }),
            Dial::Output => of_settings(Settings { max_output_tokens: Some(within(OUTPUT)?), ..Settings::default() }),
            Dial::Auto => {
                let is_on = switch(&lower)?;
                set(compaction(|of| of.auto = Some(is_on)))
            }
            Dial::Strategy => {
                let next = lower.parse().map_err(|e: hames_protocol::UnknownName| e.to_string())?;
                set(compaction(|of| of.strategy = Some(next)))
            }
            Dial::Trigger => {
                let next = percent(TRIGGER.0, TRIGGER.1)?;
                set(compaction(|of| of.trigger = Some(next)))
            }
            Dial::Landing => {
                let next = percent(0, known.trigger().saturating_sub(1))?;
                set(compaction(|of| of.landing = Some(next)))
            }
            Dial::SummaryModel => {
                let model: ModelRef = text.parse().map_err(|_| "a model is written as PROVIDER/MODEL".to_owned())?;
                set(compaction(|of| of.summary_model = Some(model)))
            }
            Dial::GuardLevel => {
                let level = lower.parse().map_err(|e: hames_protocol::UnknownName| e.to_string())?;
                set(guard(|guard| guard.level = Some(level)))
            }
            Dial::GuardAnswers => {
                let is_on = switch(&lower)?;
                set(guard(|guard| guard.guard_response = Some(is_on)))
            }
            Dial::Guard(parameter) => {
                let change =
                    format!("{}={lower}", parameter.name()).parse::<GuardChange>().map_err(|e| e.to_string())?;
                set(guard(|guard| *guard = change.on(guard)))
            }
        }
    }

    /// Back to what the configuration says; none where the session sets nothing of it. What else the session sets under
    /// the same name stays.
    pub(in crate::layers::settings) fn given_back(self, known: &Known) -> Option<Change> {
        if self.source(known) != Source::Session {
            return None;
        }
        let mut back = Change::back(self.setting());
        match self {
            Dial::Auto | Dial::Strategy | Dial::Trigger | Dial::Landing | Dial::SummaryModel => {
                let mut rest = known.own.compaction.clone().unwrap_or_default();
                match self {
                    Dial::Auto => rest.auto = None,
                    Dial::Strategy => rest.strategy = None,
                    Dial::Trigger => rest.trigger = None,
                    Dial::Landing => rest.landing = None,
                    _ => rest.summary_model = None,
                }
                back.settings.compaction = (!rest.is_empty()).then_some(rest);
            }
            Dial::GuardLevel | Dial::GuardAnswers | Dial::Guard(_) => {
                let mut rest = known.own.guard.clone().unwrap_or_default();
                match self {
                    // The numbers were those of the level.
                    Dial::GuardLevel => {
                        let watches = rest.guard_response;
                        rest = GuardSettings::default();
                        rest.guard_response = watches;
                    }
                    Dial::GuardAnswers => rest.guard_response = None,
                    Dial::Guard(parameter) => rest.set(parameter, f64::NAN),
                    _ => {}
                }
                back.settings.guard = (!rest.is_empty()).then_some(rest);
            }
            _ => {}
        }
        Some(back)
    }
}

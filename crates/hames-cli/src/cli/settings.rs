//! Flags that are settings of a session: of `hames run`, which keeps them, and of `hames sessions set`.

use clap::Args;
use hames_protocol::{
    CompactionSettings, CompactionStrategy, GuardChange, GuardLevel, GuardSettings, Mode, ModelRef, Penalty, Sampler,
    Settings, Temperature, ThinkingLevel, TopP,
};

/// The settings of a session: kept with it from then on.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingsArgs {
    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<ModelRef>,

    /// `analyze` changes nothing, `build` edits files and runs commands
    #[arg(long, value_name = "analyze|build")]
    pub(crate) mode: Option<Mode>,

    /// Stop after this many steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,

    /// How much the model thinks first
    #[arg(long, value_name = "off|low|medium|high")]
    pub(crate) thinking: Option<ThinkingLevel>,

    /// How freely words are drawn, 0 to 2; `auto` leaves it to the provider
    #[arg(long, value_name = "0–2|auto", conflicts_with = "top_p")]
    pub(crate) temperature: Option<Temperature>,

    /// Draw words from this share of the likeliest, 0 to 1; in place of --temperature
    #[arg(long, value_name = "0–1|auto")]
    pub(crate) top_p: Option<TopP>,

    /// Push towards new topics, 0 to 2
    #[arg(long, value_name = "0–2|auto")]
    pub(crate) presence_penalty: Option<Penalty>,

    /// Push away from what was said often, 0 to 2
    #[arg(long, value_name = "0–2|auto")]
    pub(crate) frequency_penalty: Option<Penalty>,

    /// How soon going round in circles is called a loop and broken; kept with the session [default: medium]
    #[arg(long, value_name = "off|low|medium|high")]
    pub(crate) guard: Option<GuardLevel>,

    /// One number of the loop guard, reasoning_threshold=0.6 say; config.example.jsonc lists all
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) guard_set: Vec<GuardChange>,

    #[command(flatten)]
    pub(crate) window: WindowArgs,
}

impl SettingsArgs {
    /// What is given.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            model: self.model.clone(),
            mode: self.mode,
            thinking_level: self.thinking,
            sampler: self.temperature.map(Sampler::Temperature).or(self.top_p.map(Sampler::TopP)),
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            max_steps: self.max_steps,
            guard: self.guard(),
            ..self.window.settings()
        }
    }

    fn guard(&self) -> Option<GuardSettings> {
        let begin = self.guard.map(GuardSettings::level).unwrap_or_default();
        let set = self.guard_set.iter().fold(begin, |settings, change| change.on(&settings));
        (!set.is_empty()).then_some(set)
    }
}

/// How a session's window is kept.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WindowArgs {
    /// Tokens of the context window, whatever the model is known to have
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) context_window: Option<u64>,

    /// Tokens one answer may have
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_output_tokens: Option<u64>,

    /// How the window is kept: `off`, `on`, or a strategy: carried, deterministic, prune-then-summarize
    #[arg(long, value_name = "off|on|STRATEGY")]
    pub(crate) compaction: Option<CompactionFlag>,

    /// Compact when so much of the usable window is taken [default: 80]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(20..=95))]
    pub(crate) compact_at: Option<u8>,

    /// Keep so much of it verbatim, less than --compact-at; 0 keeps only the last complete turn [default: 10]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=94))]
    pub(crate) compact_keep: Option<u8>,

    /// The model that writes summaries [default: the session's own]
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) summary_model: Option<ModelRef>,
}

impl WindowArgs {
    /// The settings of compaction that are given, where any is.
    pub(crate) fn compaction(&self) -> Option<CompactionSettings> {
        let (auto, strategy) = match self.compaction {
            None => (None, None),
            Some(CompactionFlag::Auto(on)) => (Some(on), None),
            Some(CompactionFlag::Strategy(strategy)) => (Some(true), Some(strategy)),
        };
        let settings = CompactionSettings {
            auto,
            strategy,
            trigger: self.compact_at,
            landing: self.compact_keep,
            summary_model: self.summary_model.clone(),
        };
        (!settings.is_empty()).then_some(settings)
    }

    /// The settings that are given.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            context_window: self.context_window,
            max_output_tokens: self.max_output_tokens,
            compaction: self.compaction(),
            ..Settings::default()
        }
    }
}

/// A value of `--compaction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionFlag {
    Auto(bool),
    Strategy(CompactionStrategy),
}

impl std::str::FromStr for CompactionFlag {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(CompactionFlag::Auto(false)),
            "on" => Ok(CompactionFlag::Auto(true)),
            name => name
                .parse()
                .map(CompactionFlag::Strategy)
                .map_err(|_| "it should be off, on, carried, deterministic or prune-then-summarize".into()),
        }
    }
}

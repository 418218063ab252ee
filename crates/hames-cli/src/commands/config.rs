//! `hames config`: where the configuration is, what is in force, and where each value comes from. Keys are masked.

use hames_agent::{Clock, SystemClock};
use hames_protocol::{GuardParameter, GuardSettings, Sampling};
use serde_json::{Map, Value, json};

use super::models::price;
use crate::catalog::{Described, Fact};
use crate::cli::ConfigCommand;
use crate::config::{Config, ModelsDev, Origin, Provider, is_secret_name, shown_url};
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::{Out, clean, say};

pub(crate) fn run(what: &ConfigCommand, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let mut out = Out::new();
    match what {
        ConfigCommand::Path => out.line(home.config_file().display().to_string())?,
        ConfigCommand::Show { json } => {
            let config = Config::load(&home, env)?;
            config.file.warnings.iter().for_each(|warning| say(&format!("hames: warning: {warning}")));
            if *json {
                out.json(&as_json(&config, &home))?;
            } else {
                for line in as_text(&config, &home) {
                    out.line(line)?;
                }
            }
        }
    }
    out.finish()?;
    Ok(exit::COMPLETE)
}

/// What is known of the model in force: name, value, where it comes from.
fn known(described: &Described) -> Vec<(&'static str, Value, String)> {
    let now = SystemClock.now_ms();
    let of = |name, fact: &Fact<u64>| (name, json!(fact.value), fact.source.text(now));
    let mut out = vec![of("window", &described.window), of("max_output", &described.max_output)];
    match &described.price {
        Some(fact) => out.push(("price", price(&fact.value), fact.source.text(now))),
        None => out.push(("price", json!("unknown"), "nobody says".into())),
    }
    for (name, fact) in
        [("images", &described.images), ("tools", &described.tools), ("reasoning", &described.reasoning)]
    {
        out.extend(fact.as_ref().map(|fact| (name, json!(fact.value), fact.source.text(now))));
    }
    out
}

/// One provider's settings in order: key, value as shown, where it comes from.
fn settings(provider: &Provider) -> Vec<(String, Value, Option<Origin>)> {
    let mut out: Vec<(String, Value, Option<Origin>)> = Vec::new();
    let url = match provider.base_url.as_str() {
        "" => ("none".to_owned(), None),
        url => (shown_url(url), Some(provider.url_origin.clone())),
    };
    out.push(("base_url".into(), json!(url.0), url.1));
    if let Some(key) = &provider.key {
        out.push(("api_key".into(), json!(key.masked()), Some(key.origin.clone())));
    }
    if let Some(var) = &provider.missing_key_var {
        out.push(("api_key_env".into(), json!(format!("{var} (not set)")), None));
    }
    out.extend(sampling(&provider.sampling).map(|(name, value)| (name.to_owned(), value, None)));
    let timeouts = &provider.timeouts;
    for (name, value) in [
        ("thinking", provider.thinking.map(|thinking| json!(thinking.name()))),
        ("thinking_level", provider.thinking_level.map(|level| json!(level.as_str()))),
        ("session_header", provider.session_header.as_ref().map(|header| json!(header))),
        ("catalog", provider.catalog.as_ref().map(|name| json!(name))),
        ("max_tokens", provider.max_tokens.map(|tokens| json!(tokens))),
        ("replay_reasoning", provider.replay_reasoning.map(|replay| json!(replay))),
        ("thinking_tags", provider.thinking_tags.map(|split| json!(split))),
        ("text_tool_calls", provider.text_tool_calls.map(|heard| json!(heard))),
        ("timeouts.connect_s", timeouts.connect_s.map(|s| json!(s))),
        ("timeouts.first_byte_s", timeouts.first_byte_s.map(|s| json!(s))),
        ("timeouts.idle_s", timeouts.idle_s.map(|s| json!(s))),
    ] {
        out.extend(value.map(|value| (name.to_owned(), value, None)));
    }
    for (name, value) in &provider.headers {
        let shown = if is_secret_name(name) { "…" } else { value };
        out.push((format!("headers.{name}"), json!(shown), None));
    }
    for (at, model) in provider.models.iter().enumerate() {
        let mut known = json!({"id": model.id, "context_window": model.context_window, "max_output": model.max_output});
        if let Some(images) = model.images {
            known["images"] = json!(images);
        }
        if let Some(rates) = &model.price {
            known["price"] = price(rates);
        }
        for (name, value) in sampling(&model.sampling) {
            known[name] = value;
        }
        out.push((format!("models[{at}]"), known, None));
    }
    out
}

fn models_dev(setting: &ModelsDev) -> String {
    match setting {
        ModelsDev::On => "on".into(),
        ModelsDev::Off => "off".into(),
        ModelsDev::At(url) => shown_url(url),
    }
}

/// What is set of sampling, under the names of the file.
fn sampling(set: &Sampling) -> impl Iterator<Item = (&'static str, Value)> {
    let dial = |value: Option<f64>| value.map_or(json!("auto"), |value| json!(value));
    let sampler = set.sampler.map(|sampler| (sampler.name(), dial(sampler.value())));
    let presence = set.presence_penalty.map(|penalty| ("presence_penalty", dial(penalty.value())));
    let frequency = set.frequency_penalty.map(|penalty| ("frequency_penalty", dial(penalty.value())));
    [sampler, presence, frequency].into_iter().flatten()
}

fn approve_origin(config: &Config) -> Origin {
    config.file.approve.as_ref().map_or(Origin::Preset, |at| Origin::File(at.line))
}

fn guard_settings(config: &Config) -> GuardSettings {
    config.file.guard.as_ref().map(|at| at.value.clone()).unwrap_or_default()
}

fn guard_origin(config: &Config) -> Origin {
    config.file.guard.as_ref().map_or(Origin::Preset, |at| Origin::File(at.line))
}

/// The loop guard: its level, and what differs from the level's preset.
fn guard(config: &Config) -> String {
    let settings = guard_settings(config);
    let dials = settings.in_force();
    let mut text = format!("guard        {}", dials.level.as_str());
    if dials.guard_response {
        text.push_str(", answers too");
    }
    for parameter in GuardParameter::ALL {
        let value = dials.get(parameter);
        if (value - parameter.preset(dials.level)).abs() > 1e-9 {
            text.push_str(&format!(", {parameter} {value}"));
        }
    }
    format!("{text}  ({})", config.origin_text(&guard_origin(config)))
}

fn as_text(config: &Config, home: &Home) -> Vec<String> {
    let file = &config.file;
    let exists = if file.exists { "" } else { " (does not exist)" };
    let mut lines = vec![
        format!("config file  {}{exists}", file.path.display()),
        format!("data         {}", home.data().display()),
        format!("logs         {}", home.logs().display()),
    ];
    lines.push(match config.choose(None, None) {
        Ok(chosen) => format!("model        {}  ({})", chosen.info.model, config.origin_text(&chosen.origin)),
        Err(Stop::Failed(failure)) => format!("model        none: {}", failure.message),
        Err(Stop::OutputClosed) => String::new(),
    });
    if let Ok(chosen) = config.choose(None, None) {
        lines.extend(known(&chosen.described).into_iter().map(|(name, value, from)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("  {name:<10} {value}  ({from})")
        }));
    }
    lines.push(format!(
        "approve      {}  ({})",
        config.approve().as_str(),
        config.origin_text(&approve_origin(config))
    ));
    lines.push(guard(config));
    lines.push(format!("models.dev   {}", models_dev(&file.catalog.models_dev)));
    if !file.web.allow.is_empty() {
        let hosts: Vec<String> = file.web.allow.iter().map(ToString::to_string).collect();
        lines.push(format!("web          also {}", hosts.join(", ")));
    }
    if let Some(proxy) = &file.web.proxy {
        lines.push(format!("web proxy    {}", shown_url(proxy)));
    }
    if !file.rules.is_empty() {
        lines.push(String::new());
        lines.push("rules".into());
        for rule in &file.rules {
            let from = config.origin_text(&Origin::File(rule.line));
            lines.push(format!("  {}  ({from})", clean::line(&rule.value.to_string())));
        }
    }
    for provider in &config.providers {
        lines.push(String::new());
        lines.push(format!("provider {}", provider.name));
        for (name, value, origin) in settings(provider) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let from = origin.map(|origin| format!("  ({})", config.origin_text(&origin))).unwrap_or_default();
            lines.push(format!("  {name:<16} {value}{from}"));
        }
    }
    lines
}

pub(crate) fn as_json(config: &Config, home: &Home) -> Value {
    let providers: Map<String, Value> = config
        .providers
        .iter()
        .map(|provider| {
            let settings: Map<String, Value> = settings(provider)
                .into_iter()
                .map(|(name, value, origin)| {
                    let from = origin.map(|origin| config.origin_text(&origin));
                    (name, json!({"value": value, "from": from}))
                })
                .collect();
            (provider.name.clone(), Value::Object(settings))
        })
        .collect();
    let chosen = config.choose(None, None).ok();
    let rules = config.file.rules.iter().map(|rule| {
        let from = config.origin_text(&Origin::File(rule.line));
        json!({"rule": rule.value.to_string(), "from": from})
    });
    let rules: Vec<Value> = rules.collect();
    json!({
        "config_file": config.file.path.display().to_string(),
        "exists": config.file.exists,
        "data": home.data().display().to_string(),
        "logs": home.logs().display().to_string(),
        "model": chosen.map(|chosen| json!({
            "value": chosen.info.model.to_string(),
            "from": config.origin_text(&chosen.origin),
            "known": known(&chosen.described)
                .into_iter()
                .map(|(name, value, from)| (name.to_owned(), json!({"value": value, "from": from})))
                .collect::<Map<String, Value>>(),
        })),
        "approve": {
            "value": config.approve().as_str(),
            "from": config.origin_text(&approve_origin(config)),
        },
        "guard": {
            "value": guard_settings(config).in_force().to_json(),
            "set": guard_settings(config),
            "from": config.origin_text(&guard_origin(config)),
        },
        "compaction": { "value": config.file.compaction },
        "rules": rules,
        "web": {
            "allow": config.file.web.allow.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "proxy": config.file.web.proxy.as_deref().map(shown_url),
        },
        "models_dev": models_dev(&config.file.catalog.models_dev),
        "providers": providers,
        "warnings": config.file.warnings,
    })
}

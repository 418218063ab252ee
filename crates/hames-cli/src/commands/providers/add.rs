//! `hames providers add`: by flags, or step by step where somebody sits at the terminal.

use std::time::Duration;

use serde_json::Value;

use super::Ground;
use crate::catalog::refresh::fetch_list;
use crate::cli::ProviderFlags;
use crate::config::edit::edit;
use crate::config::{Config, PRESETS, Preset, Thinking, is_http_url, preset};
use crate::exit::{self, Stop};
use crate::output::clean;
use crate::output::dialog::Dialog;

/// How long the models are waited for that are offered as default.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// Models that are offered by number; a longer list is for `hames models`.
const OFFERED: usize = 12;

pub(super) fn run(ground: &Ground<'_>, name: Option<String>, set: ProviderFlags) -> Result<u8, Stop> {
    let says_all = set.url.is_some() || set.key_env.is_some() || set.key_stdin;
    let dialog = if says_all { None } else { Dialog::open() };
    let name = match (name, &dialog) {
        (Some(name), _) => name,
        (None, Some(dialog)) => ask_name(dialog, ground)?,
        (None, None) => {
            return Err(Stop::usage(format!(
                "add needs a name: a well-known one ({}), or one of your own with --url",
                known()
            )));
        }
    };
    refuse_known(ground, &name).map_err(Stop::usage)?;
    let known = preset(&name);
    let members = match &dialog {
        Some(dialog) => ask_members(dialog, ground, known, &set)?,
        None => by_flags(known, &name, &set)?,
    };
    let model = set.default_model(&name);
    edit(&ground.config.file.path, |file| {
        file.set_provider(&name, &members)?;
        model.as_deref().map_or(Ok(()), |model| file.set_model(Some(model)))
    })?;
    if let (Some(dialog), None) = (&dialog, &model) {
        ask_default(dialog, ground, &name)?;
    }
    ground.say_changed("added", &name)
}

fn known() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

fn refuse_known(ground: &Ground<'_>, name: &str) -> Result<(), String> {
    if ground.is_in_file(name) {
        return Err(format!(
            "{} has a provider \"{}\" already; change it with `hames providers edit`",
            ground.path(),
            clean::line(name)
        ));
    }
    Ok(())
}

fn by_flags(
    known: Option<&Preset>,
    name: &str,
    set: &ProviderFlags,
) -> Result<Vec<(&'static str, Option<Value>)>, Stop> {
    let url = set.url.clone().or_else(|| known.map(|preset| preset.base_url.to_owned()));
    let Some(url) = url else {
        return Err(Stop::usage(format!("\"{}\" is not known by name; say where it is with --url", clean::line(name))));
    };
    let set = ProviderFlags {
        url: Some(url),
        thinking: set.thinking.clone().or_else(|| known?.thinking.map(|thinking| thinking.name().to_owned())),
        session_header: set.session_header.clone().or_else(|| known?.session_header.map(str::to_owned)),
        key_env: set.key_env.clone().or_else(|| known.filter(|_| !set.key_stdin)?.key_var.map(str::to_owned)),
        ..set.clone()
    };
    // There is nothing to be removed from what is new.
    let members = set.members(set.key()?);
    Ok(members.into_iter().filter(|(_, value)| value.is_some()).collect())
}

fn ask_name(dialog: &Dialog, ground: &Ground<'_>) -> Result<String, Stop> {
    dialog.say("Which provider?");
    for (at, preset) in PRESETS.iter().enumerate() {
        let has_key = preset.key_var.is_some_and(|var| ground.env.get(var).is_some());
        let note = if has_key { "  (its key is in the environment)" } else { "" };
        dialog.say(&format!("  {:>2}  {:<12} {}{note}", at + 1, preset.name, preset.title));
    }
    dialog.until("A number, or a name of your own", "", |answer| {
        let by_number = answer.parse::<usize>().ok().and_then(|n| PRESETS.get(n.checked_sub(1)?));
        let name = by_number.map_or(answer, |preset| preset.name);
        if name.is_empty() || name.contains('/') || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("a name has no blanks and no slashes".into());
        }
        refuse_known(ground, name)?;
        Ok(name.to_owned())
    })
}

fn ask_members(
    dialog: &Dialog,
    ground: &Ground<'_>,
    known: Option<&Preset>,
    set: &ProviderFlags,
) -> Result<Vec<(&'static str, Option<Value>)>, Stop> {
    let default_url = known.map_or("", |preset| preset.base_url);
    let url = dialog.until("Base URL", default_url, |answer| match is_http_url(answer) {
        true => Ok(answer.to_owned()),
        false => Err("a URL begins with http:// or https://".into()),
    })?;
    let (mut key, mut key_env) = (None, None);
    let var = known.and_then(|preset| preset.key_var);
    let by_default = var.filter(|var| ground.env.get(var).is_some()).map(|var| format!("${var}"));
    match &by_default {
        Some(var) => dialog.say(&format!("  Enter alone takes the key from {var}.")),
        None => dialog.say("  Enter alone for none; $NAME for a variable that holds it."),
    }
    let answer = dialog.secret("Key (not shown)")?;
    let answer = if answer.is_empty() { by_default.unwrap_or_default() } else { answer };
    match answer.strip_prefix('$') {
        Some(var) => key_env = Some(var.to_owned()),
        None if answer.is_empty() => {}
        None => key = Some(answer),
    }
    let dialects = Thinking::NAMES.map(|(name, _)| name).join(", ");
    let default_thinking = known.and_then(|preset| preset.thinking).map_or("none", Thinking::name);
    let default_thinking = set.thinking.as_deref().unwrap_or(default_thinking);
    let question = format!("How it is told to think ({dialects}, none)");
    let thinking = dialog.until(&question, default_thinking, |answer| match answer {
        "none" => Ok(None),
        name if Thinking::NAMES.iter().any(|(known, _)| *known == name) => Ok(Some(name.to_owned())),
        _ => Err(format!("one of {dialects}, none")),
    })?;
    let set = ProviderFlags {
        url: Some(url),
        key_env,
        thinking,
        session_header: set.session_header.clone().or_else(|| known?.session_header.map(str::to_owned)),
        ..set.clone()
    };
    Ok(set.members(key).into_iter().filter(|(_, value)| value.is_some()).collect())
}

/// Offers the models of the new provider as the default one. That they cannot be had is no fault of adding it.
fn ask_default(dialog: &Dialog, ground: &Ground<'_>, name: &str) -> Result<u8, Stop> {
    let config = Config::load(&ground.home, ground.env)?;
    let Some(provider) = config.providers.iter().find(|provider| provider.name == name) else {
        return Ok(exit::COMPLETE);
    };
    let asked = async { tokio::time::timeout(LIST_PATIENCE, fetch_list(provider, &config, ground.env)).await };
    let list = match crate::commands::runtime()?.block_on(asked) {
        Ok(Ok(list)) if !list.models.is_empty() => list,
        Ok(Ok(_)) => return Ok(exit::COMPLETE),
        Ok(Err(failure)) => {
            dialog.say(&format!("  its models cannot be listed: {}", clean::line(&failure.message)));
            return Ok(exit::COMPLETE);
        }
        Err(_) => return Ok(exit::COMPLETE),
    };
    let ids: Vec<String> = list.models.iter().map(|model| clean::line(&model.id)).collect();
    for (at, id) in ids.iter().take(OFFERED).enumerate() {
        dialog.say(&format!("  {:>2}  {id}", at + 1));
    }
    if ids.len() > OFFERED {
        dialog.say(&format!("  and {} more; `hames models` lists all", ids.len() - OFFERED));
    }
    let answer = dialog.line("Default model (a number or a name; Enter alone leaves it)", "")?;
    let by_number = answer.parse::<usize>().ok().and_then(|n| list.models.get(n.checked_sub(1)?));
    let id = by_number.map_or(answer.as_str(), |model| model.id.as_str());
    if id.is_empty() {
        return Ok(exit::COMPLETE);
    }
    let model = ProviderFlags { default: Some(id.to_owned()), ..ProviderFlags::default() }.default_model(name);
    edit(&ground.config.file.path, |file| file.set_model(model.as_deref()))?;
    Ok(exit::COMPLETE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(name: &str, set: ProviderFlags) -> Value {
        let members = by_flags(preset(name), name, &set).unwrap();
        members
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.unwrap()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    #[test]
    fn flags_and_what_is_known_make_the_entry() {
        let flags = ProviderFlags::default;
        for (name, set, expected) in [
            (
                "groq",
                flags(),
                json!({"base_url": "https://api.groq.com/openai/v1", "thinking": "effort", "api_key_env": "GROQ_API_KEY"}),
            ),
            ("ollama", flags(), json!({"base_url": "http://127.0.0.1:11434/v1"})),
            (
                "mine",
                ProviderFlags {
                    url: Some("http://h".into()),
                    thinking: Some("bool".into()),
                    max_tokens: Some(5),
                    ..flags()
                },
                json!({"base_url": "http://h", "thinking": "bool", "max_tokens": 5}),
            ),
            (
                "openai",
                ProviderFlags { key_env: Some("MY".into()), url: Some("https://proxy/v1".into()), ..flags() },
                json!({"base_url": "https://proxy/v1", "thinking": "effort", "api_key_env": "MY"}),
            ),
            (
                "opencode",
                flags(),
                json!({"base_url": "https://opencode.ai/zen/v1", "thinking": "type", "session_header": "x-opencode-session", "api_key_env": "OPENCODE_API_KEY"}),
            ),
        ] {
            assert_eq!(members(name, set), expected, "{name}");
        }
        assert!(by_flags(None, "mine", &flags()).is_err());
    }
}

//! `hames providers`: whom models are asked of. Everything it changes is the configuration file, by
//! [`edit`](crate::config::edit), and a key is never printed.

mod add;
mod check;
mod draft;
mod share;

use hames_protocol::ModelRef;
use serde_json::{Value, json};

use crate::cli::{ProviderFlags, ProvidersCommand};
use crate::config::edit::edit;
use crate::config::{Config, Origin, Provider, shown_url};
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::{Out, ask, clean, say};

pub(crate) use draft::{known, save, test};

/// What a command stands on.
struct Ground<'a> {
    env: &'a Env,
    home: Home,
    config: Config,
}

pub(crate) fn run(what: ProvidersCommand, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let config = Config::load(&home, env)?;
    config.file.warnings.iter().for_each(|warning| say(&format!("hames: warning: {warning}")));
    let ground = Ground { env, home, config };
    match what {
        ProvidersCommand::List { json } => list(&ground, json),
        ProvidersCommand::Add { name, set } => add::run(&ground, name, set),
        ProvidersCommand::Edit { name, set, unset } => change(&ground, &name, &set, &unset),
        ProvidersCommand::Remove { name, yes } => remove(&ground, &name, yes),
        ProvidersCommand::Test { name, model, json } => check::run(&ground, &name, model, json),
        ProvidersCommand::Export { names, with_keys, output } => share::export(&ground, &names, with_keys, &output),
        ProvidersCommand::Import { file, replace, keep } => share::import(&ground, &file, replace, keep),
    }
}

impl Ground<'_> {
    fn is_in_file(&self, name: &str) -> bool {
        self.config.file.providers.iter().any(|(known, _)| known == name)
    }

    fn path(&self) -> String {
        self.config.file.path.display().to_string()
    }

    /// The provider of the file of that name, or what to do instead.
    fn must_be_in_file(&self, name: &str) -> Result<(), Stop> {
        if self.is_in_file(name) {
            return Ok(());
        }
        let known: Vec<&str> = self.config.file.providers.iter().map(|(name, _)| name.as_str()).collect();
        let known = if known.is_empty() { "has no providers".to_owned() } else { format!("has {}", known.join(", ")) };
        Err(Stop::usage(format!(
            "{} {known}, and no \"{}\"; add it with `hames providers add`",
            self.path(),
            clean::line(name)
        )))
    }
}

/// Where a key comes from, with enough of it to know which it is.
fn key_text(provider: &Provider, config: &Config) -> String {
    match (&provider.key, &provider.missing_key_var) {
        (Some(key), _) => format!("key {} ({})", key.masked(), config.origin_text(&key.origin)),
        (None, Some(var)) => format!("no key: ${var} is not set"),
        (None, None) if provider.needs_key => "no key".into(),
        (None, None) => "no key, none needed".into(),
    }
}

fn list(ground: &Ground<'_>, as_json: bool) -> Result<u8, Stop> {
    let config = &ground.config;
    let default = config.choose(None, None).ok().map(|chosen| chosen.info.model);
    let mut out = Out::new();
    for provider in &config.providers {
        let from = match ground.is_in_file(&provider.name) {
            true => "file",
            false => "environment",
        };
        let model = default.as_ref().filter(|model| model.provider == provider.name);
        if as_json {
            out.json(&json!({
                "name": provider.name,
                "base_url": shown_url(&provider.base_url),
                "from": from,
                "key": provider.key.as_ref().map(|key| json!({"shown": key.masked(), "from": config.origin_text(&key.origin)})),
                "missing_key_env": provider.missing_key_var,
                "thinking": provider.thinking.map(|thinking| thinking.name()),
                "models": provider.models.iter().map(|model| &model.id).collect::<Vec<_>>(),
                "ready": provider.is_ready(),
                "default_model": model.map(ToString::to_string),
            }))?;
            continue;
        }
        let url = match provider.base_url.as_str() {
            "" => "no base_url".to_owned(),
            url => clean::line(&shown_url(url)),
        };
        let mut line = format!("{}  {url}  {}", clean::line(&provider.name), key_text(provider, config));
        if let Some(thinking) = provider.thinking {
            line.push_str(&format!("  thinking: {}", thinking.name()));
        }
        if from == "environment" {
            line.push_str("  (environment)");
        }
        if let Some(model) = model {
            line.push_str(&format!("  (default: {})", clean::line(&model.id)));
        }
        out.line(line)?;
    }
    if config.providers.is_empty() && !as_json {
        out.line("no providers; `hames providers add` adds one")?;
    }
    out.finish()?;
    Ok(exit::COMPLETE)
}

impl ProviderFlags {
    /// Members of a provider that the flags set, a key from standard input included.
    fn members(&self, key: Option<String>) -> Vec<(&'static str, Option<Value>)> {
        let mut members: Vec<(&'static str, Option<Value>)> = Vec::new();
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        for (name, value) in [
            ("base_url", text(&self.url)),
            ("thinking", text(&self.thinking)),
            ("session_header", text(&self.session_header)),
            ("max_tokens", self.max_tokens.map(|n| json!(n))),
        ] {
            members.extend(value.map(|value| (name, Some(value))));
        }
        // A key from one place replaces that from the other.
        if let Some(var) = &self.key_env {
            members.extend([("api_key_env", Some(json!(var))), ("api_key", None)]);
        }
        if let Some(key) = key {
            members.extend([("api_key", Some(json!(key))), ("api_key_env", None)]);
        }
        members
    }

    /// The key on standard input, where it is announced.
    fn key(&self) -> Result<Option<String>, Stop> {
        /// Bytes of a key; what is longer is some other file.
        const MAX_KEY_BYTES: u64 = 16 * 1024;
        if !self.key_stdin {
            return Ok(None);
        }
        let mut key = String::new();
        std::io::Read::read_to_string(&mut std::io::Read::take(std::io::stdin().lock(), MAX_KEY_BYTES + 1), &mut key)
            .map_err(|e| Stop::usage(format!("the key cannot be read from standard input: {e}")))?;
        let key = key.trim();
        if key.is_empty() || key.len() as u64 > MAX_KEY_BYTES || key.chars().any(char::is_control) {
            return Err(Stop::usage("standard input should hold the key, in one line"));
        }
        Ok(Some(key.to_owned()))
    }

    fn default_model(&self, provider: &str) -> Option<String> {
        let id = self.default.as_ref()?;
        // `openai/gpt-5.4` names the provider again, unless its models are called so.
        let id = id.strip_prefix(&format!("{provider}/")).unwrap_or(id);
        Some(ModelRef { provider: provider.into(), id: id.into() }.to_string())
    }
}

fn change(ground: &Ground<'_>, name: &str, set: &ProviderFlags, unset: &[String]) -> Result<u8, Stop> {
    ground.must_be_in_file(name)?;
    let mut members = set.members(set.key()?);
    members.extend(unset.iter().map(|key| (key.as_str(), None)));
    let model = set.default_model(name);
    if members.is_empty() && model.is_none() {
        return Err(Stop::usage("nothing to change; `hames providers edit --help` lists what can be set"));
    }
    edit(&ground.config.file.path, |file| {
        file.set_provider(name, &members)?;
        model.as_deref().map_or(Ok(()), |model| file.set_model(Some(model)))
    })?;
    ground.say_changed("changed", name)
}

fn remove(ground: &Ground<'_>, name: &str, yes: bool) -> Result<u8, Stop> {
    ground.must_be_in_file(name)?;
    if !yes {
        match ask(&format!("Remove provider {} and what is set of it?", clean::line(name))) {
            Some(true) => {}
            Some(false) => return Ok(exit::COMPLETE),
            None => return Err(Stop::usage("nobody can be asked here; say --yes to remove it")),
        }
    }
    edit(&ground.config.file.path, |file| file.remove_provider(name))?;
    if let Some(provider) = ground.config.providers.iter().find(|provider| provider.name == name) {
        ground.config.shelf.forget_list(provider);
    }
    say(&format!("hames: removed {} from {}", clean::line(name), ground.path()));
    let default = ground.config.file.model.as_ref().filter(|model| model.value.provider == name);
    if let Some(default) = default {
        say(&format!(
            "hames: {}:{} still names {} as the default model; `hames providers edit NAME --default MODEL` sets another",
            ground.path(),
            default.line,
            clean::line(&default.value.to_string())
        ));
    }
    Ok(exit::COMPLETE)
}

impl Ground<'_> {
    /// Says what was done to a provider, and what is still missing.
    fn say_changed(&self, what: &str, name: &str) -> Result<u8, Stop> {
        let config = Config::load(&self.home, self.env)?;
        say(&format!("hames: {what} {} in {}", clean::line(name), self.path()));
        let Some(provider) = config.providers.iter().find(|provider| provider.name == name) else {
            return Ok(exit::COMPLETE);
        };
        if let Some(var) = &provider.missing_key_var {
            say(&format!("hames: export {var} before you use it"));
        } else if provider.key.is_none() && provider.needs_key {
            say("hames: it has no key yet; `hames providers edit` sets one");
        }
        self.say_open(&config, |changed| changed == name);
        say(&format!("  hames providers test {}  checks it", clean::line(name)));
        Ok(exit::COMPLETE)
    }

    /// Says that others can read the file, where that holds the key of one of these providers.
    fn say_open(&self, config: &Config, is_one: impl Fn(&str) -> bool) {
        let in_file =
            |provider: &Provider| provider.key.as_ref().is_some_and(|key| matches!(key.origin, Origin::File(_)));
        let key_in_file = config.providers.iter().any(|provider| is_one(&provider.name) && in_file(provider));
        if key_in_file && is_open_to_others(&config.file.path) {
            say(&format!("hames: others can read {}; close it with: chmod 600 {0}", self.path()));
        }
    }
}

/// Whether somebody else on this machine may read the file.
pub(crate) fn is_open_to_others(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

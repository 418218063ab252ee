//! Providers as clients of the server write and test them. It is what `hames providers add` and `test` do, asked for over
//! the API: the file is changed by the same edit, and a draft is tested as the file would be with it.

use hames_protocol::ModelRef;
use hames_protocol::api::{
    CheckState, KnownProvider, KnownProviders, LocalServer, ProviderCheck, ProviderDraft, ProviderTest,
};
use serde_json::{Value, json};

use super::check::Test;
use crate::catalog::discover;
use crate::commands::checks::{Check, State};
use crate::config::edit::{Edit, edit, tried};
use crate::config::{Config, Masks, PRESETS, is_http_url, preset};
use crate::env::Env;
use crate::exit::Stop;
use crate::home::Home;
use crate::output::clean;

/// Bytes of a name, and of a key; what is longer is something else.
const MAX_NAME: usize = 100;
const MAX_KEY: usize = 16 * 1024;

type Members = Vec<(&'static str, Option<Value>)>;

/// Writes a provider into the file.
pub(crate) fn save(draft: &ProviderDraft, home: &Home) -> Result<(), Stop> {
    let members = members(draft)?;
    edit(&home.config_file(), |file| write(file, draft, &members))
}

/// Tests a provider as it would be.
pub(crate) async fn test(draft: &ProviderDraft, home: &Home, env: &Env) -> Result<ProviderTest, Stop> {
    let members = members(draft)?;
    let mut file = tried(&home.config_file(), |file| write(file, draft, &members))?;
    // Which model is asked is said by the draft, not by a default of another provider.
    file.model = file.model.filter(|model| model.value.provider == draft.name);
    let config = Config::from_file(file, env)?;
    let provider = config.providers.iter().find(|provider| provider.name == draft.name).cloned();
    let provider =
        provider.ok_or_else(|| Stop::usage(format!("there is no provider \"{}\"", clean::line(&draft.name))))?;
    let is_draft = !members.is_empty();
    let mut test = Test::of(provider, &config, home, env);
    if is_draft {
        test = test.of_draft();
    }
    let mut checks = Vec::new();
    let tell = |check: Check| {
        let goes_on = check.state != State::Bad;
        checks.push(check);
        Ok(goes_on)
    };
    let found = test.run(draft.model.clone(), tell).await?;
    // Whatever a provider says about it: the key goes back to nobody.
    let masks = Masks::of(draft.api_key.iter().map(|key| key.0.clone()).collect());
    let said = |text: &str| masks.mask(text).into_owned();
    Ok(ProviderTest {
        ok: checks.iter().all(|check| check.state != State::Bad),
        checks: checks.iter().map(|check| told(check, said)).collect(),
        models: found.models.iter().map(|id| said(id)).collect(),
        model: found.model.map(|id| said(&id)),
    })
}

fn told(check: &Check, said: impl Fn(&str) -> String) -> ProviderCheck {
    ProviderCheck {
        name: check.name.to_owned(),
        state: match check.state {
            State::Good => CheckState::Ok,
            State::Odd => CheckState::Note,
            State::Bad => CheckState::Failed,
        },
        what: said(&check.what),
        remedy: check.remedy.as_deref().map(said),
    }
}

/// What can be set up without knowing an address.
pub(crate) async fn known(config: &Config, env: &Env) -> KnownProviders {
    let found = discover::all(&discover::ports(&config.file.catalog.local_servers)).await;
    let local = found.into_iter().map(|found| LocalServer {
        name: found.provider.name,
        title: found.title,
        base_url: found.provider.base_url,
        models: found.list.models.into_iter().map(|model| model.id).collect(),
    });
    let known = PRESETS.iter().map(|preset| KnownProvider {
        name: preset.name.to_owned(),
        title: preset.title.to_owned(),
        base_url: preset.base_url.to_owned(),
        key_env: preset.key_var.map(str::to_owned),
        has_key: preset.key_var.is_some_and(|var| env.get(var).is_some()),
    });
    KnownProviders { local: local.collect(), known: known.collect() }
}

/// Members of the file's entry that the draft sets, each checked before anything is done.
fn members(draft: &ProviderDraft) -> Result<Members, Stop> {
    let name = draft.name.as_str();
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(is_odd) {
        return Err(Stop::usage("a provider's name has no blanks and no slashes, and at most 100 letters"));
    }
    let mut members = Members::new();
    if let Some(url) = &draft.base_url {
        if !is_http_url(url) {
            return Err(Stop::usage("a provider's URL begins with http:// or https://"));
        }
        members.push(("base_url", Some(json!(url))));
    }
    match (&draft.api_key, &draft.api_key_env) {
        (Some(_), Some(_)) => return Err(Stop::usage("a provider's key comes from one place: the file or a variable")),
        (Some(key), None) => {
            let key = key.0.as_str();
            if key.is_empty() || key.len() > MAX_KEY || key.chars().any(|c| c.is_control() || c.is_whitespace()) {
                return Err(Stop::usage("a key has no blanks and is one line"));
            }
            members.extend([("api_key", Some(json!(key))), ("api_key_env", None)]);
        }
        (None, Some(var)) => {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if var.is_empty() || !var.chars().all(is_name) || var.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(Stop::usage("a variable's name has letters, digits and underscores"));
            }
            members.extend([("api_key_env", Some(json!(var))), ("api_key", None)]);
        }
        (None, None) => {}
    }
    Ok(members)
}

fn write(file: &Edit, draft: &ProviderDraft, members: &Members) -> Result<(), Stop> {
    let is_new = file.provider(&draft.name)?.is_none();
    let mut all = members.clone();
    // A new entry says what is known under its name, so that the file can be read without knowing it by heart.
    if let (true, false, Some(known)) = (is_new, members.is_empty(), preset(&draft.name)) {
        let mut add = |name: &'static str, value: Option<Value>| {
            if value.is_some() && all.iter().all(|(set, _)| *set != name) {
                all.push((name, value));
            }
        };
        add("base_url", Some(json!(known.base_url)));
        add("thinking", known.thinking.map(|thinking| json!(thinking.name())));
        add("session_header", known.session_header.map(|header| json!(header)));
    }
    if is_new {
        all.retain(|(_, value)| value.is_some());
    }
    if !all.is_empty() {
        file.set_provider(&draft.name, &all)?;
    }
    match &draft.model {
        Some(id) => file.set_model(Some(&ModelRef { provider: draft.name.clone(), id: id.clone() }.to_string())),
        None => Ok(()),
    }
}

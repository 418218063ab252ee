//! `hames sessions set`: the settings of one session, changed and shown. A session that the local server holds is changed
//! there, so that whoever watches it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use hames_agent::{Nobody, Ports, Session, SystemClock, Watch};
use hames_protocol::api::ChangeSettings;
use hames_protocol::{CompactionSettings, SessionState, Settings, SettingsChanged};
use hames_store::{SessionInfo, Store};
use serde_json::{Map, Value, json};

use super::sessions::at_server;
use crate::cli::SetArgs;
use crate::config::{Chosen, Config};
use crate::engine::{in_force, whole_window_for_answers};
use crate::env::Env;
use crate::exit::Stop;
use crate::home::Home;
use crate::output::{Out, clean, say};
use crate::resolve::settings_of;

/// Changes what is given, then shows everything. With nothing given it only shows, and writes nothing.
pub(super) fn set(
    args: &SetArgs,
    store: &Store,
    home: &Home,
    env: &Env,
    info: &SessionInfo,
    out: &mut Out,
) -> Result<(), Stop> {
    let config = Config::load(home, env)?;
    let change = ChangeSettings { settings: args.settings.settings(), unset: args.unset.clone() };
    check(&change, &config)?;
    if change != ChangeSettings::default() {
        let there = at_server(store, home, info, async |client| client.change_settings(&info.id, &change).await)?;
        if there.is_none() {
            record(store, info, change)?;
        }
    }
    let state = looked_up(store, info)?;
    let own = state.settings;
    let known = settings_of(info).patched(&own);
    let chosen = config.choose(None, Some(&known)).ok();
    let odd = chosen.as_ref().and_then(|chosen| whole_window_for_answers(chosen, &known));
    odd.iter().for_each(|odd| say(&format!("hames: warning: {odd}")));
    let effective = effective(chosen.as_ref(), &known, &state.limits);
    if args.json {
        return out.json(&json!({"session": info.id.as_str(), "settings": own, "effective": effective}));
    }
    show(info, &own, &effective, out)
}

/// Refuses names of nothing, and models that no provider has.
fn check(change: &ChangeSettings, config: &Config) -> Result<(), Stop> {
    if let Some(unknown) = change.unset.iter().find(|name| !Settings::is_name(name)) {
        let names = "`hames sessions set NAME --json` shows every name; one number of a group is guard.max_nudges, say";
        return Err(Stop::usage(format!("there is no setting \"{}\"; {names}", clean::line(unknown))));
    }
    let author = change.settings.compaction.as_ref().and_then(|compaction| compaction.summary_model.as_ref());
    for model in [change.settings.model.as_ref(), author].into_iter().flatten() {
        config.choose(Some(model), None)?;
    }
    Ok(())
}

fn looked_up(store: &Store, info: &SessionInfo) -> Result<SessionState, Stop> {
    let ports = Ports { log: store.log(), clock: Arc::new(SystemClock) };
    let session = super::runtime()?.block_on(Session::look(ports, info.id.clone()))?;
    let state = session.state().clone();
    Ok(state)
}

fn record(store: &Store, info: &SessionInfo, change: ChangeSettings) -> Result<(), Stop> {
    let _lease = store.lease(&info.id, "hames sessions set")?;
    let ports = Ports { log: store.log(), clock: Arc::new(SystemClock) };
    let changed = SettingsChanged { settings: change.settings, unset: change.unset };
    super::runtime()?.block_on(async {
        let session = Session::resume(ports, info.id.clone()).await?;
        session.change_settings(changed, Arc::new(Nobody) as Arc<dyn Watch>).await?;
        Ok(())
    })
}

/// What the next run uses, every number said: a window that turned out smaller than it was set or known to be counts as it
/// is. Where no model can be chosen, what is known without one.
fn effective(chosen: Option<&Chosen>, own: &Settings, limits: &BTreeMap<String, u64>) -> Value {
    let (known, window) = match chosen {
        Some(chosen) => (in_force(chosen, own), Some(chosen.info.context_window)),
        None => (own.clone(), None),
    };
    let compaction = known.compaction.clone().unwrap_or_default();
    let (trigger, landing) = compaction.marks();
    let limit = known.model.as_ref().and_then(|model| limits.get(&model.to_string())).copied();
    let window = known.context_window.or(window).map(|window| limit.map_or(window, |limit| limit.min(window)));
    let settings = Settings {
        mode: Some(known.mode.unwrap_or_default()),
        context_window: window,
        guard: None,
        compaction: Some(CompactionSettings {
            auto: Some(compaction.auto.unwrap_or(true)),
            strategy: Some(compaction.strategy.unwrap_or_default()),
            trigger: Some(trigger),
            landing: Some(landing),
            ..compaction
        }),
        ..known.clone()
    };
    let mut all = json!(settings);
    all["guard"] = known.guard.unwrap_or_default().in_force().to_json();
    all
}

fn show(info: &SessionInfo, own: &Settings, effective: &Value, out: &mut Out) -> Result<(), Stop> {
    let (own, effective) = (flat(&json!(own)), flat(effective));
    let width = effective.keys().map(String::len).max().unwrap_or(0);
    out.line(format!("the next run of \"{}\" uses (* set in this session):", clean::line(&info.name)))?;
    for (name, value) in &effective {
        let mark = if own.contains_key(name) { '*' } else { ' ' };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        out.line(format!("{mark} {name:<width$}  {}", clean::line(&value)))?;
    }
    Ok(())
}

/// Fields by their names, those of a group as `group.field`.
fn flat(settings: &Value) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in settings.as_object().into_iter().flatten() {
        match value {
            Value::Object(group) => out.extend(group.iter().map(|(field, v)| (format!("{name}.{field}"), v.clone()))),
            value => drop(out.insert(name.clone(), value.clone())),
        }
    }
    out
}

//! Wires the engine: store, model, tools, door, agent. The one place that knows every crate.

mod job;
mod setup;
mod title;

use std::sync::Arc;
use std::time::Duration;

use hames_agent::{Clock, SystemClock};
use hames_model::{Endpoint, LearnedFile, Proxy, Secret, ThinkingDialect};
use hames_protocol::{Failure, LogError};
use hames_store::Store;
use hames_tools::Finished;

use crate::config::{Config, Provider, Thinking};
use crate::env::Env;
use crate::exit::Stop;
use crate::home::Home;
use crate::output::{clean, say};
use crate::server::gives_way;

pub(crate) use job::{Ended, Job};
pub(crate) use setup::{Setup, in_force, myself, whole_window_for_answers};
pub(crate) use title::ask_for_title;

/// The hidden name under which this program is its own reaper.
pub(crate) const REAPER: &str = "__reap";

/// Opens the sessions of this home for `work`. What was mended on the way or meanwhile is said, however the work ends.
pub(crate) fn with_store<T>(home: &Home, work: impl FnOnce(&Store) -> Result<T, Stop>) -> Result<T, Stop> {
    let tell = |notices: Vec<String>| notices.iter().for_each(|notice| say(&format!("hames: {notice}")));
    let opened = match Store::open(home.data()) {
        Err(LogError::Locked(_)) if gives_way(home)? => Store::open(home.data())?,
        opened => opened?,
    };
    tell(opened.notices);
    let ended = work(&opened.store);
    tell(opened.store.take_notices());
    ended
}

/// The endpoint of a provider of this configuration.
pub(crate) fn endpoint(provider: &Provider, config: &Config, env: &Env) -> Endpoint {
    let mut endpoint = Endpoint::new(provider.name.clone(), provider.base_url.clone());
    endpoint.api_key = provider.key.as_ref().map(|key| Secret::new(key.reveal()));
    endpoint.headers.clone_from(&provider.headers);
    endpoint.session_header.clone_from(&provider.session_header);
    endpoint.thinking = provider.thinking.map(|thinking| match thinking {
        Thinking::Bool => ThinkingDialect::Bool,
        Thinking::Effort => ThinkingDialect::Effort,
        Thinking::Reasoning => ThinkingDialect::Reasoning,
        Thinking::Type => ThinkingDialect::Type,
    });
    endpoint.replay_reasoning = provider.replay_reasoning;
    endpoint.thinking_tags = provider.thinking_tags.unwrap_or(endpoint.thinking_tags);
    endpoint.text_tool_calls = provider.text_tool_calls.unwrap_or(endpoint.text_tool_calls);
    let given = &provider.timeouts;
    for (limit, seconds) in [
        (&mut endpoint.timeouts.connect, given.connect_s),
        (&mut endpoint.timeouts.first_byte, given.first_byte_s),
        (&mut endpoint.timeouts.idle, given.idle_s),
    ] {
        if let Some(seconds) = seconds {
            *limit = Duration::from_secs(seconds);
        }
    }
    endpoint.proxy = env.proxy_for(&provider.base_url).map(|url| Proxy { url: url.into() });
    endpoint.remedies = config.remedies(provider);
    endpoint
}

/// What every run of this process stands on.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) env: &'a Env,
    pub(crate) home: &'a Home,
    pub(crate) config: &'a Config,
    pub(crate) store: &'a Store,
}

/// What models refused before, kept in the home.
pub(crate) fn learned(home: &Home) -> Arc<LearnedFile> {
    let now = Arc::new(|| SystemClock.now_ms() / 1_000);
    let (learned, notice) = LearnedFile::open(home.learned(), now);
    notice.iter().for_each(|notice| say(&format!("hames: {notice}")));
    Arc::new(learned)
}

/// Says what an apply that was cut left undone.
pub(crate) fn unfinished(finished: &Finished) {
    for (path, reason) in &finished.left {
        say(&format!(
            "hames: applying changes was cut, and {} was left alone: {}; it stays proposed",
            clean::line(path),
            clean::line(reason)
        ));
    }
}

pub(crate) fn internal(error: impl std::fmt::Display) -> Failure {
    Failure::new(hames_protocol::ErrorClass::Internal, error.to_string())
}

//! Keeps what is known of models fresh, beside a run and never ahead of it.
//!
//! A run waits for none of this. It begins when the model has begun to answer, and what is not done when the run ends is
//! dropped: the files are as they were, and the next run tries again.

use std::sync::Arc;

use async_trait::async_trait;
use hames_agent::{Clock, SystemClock, Watch};
use hames_model::catalog::{MODELS_DEV, catalog_name, fetch_models_dev};
use hames_model::{ModelList, Proxy, list_models};
use hames_protocol::{Envelope, Event, Failure};
use tokio_util::sync::CancellationToken;

use super::section;
use super::shelf::{Kept, Shelf};
use crate::config::{Chosen, Config, ModelsDev, Provider};
use crate::engine::endpoint;
use crate::env::Env;

/// How old a provider's list may be: models come and go by the week, prices by the month.
const LIST_AGE_MS: u64 = 3_600_000;
/// The same for a server of one's own, which loads and unloads.
const OWN_LIST_AGE_MS: u64 = 60_000;
/// How old the public catalog may be: it is made anew each day.
pub(crate) const PUBLIC_AGE_MS: u64 = 86_400_000;

/// Whether a kept list should be asked for again.
pub(crate) fn is_stale(provider: &Provider, kept: Option<&Kept>, now_ms: u64) -> bool {
    let limit = if catalog_name(&provider.base_url).is_some() { LIST_AGE_MS } else { OWN_LIST_AGE_MS };
    kept.is_none_or(|kept| now_ms.saturating_sub(kept.at_ms) > limit)
}

/// Asks a provider for its list, and keeps it.
pub(crate) async fn fetch_list(provider: &Provider, config: &Config, env: &Env) -> Result<ModelList, Failure> {
    let list = list_models(&endpoint(provider, config, env)).await?;
    config.shelf.keep_list(provider, &list, SystemClock.now_ms());
    Ok(list)
}

/// Fetches the public catalog, and keeps it. `None` where nobody wants it.
pub(crate) async fn fetch_public(config: &Config, env: &Env) -> Option<Result<(), Failure>> {
    let url = match &config.file.catalog.models_dev {
        ModelsDev::Off => return None,
        ModelsDev::On => MODELS_DEV,
        ModelsDev::At(url) => url,
    };
    let proxy = env.proxy_for(url).map(|url| Proxy { url: url.into() });
    let fetched = fetch_models_dev(url, proxy, &SystemClock.now_ms().to_string()).await;
    Some(fetched.map(|catalog| config.shelf.keep_public(&catalog)))
}

/// Whether the public catalog, as it was kept, is due to be fetched again.
pub(crate) fn public_is_stale(shelf: &Shelf, now_ms: u64) -> bool {
    shelf.public().is_none_or(|kept| now_ms.saturating_sub(kept.at_ms) > PUBLIC_AGE_MS)
}

/// Refreshes what the run's model is known by, once it answers.
pub(crate) async fn beside(chosen: &Chosen, config: &Config, env: &Env, answering: &CancellationToken) {
    let provider = &chosen.provider;
    if !config.shelf.keeps() {
        return;
    }
    let stale = is_stale(provider, config.shelf.list(provider).as_ref(), SystemClock.now_ms());
    // Only what neither the list nor the catalog in the program says is worth three megabytes.
    let wants_public = section(provider).is_some() && chosen.described.has_gaps();
    if !stale && !wants_public {
        return;
    }
    answering.cancelled().await;
    if stale && let Err(failure) = fetch_list(provider, config, env).await {
        tracing::debug!(target: "hames::catalog", provider = %provider.name, message = %failure.message, "no list");
    }
    if wants_public
        && public_is_stale(&config.shelf, SystemClock.now_ms())
        && let Some(Err(failure)) = fetch_public(config, env).await
    {
        tracing::debug!(target: "hames::catalog", message = %failure.message, "no public catalog");
    }
}

/// A watcher that also notices when the model has begun to answer.
pub(crate) struct Noticing {
    watch: Arc<dyn Watch>,
    answering: CancellationToken,
}

impl Noticing {
    /// Watches for another watcher; `answering` is cancelled at the first sign of an answer.
    pub(crate) fn new(watch: Arc<dyn Watch>, answering: CancellationToken) -> Self {
        Self { watch, answering }
    }

    fn notice(&self, event: &Event) {
        let is_answer = matches!(
            event,
            Event::TextDelta(_) | Event::ReasoningDelta(_) | Event::ToolInputDelta(_) | Event::StepDone(_)
        );
        if is_answer && !self.answering.is_cancelled() {
            self.answering.cancel();
        }
    }
}

#[async_trait]
impl Watch for Noticing {
    async fn see(&self, batch: &[Envelope]) {
        batch.iter().for_each(|envelope| self.notice(&envelope.event));
        self.watch.see(batch).await;
    }

    fn glimpse(&self, live: Envelope) {
        self.notice(&live.event);
        self.watch.glimpse(live);
    }
}

#[cfg(test)]
mod tests {
    use hames_model::catalog::{Catalog, ListedModel};

    use super::*;

    #[test]
    fn lists_grow_old_and_those_of_ones_own_servers_sooner() {
        let none: [ListedModel; 0] = [];
        let kept = Kept { at_ms: 1_000, catalog: Catalog::write("", [("models", &none[..])]) };
        for (url, after_ms, stale) in [
            ("https://api.openai.com/v1", 3_600_000, false),
            ("https://api.openai.com/v1", 3_600_001, true),
            ("http://127.0.0.1:8080", 60_000, false),
            ("http://127.0.0.1:8080", 60_001, true),
        ] {
            let provider = Provider::at("p", url);
            assert_eq!(is_stale(&provider, Some(&kept), 1_000 + after_ms), stale, "{url} {after_ms}");
            // A clock that was set back makes nothing old.
            assert!(!is_stale(&provider, Some(&kept), 0));
            assert!(is_stale(&provider, None, 0));
        }
    }
}

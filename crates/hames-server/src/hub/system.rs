//! Operations that belong to no session.

use std::path::Path;

use hames_protocol::SessionId;
use hames_protocol::api::*;
use hames_store::{SEARCH_PATIENCE, Searched};

use super::sessions::canonical;
use super::{Hub, Inner, go_on};
use crate::refusal::{Answer, blocking, failed, refuse, refused};
use crate::rows;

impl Hub {
    /// Where all words occur in messages, answers and labels of calls, the newest first.
    pub async fn search(&self, query: &str, folder: Option<&Path>, limit: usize) -> Answer<SearchResults> {
        let (store, query, folder) = (self.inner.store.clone(), query.to_owned(), folder.map(canonical));
        let search = move || store.search_within(&query, folder.as_deref(), limit, SEARCH_PATIENCE);
        let Searched { hits, is_behind, since } = blocking(search).await?.map_err(refused)?;
        let results = hits.into_iter().map(|hit| SearchResult {
            session: rows::row(hit.session, SessionActivity::Idle, None),
            seq: hit.seq,
            at: hit.at,
            kind: serde_json::to_value(hit.kind)
                .ok()
                .and_then(|kind| Some(kind.as_str()?.to_owned()))
                .unwrap_or_default(),
            text: hit.snippet,
            highlights: hit.highlights,
        });
        Ok(SearchResults { results: results.collect(), since, behind: is_behind })
    }

    /// The models one can choose.
    pub async fn models(&self) -> Answer<Models> {
        self.inner.host.models().await.map_err(failed)
    }

    /// The providers, without their keys.
    pub async fn providers(&self) -> Answer<Providers> {
        self.inner.host.providers().await.map_err(failed)
    }

    /// Writes a provider into the configuration.
    pub async fn save_provider(&self, draft: ProviderDraft) -> Answer<Providers> {
        self.inner.host.save_provider(draft).await.map_err(failed)
    }

    /// What can be set up without knowing an address.
    pub async fn known_providers(&self) -> Answer<KnownProviders> {
        self.inner.host.known_providers().await.map_err(failed)
    }

    /// Tests a provider as it would be. Writes nothing.
    pub async fn test_provider(&self, draft: ProviderDraft) -> Answer<ProviderTest> {
        self.inner.host.test_provider(draft).await.map_err(failed)
    }

    /// The configuration in force, keys left out.
    pub async fn configuration(&self) -> Answer<Configuration> {
        self.inner.host.configuration().await.map_err(failed)
    }

    /// How large the database is.
    pub async fn database(&self) -> Answer<DatabaseStats> {
        let store = self.inner.store.clone();
        let stats = blocking(move || store.stats()).await?.map_err(refused)?;
        Ok(DatabaseStats {
            bytes: stats.space.bytes,
            free_bytes: stats.space.free_bytes,
            sessions: stats.sessions,
            events: stats.events,
            blob_bytes: stats.row_blob_bytes.saturating_add(stats.file_blob_bytes),
            suggest_vacuum: self.inner.host.vacuum_thresholds().suggest(stats.space),
        })
    }

    /// Whether giving unused space of the database back is worth its time.
    pub fn suggests_vacuum(&self) -> bool {
        self.inner.suggests_vacuum()
    }

    /// Gives unused space of the database back. Busy while anything runs.
    pub async fn vacuum(&self) -> Answer<Vacuumed> {
        let runs = self.inner.counts.borrow().runs;
        if runs > 0 {
            let text = format!("{}; the database is reorganised when none does. Wait, or stop it.", go_on(runs));
            return Err(refuse(ApiErrorCode::Busy, text));
        }
        let idle: Vec<SessionId> = self.inner.open_sessions().into_iter().map(|(id, _)| id).collect();
        let store = self.inner.store.clone();
        let done = blocking(move || store.vacuum(&idle)).await?.map_err(refused)?;
        let hames_store::Vacuumed { before_bytes, after_bytes, blobs_removed, duration_ms } = done;
        Ok(Vacuumed { before_bytes, after_bytes, blobs_removed, duration_ms })
    }
}

impl Inner {
    /// Whether a vacuum is worth its time, which the server's log says too. Asked at the start and after what makes the
    /// database emptier. Reads one page.
    pub(crate) fn suggests_vacuum(&self) -> bool {
        let Ok(space) = self.store.free_space() else { return false };
        let is_worth_it = self.host.vacuum_thresholds().suggest(space);
        if is_worth_it {
            tracing::info!(
                target: "hames::server", bytes = space.bytes, free_bytes = space.free_bytes,
                "`hames db vacuum` would make the database smaller"
            );
        }
        is_worth_it
    }
}

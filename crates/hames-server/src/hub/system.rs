//! Operations that belong to no session.

use std::path::Path;

use hames_protocol::SessionId;
use hames_protocol::api::*;
use hames_store::VacuumThresholds;

use super::Hub;
use super::sessions::canonical;
use crate::refusal::{Answer, blocking, failed, refuse, refused};
use crate::rows;

impl Hub {
    /// Where all words occur in messages, answers and labels of calls, the newest first.
    pub async fn search(&self, query: &str, folder: Option<&Path>, limit: usize) -> Answer<SearchResults> {
        let (store, query, folder) = (self.inner.store.clone(), query.to_owned(), folder.map(canonical));
        let hits = blocking(move || store.search(&query, folder.as_deref(), limit)).await?.map_err(refused)?;
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
        Ok(SearchResults { results: results.collect() })
    }

    /// The models one can choose.
    pub async fn models(&self) -> Answer<Models> {
        self.inner.host.models().await.map_err(failed)
    }

    /// The providers, without their keys.
    pub async fn providers(&self) -> Answer<Providers> {
        self.inner.host.providers().await.map_err(failed)
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
            suggest_vacuum: VacuumThresholds::default().suggest(stats.space),
        })
    }

    /// Gives unused space of the database back. Busy while anything runs.
    pub async fn vacuum(&self) -> Answer<Vacuumed> {
        let runs = self.inner.counts.borrow().runs;
        if runs > 0 {
            let text =
                format!("{runs} runs go on; the database is reorganised when none does. Wait for them, or stop them.");
            return Err(refuse(ApiErrorCode::Busy, text));
        }
        let idle: Vec<SessionId> = self.inner.open_sessions().into_iter().map(|(id, _)| id).collect();
        let store = self.inner.store.clone();
        let done = blocking(move || store.vacuum(&idle)).await?.map_err(refused)?;
        let (before_bytes, after_bytes, duration_ms) = (done.before_bytes, done.after_bytes, done.duration_ms);
        Ok(Vacuumed { before_bytes, after_bytes, duration_ms })
    }
}

//! What the database costs, and giving back what it does not need any more.

use std::time::Instant;

use hames_protocol::{LogError, SessionId};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::row::uint;
use crate::{Store, blobs, open, search};

/// Tables and indexes that make up the search.
const SEARCH_TREES: &[&str] = search::TREES;

/// The size of the database and what of it is free: read from its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes of the database.
    pub bytes: u64,
    /// Bytes of pages that hold nothing: what a vacuum gives back at least.
    pub free_bytes: u64,
}

/// From when on a vacuum is worth its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VacuumThresholds {
    /// More than so many percent of the database are free.
    pub free_percent: u8,
    /// And at least so many bytes.
    pub free_bytes: u64,
}

impl Default for VacuumThresholds {
    fn default() -> Self {
        Self { free_percent: 20, free_bytes: 128 << 20 }
    }
}

impl VacuumThresholds {
    /// Whether a vacuum is worth its time. To be asked after a cut, after a delete and at the start.
    pub fn suggest(&self, space: FreeSpace) -> bool {
        let (free, whole) = (u128::from(space.free_bytes), u128::from(space.bytes));
        space.free_bytes > 0
            && space.free_bytes >= self.free_bytes
            && free * 100 > whole * u128::from(self.free_percent)
    }
}

/// What is kept, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStats {
    /// The database and its free pages.
    pub space: FreeSpace,
    /// Bytes of the write-ahead file.
    pub wal_bytes: u64,
    /// Sessions.
    pub sessions: u64,
    /// Events.
    pub events: u64,
    /// Blobs in the database.
    pub row_blobs: u64,
    /// Their bytes.
    pub row_blob_bytes: u64,
    /// Blobs that are files.
    pub file_blobs: u64,
    /// Their bytes.
    pub file_blob_bytes: u64,
    /// Bytes of the search index.
    pub search_bytes: u64,
}

/// What a vacuum did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacuumed {
    /// Bytes of the database before.
    pub before_bytes: u64,
    /// Bytes of the database after.
    pub after_bytes: u64,
    /// Blobs that no session names any more and that were removed.
    pub blobs_removed: u64,
    /// Milliseconds it took.
    pub duration_ms: u64,
}

impl Store {
    /// The size of the database and what of it is free. Costs next to nothing.
    pub fn free_space(&self) -> Result<FreeSpace, LogError> {
        self.inner.read(free_space)
    }

    /// What is kept, and what it takes. Counts events and the pages of the index: fractions of a second for a gigabyte.
    pub fn stats(&self) -> Result<StoreStats, LogError> {
        let wal_bytes = open::wal_bytes(&self.inner.home().database()).unwrap_or(0);
        self.inner.read(|db| stats(db, wal_bytes))
    }

    /// Makes the database as small as it can be: removes what no session names, tidies the search index, rewrites the
    /// file. Refused, with who it is, while anybody here or in another process holds a session, but for the sessions that
    /// this process holds and names as `idle`. Appends wait meanwhile.
    pub fn vacuum(&self, idle: &[SessionId]) -> Result<Vacuumed, LogError> {
        self.refuse_while_in_use(idle)?;
        let began = Instant::now();
        let before_bytes = self.free_space()?.bytes;
        let blobs_removed = self.remove_unnamed_blobs()?;
        self.inner.writer().outside_a_transaction(|db| {
            search::optimize(db)?;
            db.execute_batch("PRAGMA optimize; VACUUM;")?;
            // The file shrinks when the log of the rewrite is copied back. A reader may hold that up: then it is later.
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(())
        })?;
        let after_bytes = self.free_space()?.bytes;
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Vacuumed { before_bytes, after_bytes, blobs_removed, duration_ms })
    }

    fn refuse_while_in_use(&self, idle: &[SessionId]) -> Result<(), LogError> {
        let ours = std::process::id();
        let busy = self.in_use()?.into_iter().find(|held| held.pid != ours || !idle.contains(&held.session));
        let Some(held) = busy else { return Ok(()) };
        let name = self.session(&held.session)?.map_or_else(|| held.session.to_string(), |info| info.name);
        let who = if held.holder.is_empty() { "a process".to_owned() } else { held.holder };
        Err(LogError::Busy(format!(
            "session \"{name}\" is in use by {who} (process {}); the database is made smaller only while nothing runs",
            held.pid
        )))
    }

    /// Removes blobs that neither a session refers to nor any event names, and files that are no blob's.
    fn remove_unnamed_blobs(&self) -> Result<u64, LogError> {
        let unreferred = self.inner.read(blobs::unreferred)?;
        let unnamed = match unreferred.is_empty() {
            true => Vec::new(),
            // A repair may have lost references: the events have the last word.
            false => self.inner.read(|db| blobs::named_by_none(db, unreferred.clone()))?,
        };
        let rows = self.inner.writer().run_blocking(move |db| blobs::remove_rows(db, &unnamed))?;
        let files = self.inner.read(|db| blobs::sweep_all(db, self.inner.home()))?;
        Ok(rows.max(files))
    }
}

fn free_space(db: &Connection) -> Result<FreeSpace, Fault> {
    let sql = "SELECT page_count * page_size, freelist_count * page_size
               FROM pragma_page_count(), pragma_page_size(), pragma_freelist_count()";
    Ok(db.query_row(sql, [], |row| Ok(FreeSpace { bytes: uint(row, 0), free_bytes: uint(row, 1) }))?)
}

fn stats(db: &Connection, wal_bytes: u64) -> Result<StoreStats, Fault> {
    let tx = db.unchecked_transaction()?;
    let number = |sql: &str| tx.query_row(sql, [], |row| Ok(uint(row, 0)));
    let blobs = "SELECT count(*), coalesce(sum(bytes), 0) FROM blobs WHERE body IS";
    let two = |sql: &str| tx.query_row(sql, [], |row| Ok((uint(row, 0), uint(row, 1))));
    let (row_blobs, row_blob_bytes) = two(&format!("{blobs} NOT NULL"))?;
    let (file_blobs, file_blob_bytes) = two(&format!("{blobs} NULL"))?;
    let mut tree = tx.prepare("SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = ?1 AND aggregate = TRUE")?;
    let mut search_bytes = 0;
    for name in SEARCH_TREES {
        search_bytes += tree.query_row([name], |row| Ok(uint(row, 0)))?;
    }
    Ok(StoreStats {
        space: free_space(&tx)?,
        wal_bytes,
        sessions: number("SELECT count(*) FROM sessions")?,
        events: number("SELECT count(*) FROM events")?,
        row_blobs,
        row_blob_bytes,
        file_blobs,
        file_blob_bytes,
        search_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vacuum_is_suggested_above_both_thresholds() {
        const MB: u64 = 1 << 20;
        let usual = VacuumThresholds::default();
        let any = VacuumThresholds { free_percent: 0, free_bytes: 0 };
        for (thresholds, mb, free_mb, suggested) in [
            (usual, 1000, 201, true),
            (usual, 1000, 200, false),
            (usual, 640, 129, true),
            (usual, 600, 127, false),
            (usual, 600, 128, true),
            (usual, 0, 0, false),
            (usual, u64::MAX / MB, u64::MAX / MB, true),
            (any, 10, 1, true),
            (any, 10, 0, false),
            (VacuumThresholds { free_percent: 100, ..any }, 10, 10, false),
            (VacuumThresholds { free_bytes: 0, ..usual }, 10, 3, true),
        ] {
            let space = FreeSpace { bytes: mb * MB, free_bytes: free_mb * MB };
            assert_eq!(thresholds.suggest(space), suggested, "{thresholds:?} {mb} {free_mb}");
        }
    }
}

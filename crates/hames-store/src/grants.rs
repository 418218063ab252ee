//! What a person allowed for a folder, kept from run to run and taken back one by one.
//!
//! A grant is compared as it is written: the same grant has the same JSON. One that this version cannot read (a newer
//! one wrote it) allows nothing, and is left where it is.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use hames_protocol::{Durability, Grant, GrantKeeper, LogError};
use rusqlite::Connection;

use crate::Store;
use crate::fault::Fault;
use crate::row::{int, uint};
use crate::sessions::folder_text;
use crate::store::Inner;

/// Grants of one folder at most. Far more than anybody answers; what comes after is refused rather than lost.
const GRANTS_PER_FOLDER: i64 = 1_000;

/// A grant and where it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptGrant {
    /// The folder, canonical and absolute.
    pub folder: String,
    /// What is allowed there.
    pub grant: Grant,
    /// Unix milliseconds of when it was given.
    pub at: u64,
}

impl Store {
    /// What was allowed in a folder, or in any, oldest first.
    pub fn grants(&self, folder: Option<&Path>) -> Result<Vec<KeptGrant>, LogError> {
        let folder = folder.map(folder_text);
        self.inner.read(|db| list(db, folder.as_deref()))
    }

    /// Takes a grant back. `false` where there was none such.
    pub fn remove_grant(&self, kept: &KeptGrant) -> Result<bool, LogError> {
        let (folder, grant) = (kept.folder.clone(), text(&kept.grant)?);
        self.inner.writer().run_blocking(move |db| {
            let removed = db.execute("DELETE FROM grants WHERE folder = ?1 AND grant = ?2", (&folder, &grant))?;
            Ok(removed > 0)
        })
    }

    /// Keeps grants for a folder. `now_ms` gives the time in Unix milliseconds.
    pub fn grant_keeper(
        &self,
        folder: &Path,
        now_ms: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Arc<dyn GrantKeeper> {
        Arc::new(Keeper { inner: self.inner.clone(), folder: folder_text(folder), now_ms: Box::new(now_ms) })
    }
}

struct Keeper {
    inner: Arc<Inner>,
    folder: String,
    now_ms: Box<dyn Fn() -> u64 + Send + Sync>,
}

#[async_trait]
impl GrantKeeper for Keeper {
    async fn keep(&self, grants: &[Grant]) -> Result<(), LogError> {
        let texts = grants.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let (folder, at) = (self.folder.clone(), (self.now_ms)());
        let keep = move |db: &Connection| insert(db, &folder, &texts, at);
        self.inner.writer().run(Durability::Process, keep).await
    }
}

fn text(grant: &Grant) -> Result<String, LogError> {
    serde_json::to_string(grant).map_err(|e| LogError::Io(format!("a grant cannot be written as JSON: {e}")))
}

fn insert(db: &Connection, folder: &str, texts: &[String], at: u64) -> Result<(), Fault> {
    for text in texts {
        restore(db, folder, text, int(at))?;
    }
    let count: i64 = db.query_row("SELECT count(*) FROM grants WHERE folder = ?1", [folder], |row| row.get(0))?;
    if count > GRANTS_PER_FOLDER {
        return Err(LogError::Busy(format!(
            "{GRANTS_PER_FOLDER} grants are kept for {folder} already; take some back with `hames grants remove`"
        ))
        .into());
    }
    Ok(())
}

/// Puts one in as it is written.
pub(crate) fn restore(db: &Connection, folder: &str, grant: &str, at: i64) -> rusqlite::Result<usize> {
    db.prepare_cached("INSERT OR IGNORE INTO grants (folder, grant, at) VALUES (?1, ?2, ?3)")?
        .execute((folder, grant, at))
}

/// Whether this is a grant that allows something.
pub(crate) fn is_readable(grant: &str) -> bool {
    serde_json::from_str::<Grant>(grant).is_ok()
}

fn list(db: &Connection, folder: Option<&str>) -> Result<Vec<KeptGrant>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT folder, grant, at FROM grants WHERE ?1 IS NULL OR folder = ?1 ORDER BY folder, at, grant",
    )?;
    let rows =
        statement.query_map([folder], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, uint(row, 2))))?;
    let mut kept = Vec::new();
    for row in rows {
        let (folder, grant, at) = row?;
        if let Ok(grant) = serde_json::from_str(&grant) {
            kept.push(KeptGrant { folder, grant, at });
        }
    }
    Ok(kept)
}

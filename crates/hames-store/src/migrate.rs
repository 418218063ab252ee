//! The schema: numbered migrations that never change once released, each applied in a transaction of its own.
//!
//! `PRAGMA user_version` says how far a database is; the table `migrations` keeps the checksum of each text that was
//! applied, so that a database made by an unreleased build is told from a released one.

use std::path::{Path, PathBuf};

use hames_protocol::LogError;
use rusqlite::Connection;

use crate::fault::{Fault, io_error};
use crate::home::{Home, create_folder};

/// Marks a SQLite file as ours: `Hame` in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x4861_6d65;
/// Backups that are kept; older ones are removed when a new one is made.
const BACKUPS_KEPT: usize = 3;

struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "events", sql: include_str!("../migrations/0001_events.sql") },
    Migration { version: 2, name: "search", sql: include_str!("../migrations/0002_search.sql") },
    Migration { version: 3, name: "grants", sql: include_str!("../migrations/0003_grants.sql") },
    Migration { version: 4, name: "search by time", sql: include_str!("../migrations/0004_search_by_time.sql") },
    Migration { version: 5, name: "waiting", sql: include_str!("../migrations/0005_waiting.sql") },
    Migration { version: 6, name: "last result", sql: include_str!("../migrations/0006_last_result.sql") },
];

/// The version this program writes.
pub(crate) const HEAD: u32 = MIGRATIONS.len() as u32;

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS migrations (
  version    INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL,
  checksum   TEXT    NOT NULL,
  applied_at INTEGER NOT NULL
)";

/// How far a database is; 0 for an empty one.
pub(crate) fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a database from whatever version it has to `to`.
pub(crate) fn migrate(db: &Connection, to: u32, now_ms: i64) -> Result<(), Fault> {
    let from = version(db)?;
    for migration in MIGRATIONS.iter().filter(|m| m.version > from && m.version <= to) {
        let tx = db.unchecked_transaction()?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.execute_batch(LEDGER)?;
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "INSERT INTO migrations (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)",
            (migration.version, migration.name, checksum(migration.sql), now_ms),
        )?;
        tx.pragma_update(None, "user_version", migration.version)?;
        tx.commit()?;
    }
    Ok(())
}

/// Checks that the database was made from exactly the migrations this program knows.
pub(crate) fn check_ledger(db: &Connection, path: &Path) -> Result<(), Fault> {
    let mut statement = db.prepare("SELECT version, checksum FROM migrations ORDER BY version")?;
    let applied = statement.query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)))?;
    for row in applied {
        let (version, sum) = row?;
        let known = MIGRATIONS.iter().find(|m| m.version == version);
        if known.is_some_and(|m| checksum(m.sql) != sum) {
            return Err(LogError::Newer(format!(
                "the session database {} was made by an unreleased build of Hames (its migration {version} differs); \
                 use that build, or set HAMES_HOME to another folder",
                path.display()
            ))
            .into());
        }
    }
    Ok(())
}

/// The refusal of a database from the future.
pub(crate) fn newer(path: &Path, found: u32) -> LogError {
    LogError::Newer(format!(
        "the session database {} has schema version {found}; this hames knows versions up to {HEAD}: use a newer \
         hames, or set HAMES_HOME to another folder",
        path.display()
    ))
}

/// Writes a whole copy under `backups/`, named by version and time, and removes all but the last few.
pub(crate) fn back_up(db: &Connection, home: &Home, now_ms: i64) -> Result<PathBuf, Fault> {
    let folder = home.backups();
    create_folder(&folder).map_err(|e| io_error("create", &folder, &e))?;
    let target = folder.join(format!("hames-{now_ms:015}-v{}.db", version(db)?));
    db.execute("VACUUM INTO ?1", [target.to_string_lossy()])?;
    let mut backups: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|e| io_error("list", &folder, &e))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "db"))
        .collect();
    backups.sort();
    for old in backups.iter().rev().skip(BACKUPS_KEPT) {
        std::fs::remove_file(old).map_err(|e| io_error("remove", old, &e))?;
    }
    Ok(target)
}

fn checksum(sql: &str) -> String {
    blake3::hash(sql.as_bytes()).to_hex().to_string()
}

//! Reading: a few connections that only read, each used by one thread at a time, and the events of a session in
//! order. Readers never wait for the writer.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use hames_protocol::{Envelope, LogError, SessionId};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::row::{self, SEQ_MAX, int, key};
use crate::{open, sessions};

/// Connections kept for the next reader.
const KEPT: usize = 3;
/// Events held in memory at once by an export.
const EXPORT_PAGE: usize = 64;

/// The connections that only read.
#[derive(Debug)]
pub(crate) struct Readers {
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// Held for reading while a connection is in use, for writing while the database is replaced.
    gate: RwLock<()>,
    generation: AtomicU64,
}

impl Readers {
    pub(crate) fn new(database: PathBuf) -> Readers {
        Readers { database, idle: Mutex::default(), gate: RwLock::default(), generation: AtomicU64::new(0) }
    }

    /// How often the database was replaced.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Reads with one of the connections.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let _in_use = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match idle {
            Some(db) => db,
            None => open::connect_reader(&self.database)?,
        };
        let outcome = read(&db);
        let mut kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(db);
        }
        outcome
    }

    /// Does something with the database file that is no business of these connections, while nobody replaces it. Given is
    /// how often it was replaced.
    pub(crate) fn gated<T>(&self, work: impl FnOnce(u64) -> T) -> T {
        let _in_use = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        work(self.generation())
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Replaces the database while nobody reads.
    pub(crate) fn replaced<T>(&self, replace: impl FnOnce() -> T) -> T {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.close();
        let outcome = replace();
        self.generation.fetch_add(1, Ordering::AcqRel);
        outcome
    }
}

/// Up to `limit` events after `after`.
pub(crate) fn events(db: &Connection, id: &SessionId, after: u64, limit: usize) -> Result<Vec<Envelope>, Fault> {
    let number = sessions::number(db, id)?;
    let mut statement = db.prepare_cached(&format!(
        "SELECT {} FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3",
        row::COLUMNS
    ))?;
    let rows = statement
        .query_map((key(number, after), key(number, SEQ_MAX), int(limit as u64)), |row| row::decode(row, id))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Writes every event as a line of JSON, a page at a time: a slow reader of the lines holds no transaction open.
pub(crate) fn export(
    read: impl Fn(u64, usize) -> Result<Vec<Envelope>, LogError>,
    out: &mut dyn Write,
) -> Result<u64, LogError> {
    let failed = |e: std::io::Error| LogError::Io(format!("the export was broken off: {e}"));
    let (mut after, mut count) = (0, 0);
    loop {
        let page = read(after, EXPORT_PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.seq.unwrap_or(SEQ_MAX);
        for envelope in &page {
            serde_json::to_writer(&mut *out, envelope).map_err(|e| failed(e.into()))?;
            out.write_all(b"\n").map_err(failed)?;
            count += 1;
        }
    }
    out.flush().map_err(failed)?;
    Ok(count)
}

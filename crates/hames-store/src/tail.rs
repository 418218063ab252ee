//! Watching sessions that another process writes: whether anything was committed at all, and if so which of the watched
//! sessions went on. What came is then read like any other part of a log. A reader never recovers and never writes.

use std::sync::Arc;

use hames_protocol::{LogError, SessionId};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::lease::{self, InUse};
use crate::row::uint;
use crate::store::Inner;
use crate::{Store, open, sessions};

/// A session that is not where it was known to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The session.
    pub session: SessionId,
    /// Seq of its last event; `None` where the session is gone.
    pub last_seq: Option<u64>,
}

/// Watches any number of sessions with one connection of its own. Keep it only while somebody watches.
#[derive(Debug)]
pub struct Tail {
    inner: Arc<Inner>,
    open: Option<Open>,
    /// What was asked about last, and found to be so.
    known: Vec<(SessionId, u64)>,
}

#[derive(Debug)]
struct Open {
    db: Connection,
    /// Of the database file: a repair replaces it.
    generation: u64,
    /// Of its content, as this connection sees it; another connection's commit changes it.
    version: Option<i64>,
}

impl Store {
    /// Begins to watch.
    pub fn tail(&self) -> Tail {
        Tail { inner: self.inner.clone(), open: None, known: Vec::new() }
    }

    /// The living process that holds a session, and what it calls itself. Locks nothing.
    pub fn holder(&self, id: &SessionId) -> Option<InUse> {
        if sessions::is_id(id.as_str()) { lease::held(&self.inner.home().session_lock(id), id) } else { None }
    }
}

impl Tail {
    /// Those of `known` (session and seq of the last event one has) that are elsewhere by now. While nobody commits this
    /// costs a look at shared memory; after a commit one query, however many sessions there are.
    pub fn poll(&mut self, known: &[(SessionId, u64)]) -> Result<Vec<Moved>, LogError> {
        let Self { inner, open, known: asked } = self;
        let database = inner.home().database();
        let outcome = inner.readers().gated(|generation| {
            if open.as_ref().is_none_or(|open| open.generation != generation) {
                *open = Some(Open { db: open::connect_reader(&database)?, generation, version: None });
            }
            let Some(open) = open else { return Ok(Vec::new()) };
            // Before the query: a commit in between is seen the next time.
            let version = open.db.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0))?;
            if open.version == Some(version) && asked == known {
                return Ok(Vec::new());
            }
            let moved = moved(&open.db, known)?;
            open.version = Some(version);
            *asked = known.to_vec();
            Ok(moved)
        });
        outcome.map_err(|fault: Fault| fault.explain(&inner.home().database()))
    }
}

fn moved(db: &Connection, known: &[(SessionId, u64)]) -> Result<Vec<Moved>, Fault> {
    let ids: Vec<&str> = known.iter().map(|(id, _)| id.as_str()).collect();
    let ids = serde_json::to_string(&ids).unwrap_or_default();
    let mut statement = db.prepare_cached(
        "SELECT w.key, s.last_seq FROM json_each(?1) w LEFT JOIN sessions s ON s.id = w.value ORDER BY w.key",
    )?;
    let rows = statement.query_map([ids], |row| {
        let at = usize::try_from(uint(row, 0)).unwrap_or(usize::MAX);
        let last_seq = row.get::<_, Option<i64>>(1)?.map(|_| uint(row, 1));
        Ok((at, last_seq))
    })?;
    let mut all = Vec::new();
    for row in rows {
        let (at, last_seq) = row?;
        let Some((session, seq)) = known.get(at) else { continue };
        if last_seq != Some(*seq) {
            all.push(Moved { session: session.clone(), last_seq });
        }
    }
    Ok(all)
}

//! The event log: appends with the expected seq, and the pieces of the open step beside it.

use std::sync::Arc;

use async_trait::async_trait;
use hames_protocol::{
    BlobRef, BlobSource, BlobStore, Durability, Envelope, Event, EventLog, LogError, OpenBlock, SessionId, join_open,
};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::row::{EventRow, SEQ_MAX, key, seq_of};
use crate::sessions::{self, Changes};
use crate::store::{Inner, off_thread};
use crate::{blobs, read};

/// Events made ready on the caller's thread: the writer only writes.
struct Append {
    session: SessionId,
    expected: u64,
    rows: Vec<EventRow>,
    changes: Changes,
    /// Name, folder and time of a `session.created` that comes first.
    created: Option<(String, String, u64)>,
    ends_open_step: bool,
}

impl Append {
    fn of(session: &SessionId, expected: u64, events: &[Envelope]) -> Result<Append, LogError> {
        let mut changes = Changes::default();
        events.iter().for_each(|envelope| changes.apply(envelope));
        let created = events.first().and_then(|envelope| match &envelope.event {
            Event::SessionCreated(c) => Some((sessions::clean_name(&c.name), c.folder.clone(), envelope.at)),
            _ => None,
        });
        Ok(Append {
            session: session.clone(),
            expected,
            rows: events.iter().map(EventRow::of).collect::<Result<_, _>>()?,
            changes,
            created,
            ends_open_step: events.iter().any(|e| matches!(e.event, Event::StepDone(_) | Event::RunDone(_))),
        })
    }

    fn write(&self, db: &Connection) -> Result<(), Fault> {
        let (number, last) = match (sessions::position(db, &self.session)?, &self.created) {
            (Some(position), _) => position,
            (None, Some((name, folder, at))) => (sessions::insert(db, &self.session, name, folder, *at)?, 0),
            (None, None) => return Err(LogError::NoSession(self.session.clone()).into()),
        };
        let found = last + 1;
        if found != self.expected {
            return Err(LogError::Conflict { session: self.session.clone(), expected: self.expected, found }.into());
        }
        let end = last + self.rows.len() as u64;
        if end > SEQ_MAX {
            return Err(LogError::Io(format!("session {} is full; begin a new one", self.session)).into());
        }
        for (seq, row) in (found..).zip(&self.rows) {
            row.insert(db, number, seq)?;
        }
        self.changes.write(db, number, end)?;
        if self.ends_open_step {
            drop_pieces(db, number)?;
        }
        Ok(())
    }
}

/// Appends inside a transaction, for what the store itself has to say.
pub(crate) fn append_now(db: &Connection, session: &SessionId, expected: u64, event: &Envelope) -> Result<(), Fault> {
    append_all(db, session, expected, std::slice::from_ref(event))
}

/// The same for several events.
pub(crate) fn append_all(
    db: &Connection,
    session: &SessionId,
    expected: u64,
    events: &[Envelope],
) -> Result<(), Fault> {
    Append::of(session, expected, events)?.write(db)
}

/// Removes the events of a session from one on, and what is kept of its open step.
pub(crate) fn forget_from(db: &Connection, number: i64, from: u64) -> Result<(), Fault> {
    db.execute("DELETE FROM events WHERE key BETWEEN ?1 AND ?2", [key(number, from), key(number, SEQ_MAX)])?;
    drop_pieces(db, number)
}

/// Removes the pieces of a session's open step.
fn drop_pieces(db: &Connection, number: i64) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM open_pieces WHERE key BETWEEN ?1 AND ?2")?
        .execute([key(number, 0), key(number, SEQ_MAX)])?;
    Ok(())
}

fn save_pieces(db: &Connection, session: &SessionId, pieces: &[String]) -> Result<(), Fault> {
    let number = sessions::number(db, session)?;
    let last: Option<i64> = db
        .prepare_cached("SELECT max(key) FROM open_pieces WHERE key BETWEEN ?1 AND ?2")?
        .query_row([key(number, 0), key(number, SEQ_MAX)], |row| row.get(0))?;
    let next = last.map_or(1, |key| seq_of(key) + 1);
    let mut insert = db.prepare_cached("INSERT INTO open_pieces (key, body) VALUES (?1, ?2)")?;
    for (ordinal, piece) in (next..).zip(pieces) {
        insert.execute((key(number, ordinal), piece))?;
    }
    Ok(())
}

fn kept_pieces(db: &Connection, session: &SessionId) -> Result<Vec<OpenBlock>, Fault> {
    let number = sessions::number(db, session)?;
    let mut blocks = Vec::new();
    let mut statement = db.prepare_cached("SELECT body FROM open_pieces WHERE key BETWEEN ?1 AND ?2 ORDER BY key")?;
    let mut rows = statement.query([key(number, 0), key(number, SEQ_MAX)])?;
    while let Some(row) = rows.next()? {
        // A piece that cannot be read leaves a gap in text that was cut off anyway.
        let piece = row.get_ref(0)?.as_bytes().ok().and_then(|bytes| serde_json::from_slice(bytes).ok());
        if let Some(piece) = piece {
            join_open(&mut blocks, piece);
        }
    }
    Ok(blocks)
}

/// The store as the two ports the engine knows.
#[derive(Debug)]
pub(crate) struct Ports(pub(crate) Arc<Inner>);

#[async_trait]
impl EventLog for Ports {
    async fn append(
        &self,
        session: &SessionId,
        expected_next_seq: u64,
        mut events: Vec<Envelope>,
        durability: Durability,
    ) -> Result<Vec<Envelope>, LogError> {
        let append = Append::of(session, expected_next_seq, &events)?;
        self.0.writer().run(durability, move |db| append.write(db)).await?;
        for (seq, envelope) in (expected_next_seq..).zip(&mut events) {
            envelope.seq = Some(seq);
        }
        Ok(events)
    }

    async fn settle(&self) -> Result<(), LogError> {
        self.0.writer().pending_syncs().done().await
    }

    async fn read(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Envelope>, LogError> {
        let (inner, session) = (self.0.clone(), session.clone());
        off_thread(move || inner.read(|db| read::events(db, &session, after, limit))).await
    }

    async fn save_open(&self, session: &SessionId, pieces: Vec<OpenBlock>) -> Result<(), LogError> {
        let written: Result<Vec<String>, _> = pieces.iter().map(serde_json::to_string).collect();
        let pieces = written.map_err(|e| LogError::Io(format!("an open step cannot be written as JSON: {e}")))?;
        let session = session.clone();
        self.0.writer().run(Durability::Process, move |db| save_pieces(db, &session, &pieces)).await
    }

    async fn take_open(&self, session: &SessionId) -> Result<Vec<OpenBlock>, LogError> {
        let (inner, session) = (self.0.clone(), session.clone());
        off_thread(move || inner.read(|db| kept_pieces(db, &session))).await
    }
}

#[async_trait]
impl BlobStore for Ports {
    async fn put(&self, session: &SessionId, name: &str, source: BlobSource) -> Result<BlobRef, LogError> {
        let (home, name) = (self.0.home().clone(), name.to_owned());
        let placed = off_thread(move || blobs::place(&home, &name, source)).await?;
        let blob = placed.blob().clone();
        let session = session.clone();
        self.0.writer().run(Durability::Process, move |db| placed.record(db, &session)).await?;
        Ok(blob)
    }

    async fn get(&self, hash: &str, offset: u64, limit: u64) -> Result<Vec<u8>, LogError> {
        let (inner, hash) = (self.0.clone(), hash.to_owned());
        off_thread(move || inner.read(|db| blobs::get(db, inner.home(), &hash, offset, limit))).await
    }

    async fn named(&self, session: &SessionId, name: &str) -> Result<Option<BlobRef>, LogError> {
        let (inner, session, name) = (self.0.clone(), session.clone(), name.to_owned());
        off_thread(move || inner.read(|db| blobs::named(db, &session, &name))).await
    }
}

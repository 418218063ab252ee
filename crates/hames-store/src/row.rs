//! Events as rows: how they are written, and how a row that cannot be read is shown instead of hidden.

use hames_protocol::{ENVELOPE_VERSION, Envelope, Event, LogError, RunId, SessionId};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Value, json};

use crate::fault::Fault;

/// Bits of a key that hold the seq; the session's number is above them.
const SEQ_BITS: u32 = 32;
/// The highest seq a session can have.
pub(crate) const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
/// The columns that [`decode`] reads, in its order.
pub(crate) const COLUMNS: &str = "key, v, at, run, turn, step, agent, body";

/// The key of an event, or of a piece of the open step.
pub(crate) fn key(session: i64, seq: u64) -> i64 {
    (session << SEQ_BITS) | int(seq.min(SEQ_MAX))
}

/// The seq in a key.
pub(crate) fn seq_of(key: i64) -> u64 {
    key.cast_unsigned() & SEQ_MAX
}

/// The session's number in a key.
pub(crate) fn session_of(key: i64) -> i64 {
    key >> SEQ_BITS
}

/// An unsigned number as SQLite keeps it; what does not fit is the highest that does.
pub(crate) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A number as SQLite keeps it, back; damaged ones are 0.
pub(crate) fn uint(row: &Row<'_>, column: usize) -> u64 {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(n)) => u64::try_from(n).unwrap_or(0),
        _ => 0,
    }
}

fn small(row: &Row<'_>, column: usize) -> Option<u32> {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(n)) => u32::try_from(n).ok(),
        _ => None,
    }
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Option<&'a str> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// An event ready to be written: all the work that needs no database, done on the caller's thread.
#[derive(Debug)]
pub(crate) struct EventRow {
    v: i64,
    at: i64,
    run: Option<RunId>,
    turn: Option<u32>,
    step: Option<u32>,
    agent: Option<String>,
    kind: String,
    body: String,
}

impl EventRow {
    pub(crate) fn of(envelope: &Envelope) -> Result<EventRow, LogError> {
        let written = |e: serde_json::Error| LogError::Io(format!("an event cannot be written as JSON: {e}"));
        let agent = match envelope.agent.as_slice() {
            [] => None,
            path => Some(serde_json::to_string(path).map_err(written)?),
        };
        Ok(EventRow {
            v: envelope.v.into(),
            at: int(envelope.at),
            run: envelope.run.clone(),
            turn: envelope.turn,
            step: envelope.step,
            agent,
            kind: envelope.event.type_name().to_owned(),
            body: serde_json::to_string(&envelope.event).map_err(written)?,
        })
    }

    pub(crate) fn insert(&self, db: &Connection, session: i64, seq: u64) -> Result<(), Fault> {
        let mut statement = db.prepare_cached(
            "INSERT INTO events (key, v, at, run, turn, step, agent, type, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        statement.execute((
            key(session, seq),
            self.v,
            self.at,
            self.run.as_ref().map(RunId::as_str),
            self.turn,
            self.step,
            self.agent.as_deref(),
            &self.kind,
            &self.body,
        ))?;
        Ok(())
    }
}

/// The body of an event as it is written.
pub(crate) fn body(envelope: &Envelope) -> Result<Vec<u8>, LogError> {
    serde_json::to_vec(&envelope.event).map_err(|e| LogError::Io(format!("an event cannot be written as JSON: {e}")))
}

/// Reads a row selected as [`COLUMNS`]. Whatever is wrong with it, the result has its seq.
pub(crate) fn decode(row: &Row<'_>, session: &SessionId) -> rusqlite::Result<Envelope> {
    let seq = seq_of(row.get(0)?);
    let agent = match row.get_ref(6) {
        Ok(ValueRef::Text(bytes)) => serde_json::from_slice(bytes).unwrap_or_default(),
        _ => vec![],
    };
    Ok(Envelope {
        v: small(row, 1).unwrap_or(ENVELOPE_VERSION),
        seq: Some(seq),
        at: uint(row, 2),
        session: Some(session.clone()),
        run: text(row, 3).map(RunId::from),
        turn: small(row, 4),
        step: small(row, 5),
        agent,
        event: event_of(row, seq),
    })
}

fn event_of(row: &Row<'_>, seq: u64) -> Event {
    let bytes = match row.get_ref(7) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => bytes,
        Ok(other) => return damaged(seq, &format!("its body is {}", other.data_type())),
        Err(e) => return damaged(seq, &e.to_string()),
    };
    match serde_json::from_slice::<Event>(bytes) {
        // Text that is JSON but no object with a type was never written as an event.
        Ok(Event::Unknown(value)) if value.get("type").and_then(Value::as_str).is_none() => {
            damaged(seq, "its body is not an event")
        }
        Ok(Event::Unknown(_)) if bytes.is_empty() => damaged(seq, "its body is empty"),
        Ok(event) => event,
        Err(e) => damaged(seq, &format!("its body cannot be read: {e}")),
    }
}

/// What stands in the place of an event that cannot be read.
pub(crate) fn damaged(seq: u64, reason: &str) -> Event {
    Event::Unknown(json!({"type": "damaged", "seq": seq, "reason": reason}))
}

//! What a session was at some point of its log: the part of its state that a cut, a branch and an export need.

use hames_protocol::closing::OpenEnd;
use hames_protocol::{LogError, SessionId, SessionState};
use rusqlite::{Connection, OptionalExtension};

use crate::fault::Fault;
use crate::row::{self, key, seq_of};
use crate::sessions;

/// The kinds that the state outside the transcript does not come from, and that make up the bulk of every log, by how their
/// names begin. The index `rare` has all others, in these very words.
const PASSED_OVER: &str = "substr(type,1,4)NOT IN('text','reas','step','tool','file')";
/// So many of the last steps are asked for what their provider counted.
const STEPS_ASKED: i64 = 8;

/// The state of session `number` after the event `to`, but for file contents, the names of outputs and what was counted.
pub(crate) fn state(db: &Connection, id: &SessionId, number: i64, to: u64) -> Result<SessionState, Fault> {
    let mut state = SessionState::default();
    let mut statement = db.prepare_cached(&format!(
        "SELECT {} FROM events INDEXED BY rare WHERE key BETWEEN ?1 AND ?2 AND {PASSED_OVER} ORDER BY key",
        row::COLUMNS
    ))?;
    let mut rows = statement.query([key(number, 1), key(number, to)])?;
    while let Some(row) = rows.next()? {
        state.apply(&row::decode(row, id)?);
    }
    Ok(state)
}

/// The same as it is now, with what was counted last; `None` where there is no such session.
pub(crate) fn outline(db: &Connection, id: &SessionId) -> Result<Option<SessionState>, Fault> {
    let tx = db.unchecked_transaction()?;
    let Some((number, last)) = sessions::position(&tx, id)? else { return Ok(None) };
    let mut state = state(&tx, id, number, last)?;
    state.seq = last;
    // What the window holds was said last by one of these.
    let mut statement = tx.prepare_cached(&format!(
        "SELECT {} FROM events WHERE key BETWEEN ?1 AND ?2 AND type IN ('step.done', 'compaction.done')
           AND agent IS NULL ORDER BY key DESC LIMIT ?3",
        row::COLUMNS
    ))?;
    let mut rows = statement.query((key(number, 1), key(number, last), STEPS_ASKED))?;
    let mut said = SessionState::default();
    while let (Some(row), None) = (rows.next()?, said.fill) {
        said.apply(&row::decode(row, id)?);
    }
    state.fill = said.fill.or(state.fill);
    Ok(Some(state))
}

/// The seq of the last `run.start` of the session itself up to `to`.
pub(crate) fn run_start(db: &Connection, number: i64, to: u64) -> Result<Option<u64>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT key FROM events WHERE key BETWEEN ?1 AND ?2 AND type = 'run.start' AND agent IS NULL
         ORDER BY key DESC LIMIT 1",
    )?;
    let found = statement.query_row([key(number, 1), key(number, to)], |row| row.get(0)).optional()?;
    Ok(found.map(seq_of))
}

/// What the log leaves open after the event `to`.
pub(crate) fn open_end(db: &Connection, id: &SessionId, number: i64, to: u64) -> Result<OpenEnd, Fault> {
    let mut end = OpenEnd::default();
    let from = run_start(db, number, to)?.unwrap_or(1);
    let mut statement =
        db.prepare_cached(&format!("SELECT {} FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key", row::COLUMNS))?;
    let mut rows = statement.query([key(number, from), key(number, to)])?;
    while let Some(row) = rows.next()? {
        end.apply(&row::decode(row, id)?);
    }
    Ok(end)
}

/// Whether the session itself had a message of the user in `from..=to`.
pub(crate) fn has_message(db: &Connection, number: i64, from: u64, to: u64) -> Result<bool, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT 1 FROM events WHERE key BETWEEN ?1 AND ?2 AND type = 'message.user' AND agent IS NULL LIMIT 1",
    )?;
    Ok(statement.exists([key(number, from), key(number, to)])?)
}

/// The seq of the last event up to `to`; 0 where there is none.
pub(crate) fn last_seq(db: &Connection, number: i64, to: u64) -> Result<u64, Fault> {
    let mut statement = db.prepare_cached("SELECT max(key) FROM events WHERE key BETWEEN ?1 AND ?2")?;
    let last: Option<i64> = statement.query_row([key(number, 1), key(number, to)], |row| row.get(0))?;
    Ok(last.map_or(0, seq_of))
}

/// Number and last seq of a session that must exist.
pub(crate) fn position(db: &Connection, id: &SessionId) -> Result<(i64, u64), Fault> {
    sessions::position(db, id)?.ok_or_else(|| LogError::NoSession(id.clone()).into())
}

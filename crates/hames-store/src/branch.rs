//! Branch: a copy of a session's beginning as a session of its own.
//!
//! Copied events keep their seqs, so that whatever names an event by its seq still means the same one; the first is the
//! new session's own, and `session.branched` stands behind the last. Blobs are shared; names of outputs come along, so
//! Recall works. Messages that wait and what was allowed for the session stay with the one they were given to.

use hames_protocol::{Envelope, LogError, Outside, SessionBranched, SessionCreated, SessionId};
use rusqlite::Connection;

use crate::cut::envelope;
use crate::fault::Fault;
use crate::marks::Marks;
use crate::row::key;
use crate::{Lease, SessionInfo, Store, blobs, log, past, sessions};

struct Plan {
    source: i64,
    from: SessionId,
    up_to: u64,
    /// Events that are copied.
    count: i64,
    /// What lives outside, but for the name, which is found when the session is made.
    outside: Outside,
    wanted: String,
    closing: Vec<Envelope>,
    marks: Marks,
    at: u64,
}

impl Store {
    /// Copies a session up to and including the event `up_to`, or the whole of it, into a new one in the same folder, and
    /// takes the new one's lease. Inside a run the copy is closed as after a death. The name is made unique in the folder;
    /// without one it is that of the session.
    pub fn branch(
        &self,
        from: &SessionId,
        up_to: Option<u64>,
        name: Option<&str>,
        at_ms: u64,
        holder: &str,
    ) -> Result<(SessionInfo, Lease), LogError> {
        let id = SessionId::generate();
        let lease = Lease::take(&self.inner.home().session_lock(&id), "the new session", holder)?;
        let plan = self.inner.read(|db| Plan::make(db, from, &id, up_to, name, at_ms))?;
        let info = self.inner.writer().run_blocking(move |db| plan.carry_out(db, &id))?;
        Ok((info.checked(), lease))
    }
}

impl Plan {
    fn make(
        db: &Connection,
        from: &SessionId,
        id: &SessionId,
        up_to: Option<u64>,
        name: Option<&str>,
        at: u64,
    ) -> Result<Plan, Fault> {
        let tx = db.unchecked_transaction()?;
        let (source, last) = past::position(&tx, from)?;
        let wanted_seq = up_to.unwrap_or(last);
        if wanted_seq == 0 || wanted_seq > last {
            return Err(LogError::Invalid(format!(
                "event {wanted_seq} does not exist; this session goes from event 1 to {last}"
            ))
            .into());
        }
        let mut up_to = past::last_seq(&tx, source, wanted_seq)?;
        // A run of which nothing but its start is there was not begun.
        if let Some(start) = past::run_start(&tx, source, up_to)?
            && !past::has_message(&tx, source, start, up_to)?
        {
            up_to = past::last_seq(&tx, source, start - 1)?;
        }
        let (now, then) = (past::state(&tx, from, source, last)?, past::state(&tx, from, source, up_to)?);
        let marks = Marks::of(&tx, source, 2, up_to)?;
        let outside = Outside {
            name: String::new(),
            folder: now.folder,
            settings: now.settings,
            todos: then.todos,
            outputs: then.blobs.max(marks.last_output()),
            ..Outside::default()
        };
        let count = "SELECT count(*) FROM events WHERE key BETWEEN ?1 AND ?2";
        Ok(Plan {
            source,
            from: from.clone(),
            up_to,
            count: tx.query_row(count, [key(source, 2), key(source, up_to)], |row| row.get(0))?,
            outside,
            wanted: sessions::clean_name(name.unwrap_or(&now.name)),
            closing: past::open_end(&tx, from, source, up_to)?.close(id, "branch", at),
            marks,
            at,
        })
    }

    fn carry_out(&self, db: &Connection, id: &SessionId) -> Result<SessionInfo, Fault> {
        let name = sessions::free_name(db, &self.outside.folder, &self.wanted)?;
        let outside = Outside { name, ..self.outside.clone() };
        let created = SessionCreated {
            name: outside.name.clone(),
            folder: outside.folder.clone(),
            settings: outside.settings.clone(),
        };
        log::append_all(db, id, 1, &[envelope(id, self.at, created.into())])?;
        let number = sessions::number(db, id)?;
        let copied = db.execute(
            "INSERT INTO events (key, v, at, run, turn, step, agent, type, body)
             SELECT (?1 << 32) | (key & 4294967295), v, at, run, turn, step, agent, type, body
             FROM events WHERE key BETWEEN ?2 AND ?3 ORDER BY key",
            [number, key(self.source, 2), key(self.source, self.up_to)],
        )?;
        if i64::try_from(copied) != Ok(self.count) {
            return Err(LogError::Busy("the session was changed while it was copied; try again".into()).into());
        }
        blobs::share(db, self.source, number, &self.marks)?;
        let last = self.up_to.max(1);
        sessions::set_last_seq(db, number, last)?;
        let branched =
            SessionBranched { from: self.from.clone(), up_to_seq: self.up_to, outside: Some(Box::new(outside)) };
        let mut events = vec![envelope(id, self.at, branched.into())];
        events.extend(self.closing.iter().cloned());
        log::append_all(db, id, last + 1, &events)?;
        sessions::refold(db, number)?;
        sessions::get(db, id)?.ok_or_else(|| LogError::NoSession(id.clone()).into())
    }
}

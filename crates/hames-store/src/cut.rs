//! Cut: what follows a message of the user goes for good, the message included.
//!
//! One transaction deletes the tail and appends one `session.cut`, which carries what lives outside the transcript as it
//! was; seqs go on upward, so no seq ever means two events. Where the message was a steer, its run is closed behind the
//! cut, and the log can be sent. Names of outputs of the tail resolve to nothing from then on and are not given again.

use std::collections::BTreeSet;

use hames_protocol::{ENVELOPE_VERSION, Envelope, Event, LogError, SessionCut, SessionId, SessionState};
use rusqlite::{Connection, OptionalExtension};

use crate::fault::Fault;
use crate::marks::Marks;
use crate::row::{self, SEQ_MAX, key};
use crate::{Lease, SessionInfo, Store, blobs, log, past, search, sessions};

/// What a cut removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutDone {
    /// The session as it is now.
    pub session: SessionInfo,
    /// Seq of the first event that was removed: that of the message, or of the start of the run that it began.
    pub from_seq: u64,
    /// Seq of the event that says so.
    pub seq: u64,
    /// Events that were removed.
    pub removed: u64,
}

/// What a cut will do, found out before anything is written.
struct Plan {
    number: i64,
    /// Seq of the session's last event, as the plan was made.
    last: u64,
    from: u64,
    removed: u64,
    /// `session.cut` and what closes a run that was cut.
    events: Vec<Envelope>,
    /// What is still named.
    kept: Marks,
}

impl Store {
    /// Removes a message of the user and everything behind it from the session whose lease this is. Refused where `seq` is
    /// not such a message, and while proposals are being applied. Whoever has the session open reads it anew.
    pub fn cut(&self, lease: &Lease, seq: u64, at_ms: u64) -> Result<CutDone, LogError> {
        let id = lease.session();
        let plan = self.inner.read(|db| Plan::make(db, &id, seq, at_ms))?;
        let (from_seq, removed, last) = (plan.from, plan.removed, plan.last);
        let (session, orphans) = self.inner.writer().run_blocking(move |db| plan.carry_out(db, &id))?;
        self.inner.read(|db| blobs::sweep(db, self.inner.home(), &orphans))?;
        Ok(CutDone { session, from_seq, seq: last + 1, removed })
    }
}

impl Plan {
    fn make(db: &Connection, id: &SessionId, seq: u64, at_ms: u64) -> Result<Plan, Fault> {
        let tx = db.unchecked_transaction()?;
        let (number, last) = past::position(&tx, id)?;
        let from = first_removed(&tx, number, seq)?;
        let (now, head) = (past::state(&tx, id, number, last)?, past::state(&tx, id, number, from - 1)?);
        if !now.applying.is_empty() {
            return Err(LogError::Busy(
                "proposed changes of this session are being applied; `hames changes apply` finishes that first".into(),
            )
            .into());
        }
        let removed: i64 = tx.query_row(
            "SELECT count(*) FROM events WHERE key BETWEEN ?1 AND ?2",
            [key(number, from), key(number, SEQ_MAX)],
            |row| row.get(0),
        )?;
        let (applied, discarded) = settled(&tx, id, number, from, &head)?;
        let names = blobs::last_output(&tx, number)?;
        let mut outside = now.outside();
        outside.outputs = outside.outputs.max(names);
        let removed = removed.unsigned_abs();
        let cut = SessionCut { from_seq: from, removed, outside: Some(Box::new(outside)), applied, discarded };
        let mut events = vec![envelope(id, at_ms, cut.into())];
        events.extend(past::open_end(&tx, id, number, from - 1)?.close(id, "cut", at_ms));
        let mut kept = Marks::of(&tx, number, 1, from - 1)?;
        for event in &events {
            kept.add(&row::body(event)?);
        }
        Ok(Plan { number, last, from, removed, events, kept })
    }

    fn carry_out(&self, db: &Connection, id: &SessionId) -> Result<(SessionInfo, Vec<String>), Fault> {
        let (number, last) = past::position(db, id)?;
        if (number, last) != (self.number, self.last) {
            return Err(LogError::Conflict { session: id.clone(), expected: self.last + 1, found: last + 1 }.into());
        }
        search::forget(db, number, self.from)?;
        log::forget_from(db, number, self.from)?;
        let orphans = blobs::forget_but(db, number, &self.kept)?;
        log::append_all(db, id, last + 1, &self.events)?;
        sessions::refold(db, number)?;
        let info = sessions::get(db, id)?.ok_or_else(|| LogError::NoSession(id.clone()))?;
        Ok((info, orphans))
    }
}

/// The seq of the first event that goes with the message `seq`: the start of the run where the message began it.
fn first_removed(db: &Connection, number: i64, seq: u64) -> Result<u64, Fault> {
    let sql = "SELECT type = 'message.user' AND agent IS NULL, run FROM events WHERE key = ?1";
    let found: Option<(bool, Option<String>)> =
        db.query_row(sql, [key(number, seq)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((true, run)) = found else {
        let what = if found.is_some() { "is no message of the user" } else { "does not exist" };
        return Err(LogError::Invalid(format!(
            "event {seq} {what}; a session is cut from one of the user's messages on, by its number"
        ))
        .into());
    };
    let Some(start) = past::run_start(db, number, seq)? else { return Ok(seq) };
    let of: Option<String> =
        db.query_row("SELECT run FROM events WHERE key = ?1", [key(number, start)], |r| r.get(0))?;
    let is_first = of == run && !past::has_message(db, number, start, seq - 1)?;
    Ok(if is_first { start } else { seq })
}

/// The proposals made before the cut that were applied, and those that were discarded, in what is removed.
fn settled(
    db: &Connection,
    id: &SessionId,
    number: i64,
    from: u64,
    head: &SessionState,
) -> Result<(Vec<String>, Vec<String>), Fault> {
    let (mut applied, mut discarded) = (BTreeSet::new(), BTreeSet::new());
    let mut statement = db.prepare_cached(&format!(
        "SELECT {} FROM events WHERE key BETWEEN ?1 AND ?2
           AND type IN ('changes.applied', 'changes.discarded', 'session.cut') ORDER BY key",
        row::COLUMNS
    ))?;
    let mut rows = statement.query([key(number, from), key(number, SEQ_MAX)])?;
    while let Some(row) = rows.next()? {
        match row::decode(row, id)?.event {
            Event::ChangesApplied(changes) => applied.extend(changes.paths),
            Event::ChangesDiscarded(changes) => discarded.extend(changes.paths),
            // An earlier cut, which goes with this one, had the same to say.
            Event::SessionCut(cut) => {
                applied.extend(cut.applied);
                discarded.extend(cut.discarded);
            }
            _ => {}
        }
    }
    let is_open = |path: &String| head.proposals.contains_key(path) || head.proposed_folders.contains(path);
    Ok((applied.into_iter().filter(is_open).collect(), discarded.into_iter().filter(is_open).collect()))
}

/// An event of the store itself.
pub(crate) fn envelope(session: &SessionId, at: u64, event: Event) -> Envelope {
    Envelope {
        v: ENVELOPE_VERSION,
        seq: None,
        at,
        session: Some(session.clone()),
        run: None,
        turn: None,
        step: None,
        agent: vec![],
        event,
    }
}

//! The sessions' rows: what is listed about a session, kept in step with its events in the same transaction.
//!
//! Nothing here reads events but [`refold`], which a repair needs.

use std::collections::HashMap;
use std::path::Path;

use hames_protocol::{
    Envelope, Event, LogError, MessageUser, Mode, ModelRef, Outside, Part, PendingId, RunResult, SessionBranched,
    SessionCut, SessionId, SessionImported, is_unprintable,
};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use unicode_normalization::UnicodeNormalization;

use crate::fault::Fault;
use crate::row::{self, SEQ_MAX, int, key, seq_of, uint};

/// Characters of a session's name; a list has to stay readable.
const NAME_LIMIT: usize = 200;
/// Characters of a first line that are kept for lists.
const FIRST_LINE_LIMIT: usize = 200;
/// The shortest beginning of an id that stands for it.
const ID_PREFIX: usize = 8;
/// The longest id: a UUID has 36 characters.
const ID_LIMIT: usize = 64;

/// What a list shows of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its name, unique in its folder without regard to case.
    pub name: String,
    /// Its folder, canonical and absolute.
    pub folder: String,
    /// Whether that folder is gone.
    pub folder_missing: bool,
    /// Unix milliseconds of its first event.
    pub created_at: u64,
    /// Unix milliseconds of its latest event.
    pub updated_at: u64,
    /// Seq of its last event.
    pub last_seq: u64,
    /// Runs so far.
    pub turns: u32,
    /// The model last set or used.
    pub model: Option<String>,
    /// The mode last set or used.
    pub mode: Option<Mode>,
    /// The first line the user wrote, at most 200 characters; empty before that.
    pub first_line: String,
    /// Messages that wait.
    pub pending: u32,
    /// Whether its last run ended with proposals that nobody has decided about.
    pub undecided: bool,
    /// How its last run ended; `None` before the first, and while one goes on or was left open.
    pub last_result: Option<RunResult>,
}

pub(crate) const COLUMNS: &str = "s.id, s.name, s.folder, s.created_at, s.updated_at, s.last_seq, s.turns, s.model, s.mode, s.first_line, \
     iif(json_valid(s.pending), json_array_length(s.pending), 0), s.asks, s.ended";

pub(crate) fn info(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    let id: String = row.get(0)?;
    let mode: Option<String> = row.get(8).unwrap_or_default();
    let ended: Option<String> = row.get(12).unwrap_or_default();
    Ok(SessionInfo {
        id: id.into(),
        name: row.get(1)?,
        folder: row.get(2)?,
        folder_missing: false,
        created_at: uint(row, 3),
        updated_at: uint(row, 4),
        last_seq: uint(row, 5),
        turns: u32::try_from(uint(row, 6)).unwrap_or(u32::MAX),
        model: row.get(7).unwrap_or_default(),
        mode: mode.and_then(|text| text.parse().ok()),
        first_line: row.get(9).unwrap_or_default(),
        pending: u32::try_from(uint(row, 10)).unwrap_or(u32::MAX),
        undecided: uint(row, 11) == Asks::UNDECIDED,
        last_result: ended.and_then(|text| RunResult::named(&text)),
    })
}

impl SessionInfo {
    /// The same, with a look at the folder.
    pub(crate) fn checked(mut self) -> Self {
        self.folder_missing = !Path::new(&self.folder).is_dir();
        self
    }
}

/// The same, with one look at each folder.
pub(crate) fn checked(mut infos: Vec<SessionInfo>) -> Vec<SessionInfo> {
    let mut known: HashMap<String, bool> = HashMap::new();
    for info in &mut infos {
        let missing = known.entry(info.folder.clone()).or_insert_with_key(|folder| !Path::new(folder).is_dir());
        info.folder_missing = *missing;
    }
    infos
}

/// A folder as it is stored and compared: canonical where it exists, else tidied up as text.
pub(crate) fn folder_text(folder: &Path) -> String {
    let canonical = folder.canonicalize();
    let tidy = || folder.components().collect();
    canonical.unwrap_or_else(|_| tidy()).to_string_lossy().into_owned()
}

/// A folder that a session can belong to from now on, canonical.
pub(crate) fn existing_folder(folder: &Path) -> Result<String, LogError> {
    let refuse = |why: &str| LogError::Invalid(format!("the folder {} {why}", folder.display()));
    let canonical = folder.canonicalize().map_err(|e| refuse(&format!("cannot be used: {e}")))?;
    if !canonical.is_dir() {
        return Err(refuse("is no folder; a session belongs to one"));
    }
    let text =
        canonical.to_str().ok_or_else(|| refuse("has a name that is not UTF-8; rename it to use Hames there"))?;
    Ok(text.to_owned())
}

/// A name as it is stored: one line, no control characters, bounded, never empty.
pub(crate) fn clean_name(wanted: &str) -> String {
    let line: String = wanted.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect();
    let name: String = line.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(NAME_LIMIT).collect();
    let name = name.trim();
    if name.is_empty() { "session".to_owned() } else { name.to_owned() }
}

/// A name as it is compared: one normal form, no case. Going through upper case folds ß with ss and both lower sigmas.
pub(crate) fn name_key(name: &str) -> String {
    name.nfkc().collect::<String>().to_uppercase().to_lowercase().nfkc().collect()
}

/// Whether the text can be an id at all; ids name files.
pub(crate) fn is_id(id: &str) -> bool {
    (1..=ID_LIMIT).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn is_taken(db: &Connection, folder: &str, key: &str) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM sessions WHERE folder = ?1 AND name_key = ?2")?.exists((folder, key))
}

/// The wanted name, or the first of "name (2)", "name (3)"… that is free in the folder.
pub(crate) fn free_name(db: &Connection, folder: &str, wanted: &str) -> rusqlite::Result<String> {
    let mut name = wanted.to_owned();
    let mut number = 2_u64;
    while is_taken(db, folder, &name_key(&name))? {
        name = format!("{wanted} ({number})");
        number += 1;
    }
    Ok(name)
}

/// The number and last seq of a session.
pub(crate) fn position(db: &Connection, id: &SessionId) -> Result<Option<(i64, u64)>, Fault> {
    let mut statement = db.prepare_cached("SELECT n, last_seq FROM sessions WHERE id = ?1")?;
    Ok(statement.query_row([id.as_str()], |row| Ok((row.get(0)?, uint(row, 1)))).optional()?)
}

/// The number of a session that must exist.
pub(crate) fn number(db: &Connection, id: &SessionId) -> Result<i64, Fault> {
    match position(db, id)? {
        Some((number, _)) => Ok(number),
        None => Err(LogError::NoSession(id.clone()).into()),
    }
}

/// Creates the row of a session whose `session.created` is about to be written. The name must be free.
pub(crate) fn insert(db: &Connection, id: &SessionId, name: &str, folder: &str, at: u64) -> Result<i64, Fault> {
    if !is_id(id.as_str()) {
        return Err(LogError::Io(format!("\"{id}\" cannot be the id of a session")).into());
    }
    let key = name_key(name);
    if is_taken(db, folder, &key)? {
        return Err(taken(name, folder));
    }
    db.prepare_cached(
        "INSERT INTO sessions (id, name, name_key, folder, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
    )?
    .execute((id.as_str(), name, key, folder, int(at)))?;
    Ok(db.last_insert_rowid())
}

/// Creates the row of a session found in a damaged database, or finds the one already there. Gives its number.
pub(crate) fn restore(
    db: &Connection,
    id: &SessionId,
    name: &str,
    folder: &str,
    created_at: i64,
) -> Result<i64, Fault> {
    if let Some((number, _)) = position(db, id)? {
        return Ok(number);
    }
    let name = free_name(db, folder, &clean_name(name))?;
    insert(db, id, &name, folder, created_at.unsigned_abs())
}

/// Writes the seq of the last event of a session whose events were put in by other ways than an append.
pub(crate) fn set_last_seq(db: &Connection, number: i64, seq: u64) -> Result<(), Fault> {
    db.execute("UPDATE sessions SET last_seq = ?2 WHERE n = ?1", [number, int(seq)])?;
    Ok(())
}

fn taken(name: &str, folder: &str) -> Fault {
    LogError::Busy(format!("there already is a session named \"{name}\" in {folder}; choose another name")).into()
}

/// What some events make of whether somebody has to decide about proposals: for each answer before, the one after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asks([u64; 3]);

impl Asks {
    const NOTHING: u64 = 0;
    /// The run that goes on has proposed.
    const PROPOSED: u64 = 1;
    const UNDECIDED: u64 = 2;
    const AS_BEFORE: Asks = Asks([Self::NOTHING, Self::PROPOSED, Self::UNDECIDED]);

    fn becomes(&mut self, to: u64) {
        self.0 = [to; 3];
    }

    /// A run ends; what it has proposed is to be decided about. Whether any of that is still open, its session knows.
    fn run_ends(&mut self) {
        let ended = |now| if now == Self::PROPOSED { Self::UNDECIDED } else { Self::NOTHING };
        self.0 = self.0.map(ended);
    }
}

impl Default for Asks {
    fn default() -> Self {
        Self::AS_BEFORE
    }
}

/// What an event does to the messages that wait.
#[derive(Debug)]
enum Waits {
    Add(PendingId),
    Remove(PendingId),
    Are(Vec<PendingId>),
}

impl Waits {
    fn write(&self, db: &Connection, number: i64) -> Result<(), Fault> {
        let (sql, value) = match self {
            Waits::Add(id) => (
                "UPDATE sessions SET pending = json_insert(iif(json_valid(pending), pending, '[]'), '$[#]', ?2) WHERE n = ?1",
                id.as_str().to_owned(),
            ),
            Waits::Remove(id) => (
                "UPDATE sessions SET pending = (SELECT json_group_array(value) FROM json_each(pending) WHERE value <> ?2)
                 WHERE n = ?1 AND json_valid(pending)",
                id.as_str().to_owned(),
            ),
            Waits::Are(ids) => {
                let ids: Vec<&str> = ids.iter().map(PendingId::as_str).collect();
                ("UPDATE sessions SET pending = ?2 WHERE n = ?1", serde_json::to_string(&ids).unwrap_or_default())
            }
        };
        db.prepare_cached(sql)?.execute((number, value))?;
        Ok(())
    }
}

/// What some events change in a session's row.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    updated_at: u64,
    name: Option<String>,
    folder: Option<String>,
    model: Option<ModelRef>,
    mode: Option<Mode>,
    first_line: Option<String>,
    turns: u32,
    waits: Vec<Waits>,
    asks: Asks,
    /// How the last run ended: nothing where one has begun since.
    ended: Option<Option<RunResult>>,
}

impl Changes {
    /// Takes in one event.
    pub(crate) fn apply(&mut self, envelope: &Envelope) {
        self.updated_at = self.updated_at.max(envelope.at);
        self.follow_waiting(envelope);
        self.follow_proposals(envelope);
        match &envelope.event {
            Event::SessionCreated(created) => {
                self.name = Some(clean_name(&created.name));
                self.folder = Some(created.folder.clone());
                self.set(created.settings.model.clone(), created.settings.mode);
            }
            Event::SettingsChanged(changed) => self.set(changed.settings.model.clone(), changed.settings.mode),
            Event::RunStart(start) if envelope.agent.is_empty() => {
                self.turns += 1;
                self.ended = Some(None);
                self.set(Some(start.model.clone()), Some(start.mode));
            }
            Event::RunDone(done) if envelope.agent.is_empty() => self.ended = Some(Some(done.result)),
            Event::SessionRenamed(renamed) => self.name = Some(clean_name(&renamed.name)),
            Event::SessionMoved(moved) => self.folder = Some(moved.folder.clone()),
            Event::SessionBranched(SessionBranched { outside: Some(outside), .. })
            | Event::SessionImported(SessionImported { outside: Some(outside), .. })
            | Event::SessionCut(SessionCut { outside: Some(outside), .. }) => {
                self.name = Some(clean_name(&outside.name));
                self.folder = Some(outside.folder.clone());
                self.set(outside.settings.model.clone(), outside.settings.mode);
            }
            Event::MessageUser(message) if self.first_line.is_none() => self.first_line = first_line(message),
            _ => {}
        }
    }

    fn follow_waiting(&mut self, envelope: &Envelope) {
        let are = |outside: &Outside| Waits::Are(outside.pending.iter().map(|pending| pending.id.clone()).collect());
        let waits = match &envelope.event {
            Event::PendingAdded(pending) => Waits::Add(pending.id.clone()),
            Event::PendingCancelled(cancelled) => Waits::Remove(cancelled.id.clone()),
            Event::MessageUser(MessageUser { pending_id: Some(id), .. }) => Waits::Remove(id.clone()),
            Event::SessionBranched(SessionBranched { outside: Some(outside), .. })
            | Event::SessionImported(SessionImported { outside: Some(outside), .. })
            | Event::SessionCut(SessionCut { outside: Some(outside), .. }) => are(outside),
            Event::SessionImported(_) => Waits::Are(Vec::new()),
            _ => return,
        };
        self.waits.push(waits);
    }

    fn follow_proposals(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::ChangeProposed(_) => self.asks.becomes(Asks::PROPOSED),
            Event::RunDone(_) if envelope.agent.is_empty() => self.asks.run_ends(),
            Event::RunStart(_) if envelope.agent.is_empty() => self.asks.becomes(Asks::NOTHING),
            Event::ChangesApplied(_)
            | Event::ChangesDiscarded(_)
            | Event::ChangesKept(_)
            | Event::SessionCut(_)
            | Event::SessionBranched(_)
            | Event::SessionImported(_) => self.asks.becomes(Asks::NOTHING),
            _ => {}
        }
    }

    fn set(&mut self, model: Option<ModelRef>, mode: Option<Mode>) {
        self.model = model.or(self.model.take());
        self.mode = mode.or(self.mode);
    }

    fn only_time_passed(&self) -> bool {
        let Changes { updated_at: _, waits: _, name, folder, model, mode, first_line, turns, asks, ended } = self;
        name.is_none()
            && folder.is_none()
            && model.is_none()
            && mode.is_none()
            && first_line.is_none()
            && *turns == 0
            && *asks == Asks::AS_BEFORE
            && ended.is_none()
    }

    /// Writes them, with the seq of the last event. Most appends change nothing but that and the time.
    pub(crate) fn write(&self, db: &Connection, number: i64, last_seq: u64) -> Result<(), Fault> {
        let (seq, at) = (int(last_seq), int(self.updated_at));
        self.waits.iter().try_for_each(|waits| waits.write(db, number))?;
        if self.only_time_passed() {
            db.prepare_cached("UPDATE sessions SET last_seq = ?2, updated_at = max(updated_at, ?3) WHERE n = ?1")?
                .execute((number, seq, at))?;
            return Ok(());
        }
        self.check_name(db, number)?;
        db.prepare_cached(
            "UPDATE sessions SET last_seq = ?2, updated_at = max(updated_at, ?3), name = coalesce(?4, name),
               name_key = coalesce(?5, name_key), folder = coalesce(?6, folder), model = coalesce(?7, model),
               mode = coalesce(?8, mode), turns = turns + ?9,
               first_line = CASE WHEN first_line = '' THEN coalesce(?10, '') ELSE first_line END,
               asks = CASE coalesce(asks, 0) WHEN 0 THEN ?11 WHEN 1 THEN ?12 ELSE ?13 END,
               ended = iif(?14, ?15, ended)
             WHERE n = ?1",
        )?
        .execute((
            number,
            seq,
            at,
            &self.name,
            self.name.as_deref().map(name_key),
            &self.folder,
            self.model.as_ref().map(ModelRef::to_string),
            self.mode.map(Mode::as_str),
            self.turns,
            &self.first_line,
            int(self.asks.0[0]),
            int(self.asks.0[1]),
            int(self.asks.0[2]),
            self.ended.is_some(),
            self.ended.flatten().map(RunResult::as_str),
        ))?;
        Ok(())
    }

    /// Refuses a name that another session of the folder has.
    fn check_name(&self, db: &Connection, number: i64) -> Result<(), Fault> {
        if self.name.is_none() && self.folder.is_none() {
            return Ok(());
        }
        let (name, folder): (String, String) =
            db.query_row("SELECT name, folder FROM sessions WHERE n = ?1", [number], |r| Ok((r.get(0)?, r.get(1)?)))?;
        let (name, folder) = (self.name.as_ref().unwrap_or(&name), self.folder.as_ref().unwrap_or(&folder));
        let mut others = db.prepare("SELECT 1 FROM sessions WHERE folder = ?1 AND name_key = ?2 AND n <> ?3")?;
        if others.exists((folder, name_key(name), number))? { Err(taken(name, folder)) } else { Ok(()) }
    }
}

fn first_line(message: &MessageUser) -> Option<String> {
    message.parts.iter().find_map(|part| match part {
        Part::Text { text } => {
            let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
            Some(line.chars().filter(|c| !is_unprintable(*c)).take(FIRST_LINE_LIMIT).collect())
        }
        _ => None,
    })
}

/// Brings a restored session's row in line with its events. A name that is taken in its folder is numbered.
pub(crate) fn refold(db: &Connection, number: i64) -> Result<(), Fault> {
    let mut changes = Changes::default();
    let range = (key(number, 1), key(number, SEQ_MAX));
    let id: String = db.query_row("SELECT id FROM sessions WHERE n = ?1", [number], |row| row.get(0))?;
    let id = SessionId::from(id);
    let mut statement = db.prepare_cached(&format!(
        "SELECT {} FROM events WHERE key BETWEEN ?1 AND ?2 AND type IN ('session.created', 'session.renamed',
           'session.moved', 'session.cut', 'session.branched', 'session.imported', 'settings.changed', 'run.start',
           'run.done', 'message.user', 'pending.added', 'pending.cancelled', 'change.proposed', 'changes.applied',
           'changes.discarded', 'changes.kept') ORDER BY key",
        row::COLUMNS
    ))?;
    let mut rows = statement.query(range)?;
    while let Some(row) = rows.next()? {
        changes.apply(&row::decode(row, &id)?);
    }
    let ends = "SELECT max(key), max(at), coalesce(min(nullif(at, 0)), 0) FROM events WHERE key BETWEEN ?1 AND ?2";
    let (last, updated, created): (i64, i64, i64) =
        db.query_row(ends, range, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    changes.updated_at = changes.updated_at.max(updated.unsigned_abs());
    db.execute(
        "UPDATE sessions SET turns = 0, first_line = '', asks = 0, pending = NULL, ended = NULL, created_at = iif(created_at = 0, ?2, created_at) WHERE n = ?1",
        [number, created],
    )?;
    match changes.write(db, number, seq_of(last)) {
        Err(Fault::Refused(_)) => {
            let folder = changes.folder.clone().unwrap_or_default();
            changes.name = Some(free_name(db, &folder, changes.name.as_deref().unwrap_or("session"))?);
            changes.write(db, number, seq_of(last))
        }
        other => other,
    }
}

/// One session by its id.
pub(crate) fn get(db: &Connection, id: &SessionId) -> Result<Option<SessionInfo>, Fault> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions s WHERE s.id = ?1"))?;
    Ok(statement.query_row([id.as_str()], info).optional()?)
}

/// Sessions, most recently updated first.
pub(crate) fn list(db: &Connection, folder: Option<&str>, limit: i64) -> Result<Vec<SessionInfo>, Fault> {
    let mut statement = db.prepare_cached(&list_sql())?;
    let rows = statement.query_map((folder, limit), info)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn list_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM sessions s WHERE ?1 IS NULL OR s.folder = ?1
         ORDER BY s.updated_at DESC, s.n DESC LIMIT ?2"
    )
}

/// The sessions of a folder whose log has an event of this type, most recently updated first. Reads no event's body.
pub(crate) fn with_event(db: &Connection, folder: &str, event_type: &str) -> Result<Vec<SessionInfo>, Fault> {
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions s
         WHERE s.folder = ?1 AND EXISTS (
           SELECT 1 FROM events e WHERE e.key > s.n << 32 AND e.key < (s.n + 1) << 32 AND e.type = ?2)
         ORDER BY s.updated_at DESC, s.n DESC"
    ))?;
    let rows = statement.query_map((folder, event_type), info)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Sessions that a person may mean: the exact id alone, else those whose id begins so or whose name it is.
pub(crate) fn find(db: &Connection, folder: Option<&str>, text: &str) -> Result<Vec<SessionInfo>, Fault> {
    if let Some(exact) = get(db, &SessionId::from(text))? {
        return Ok(vec![exact]);
    }
    let prefix = text.to_ascii_lowercase();
    let prefix = if prefix.len() >= ID_PREFIX && is_id(&prefix) { Some(prefix) } else { None };
    let mut statement = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions s
         WHERE substr(s.id, 1, length(?1)) = ?1 OR (s.name_key = ?2 AND (?3 IS NULL OR s.folder = ?3))
         ORDER BY s.updated_at DESC, s.n DESC"
    ))?;
    let rows = statement.query_map((prefix, name_key(&clean_name(text)), folder), info)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

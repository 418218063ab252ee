//! Reading what can be read of a damaged database, row by row, into a new one.
//!
//! Works on copies in a scratch folder, so the original stays as it was found. Three views of the damage are tried:
//! the file with its write-ahead file, without it, and with the first page of a fresh database in place of its own
//! (the same migrations put the same tables on the same pages). Where all of them have holes, rows are looked for in
//! the pages themselves. Later sources only add what earlier ones lacked.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use hames_protocol::{LogError, SessionId};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::blobs;
use crate::fault::{Fault, io_error};
use crate::home::{Home, with_suffix};
use crate::row::{SEQ_MAX, damaged, key, seq_of, session_of};
use crate::sessions;
use crate::{grants, open, pages};

/// Single rows looked for inside a hole of one table, at most: each costs a descent of the tree.
const PROBES: i64 = 20_000;
/// Sessions a database is believed to have, at most.
const SESSIONS: i64 = 1_000_000;
const PAGE: u64 = 4096;
/// How the names of scratch folders begin.
const SCRATCH_PREFIX: &str = ".salvage-";

/// What was saved.
#[derive(Debug, Default)]
pub(crate) struct Rescued {
    pub(crate) sessions: u64,
    events: u64,
    holes: u64,
}

impl Rescued {
    pub(crate) fn in_words(&self) -> String {
        let saved = format!("{} and {} were recovered", count(self.sessions, "session"), count(self.events, "event"));
        match self.holes {
            0 => format!("{saved}."),
            1 => format!("{saved}; one place where events are missing is marked in its session."),
            n => format!("{saved}; {n} places where events are missing are marked in their sessions."),
        }
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Reads the home's database into a new one at [`Home::salvaged`], which is complete once it is there.
pub(crate) fn rescue(home: &Home) -> Result<Rescued, LogError> {
    let root = home.root();
    remove_scratch(root);
    let scratch = tempfile::Builder::new()
        .prefix(SCRATCH_PREFIX)
        .tempdir_in(root)
        .map_err(|e| io_error("create a folder in", root, &e))?;
    let target = scratch.path().join("new.db");
    let db = open::create(&target)?;
    let failed = |e: io::Error| io_error("copy", &home.database(), &e);
    let mut known = Numbers::new();
    let mut whole = false;
    for view in [View::Whole, View::WithoutWal, View::FreshFirstPage] {
        let Some(copy) = view.copy(&home.database(), scratch.path()).map_err(failed)? else { continue };
        whole = read_view(&copy, &db, &mut known).map_err(|fault| fault.explain(&target))?;
        if whole {
            break;
        }
    }
    if !whole {
        // Closing the first view has copied its write-ahead file into it.
        let copy = View::Whole.path(scratch.path());
        read_pages(&copy, &db, &known).map_err(|fault| fault.explain(&target))?;
    }
    let rescued = finish(&db, home, &known).map_err(|fault| fault.explain(&target))?;
    db.close().map_err(|(_, e)| Fault::Sql(e).explain(&target))?;
    fs::rename(&target, home.salvaged()).map_err(|e| io_error("move", &target, &e))?;
    Ok(rescued)
}

/// Removes what a repair that was killed left: copies of whole databases. The lock keeps every other repair out.
fn remove_scratch(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(SCRATCH_PREFIX) {
            // What cannot be removed costs room and nothing else.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[derive(Clone, Copy)]
enum View {
    Whole,
    WithoutWal,
    FreshFirstPage,
}

impl View {
    /// Makes the copy that shows this view; `None` where it would show nothing new.
    fn copy(self, database: &Path, scratch: &Path) -> io::Result<Option<PathBuf>> {
        let wal = with_suffix(database, "-wal");
        let has_wal = fs::metadata(&wal).is_ok_and(|meta| meta.len() > 0);
        let copy = self.path(scratch);
        match self {
            View::WithoutWal if !has_wal => return Ok(None),
            View::Whole if has_wal => drop(fs::copy(&wal, with_suffix(&copy, "-wal"))?),
            _ => {}
        }
        fs::copy(database, &copy)?;
        if let View::FreshFirstPage = self {
            replace_first_page(&copy, scratch)?;
        }
        Ok(Some(copy))
    }

    fn path(self, scratch: &Path) -> PathBuf {
        scratch.join(match self {
            View::Whole => "whole.db",
            View::WithoutWal => "without-wal.db",
            View::FreshFirstPage => "fresh-page.db",
        })
    }
}

/// Writes the first page of a new, empty database over that of `copy`, with the size of `copy` in its header.
fn replace_first_page(copy: &Path, scratch: &Path) -> io::Result<()> {
    let model = scratch.join("model.db");
    let made = open::create(&model).map_err(|e| io::Error::other(e.to_string()))?;
    made.close().map_err(|(_, e)| io::Error::other(e.to_string()))?;
    let mut page = Vec::new();
    fs::File::open(&model)?.take(PAGE).read_to_end(&mut page)?;
    let pages = u32::try_from(fs::metadata(copy)?.len() / PAGE).unwrap_or(u32::MAX);
    // Bytes 28 to 31 of the header: the size in pages. No page is on the free list (32 to 39).
    if let Some(size) = page.get_mut(28..32) {
        size.copy_from_slice(&pages.to_be_bytes());
    }
    if let Some(free) = page.get_mut(32..40) {
        free.fill(0);
    }
    fs::OpenOptions::new().write(true).open(copy)?.write_all(&page)
}

/// What is known of each session, by its number in the damaged database.
type Numbers = BTreeMap<i64, Known>;

/// Copies what one view shows; `true` where everything in it could be read.
fn read_view(copy: &Path, target: &Connection, all: &mut Numbers) -> Result<bool, Fault> {
    let Some(source) = open_damaged(copy) else { return Ok(false) };
    let mut whole = true;
    let tx = target.unchecked_transaction()?;
    let numbers = copy_sessions(&source, &tx, &mut whole)?;
    tx.commit()?;
    for (number, known) in &numbers {
        let entry = all.entry(*number).or_insert(*known);
        entry.last_seq = entry.last_seq.max(known.last_seq);
        let tx = target.unchecked_transaction()?;
        copy_keyed(&source, &tx, EVENTS, *number, known, &mut whole)?;
        copy_keyed(&source, &tx, PIECES, *number, &Known { last_seq: 0, ..*known }, &mut whole)?;
        tx.commit()?;
    }
    let tx = target.unchecked_transaction()?;
    whole &= walk(&source, "SELECT rowid, hash, bytes, body FROM blobs", "rowid", (1, i64::MAX), |row| {
        let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO blobs (hash, bytes, body) VALUES (?1, ?2, ?3)")?;
        keep(insert.execute((value(row, 1), value(row, 2), value(row, 3))))
    })?;
    whole &= copy_grants(&source, &tx)?;
    for table in ["blob_refs (session, hash)", "blob_names (session, name, hash, dropped)"] {
        whole &= copy_small(&source, &tx, table, &numbers)?;
    }
    tx.commit()?;
    Ok(whole)
}

/// Adds events that are in the pages of the file and in no view of it. Those of deleted sessions may still lie there:
/// only what a known session lacks is taken.
fn read_pages(copy: &Path, target: &Connection, known: &Numbers) -> Result<(), Fault> {
    let tx = target.unchecked_transaction()?;
    pages::scan_events(copy, |old, mut values| {
        let (number, seq) = (session_of(old), seq_of(old));
        let Some(session) = known.get(&number).filter(|k| seq > 0 && (k.last_seq == 0 || seq <= k.last_seq)) else {
            return Ok(());
        };
        values[0] = Value::Integer(key(session.number, seq));
        keep(tx.prepare_cached(EVENTS.insert)?.execute(params_from_iter(values)))
    })?;
    Ok(tx.commit()?)
}

/// Opens a copy forgivingly; `None` where not even the tables can be found.
fn open_damaged(copy: &Path) -> Option<Connection> {
    let source = Connection::open(copy).ok()?;
    // Also lets a file be read that is shorter than its header says.
    source.execute_batch("PRAGMA writable_schema = ON; PRAGMA cell_size_check = ON;").ok()?;
    let usable = source.prepare("SELECT key, v, at, run, turn, step, agent, type, body FROM events").is_ok()
        && source.prepare("SELECT n, id, name, folder, created_at, last_seq FROM sessions").is_ok();
    usable.then_some(source)
}

/// What is known of a session apart from its events.
#[derive(Clone, Copy)]
struct Known {
    /// Its number in the new database.
    number: i64,
    /// The last seq its row names; 0 where unknown.
    last_seq: u64,
}

/// Copies the sessions' identities, by their numbers in the damaged database. Where a row is gone, its id may still
/// stand in the index; a session with events and no id at all gets a new one.
fn copy_sessions(source: &Connection, tx: &Connection, whole: &mut bool) -> Result<Numbers, Fault> {
    let mut numbers = Numbers::new();
    let columns = "SELECT n, id, name, folder, created_at, last_seq FROM sessions";
    *whole &= walk(source, columns, "n", (1, SESSIONS), |row| {
        let (Ok(n), Ok(id)) = (row.get::<_, i64>(0), row.get::<_, String>(1)) else { return Ok(()) };
        let name: String = row.get(2).unwrap_or_default();
        let folder: String = row.get(3).unwrap_or_default();
        let created_at: i64 = row.get(4).unwrap_or_default();
        let last_seq = row.get::<_, i64>(5).ok().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let number = sessions::restore(tx, &SessionId::from(id), &name, &folder, created_at)?;
        numbers.insert(n, Known { number, last_seq: last_seq.min(SEQ_MAX) });
        Ok(())
    })?;
    let mut ids: Vec<(i64, String)> = Vec::new();
    // Read through the index on ids, which holds all this needs.
    let _ = scan(source, "SELECT n, id FROM sessions WHERE id > '' ORDER BY id", &[], &mut |row| {
        if let (Ok(n), Ok(id)) = (row.get(0), row.get(1)) {
            ids.push((n, id));
        }
        Ok(())
    })?;
    let mut highest = 0;
    let last = "SELECT key FROM events ORDER BY key DESC LIMIT 1";
    let _ = scan(source, last, &[], &mut |row| row.get(0).map(|k| highest = session_of(k)).or(Ok(())))?;
    let from_ids = ids.iter().map(|(n, _)| *n);
    let unknown: Vec<i64> = from_ids.chain(1..=highest.min(SESSIONS)).filter(|n| !numbers.contains_key(n)).collect();
    for n in unknown {
        let id = match ids.iter().find(|(number, _)| *number == n) {
            Some((_, id)) => SessionId::from(id.as_str()),
            None if has_events(source, n)? => SessionId::generate(),
            None => continue,
        };
        let number = sessions::restore(tx, &id, "", "", 0)?;
        numbers.insert(n, Known { number, last_seq: 0 });
    }
    Ok(numbers)
}

fn has_events(source: &Connection, number: i64) -> Result<bool, Fault> {
    let mut found = false;
    let sql = "SELECT key FROM events WHERE key BETWEEN ?1 AND ?2 LIMIT 1";
    let _ = scan(source, sql, &[key(number, 0), key(number, SEQ_MAX)], &mut |_| {
        found = true;
        Ok(())
    })?;
    Ok(found)
}

struct Keyed {
    select: &'static str,
    insert: &'static str,
    columns: usize,
}

const EVENTS: &Keyed = &Keyed {
    select: "SELECT key, v, at, run, turn, step, agent, type, body FROM events",
    insert: "INSERT OR IGNORE INTO events (key, v, at, run, turn, step, agent, type, body)
             VALUES (?1, coalesce(?2, 1), coalesce(?3, 0), ?4, ?5, ?6, ?7, coalesce(?8, ''), coalesce(?9, ''))",
    columns: 9,
};
const PIECES: &Keyed = &Keyed {
    select: "SELECT key, body FROM open_pieces",
    insert: "INSERT OR IGNORE INTO open_pieces (key, body) VALUES (?1, coalesce(?2, ''))",
    columns: 2,
};

fn copy_keyed(
    source: &Connection,
    tx: &Connection,
    table: &Keyed,
    number: i64,
    known: &Known,
    whole: &mut bool,
) -> Result<(), Fault> {
    // Without a last seq every possible key is asked for, up to the limit on probes.
    let last = if known.last_seq == 0 { SEQ_MAX } else { known.last_seq };
    let mut insert = tx.prepare_cached(table.insert)?;
    *whole &= walk(source, table.select, "key", (key(number, 1), key(number, last)), |row| {
        let Ok(old) = row.get::<_, i64>(0) else { return Ok(()) };
        let mut values: Vec<Value> = (0..table.columns).map(|column| value(row, column)).collect();
        values[0] = Value::Integer(key(known.number, seq_of(old)));
        keep(insert.execute(params_from_iter(values)))
    })?;
    Ok(())
}

fn last_seq(db: &Connection, number: i64) -> Result<u64, Fault> {
    let last: Option<i64> = db.query_row(
        "SELECT max(key) FROM events WHERE key BETWEEN ?1 AND ?2",
        [key(number, 0), key(number, SEQ_MAX)],
        |row| row.get(0),
    )?;
    Ok(last.map_or(0, seq_of))
}

fn mark(db: &Connection, number: i64, at_seq: u64, first: u64, last: u64) -> Result<(), Fault> {
    let which = if first == last { format!("event {first}") } else { format!("events {first} to {last}") };
    let event = damaged(at_seq, &format!("{which} could not be read from a damaged database"));
    let body = serde_json::to_string(&event).map_err(|e| LogError::Io(e.to_string()))?;
    db.execute(
        "INSERT OR IGNORE INTO events (key, v, at, type, body) VALUES (?1, 1, 0, 'damaged', ?2)",
        (key(number, at_seq), body),
    )?;
    Ok(())
}

fn copy_small(source: &Connection, tx: &Connection, table: &str, numbers: &Numbers) -> Result<bool, Fault> {
    let (name, columns) = table.split_once(' ').unwrap_or((table, ""));
    let list = columns.trim_matches(['(', ')']);
    let width = list.split(',').count();
    let marks: Vec<String> = (1..=width).map(|n| format!("?{n}")).collect();
    let mut insert = tx.prepare(&format!("INSERT OR IGNORE INTO {table} VALUES ({})", marks.join(", ")))?;
    let mut whole = true;
    for order in ["ASC", "DESC"] {
        whole = scan(source, &format!("SELECT {list} FROM {name} ORDER BY 1 {order}"), &[], &mut |row| {
            let mut values: Vec<Value> = (0..width).map(|column| value(row, column)).collect();
            let Value::Integer(old) = values[0] else { return Ok(()) };
            let Some(known) = numbers.get(&old) else { return Ok(()) };
            values[0] = Value::Integer(known.number);
            keep(insert.execute(params_from_iter(values)))
        })?;
        if whole {
            break;
        }
    }
    Ok(whole)
}

/// Copies what a person allowed. A page that is taken for the wrong table allows nothing: only what reads as a grant is
/// copied. Older databases have none.
fn copy_grants(source: &Connection, tx: &Connection) -> Result<bool, Fault> {
    if source.prepare("SELECT folder, grant, at FROM grants").is_err() {
        return Ok(true);
    }
    let mut whole = true;
    for order in ["ASC", "DESC"] {
        let sql = format!("SELECT folder, grant, at FROM grants ORDER BY folder {order}, grant {order}");
        whole = scan(source, &sql, &[], &mut |row| {
            let (Ok(folder), Ok(grant)) = (row.get::<_, String>(0), row.get::<_, String>(1)) else { return Ok(()) };
            match grants::is_readable(&grant) {
                true => keep(grants::restore(tx, &folder, &grant, row.get(2).unwrap_or_default())),
                false => Ok(()),
            }
        })?;
        if whole {
            break;
        }
    }
    Ok(whole)
}

/// Marks the holes, brings the sessions' rows in line with their events, and takes in blobs that are files.
fn finish(db: &Connection, home: &Home, known: &Numbers) -> Result<Rescued, Fault> {
    let tx = db.unchecked_transaction()?;
    let numbers: Vec<i64> = {
        let mut statement = tx.prepare("SELECT n FROM sessions ORDER BY n")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    let mut rescued = Rescued::default();
    for number in numbers {
        let found = last_seq(&tx, number)?;
        let tail = known.values().filter(|k| k.number == number).map(|k| k.last_seq).max().unwrap_or(0);
        if found == 0 && tail == 0 {
            tx.execute("DELETE FROM sessions WHERE n = ?1", [number])?;
            continue;
        }
        mark_holes(&tx, number)?;
        // A mark at the last seq the session had: its next event still gets the one after.
        if tail > found {
            mark(&tx, number, tail, found + 1, tail)?;
        }
        sessions::refold(&tx, number)?;
        rescued.sessions += 1;
    }
    let counts = "SELECT count(*), coalesce(sum(type = 'damaged'), 0) FROM events";
    let (all, holes): (i64, i64) = tx.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rescued.holes = holes.unsigned_abs();
    rescued.events = (all - holes).unsigned_abs();
    for (hash, bytes) in blobs::files_under(&home.blobs()) {
        tx.execute("INSERT OR IGNORE INTO blobs (hash, bytes, body) VALUES (?1, ?2, NULL)", (hash, bytes))?;
    }
    tx.commit()?;
    Ok(rescued)
}

/// Puts a mark at the first seq of every hole. Where a person cut the tail, nothing is missing.
fn mark_holes(db: &Connection, number: i64) -> Result<(), Fault> {
    let mut holes = Vec::new();
    let mut expected = 1;
    let mut statement = db.prepare_cached("SELECT key, type FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key")?;
    let mut rows = statement.query([key(number, 1), key(number, SEQ_MAX)])?;
    while let Some(row) = rows.next()? {
        let seq = seq_of(row.get(0)?);
        let kind: Value = row.get(1)?;
        let explained = matches!(&kind, Value::Text(kind) if kind == "session.cut" || kind == "damaged");
        if seq > expected && !explained {
            holes.push((expected, seq - 1));
        }
        expected = seq + 1;
    }
    drop(rows);
    for (first, last) in holes {
        mark(db, number, first, first, last)?;
    }
    Ok(())
}

fn value(row: &Row<'_>, column: usize) -> Value {
    row.get(column).unwrap_or(Value::Null)
}

/// A row that breaks a rule of the new database is left out; anything else wrong with that database is an error.
fn keep(inserted: rusqlite::Result<usize>) -> Result<(), Fault> {
    match inserted {
        Ok(_) => Ok(()),
        Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Hands over every row of a tree between two keys that can be reached: from the front, from the back, and one by one
/// in the hole between. `true` where there was no hole.
fn walk(
    source: &Connection,
    select: &str,
    column: &str,
    (low, high): (i64, i64),
    mut each: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<bool, Fault> {
    let range = format!("{select} WHERE {column} BETWEEN ?1 AND ?2 ORDER BY {column}");
    let mut next = low;
    let front = scan(source, &range, &[low, high], &mut |row| {
        next = row.get::<_, i64>(0).map_or(next, |k| k.saturating_add(1));
        each(row)
    })?;
    if front {
        return Ok(true);
    }
    let mut last = high;
    let _ = scan(source, &format!("{range} DESC"), &[next, high], &mut |row| {
        last = row.get::<_, i64>(0).map_or(last, |k| k.saturating_sub(1));
        each(row)
    })?;
    let single = format!("{select} WHERE {column} = ?1");
    for probe in next..=last.min(next.saturating_add(PROBES)) {
        let _ = scan(source, &single, &[probe], &mut each)?;
    }
    Ok(false)
}

/// Runs a query on the damaged database; `false` where it broke off. Errors are those of `each`.
fn scan(
    source: &Connection,
    sql: &str,
    params: &[i64],
    each: &mut dyn FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<bool, Fault> {
    let Ok(mut statement) = source.prepare_cached(sql) else { return Ok(false) };
    let Ok(mut rows) = statement.query(params_from_iter(params)) else { return Ok(false) };
    loop {
        match rows.next() {
            Ok(Some(row)) => each(row)?,
            Ok(None) => return Ok(true),
            Err(_) => return Ok(false),
        }
    }
}

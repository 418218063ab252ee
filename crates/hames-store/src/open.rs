//! Opening the database: connections and their settings, and the dance of locks that lets many processes come and go
//! while creation, migration and repair are done alone.
//!
//! Everybody who has the database open holds `locks/db.lock` shared. Whoever gets it exclusive is alone, and looks
//! after what was left behind; its one line says whether the last one out closed the database in good order.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hames_protocol::LogError;
use rusqlite::{Connection, OpenFlags};

use crate::damage;
use crate::fault::{Fault, io_error};
use crate::home::{Home, create_private, with_suffix};
use crate::lease::{FileLock, Hold};
use crate::migrate;

/// How long a transaction waits for another process's: far longer than any of ours takes.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(30);
const BUSY_FIRST_PAUSE: Duration = Duration::from_micros(200);
const BUSY_LONGEST_PAUSE: Duration = Duration::from_millis(25);
/// How long an opener waits for somebody who creates, migrates or repairs.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// How long an opener who must be alone waits for the others to leave.
const ALONE_LIMIT: Duration = Duration::from_secs(3);
/// The ground may shift between two locks; more often than this it does not.
const OPEN_ATTEMPTS: usize = 4;

/// The write-ahead log is copied back while nothing else goes on; this many pages (16 MB) force it in between.
const CHECKPOINT_PAGES: u32 = 4000;
/// What the write-ahead file is cut to once it is copied back.
const WAL_KEPT_BYTES: u32 = 4 << 20;
/// Bytes of the smallest page SQLite knows.
const SMALLEST_DATABASE: u64 = 512;
const STATEMENT_CACHE: usize = 48;

/// The line in `db.lock` while the database is, or may be, open.
pub(crate) const NOTE_OPEN: &str = "open";
/// The line in `db.lock` after the last one out left no write-ahead file behind.
pub(crate) const NOTE_CLOSED: &str = "closed";

/// A database that is ready for use, with the lock its opener holds.
pub(crate) struct Ready {
    pub(crate) db: Connection,
    pub(crate) lock: FileLock,
    pub(crate) notices: Vec<String>,
}

/// What stands where the database should be.
pub(crate) enum Found {
    Sound(Connection),
    Old(Connection),
    Nothing,
    Damaged(String),
}

/// Opens the database of a home, creating, migrating or repairing it where needed.
pub(crate) fn open(home: &Home) -> Result<Ready, LogError> {
    let lock = FileLock::open(&home.database_lock())?;
    let mut notices = Vec::new();
    for _ in 0..OPEN_ATTEMPTS {
        if !lock.take(Hold::Exclusive, Duration::ZERO)? {
            if !lock.take(Hold::Shared, OPEN_LIMIT)? {
                return Err(busy(home, "is being upgraded or repaired by another hames process"));
            }
            if let Found::Sound(db) = examine(&home.database())? {
                return Ok(Ready { db, lock, notices });
            }
            lock.release();
            if !lock.take(Hold::Exclusive, ALONE_LIMIT)? {
                return Err(busy(home, "has to be upgraded or repaired, and another hames process is using it"));
            }
        }
        let db = prepare_alone(home, &lock, &mut notices)?;
        let ours = inode(&home.database());
        if !lock.take(Hold::Shared, OPEN_LIMIT)? {
            return Err(busy(home, "is being upgraded or repaired by another hames process"));
        }
        // Going from exclusive to shared, the kernel may let somebody in between.
        let unchanged = ours == inode(&home.database()) && migrate::version(&db).is_ok_and(|v| v == migrate::HEAD);
        if unchanged {
            return Ok(Ready { db, lock, notices });
        }
        lock.release();
    }
    Err(busy(home, "is being changed by other hames processes all the time"))
}

fn busy(home: &Home, what: &str) -> LogError {
    LogError::Locked(format!(
        "the session database {} {what}; end the other one and try again",
        home.database().display()
    ))
}

/// Brings the database into order. The caller holds the lock exclusive.
pub(crate) fn prepare_alone(home: &Home, lock: &FileLock, notices: &mut Vec<String>) -> Result<Connection, LogError> {
    let path = home.database();
    damage::set_strays_aside(home, &lock.note(), notices)?;
    let mut found = examine(&path)?;
    if let Found::Damaged(reason) = found {
        notices.push(damage::replace(home, &reason)?);
        found = examine(&path)?;
    }
    let db = match found {
        Found::Sound(db) => db,
        Found::Old(db) => match upgrade(&db, home) {
            Ok(()) => db,
            Err(fault) if fault.is_damage() => {
                drop(db);
                let reason = fault.explain(&path).to_string();
                notices.push(damage::replace(home, &reason)?);
                create(&path)?
            }
            Err(fault) => return Err(fault.explain(&path)),
        },
        Found::Nothing => create(&path)?,
        Found::Damaged(reason) => return Err(LogError::Damaged(reason)),
    };
    lock.write_note(NOTE_OPEN)?;
    Ok(db)
}

fn upgrade(db: &Connection, home: &Home) -> Result<(), Fault> {
    let now = now_ms();
    if migrate::version(db)? > 0 {
        migrate::back_up(db, home, now)?;
    }
    migrate::migrate(db, migrate::HEAD, now)
}

/// Creates a database at `path`, or opens the sound one that a repair put there.
pub(crate) fn create(path: &Path) -> Result<Connection, LogError> {
    create_private(path).map_err(|e| io_error("create", path, &e))?;
    let made = connect_writer(path).map_err(Fault::Sql).and_then(|db| {
        migrate::migrate(&db, migrate::HEAD, now_ms())?;
        Ok(db)
    });
    made.map_err(|fault| fault.explain(path))
}

/// Looks at what is there, reading a few pages only: checking a whole database takes too long for every start.
/// Damage deeper inside is met at its first use.
pub(crate) fn examine(path: &Path) -> Result<Found, LogError> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(e) => return Err(io_error("open", path, &e)),
    };
    if !meta.is_file() {
        return Ok(Found::Damaged("there is something else in its place".into()));
    }
    if meta.len() == 0 {
        return Ok(Found::Nothing);
    }
    // SQLite takes such a file for an empty database.
    if meta.len() < SMALLEST_DATABASE {
        return Ok(Found::Damaged("it is too short".into()));
    }
    match look_inside(path) {
        Ok(found) => Ok(found),
        Err(fault) if fault.is_damage() => Ok(Found::Damaged(plain_reason(fault))),
        Err(fault) => Err(fault.explain(path)),
    }
}

fn look_inside(path: &Path) -> Result<Found, Fault> {
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if db.is_readonly("main")? {
        return Err(LogError::ReadOnly(path.display().to_string()).into());
    }
    let version = migrate::version(&db)?;
    let application: i64 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: u32 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (version, application, tables) == (0, 0, 0) {
        set_up_writer(&db)?;
        return Ok(Found::Old(db));
    }
    if application != migrate::APPLICATION_ID {
        return Ok(Found::Damaged("it is not a database of Hames".into()));
    }
    if version > migrate::HEAD {
        return Err(migrate::newer(path, version).into());
    }
    migrate::check_ledger(&db, path)?;
    set_up_writer(&db)?;
    if version < migrate::HEAD {
        return Ok(Found::Old(db));
    }
    // The right edge of the two trees that every run writes.
    for probe in ["SELECT max(n) FROM sessions", "SELECT max(key) FROM events"] {
        db.query_row(probe, [], |row| row.get::<_, Option<i64>>(0))?;
    }
    Ok(Found::Sound(db))
}

/// The reason a database was found damaged, without the path the notice names anyway.
pub(crate) fn plain_reason(fault: Fault) -> String {
    match fault {
        Fault::Sql(error) => error.to_string(),
        Fault::Refused(error) => error.to_string(),
    }
}

/// The one connection of a process that writes.
pub(crate) fn connect_writer(path: &Path) -> rusqlite::Result<Connection> {
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    set_up_writer(&db)?;
    Ok(db)
}

fn set_up_writer(db: &Connection) -> rusqlite::Result<()> {
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.execute_batch(&format!(
        "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};
         PRAGMA journal_size_limit = {WAL_KEPT_BYTES};"
    ))
}

/// A connection that only reads.
pub(crate) fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite's own mutexes are not needed.
    let mut db = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_handler(Some(patience()))?;
    db.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // Costs little and turns damage into an error instead of nonsense.
    db.execute_batch("PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;")?;
    Ok(db)
}

/// Waits for a lock with growing pauses, up to [`BUSY_LIMIT`] in all.
fn patience() -> impl FnMut(i32) -> bool + Send + 'static {
    let mut begun = Instant::now();
    move |tries| {
        if tries == 0 {
            begun = Instant::now();
        }
        let pause = BUSY_FIRST_PAUSE.saturating_mul(1 << tries.clamp(0, 10));
        std::thread::sleep(pause.min(BUSY_LONGEST_PAUSE));
        begun.elapsed() < BUSY_LIMIT
    }
}

/// Bytes of the write-ahead file beside a database; `None` where there is none.
pub(crate) fn wal_bytes(database: &Path) -> Option<u64> {
    std::fs::metadata(with_suffix(database, "-wal")).ok().map(|meta| meta.len())
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|meta| meta.ino())
}

/// The time, for names of backups and files moved aside. Events carry the times their callers give.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|d| i64::try_from(d.as_millis()).ok()).unwrap_or(0)
}

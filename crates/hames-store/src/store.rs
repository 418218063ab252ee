//! The store as the program sees it.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hames_protocol::{
    BlobRef, BlobStore, EventLog, LogError, SessionCreated, SessionId, SessionMoved, SessionRenamed, SessionState,
    Settings,
};
use rusqlite::Connection;

use crate::cut::envelope;
use crate::fault::{Fault, io_error};
use crate::home::Home;
use crate::lease::{self, InUse, Lease};
use crate::log::{self, Ports};
use crate::read::{self, Readers};
use crate::repair::{Keeper, Notices};
use crate::search::{self, SearchHit, Searched};
use crate::sessions::{self, SessionInfo};
use crate::writer::Writer;
use crate::{blobs, migrate, open, past};

/// Problems an integrity check lists at most.
const PROBLEMS: usize = 20;

/// The sessions of one home: their log, their blobs, their search. Clones share one writer and a few readers.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// A store that was opened, and what its user should be told once.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// What happened to the database meanwhile: moved aside, repaired, missing.
    pub notices: Vec<String>,
}

/// How the store is, for `hames doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    /// Version of the schema.
    pub schema_version: u32,
    /// Sessions.
    pub sessions: u64,
    /// Events of all sessions.
    pub events: u64,
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Bytes of all blobs, those in the database too.
    pub blob_bytes: u64,
    /// What is wrong with the database, one problem a line.
    pub integrity: Result<(), String>,
}

/// What the clones of a store share.
pub(crate) struct Inner {
    home: Home,
    readers: Arc<Readers>,
    notices: Notices,
    // Dropped with the last clone: finishes its queue, closes the readers and the database.
    writer: Writer,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("home", &self.home.root()).finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Reads; where the database turns out to be damaged, once more after its repair.
    pub(crate) fn read<T>(&self, read: impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, LogError> {
        let seen = self.readers.generation();
        match self.readers.with(&read) {
            Err(fault) if fault.is_damage() => {
                self.writer.repair_blocking(seen, open::plain_reason(fault))?;
                self.readers.with(&read)
            }
            other => other,
        }
        .map_err(|fault| fault.explain(&self.home.database()))
    }
}

/// Runs blocking work where it does not hold up the runtime's own threads.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime
            .spawn_blocking(work)
            .await
            .unwrap_or_else(|e| Err(LogError::Io(format!("reading the session database was broken off: {e}")))),
        Err(_) => work(),
    }
}

impl Store {
    /// Opens the store of a home, creating what is missing, upgrading what is old and setting aside what is damaged.
    pub fn open(home: &Path) -> Result<Opened, LogError> {
        let home = Home::create(home)?;
        let ready = open::open(&home)?;
        let readers = Arc::new(Readers::new(home.database()));
        let notices = Notices::default();
        let keeper =
            Keeper { home: home.clone(), lock: ready.lock, readers: readers.clone(), notices: notices.clone() };
        let writer = Writer::start(ready.db, keeper)?;
        let store = Store { inner: Arc::new(Inner { home, readers, notices, writer }) };
        Ok(Opened { store, notices: ready.notices })
    }

    /// What the user should be told that happened since the store was opened. Each notice is given once.
    pub fn take_notices(&self) -> Vec<String> {
        self.inner.notices.take()
    }

    /// The event log.
    pub fn log(&self) -> Arc<dyn EventLog> {
        Arc::new(Ports(self.inner.clone()))
    }

    /// The blobs.
    pub fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(Ports(self.inner.clone()))
    }

    /// Creates a session and takes its lease. The name is made unique in the folder, without regard to case, by
    /// " (2)", " (3)" and so on.
    pub fn create(
        &self,
        wanted_name: &str,
        folder: &Path,
        settings: Settings,
        at_ms: u64,
        holder: &str,
    ) -> Result<(SessionInfo, Lease), LogError> {
        let id = SessionId::generate();
        let lease = Lease::take(&self.inner.home.session_lock(&id), "the new session", holder)?;
        let (wanted, folder) = (sessions::clean_name(wanted_name), sessions::folder_text(folder));
        let info = self.inner.writer.run_blocking(move |db| {
            let name = sessions::free_name(db, &folder, &wanted)?;
            let created = SessionCreated { name, folder: folder.clone(), settings: settings.clone() };
            log::append_now(db, &id, 1, &envelope(&id, at_ms, created.into()))?;
            existing(db, &id)
        })?;
        Ok((info.checked(), lease))
    }

    /// Takes the lease on a session. Where another process holds it, the error names that one.
    pub fn lease(&self, id: &SessionId, holder: &str) -> Result<Lease, LogError> {
        let info = self.session(id)?.ok_or_else(|| LogError::NoSession(id.clone()))?;
        Lease::take(&self.inner.home.session_lock(id), &format!("session \"{}\"", info.name), holder)
    }

    /// One session.
    pub fn session(&self, id: &SessionId) -> Result<Option<SessionInfo>, LogError> {
        Ok(self.inner.read(|db| sessions::get(db, id))?.map(SessionInfo::checked))
    }

    /// What a session is by now, but for the contents of files it knows, the names of its outputs and its last step: the
    /// steps of its log, most of it, are not read. `None` where there is no such session.
    pub fn outline(&self, id: &SessionId) -> Result<Option<SessionState>, LogError> {
        self.inner.read(|db| past::outline(db, id))
    }

    /// The sessions a person may mean: the one of that exact id, else all whose id begins so (8 characters or more)
    /// and those of that name in the folder, or in any folder where none is given.
    pub fn find(&self, folder: Option<&Path>, name_or_id: &str) -> Result<Vec<SessionInfo>, LogError> {
        let folder = folder.map(sessions::folder_text);
        Ok(sessions::checked(self.inner.read(|db| sessions::find(db, folder.as_deref(), name_or_id))?))
    }

    /// The sessions of a folder, or all, most recently updated first.
    pub fn list(&self, folder: Option<&Path>) -> Result<Vec<SessionInfo>, LogError> {
        let folder = folder.map(sessions::folder_text);
        Ok(sessions::checked(self.inner.read(|db| sessions::list(db, folder.as_deref(), i64::MAX))?))
    }

    /// The folder's most recently updated session.
    pub fn last(&self, folder: &Path) -> Result<Option<SessionInfo>, LogError> {
        let folder = sessions::folder_text(folder);
        Ok(self.inner.read(|db| sessions::list(db, Some(&folder), 1))?.pop().map(SessionInfo::checked))
    }

    /// The sessions that are being written now, by whichever process.
    pub fn in_use(&self) -> Result<Vec<InUse>, LogError> {
        let folder = self.inner.home.locks();
        lease::in_use(&folder).map_err(|e| io_error("read", &folder, &e))
    }

    /// The folder's sessions in which an event of this type ever happened, most recently updated first.
    pub fn with_event(&self, folder: &Path, event_type: &str) -> Result<Vec<SessionInfo>, LogError> {
        let folder = sessions::folder_text(folder);
        Ok(sessions::checked(self.inner.read(|db| sessions::with_event(db, &folder, event_type))?))
    }

    /// Renames a session under its lease. A name that is taken in the folder is refused.
    pub fn rename(&self, id: &SessionId, name: &str, at_ms: u64, holder: &str) -> Result<SessionInfo, LogError> {
        self.rename_held(&self.lease(id, holder)?, name, at_ms)
    }

    /// Renames the session whose lease this is.
    pub fn rename_held(&self, lease: &Lease, name: &str, at_ms: u64) -> Result<SessionInfo, LogError> {
        let (id, name) = (lease.session(), sessions::clean_name(name));
        self.inner
            .writer
            .run_blocking(move |db| {
                let before = existing(db, &id)?;
                let renamed = SessionRenamed { name: name.clone() };
                log::append_now(db, &id, before.last_seq + 1, &envelope(&id, at_ms, renamed.into()))?;
                existing(db, &id)
            })
            .map(SessionInfo::checked)
    }

    /// Moves the session whose lease this is to another folder, which must exist. The name is made unique there. Where it
    /// is there already, nothing is written.
    pub fn move_to(&self, lease: &Lease, folder: &Path, at_ms: u64) -> Result<SessionInfo, LogError> {
        let (id, folder) = (lease.session(), sessions::existing_folder(folder)?);
        self.inner
            .writer
            .run_blocking(move |db| {
                let before = existing(db, &id)?;
                if before.folder == folder {
                    return Ok(before);
                }
                let mut events = vec![envelope(&id, at_ms, SessionMoved { folder: folder.clone() }.into())];
                let name = sessions::free_name(db, &folder, &before.name)?;
                if name != before.name {
                    events.push(envelope(&id, at_ms, SessionRenamed { name }.into()));
                }
                log::append_all(db, &id, before.last_seq + 1, &events)?;
                existing(db, &id)
            })
            .map(SessionInfo::checked)
    }

    /// Deletes a session under its lease: its events, what search knows of it, and blobs nobody else refers to.
    pub fn delete(&self, id: &SessionId, holder: &str) -> Result<(), LogError> {
        self.delete_held(self.lease(id, holder)?)
    }

    /// Deletes the session whose lease this is.
    pub fn delete_held(&self, lease: Lease) -> Result<(), LogError> {
        let id = lease.session();
        let orphans = self.inner.writer.run_blocking(move |db| delete_rows(db, &id))?;
        self.inner.read(|db| blobs::sweep(db, &self.inner.home, &orphans))
    }

    /// Where all words of `query` occur in messages, answers and labels of calls, newest first. Any text is safe. What was
    /// said and not indexed yet is indexed first.
    pub fn search(&self, query: &str, folder: Option<&Path>, limit: usize) -> Result<Vec<SearchHit>, LogError> {
        self.search_until(query, folder, limit, None).map(|searched| searched.hits)
    }

    /// The same, taking no longer than `patience` to index and then to search: the newest history first, and what was not
    /// looked at is said.
    pub fn search_within(
        &self,
        query: &str,
        folder: Option<&Path>,
        limit: usize,
        patience: Duration,
    ) -> Result<Searched, LogError> {
        self.search_until(query, folder, limit, Instant::now().checked_add(patience))
    }

    fn search_until(
        &self,
        query: &str,
        folder: Option<&Path>,
        limit: usize,
        until: Option<Instant>,
    ) -> Result<Searched, LogError> {
        let folder = folder.map(sessions::folder_text);
        let seen = self.inner.readers.generation();
        let found = self.search_once(query, folder.as_deref(), limit, until)?;
        match self.inner.readers.generation() == seen {
            true => Ok(found),
            // A repair on the way began a new index.
            false => self.search_once(query, folder.as_deref(), limit, until),
        }
    }

    fn search_once(
        &self,
        query: &str,
        folder: Option<&str>,
        limit: usize,
        until: Option<Instant>,
    ) -> Result<Searched, LogError> {
        // Half of the time is for the index, or a long log that nobody searched yet would leave none for the search.
        let began = Instant::now();
        let indexing = until.map(|until| began + until.saturating_duration_since(began) / 2);
        let is_behind = loop {
            match self.inner.writer.run_blocking(search::index_some) {
                Ok(false) => break false,
                Ok(true) if indexing.is_some_and(|until| Instant::now() >= until) => break true,
                Ok(true) => {}
                Err(error) if search::can_go_on(&error) => break true,
                Err(error) => return Err(error),
            }
        };
        let (hits, since) = self.inner.read(|db| search::search(db, query, folder, limit, until))?;
        Ok(Searched { hits, is_behind, since })
    }

    /// The blob that `name` stands for in the session; names of other sessions are not seen.
    pub fn blob_named(&self, session: &SessionId, name: &str) -> Result<Option<BlobRef>, LogError> {
        self.inner.read(|db| blobs::named(db, session, name))
    }

    /// Writes all events of a session as lines of JSON and gives their number. Holds only a few in memory.
    pub fn export(&self, id: &SessionId, out: &mut dyn Write) -> Result<u64, LogError> {
        read::export(|after, limit| self.inner.read(|db| read::events(db, id, after, limit)), out)
    }

    /// Looks the whole database over. Takes as long as reading it.
    pub fn check(&self) -> Result<StoreReport, LogError> {
        // Not through `read`: a report of damage must not set off the repair.
        let report = self.inner.readers.with(check);
        report.map_err(|fault| fault.explain(&self.inner.home.database()))
    }
}

fn check(db: &Connection) -> Result<StoreReport, Fault> {
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    let problems: rusqlite::Result<Vec<String>> = db
        .prepare(&format!("PRAGMA quick_check({PROBLEMS})"))
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect());
    let integrity = match problems {
        Ok(lines) if lines == ["ok"] => Ok(()),
        Ok(lines) => Err(lines.join("\n")),
        Err(e) => Err(e.to_string()),
    };
    Ok(StoreReport {
        schema_version: migrate::version(db)?,
        sessions: number("SELECT count(*) FROM sessions")?,
        events: number("SELECT count(*) FROM events")?,
        database_bytes: number("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")?,
        blob_bytes: number("SELECT coalesce(sum(bytes), 0) FROM blobs")?,
        integrity,
    })
}

fn delete_rows(db: &Connection, id: &SessionId) -> Result<Vec<String>, Fault> {
    let number = sessions::number(db, id)?;
    search::forget(db, number, 0)?;
    log::forget_from(db, number, 0)?;
    let orphans = blobs::forget(db, number)?;
    db.execute("DELETE FROM sessions WHERE n = ?1", [number])?;
    Ok(orphans)
}

fn existing(db: &Connection, id: &SessionId) -> Result<SessionInfo, Fault> {
    sessions::get(db, id)?.ok_or_else(|| LogError::NoSession(id.clone()).into())
}

//! What the writer needs beside its connection: the lock, the readers and the notices, to close the database in good
//! order or to replace it while the program runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hames_protocol::LogError;
use rusqlite::Connection;

use crate::home::Home;
use crate::lease::{FileLock, Hold};
use crate::open::{self, NOTE_CLOSED};
use crate::read::Readers;
use crate::{damage, migrate};

/// How long a repair waits for other processes to leave the database.
const ALONE_LIMIT: Duration = Duration::from_secs(2);

/// Things to tell the user, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<String>>>);

impl Notices {
    pub(crate) fn add(&self, notice: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps the database file itself in order, for the writer.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) home: Home,
    pub(crate) lock: FileLock,
    pub(crate) readers: Arc<Readers>,
    pub(crate) notices: Notices,
}

impl Keeper {
    pub(crate) fn database(&self) -> PathBuf {
        self.home.database()
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Closes the database. Whoever is last leaves no write-ahead file behind, and a line that says so.
    pub(crate) fn close(&self, db: Option<Connection>) {
        self.readers.close();
        drop(db);
        self.lock.release();
        let last = matches!(self.lock.take(Hold::Exclusive, Duration::ZERO), Ok(true));
        if last && open::wal_bytes(&self.database()).is_none() {
            // Without the line the next opener looks more closely, that is all.
            let _ = self.lock.write_note(NOTE_CLOSED);
        }
    }

    /// Replaces a damaged database by what can be read of it. Gives the connection to go on with, if there is one.
    pub(crate) fn repair(&self, db: Option<Connection>, reason: &str) -> (Option<Connection>, Result<(), LogError>) {
        let outcome = self.readers.replaced(|| {
            drop(db);
            match self.lock.take(Hold::Exclusive, ALONE_LIMIT) {
                Ok(true) => self.replace(reason),
                Ok(false) => Err(self.held_by_others(reason)),
                Err(error) => Err(error),
            }
        });
        let shared = self.lock.take(Hold::Shared, ALONE_LIMIT);
        match (outcome, shared) {
            (Ok(db), Ok(true)) => (Some(db), Ok(())),
            (Ok(_), Ok(false)) => (None, Err(self.held_by_others(reason))),
            (Ok(_), Err(error)) => (None, Err(error)),
            // Not repaired: go on with the damaged one, most of which may work.
            (Err(error), _) => (open::connect_writer(&self.database()).ok(), Err(error)),
        }
    }

    fn replace(&self, reason: &str) -> Result<Connection, LogError> {
        self.notices.add(damage::replace(&self.home, reason)?);
        let db = open::create(&self.database())?;
        debug_assert!(migrate::version(&db).is_ok_and(|version| version == migrate::HEAD), "a new database is current");
        Ok(db)
    }

    fn held_by_others(&self, reason: &str) -> LogError {
        LogError::Damaged(format!(
            "the session database {} is damaged ({reason}) and another hames process is using it; end that process \
             and run the command again, then it is repaired",
            self.database().display()
        ))
    }
}

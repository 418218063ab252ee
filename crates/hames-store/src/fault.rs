//! What can go wrong inside, and how it is said outside.

use std::io;
use std::path::Path;

use hames_protocol::LogError;
use rusqlite::{ErrorCode, ffi};

/// A failure inside the crate.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The request cannot be granted; the database is fine.
    Refused(LogError),
    /// SQLite failed.
    Sql(rusqlite::Error),
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Fault {
        Fault::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Sql(error)
    }
}

impl Fault {
    /// Whether the database file itself is unsound.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Fault::Refused(_) => false,
            Fault::Sql(error) => is_damage(error),
        }
    }

    /// Whether every other transaction would fail the same way now.
    pub(crate) fn is_general(&self) -> bool {
        let Fault::Sql(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DiskFull
                    | ErrorCode::ReadOnly
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::CannotOpen
                    | ErrorCode::PermissionDenied
                    | ErrorCode::OutOfMemory
            )
        )
    }

    /// The failure in words, with the database at `path`.
    pub(crate) fn explain(self, path: &Path) -> LogError {
        match self {
            Fault::Refused(error) => error,
            Fault::Sql(error) => sql_error(&error, path),
        }
    }
}

/// Whether the error says that the file is not a sound database.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn sql_error(error: &rusqlite::Error, path: &Path) -> LogError {
    let place = path.display().to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => LogError::NoSpace(place),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => LogError::ReadOnly(place),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LogError::Locked(format!(
            "{place} has been locked by another program for {} s; end that program and try again",
            crate::open::BUSY_LIMIT.as_secs()
        )),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            LogError::Damaged(format!("the session database {place} is damaged: {error}"))
        }
        // The shared-memory file is written on a disk without room.
        Some(ErrorCode::SystemIoFailure) if extended(error) == ffi::SQLITE_IOERR_SHMSIZE => LogError::NoSpace(place),
        _ => LogError::Io(format!("the session database {place} failed: {error}")),
    }
}

fn extended(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |e| e.extended_code)
}

/// An operation on a file or folder that failed, in words.
pub(crate) fn io_error(what: &str, path: &Path, error: &io::Error) -> LogError {
    let place = path.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::NoSpace(place),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => LogError::ReadOnly(place),
        _ => LogError::Io(format!("cannot {what} {place}: {error}")),
    }
}

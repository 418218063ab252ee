//! What is done with a database that cannot be used: it is moved aside, never deleted, and what can still be read of
//! it goes into a new one.
//!
//! The caller holds the database lock exclusive and has no connection open.

use std::io;
use std::path::{Path, PathBuf};

use hames_protocol::LogError;

use crate::fault::io_error;
use crate::home::{Home, with_suffix};
use crate::open::{NOTE_CLOSED, NOTE_OPEN, now_ms, wal_bytes};
use crate::salvage;

/// Files that belong to a database, by what is appended to its name.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Looks at the files themselves before SQLite does, because SQLite deletes or obeys a stray write-ahead file without
/// a word: it carries no name of its database.
pub(crate) fn set_strays_aside(home: &Home, note: &str, notices: &mut Vec<String>) -> Result<(), LogError> {
    let database = home.database();
    let place = database.display();
    let bytes = std::fs::metadata(&database).ok().filter(|meta| meta.is_file()).map(|meta| meta.len());
    let wal = wal_bytes(&database);
    let existed = note == NOTE_OPEN || note == NOTE_CLOSED;
    match (bytes, wal) {
        (None, _) if home.salvaged().is_file() => {
            move_companions(&database, &aside(&database))?;
            rename(&home.salvaged(), &database)?;
        }
        (None | Some(0), Some(1..)) => {
            let kept = move_aside(&database)?;
            notices.push(format!(
                "The session database {place} was missing or empty, but not its write-ahead file. That was moved to \
                 {}-wal, and a new database was begun.",
                kept.display()
            ));
        }
        (Some(0), _) if existed => {
            let kept = move_aside(&database)?;
            notices.push(format!(
                "The session database {place} was empty (0 bytes). It was moved to {}, and a new one was begun.",
                kept.display()
            ));
        }
        (None, _) if existed && !database.exists() => {
            notices.push(format!("The session database {place} was missing. A new one was begun."));
        }
        (Some(_), Some(1..)) if note == NOTE_CLOSED => {
            let kept = aside(&database);
            move_companions(&database, &kept)?;
            notices.push(format!(
                "Beside the session database {place} lay a write-ahead file that was not its own. It was moved to \
                 {}-wal.",
                kept.display()
            ));
        }
        (Some(1..), None) if note == NOTE_OPEN => notices.push(format!(
            "The write-ahead file of the session database {place} is missing: what was last written before hames \
             ended unexpectedly may be missing too."
        )),
        _ => {}
    }
    Ok(())
}

/// Moves the damaged database aside and puts in its place what could be read of it. Returns what to tell the user.
pub(crate) fn replace(home: &Home, reason: &str) -> Result<String, LogError> {
    let database = home.database();
    let rescued = if database.is_file() { Some(salvage::rescue(home)?) } else { None };
    let kept = move_aside(&database)?;
    let outcome = match rescued {
        Some(rescued) if rescued.sessions > 0 => {
            rename(&home.salvaged(), &database)?;
            rescued.in_words()
        }
        _ => {
            let _ = std::fs::remove_file(home.salvaged());
            "Nothing in it could be read, and a new one was begun.".to_owned()
        }
    };
    Ok(format!(
        "The session database {} was damaged ({reason}). It was moved to {}. {outcome}",
        database.display(),
        kept.display()
    ))
}

/// Moves a database and its companions to a name that says what they are and when; gives the name.
fn move_aside(database: &Path) -> Result<PathBuf, LogError> {
    let kept = aside(database);
    move_companions(database, &kept)?;
    if database.symlink_metadata().is_ok() {
        rename(database, &kept)?;
    }
    Ok(kept)
}

fn move_companions(database: &Path, kept: &Path) -> Result<(), LogError> {
    for companion in COMPANIONS {
        let from = with_suffix(database, companion);
        match std::fs::rename(&from, with_suffix(kept, companion)) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(io_error("move", &from, &e)),
        }
    }
    Ok(())
}

fn aside(database: &Path) -> PathBuf {
    let mut stamp = now_ms();
    loop {
        let kept = with_suffix(database, &format!(".damaged-{stamp}"));
        let free = kept.symlink_metadata().is_err() && with_suffix(&kept, "-wal").symlink_metadata().is_err();
        if free {
            return kept;
        }
        stamp += 1;
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), LogError> {
    std::fs::rename(from, to).map_err(|e| io_error("move", from, &e))
}

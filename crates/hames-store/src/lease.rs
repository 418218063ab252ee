//! Advisory file locks: the lease on a session, and the lock that every opener of the database holds.
//!
//! The kernel releases them when their holder dies. They are no protection of the data, only of people from surprises:
//! the expected seq of an append is the second line of defence.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hames_protocol::{LogError, SessionId};

use crate::fault::io_error;
use crate::home::open_private;

/// How often a lock that is waited for is tried.
const TRY_EVERY: Duration = Duration::from_millis(2);
/// How long the lock of a dead holder is waited for. A process it was just starting has it until it executes: a moment,
/// on a busy machine a longer one.
const DEAD_HOLDER_LIMIT: Duration = Duration::from_secs(2);
/// Bytes of a lock file that are read: it holds one short line.
const NOTE_LIMIT: u64 = 512;

/// The right to write a session. Released on drop, and by the death of the process.
#[derive(Debug)]
pub struct Lease {
    file: File,
    path: PathBuf,
}

impl Lease {
    /// The session it is on.
    pub fn session(&self) -> SessionId {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        SessionId::from(name.strip_suffix(".lock").unwrap_or(name))
    }

    /// Takes the lock at `path`, leaving a note that says who holds it. `what` names the session in the refusal.
    pub(crate) fn take(path: &Path, what: &str, holder: &str) -> Result<Lease, LogError> {
        Self::take_within(path, what, holder, DEAD_HOLDER_LIMIT)
    }

    fn take_within(path: &Path, what: &str, holder: &str, limit: Duration) -> Result<Lease, LogError> {
        let failed = |e: io::Error| io_error("lock", path, &e);
        let begun = Instant::now();
        loop {
            let mut file = open_private(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let note = note(&mut file);
                    if begun.elapsed() < limit && is_of_the_dead(&note) {
                        std::thread::sleep(TRY_EVERY);
                        continue;
                    }
                    return Err(busy(what, &note));
                }
                Err(TryLockError::Error(e)) => return Err(failed(e)),
            }
            // The holder before us removes the file on its way out: then this is a file nobody else will find.
            if !is_file_at(&file, path) {
                continue;
            }
            let line = format!("{}\t{}", std::process::id(), holder.replace(char::is_control, " "));
            write_note(&mut file, &line).map_err(failed)?;
            return Ok(Lease { file, path: path.to_owned() });
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if is_file_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn busy(what: &str, note: &str) -> LogError {
    let who = match note.split_once('\t') {
        Some((pid, holder)) if !holder.is_empty() => format!("{holder} (process {pid})"),
        Some((pid, _)) => format!("process {pid}"),
        None => "another process".to_owned(),
    };
    LogError::Busy(format!("{what} is in use by {who}; wait until it ends, or stop it"))
}

/// A session that a living process writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// The session's id.
    pub session: SessionId,
    /// The process.
    pub pid: u32,
    /// What it calls itself; may be empty.
    pub holder: String,
}

/// The sessions whose lock files in `folder` name a living process. Nothing is locked for it: whoever just wants to know
/// must be in nobody's way.
pub(crate) fn in_use(folder: &Path) -> io::Result<Vec<InUse>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".lock"));
        let Some(id) = name else { continue };
        all.extend(held(&path, &SessionId::from(id)));
    }
    all.sort_by(|a, b| a.session.as_str().cmp(b.session.as_str()));
    Ok(all)
}

/// Who holds the lock at `path`, as its note says. One that goes away meanwhile is in use no more.
pub(crate) fn held(path: &Path, session: &SessionId) -> Option<InUse> {
    let note = note(&mut File::open(path).ok()?);
    let (pid, holder) = note.split_once('\t').filter(|_| !is_of_the_dead(&note))?;
    Some(InUse { session: session.clone(), pid: pid.parse().ok()?, holder: holder.to_owned() })
}

/// Whether the process that left the note has ended. Where that cannot be told it has not.
fn is_of_the_dead(note: &str) -> bool {
    let Some(pid) = note.split('\t').next().and_then(|pid| pid.parse::<u32>().ok()) else { return false };
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        // Behind the name in parentheses, which may hold anything, stands the state.
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) => Path::new("/proc/self/stat").exists(),
    }
}

fn is_file_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn note(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(NOTE_LIMIT).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(_) => String::new(),
    }
}

fn write_note(file: &mut File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())
}

/// How a [`FileLock`] is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Shared,
    Exclusive,
}

/// A lock file of the store, held shared in ordinary use and exclusive for what must be done alone.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    pub(crate) fn open(path: &Path) -> Result<FileLock, LogError> {
        let file = open_private(path).map_err(|e| io_error("open", path, &e))?;
        Ok(FileLock { file, path: path.to_owned() })
    }

    /// Takes the lock as `hold`, waiting up to `limit`; `false` where others held it all that time. Then a hold from
    /// before is lost too: the kernel gives it up first.
    pub(crate) fn take(&self, hold: Hold, limit: Duration) -> Result<bool, LogError> {
        let begun = Instant::now();
        loop {
            let tried = match hold {
                Hold::Shared => self.file.try_lock_shared(),
                Hold::Exclusive => self.file.try_lock(),
            };
            match tried {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if begun.elapsed() >= limit => return Ok(false),
                Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_EVERY),
                Err(TryLockError::Error(e)) => return Err(io_error("lock", &self.path, &e)),
            }
        }
    }

    /// Gives the lock up.
    pub(crate) fn release(&self) {
        // Closing the file would do the same; there is nothing to do about a failure.
        let _ = self.file.unlock();
    }

    /// The line last written.
    pub(crate) fn note(&self) -> String {
        self.file.try_clone().map(|mut file| note(&mut file)).unwrap_or_default()
    }

    /// Writes the line. Only under an exclusive hold.
    pub(crate) fn write_note(&self, text: &str) -> Result<(), LogError> {
        let written = self.file.try_clone().and_then(|mut file| write_note(&mut file, text));
        written.map_err(|e| io_error("write", &self.path, &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_living_process_holds_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let lease = Lease::take(&folder.path().join("s-1.lock"), "it", "hames run").unwrap();
        std::fs::write(folder.path().join("s-2.lock"), format!("{}\thames run", child.id())).unwrap();
        std::fs::write(folder.path().join("db.lock"), "").unwrap();
        std::fs::write(folder.path().join("other"), format!("{}\tx", std::process::id())).unwrap();
        let held = InUse { session: "s-1".into(), pid: std::process::id(), holder: "hames run".into() };
        assert_eq!(in_use(folder.path()).unwrap(), [held]);
        drop(lease);
        assert_eq!(in_use(folder.path()).unwrap(), []);
    }

    #[test]
    fn the_lock_of_a_dead_holder_is_waited_for_and_that_of_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        // Held as by a process that the holder was starting when it died.
        let mut file = open_private(&path).unwrap();
        file.lock().unwrap();
        let limit = Duration::from_millis(20);
        for (pid, waits) in [(child.id(), true), (std::process::id(), false)] {
            write_note(&mut file, &format!("{pid}\tsomebody")).unwrap();
            // A live holder is named at once, however long one would wait.
            let limit = if waits { limit } else { Duration::from_secs(600) };
            let begun = Instant::now();
            let LogError::Busy(text) = Lease::take_within(&path, "it", "t", limit).unwrap_err() else { panic!() };
            assert!(text.contains(&pid.to_string()), "{text}");
            assert_eq!(begun.elapsed() >= limit, waits);
        }
        for nobody in ["", "nobody", "\t", "x\ty"] {
            assert!(!is_of_the_dead(nobody), "{nobody:?}");
        }
    }
}

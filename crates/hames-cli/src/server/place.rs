//! The one server of a home: who holds its lock.
//!
//! Whoever holds the lock is the server; the kernel gives it up with the process, however that ends. A socket that lies
//! there when the lock was free is therefore a dead one's.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use hames_client::Place;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::exit::Stop;

/// Bytes of the lock file that are read.
const MAX_NOTE: u64 = 4096;
/// How often a lock that may be free in a moment is tried.
const TRY_EVERY: Duration = Duration::from_millis(2);
/// How long.
const UNCLEAR_LIMIT: Duration = Duration::from_secs(2);

/// What the lock file says of its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// The process.
    pub(crate) pid: u32,
    /// The build.
    pub(crate) version: String,
    /// What it was started with, so that a restart starts it alike.
    #[serde(default)]
    pub(crate) args: Vec<String>,
}

impl Note {
    fn is_of_the_living(&self) -> bool {
        self.process().is_some_and(|pid| test_kill_process(pid).is_ok())
    }

    /// Asks the process to end its runs and leave, as a service manager does.
    pub(crate) fn ask_to_end(&self) -> io::Result<()> {
        let process = self.process().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(kill_process(process, Signal::TERM)?)
    }

    fn process(&self) -> Option<Pid> {
        i32::try_from(self.pid).ok().and_then(Pid::from_raw)
    }
}

/// What a server holds as long as it lives.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
}

/// What taking the lock came to.
#[derive(Debug)]
pub(crate) enum Taken {
    /// We are the server.
    Ours(Held),
    /// Another process is.
    Theirs(Note),
}

impl Held {
    /// Takes the lock of a home, or says who has it.
    pub(crate) fn take(place: &Place, note: &Note) -> Result<Taken, Stop> {
        let path = place.server_lock();
        place.prepare(&path).map_err(|error| Stop::configuration(error.to_string()))?;
        let failed = |e: io::Error| Stop::storage(format!("{} cannot be locked: {e}", path.display()));
        let mut file = open(&path).map_err(failed)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let theirs = note_in(&mut file);
                    // One that is just coming has written nothing yet, and one that is leaving answers no more; a process
                    // that a dead one was starting holds its lock until it executes.
                    if (theirs.is_of_the_living() && answers(place)) || begun.elapsed() > UNCLEAR_LIMIT {
                        return Ok(Taken::Theirs(theirs));
                    }
                    std::thread::sleep(TRY_EVERY);
                }
                Err(TryLockError::Error(e)) => return Err(failed(e)),
            }
        }
        let line = serde_json::to_string(note).map_err(|e| failed(e.into()))?;
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(failed)?;
        file.write_all(line.as_bytes()).map_err(failed)?;
        Ok(Taken::Ours(Held { file }))
    }
}

/// Whether somebody takes connections at a socket of the home.
fn answers(place: &Place) -> bool {
    place.sockets().iter().any(|socket| UnixStream::connect(socket).is_ok())
}

impl Drop for Held {
    fn drop(&mut self) {
        // The file stays, empty: removing it would let two processes lock two files.
        let _ = self.file.set_len(0);
    }
}

/// Who holds the lock of a home now, if anybody does. Takes nothing.
pub(crate) fn holder(place: &Place) -> Option<Note> {
    let mut file = File::open(place.server_lock()).ok()?;
    let note = note_in(&mut file);
    // A lock that is free is not taken even for a moment, as long as its note says so: somebody may be coming.
    if !note.is_of_the_living() {
        return None;
    }
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(note),
        _ => None,
    }
}

/// What the server of a home was started with that runs now, or that did not come to end in good order.
pub(crate) fn last_args(place: &Place) -> Vec<String> {
    File::open(place.server_lock()).map(|mut file| note_in(&mut file).args).unwrap_or_default()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn note_in(file: &mut File) -> Note {
    let mut text = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(MAX_NOTE).read_to_string(&mut text));
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn note() -> Note {
        Note { pid: std::process::id(), version: "1".into(), args: vec!["--listen".into(), "127.0.0.1:0".into()] }
    }

    fn taken(place: &Place) -> Held {
        match Held::take(place, &note()).unwrap() {
            Taken::Ours(held) => held,
            Taken::Theirs(note) => panic!("{note:?}"),
        }
    }

    #[test]
    fn there_is_one_server_and_the_other_learns_who_it_is() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::of(home.path());
        assert_eq!(holder(&place), None);
        let held = taken(&place);
        assert_eq!(std::fs::metadata(place.folder()).unwrap().mode() & 0o777, 0o700);
        assert!(matches!(Held::take(&place, &note()).unwrap(), Taken::Theirs(theirs) if theirs == note()));
        assert_eq!(holder(&place), Some(note()));
        drop(held);
        assert_eq!(holder(&place), None);
        drop(taken(&place));
    }

    #[test]
    fn what_a_dead_server_left_in_its_lock_says_how_it_was_started_and_holds_nobody_up() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::of(home.path());
        place.prepare(&place.server_lock()).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = Note { pid: child.id(), ..note() };
        std::fs::write(place.server_lock(), serde_json::to_string(&dead).unwrap()).unwrap();
        assert_eq!((holder(&place), last_args(&place)), (None, dead.args));
        drop(taken(&place));
        assert_eq!(last_args(&place), Vec::<String>::new());
        for odd in ["", "{", "{\"pid\": -1}", "[]", "\0"] {
            std::fs::write(place.server_lock(), odd).unwrap();
            assert_eq!(holder(&place), None, "{odd:?}");
            drop(taken(&place));
        }
    }

    #[test]
    fn a_folder_that_others_may_write_in_is_refused_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::of(home.path());
        std::fs::create_dir(place.folder()).unwrap();
        for mode in [0o770, 0o707, 0o750] {
            std::fs::set_permissions(place.folder(), std::fs::Permissions::from_mode(mode)).unwrap();
            let Err(Stop::Failed(failure)) = Held::take(&place, &note()) else { panic!("accepted {mode:o}") };
            assert!(failure.message.contains("chmod 700"), "{}", failure.message);
        }
        assert!(!place.server_lock().exists());
    }
}

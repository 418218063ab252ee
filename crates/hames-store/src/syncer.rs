//! Puts committed transactions on the disk while the run goes on.
//!
//! A commit is in the write-ahead file when it returns; only the loss of power can still take it. At the end of a step
//! nobody has to wait for the disk, because the step's tools and the next answer take their own time: the sync begins
//! there and is waited for at the end of the next step. So a power cut costs at most the current step and one that ended
//! a moment before, and a step waits for no disk that keeps up with it.
//!
//! Where a person's message is acknowledged and where a run ends, the one who appends waits. The writer does not: it goes
//! on with other sessions, and whoever commits while the disk is busy is served by the next sync, however many they are.
//!
//! The file is opened anew for every sync: a repair may have put another in its place. SQLite holds its locks on other
//! files, so closing this one drops none.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use hames_protocol::LogError;
use tokio::sync::watch;

use crate::home::with_suffix;

/// How far syncing has come: the number of the last one that ended, and how it ended.
type Progress = (u64, Result<(), LogError>);

/// Puts what is committed on the disk.
type Sync = Arc<dyn Fn() -> Result<(), LogError> + Send + std::marker::Sync>;

/// The thread that syncs, started with the first sync.
pub(crate) struct Syncer {
    sync: Sync,
    begun: u64,
    thread: Option<Sender<u64>>,
    progress: watch::Sender<Progress>,
}

/// Waits for the syncs begun so far.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    begun: u64,
    progress: watch::Receiver<Progress>,
}

impl Syncer {
    /// For the write-ahead file of a database.
    pub(crate) fn new(database: &Path) -> Syncer {
        let wal = Wal { path: with_suffix(database, "-wal"), named: Mutex::default() };
        Syncer::by(Arc::new(move || wal.sync()))
    }

    /// Syncs in another way.
    pub(crate) fn by(sync: Sync) -> Syncer {
        Syncer { sync, begun: 0, thread: None, progress: watch::channel((0, Ok(()))).0 }
    }

    /// Begins a sync of everything committed so far.
    pub(crate) fn begin(&mut self) {
        self.begun += 1;
        let progress = self.progress.clone();
        let thread = self.thread.get_or_insert_with(|| start(self.sync.clone(), progress));
        if thread.send(self.begun).is_err() {
            // Without a thread it is done here.
            report(&self.progress, self.begun, (self.sync)());
            self.thread = None;
        }
    }

    /// What has been begun.
    pub(crate) fn pending(&self) -> Pending {
        Pending { begun: self.begun, progress: self.progress.subscribe() }
    }
}

impl fmt::Debug for Syncer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syncer").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl Pending {
    /// Returns when it is on the disk.
    pub(crate) async fn done(mut self) -> Result<(), LogError> {
        match self.progress.wait_for(|(ended, _)| *ended >= self.begun).await {
            Ok(progress) => progress.1.clone(),
            Err(_) => Err(LogError::Io("the session database was closed before it was on the disk".into())),
        }
    }
}

fn start(sync: Sync, progress: watch::Sender<Progress>) -> Sender<u64> {
    let (sender, orders) = channel();
    // A thread that cannot be started leaves a channel nobody listens to, which `begin` notices.
    let _ = std::thread::Builder::new().name("hames-sync".into()).spawn(move || serve(&sync, &orders, &progress));
    sender
}

fn serve(sync: &Sync, orders: &Receiver<u64>, progress: &watch::Sender<Progress>) {
    while let Ok(first) = orders.recv() {
        // One sync covers whatever was committed before it.
        let latest = orders.try_iter().last().unwrap_or(first);
        report(progress, latest, sync());
    }
}

/// A failure stays: what a failed sync was to put on the disk may be gone from the cache when the next one succeeds.
fn report(progress: &watch::Sender<Progress>, ended: u64, outcome: Result<(), LogError>) {
    progress.send_modify(|(latest, standing)| {
        *latest = ended;
        if standing.is_ok() {
            *standing = outcome;
        }
    });
}

/// The write-ahead file.
struct Wal {
    path: PathBuf,
    /// Device and inode of the file whose name is on the disk too.
    named: Mutex<Option<(u64, u64)>>,
}

impl Wal {
    fn sync(&self) -> Result<(), LogError> {
        match self.try_sync() {
            Ok(()) => Ok(()),
            // Copied back and removed: what was in it is in the database, which SQLite has synced.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                Err(LogError::NoSpace(self.path.display().to_string()))
            }
            Err(error) => Err(LogError::Io(format!("{} cannot be put on the disk: {error}", self.path.display()))),
        }
    }

    fn try_sync(&self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        file.sync_data()?;
        let about = file.metadata()?;
        let identity = Some((about.dev(), about.ino()));
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if *named != identity
            && let Some(folder) = self.path.parent()
        {
            // A file that was just made can lose its name with the power, and with it all that was synced.
            File::open(folder)?.sync_all()?;
            *named = identity;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_sync_that_was_begun_is_waited_for_and_a_missing_file_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("x.db");
        let mut syncer = Syncer::new(&database);
        syncer.pending().done().await.unwrap();
        syncer.begin();
        syncer.pending().done().await.unwrap();
        std::fs::write(dir.path().join("x.db-wal"), "frames").unwrap();
        for _ in 0..20 {
            syncer.begin();
        }
        let pending = syncer.pending();
        pending.done().await.unwrap();
        assert_eq!(syncer.progress.borrow().0, 21);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_synced_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("x.db");
        std::os::unix::fs::symlink(dir.path().join("x.db-wal"), dir.path().join("x.db-wal")).unwrap();
        let mut syncer = Syncer::new(&database);
        syncer.begin();
        assert!(matches!(syncer.pending().done().await, Err(LogError::Io(_))));
    }
}

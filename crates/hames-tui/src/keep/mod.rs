//! What was written, in files of the home: drafts that outlive the program, what was sent before, and what was opened.
//!
//! How to think of it: one thread that has the disk, so that no key ever waits for it. It is told what there is to keep (the
//! whole of it, at most once a second) and asked for what is there; files are `drafts`, `history` and `folds`. Whoever types secrets
//! finds them again here, so the files are readable by nobody else.
//!
//! It does not decide when: that is the shell's.

mod drafts;
mod folds;
mod history;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::mpsc::Sender;

use crate::prompt::Unsaved;
use crate::{Input, Recalled, SavedFolds, Spot};
use drafts::Drafts;
use folds::Folds;
use history::History;

/// Bytes of one draft, or of one message in the history, that are kept.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What the thread is to do.
enum Job {
    Save(Unsaved),
    Recall { spot: Spot, folder: String },
}

/// The thread that keeps what was written.
pub(crate) struct Keeper {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Keeps what this terminal writes in a folder, which is made when it is needed. `seed` names this terminal alone;
    /// answers go to `told`.
    pub(crate) fn start(folder: PathBuf, seed: String, told: Sender<Input>) -> io::Result<Self> {
        let (jobs, taken) = mpsc::channel();
        let work = move || {
            let (mut drafts, history) = (Drafts::new(&folder, &seed), History::new(&folder));
            let mut folds = Folds::new(&folder);
            let mut said = String::new();
            let mut say = |error: io::Error| {
                let text = format!("What you write cannot be kept in {}: {error}", folder.display());
                // Once: it is tried again each time.
                if text != said && told.blocking_send(Input::NotKept(text.clone())).is_ok() {
                    said = text;
                }
            };
            while let Ok(job) = taken.recv() {
                match job {
                    Job::Save(unsaved) => {
                        let saved = history.append(&unsaved.sent);
                        // What was sent is in the history before its draft goes.
                        saved.and_then(|()| drafts.save(&unsaved.drafts, unsaved.recalled)).unwrap_or_else(&mut say);
                        folds.save(&unsaved.folds).unwrap_or_else(&mut say);
                    }
                    Job::Recall { spot, folder } => {
                        let found = drafts.recall(&spot).unwrap_or_else(|error| {
                            say(error);
                            Vec::new()
                        });
                        let sent = history.read(&folder);
                        let folds = match &spot {
                            Spot::Session(session) => folds.read(session),
                            Spot::Folder(_) => SavedFolds::default(),
                        };
                        let recalled = Recalled { spot, folder, drafts: found, sent, folds };
                        let _ = told.blocking_send(Input::Recalled(Box::new(recalled)));
                    }
                }
            }
            drafts.leave();
        };
        let thread = std::thread::Builder::new().name("keeper".into()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Keeps this, instead of whatever this terminal kept before.
    pub(crate) fn save(&self, unsaved: Unsaved) {
        self.give(Job::Save(unsaved));
    }

    /// Asks for what others left for a spot.
    pub(crate) fn recall(&self, spot: Spot, folder: String) {
        self.give(Job::Recall { spot, folder });
    }

    fn give(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread ends only with this.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Keeper {
    /// Returns when everything is kept.
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A short name for something of any length.
fn name_of(what: &str, text: &str) -> String {
    blake3::hash(format!("{what}\0{text}").as_bytes()).to_hex()[..24].to_owned()
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The file of a lock, made where there is none.
fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Puts a file in its place at once and whole: whoever reads finds the old one or the new one.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests;

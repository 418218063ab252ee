//! What was opened and closed in conversations: a small file for each session, of whoever changed it last.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hames_protocol::SessionId;

use super::{make_folder, name_of, write_whole};
use crate::SavedFolds;

/// Files there are at most; of more the oldest go.
const MAX_FILES: usize = 500;
/// Bytes of one that are read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The folds of all sessions.
pub(super) struct Folds {
    folder: PathBuf,
    /// What this terminal knows to be in the files.
    kept: HashMap<SessionId, SavedFolds>,
}

impl Folds {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.join("folds"), kept: HashMap::new() }
    }

    fn path(&self, session: &SessionId) -> PathBuf {
        self.folder.join(format!("{}.json", name_of("session", session.as_str())))
    }

    /// Writes what is another one than before.
    pub(super) fn save(&mut self, all: &BTreeMap<SessionId, SavedFolds>) -> io::Result<()> {
        for (session, folds) in all {
            let known = self.kept.get(session);
            if known == Some(folds) || known.is_none() && *folds == SavedFolds::default() {
                continue;
            }
            make_folder(&self.folder)?;
            write_whole(&self.path(session), &serde_json::to_vec(folds)?)?;
            if known.is_none() {
                self.clear_out();
            }
            self.kept.insert(session.clone(), folds.clone());
        }
        Ok(())
    }

    /// What the file of a session says; nothing where there is none, or a damaged one.
    pub(super) fn read(&mut self, session: &SessionId) -> SavedFolds {
        let mut bytes = Vec::new();
        let read = File::open(self.path(session)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
        let folds: SavedFolds = read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        self.kept.insert(session.clone(), folds.clone());
        folds
    }

    fn clear_out(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries.filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path()))).collect();
        all.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
        for (_, path) in all.iter().skip(MAX_FILES) {
            // One that cannot be removed costs a few bytes.
            let _ = fs::remove_file(path);
        }
    }
}

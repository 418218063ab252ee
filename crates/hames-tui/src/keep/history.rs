//! What was sent, in a file for each folder: a line for each message, the newest last. All terminals write behind each other.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{lock_file, make_folder, name_of, write_whole};
use crate::SavedText;
use crate::prompt::history::{MAX_BYTES, MAX_ENTRIES};

/// A file may have twice what is read of it; then it is written anew.
const MAX_FILE: u64 = 2 * MAX_BYTES as u64;

/// The histories of all folders.
pub(super) struct History {
    folder: PathBuf,
}

impl History {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.join("history") }
    }

    fn path(&self, folder: &str) -> PathBuf {
        self.folder.join(format!("{}.jsonl", name_of("history", folder)))
    }

    /// Puts messages behind those that are there.
    pub(super) fn append(&self, sent: &[(String, SavedText)]) -> io::Result<()> {
        if sent.is_empty() {
            return Ok(());
        }
        make_folder(&self.folder)?;
        // Held for as long as a few lines take.
        let lock = lock_file(&self.folder.join("lock"))?;
        lock.lock()?;
        for (folder, text) in sent {
            let mut line = serde_json::to_vec(text)?;
            if line.len() > MAX_BYTES {
                continue;
            }
            line.push(b'\n');
            let path = self.path(folder);
            let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
            file.write_all(&line)?;
            if file.metadata()?.len() > MAX_FILE || self.lines(folder) > 2 * MAX_ENTRIES {
                let mut whole = Vec::new();
                for text in self.read(folder) {
                    serde_json::to_writer(&mut whole, &text)?;
                    whole.push(b'\n');
                }
                write_whole(&path, &whole)?;
            }
        }
        Ok(())
    }

    /// The newest messages of a folder, the oldest first. What is damaged is left out.
    pub(super) fn read(&self, folder: &str) -> Vec<SavedText> {
        let text = self.tail(folder);
        let lines: Vec<&str> = text.lines().collect();
        let newest = lines[lines.len().saturating_sub(MAX_ENTRIES)..].iter();
        newest.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn lines(&self, folder: &str) -> usize {
        fs::read(self.path(folder)).map_or(0, |bytes| memchr::memchr_iter(b'\n', &bytes).count())
    }

    /// The end of the file, from a line's beginning.
    fn tail(&self, folder: &str) -> String {
        let read = || -> io::Result<String> {
            let mut file = fs::File::open(self.path(folder))?;
            let from = file.metadata()?.len().saturating_sub(MAX_BYTES as u64);
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(MAX_FILE).read_to_end(&mut bytes)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(match text.split_once('\n') {
                Some((_, rest)) if from > 0 => rest.to_owned(),
                _ => text,
            })
        };
        read().unwrap_or_default()
    }
}

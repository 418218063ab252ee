//! What is proposed in Analyze, and what becomes of it.

mod command;
mod cut;
mod long;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything below a folder, folders and links too: kind, rights and content; times where they are wanted.
fn picture(folder: &Path, times: bool) -> BTreeMap<PathBuf, String> {
    let mut out = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        let meta = at.symlink_metadata().unwrap();
        let mut line = format!("{:o}", meta.mode());
        if meta.is_dir() {
            open.extend(std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
        } else if meta.is_symlink() {
            write!(line, " -> {}", at.read_link().unwrap().display()).unwrap();
        } else {
            write!(line, " {}", std::fs::read(&at).unwrap().escape_ascii()).unwrap();
        }
        if times {
            write!(line, " {}.{} {}.{}", meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()).unwrap();
        }
        out.insert(at.strip_prefix(folder).unwrap().to_owned(), line);
    }
    out
}

//! What ignore files say.
//!
//! `.ignore` goes before `.gitignore`, which goes before `.git/info/exclude`; of each kind the file nearest to an entry
//! decides. What Git is told above a repository does not count in it. Pure but for the content it is handed: who reads
//! the files, and how, is the caller's concern.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Bytes of an ignore file that are read: a larger one is no list of patterns.
pub(super) const MAX_RULES: u64 = 1024 * 1024;

/// The files, in the order in which they decide.
const FILES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// What is kept of version control in a folder where a repository begins.
const REPOSITORY: [&str; 2] = [".git", ".jj"];

/// The rules of one folder.
pub(super) struct Rules {
    /// In the order of [`FILES`].
    files: [Option<Gitignore>; 3],
    /// A repository begins here.
    is_repository: bool,
}

impl Rules {
    /// The rules of a folder, none where it has none. `has` says whether a name is in it, `content` reads a file of it.
    pub(super) fn read(
        folder: &Path,
        has: impl Fn(&str) -> bool,
        content: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let is_repository = begins_repository(&has);
        let files = FILES.map(|name| {
            let first = name.split('/').next().unwrap_or(name);
            if has(first) { parsed(folder, &content(name)?) } else { None }
        });
        (is_repository || files.iter().any(Option::is_some)).then_some(Self { files, is_repository })
    }
}

/// Whether a repository begins in a folder that has these names.
pub(super) fn begins_repository(has: impl Fn(&str) -> bool) -> bool {
    REPOSITORY.iter().any(|name| has(name))
}

fn parsed(folder: &Path, content: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    let text = String::from_utf8_lossy(content);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // A line that is no pattern hides nothing; the others still do.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// Whether an entry is hidden, by rules given from the nearest to the topmost. `in_repository`: where repositories begin
/// makes a difference.
pub(super) fn hide<'r>(rules: impl Iterator<Item = &'r Rules>, in_repository: bool, path: &Path, is_dir: bool) -> bool {
    let mut said: [Option<bool>; 3] = [None; 3];
    let mut above_repository = false;
    for rules in rules {
        for (kind, file) in rules.files.iter().enumerate() {
            let counts = kind == 0 || !above_repository;
            if let Some(file) = file.as_ref().filter(|_| counts && said[kind].is_none()) {
                said[kind] = match file.matched(path, is_dir) {
                    Match::None => None,
                    Match::Ignore(_) => Some(true),
                    Match::Whitelist(_) => Some(false),
                };
            }
        }
        above_repository |= in_repository && rules.is_repository;
    }
    said.into_iter().flatten().next().unwrap_or(false)
}

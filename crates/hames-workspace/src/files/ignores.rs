//! What ignore files hide, read through any filesystem.
//!
//! The rules are those of [`walk`](super::walk) over the local one: `.ignore` before `.gitignore` before
//! `.git/info/exclude`, nearer files before those above. In a repository they come from all of it, elsewhere from the
//! root downwards, for a walk outside from where that begins, and never from above. Each folder's files are read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hames_tools::{FileKind, FsPath, FsProvider};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Where version control keeps its own files: of no use to a model, and large.
pub(super) const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Bytes of an ignore file that are read: a larger one is no list of patterns.
const MAX_RULES: u64 = 1024 * 1024;

/// The rules of one filesystem, as far as they were needed.
pub(super) struct Ignores<'f> {
    fs: &'f dyn FsProvider,
    /// The topmost folder whose rules count.
    top: PathBuf,
    folders: HashMap<PathBuf, Rc<Rules>>,
}

/// The rules of one folder.
struct Rules {
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    /// A repository begins here: what Git is told above does not count below.
    is_repository: bool,
}

impl<'f> Ignores<'f> {
    /// The rules for a walk from a folder.
    pub(super) fn new(fs: &'f dyn FsProvider, from: &Path) -> Self {
        let root = fs.root();
        let is_repository = |folder: &&Path| [".git", ".jj"].iter().any(|name| stat(fs, &folder.join(name)).is_some());
        // `.ignore` files count above the repository too, so in one everything above does.
        let top = if root.ancestors().any(|folder| is_repository(&folder)) {
            Path::new("/")
        } else if from.starts_with(root) {
            root
        } else {
            from
        };
        Self { fs, top: top.to_owned(), folders: HashMap::new() }
    }

    /// Whether an entry is hidden, those above it left aside.
    pub(super) fn hide(&mut self, path: &Path, is_dir: bool) -> bool {
        let mut found: [Option<bool>; 3] = [None; 3];
        let mut above_repository = false;
        let top = self.top.clone();
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&top)) {
            let rules = self.of(folder);
            let kinds = [Some(&rules.ignore), Some(&rules.gitignore), Some(&rules.exclude)];
            for (kind, rules) in kinds.into_iter().enumerate() {
                let counts = kind == 0 || !above_repository;
                if let Some(rules) = rules.filter(|_| counts && found[kind].is_none()) {
                    found[kind] = match rules.matched(path, is_dir) {
                        Match::None => None,
                        Match::Ignore(_) => Some(true),
                        Match::Whitelist(_) => Some(false),
                    };
                }
            }
            above_repository |= rules.is_repository;
        }
        found.into_iter().flatten().next().unwrap_or(false)
    }

    fn of(&mut self, folder: &Path) -> Rc<Rules> {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let rules = |name: &str| rules(self.fs, folder, &folder.join(name));
        let is_repository = stat(self.fs, &folder.join(".git")).is_some();
        let read = Rc::new(Rules {
            ignore: rules(".ignore"),
            gitignore: rules(".gitignore"),
            exclude: if is_repository { rules(".git/info/exclude") } else { Gitignore::empty() },
            is_repository,
        });
        self.folders.insert(folder.to_owned(), read.clone());
        read
    }
}

/// The path of an entry without links on its way.
pub(super) fn fs_path(fs: &dyn FsProvider, abs: PathBuf) -> FsPath {
    let root = fs.root();
    let shown = match abs.strip_prefix(root) {
        Ok(relative) if relative.as_os_str().is_empty() => ".".into(),
        Ok(relative) => relative.to_string_lossy().into_owned(),
        Err(_) => abs.to_string_lossy().into_owned(),
    };
    FsPath { shown, inside: abs.starts_with(root), identity: None, abs }
}

fn stat(fs: &dyn FsProvider, path: &Path) -> Option<FileKind> {
    fs.stat(&fs_path(fs, path.to_owned())).ok().map(|stat| stat.kind)
}

/// The rules of one file; none where it cannot be read.
fn rules(fs: &dyn FsProvider, folder: &Path, file: &Path) -> Gitignore {
    let content = match stat(fs, file) {
        Some(FileKind::File) => fs.read(&fs_path(fs, file.to_owned()), MAX_RULES).ok(),
        Some(FileKind::Link) => {
            file.to_str().and_then(|text| fs.resolve(text).ok()).and_then(|path| fs.read(&path, MAX_RULES).ok())
        }
        _ => None,
    };
    let Some(content) = content else { return Gitignore::empty() };
    let mut builder = GitignoreBuilder::new(folder);
    let text = String::from_utf8_lossy(&content);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // A line that is no pattern hides nothing; the others still do.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

//! What ignore files hide, read through any filesystem.
//!
//! The rules are those of [`rules`], as for [`walk`](super::walk) over the local one. In a repository they come from all
//! of it, elsewhere from the root downwards, for a walk outside from where that begins, and never from above. Each
//! folder's files are read once, and only when something below it is asked about.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hames_tools::{FileKind, FsPath, FsProvider};

use super::rules::{self, MAX_RULES, Rules};

/// The rules of one filesystem, as far as they were needed.
pub(super) struct Ignores<'f> {
    fs: &'f dyn FsProvider,
    /// The topmost folder whose rules count.
    top: PathBuf,
    in_repository: bool,
    /// Those of the folders that were looked at; most have none.
    folders: HashMap<PathBuf, Option<Rc<Rules>>>,
}

impl<'f> Ignores<'f> {
    /// The rules for a walk from a folder.
    pub(super) fn new(fs: &'f dyn FsProvider, from: &Path) -> Self {
        let root = fs.root();
        let begins = |folder: &Path| rules::begins_repository(|name| stat(fs, &folder.join(name)).is_some());
        let in_repository = root.ancestors().any(begins);
        // `.ignore` files count above the repository too, so in one everything above does.
        let top = match in_repository {
            true => Path::new("/"),
            false if from.starts_with(root) => root,
            false => from,
        };
        Self { fs, top: top.to_owned(), in_repository, folders: HashMap::new() }
    }

    /// Whether an entry is hidden, those above it left aside.
    pub(super) fn hide(&mut self, path: &Path, is_dir: bool) -> bool {
        let top = self.top.clone();
        let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&top));
        let rules: Vec<_> = above.filter_map(|folder| self.of(folder)).collect();
        rules::hide(rules.iter().map(Rc::as_ref), self.in_repository, path, is_dir)
    }

    fn of(&mut self, folder: &Path) -> Option<Rc<Rules>> {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let has = |name: &str| stat(self.fs, &folder.join(name)).is_some();
        let read = Rules::read(folder, has, |name| content(self.fs, &folder.join(name))).map(Rc::new);
        self.folders.insert(folder.to_owned(), read.clone());
        read
    }
}

fn stat(fs: &dyn FsProvider, path: &Path) -> Option<FileKind> {
    fs.stat(&FsPath::new(fs.root(), path.to_owned(), None)).ok().map(|stat| stat.kind)
}

/// The content of an ignore file; none where it cannot be read, or is a link that leads out of the root.
fn content(fs: &dyn FsProvider, file: &Path) -> Option<Vec<u8>> {
    let path = match stat(fs, file)? {
        FileKind::Link => fs.resolve(file.to_str()?).ok().filter(|led_to| led_to.inside)?,
        _ => FsPath::new(fs.root(), file.to_owned(), None),
    };
    fs.read(&path, MAX_RULES).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::local::{LocalFs, LocalFsOptions};
    use super::*;

    #[test]
    fn a_linked_ignore_file_counts_only_where_it_leads_inside() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("list"), "hidden\n").unwrap();
        for (target, hides) in [("rules/list", true), ("../list", false), ("../missing", false), ("rules", false)] {
            let root = scratch.path().join("w");
            std::fs::create_dir_all(root.join("rules")).unwrap();
            std::fs::write(root.join("rules/list"), "hidden\n").unwrap();
            symlink(target, root.join(".ignore")).unwrap();
            let fs = LocalFs::new(&root, LocalFsOptions::default()).unwrap();
            let root = fs.root().to_owned();
            assert_eq!(Ignores::new(&fs, &root).hide(&root.join("hidden"), false), hides, "{target}");
            std::fs::remove_file(root.join(".ignore")).unwrap();
        }
    }
}

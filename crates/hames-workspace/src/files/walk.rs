//! Visiting everything below a folder, as ignore files have it.
//!
//! Every folder is opened beneath the anchor and read through that handle, so a folder that is swapped for a link during
//! the walk shows nothing from elsewhere.
//!
//! Rules of ignore files hold whatever the caller filters by. They come from the whole repository where the root lies
//! in one; elsewhere, and for a rooted filesystem, from the root downwards and never from above it. They are read like
//! any other file: one that is a pipe, a device or a link that leads out of the root is none. A person's global ignore
//! file is not read, because that would mean reading the environment; neither is that of the repository which a linked
//! worktree belongs to.
//!
//! A folder's entries are held until they were visited, the folder itself is not: however deep a tree is, one handle is
//! open.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use hames_tools::{FileKind, FsError, FsPath, FsProvider, VERSION_CONTROL, WalkEntry, WalkOptions};

use super::denied::DeniedNow;
use super::local::{LocalFs, wrong_kind};
use super::rules::{self, MAX_RULES, Rules};
use super::stage;
use super::sys::{self, Meta};

pub(super) fn walk(
    fs: &LocalFs,
    from: &FsPath,
    meta: &Meta,
    denied: &DeniedNow,
    options: &WalkOptions,
    visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
) -> Result<(), FsError> {
    match meta.kind {
        FileKind::Dir => {}
        FileKind::File => {
            let _ = visit(entry(from.clone(), meta));
            return Ok(());
        }
        kind => return Err(wrong_kind(&from.shown, kind, "a file or folder")),
    }
    let mut walk = Walk::new(fs, denied, from, options);
    let first = walk.enter(from).map_err(|error| fs.failed(from, error))?;
    // The folders on the way to where the walk is.
    let mut levels = vec![first];
    while let Some(level) = levels.last_mut() {
        let Some((path, meta)) = level.entries.next() else {
            walk.rules.truncate(level.rules_above);
            levels.pop();
            continue;
        };
        let is_entered = meta.kind == FileKind::Dir && options.max_depth.is_none_or(|most| levels.len() <= most);
        let seen = walk.seen(path, meta);
        let folder = is_entered.then(|| seen.path.clone());
        if visit(seen).is_break() {
            break;
        }
        // A folder that cannot be read is passed over: the rest is still worth having.
        levels.extend(folder.and_then(|folder| walk.enter(&folder).ok()));
    }
    Ok(())
}

/// A folder the walk is in.
struct Level {
    /// What is still to be visited.
    entries: std::vec::IntoIter<(PathBuf, Meta)>,
    /// How many folders above have rules.
    rules_above: usize,
}

struct Walk<'a> {
    fs: &'a LocalFs,
    denied: &'a DeniedNow,
    /// Whether ignore files count.
    heed: bool,
    in_repository: bool,
    /// The rules that hold where the walk is, the nearest last.
    rules: Vec<Rules>,
}

impl<'a> Walk<'a> {
    fn new(fs: &'a LocalFs, denied: &'a DeniedNow, from: &FsPath, options: &WalkOptions) -> Self {
        let exists = |path: PathBuf| fs.stat(&fs.fs_path(path, None)).is_ok();
        let begins = |folder: &Path| rules::begins_repository(|name| exists(folder.join(name)));
        let in_repository = !options.no_ignore && fs.root().ancestors().any(begins);
        let mut walk = Self { fs, denied, heed: !options.no_ignore, in_repository, rules: Vec::new() };
        if walk.heed {
            // Rules of `.ignore` count from above the repository too.
            let counts = |folder: &&Path| in_repository || folder.starts_with(fs.root());
            let above: Vec<&Path> = from.abs.ancestors().skip(1).take_while(counts).collect();
            for folder in above.into_iter().rev() {
                let rules = Rules::read(folder, |name| exists(folder.join(name)), |name| walk.content(folder, name));
                walk.rules.extend(rules);
            }
        }
        walk
    }

    /// The content of an ignore file.
    fn content(&self, folder: &Path, name: &str) -> Option<Vec<u8>> {
        let mut file = self.fs.fs_path(folder.join(name), None);
        if self.fs.stat(&file).ok()?.kind == FileKind::Link {
            file = self.fs.resolve(file.abs.to_str()?).ok().filter(|led_to| led_to.inside)?;
        }
        self.fs.read(&file, MAX_RULES).ok()
    }

    /// Reads a folder and its rules: what is to be visited in it, by name.
    fn enter(&mut self, folder: &FsPath) -> io::Result<Level> {
        let opened = self.fs.folder(folder)?;
        let mut names = sys::entries(&opened)?;
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let rules_above = self.rules.len();
        if self.heed {
            let has = |name: &str| names.binary_search_by(|(other, _)| other.as_os_str().cmp(OsStr::new(name))).is_ok();
            let rules = Rules::read(&folder.abs, has, |name| self.content(&folder.abs, name));
            self.rules.extend(rules);
        }
        let visited = names.into_iter().filter_map(|(name, kind)| {
            if is_hidden(&name) {
                return None;
            }
            let path = folder.abs.join(&name);
            // Gone since its name was read: not in the folder any more.
            let look = || sys::stat_at(&opened, &name).ok();
            let mut meta = None;
            let is_dir = match kind {
                Some(kind) => kind == FileKind::Dir,
                None => meta.insert(look()?).kind == FileKind::Dir,
            };
            if self.denied.covers_written(&path)
                || rules::hide(self.rules.iter().rev(), self.in_repository, &path, is_dir)
            {
                return None;
            }
            let meta = meta.or_else(look)?;
            (meta.kind != FileKind::Dir || !self.denied.is(meta.identity)).then_some((path, meta))
        });
        Ok(Level { entries: visited.collect::<Vec<_>>().into_iter(), rules_above })
    }

    /// What is said of an entry. A link to a file counts as that file, under the link's name.
    fn seen(&self, found: PathBuf, meta: Meta) -> WalkEntry {
        let mut path = self.fs.fs_path(found, Some(meta.identity));
        if meta.kind == FileKind::Link
            && let Some((target, meta)) = self.fs.follow(&path.abs, self.denied)
            && meta.kind == FileKind::File
        {
            path.abs = target;
            path.identity = Some(meta.identity);
            return entry(path, &meta);
        }
        entry(path, &meta)
    }
}

/// Whether a name is hidden from every walk: version control's own, and what is staged.
fn is_hidden(name: &OsStr) -> bool {
    VERSION_CONTROL.iter().any(|hidden| name == *hidden) || stage::is_staged(name)
}

fn entry(path: FsPath, meta: &Meta) -> WalkEntry {
    let size = if meta.kind == FileKind::File { meta.size } else { 0 };
    WalkEntry { path, kind: meta.kind, size, modified_ns: meta.modified_ns }
}

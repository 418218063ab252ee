//! Visiting everything below a folder, as ignore files have it.
//!
//! Rules of ignore files hold whatever the caller filters by. They come from the whole repository where the root lies
//! in one; elsewhere from the root downwards, and never from above it. A person's global ignore file is not read: that
//! would mean reading the environment.
//!
//! Names are found by path, so a folder that is swapped for a link during the walk may show names from elsewhere; what
//! is behind them cannot be opened.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hames_tools::{FileKind, FsError, FsPath, WalkEntry, WalkOptions};
use ignore::WalkBuilder;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::denied::DeniedNow;
use super::ignores::VERSION_CONTROL;
use super::local::{LocalFs, wrong_kind};
use super::stage;
use super::sys::{self, Meta};

pub(super) fn walk(
    fs: &LocalFs,
    from: &FsPath,
    meta: &Meta,
    denied: Arc<DeniedNow>,
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
    for found in walker(fs, from, denied.clone(), options).build() {
        // A folder that cannot be read is passed over: the rest is still worth having.
        let Ok(found) = found else { continue };
        if found.depth() == 0 {
            continue;
        }
        let Some(seen) = look(fs, found.into_path(), &denied) else { continue };
        if visit(seen).is_break() {
            break;
        }
    }
    Ok(())
}

fn walker(fs: &LocalFs, from: &FsPath, denied: Arc<DeniedNow>, options: &WalkOptions) -> WalkBuilder {
    use hames_tools::FsProvider;
    let root = fs.root();
    let in_repository = root.ancestors().any(|folder| [".git", ".jj"].iter().any(|name| folder.join(name).exists()));
    let heed = !options.no_ignore;
    let mut builder = WalkBuilder::new(&from.abs);
    builder
        .hidden(false)
        .follow_links(false)
        .ignore(heed)
        .git_ignore(heed)
        .git_exclude(heed)
        .git_global(false)
        .require_git(in_repository)
        .parents(heed && in_repository)
        .max_depth(options.max_depth.map(|depth| depth.saturating_add(1)))
        .sort_by_file_name(OsStr::cmp);
    let above = if heed && !in_repository { rules_above(root, &from.abs) } else { Vec::new() };
    builder.filter_entry(move |entry| {
        let name = entry.file_name();
        if VERSION_CONTROL.iter().any(|hidden| name == *hidden) || stage::is_staged(name) {
            return false;
        }
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        if denied.covers_written(entry.path())
            || (is_dir && sys::stat_path(entry.path()).is_ok_and(|meta| denied.is(meta.identity)))
        {
            return false;
        }
        let rule = above.iter().map(|rules| rules.matched(entry.path(), is_dir)).find(|rule| !rule.is_none());
        !rule.is_some_and(|rule| rule.is_ignore())
    });
    builder
}

/// The rules of the folders from the root down to the one above `from`, the nearest first.
fn rules_above(root: &Path, from: &Path) -> Vec<Gitignore> {
    from.ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(root))
        .flat_map(|folder| [folder.join(".ignore"), folder.join(".gitignore")].map(|file| (folder, file)))
        .filter(|(_, file)| file.is_file())
        .filter_map(|(folder, file)| {
            let mut rules = GitignoreBuilder::new(folder);
            rules.add(file);
            rules.build().ok()
        })
        .collect()
}

/// What a path found by the walk is; nothing for one that is gone.
fn look(fs: &LocalFs, found: PathBuf, denied: &DeniedNow) -> Option<WalkEntry> {
    let meta = sys::stat_path(&found).ok()?;
    let mut path = fs.fs_path(found, Some(meta.identity));
    if meta.kind != FileKind::Link {
        return Some(entry(path, &meta));
    }
    // A link to a file counts as that file, under the link's name; one to a folder is not entered.
    match fs.follow(&path.abs, denied) {
        Some((target, meta)) if meta.kind == FileKind::File => {
            path.abs = target;
            path.identity = Some(meta.identity);
            Some(entry(path, &meta))
        }
        _ => Some(entry(path, &meta)),
    }
}

fn entry(path: FsPath, meta: &Meta) -> WalkEntry {
    let size = if meta.kind == FileKind::File { meta.size } else { 0 };
    WalkEntry { path, kind: meta.kind, size, modified_ns: meta.modified_ns }
}

//! Visiting everything below a folder of a filesystem that can only list, as ignore files have it.
//!
//! Folders come before what they hold, entries by name. Links to files count as those files under the link's name; links
//! to folders are seen and not entered. Version-control folders and staged files are left out.

use std::ffi::OsStr;
use std::ops::ControlFlow;

use hames_tools::{DirEntry, FileKind, FileStat, FsError, FsPath, FsProvider, VERSION_CONTROL, WalkEntry, WalkOptions};

use super::ignores::Ignores;
use super::stage;

/// Walks over `fs` with nothing but its other methods.
pub(super) fn walk(
    fs: &dyn FsProvider,
    from: &FsPath,
    options: &WalkOptions,
    visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
) -> Result<(), FsError> {
    let stat = fs.stat(from)?;
    if stat.kind != FileKind::Dir {
        let _ = visit(seen(from.clone(), &stat));
        return Ok(());
    }
    let mut ignores = (!options.no_ignore).then(|| Ignores::new(fs, &from.abs));
    // The folders that are being looked through, the innermost last.
    let mut open = vec![(from.clone(), fs.list(from)?.into_iter())];
    while let Some((folder, entries)) = open.last_mut() {
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        if VERSION_CONTROL.contains(&entry.name.as_str()) || stage::is_staged(OsStr::new(&entry.name)) {
            continue;
        }
        // Gone, or of a name that cannot be written: left out, as it would be from any listing.
        let Some(found) = look(fs, folder, &entry) else { continue };
        let at = folder.abs.join(&entry.name);
        let is_dir = found.kind == FileKind::Dir;
        if ignores.as_mut().is_some_and(|ignores| ignores.hide(&at, is_dir)) {
            continue;
        }
        let path = found.path.clone();
        if visit(found).is_break() {
            return Ok(());
        }
        let is_near = options.max_depth.is_none_or(|most| open.len() <= most);
        if is_dir
            && is_near
            && let Ok(entries) = fs.list(&path)
        {
            open.push((path, entries.into_iter()));
        }
    }
    Ok(())
}

fn look(fs: &dyn FsProvider, folder: &FsPath, entry: &DirEntry) -> Option<WalkEntry> {
    let path = FsPath::new(fs.root(), folder.abs.join(&entry.name), None);
    let stat = fs.stat(&path).ok()?;
    if stat.kind == FileKind::Link {
        return Some(link(fs, path, stat.modified_ns));
    }
    Some(seen(path, &stat))
}

/// A link as a walk shows it: as the file it leads to within the root, else as itself.
pub(super) fn link(fs: &dyn FsProvider, path: FsPath, modified_ns: u128) -> WalkEntry {
    let target = path.abs.to_str().and_then(|link| fs.resolve(link).ok()).filter(|target| target.inside);
    let file = target.and_then(|target| Some((fs.stat(&target).ok()?, target)));
    match file.filter(|(stat, _)| stat.kind == FileKind::File) {
        Some((stat, target)) => seen(FsPath { abs: target.abs, identity: target.identity, ..path }, &stat),
        None => WalkEntry { path, kind: FileKind::Link, size: 0, modified_ns },
    }
}

pub(super) fn seen(path: FsPath, stat: &FileStat) -> WalkEntry {
    let size = if stat.kind == FileKind::File { stat.size } else { 0 };
    WalkEntry { path, kind: stat.kind, size, modified_ns: stat.modified_ns }
}

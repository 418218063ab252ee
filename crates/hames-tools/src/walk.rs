//! The walk that every filesystem has by itself: folder by folder, with nothing but `list`.

use std::ops::ControlFlow;

use crate::{FileKind, FsError, FsPath, FsProvider, WalkEntry, WalkOptions};

/// Where version control keeps its own files, hidden from every walk: of no use to a model, and large.
pub const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

pub(crate) fn walk<F: FsProvider + ?Sized>(
    fs: &F,
    from: &FsPath,
    options: &WalkOptions,
    visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
) -> Result<(), FsError> {
    let stat = fs.stat(from)?;
    if stat.kind != FileKind::Dir {
        let _ =
            visit(WalkEntry { path: from.clone(), kind: stat.kind, size: stat.size, modified_ns: stat.modified_ns });
        return Ok(());
    }
    // Folders still to be looked into, the next one last.
    let mut waiting = vec![(from.clone(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        // Gone or unreadable below the start: left out, as it would be from any listing.
        let entries = match fs.list(&folder) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(_) => continue,
        };
        let mut below = Vec::new();
        for entry in entries {
            if entry.kind == FileKind::Dir && VERSION_CONTROL.contains(&entry.name.as_str()) {
                continue;
            }
            let shown =
                if folder.shown == "." { entry.name.clone() } else { format!("{}/{}", folder.shown, entry.name) };
            let path = FsPath { abs: folder.abs.join(&entry.name), shown, inside: folder.inside, identity: None };
            let modified_ns = fs.stat(&path).map_or(0, |stat| stat.modified_ns);
            let found = WalkEntry { path: path.clone(), kind: entry.kind, size: entry.size, modified_ns };
            if visit(found).is_break() {
                return Ok(());
            }
            if entry.kind == FileKind::Dir && options.max_depth.is_none_or(|most| depth < most) {
                below.push((path, depth + 1));
            }
        }
        waiting.extend(below.into_iter().rev());
    }
    Ok(())
}

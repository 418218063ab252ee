//! Taking a file, a link or an empty folder away.
//!
//! Nothing is moved aside: the entry is looked at when it is staged, looked at again when the change takes place, and
//! unlinked if it is still that one. A link is never followed, so what it leads to is never touched; a folder goes only
//! if the kernel finds it empty.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use hames_tools::{Expect, FileKind, FsError, FsPath, Staged, StagedChange};
use rustix::io::Errno;

use super::denied::Denied;
use super::local::{fs_error, io_failure, wrong_kind};
use super::stage::{Ground, Spot};
use super::sys::{self, Meta};
use super::write::{hash_of, old, unchanged};

/// A removal that waits.
struct StagedRemove {
    spot: Arc<Spot>,
    old: Meta,
    change: StagedChange,
}

/// Stages the removal of an entry.
pub(super) fn stage(
    ground: &Arc<Ground>,
    relative: &Path,
    path: &FsPath,
    denied: &Denied,
    expect: &Expect,
) -> Result<Box<dyn Staged>, FsError> {
    let (spot, folder) =
        Spot::find(ground, relative, &path.shown, false).map_err(|error| fs_error(&path.shown, error))?;
    let mut meta = sys::stat_at(&folder, &spot.name).map_err(|error| spot.error(error))?;
    let before = match meta.kind {
        FileKind::File => {
            let old = old(&spot, &folder, denied)?;
            meta = old.meta;
            Some(old.content)
        }
        FileKind::Link => Some(sys::read_link(&folder, &spot.name).map_err(|error| spot.error(error))?),
        FileKind::Dir => None,
        FileKind::Other => return Err(wrong_kind(&path.shown, meta.kind, "a file, link or folder")),
    };
    let as_expected = match (expect, &before) {
        (Expect::Hash(hash), Some(before)) => *hash == hash_of(before),
        (Expect::Dir, None) => true,
        _ => false,
    };
    if !as_expected {
        return Err(spot.changed());
    }
    sys::may_change(&folder).map_err(|error| spot.error(error))?;
    let (target, kind, mode) = (path.abs.clone(), meta.kind, meta.mode);
    let change = StagedChange { target, kind, before, after_hash: None, mode, proposed: None };
    Ok(Box::new(StagedRemove { spot, old: meta, change }))
}

impl Staged for StagedRemove {
    fn change(&self) -> &StagedChange {
        &self.change
    }

    fn commit(self: Box<Self>) -> Result<(), FsError> {
        let StagedRemove { spot, old, change } = *self;
        let folder = spot.open()?;
        match (change.kind, change.before.as_deref()) {
            (FileKind::File, before) => unchanged(&spot, &folder, &old, before.unwrap_or_default())?,
            (kind, before) => same_entry(&spot, &folder, kind, &old, before)?,
        }
        let removed = match change.kind {
            FileKind::Dir => sys::remove_folder(&folder, &spot.name),
            _ => sys::remove_file(&folder, &spot.name),
        };
        removed.map_err(|error| failed(&spot, error))
    }
}

/// Checks that a link or a folder is still the one that was looked at.
fn same_entry(spot: &Spot, folder: &OwnedFd, kind: FileKind, old: &Meta, before: Option<&[u8]>) -> Result<(), FsError> {
    let now = sys::stat_at(folder, &spot.name).map_err(|_| spot.changed())?;
    let text = match kind {
        FileKind::Link => Some(sys::read_link(folder, &spot.name).map_err(|_| spot.changed())?),
        _ => None,
    };
    let same = now.kind == kind && now.identity == old.identity && text.as_deref() == before;
    if same { Ok(()) } else { Err(spot.changed()) }
}

fn failed(spot: &Spot, error: io::Error) -> FsError {
    match Errno::from_io_error(&error) {
        Some(Errno::NOTEMPTY | Errno::EXIST) => io_failure(&spot.shown, "the folder is not empty"),
        Some(Errno::BUSY) => io_failure(&spot.shown, "something is mounted there, so it cannot be removed"),
        // It became something else in the instant before.
        Some(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => spot.changed(),
        _ => spot.error(error),
    }
}

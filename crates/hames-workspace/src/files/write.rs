//! Putting new content in a file's place.
//!
//! The content is staged in a file beside the target and brought to disk; when the change takes place that file is
//! renamed over the target: at every moment there is the whole old content or the whole new. Where a rename would lose
//! something (a second name of the file, its owner) or cannot be (a folder without write permission, a mounted file),
//! the content is written over the old one in place; whoever staged it has kept the old one by then, and a failure puts
//! it back.
//!
//! Whoever wrote to the file since the caller looked at it wins: the expectation is checked before anything is staged,
//! and the content again when the change takes place. What is left is the instant between that look and the rename.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use hames_tools::{Expect, FileKind, FsError, FsPath, Staged, StagedChange};
use rustix::io::Errno;

use super::denied::Denied;
use super::local::{io_failure, wrong_kind};
use super::stage::{Ground, Spot, StageError, Temp, rename_cannot_be};
use super::sys::{self, Meta};

/// The largest content that is kept as a before-image: the limit of a blob. A larger file is not overwritten.
pub(super) const MAX_BEFORE: u64 = 256 * 1024 * 1024;

/// A content's hash as it is written everywhere.
pub(crate) fn hash_of(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// New content beside its target.
struct StagedWrite {
    spot: Arc<Spot>,
    change: StagedChange,
    how: How,
}

/// How the content takes its place.
enum How {
    /// Under a name that nothing has.
    New(Temp),
    /// Over the file that was this.
    Rename(Temp, Meta),
    /// Written into the file that was this.
    InPlace(Vec<u8>, Meta),
}

/// Stages a whole content.
pub(super) fn stage(
    ground: &Arc<Ground>,
    relative: &Path,
    path: &FsPath,
    denied: &Denied,
    content: &[u8],
    expect: &Expect,
    mode: Option<u32>,
) -> Result<Box<dyn Staged>, FsError> {
    if relative.file_name().is_none() {
        return Err(wrong_kind(&path.shown, FileKind::Dir, "a file"));
    }
    let is_new = *expect == Expect::Absent;
    let (spot, folder) =
        Spot::find(ground, relative, &path.shown, is_new).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => FsError::Changed { path: path.shown.clone() },
            _ => super::local::fs_error(&path.shown, error),
        })?;
    let old = look(&spot, &folder, denied)?;
    let as_expected = match (expect, &old) {
        (Expect::Absent, None) => true,
        (Expect::Hash(hash), Some(old)) => *hash == hash_of(&old.content),
        _ => false,
    };
    if !as_expected {
        return Err(spot.changed());
    }
    let target = path.abs.clone();
    let after_hash = Some(hash_of(content));
    let (how, before, mode) = match old {
        None => {
            let (temp, mode) = stage_new(&spot, &folder, content, mode)?;
            (How::New(temp), None, mode)
        }
        Some(old) => (stage_over(&spot, &folder, &old, content)?, Some(old.content), old.meta.mode),
    };
    let change = StagedChange { target, kind: FileKind::File, before, after_hash, mode, proposed: None };
    Ok(Box::new(StagedWrite { spot, change, how }))
}

/// The file that is there now.
pub(super) struct Old {
    pub(super) meta: Meta,
    pub(super) content: Vec<u8>,
    file: File,
}

/// The file that is there, with its content, if it may be read and written.
fn look(spot: &Spot, folder: &OwnedFd, denied: &Denied) -> Result<Option<Old>, FsError> {
    let meta = match sys::stat_at(folder, &spot.name) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(spot.error(error)),
    };
    match meta.kind {
        FileKind::File => {}
        FileKind::Link => return Err(spot.error(Errno::LOOP.into())),
        kind => return Err(wrong_kind(&spot.shown, kind, "a file")),
    }
    let old = old(spot, folder, denied)?;
    sys::may_write(folder, &spot.name).map_err(|error| refused(&spot.shown, error))?;
    Ok(Some(old))
}

/// The error for a file that may not be written.
pub(super) fn refused(shown: &str, error: io::Error) -> FsError {
    match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            io_failure(shown, "the file is read-only; make it writable first if it is meant to be changed")
        }
        _ => super::local::fs_error(shown, error),
    }
}

/// The regular file that has the spot's name, with its content.
pub(super) fn old(spot: &Spot, folder: &OwnedFd, denied: &Denied) -> Result<Old, FsError> {
    let file = sys::open_read(folder, &spot.name).map_err(|error| spot.error(error))?;
    let meta = sys::stat(&file).map_err(|error| spot.error(error))?;
    if meta.kind != FileKind::File {
        return Err(wrong_kind(&spot.shown, meta.kind, "a file"));
    }
    if denied.holds(&meta) {
        return Err(FsError::Denied { path: spot.shown.clone() });
    }
    let content = read_all(spot, &file, meta.size)?;
    Ok(Old { meta, content, file })
}

fn read_all(spot: &Spot, file: &File, size: u64) -> Result<Vec<u8>, FsError> {
    let too_large = |size| FsError::TooLarge {
        path: spot.shown.clone(),
        size,
        limit: MAX_BEFORE,
        doing: "overwritten or removed",
        hint: "",
    };
    if size > MAX_BEFORE {
        return Err(too_large(size));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let read = file.take(MAX_BEFORE + 1).read_to_end(&mut content).map_err(|error| spot.error(error))?;
    if read as u64 > MAX_BEFORE { Err(too_large(read as u64)) } else { Ok(content) }
}

/// Checks that the file with the spot's name is still the one that was looked at, with the same content and rights.
pub(super) fn unchanged(spot: &Spot, folder: &OwnedFd, old: &Meta, before: &[u8]) -> Result<(), FsError> {
    let same = |now: &Meta| {
        let of = |meta: &Meta| (meta.kind, meta.identity, meta.size, meta.links, meta.mode, meta.owner);
        of(now) == of(old)
    };
    let now = sys::stat_at(folder, &spot.name).map_err(|_| spot.changed())?;
    if !same(&now) {
        return Err(spot.changed());
    }
    // Times are too coarse to tell by: who writes as much within the same tick leaves them as they were.
    let file = sys::open_read(folder, &spot.name).map_err(|error| spot.error(error))?;
    let now = sys::stat(&file).map_err(|error| spot.error(error))?;
    if same(&now) && read_all(spot, &file, now.size)? == before { Ok(()) } else { Err(spot.changed()) }
}

/// Stages a new file's content; returns its mode bits too.
fn stage_new(spot: &Arc<Spot>, folder: &OwnedFd, content: &[u8], mode: Option<u32>) -> Result<(Temp, u32), FsError> {
    // Where no mode is asked for, the kernel takes the umask off and what is left is the new file's.
    let given = if mode.is_some() { 0o600 } else { 0o666 };
    let mut left = 0;
    let temp = Temp::stage(spot, folder, content, given, |file| {
        if let Some(mode) = mode {
            sys::set_mode(file, mode & 0o7777).map_err(|error| spot.error(error))?;
        }
        left = sys::stat(file).map_err(|error| spot.error(error))?.mode;
        Ok(true)
    });
    match temp.map_err(|error| error.at(spot))? {
        Some(temp) => Ok((temp, left)),
        None => Err(spot.error(Errno::IO.into())),
    }
}

/// Stages content in a file with the old one's rights, or to be written in place where that cannot be.
fn stage_over(spot: &Arc<Spot>, folder: &OwnedFd, old: &Old, content: &[u8]) -> Result<How, FsError> {
    if old.meta.links == 1 {
        let temp = Temp::stage(spot, folder, content, 0o600, |file| become_like(spot, file, old));
        match temp {
            Ok(Some(temp)) => return Ok(How::Rename(temp, old.meta)),
            Ok(None) => {}
            Err(StageError::System(error)) if rename_cannot_be(&error) => {}
            Err(error) => return Err(error.at(spot)),
        }
    }
    // Whether it can be written shows only when it is opened.
    sys::open_write(folder, &spot.name).map_err(|error| spot.error(error))?;
    Ok(How::InPlace(content.to_owned(), old.meta))
}

/// Gives a staged file the old one's owner, attributes and mode bits. Says whether that was possible.
fn become_like(spot: &Spot, staged: &File, old: &Old) -> Result<bool, FsError> {
    let meta = sys::stat(staged).map_err(|error| spot.error(error))?;
    if meta.owner != old.meta.owner && sys::set_owner(staged, old.meta.owner).is_err() {
        return Ok(false);
    }
    sys::copy_attributes(&old.file, staged);
    // Last, because a new owner takes the set-id bits away.
    sys::set_mode(staged, old.meta.mode).map_err(|error| spot.error(error))?;
    Ok(true)
}

impl Staged for StagedWrite {
    fn change(&self) -> &StagedChange {
        &self.change
    }

    fn commit(self: Box<Self>) -> Result<(), FsError> {
        let StagedWrite { spot, change, how } = *self;
        let folder = spot.open()?;
        let before = change.before.as_deref().unwrap_or_default();
        match how {
            How::New(temp) => match temp.become_new(&folder) {
                Err(StageError::System(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(spot.changed());
                }
                placed => placed.map_err(|error| error.at(&spot))?,
            },
            How::Rename(temp, old) => {
                unchanged(&spot, &folder, &old, before)?;
                if let Some(temp) = temp.replace(&folder).map_err(|error| error.at(&spot))? {
                    let content = temp.content(&folder).map_err(|error| error.at(&spot))?;
                    write_over(&spot, &folder, &old, before, &content)?;
                }
            }
            How::InPlace(content, old) => {
                unchanged(&spot, &folder, &old, before)?;
                write_over(&spot, &folder, &old, before, &content)?;
            }
        }
        spot.keep();
        Ok(())
    }
}

/// Writes over the content in place, and puts the old content back where that fails.
fn write_over(spot: &Spot, folder: &OwnedFd, old: &Meta, before: &[u8], content: &[u8]) -> Result<(), FsError> {
    let file = sys::open_write(folder, &spot.name).map_err(|error| spot.error(error))?;
    if sys::stat(&file).map_err(|error| spot.error(error))?.identity != old.identity {
        return Err(spot.changed());
    }
    let written = sys::reserve(&file, content.len() as u64).and_then(|()| overwrite(&file, content));
    // Writing takes the set-id bits away.
    let _ = sys::set_mode(&file, old.mode);
    let Err(error) = written else { return Ok(()) };
    match overwrite(&file, before) {
        Ok(()) => Err(spot.error(error)),
        Err(second) => Err(io_failure(
            &spot.shown,
            format!(
                "writing failed ({error}), and so did putting the old content back ({second}); the old content was recorded and can be restored from there"
            ),
        )),
    }
}

fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

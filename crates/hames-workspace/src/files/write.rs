//! Putting new content in a file's place.
//!
//! The content is staged in a file beside the target, brought to disk, announced to the recorder, and then renamed over
//! the target: at every moment there is the whole old content or the whole new. Where a rename would lose something (a
//! second name of the file, its owner) or cannot be (a folder without write permission, a mounted file), the content is
//! written over the old one in place; the recorder has kept the old one by then, and a failure puts it back.
//!
//! Whoever wrote to the file since the caller looked at it wins: the expectation is checked before anything is staged
//! and again after the recorder has returned.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hames_tools::{Expect, FileKind, FsError, FsPath, StagedChange};
use rustix::io::Errno;
use rustix::process::Pid;

use super::denied::Denied;
use super::local::{fs_error, io_failure, wrong_kind};
use super::sys::{self, Anchor, Meta};

/// The largest content that is kept as a before-image: the limit of a blob. A larger file is not overwritten.
const MAX_BEFORE: u64 = 256 * 1024 * 1024;

/// What is written to.
pub(super) struct Target<'a> {
    pub(super) anchor: &'a Anchor,
    /// From the anchor.
    pub(super) relative: &'a Path,
    pub(super) path: &'a FsPath,
    pub(super) denied: &'a Denied,
}

type Record<'a> = &'a mut dyn FnMut(&StagedChange) -> Result<(), FsError>;

/// Replaces the target's content, or makes it.
pub(super) fn replace(
    target: Target<'_>,
    content: &[u8],
    expect: &Expect,
    record: Record<'_>,
) -> Result<StagedChange, FsError> {
    let shown = &target.path.shown;
    let Some(name) = target.relative.file_name() else { return Err(wrong_kind(shown, FileKind::Dir, "a file")) };
    let parent = target.relative.parent().unwrap_or(Path::new(""));
    let (made, folder) = target.anchor.folder_made(parent);
    let made = MadeFolders { made };
    let folder = folder.map_err(|error| fs_error(shown, error))?;
    let spot = Spot { folder, name, shown };
    let old = spot.look(target.denied)?;
    expected(shown, expect, old.as_ref().map(|old| old.content.as_slice()))?;
    let staged = match old {
        Some(old) => spot.overwrite(target.path, old, content, record)?,
        None => spot.create(target.path, content, record)?,
    };
    made.keep();
    Ok(staged)
}

/// Whether the content is what the caller expects.
fn expected(shown: &str, expect: &Expect, content: Option<&[u8]>) -> Result<(), FsError> {
    let as_expected = match (expect, content) {
        (Expect::Absent, None) => true,
        (Expect::Hash(hash), Some(content)) => *hash == hash_of(content),
        _ => false,
    };
    if as_expected { Ok(()) } else { Err(FsError::Changed { path: shown.to_owned() }) }
}

/// A content's hash as it is written everywhere.
pub(crate) fn hash_of(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// The file that is there now.
struct Old {
    meta: Meta,
    content: Vec<u8>,
    file: File,
}

/// A name in an open folder.
struct Spot<'a> {
    folder: OwnedFd,
    name: &'a OsStr,
    shown: &'a str,
}

impl Spot<'_> {
    fn error(&self, error: io::Error) -> FsError {
        fs_error(self.shown, error)
    }

    /// The file that is there, with its content, if it may be read and written.
    fn look(&self, denied: &Denied) -> Result<Option<Old>, FsError> {
        let meta = match sys::stat_at(&self.folder, self.name) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(error)),
        };
        match meta.kind {
            FileKind::File => {}
            FileKind::Link => return Err(self.error(Errno::LOOP.into())),
            kind => return Err(wrong_kind(self.shown, kind, "a file")),
        }
        let file = sys::open_read(&self.folder, self.name).map_err(|error| self.error(error))?;
        let meta = sys::stat(&file).map_err(|error| self.error(error))?;
        if meta.kind != FileKind::File {
            return Err(wrong_kind(self.shown, meta.kind, "a file"));
        }
        if denied.holds(&meta) {
            return Err(FsError::Denied { path: self.shown.to_owned() });
        }
        sys::may_write(&self.folder, self.name).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::PERM) => {
                io_failure(self.shown, "the file is read-only; make it writable first if it is meant to be changed")
            }
            _ => self.error(error),
        })?;
        let content = self.read_all(&file, meta.size)?;
        Ok(Some(Old { meta, content, file }))
    }

    fn read_all(&self, mut file: &File, size: u64) -> Result<Vec<u8>, FsError> {
        let too_large = |size| FsError::TooLarge {
            path: self.shown.to_owned(),
            size,
            limit: MAX_BEFORE,
            doing: "overwritten",
            hint: "",
        };
        if size > MAX_BEFORE {
            return Err(too_large(size));
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.rewind().map_err(|error| self.error(error))?;
        let read = file.take(MAX_BEFORE + 1).read_to_end(&mut content).map_err(|error| self.error(error))?;
        if read as u64 > MAX_BEFORE { Err(too_large(read as u64)) } else { Ok(content) }
    }

    fn create(&self, path: &FsPath, content: &[u8], record: Record<'_>) -> Result<StagedChange, FsError> {
        // The kernel takes the umask off; what is left is the new file's mode.
        let temp = self.stage(content, 0o666).map_err(|error| self.error(error))?;
        let mode = sys::stat(&temp.file).map_err(|error| self.error(error))?.mode;
        let staged = StagedChange {
            target: path.abs.clone(),
            before: None,
            after_hash: Some(hash_of(content)),
            mode,
            kind: FileKind::File,
            proposed: None,
        };
        record(&staged)?;
        match temp.become_new(self.name) {
            Ok(()) => Ok(staged),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(FsError::Changed { path: self.shown.to_owned() })
            }
            Err(error) => Err(self.error(error)),
        }
    }

    fn overwrite(
        &self,
        path: &FsPath,
        mut old: Old,
        content: &[u8],
        record: Record<'_>,
    ) -> Result<StagedChange, FsError> {
        let temp = if old.meta.links > 1 { None } else { self.stage_like(&old, content)? };
        let in_place = match temp {
            Some(_) => None,
            None => Some(sys::open_write(&self.folder, self.name).map_err(|error| self.error(error))?),
        };
        let before = std::mem::take(&mut old.content);
        let after_hash = Some(hash_of(content));
        let staged = StagedChange {
            target: path.abs.clone(),
            before: Some(before),
            after_hash,
            mode: old.meta.mode,
            kind: FileKind::File,
            proposed: None,
        };
        record(&staged)?;
        let before = staged.before.as_deref().unwrap_or_default();
        self.unchanged(&old, before)?;
        let file = match temp {
            Some(temp) => match temp.replace(self.name) {
                Ok(()) => return Ok(staged),
                Err(error) if rename_cannot_be(&error) => {
                    sys::open_write(&self.folder, self.name).map_err(|error| self.error(error))?
                }
                Err(error) => return Err(self.error(error)),
            },
            None => in_place.ok_or_else(|| self.error(Errno::BADF.into()))?,
        };
        self.write_over(&file, &old.meta, before, content)?;
        Ok(staged)
    }

    /// Stages content in a file with the old one's rights; nothing where it has to be written in place instead.
    fn stage_like(&self, old: &Old, content: &[u8]) -> Result<Option<Temp<'_>>, FsError> {
        let temp = match self.stage(content, 0o600) {
            Ok(temp) => temp,
            Err(error) if rename_cannot_be(&error) => return Ok(None),
            Err(error) => return Err(self.error(error)),
        };
        let staged = sys::stat(&temp.file).map_err(|error| self.error(error))?;
        if staged.owner != old.meta.owner && sys::set_owner(&temp.file, old.meta.owner).is_err() {
            return Ok(None);
        }
        sys::copy_attributes(&old.file, &temp.file);
        // Last, because a new owner takes the set-id bits away.
        sys::set_mode(&temp.file, old.meta.mode).map_err(|error| self.error(error))?;
        Ok(Some(temp))
    }

    /// A new file beside the target that holds the content, on disk.
    fn stage(&self, content: &[u8], mode: u32) -> io::Result<Temp<'_>> {
        let mut temp = Temp::new(&self.folder, mode)?;
        temp.file.write_all(content)?;
        // Without this a crash of the machine could leave a renamed but empty file.
        temp.file.sync_all()?;
        Ok(temp)
    }

    /// Checks that the file is still the one whose content was recorded.
    fn unchanged(&self, old: &Old, before: &[u8]) -> Result<(), FsError> {
        let changed = || FsError::Changed { path: self.shown.to_owned() };
        let now = sys::stat_at(&self.folder, self.name).map_err(|_| changed())?;
        if now.identity != old.meta.identity {
            return Err(changed());
        }
        if sys::untouched(&old.meta, &now) || self.read_all(&old.file, now.size)? == before {
            return Ok(());
        }
        Err(changed())
    }

    /// Writes over the content in place, and puts the old content back where that fails.
    fn write_over(&self, file: &File, old: &Meta, before: &[u8], content: &[u8]) -> Result<(), FsError> {
        let written = sys::reserve(file, content.len() as u64).and_then(|()| overwrite(file, content));
        // Writing takes the set-id bits away.
        let _ = sys::set_mode(file, old.mode);
        let Err(error) = written else { return Ok(()) };
        match overwrite(file, before) {
            Ok(()) => Err(self.error(error)),
            Err(second) => Err(io_failure(
                self.shown,
                format!(
                    "writing failed ({error}), and so did putting the old content back ({second}); the old content was recorded and can be restored from there"
                ),
            )),
        }
    }
}

fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

/// Whether a failure to stage or rename means that the file has to be written in place.
fn rename_cannot_be(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::XDEV | Errno::BUSY | Errno::PERM | Errno::ACCESS | Errno::ROFS))
}

const STAGED_PREFIX: &str = ".hames-";
const STAGED_SUFFIX: &str = ".staged";

/// A name that no other process and no other write of this one uses.
fn staged_name() -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{STAGED_PREFIX}{:x}-{nanos:x}-{count:x}{STAGED_SUFFIX}", std::process::id()).into()
}

/// Whether a name is one of a staged write: no file of the workspace.
pub(super) fn is_staged(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(STAGED_PREFIX) && name.ends_with(STAGED_SUFFIX))
}

/// The process that staged the file of this name.
fn staged_by(name: &OsStr) -> Option<Pid> {
    let inner = name.to_str()?.strip_prefix(STAGED_PREFIX)?.strip_suffix(STAGED_SUFFIX)?;
    Pid::from_raw(i32::from_str_radix(inner.split_once('-')?.0, 16).ok()?)
}

/// Removes what writes to `file` left beside it when their process was killed between staging and renaming. What
/// processes that live have staged stays. Does what it can: a leftover is hidden from every listing here.
pub fn remove_staged_beside(file: &Path) {
    let Some(Ok(entries)) = file.parent().map(std::fs::read_dir) else { return };
    for entry in entries.flatten() {
        let is_left = |pid| matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH));
        if staged_by(&entry.file_name()).is_some_and(is_left) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A staged file: without a name where the system can do that, else hidden and removed unless it took its place.
struct Temp<'a> {
    folder: &'a OwnedFd,
    file: File,
    name: Option<OsString>,
}

impl<'a> Temp<'a> {
    fn new(folder: &'a OwnedFd, mode: u32) -> io::Result<Self> {
        if let Some(file) = sys::create_unnamed(folder, mode) {
            return Ok(Temp { folder, file, name: None });
        }
        let (file, name) = fresh(|name| sys::create_new(folder, name, mode))?;
        Ok(Temp { folder, file, name: Some(name) })
    }

    /// Takes a name that nothing has yet.
    fn become_new(mut self, name: &OsStr) -> io::Result<()> {
        match &self.name {
            None => sys::name(&self.file, self.folder, name)?,
            Some(staged) => sys::rename_new(self.folder, staged, name)?,
        }
        self.name = None;
        Ok(())
    }

    /// Takes the place of the file with this name.
    fn replace(mut self, name: &OsStr) -> io::Result<()> {
        let staged = match self.name.take() {
            Some(staged) => staged,
            None => fresh(|staged| sys::name(&self.file, self.folder, staged))?.1,
        };
        let staged = self.name.insert(staged);
        sys::rename(self.folder, staged, name)?;
        self.name = None;
        Ok(())
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = sys::remove_file(self.folder, name);
        }
    }
}

/// Makes something under a name that nothing has.
fn fresh<T>(make: impl Fn(&OsStr) -> io::Result<T>) -> io::Result<(T, OsString)> {
    loop {
        let name = staged_name();
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Folders made on the way to a new file, removed again (innermost first, if still empty) unless it was written.
struct MadeFolders {
    made: Vec<(OwnedFd, OsString)>,
}

impl MadeFolders {
    fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for (folder, name) in self.made.drain(..).rev() {
            let _ = sys::remove_folder(folder, &name);
        }
    }
}

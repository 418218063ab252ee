//! What every staged change stands on: a folder that is found again, a file beside the target, folders made for it.
//!
//! A staged change may wait for long, and many may wait at once, so it holds as little as it can: the path of its
//! folder and which folder that was, and a file without a name where the system has such. The folder is opened again
//! when the change takes place and has to be the same one then; what was swapped or moved meanwhile ends the change.
//!
//! Folders that were made for new files belong to all staged changes in them together: the last one that is dropped
//! removes them, and the first that takes place keeps them.
//!
//! Nothing here looks at the target or decides what becomes of it: that is `write` and `remove`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hames_tools::FsError;
use rustix::io::Errno;
use rustix::process::Pid;

use super::local::fs_error;
use super::sys::{self, Anchor, Meta};

/// Staged files without a name that are open at once in this process; further ones get a hidden name and are closed.
/// Some systems let a process have no more than 256 open files, and others need theirs.
const MAX_UNNAMED: usize = 64;

/// Device and inode.
type Identity = (u64, u64);

/// A folder that paths lie beneath, and the folders that staged changes have made there.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) anchor: Anchor,
    made: Mutex<MadeFolders>,
}

/// By path from the anchor.
type MadeFolders = HashMap<PathBuf, MadeFolder>;

/// A folder that goes again unless a change in it takes place.
#[derive(Debug)]
struct MadeFolder {
    identity: Identity,
    /// Staged changes in it or below.
    users: usize,
}

impl Ground {
    pub(super) fn new(anchor: Anchor) -> Self {
        Self { anchor, made: Mutex::default() }
    }

    fn made(&self) -> MutexGuard<'_, MadeFolders> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a folder beneath for a change in it, and makes what is missing of it where that is wanted. Returns the
    /// made folders on its path, outermost last; they are this caller's to [`release`](Self::release).
    fn enter(&self, folder: &Path, make: bool) -> io::Result<(OwnedFd, Vec<PathBuf>)> {
        // Held while folders are made: nobody removes one of them before this change counts as a user of it.
        let mut made = self.made();
        let opened = if make {
            self.anchor.folder_made(folder, |path, identity| {
                made.insert(path, MadeFolder { identity, users: 0 });
            })
        } else {
            self.anchor.folder(folder)
        };
        let used = |path: &&Path| made.get_mut(*path).map(|folder| folder.users += 1).is_some();
        let held: Vec<PathBuf> = folder.ancestors().filter(used).map(Path::to_owned).collect();
        match opened {
            Ok(opened) => Ok((opened, held)),
            Err(error) => {
                self.let_go(&mut made, &held);
                Err(error)
            }
        }
    }

    /// Removes those of the made folders, innermost first, that nobody else has staged anything in, if still empty.
    fn release(&self, held: &[PathBuf]) {
        if !held.is_empty() {
            self.let_go(&mut self.made(), held);
        }
    }

    fn let_go(&self, made: &mut MadeFolders, held: &[PathBuf]) {
        for path in held {
            let Some(folder) = made.get_mut(path) else { continue };
            folder.users -= 1;
            if folder.users == 0 {
                let identity = folder.identity;
                made.remove(path);
                self.remove_made(path, identity);
            }
        }
    }

    fn remove_made(&self, path: &Path, identity: Identity) {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(above) = self.anchor.folder(above) else { return };
        if sys::stat_at(&above, name).is_ok_and(|meta| meta.identity == identity) {
            let _ = sys::remove_folder(&above, name);
        }
    }

    fn keep(&self, held: &[PathBuf]) {
        if !held.is_empty() {
            let mut made = self.made();
            for path in held {
                made.remove(path);
            }
        }
    }
}

/// A name in a folder that is found again.
#[derive(Debug)]
pub(super) struct Spot {
    ground: Arc<Ground>,
    /// From the anchor.
    folder: PathBuf,
    identity: Identity,
    held: Vec<PathBuf>,
    pub(super) name: OsString,
    /// For error texts.
    pub(super) shown: String,
}

impl Spot {
    /// The spot `relative` names, which is not the anchor itself, and its folder. `make`: with the folders it needs.
    pub(super) fn find(
        ground: &Arc<Ground>,
        relative: &Path,
        shown: &str,
        make: bool,
    ) -> Result<(Arc<Spot>, OwnedFd), io::Error> {
        let name = relative.file_name().ok_or(Errno::INVAL)?.to_owned();
        let folder = relative.parent().unwrap_or(Path::new("")).to_owned();
        let (opened, held) = ground.enter(&folder, make)?;
        let mut spot =
            Spot { ground: Arc::clone(ground), folder, identity: (0, 0), held, name, shown: shown.to_owned() };
        spot.identity = sys::stat(&opened)?.identity;
        Ok((Arc::new(spot), opened))
    }

    /// Opens the folder again, if it is still the same.
    pub(super) fn open(&self) -> Result<OwnedFd, FsError> {
        let opened = self.ground.anchor.folder(&self.folder).and_then(|folder| Ok((sys::stat(&folder)?, folder)));
        match opened {
            Ok((meta, folder)) if meta.identity == self.identity => Ok(folder),
            Ok(_) => Err(self.changed()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR) => Err(self.changed()),
                _ => Err(self.error(error)),
            },
        }
    }

    /// The change took place: what was made for it stays.
    pub(super) fn keep(&self) {
        self.ground.keep(&self.held);
    }

    pub(super) fn error(&self, error: io::Error) -> FsError {
        fs_error(&self.shown, error)
    }

    pub(super) fn changed(&self) -> FsError {
        FsError::Changed { path: self.shown.clone() }
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        self.ground.release(&self.held);
    }
}

/// A staged file: without a name where the system can do that, else hidden and removed unless it took its place.
#[derive(Debug)]
pub(super) struct Temp {
    spot: Arc<Spot>,
    file: TempFile,
}

#[derive(Debug)]
enum TempFile {
    Unnamed(Unnamed),
    /// Closed, and known by what it was then.
    Named(OsString, Meta),
    /// It took its place.
    Placed,
}

impl Temp {
    /// A new file in the spot's folder that holds the content, on disk. `finish` sees it open: it sets rights and may
    /// find that the file is of no use.
    pub(super) fn stage(
        spot: &Arc<Spot>,
        folder: &OwnedFd,
        content: &[u8],
        mode: u32,
        finish: impl FnOnce(&File) -> Result<bool, FsError>,
    ) -> Result<Option<Self>, StageError> {
        let temp = |file| Temp { spot: Arc::clone(spot), file };
        if let Some(unnamed) = Unnamed::create(folder, mode) {
            fill(&unnamed.0, content)?;
            let of_use = finish(&unnamed.0)?;
            return Ok(of_use.then(|| temp(TempFile::Unnamed(unnamed))));
        }
        let (file, name) = fresh(|name| sys::create_new(folder, name, mode))?;
        let mut staged = temp(TempFile::Named(name.clone(), sys::stat(&file)?));
        fill(&file, content)?;
        let of_use = finish(&file)?;
        staged.file = TempFile::Named(name, sys::stat(&file)?);
        Ok(of_use.then_some(staged))
    }

    /// Takes the spot's name, which nothing has yet.
    pub(super) fn become_new(mut self, folder: &OwnedFd) -> Result<(), StageError> {
        let name = &self.spot.name;
        match &self.file {
            TempFile::Unnamed(file) => sys::name(&file.0, folder, name)?,
            TempFile::Named(staged, meta) => {
                self.untouched(folder, staged, meta)?;
                sys::rename_new(folder, staged, name)?;
            }
            TempFile::Placed => {}
        }
        self.file = TempFile::Placed;
        Ok(())
    }

    /// Takes the place of the file that has the spot's name. Returned where a rename cannot be.
    pub(super) fn replace(mut self, folder: &OwnedFd) -> Result<Option<Self>, StageError> {
        if let TempFile::Unnamed(file) = &self.file {
            let (meta, name) = match fresh(|staged| {
                sys::name(&file.0, folder, staged)?;
                sys::stat(&file.0)
            }) {
                Err(error) if rename_cannot_be(&error) => return Ok(Some(self)),
                named => named?,
            };
            self.file = TempFile::Named(name, meta);
        }
        if let TempFile::Named(staged, meta) = &self.file {
            self.untouched(folder, staged, meta)?;
            match sys::rename(folder, staged, &self.spot.name) {
                Err(error) if rename_cannot_be(&error) => return Ok(Some(self)),
                renamed => renamed?,
            }
        }
        self.file = TempFile::Placed;
        Ok(None)
    }

    /// Reads the staged content back.
    pub(super) fn content(&self, folder: &OwnedFd) -> Result<Vec<u8>, StageError> {
        let mut content = Vec::new();
        match &self.file {
            TempFile::Unnamed(file) => {
                let mut file = &file.0;
                file.rewind()?;
                file.read_to_end(&mut content)?;
            }
            TempFile::Named(name, meta) => {
                let mut file = sys::open_read(folder, name)?;
                if !sys::untouched(meta, &sys::stat(&file)?) {
                    return Err(self.spot.changed().into());
                }
                file.read_to_end(&mut content)?;
            }
            TempFile::Placed => {}
        }
        Ok(content)
    }

    /// Nobody else has written to the staged file or put another in its place.
    fn untouched(&self, folder: &OwnedFd, name: &OsStr, meta: &Meta) -> Result<(), StageError> {
        let now = sys::stat_at(folder, name)?;
        if sys::untouched(meta, &now) { Ok(()) } else { Err(self.spot.changed().into()) }
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let TempFile::Named(name, meta) = &self.file else { return };
        let Ok(folder) = self.spot.open() else { return };
        if sys::stat_at(&folder, name).is_ok_and(|now| now.identity == meta.identity) {
            let _ = sys::remove_file(&folder, name);
        }
    }
}

fn fill(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    // Without this a crash of the machine could leave a renamed but empty file.
    file.sync_all()
}

/// An open file without a name, counted.
#[derive(Debug)]
struct Unnamed(File);

static UNNAMED: AtomicUsize = AtomicUsize::new(0);

impl Unnamed {
    fn create(folder: &OwnedFd, mode: u32) -> Option<Self> {
        if UNNAMED.fetch_add(1, Ordering::Relaxed) < MAX_UNNAMED
            && let Some(file) = sys::create_unnamed(folder, mode)
        {
            return Some(Self(file));
        }
        UNNAMED.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        UNNAMED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a staged file was of no use: what the system said, or more than that.
#[derive(Debug)]
pub(super) enum StageError {
    System(io::Error),
    Told(FsError),
}

impl From<io::Error> for StageError {
    fn from(error: io::Error) -> Self {
        StageError::System(error)
    }
}

impl From<FsError> for StageError {
    fn from(error: FsError) -> Self {
        StageError::Told(error)
    }
}

impl StageError {
    pub(super) fn at(self, spot: &Spot) -> FsError {
        match self {
            StageError::System(error) => spot.error(error),
            StageError::Told(error) => error,
        }
    }
}

/// Whether a failure to stage or rename means that the file has to be written in place.
pub(super) fn rename_cannot_be(error: &io::Error) -> bool {
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
/// processes that live have staged stays. Does what it can: a leftover is hidden from every walk.
pub fn remove_staged_beside(file: &Path) {
    let Some(Ok(entries)) = file.parent().map(std::fs::read_dir) else { return };
    for entry in entries.flatten() {
        let is_left = |pid| matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH));
        if staged_by(&entry.file_name()).is_some_and(is_left) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

//! The session's proposals over a filesystem: what file tools run against in Analyze.
//!
//! [`OverlayFs`] holds nothing of its own. What would be follows from the session's state, which is a fold of its log, at
//! every call anew; a proposal is made by recording the event of a staged change and by nothing else. So proposals
//! survive restarts, and where there are none every call goes straight to the filesystem below. Nothing is ever written
//! to that one.
//!
//! `view` says what the proposals make of a path; `resolve` and `walk` follow them where links and ignore files
//! would be others; `names` knows files with several names; `staged` turns a change into a proposal; `apply` is the way from proposals to the disk.
//!
//! What the disk would refuse for want of rights is refused here too, as far as looking can tell.

mod apply;
mod content;
mod names;
mod resolve;
mod staged;
mod view;
mod walk;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_protocol::{BlobRef, BlobStore, Emit, Failure, Proposal, SessionId, SessionState};
use hames_tools::{
    DirEntry, Expect, FileKind, FileStat, Finished, FsError, FsPath, FsProvider, Preview, Staged, WalkEntry,
    WalkOptions,
};
use tokio::runtime::Handle;

use super::local::{io_failure, wrong_kind};
use super::resolve::Ending;
use super::suggest;
pub use apply::{Applied, ApplyError, Changes, Mismatch, NotProposed, OpenChange, What, proposed_places};
use content::{Cache, Contents};
use names::Names;
use view::{Child, Seen};

/// Mode bits that a proposed file is shown with where only the system will decide.
const LIKELY_MODE: u32 = 0o644;
/// The same for a folder.
const LIKELY_FOLDER_MODE: u32 = 0o755;

const NANOS_PER_MS: u128 = 1_000_000;

/// Makes overlays that share a few contents in memory.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::sync::{Arc, Mutex};
///
/// use hames_protocol::{MemoryBlobs, SessionState};
/// use hames_tools::{FsProvider, Preview};
/// use hames_workspace::files::{LocalFs, LocalFsOptions, Overlay};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("notes.txt"), "hello\n")?;
/// let disk = Arc::new(LocalFs::new(folder.path(), LocalFsOptions::default())?);
/// let state = Arc::new(Mutex::new(SessionState::default()));
/// let fs = Overlay::default().over(disk, state, Arc::new(MemoryBlobs::default()));
/// assert_eq!(fs.read(&fs.resolve("notes.txt")?, 100)?, b"hello\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Overlay {
    cache: Arc<Cache>,
}

#[async_trait]
impl Preview for Overlay {
    fn over(
        &self,
        base: Arc<dyn FsProvider>,
        state: Arc<Mutex<SessionState>>,
        blobs: Arc<dyn BlobStore>,
    ) -> Arc<dyn FsProvider> {
        let contents = Contents { cache: self.cache.clone(), blobs, runtime: Handle::try_current().ok() };
        Arc::new(OverlayFs { base, state, contents, names: Names::default() })
    }

    async fn finish(
        &self,
        base: Arc<dyn FsProvider>,
        session: &SessionId,
        state: &SessionState,
        blobs: Arc<dyn BlobStore>,
        emit: &dyn Emit,
    ) -> Result<Finished, Failure> {
        Changes::new(session.clone(), base, blobs).finish(state, emit).await
    }

    async fn settle(
        &self,
        base: Arc<dyn FsProvider>,
        session: &SessionId,
        state: &SessionState,
        blobs: Arc<dyn BlobStore>,
        emit: &dyn Emit,
    ) -> Result<Vec<String>, Failure> {
        Changes::new(session.clone(), base, blobs).settle_made(state, emit).await
    }
}

/// A filesystem as it would be with the proposals made.
pub struct OverlayFs {
    base: Arc<dyn FsProvider>,
    state: Arc<Mutex<SessionState>>,
    contents: Contents,
    names: Names,
}

impl OverlayFs {
    /// The proposals, for a moment.
    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, path: &Path) -> Seen {
        view::look(&self.state(), path)
    }

    /// The path of an entry without links on its way.
    fn fs_path(&self, abs: PathBuf, identity: Option<(u64, u64)>) -> FsPath {
        FsPath::new(self.root(), abs, identity)
    }

    /// The error for a path with nothing there.
    fn nothing(&self, path: &FsPath, seen: &Seen) -> FsError {
        if *seen == Seen::BelowFile {
            return io_failure(&path.shown, "a part of the path is a file, not a folder");
        }
        let near: Vec<String> = match (path.abs.parent(), path.abs.file_name()) {
            (Some(folder), Some(name)) => suggest::near(&name.to_string_lossy(), self.names(folder).into_iter())
                .into_iter()
                .map(|name| self.fs_path(folder.join(name), None).shown)
                .collect(),
            _ => Vec::new(),
        };
        let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
        FsError::NotFound { path: path.shown.clone(), hint }
    }

    /// The names in a folder; none where it cannot be listed.
    fn names(&self, folder: &Path) -> Vec<String> {
        if matches!(self.look(folder), Seen::File(_) | Seen::Nothing | Seen::BelowFile) {
            return Vec::new();
        }
        let entries = self.entries(&self.fs_path(folder.to_owned(), None)).unwrap_or_default();
        entries.into_iter().map(|entry| entry.name).collect()
    }

    /// What the disk knows of a folder that is a mixed one.
    fn mixed(&self, path: &FsPath) -> FileStat {
        match self.base.stat(path) {
            Ok(stat) if stat.kind == FileKind::Dir => stat,
            _ => FileStat { kind: FileKind::Dir, size: 0, mode: LIKELY_FOLDER_MODE, modified_ns: 0 },
        }
    }

    /// The entries of a folder; links on disk as the disk follows them.
    fn entries(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        let (seen, mut children) = {
            let state = self.state();
            (view::look(&state, &path.abs), view::children(&state, &path.abs))
        };
        let mut entries = self.entries_on_disk(path, &seen)?;
        if children.is_empty() {
            return Ok(entries);
        }
        entries.retain_mut(|entry| match children.remove(&entry.name) {
            None => true,
            Some(Child::Gone) => false,
            Some(child) => {
                *entry = listed(std::mem::take(&mut entry.name), &child);
                true
            }
        });
        let new = children.into_iter().filter(|(_, child)| *child != Child::Gone);
        entries.extend(new.map(|(name, child)| listed(name, &child)));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn entries_on_disk(&self, path: &FsPath, seen: &Seen) -> Result<Vec<DirEntry>, FsError> {
        match seen {
            Seen::Disk => self.base.list(path),
            // Not there any more, or something else by now: what is proposed is all there is.
            Seen::Mixed => Ok(self.base.list(path).unwrap_or_default()),
            Seen::Made => Ok(Vec::new()),
            Seen::File(_) => Err(wrong_kind(&path.shown, FileKind::File, "a folder")),
            Seen::Nothing | Seen::BelowFile => Err(self.nothing(path, seen)),
        }
    }

    /// A link is listed as what it leads to, and that may be proposed, or gone.
    fn follow_link(&self, folder: &FsPath, entry: &mut DirEntry) {
        let link = self.fs_path(folder.abs.join(&entry.name), None);
        // What is proposed is no link; the disk says whether what it has is one.
        if self.look(&link.abs) != Seen::Disk || !self.base.stat(&link).is_ok_and(|stat| stat.kind == FileKind::Link) {
            return;
        }
        let target = link.abs.to_str().and_then(|link| self.resolve(link).ok());
        let target = target.filter(|target| target.inside);
        match target.and_then(|target| self.stat(&target).ok()) {
            Some(stat) => {
                entry.kind = stat.kind;
                entry.size = if stat.kind == FileKind::File { stat.size } else { 0 };
            }
            None => (entry.kind, entry.size) = (FileKind::Link, 0),
        }
    }

    fn is_untouched(&self) -> bool {
        !self.state().has_proposals()
    }
}

/// What is known of a proposed file.
fn stat_of(file: &Proposal) -> FileStat {
    FileStat {
        kind: FileKind::File,
        size: file.content.as_ref().map_or(0, |content| content.bytes),
        mode: file.mode.unwrap_or(LIKELY_MODE),
        modified_ns: u128::from(file.at) * NANOS_PER_MS,
    }
}

/// The content of a proposed file.
fn content_of<'p>(file: &'p Proposal, path: &FsPath) -> Result<&'p BlobRef, FsError> {
    file.content.as_ref().ok_or_else(|| FsError::NotFound { path: path.shown.clone(), hint: String::new() })
}

impl FsProvider for OverlayFs {
    fn root(&self) -> &Path {
        self.base.root()
    }

    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        self.place(path, Ending::Followed)
    }

    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.place(path, Ending::Named)
    }

    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError> {
        match self.look_at(path) {
            Seen::Disk => match self.base.stat(path) {
                // What the disk would suggest instead may be gone, and what is meant may be proposed.
                Err(FsError::NotFound { .. }) if !self.is_untouched() => Err(self.nothing(path, &Seen::Nothing)),
                stat => stat,
            },
            Seen::File(file) => Ok(stat_of(&file)),
            Seen::Mixed => Ok(self.mixed(path)),
            Seen::Made => Ok(FileStat { kind: FileKind::Dir, size: 0, mode: LIKELY_FOLDER_MODE, modified_ns: 0 }),
            seen @ (Seen::Nothing | Seen::BelowFile) => Err(self.nothing(path, &seen)),
        }
    }

    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        match self.look_at(path) {
            Seen::Disk => self.base.open(path),
            Seen::File(file) => {
                let opened = self.contents.open(content_of(&file, path)?);
                opened.map_err(|error| io_failure(&path.shown, error.to_string()))
            }
            Seen::Mixed | Seen::Made => Err(wrong_kind(&path.shown, FileKind::Dir, "a file")),
            seen @ (Seen::Nothing | Seen::BelowFile) => Err(self.nothing(path, &seen)),
        }
    }

    fn read(&self, path: &FsPath, limit: u64) -> Result<Vec<u8>, FsError> {
        match self.look_at(path) {
            Seen::Disk => self.base.read(path, limit),
            Seen::File(file) => {
                let blob = content_of(&file, path)?;
                if blob.bytes > limit {
                    let (path, size) = (path.shown.clone(), blob.bytes);
                    return Err(FsError::TooLarge { path, size, limit, doing: "read", hint: "" });
                }
                self.contents.read(blob).map_err(|error| io_failure(&path.shown, error.to_string()))
            }
            Seen::Mixed | Seen::Made => Err(wrong_kind(&path.shown, FileKind::Dir, "a file")),
            seen @ (Seen::Nothing | Seen::BelowFile) => Err(self.nothing(path, &seen)),
        }
    }

    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        let mut entries = self.entries(path)?;
        if !self.is_untouched() {
            entries.iter_mut().for_each(|entry| self.follow_link(path, entry));
        }
        Ok(entries)
    }

    fn shared_identity(&self, path: &FsPath) -> Option<(u64, u64)> {
        match self.look(&path.abs) {
            Seen::Disk => self.base.shared_identity(path),
            _ => None,
        }
    }

    fn read_link(&self, path: &FsPath) -> Result<Vec<u8>, FsError> {
        match self.look(&path.abs) {
            Seen::Disk => self.base.read_link(path),
            Seen::File(_) => Err(wrong_kind(&path.shown, FileKind::File, "a link")),
            Seen::Mixed | Seen::Made => Err(wrong_kind(&path.shown, FileKind::Dir, "a link")),
            seen @ (Seen::Nothing | Seen::BelowFile) => Err(self.nothing(path, &seen)),
        }
    }

    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        self.propose_write(path, content, expect, mode)
    }

    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        self.propose_removal(path, expect)
    }

    fn may_write(&self, path: &FsPath) -> Result<(), FsError> {
        match self.look(&path.abs) {
            // A new file's rights are its own; what is on disk in its place is gone.
            Seen::File(file) if file.is_new() || file.takes_a_place() => self.base.may_remove(path),
            Seen::Nothing => self.base.may_remove(path),
            _ => self.base.may_write(path),
        }
    }

    fn may_remove(&self, path: &FsPath) -> Result<(), FsError> {
        self.base.may_remove(path)
    }

    /// A folder alone is not proposed: it comes with what is in it.
    fn make_folder(&self, path: &FsPath) -> Result<(), FsError> {
        match self.stat(path) {
            Ok(stat) if stat.kind == FileKind::Dir => Ok(()),
            Ok(stat) => Err(wrong_kind(&path.shown, stat.kind, "a folder")),
            Err(FsError::NotFound { .. }) => {
                Err(io_failure(&path.shown, "a folder alone cannot be proposed; it comes with the first file in it"))
            }
            Err(error) => Err(error),
        }
    }

    fn hides(&self, path: &FsPath) -> bool {
        self.base.hides(path)
    }

    fn is_ruled(&self) -> bool {
        self.base.is_ruled()
    }

    fn hidden(&self) -> Vec<PathBuf> {
        self.base.hidden()
    }

    fn walk(
        &self,
        from: &FsPath,
        options: &WalkOptions,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        if self.is_untouched() { self.base.walk(from, options, visit) } else { self.walk_over(from, options, visit) }
    }
}

fn listed(name: String, child: &Child) -> DirEntry {
    match child {
        Child::File(size) => DirEntry { name, kind: FileKind::File, size: *size },
        Child::Folder | Child::Gone => DirEntry { name, kind: FileKind::Dir, size: 0 },
    }
}

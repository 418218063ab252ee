//! The local filesystem: a root that file tools stay inside, on the machine's own disk.
//!
//! [`resolve`](LocalFs::resolve) finds out where a path leads; every use then opens that very path beneath a handle of
//! the root, following no link (`sys`), so what is swapped in between is refused by the kernel. A path outside the root
//! is opened the same way beneath `/`; whether it may be is decided by whoever approved it. Denied places are refused
//! whatever was approved.
//!
//! A *rooted* filesystem ([`LocalFs::rooted`]) has no handle outside its root, so there is nothing to approve: what lies
//! outside can be neither reached nor looked at, whoever asks.
//!
//! Only regular files are ever opened: a pipe would wait, a device would act.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hames_tools::{DirEntry, Expect, FileKind, FileStat, FsError, FsPath, FsProvider, Staged, WalkEntry, WalkOptions};
use rustix::io::Errno;

use super::denied::{Denied, DeniedNow};
use super::remove;
use super::resolve::{self, Ending, Place, Reach};
use super::stage::Ground;
use super::suggest;
use super::sys::{self, Anchor, Meta, Walker};
use super::walk;
use super::write;

/// How a [`LocalFs`] differs from a plain one.
#[derive(Clone, Debug, Default)]
pub struct LocalFsOptions {
    /// Folders (or files) that no file tool reaches, even approved; they need not exist yet.
    pub denied: Vec<PathBuf>,
}

/// The machine's own files.
///
/// ```
/// use hames_tools::FsProvider;
/// use hames_workspace::files::{LocalFs, LocalFsOptions};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("notes.txt"), "hello\n")?;
/// let fs = LocalFs::new(folder.path(), LocalFsOptions::default())?;
/// let path = fs.resolve("./sub/../notes.txt")?;
/// assert_eq!(path.shown, "notes.txt");
/// assert_eq!(fs.read(&path, 100)?, b"hello\n");
/// assert!(!fs.resolve("../elsewhere")?.inside);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LocalFs {
    root: PathBuf,
    within: Arc<Ground>,
    /// For what lies outside the root; a rooted filesystem has none.
    everywhere: Option<Arc<Ground>>,
    denied: Denied,
}

impl LocalFs {
    /// Opens the folder `root`. Paths outside it resolve too, marked as such; whoever hands them on has to know that
    /// they were approved.
    pub fn new(root: &Path, options: LocalFsOptions) -> Result<Self, FsError> {
        Self::with_walker(root, options, Walker::detect(), Reach::Everything)
    }

    /// Opens the folder `root` and nothing else: every path outside it, and every link that leads out, is
    /// [`FsError::Outside`], approved or not.
    ///
    /// ```
    /// use hames_tools::{FsError, FsProvider};
    /// use hames_workspace::files::{LocalFs, LocalFsOptions};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let fs = LocalFs::rooted(folder.path(), LocalFsOptions::default())?;
    /// assert!(fs.resolve("new/file").is_ok());
    /// assert!(matches!(fs.resolve("/etc/hosts"), Err(FsError::Outside { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rooted(root: &Path, options: LocalFsOptions) -> Result<Self, FsError> {
        Self::with_walker(root, options, Walker::detect(), Reach::Beneath)
    }

    pub(super) fn with_walker(
        root: &Path,
        options: LocalFsOptions,
        walker: Walker,
        reach: Reach,
    ) -> Result<Self, FsError> {
        let shown = root.to_string_lossy();
        let canonical = std::fs::canonicalize(root).map_err(|error| fs_error(&shown, error))?;
        if !canonical.is_dir() {
            return Err(wrong_kind(&shown, FileKind::File, "a folder"));
        }
        let denied = Denied::new(options.denied);
        if denied.look().covers(&canonical, None) {
            return Err(FsError::Denied { path: shown.into_owned() });
        }
        let ground = |path: &Path| {
            let anchor = Anchor::open(path, walker).map_err(|error| fs_error(&path.to_string_lossy(), error))?;
            Ok(Arc::new(Ground::new(anchor)))
        };
        let everywhere = match reach {
            Reach::Everything => Some(ground(Path::new("/"))?),
            Reach::Beneath => None,
        };
        Ok(Self { within: ground(&canonical)?, everywhere, root: canonical, denied })
    }

    fn reach(&self) -> Reach {
        if self.everywhere.is_some() { Reach::Everything } else { Reach::Beneath }
    }

    fn place(&self, path: &str, ending: Ending) -> Result<FsPath, FsError> {
        if path.is_empty() {
            return Err(io_failure("the empty path", "name a file or folder"));
        }
        if path.contains('\0') {
            return Err(io_failure(&path.replace('\0', "\\0"), "a path cannot hold a NUL byte"));
        }
        let place = resolve::resolve(&self.root, Path::new(path), ending, self.reach())
            .map_err(|error| fs_error(path, error))?;
        if self.everywhere.is_none() && !place.path.starts_with(&self.root) {
            return Err(FsError::Outside { path: path.to_owned(), target: place.path });
        }
        if self.denied.look().covers(&place.path, Some(&self.root)) {
            return Err(FsError::Denied { path: path.to_owned() });
        }
        Ok(self.fs_path(place.path, place.meta.map(|meta| meta.identity)))
    }

    /// What a path is opened beneath, and the path from there.
    fn ground<'p>(&self, path: &'p FsPath) -> Result<(&Arc<Ground>, &'p Path), FsError> {
        if self.denied.look().covers(&path.abs, Some(&self.root)) {
            return Err(FsError::Denied { path: path.shown.clone() });
        }
        if let Ok(relative) = path.abs.strip_prefix(&self.root) {
            return Ok((&self.within, relative));
        }
        let outside = || FsError::Outside { path: path.shown.clone(), target: path.abs.clone() };
        let everywhere = self.everywhere.as_ref().ok_or_else(outside)?;
        match path.abs.strip_prefix("/") {
            Ok(relative) => Ok((everywhere, relative)),
            Err(_) => Err(io_failure(&path.shown, "the path is not absolute")),
        }
    }

    /// The open parent of a path and the name in it, or the open folder itself where the path is an anchor.
    fn parent<'p>(&self, path: &'p FsPath) -> Result<(OwnedFd, Option<&'p OsStr>), FsError> {
        let (ground, relative) = self.ground(path)?;
        let parent = relative.parent().unwrap_or(Path::new(""));
        let folder = ground.anchor.folder(parent).map_err(|error| self.failed(path, error))?;
        Ok((folder, relative.file_name()))
    }

    /// Opens a folder.
    pub(super) fn folder(&self, path: &FsPath) -> io::Result<OwnedFd> {
        let (ground, relative) = self.ground(path).map_err(io::Error::other)?;
        ground.anchor.folder(relative)
    }

    fn meta(&self, path: &FsPath) -> Result<Meta, FsError> {
        let (parent, name) = self.parent(path)?;
        let meta = match name {
            Some(name) => sys::stat_at(&parent, name),
            None => sys::stat(&parent),
        };
        meta.map_err(|error| self.failed(path, error))
    }

    /// The error for a path; one that does not exist is told what does.
    pub(super) fn failed(&self, path: &FsPath, error: io::Error) -> FsError {
        if error.kind() != io::ErrorKind::NotFound {
            return fs_error(&path.shown, error);
        }
        let hint = self.ground(path).map_or_else(
            |_| String::new(),
            |(ground, missing)| {
                let base = if path.inside { &self.root } else { Path::new("/") };
                suggest::instead_of(&ground.anchor, missing, |near| self.fs_path(base.join(near), None).shown)
            },
        );
        FsError::NotFound { path: path.shown.clone(), hint }
    }

    pub(super) fn fs_path(&self, abs: PathBuf, identity: Option<(u64, u64)>) -> FsPath {
        FsPath::new(&self.root, abs, identity)
    }

    /// Whether a folder holds something that its listing leaves out.
    fn withholds(&self, folder: &FsPath) -> Result<bool, FsError> {
        if self.denied.is_empty() {
            return Ok(false);
        }
        let opened = self.folder(folder).map_err(|error| self.failed(folder, error))?;
        let names = sys::names(&opened, usize::MAX).map_err(|error| self.failed(folder, error))?;
        Ok(names.len() > self.list(folder)?.len())
    }

    /// What a link in a folder leads to, where that is inside the root and not denied.
    pub(super) fn follow(&self, link: &Path, denied: &DeniedNow) -> Option<(PathBuf, Meta)> {
        let Place { path, meta } = resolve::resolve(&self.root, link, Ending::Followed, self.reach()).ok()?;
        let reachable = path.starts_with(&self.root) && !denied.covers(&path, Some(&self.root));
        meta.filter(|_| reachable).map(|meta| (path, meta))
    }
}

impl FsProvider for LocalFs {
    fn root(&self) -> &Path {
        &self.root
    }

    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        self.place(path, Ending::Followed)
    }

    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError> {
        let Meta { kind, size, mode, modified_ns, .. } = self.meta(path)?;
        Ok(FileStat { kind, size, mode, modified_ns })
    }

    fn shared_identity(&self, path: &FsPath) -> Option<(u64, u64)> {
        let meta = self.meta(path).ok()?;
        (meta.kind == FileKind::File && meta.links > 1).then_some(meta.identity)
    }

    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        let (parent, name) = self.parent(path)?;
        let Some(name) = name else { return Err(wrong_kind(&path.shown, FileKind::Dir, "a file")) };
        // Looked at before it is opened: opening a device may already do something.
        let before = sys::stat_at(&parent, name).map_err(|error| self.failed(path, error))?;
        regular(path, &before)?;
        let file = sys::open_read(&parent, name).map_err(|error| self.failed(path, error))?;
        let meta = sys::stat(&file).map_err(|error| self.failed(path, error))?;
        regular(path, &meta)?;
        if self.denied.holds(&meta) {
            return Err(FsError::Denied { path: path.shown.clone() });
        }
        Ok(Box::new(file))
    }

    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        let meta = self.meta(path)?;
        if meta.kind != FileKind::Dir {
            return Err(wrong_kind(&path.shown, meta.kind, "a folder"));
        }
        let folder = self.folder(path).map_err(|error| self.failed(path, error))?;
        let mut names = sys::names(&folder, usize::MAX).map_err(|error| self.failed(path, error))?;
        names.sort_unstable();
        let denied = self.denied.look();
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            // Gone since its name was read: not in the folder any more.
            let Ok(meta) = sys::stat_at(&folder, &name) else { continue };
            let at = path.abs.join(&name);
            if (meta.kind == FileKind::Dir && denied.is(meta.identity)) || denied.covers_written(&at) {
                continue;
            }
            let seen = match meta.kind {
                FileKind::Link => self.follow(&at, &denied).map_or(meta, |(_, target)| target),
                _ => meta,
            };
            let size = if seen.kind == FileKind::File { seen.size } else { 0 };
            entries.push(DirEntry { name: name.to_string_lossy().into_owned(), kind: seen.kind, size });
        }
        Ok(entries)
    }

    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.place(path, Ending::Named)
    }

    fn read_link(&self, path: &FsPath) -> Result<Vec<u8>, FsError> {
        let (parent, name) = self.parent(path)?;
        let name = name.ok_or_else(|| wrong_kind(&path.shown, FileKind::Dir, "a link"))?;
        let kind = sys::stat_at(&parent, name).map_err(|error| self.failed(path, error))?.kind;
        if kind != FileKind::Link {
            return Err(wrong_kind(&path.shown, kind, "a link"));
        }
        sys::read_link(&parent, name).map_err(|error| self.failed(path, error))
    }

    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        let (ground, relative) = self.ground(path)?;
        write::stage(ground, relative, path, &self.denied, content, expect, mode)
    }

    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        if self.root.starts_with(&path.abs) {
            return Err(io_failure(&path.shown, "the workspace itself cannot be removed, nor what it lies in"));
        }
        if self.hides(path) || *expect == Expect::Dir && self.withholds(path).unwrap_or_default() {
            return Err(FsError::Denied { path: path.shown.clone() });
        }
        let (ground, relative) = self.ground(path)?;
        remove::stage(ground, relative, path, &self.denied, expect)
    }

    fn may_write(&self, path: &FsPath) -> Result<(), FsError> {
        if let Ok((folder, Some(name))) = self.parent(path)
            && sys::stat_at(&folder, name).is_ok()
        {
            return sys::may_write(&folder, name).map_err(|error| write::refused(&path.shown, error));
        }
        self.may_remove(path)
    }

    fn may_remove(&self, path: &FsPath) -> Result<(), FsError> {
        let (ground, relative) = self.ground(path)?;
        // What is not there yet will be made in the innermost folder that is.
        let folder = relative.ancestors().skip(1).find_map(|above| ground.anchor.folder(above).ok());
        folder.map_or(Ok(()), |folder| sys::may_change(&folder)).map_err(|error| fs_error(&path.shown, error))
    }

    fn make_folder(&self, path: &FsPath) -> Result<(), FsError> {
        let (ground, relative) = self.ground(path)?;
        // Folders that are kept for nobody stay.
        let made = ground.anchor.folder_made(relative, |_, _| {});
        made.map(|_| ()).map_err(|error| fs_error(&path.shown, error))
    }

    fn hides(&self, path: &FsPath) -> bool {
        let denied = self.denied.look();
        denied.lies_below(&path.abs) || denied.covers(&path.abs, Some(&self.root))
    }

    fn is_ruled(&self) -> bool {
        false
    }

    fn hidden(&self) -> Vec<PathBuf> {
        self.denied.places().to_vec()
    }

    fn walk(
        &self,
        from: &FsPath,
        options: &WalkOptions,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        let meta = self.meta(from)?;
        walk::walk(self, from, &meta, &self.denied.look(), options, visit)
    }
}

fn regular(path: &FsPath, meta: &Meta) -> Result<(), FsError> {
    match meta.kind {
        FileKind::File => Ok(()),
        // The path held no link when it was resolved.
        FileKind::Link => Err(fs_error(&path.shown, Errno::LOOP.into())),
        kind => Err(wrong_kind(&path.shown, kind, "a file")),
    }
}

pub(super) fn wrong_kind(shown: &str, kind: FileKind, wanted: &'static str) -> FsError {
    let found = match kind {
        FileKind::File => "a file",
        FileKind::Dir => "a folder",
        FileKind::Link => "a link that leads nowhere",
        FileKind::Other => "a pipe, socket or device",
    };
    FsError::WrongKind { path: shown.to_owned(), found, wanted }
}

pub(super) fn io_failure(shown: &str, reason: impl Into<String>) -> FsError {
    FsError::Io { path: shown.to_owned(), reason: reason.into() }
}

/// The system's error in words that say what to do.
pub(super) fn fs_error(shown: &str, error: io::Error) -> FsError {
    let reason = match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => return FsError::NotFound { path: shown.to_owned(), hint: String::new() },
        Some(Errno::NOSPC | Errno::DQUOT) => return FsError::NoSpace { path: shown.to_owned() },
        Some(Errno::LOOP) => "it leads through too many links, or one appeared on its way meanwhile",
        Some(Errno::NOTDIR) => "a part of the path is a file, not a folder",
        Some(Errno::ACCESS | Errno::PERM) => "permission denied",
        Some(Errno::ROFS) => "the disk is mounted read-only",
        Some(Errno::NAMETOOLONG) => "the name is too long for the disk",
        Some(Errno::TXTBSY) => "the program is running and cannot be overwritten in place",
        Some(Errno::FBIG) => "the file would be larger than the system allows",
        _ => return io_failure(shown, error.to_string()),
    };
    io_failure(shown, reason)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Every border rule has to hold whoever walks the path.
    fn walkers() -> [Walker; 2] {
        [Walker::detect(), Walker::Stepwise]
    }

    fn workspace(walker: Walker) -> (tempfile::TempDir, LocalFs) {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("w");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(scratch.path().join("secret/b")).unwrap();
        std::fs::write(root.join("a/b/f"), "inside").unwrap();
        std::fs::write(scratch.path().join("secret/b/f"), "outside").unwrap();
        symlink("a", root.join("link")).unwrap();
        let fs = LocalFs::with_walker(&root, LocalFsOptions::default(), walker, Reach::Everything).unwrap();
        (scratch, fs)
    }

    #[test]
    fn both_ways_of_walking_open_the_same_and_follow_no_link() {
        for walker in walkers() {
            let (_scratch, fs) = workspace(walker);
            let opens = |relative: &str| match fs.within.anchor.folder(Path::new(relative)) {
                Ok(_) => "opened".to_owned(),
                Err(error) => format!("{:?}", Errno::from_io_error(&error)),
            };
            for (relative, expected) in [
                ("", "opened"),
                ("a", "opened"),
                ("a/b", "opened"),
                ("link", &format!("{:?}", Some(Errno::LOOP))),
                ("link/b", &format!("{:?}", Some(Errno::LOOP))),
                ("a/b/f", &format!("{:?}", Some(Errno::NOTDIR))),
                ("a/none", &format!("{:?}", Some(Errno::NOENT))),
                ("..", &format!("{:?}", Some(Errno::INVAL))),
                ("a/../..", &format!("{:?}", Some(Errno::INVAL))),
                ("/", &format!("{:?}", Some(Errno::INVAL))),
            ] {
                assert_eq!(opens(relative), *expected, "{relative} by {walker:?}");
            }
        }
    }

    #[test]
    fn both_ways_of_walking_refuse_a_folder_that_became_a_link() {
        for walker in walkers() {
            let (scratch, fs) = workspace(walker);
            let path = fs.resolve("link/b/f").unwrap();
            assert_eq!(fs.read(&path, 100).unwrap(), b"inside");
            let new = fs.resolve("a/b/new").unwrap();
            std::fs::rename(fs.root.join("a"), fs.root.join("moved")).unwrap();
            symlink("../secret", fs.root.join("a")).unwrap();
            assert!(fs.read(&path, 100).is_err(), "{walker:?}");
            assert!(fs.stat(&path).is_err(), "{walker:?}");
            for (path, expect) in [(&path, Expect::Hash(write::hash_of(b"outside"))), (&new, Expect::Absent)] {
                assert!(fs.write(path, b"x", &expect, &mut |_| Ok(())).is_err(), "{walker:?}");
            }
            assert_eq!(std::fs::read(scratch.path().join("secret/b/f")).unwrap(), b"outside");
            assert_eq!(std::fs::read_dir(scratch.path().join("secret/b")).unwrap().count(), 1);
        }
    }

    #[test]
    fn both_ways_of_walking_make_missing_folders() {
        for walker in walkers() {
            let (_scratch, fs) = workspace(walker);
            let path = fs.resolve("link/x/y/z").unwrap();
            fs.write(&path, b"new", &Expect::Absent, &mut |_| Ok(())).unwrap();
            assert_eq!(std::fs::read(fs.root.join("a/x/y/z")).unwrap(), b"new");
        }
    }
}

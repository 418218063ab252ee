//! The platform calls of the local filesystem.
//!
//! Everything goes through one question to the kernel: "open this folder beneath that one, following no link". All
//! other calls then name a single component inside the folder that was opened, so nothing that is swapped between a
//! check and its use can lead elsewhere. Paths come in with their links already resolved; a link that is met here
//! appeared afterwards and ends the call with `ELOOP`.
//!
//! On Linux the kernel walks the whole path (`openat2`). Where that call is missing or forbidden, the same is done one
//! component at a time with `O_NOFOLLOW`. This module decides nothing: which paths may be used is the caller's concern.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use hames_tools::FileKind;
use rustix::fs::{self, Access, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Opens a folder only as a place to start from, which needs no right to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SEARCH: OFlags = OFlags::RDONLY;

/// How a path beneath an anchor is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walker {
    /// By the kernel in one call.
    Kernel,
    /// By us, one component at a time.
    Stepwise,
}

impl Walker {
    /// The best that works here.
    pub(super) fn detect() -> Walker {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::fs::{CWD, ResolveFlags};
            let probe = fs::openat2(CWD, "/", walked_flags(), Mode::empty(), ResolveFlags::NO_SYMLINKS);
            if probe.is_ok() {
                return Walker::Kernel;
            }
        }
        Walker::Stepwise
    }
}

/// For one component. Where the kernel walks the path it refuses links itself, and says so.
fn folder_flags() -> OFlags {
    walked_flags() | OFlags::NOFOLLOW
}

fn walked_flags() -> OFlags {
    SEARCH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// A folder that paths are resolved beneath.
#[derive(Debug)]
pub(super) struct Anchor {
    dir: OwnedFd,
    walker: Walker,
}

impl Anchor {
    /// Anchors at a folder given by a canonical path.
    pub(super) fn open(path: &Path, walker: Walker) -> io::Result<Anchor> {
        Ok(Anchor { dir: fs::open(path, folder_flags(), Mode::empty())?, walker })
    }

    /// Opens a folder beneath the anchor; the empty path is the anchor itself.
    pub(super) fn folder(&self, relative: &Path) -> io::Result<OwnedFd> {
        let parts = plain_parts(relative)?;
        if parts.is_empty() {
            return Ok(fs::openat(&self.dir, ".", folder_flags(), Mode::empty())?);
        }
        match self.walker {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Walker::Kernel => {
                use rustix::fs::ResolveFlags;
                let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                Ok(fs::openat2(&self.dir, relative, walked_flags(), Mode::empty(), within)?)
            }
            _ => {
                let mut folder = subfolder(&self.dir, parts[0])?;
                for part in &parts[1..] {
                    folder = subfolder(&folder, part)?;
                }
                Ok(folder)
            }
        }
    }

    /// Opens a folder beneath the anchor and makes what is missing of it. `made` hears of each folder that was made, at
    /// once: its path from the anchor, device and inode.
    pub(super) fn folder_made(
        &self,
        relative: &Path,
        mut made: impl FnMut(PathBuf, (u64, u64)),
    ) -> io::Result<OwnedFd> {
        match self.folder(relative) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        let mut folder = self.folder(Path::new(""))?;
        let mut path = PathBuf::new();
        for part in plain_parts(relative)? {
            path.push(part);
            let next = match subfolder(&folder, part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match fs::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                        Ok(()) => made(path.clone(), stat_at(&folder, part)?.identity),
                        // Somebody else made it meanwhile: theirs will do.
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    subfolder(&folder, part)?
                }
                other => other?,
            };
            folder = next;
        }
        Ok(folder)
    }
}

/// Opens one folder in another, and says `ELOOP` for a link.
fn subfolder(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    match fs::openat(folder.as_fd(), name, folder_flags(), Mode::empty()) {
        Ok(fd) => Ok(fd),
        Err(Errno::NOTDIR) => match stat_at(folder, name) {
            Ok(meta) if meta.kind == FileKind::Link => Err(Errno::LOOP.into()),
            _ => Err(Errno::NOTDIR.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The components of a relative path that goes only downwards.
fn plain_parts(relative: &Path) -> io::Result<Vec<&OsStr>> {
    relative
        .components()
        .map(|part| match part {
            Component::Normal(name) => Ok(name),
            _ => Err(Errno::INVAL.into()),
        })
        .collect()
}

/// What the system says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) kind: FileKind,
    pub(super) size: u64,
    /// The low twelve bits.
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) identity: (u64, u64),
    pub(super) owner: (u32, u32),
    pub(super) modified_ns: u128,
    /// Last change of content, rights or name.
    changed: (i64, i64),
}

#[allow(clippy::unnecessary_cast)] // the fields' types differ between platforms
fn meta(stat: &Stat) -> Meta {
    let kind = file_kind(FileType::from_raw_mode(stat.st_mode));
    let seconds = u128::try_from(stat.st_mtime).unwrap_or(0);
    Meta {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode as u32 & 0o7777,
        links: stat.st_nlink as u64,
        identity: (stat.st_dev as u64, stat.st_ino as u64),
        owner: (stat.st_uid, stat.st_gid),
        modified_ns: seconds * 1_000_000_000 + stat.st_mtime_nsec as u128,
        changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

fn file_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Other,
    }
}

/// What an open file or folder is.
pub(super) fn stat(fd: impl AsFd) -> io::Result<Meta> {
    Ok(meta(&fs::fstat(fd)?))
}

/// What a name in a folder is; a link is not followed.
pub(super) fn stat_at(folder: impl AsFd, name: &OsStr) -> io::Result<Meta> {
    Ok(meta(&fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

/// What an absolute path is; a link at its end is not followed.
pub(super) fn stat_path(path: &Path) -> io::Result<Meta> {
    Ok(meta(&fs::lstat(path)?))
}

/// Opens a file in a folder for reading. Never waits for a pipe's other end; the caller looks at what it got.
pub(super) fn open_read(folder: impl AsFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(fs::openat(folder, name, flags, Mode::empty())?))
}

/// Opens an existing file in a folder for writing over it; nothing is cut off yet.
pub(super) fn open_write(folder: impl AsFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(fs::openat(folder, name, flags, Mode::empty())?))
}

/// Makes a new file in a folder, with these mode bits less the process's umask.
pub(super) fn create_new(folder: impl AsFd, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(fs::openat(folder, name, flags, bits(mode))?))
}

/// Makes a file in a folder that has no name yet, so that nothing is left of it should this process die. Nothing where
/// the system has no such files, or they could not be given a name later.
pub(super) fn create_unnamed(folder: impl AsFd, mode: u32) -> Option<File> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file = File::from(fs::openat(folder, ".", flags, bits(mode)).ok()?);
        fs::stat(own_path(&file)).is_ok().then_some(file)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (folder, mode);
        None
    }
}

/// Gives an unnamed file its name, unless something has that name.
pub(super) fn name(file: &File, folder: impl AsFd, name: &OsStr) -> io::Result<()> {
    Ok(fs::linkat(fs::CWD, own_path(file), folder, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// The path by which this process reaches its own open file.
fn own_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[allow(clippy::unnecessary_cast)] // the type of mode bits differs between platforms
fn bits(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as fs::RawMode)
}

/// Whether this process may write to a file, without opening it (watchers of the file would see that).
pub(super) fn may_write(folder: impl AsFd, name: &OsStr) -> io::Result<()> {
    match fs::accessat(folder.as_fd(), name, Access::WRITE_OK, AtFlags::EACCESS) {
        // An old kernel or a filter without the call that takes flags: ask for the real user instead.
        Err(Errno::NOSYS | Errno::INVAL) => Ok(fs::accessat(folder, name, Access::WRITE_OK, AtFlags::empty())?),
        other => Ok(other?),
    }
}

/// Whether this process may add and remove names in a folder, as far as its mode bits say.
pub(super) fn may_change(folder: impl AsFd) -> io::Result<()> {
    may_write(folder, OsStr::new("."))
}

/// What a link in a folder leads to, as it is written.
pub(super) fn read_link(folder: impl AsFd, name: &OsStr) -> io::Result<Vec<u8>> {
    Ok(fs::readlinkat(folder, name, Vec::new())?.into_bytes())
}

/// Sets the mode bits.
pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    Ok(fs::fchmod(file, bits(mode))?)
}

/// Sets owner and group.
pub(super) fn set_owner(file: &File, (user, group): (u32, u32)) -> io::Result<()> {
    Ok(fs::fchown(file, Some(fs::Uid::from_raw(user)), Some(fs::Gid::from_raw(group)))?)
}

/// Copies extended attributes (access lists, labels), as far as the system lets us.
pub(super) fn copy_attributes(from: &File, to: &File) {
    /// More than any list of names or value in use; larger ones are left behind.
    const LARGEST: usize = 64 * 1024;
    let mut names = vec![0u8; LARGEST];
    let Ok(length @ 1..) = fs::flistxattr(from, &mut names[..]) else { return };
    let mut value = vec![0u8; LARGEST];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if let Ok(size) = fs::fgetxattr(from, name, &mut value[..]) {
            // Labels that only the system may set are refused, and are set by it anyway.
            let _ = fs::fsetxattr(to, name, &value[..size], fs::XattrFlags::empty());
        }
    }
}

/// Reserves room for a file of this many bytes without changing its length.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if bytes > 0 {
        match fs::fallocate(file, fs::FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => return Err(error.into()),
            // Filesystems that cannot reserve say so in several ways; writing will tell.
            _ => return Ok(()),
        }
    }
    let _ = (file, bytes);
    Ok(())
}

/// Gives a file another name in the same folder, replacing what has that name.
pub(super) fn rename(folder: impl AsFd, from: &OsStr, to: &OsStr) -> io::Result<()> {
    Ok(fs::renameat(folder.as_fd(), from, folder.as_fd(), to)?)
}

/// Gives a file another name in the same folder, unless something has that name.
pub(super) fn rename_new(folder: impl AsFd, from: &OsStr, to: &OsStr) -> io::Result<()> {
    use rustix::fs::RenameFlags;
    match fs::renameat_with(folder.as_fd(), from, folder.as_fd(), to, RenameFlags::NOREPLACE) {
        // Not every filesystem can; a link and an unlink come to the same.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
            fs::linkat(folder.as_fd(), from, folder.as_fd(), to, AtFlags::empty())?;
            remove_file(folder, from)
        }
        other => Ok(other?),
    }
}

/// Removes a file.
pub(super) fn remove_file(folder: impl AsFd, name: &OsStr) -> io::Result<()> {
    Ok(fs::unlinkat(folder, name, AtFlags::empty())?)
}

/// Removes an empty folder.
pub(super) fn remove_folder(folder: impl AsFd, name: &OsStr) -> io::Result<()> {
    Ok(fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// At most so many of the names in a folder, without `.` and `..`, in no order.
pub(super) fn names(folder: impl AsFd, most: usize) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    each_entry(folder, |name, _| {
        names.push(name.to_owned());
        names.len() < most
    })?;
    Ok(names)
}

/// The names in a folder, without `.` and `..`, in no order, each with its kind where the system tells it along.
pub(super) fn entries(folder: impl AsFd) -> io::Result<Vec<(OsString, Option<FileKind>)>> {
    let mut entries = Vec::new();
    each_entry(folder, |name, kind| {
        entries.push((name.to_owned(), kind));
        true
    })?;
    Ok(entries)
}

/// Goes through a folder for as long as `go_on` says so.
fn each_entry(folder: impl AsFd, mut go_on: impl FnMut(&OsStr, Option<FileKind>) -> bool) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    // The folder may have been opened only to start from; listing needs a handle of its own.
    let listing = fs::openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for entry in Dir::new(listing)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let kind = entry.file_type();
        let told = (kind != FileType::Unknown).then(|| file_kind(kind));
        if name != b"." && name != b".." && !go_on(OsStr::from_bytes(name), told) {
            break;
        }
    }
    Ok(())
}

/// Whether two looks at a file saw the same content, as far as one can tell without reading it.
pub(super) fn untouched(before: &Meta, now: &Meta) -> bool {
    (before.identity, before.size, before.modified_ns, before.changed)
        == (now.identity, now.size, now.modified_ns, now.changed)
}

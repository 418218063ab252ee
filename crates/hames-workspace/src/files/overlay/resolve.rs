//! Finding out where a path would lead.
//!
//! The filesystem below knows; its answer is taken wherever the proposals cannot have changed it. Elsewhere the path is
//! followed part by part, with the links that would be there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use hames_tools::{FileKind, FsError, FsPath};
use rustix::io::Errno;

use super::super::local::{fs_error, io_failure};
use super::super::resolve::{Ending, MAX_LINKS, alike, may_be_alike, parts};
use super::OverlayFs;
use super::view::{self, Seen};

impl OverlayFs {
    pub(super) fn place(&self, path: &str, ending: Ending) -> Result<FsPath, FsError> {
        let found = match ending {
            Ending::Followed => self.base.resolve(path),
            Ending::Named => self.base.resolve_entry(path),
        };
        if self.is_untouched() {
            return found;
        }
        match found {
            Ok(found) if self.holds(path, &found) => Ok(found),
            Err(denied @ FsError::Denied { .. }) => Err(denied),
            Err(error) if path.is_empty() || path.contains('\0') => Err(error),
            _ => self.follow(path, ending),
        }
    }

    /// Whether what the disk says of a path holds with the proposals too.
    fn holds(&self, path: &str, found: &FsPath) -> bool {
        // A way back leads through what may be a file by now.
        if parts(Path::new(path)).any(|part| part == "..") {
            return false;
        }
        let state = self.state();
        let seen = view::look(&state, &found.abs);
        if seen == Seen::BelowFile {
            return false;
        }
        if found.abs != self.root_of(path).join(path) {
            // Through links that may be gone, or to another name that may have to be this one.
            return !may_be_alike(path) && !view::touches_links(&state);
        }
        drop(state);
        // Another name may have to be taken for one that is not there.
        !may_be_alike(path)
            || match seen {
                Seen::Disk => self.base.stat(found).is_ok(),
                Seen::File(_) | Seen::Mixed | Seen::Made => true,
                Seen::Nothing | Seen::BelowFile => false,
            }
    }

    fn root_of(&self, path: &str) -> &Path {
        if path.starts_with('/') { Path::new("/") } else { self.base.root() }
    }

    fn follow(&self, path: &str, ending: Ending) -> Result<FsPath, FsError> {
        let mut at = self.root_of(path).to_path_buf();
        let mut rest: VecDeque<OsString> = parts(Path::new(path)).collect();
        let mut links = 0;
        let mut identity = None;
        while let Some(part) = rest.pop_front() {
            identity = None;
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&part);
            let is_there = match self.look(&next) {
                Seen::File(_) | Seen::Mixed | Seen::Made => true,
                Seen::Nothing => false,
                Seen::BelowFile => return Err(fs_error(path, Errno::NOTDIR.into())),
                Seen::Disk => match self.on_disk(&next)? {
                    None => false,
                    Some((entry, FileKind::Link)) if !rest.is_empty() || ending == Ending::Followed => {
                        links += 1;
                        if links > MAX_LINKS {
                            return Err(fs_error(path, Errno::LOOP.into()));
                        }
                        let target = PathBuf::from(OsString::from_vec(self.base.read_link(&entry)?));
                        if target.is_absolute() {
                            at = PathBuf::from("/");
                        }
                        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                            rest.push_front(part);
                        }
                        continue;
                    }
                    Some((entry, _)) => {
                        identity = entry.identity;
                        true
                    }
                },
            };
            let name = part.to_str().filter(|name| !is_there && may_be_alike(name));
            match name.and_then(|name| alike(name, self.names(&at).into_iter().map(OsString::from))) {
                Some(other) if other != part => rest.push_front(other),
                // A name that is listed and not there is shown for one that is no text.
                _ => at = next,
            }
        }
        Ok(self.fs_path(at, identity))
    }

    /// What the disk has under exactly this name.
    fn on_disk(&self, path: &Path) -> Result<Option<(FsPath, FileKind)>, FsError> {
        let Some(text) = path.to_str() else {
            return Err(io_failure(
                &path.to_string_lossy(),
                "a name on its way is not UTF-8 and cannot be followed while changes are proposed",
            ));
        };
        let entry = match self.base.resolve_entry(text) {
            Ok(entry) if entry.abs == path => entry,
            Ok(_) => return Ok(None),
            Err(FsError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match self.base.stat(&entry) {
            Ok(stat) => Ok(Some((entry, stat.kind))),
            Err(FsError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

//! Places that no file tool reaches, whatever was approved.
//!
//! A place is known by its path and by its identity (device and inode), so that a mount, a file system that ignores
//! case, or a hard link to a file inside leads no further than its plain path does.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hames_tools::FileKind;

use super::resolve::{self, Ending, Reach};
use super::sys::{self, Meta};

/// How long what was found inside the places stays known. A hard link can only lead to a file that was there before,
/// so this is how fresh such a file must be to be missed.
const INODES_KEPT: Duration = Duration::from_secs(1);

/// Files looked at inside the places. Only files with several names are ever compared with them.
const MAX_INODES: usize = 20_000;

/// The denied places of one filesystem.
#[derive(Debug)]
pub(super) struct Denied {
    places: Vec<PathBuf>,
    latest: Mutex<Option<Arc<DeniedNow>>>,
    inside: Mutex<Option<Inside>>,
}

/// Identities of the files inside the places, and when they were looked up.
#[derive(Debug)]
struct Inside {
    at: Instant,
    files: HashSet<(u64, u64)>,
}

impl Denied {
    pub(super) fn new(places: Vec<PathBuf>) -> Self {
        Self { places, latest: Mutex::default(), inside: Mutex::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The places as they were given.
    pub(super) fn places(&self) -> &[PathBuf] {
        &self.places
    }

    /// The places as they are at this moment: they may have been made, or become links, since the last look.
    pub(super) fn look(&self) -> Arc<DeniedNow> {
        let seen: Vec<Option<Meta>> = self.places.iter().map(|path| sys::stat_path(path).ok()).collect();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some(known) if known.seen == seen => known.clone(),
            _ => latest.insert(Arc::new(DeniedNow::look(&self.places, seen))).clone(),
        }
    }

    /// Whether an open file is one of those inside, under another name.
    pub(super) fn holds(&self, meta: &Meta) -> bool {
        if self.places.is_empty() || meta.links < 2 {
            return false;
        }
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *inside {
            Some(known) if known.at.elapsed() < INODES_KEPT => known.files.contains(&meta.identity),
            stale => {
                let files = self.identities();
                stale.insert(Inside { at: Instant::now(), files }).files.contains(&meta.identity)
            }
        }
    }

    fn identities(&self) -> HashSet<(u64, u64)> {
        let mut found = HashSet::new();
        let mut folders: Vec<PathBuf> = self.places.clone();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match sys::stat_path(&path) {
                    Ok(meta) if meta.kind == FileKind::Dir => folders.push(path),
                    Ok(meta) if found.len() < MAX_INODES => {
                        found.insert(meta.identity);
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// The denied places at one moment.
#[derive(Debug)]
pub(super) struct DeniedNow {
    /// What was there, links not followed: while this is so, the rest holds.
    seen: Vec<Option<Meta>>,
    /// As written, and where that leads.
    paths: Vec<PathBuf>,
    identities: Vec<(u64, u64)>,
}

impl DeniedNow {
    fn look(places: &[PathBuf], seen: Vec<Option<Meta>>) -> Self {
        let real: Vec<_> = places
            .iter()
            .filter_map(|path| resolve::resolve(Path::new("/"), path, Ending::Followed, Reach::Everything).ok())
            .collect();
        let identities = real.iter().filter_map(|place| Some(place.meta?.identity)).collect();
        let paths = places.iter().cloned().chain(real.into_iter().map(|place| place.path)).collect();
        DeniedNow { seen, paths, identities }
    }

    /// Whether a path lies in a denied place or is one, going by how it is written.
    pub(super) fn covers_written(&self, path: &Path) -> bool {
        self.paths.iter().any(|place| path.starts_with(place))
    }

    /// Whether a denied place lies at or below a path, going by how it is written.
    pub(super) fn lies_below(&self, path: &Path) -> bool {
        self.paths.iter().any(|place| place.starts_with(path))
    }

    /// Whether a path without links lies in a denied place or is one, however it is written. `known` is a folder that
    /// is known not to.
    pub(super) fn covers(&self, path: &Path, known: Option<&Path>) -> bool {
        self.covers_written(path)
            || !self.identities.is_empty()
                && path
                    .ancestors()
                    .take_while(|part| Some(*part) != known)
                    .any(|part| sys::stat_path(part).is_ok_and(|meta| self.is(meta.identity)))
    }

    /// Whether this is the identity of a denied place itself.
    pub(super) fn is(&self, identity: (u64, u64)) -> bool {
        self.identities.contains(&identity)
    }
}

//! Where things lie under the home folder, and how they are created: folders 0700, files 0600.
//!
//! Permissions of a folder that was there before are left alone: somebody may have pointed the home at a folder of
//! theirs.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hames_protocol::{LogError, SessionId};

use crate::fault::io_error;

const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// The paths under one home.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    root: PathBuf,
}

impl Home {
    /// Creates what is missing.
    pub(crate) fn create(root: &Path) -> Result<Home, LogError> {
        let home = Home { root: root.to_owned() };
        for folder in [home.root.clone(), home.blobs(), home.locks()] {
            create_folder(&folder).map_err(|e| io_error("create", &folder, &e))?;
        }
        Ok(home)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("hames.db")
    }
    /// A salvaged database that is complete and only waits to be renamed into place.
    pub(crate) fn salvaged(&self) -> PathBuf {
        self.root.join("hames.db.salvaged")
    }
    pub(crate) fn backups(&self) -> PathBuf {
        self.root.join("backups")
    }
    pub(crate) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }
    pub(crate) fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }
    pub(crate) fn database_lock(&self) -> PathBuf {
        self.locks().join("db.lock")
    }
    pub(crate) fn blob_lock(&self) -> PathBuf {
        self.locks().join("blobs.lock")
    }
    pub(crate) fn session_lock(&self, id: &SessionId) -> PathBuf {
        self.locks().join(format!("{id}.lock"))
    }
}

/// `path` with `suffix` appended to its last component.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Creates a folder and its parents, the new ones readable by nobody else.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(path)
}

/// Opens a small file for reading and writing, creating it.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE).open(path)
}

/// Creates an empty file that was not there; `false` where it was. Never touches one that exists: closing a second
/// handle on a database would drop the locks that SQLite holds on it.
pub(crate) fn create_private(path: &Path) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e),
    }
}

//! Where the server of a home is found.
//!
//! It depends on the home alone, never on the environment: two clients of one home, one from a desktop and one over ssh,
//! must come to the same socket, or there would be two servers.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes a socket's path may have: 108 on Linux and 104 on macOS, with the closing zero.
const MAX_SOCKET_PATH: usize = 103;

/// The files a server and its clients share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
    /// A folder with a short path, for homes whose own is too long, or cannot hold a socket.
    short: PathBuf,
}

/// A folder that cannot be trusted or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It could not be made or looked at.
    #[error("{folder} cannot be used ({why}); check its permissions")]
    Unusable {
        /// The folder.
        folder: String,
        /// What the system said.
        why: String,
    },
    /// Others may write or read there, or it is not ours.
    #[error(
        "{folder} {what}, so other users could reach the server's socket; remove it or make it yours alone (chmod 700)"
    )]
    NotPrivate {
        /// The folder.
        folder: String,
        /// What is wrong.
        what: String,
    },
}

impl Place {
    /// The place of the home whose data folder this is. Makes nothing.
    pub fn of(data: &Path) -> Self {
        let data = fs::canonicalize(data).unwrap_or_else(|_| data.to_path_buf());
        let uid = rustix::process::geteuid().as_raw();
        let hash = blake3::hash(data.as_os_str().as_bytes()).to_hex();
        Self { folder: data.join("run"), short: PathBuf::from(format!("/tmp/hames-{uid}-{}", &hash.as_str()[..16])) }
    }

    /// Where the server's own files are: 0700, inside the home.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The sockets a server may listen on, the preferred one first: the home's own where its path is short enough, then
    /// one in a private folder with a short path, for long homes and file systems that hold no sockets.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let own = self.folder.join("server.sock");
        let own = Some(own).filter(|path| path.as_os_str().len() <= MAX_SOCKET_PATH);
        own.into_iter().chain([self.short.join("server.sock")]).collect()
    }

    /// Held exclusively by the server as long as it lives: there is one for a home.
    pub fn server_lock(&self) -> PathBuf {
        self.folder.join("server.lock")
    }

    /// Held by a client while it starts a server, so that two at once start one.
    pub fn start_lock(&self) -> PathBuf {
        self.folder.join("start.lock")
    }

    /// The token for loopback TCP: 0600.
    pub fn token(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// Makes the folder of `file` (one of this place's) where it is missing, and makes sure that it is private.
    pub fn prepare(&self, file: &Path) -> Result<(), PlaceError> {
        let folder = file.parent().unwrap_or(&self.folder);
        let unusable =
            |error: io::Error| PlaceError::Unusable { folder: folder.display().to_string(), why: error.to_string() };
        match DirBuilder::new().mode(0o700).recursive(folder.starts_with(&self.folder)).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            _ => {}
        }
        // Not through a link: in a shared folder it could lead anywhere.
        let found = fs::symlink_metadata(folder).map_err(unusable)?;
        let not_private = |what: String| Err(PlaceError::NotPrivate { folder: folder.display().to_string(), what });
        if !found.is_dir() {
            return not_private("is not a folder".into());
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return not_private(format!("belongs to user {}", found.uid()));
        }
        if found.mode() & 0o077 != 0 {
            return not_private(format!("has the mode {:o}", found.mode() & 0o777));
        }
        Ok(())
    }
}

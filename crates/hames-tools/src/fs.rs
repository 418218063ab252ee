//! The filesystem as tools see it. Methods block; tools call them through [`ToolCx::blocking`](crate::ToolCx::blocking).

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{BlobStore, Emit, Failure, SessionId, SessionState};

/// A path the model wrote, resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FsPath {
    /// Absolute, links resolved as far as the path exists, the rest appended.
    pub abs: PathBuf,
    /// For people and the model: relative to the root where it is inside, else absolute. `/`-separated.
    pub shown: String,
    /// Whether it is inside the root after links are resolved.
    pub inside: bool,
    /// Device and inode, where it exists: two spellings of one file have the same.
    pub identity: Option<(u64, u64)>,
}

impl FsPath {
    /// The path of an entry below or outside `root`, without links on its way.
    pub fn new(root: &Path, abs: PathBuf, identity: Option<(u64, u64)>) -> Self {
        let shown = match abs.strip_prefix(root) {
            Ok(relative) if relative.as_os_str().is_empty() => ".".into(),
            Ok(relative) => relative.to_string_lossy().into_owned(),
            Err(_) => abs.to_string_lossy().into_owned(),
        };
        Self { shown, inside: abs.starts_with(root), identity, abs }
    }
}

/// What kind of thing a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link that leads nowhere or was not followed.
    Link,
    /// A socket, pipe or device.
    Other,
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Permission bits (the low twelve).
    pub mode: u32,
    /// Nanoseconds since 1970; 0 where unknown.
    pub modified_ns: u128,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name; bytes that are no UTF-8 are shown as U+FFFD.
    pub name: String,
    /// What it is (links are followed where they lead inside the root).
    pub kind: FileKind,
    /// Bytes, for files.
    pub size: u64,
}

/// What a walk visits and leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkOptions {
    /// Visit what ignore files hide. Version-control folders stay hidden.
    pub no_ignore: bool,
    /// Folders deeper than this below the start are not entered.
    pub max_depth: Option<usize>,
}

/// Something a walk came by. Folders come before what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkEntry {
    /// The path.
    pub path: FsPath,
    /// What it is.
    pub kind: FileKind,
    /// Bytes, for files.
    pub size: u64,
    /// Nanoseconds since 1970; 0 where unknown.
    pub modified_ns: u128,
}

/// What must hold on disk at the moment of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is there.
    Absent,
    /// The file's content, or what the link leads to, has this BLAKE3 hash (lower-case hex).
    Hash(String),
    /// A folder is there; for a removal it must be empty when it happens.
    Dir,
}

/// A change that is worked out in full and about to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedChange {
    /// The real target: links resolved, but for a link that is itself removed.
    pub target: PathBuf,
    /// What is there, or a file where nothing is.
    pub kind: FileKind,
    /// The content it replaces or removes; for a link what it leads to; `None` where nothing was, and for folders.
    pub before: Option<Vec<u8>>,
    /// BLAKE3 of the new content, lower-case hex; `None` for a removal.
    pub after_hash: Option<String>,
    /// Mode bits the file will have; those it had, for a removal.
    pub mode: u32,
    /// Set where the change only becomes a proposal and the disk stays as it is.
    pub proposed: Option<ProposedChange>,
}

/// What is recorded of a change that is only proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedChange {
    /// BLAKE3 of what is on disk; `None` where nothing is.
    pub base: Option<String>,
    /// The proposed content; `None` for a removal.
    pub content: Option<Vec<u8>>,
    /// Mode bits of the proposed file, or those a removed one has; `None` for a new file whose bits the system decides on.
    pub mode: Option<u32>,
    /// Folders that are missing and come with the file, outermost first.
    pub folders: Vec<PathBuf>,
}

/// A change beside its target, ready to take place. Dropped without [`commit`](Self::commit) it leaves no trace.
pub trait Staged: Send {
    /// What will happen.
    fn change(&self) -> &StagedChange;
    /// Lets it happen, atomically, if the target is still what was expected.
    fn commit(self: Box<Self>) -> Result<(), FsError>;
}

/// Called between staging and happening: an error leaves everything as it was.
pub type RecordChange<'a> = &'a mut dyn FnMut(&StagedChange) -> Result<(), FsError>;

/// Why the filesystem did not do it. The text names the path and says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// There is no such file or folder.
    #[error("{path} does not exist{hint}")]
    NotFound {
        /// The path.
        path: String,
        /// Empty, or what to look at instead, beginning with a separator.
        hint: String,
    },
    /// Outside the workspace and not approved.
    #[error("{path} is outside the workspace (it resolves to {target}); only paths inside the workspace can be used", target = target.display())]
    Outside {
        /// The path as written.
        path: String,
        /// Where it leads.
        target: PathBuf,
    },
    /// Never reachable by a file tool, even approved.
    #[error("{path} belongs to Hames itself and cannot be used by tools")]
    Denied {
        /// The path.
        path: String,
    },
    /// Kept from this call by a rule of a person.
    #[error(
        "{path} may not be used by this call: a rule forbids it, or asks about it and this call was not asked about it. Do without it, or name it in a call of its own"
    )]
    Ruled {
        /// The path.
        path: String,
    },
    /// Wrong kind of thing.
    #[error("{path} is {found}, not {wanted}")]
    WrongKind {
        /// The path.
        path: String,
        /// What it is, with its article.
        found: &'static str,
        /// What it should be, with its article.
        wanted: &'static str,
    },
    /// Larger than the limit.
    #[error("{path} has {size} bytes; files over {limit} bytes cannot be {doing}{hint}")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
        /// `edited`, `read`.
        doing: &'static str,
        /// Empty, or what to do instead, beginning with a separator.
        hint: &'static str,
    },
    /// It is not what it was when it was read or checked.
    #[error("{path} has changed since it was read; read it again and repeat the change")]
    Changed {
        /// The path.
        path: String,
    },
    /// The disk is full.
    #[error("the disk is full; {path} is unchanged")]
    NoSpace {
        /// The path.
        path: String,
    },
    /// The recorder refused, so the write did not happen.
    #[error("{0}")]
    NotRecorded(String),
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Anything else the system said.
    #[error("{path}: {reason}")]
    Io {
        /// The path.
        path: String,
        /// The system's words.
        reason: String,
    },
}

/// The name of a file that is made only so that its folder is, and removed at once.
const PASSING: &str = ".hames-folder";

/// A filesystem with a root that file tools stay inside.
pub trait FsProvider: Send + Sync {
    /// The root, absolute and canonical.
    fn root(&self) -> &Path;

    /// Resolves a path as a model writes it: relative to the root or absolute, with `.` and `..`, links followed by
    /// the system. A path that exists literally is taken literally, whatever characters it holds; one that does not,
    /// but has exactly one look-alike (no-break blanks, NFC/NFD), names that one. Paths that do not exist resolve too.
    fn resolve(&self, path: &str) -> Result<FsPath, FsError>;

    /// What is known of it.
    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError>;

    /// Opens a regular file for reading.
    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError>;

    /// Entries of a folder, sorted by name.
    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError>;

    /// Like [`resolve`](Self::resolve), but names the entry itself: a link at the end is not followed.
    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError>;

    /// What a symbolic link leads to, as it is written; `path` names the link itself. A filesystem without links has
    /// nothing to answer, one over another passes the question on.
    fn read_link(&self, path: &FsPath) -> Result<Vec<u8>, FsError> {
        Err(FsError::WrongKind { path: path.shown.clone(), found: "no link", wanted: "a link" })
    }

    /// What tells a regular file apart that has other names too (hard links): its device and inode. `None` for a file with
    /// one name and for anything else; a filesystem where no file has two need not answer. `path` names the entry itself.
    fn shared_identity(&self, path: &FsPath) -> Option<(u64, u64)> {
        let _ = path;
        None
    }

    /// Stages a whole file's content: makes missing folders and checks `expect`. The file keeps the mode bits of the
    /// one it replaces; `mode` is for a new one, else what the system gives.
    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError>;

    /// Stages the removal of a file, a link, or a folder, which must be empty by the time it happens.
    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError>;

    /// Whether rights allow what [`stage_write`](Self::stage_write) would do there, without doing any of it: for whoever
    /// only proposes.
    fn may_write(&self, path: &FsPath) -> Result<(), FsError> {
        let _ = path;
        Ok(())
    }

    /// The same for [`stage_remove`](Self::stage_remove).
    fn may_remove(&self, path: &FsPath) -> Result<(), FsError> {
        let _ = path;
        Ok(())
    }

    /// Makes a folder, with those it needs above it; one that is there is as good. As provided by way of a file in it,
    /// which every filesystem can.
    fn make_folder(&self, path: &FsPath) -> Result<(), FsError> {
        match self.stat(path) {
            Ok(stat) if stat.kind == FileKind::Dir => return Ok(()),
            Ok(_) => return Err(FsError::Changed { path: path.shown.clone() }),
            Err(FsError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let passing = FsPath {
            abs: path.abs.join(PASSING),
            shown: format!("{}/{PASSING}", path.shown),
            inside: path.inside,
            identity: None,
        };
        self.stage_write(&passing, b"", &Expect::Absent, None)?.commit()?;
        let empty = Expect::Hash(blake3::hash(b"").to_hex().to_string());
        self.stage_remove(&passing, &empty)?.commit()
    }

    /// Writes a whole file: stages it, calls `record`, and only then lets the new content take the old one's place.
    fn write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        record: RecordChange<'_>,
    ) -> Result<StagedChange, FsError> {
        happen(self.stage_write(path, content, expect, None)?, record)
    }

    /// Removes a file, a link or an empty folder, with `record` called before it happens.
    fn remove(&self, path: &FsPath, expect: &Expect, record: RecordChange<'_>) -> Result<StagedChange, FsError> {
        happen(self.stage_remove(path, expect)?, record)
    }

    /// Visits everything below a folder (or the one file) until `visit` breaks. As provided it lists folder by folder
    /// and knows no ignore files; version-control folders are left out, and links to folders are not entered.
    fn walk(
        &self,
        from: &FsPath,
        options: &WalkOptions,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        crate::walk::walk(self, from, options, visit)
    }

    /// Whether a place that no tool may reach lies at or below this path.
    fn hides(&self, path: &FsPath) -> bool {
        let _ = path;
        false
    }

    /// Whether a rule keeps some path from the call, so that [`FsError::Ruled`] may come. Where it is `false`, nobody
    /// has to ask about paths that are only named.
    fn is_ruled(&self) -> bool {
        true
    }

    /// The places that no tool may reach, as far as they have paths on this machine: for keeping commands from them, too.
    fn hidden(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Reads a whole file of at most `limit` bytes.
    fn read(&self, path: &FsPath, limit: u64) -> Result<Vec<u8>, FsError> {
        let stat = self.stat(path)?;
        if stat.size > limit {
            return Err(FsError::TooLarge {
                path: path.shown.clone(),
                size: stat.size,
                limit,
                doing: "read",
                hint: "",
            });
        }
        let mut bytes = Vec::new();
        // One byte more than allowed, so that a file that grew meanwhile is noticed and not read without end.
        let read = self.open(path)?.take(limit + 1).read_to_end(&mut bytes);
        match read {
            Ok(n) if n as u64 > limit => {
                Err(FsError::TooLarge { path: path.shown.clone(), size: n as u64, limit, doing: "read", hint: "" })
            }
            Ok(_) => Ok(bytes),
            Err(error) => Err(FsError::Io { path: path.shown.clone(), reason: error.to_string() }),
        }
    }
}

fn happen(staged: Box<dyn Staged>, record: RecordChange<'_>) -> Result<StagedChange, FsError> {
    record(staged.change())?;
    let change = staged.change().clone();
    staged.commit()?;
    Ok(change)
}

/// Lays the session's proposals over a filesystem: what file tools run against in Analyze.
#[async_trait]
pub trait Preview: Send + Sync {
    /// The filesystem as it would be. `state` holds the proposals and is kept current while calls run; `blobs` their
    /// content.
    fn over(
        &self,
        base: Arc<dyn FsProvider>,
        state: Arc<Mutex<SessionState>>,
        blobs: Arc<dyn BlobStore>,
    ) -> Arc<dyn FsProvider>;

    /// Finishes forward what was being applied to `base` when its process died, and records that to `emit`. Does nothing
    /// where nothing is under way; fails only where it cannot be recorded.
    async fn finish(
        &self,
        base: Arc<dyn FsProvider>,
        session: &SessionId,
        state: &SessionState,
        blobs: Arc<dyn BlobStore>,
        emit: &dyn Emit,
    ) -> Result<Finished, Failure>;

    /// Takes back the proposals that `base` is already as they have it, whoever made it so, and records that to `emit` as
    /// applied. Gives their absolute paths; fails only where it cannot be recorded.
    async fn settle(
        &self,
        base: Arc<dyn FsProvider>,
        session: &SessionId,
        state: &SessionState,
        blobs: Arc<dyn BlobStore>,
        emit: &dyn Emit,
    ) -> Result<Vec<String>, Failure>;
}

/// What became of proposals whose application was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Absolute paths that are as proposed now.
    pub applied: Vec<String>,
    /// Absolute paths that were left alone, each with the reason: somebody else changed them meanwhile.
    pub left: Vec<(String, String)>,
}

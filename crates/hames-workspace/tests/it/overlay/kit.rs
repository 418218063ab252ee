//! The same tree twice: one with an overlay over it, one that is changed for real.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{
    BlobSource, BlobStore, ChangeKind, ChangeProposed, Emit, Envelope, Event, Failure, MemoryBlobs, SessionId,
    SessionState,
};
use hames_tools::{
    DirEntry, Expect, FileKind, FileStat, Finished, FsError, FsPath, FsProvider, Preview, Staged, StagedChange,
    WalkOptions,
};
use hames_workspace::files::{Applied, ApplyError, Changes, LocalFs, LocalFsOptions, Overlay};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// What a tree is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File(Vec<u8>),
    Script(Vec<u8>),
    Link(String),
    Dir,
}

/// Something done to a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Write(String, Vec<u8>),
    Remove(String),
}

/// Makes nodes in a folder, each with the folders it needs; what does not fit is left out.
pub(crate) fn plant(folder: &Path, nodes: &[(String, Node)]) {
    for (path, node) in nodes {
        let at = folder.join(path);
        if std::fs::create_dir_all(at.parent().unwrap()).is_err() || at.symlink_metadata().is_ok() {
            continue;
        }
        match node {
            Node::File(content) => std::fs::write(&at, content).unwrap(),
            Node::Script(content) => {
                std::fs::write(&at, content).unwrap();
                std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o750)).unwrap();
            }
            Node::Link(target) => symlink(target, &at).unwrap(),
            Node::Dir => std::fs::create_dir(&at).unwrap(),
        }
    }
}

/// Makes a workspace in a scratch folder, so deep in it that no link of a test leads out.
pub(crate) fn planted(scratch: &TempDir, nodes: &[(String, Node)]) -> PathBuf {
    let root = scratch.path().join("x/y/w");
    std::fs::create_dir_all(&root).unwrap();
    plant(&root, nodes);
    root
}

/// Everything below a folder, links not followed: kind, rights and content; times where they are wanted.
pub(crate) fn tree(folder: &Path, times: bool) -> BTreeMap<PathBuf, String> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let mut line = format!("{:o}", meta.mode());
        if meta.is_dir() {
            out.extend(
                tree(&path, times)
                    .into_iter()
                    .map(|(below, line)| (PathBuf::from(path.file_name().unwrap()).join(below), line)),
            );
        } else if meta.is_symlink() {
            write!(line, " -> {}", path.read_link().unwrap().display()).unwrap();
        } else {
            write!(line, " {:?}", String::from_utf8_lossy(&std::fs::read(&path).unwrap())).unwrap();
        }
        if times {
            write!(line, " {}.{} {}.{}", meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()).unwrap();
        }
        out.insert(PathBuf::from(path.file_name().unwrap()), line);
    }
    out
}

/// A tree with an overlay over it.
pub(crate) struct Proposing {
    pub(crate) scratch: TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) disk: Arc<LocalFs>,
    pub(crate) fs: Arc<dyn FsProvider>,
    pub(crate) state: Arc<Mutex<SessionState>>,
    pub(crate) blobs: Arc<MemoryBlobs>,
}

pub(crate) fn session() -> SessionId {
    SessionId::from("s")
}

impl Proposing {
    pub(crate) fn over(nodes: &[(String, Node)]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = planted(&scratch, nodes);
        let disk = local(&root);
        let state =
            Arc::new(Mutex::new(SessionState { folder: root.to_str().unwrap().into(), ..SessionState::default() }));
        let blobs = Arc::new(MemoryBlobs::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fs = {
            let _inside = runtime.enter();
            Overlay::default().over(disk.clone(), state.clone(), blobs.clone())
        };
        Self { scratch, runtime, disk, fs, state, blobs }
    }

    pub(crate) fn fold(&self, event: impl Into<Event>) {
        self.state.lock().unwrap().apply(&Envelope::detached(1_000, event.into()));
    }

    pub(crate) fn disk_root(&self) -> &Path {
        self.disk.root()
    }

    /// Applies to this disk what is open at or below the places.
    pub(crate) fn apply(&self, disk: Arc<dyn FsProvider>, places: &[String]) -> Result<Applied, ApplyError> {
        let state = self.state.lock().unwrap().clone();
        let emit = Folding(self.state.clone());
        self.runtime
            .block_on(async { Changes::new(session(), disk, self.blobs.clone()).apply(&state, places, &emit).await })
    }

    /// Finishes what was cut.
    pub(crate) fn finish(&self) -> Finished {
        let state = self.state.lock().unwrap().clone();
        let emit = Folding(self.state.clone());
        let changes = Changes::new(session(), self.disk.clone(), self.blobs.clone());
        self.runtime.block_on(changes.finish(&state, &emit)).unwrap()
    }

    pub(crate) fn act(&self, act: &Act) -> Result<StagedChange, FsError> {
        do_to(self.fs.as_ref(), act, &mut |staged| {
            self.record(staged);
            Ok(())
        })
    }

    /// What the tools do with a change that is proposed.
    pub(crate) fn record(&self, staged: &StagedChange) {
        let proposed = staged.proposed.as_ref().expect("nothing changes for real");
        let content = proposed
            .content
            .clone()
            .map(|content| self.runtime.block_on(self.blobs.put(&session(), "", BlobSource::Bytes(content))).unwrap());
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        self.fold(ChangeProposed {
            call_id: "c".into(),
            path: text(&staged.target),
            base: proposed.base.clone(),
            content,
            mode: proposed.mode,
            kind: match staged.kind {
                FileKind::Dir => ChangeKind::Dir,
                FileKind::Link => ChangeKind::Link,
                _ => ChangeKind::File,
            },
            folders: proposed.folders.iter().map(text).collect(),
        });
    }
}

/// Records into the state and nowhere else.
pub(crate) struct Folding(pub(crate) Arc<Mutex<SessionState>>);

#[async_trait]
impl Emit for Folding {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        let mut state = self.0.lock().unwrap();
        events.into_iter().for_each(|event| state.apply(&Envelope::detached(2_000, event)));
        Ok(())
    }
    fn show(&self, _event: Event) {}
}

/// The disk, but for a power cut (a panic) at one of its changes.
pub(crate) struct Cut {
    pub(crate) inner: Arc<LocalFs>,
    /// Changes that happen before it.
    pub(crate) left: Arc<AtomicUsize>,
}

struct CutChange {
    inner: Box<dyn Staged>,
    left: Arc<AtomicUsize>,
}

impl Staged for CutChange {
    fn change(&self) -> &StagedChange {
        self.inner.change()
    }
    fn commit(self: Box<Self>) -> Result<(), FsError> {
        pass(&self.left);
        self.inner.commit()
    }
}

fn pass(left: &AtomicUsize) {
    // Unwinds without a word: it is meant.
    if left.fetch_sub(1, Ordering::SeqCst) == 0 {
        std::panic::resume_unwind(Box::new("cut"));
    }
}

impl Cut {
    fn watched(&self, staged: Box<dyn Staged>) -> Box<dyn Staged> {
        Box::new(CutChange { inner: staged, left: self.left.clone() })
    }
}

impl FsProvider for Cut {
    fn root(&self) -> &Path {
        self.inner.root()
    }
    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve(path)
    }
    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve_entry(path)
    }
    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError> {
        self.inner.stat(path)
    }
    fn shared_identity(&self, path: &FsPath) -> Option<(u64, u64)> {
        self.inner.shared_identity(path)
    }
    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        self.inner.open(path)
    }
    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        self.inner.list(path)
    }
    fn read_link(&self, path: &FsPath) -> Result<Vec<u8>, FsError> {
        self.inner.read_link(path)
    }
    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        self.inner.stage_write(path, content, expect, mode).map(|staged| self.watched(staged))
    }
    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        self.inner.stage_remove(path, expect).map(|staged| self.watched(staged))
    }
    fn make_folder(&self, path: &FsPath) -> Result<(), FsError> {
        pass(&self.left);
        self.inner.make_folder(path)
    }
}

pub(crate) fn local(root: &Path) -> Arc<LocalFs> {
    Arc::new(LocalFs::new(root, LocalFsOptions::default()).unwrap())
}

/// What the tools do: look, and change what was seen.
pub(crate) fn do_to(
    fs: &dyn FsProvider,
    act: &Act,
    record: &mut dyn FnMut(&StagedChange) -> Result<(), FsError>,
) -> Result<StagedChange, FsError> {
    match act {
        Act::Write(path, content) => {
            let path = fs.resolve(path)?;
            let expect = match fs.read(&path, u64::MAX - 1) {
                Ok(old) => hash(&old),
                Err(FsError::NotFound { .. }) => Expect::Absent,
                Err(error) => return Err(error),
            };
            fs.write(&path, content, &expect, record)
        }
        Act::Remove(path) => {
            let path = fs.resolve_entry(path)?;
            let expect = match fs.stat(&path)?.kind {
                FileKind::Dir if !fs.list(&path)?.is_empty() => {
                    return Err(FsError::Io { path: path.shown, reason: "not empty".into() });
                }
                FileKind::Dir => Expect::Dir,
                FileKind::Link => hash(&fs.read_link(&path)?),
                _ => hash(&fs.read(&path, u64::MAX - 1)?),
            };
            fs.remove(&path, &expect, record)
        }
    }
}

pub(crate) fn hash(content: &[u8]) -> Expect {
    Expect::Hash(blake3::hash(content).to_hex().to_string())
}

/// Everything a filesystem says of some paths, links and all.
pub(crate) fn picture(fs: &dyn FsProvider, paths: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for path in paths {
        for (how, found) in [("", fs.resolve(path)), ("entry ", fs.resolve_entry(path))] {
            let said = match found {
                Ok(found) => format!("{} {}", shown(fs, &found), told(fs, &found)),
                Err(error) => kind_of(&error).to_owned(),
            };
            lines.push(format!("{how}{path}: {said}"));
        }
    }
    // Below the root the local filesystem lets rules from above win over nearer ones; that is not the overlay's.
    let all = |max_depth| WalkOptions { no_ignore: true, max_depth };
    let heeding = |max_depth| WalkOptions { no_ignore: false, max_depth };
    for (from, options) in [
        (".", heeding(None)),
        (".", heeding(Some(1))),
        (".", all(Some(0))),
        ("a", all(None)),
        ("a", all(Some(1))),
        ("l", all(None)),
    ] {
        lines.push(format!("walk {from} {options:?}: {}", walked(fs, from, &options)));
    }
    lines
}

/// The path, also outside the same for every scratch folder.
fn shown(fs: &dyn FsProvider, path: &FsPath) -> String {
    let scratch = fs.root().ancestors().nth(3).unwrap();
    path.shown.replace(scratch.to_str().unwrap(), "")
}

fn told(fs: &dyn FsProvider, path: &FsPath) -> String {
    let stat = match fs.stat(path) {
        Ok(stat) => stat,
        Err(error) => return kind_of(&error).to_owned(),
    };
    let size = if stat.kind == FileKind::File { stat.size } else { 0 };
    let mut said = format!("{:?} {size}", stat.kind);
    match fs.read(path, 1_000_000) {
        Ok(content) => write!(said, " {:?}", String::from_utf8_lossy(&content)).unwrap(),
        Err(error) => said.push_str(kind_of(&error)),
    }
    match fs.list(path) {
        Ok(entries) => write!(said, " {:?}", entries.iter().map(|e| (&e.name, e.kind)).collect::<Vec<_>>()).unwrap(),
        Err(error) => said.push_str(kind_of(&error)),
    }
    if let Ok(target) = fs.read_link(path) {
        write!(said, " -> {}", String::from_utf8_lossy(&target)).unwrap();
    }
    said
}

pub(crate) fn walked(fs: &dyn FsProvider, from: &str, options: &WalkOptions) -> String {
    let mut seen = Vec::new();
    let from = match fs.resolve(from) {
        Ok(from) => from,
        Err(error) => return kind_of(&error).to_owned(),
    };
    let walked = fs.walk(&from, options, &mut |entry| {
        let abs = entry.path.abs.strip_prefix(fs.root()).map(|path| path.display().to_string()).unwrap_or_default();
        seen.push(format!("{} ({abs}) {:?} {}", shown(fs, &entry.path), entry.kind, entry.size));
        ControlFlow::Continue(())
    });
    match walked {
        Ok(()) => seen.join(", "),
        Err(error) => kind_of(&error).to_owned(),
    }
}

fn kind_of(error: &FsError) -> &'static str {
    match error {
        FsError::NotFound { .. } => " not found",
        FsError::WrongKind { .. } => " wrong kind",
        FsError::Changed { .. } => " changed",
        FsError::Denied { .. } => " denied",
        _ => " failed",
    }
}

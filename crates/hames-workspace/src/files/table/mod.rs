//! A filesystem that is a table of paths and contents, wherever a [`Nodes`] keeps it: in memory ([`MemoryFs`]), in a
//! database.
//!
//! It has folders and regular files and nothing else: no links, no owners. Everything a caller may rely on (resolving,
//! expectations, staging) is written here, once; a table only keeps rows. Nothing lies outside the root: a path that
//! leads out is refused whatever was approved.

mod memory;

use std::ffi::OsString;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hames_tools::{
    DirEntry, Expect, FileKind, FileStat, FsError, FsPath, FsProvider, Staged, StagedChange, WalkEntry, WalkOptions,
};

use super::local::{io_failure, wrong_kind};
use super::resolve::{alike, may_be_alike};
use super::write::hash_of;
use super::{listed, suggest};

pub use memory::{MemoryFs, MemoryNodes};

/// The largest file: that of a blob, which its before-image becomes.
const MAX_FILE: usize = 256 * 1024 * 1024;

/// Mode bits of new files and of folders; the table has no umask to ask.
const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;

/// Where a [`TableFs`] hangs when nothing else is said.
const DEFAULT_ROOT: &str = "/workspace";

/// What a table knows of a path besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Whether it is a folder; else it is a file.
    pub is_dir: bool,
    /// Bytes of the content; 0 for a folder.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Nanoseconds since 1970.
    pub modified_ns: u128,
}

/// Why a table could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// There is no room left.
    #[error("there is no room left")]
    NoSpace,
    /// Anything else, in the words of what keeps the table.
    #[error("{0}")]
    Other(String),
}

/// The rows as they are at one moment. Paths are relative to the root with `/` between names; the root is the empty
/// path, a folder that is always there and has no row.
pub trait Rows {
    /// What is at a path.
    fn node(&self, path: &str) -> Result<Option<Node>, TableError>;
    /// The content of the file at a path; empty where there is none.
    fn content(&self, path: &str) -> Result<Vec<u8>, TableError>;
    /// Names right below a folder, ascending by their bytes.
    fn children(&self, path: &str) -> Result<Vec<(String, Node)>, TableError>;
}

/// The rows for whoever has them to himself.
pub trait RowsMut: Rows {
    /// Puts a folder (`content` absent) or a file in the place of whatever is there. Its folder exists.
    fn put(&mut self, path: &str, content: Option<&[u8]>, mode: u32, modified_ns: u128) -> Result<(), TableError>;
    /// Takes away what is at a path, which has nothing below it.
    fn remove(&mut self, path: &str) -> Result<(), TableError>;
}

/// Somewhere a table is kept.
pub trait Nodes: Send + Sync + 'static {
    /// Lets `work` look at the rows.
    fn look(&self, work: &mut dyn FnMut(&dyn Rows) -> Result<(), FsError>) -> Result<(), FsError>;
    /// Lets `work` change rows with nobody else at it. An error takes back what it did.
    fn change(&self, work: &mut dyn FnMut(&mut dyn RowsMut) -> Result<(), FsError>) -> Result<(), FsError>;
}

/// A filesystem over a table.
#[derive(Debug)]
pub struct TableFs<N> {
    nodes: Arc<N>,
    root: PathBuf,
}

impl<N> Clone for TableFs<N> {
    /// Another handle to the same table.
    fn clone(&self) -> Self {
        Self { nodes: Arc::clone(&self.nodes), root: self.root.clone() }
    }
}

impl<N: Nodes> TableFs<N> {
    /// A filesystem over these rows, at `/workspace`.
    pub fn over(nodes: N) -> Self {
        Self { nodes: Arc::new(nodes), root: DEFAULT_ROOT.into() }
    }

    /// The same at another absolute path. What is relative in it is taken from `/`.
    pub fn at(mut self, root: &Path) -> Self {
        self.root = lexical(Path::new("/"), root);
        self
    }

    /// Runs a look and gives its answer.
    fn look<T>(&self, mut work: impl FnMut(&dyn Rows) -> Result<T, FsError>) -> Result<T, FsError> {
        let mut answer = None;
        self.nodes.look(&mut |table| {
            answer = Some(work(table)?);
            Ok(())
        })?;
        answer.ok_or_else(|| io_failure("the table", "it was not looked at"))
    }

    /// The path's rows are named by: what follows the root.
    fn key(&self, path: &FsPath) -> Result<String, FsError> {
        let outside = || FsError::Outside { path: path.shown.clone(), target: path.abs.clone() };
        let below = path.abs.strip_prefix(&self.root).map_err(|_| outside())?;
        below.to_str().map(str::to_owned).ok_or_else(outside)
    }

    fn fs_path(&self, key: &str) -> FsPath {
        // Joined to nothing a path would get a slash at its end.
        let abs = if key.is_empty() { self.root.clone() } else { self.root.join(key) };
        FsPath::new(&self.root, abs, None)
    }

    /// What is at a path, or why there is nothing.
    fn existing(&self, table: &dyn Rows, path: &FsPath, key: &str) -> Result<Node, FsError> {
        if key.is_empty() {
            return Ok(Node { is_dir: true, size: 0, mode: DIR_MODE, modified_ns: 0 });
        }
        if let Some(node) = table.node(key).map_err(failed(path))? {
            return Ok(node);
        }
        let hint = hint(table, key).map_err(failed(path))?;
        Err(FsError::NotFound { path: path.shown.clone(), hint })
    }
}

/// Follows `.` and `..` in the text of a path, as there are no links.
fn lexical(base: &Path, path: &Path) -> PathBuf {
    let mut at = if path.is_absolute() { PathBuf::from("/") } else { base.to_path_buf() };
    for part in path.components() {
        match part {
            Component::Normal(name) => at.push(name),
            Component::ParentDir => drop(at.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    at
}

fn failed(path: &FsPath) -> impl Fn(TableError) -> FsError {
    let shown = path.shown.clone();
    move |error| match error {
        TableError::NoSpace => FsError::NoSpace { path: shown.clone() },
        TableError::Other(reason) => io_failure(&shown, reason),
    }
}

/// The folder of a path and its name.
fn parent(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}

/// What to look at instead of a path that is not there.
fn hint(table: &dyn Rows, key: &str) -> Result<String, TableError> {
    let (mut folder, mut name) = parent(key);
    while !folder.is_empty() && table.node(folder)?.is_none() {
        (folder, name) = parent(folder);
    }
    let near = suggest::near(name, table.children(folder)?.into_iter().map(|(name, _)| name));
    if near.is_empty() {
        let whole = parent(key).0 == folder;
        let shown = if folder.is_empty() { "." } else { folder };
        return Ok(if whole { String::new() } else { format!("; there is no {name} in {shown}") });
    }
    let near: Vec<String> = near.iter().map(|name| joined(folder, name)).collect();
    Ok(format!("; did you mean {}?", near.join(" or ")))
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The path with every name that does not exist, but looks like exactly one that does, replaced by that one.
fn look_alike(table: &dyn Rows, key: &str) -> Result<String, TableError> {
    let mut at = String::new();
    for name in key.split('/').filter(|name| !name.is_empty()) {
        let exact = joined(&at, name);
        if may_be_alike(name) && table.node(&exact)?.is_none() {
            let names = table.children(&at)?.into_iter().map(|(name, _)| OsString::from(name));
            if let Some(found) = alike(name, names).and_then(|found| found.into_string().ok()) {
                at = joined(&at, &found);
                continue;
            }
        }
        at = exact;
    }
    Ok(at)
}

fn kind(node: &Node) -> FileKind {
    if node.is_dir { FileKind::Dir } else { FileKind::File }
}

impl<N: Nodes> FsProvider for TableFs<N> {
    fn root(&self) -> &Path {
        &self.root
    }

    fn is_ruled(&self) -> bool {
        false
    }

    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        if path.is_empty() {
            return Err(io_failure("the empty path", "name a file or folder"));
        }
        if path.contains('\0') {
            return Err(io_failure(&path.replace('\0', "\\0"), "a path cannot hold a NUL byte"));
        }
        let abs = lexical(&self.root, Path::new(path));
        let Some(key) = abs.strip_prefix(&self.root).ok().and_then(Path::to_str) else {
            return Err(FsError::Outside { path: path.to_owned(), target: abs });
        };
        self.look(|table| {
            let found = self.fs_path(&look_alike(table, key).map_err(failed(&self.fs_path(key)))?);
            stands_in_folders(table, &found, &self.key(&found)?)?;
            Ok(found)
        })
    }

    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.resolve(path)
    }

    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError> {
        let key = self.key(path)?;
        let node = self.look(|table| self.existing(table, path, &key))?;
        Ok(FileStat { kind: kind(&node), size: node.size, mode: node.mode, modified_ns: node.modified_ns })
    }

    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        let key = self.key(path)?;
        let content = self.look(|table| {
            if self.existing(table, path, &key)?.is_dir {
                return Err(wrong_kind(&path.shown, FileKind::Dir, "a file"));
            }
            table.content(&key).map_err(failed(path))
        })?;
        Ok(Box::new(io::Cursor::new(content)))
    }

    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        let key = self.key(path)?;
        self.look(|table| {
            if !self.existing(table, path, &key)?.is_dir {
                return Err(wrong_kind(&path.shown, FileKind::File, "a folder"));
            }
            let children = table.children(&key).map_err(failed(path))?;
            let entry = |(name, node): (String, Node)| DirEntry { name, kind: kind(&node), size: node.size };
            Ok(children.into_iter().map(entry).collect())
        })
    }

    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        if content.len() > MAX_FILE {
            return Err(FsError::TooLarge {
                path: path.shown.clone(),
                size: content.len() as u64,
                limit: MAX_FILE as u64,
                doing: "written",
                hint: "",
            });
        }
        let key = self.key(path)?;
        let target = Target { path: path.clone(), key, expect: expect.clone() };
        let change = self.look(|table| {
            let before = target.check(table)?;
            stands_in_folders(table, &target.path, &target.key)?;
            let mode = before.as_ref().map_or(mode.unwrap_or(FILE_MODE), |(node, _)| node.mode);
            Ok(StagedChange {
                target: path.abs.clone(),
                kind: FileKind::File,
                before: before.map(|(_, content)| content),
                after_hash: Some(hash_of(content)),
                mode,
                proposed: None,
            })
        })?;
        Ok(Box::new(StagedRow { nodes: Arc::clone(&self.nodes), target, change, content: Some(content.to_vec()) }))
    }

    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        let key = self.key(path)?;
        if key.is_empty() {
            return Err(io_failure(&path.shown, "the root cannot be removed"));
        }
        let target = Target { path: path.clone(), key, expect: expect.clone() };
        let change = self.look(|table| {
            let node = self.existing(table, path, &target.key)?;
            let before = target.check(table)?.filter(|(node, _)| !node.is_dir).map(|(_, content)| content);
            let (kind, mode) = (kind(&node), node.mode);
            Ok(StagedChange { target: path.abs.clone(), kind, before, after_hash: None, mode, proposed: None })
        })?;
        Ok(Box::new(StagedRow { nodes: Arc::clone(&self.nodes), target, change, content: None }))
    }

    fn walk(
        &self,
        from: &FsPath,
        options: &WalkOptions,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        listed::walk(self, from, options, visit)
    }
}

/// Whether what is above a path, as far as it exists, are folders.
fn stands_in_folders(table: &dyn Rows, path: &FsPath, key: &str) -> Result<(), FsError> {
    let mut folder = parent(key).0;
    while !folder.is_empty() {
        if table.node(folder).map_err(failed(path))?.is_some_and(|node| !node.is_dir) {
            return Err(io_failure(&path.shown, "a part of the path is a file, not a folder"));
        }
        folder = parent(folder).0;
    }
    Ok(())
}

/// What a change is made to.
struct Target {
    path: FsPath,
    key: String,
    expect: Expect,
}

impl Target {
    /// Whether what is there is what is expected; gives it, a folder with no content.
    fn check(&self, table: &dyn Rows) -> Result<Option<(Node, Vec<u8>)>, FsError> {
        let shown = &self.path.shown;
        let found = match self.key.as_str() {
            "" => Some(Node { is_dir: true, size: 0, mode: DIR_MODE, modified_ns: 0 }),
            key => table.node(key).map_err(failed(&self.path))?,
        };
        let changed = || FsError::Changed { path: shown.clone() };
        match (found, &self.expect) {
            (None, Expect::Absent) => Ok(None),
            (Some(node), Expect::Dir) if node.is_dir => Ok(Some((node, Vec::new()))),
            (Some(node), _) if node.is_dir => Err(wrong_kind(shown, FileKind::Dir, "a file")),
            (Some(node), Expect::Hash(hash)) => {
                let content = table.content(&self.key).map_err(failed(&self.path))?;
                if hash_of(&content) == *hash { Ok(Some((node, content))) } else { Err(changed()) }
            }
            _ => Err(changed()),
        }
    }

    fn make_folders(&self, table: &mut dyn RowsMut, now: u128) -> Result<(), FsError> {
        let ends = self.key.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at);
        for folder in ends.map(|at| &self.key[..at]) {
            if table.node(folder).map_err(failed(&self.path))?.is_none() {
                table.put(folder, None, DIR_MODE, now).map_err(failed(&self.path))?;
            }
        }
        Ok(())
    }
}

/// A change to one row.
struct StagedRow<N> {
    nodes: Arc<N>,
    target: Target,
    change: StagedChange,
    /// The new content; absent for a removal.
    content: Option<Vec<u8>>,
}

impl<N: Nodes> Staged for StagedRow<N> {
    fn change(&self) -> &StagedChange {
        &self.change
    }

    fn commit(self: Box<Self>) -> Result<(), FsError> {
        let Self { nodes, target, change, content } = *self;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        nodes.change(&mut |table| {
            target.check(table)?;
            let Some(content) = &content else {
                if !table.children(&target.key).map_err(failed(&target.path))?.is_empty() {
                    return Err(io_failure(&target.path.shown, "the folder is not empty"));
                }
                return table.remove(&target.key).map_err(failed(&target.path));
            };
            stands_in_folders(table, &target.path, &target.key)?;
            target.make_folders(table, now)?;
            table.put(&target.key, Some(content), change.mode, now).map_err(failed(&target.path))
        })
    }
}

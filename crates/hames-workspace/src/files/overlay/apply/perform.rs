//! Looking at the disk and changing it, as a plan has it. Blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use hames_protocol::{BlobRef, BlobSource, BlobStore, CallId, Event, FileChanged, SessionId};
use hames_tools::{Expect, FileKind, FsError, FsPath, FsProvider, Staged, StagedChange};

use super::super::super::write::hash_of;
use super::super::content::Contents;
use super::plan::{Found, Mismatch, Plan, Removal, Writing};
use super::select::Picked;

/// Bytes of content a staged change holds that may be held by all of them together. What comes beyond is staged for a
/// check and staged again when its turn comes.
const STAGED_BYTES: usize = 64 * 1024 * 1024;
/// Changes that are staged at once: each may hold an open file.
const STAGED_COUNT: usize = 128;
/// Bytes read at once to find a file's hash.
const PIECE: usize = 256 * 1024;

/// The disk, and where contents are.
#[derive(Clone)]
pub(super) struct Disk {
    pub(super) fs: Arc<dyn FsProvider>,
    pub(super) contents: Contents,
}

/// A plan with as much of it staged as may be at once, and the records of all of it.
pub(super) struct Prepared {
    plan: Plan,
    /// Removals of other names of files that are written: before the writing, which changes what those names show.
    early: BTreeSet<String>,
    staged: BTreeMap<String, Box<dyn Staged>>,
    pub(super) changes: Vec<Event>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Performed {
    pub(super) done: Vec<String>,
    pub(super) failed: Vec<Mismatch>,
}

impl Disk {
    fn path(&self, path: &str) -> FsPath {
        FsPath::new(self.fs.root(), PathBuf::from(path), None)
    }

    /// Looks at everything that is picked.
    pub(super) fn look(&self, picked: &Picked) -> BTreeMap<String, Found> {
        picked.paths().into_iter().map(|path| (path.clone(), self.look_at(&path))).collect()
    }

    pub(super) fn look_at(&self, path: &str) -> Found {
        let at = self.path(path);
        let found = match self.fs.stat(&at) {
            Ok(stat) => match stat.kind {
                FileKind::File => self.hash(&at).map(|hash| Found::File { hash }),
                FileKind::Link => self.fs.read_link(&at).map(|target| Found::Link { hash: hash_of(&target) }),
                FileKind::Dir => self
                    .fs
                    .list(&at)
                    .map(|entries| Found::Folder { names: entries.into_iter().map(|entry| entry.name).collect() }),
                FileKind::Other => Ok(Found::Other),
            },
            Err(error) => Err(error),
        };
        found.unwrap_or_else(|error| match error {
            FsError::NotFound { .. } => Found::Nothing,
            FsError::Io { reason, .. } => Found::Unusable(reason),
            other => Found::Unusable(other.to_string()),
        })
    }

    fn hash(&self, path: &FsPath) -> Result<String, FsError> {
        let failed = |error: std::io::Error| FsError::Io { path: path.shown.clone(), reason: error.to_string() };
        let mut file = self.fs.open(path)?;
        let mut hasher = blake3::Hasher::new();
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece).map_err(failed)? {
                0 => return Ok(hasher.finalize().to_hex().to_string()),
                read => {
                    hasher.update(&piece[..read]);
                }
            }
        }
    }

    /// Stages everything that can be staged beforehand, and keeps what it would replace. Changes nothing that is seen.
    pub(super) fn prepare(&self, plan: Plan, picked: &Picked, session: &SessionId) -> (Prepared, Vec<Mismatch>) {
        let shared = self.shared(&plan);
        let (early, fewer_names) = early(&plan, &shared);
        let mut prepared = Prepared { plan, early, staged: BTreeMap::new(), changes: Vec::new() };
        let (mut bytes, mut wrong) = (0, written_twice(&prepared.plan, &shared));
        let plan = prepared.plan.clone();
        let call = |path: &str| picked.proposals.get(path).map_or_else(|| CallId::from(""), |own| own.call_id.clone());
        let staged = plan
            .writings
            .iter()
            .map(|writing| (&writing.path, self.stage_write(writing)))
            .chain(plan.removals.iter().map(|removal| (&removal.path, self.stage_remove(removal))));
        for (path, staged) in staged {
            let recorded = staged.and_then(|staged| Ok((self.record(session, call(path), staged.change())?, staged)));
            match recorded {
                Ok((event, staged)) => {
                    prepared.changes.push(event);
                    bytes += staged.change().before.as_ref().map_or(0, Vec::len);
                    let holds = !fewer_names.contains(path);
                    if holds && bytes <= STAGED_BYTES && prepared.staged.len() < STAGED_COUNT {
                        prepared.staged.insert(path.clone(), staged);
                    }
                }
                Err(error) => wrong.push(mismatch(path, &error)),
            }
        }
        for writing in &plan.late {
            // It cannot be staged yet; that its content is there can be known.
            match self.content(&writing.content, &writing.path) {
                Ok(_) => prepared.changes.push(Event::FileChanged(FileChanged {
                    call_id: call(&writing.path),
                    path: writing.path.clone(),
                    before: None,
                    after: Some(writing.content.hash.clone()),
                    mode: writing.mode,
                    link: None,
                })),
                Err(error) => wrong.push(mismatch(&writing.path, &error)),
            }
        }
        (prepared, wrong)
    }

    /// The files with other names among those that are written over or removed, by path.
    fn shared(&self, plan: &Plan) -> BTreeMap<String, (u64, u64)> {
        let written = plan.writings.iter().filter(|writing| writing.expect != Expect::Absent);
        let paths = written.map(|writing| &writing.path).chain(plan.removals.iter().map(|removal| &removal.path));
        paths.filter_map(|path| Some((path.clone(), self.fs.shared_identity(&self.path(path))?))).collect()
    }

    fn stage_write(&self, writing: &Writing) -> Result<Box<dyn Staged>, FsError> {
        let content = self.content(&writing.content, &writing.path)?;
        self.fs.stage_write(&self.path(&writing.path), &content, &writing.expect, writing.mode)
    }

    fn stage_remove(&self, removal: &Removal) -> Result<Box<dyn Staged>, FsError> {
        self.fs.stage_remove(&self.path(&removal.path), &removal.expect)
    }

    fn content(&self, content: &BlobRef, path: &str) -> Result<Vec<u8>, FsError> {
        let failed = |reason| FsError::Io { path: path.to_owned(), reason };
        let read = self.contents.read(content).map_err(|error| failed(error.to_string()))?;
        if hash_of(&read) == content.hash {
            return Ok(read);
        }
        Err(failed(format!("the proposed content {} is damaged", content.hash)))
    }

    /// The record of a change, with what it replaces kept.
    fn record(&self, session: &SessionId, call_id: CallId, change: &StagedChange) -> Result<Event, FsError> {
        let path = change.target.to_string_lossy().into_owned();
        let (before, link) = match (change.kind, &change.before) {
            (FileKind::Link, target) => (None, target.as_deref().map(|t| String::from_utf8_lossy(t).into_owned())),
            (_, Some(before)) => (Some(self.keep(session, before.clone())?), None),
            (_, None) => (None, None),
        };
        let (after, mode) = (change.after_hash.clone(), Some(change.mode));
        Ok(Event::FileChanged(FileChanged { call_id, path, before, after, mode, link }))
    }

    fn keep(&self, session: &SessionId, content: Vec<u8>) -> Result<BlobRef, FsError> {
        let blobs: &Arc<dyn BlobStore> = &self.contents.blobs;
        let runtime = self.contents.runtime().map_err(|error| FsError::NotRecorded(error.to_string()))?;
        let kept = runtime.block_on(blobs.put(session, "", BlobSource::Bytes(content)));
        kept.map_err(|error| FsError::NotRecorded(error.to_string()))
    }

    /// Lets it all happen, as far as it can: what fails stops only what depends on it.
    pub(super) fn perform(&self, prepared: Prepared) -> Performed {
        let Prepared { plan, early, mut staged, changes: _ } = prepared;
        let mut performed = Performed { done: plan.done, failed: Vec::new() };
        let (early, removals): (Vec<_>, Vec<_>) =
            plan.removals.into_iter().partition(|removal| early.contains(&removal.path));
        for removal in &early {
            let change = staged.remove(&removal.path).map_or_else(|| self.stage_remove(removal), Ok);
            performed.note(&removal.path, change.and_then(Staged::commit));
        }
        for writing in &plan.writings {
            let change = staged.remove(&writing.path).map_or_else(|| self.stage_write(writing), Ok);
            performed.note(&writing.path, change.and_then(Staged::commit));
        }
        let room_for: Vec<&str> = plan.late.iter().map(|writing| writing.path.as_str()).collect();
        for removal in &removals {
            let change = staged.remove(&removal.path).map_or_else(|| self.stage_remove(removal), Ok);
            match change.and_then(Staged::commit) {
                // Only half of it: the new file is still to come.
                Ok(()) if room_for.contains(&removal.path.as_str()) => {}
                done => performed.note(&removal.path, done),
            }
        }
        for writing in &plan.late {
            if !performed.has_failed(&writing.path) {
                performed.note(&writing.path, self.stage_write(writing).and_then(Staged::commit));
            }
        }
        for folder in &plan.folders {
            performed.note(folder, self.fs.make_folder(&self.path(folder)));
        }
        performed
    }
}

/// The removals that have to come before a writing, and the writings of whose file names are fewer then: those are staged
/// only afterwards.
fn early(plan: &Plan, shared: &BTreeMap<String, (u64, u64)>) -> (BTreeSet<String>, BTreeSet<String>) {
    let places = plan.late.iter().map(|writing| &writing.path).collect::<BTreeSet<_>>();
    let (mut early, mut fewer_names) = (BTreeSet::new(), BTreeSet::new());
    for writing in &plan.writings {
        let Some(identity) = shared.get(&writing.path) else { continue };
        let of_it = |removal: &&Removal| shared.get(&removal.path) == Some(identity) && !places.contains(&removal.path);
        let before = early.len();
        early.extend(plan.removals.iter().filter(of_it).map(|removal| removal.path.clone()));
        if early.len() > before {
            fewer_names.insert(writing.path.clone());
        }
    }
    (early, fewer_names)
}

/// Files that would be written under two of their names: what the one says would be gone with the other.
fn written_twice(plan: &Plan, shared: &BTreeMap<String, (u64, u64)>) -> Vec<Mismatch> {
    let mut first: BTreeMap<(u64, u64), &str> = BTreeMap::new();
    let mut wrong = Vec::new();
    for writing in &plan.writings {
        let Some(identity) = shared.get(&writing.path) else { continue };
        if let Some(other) = first.get(identity) {
            let reason =
                format!("it is one file with {other}, for which another change is proposed; discard one of both");
            wrong.push(Mismatch { path: writing.path.clone(), reason });
        } else {
            first.insert(*identity, &writing.path);
        }
    }
    wrong
}

impl Performed {
    fn note(&mut self, path: &str, outcome: Result<(), FsError>) {
        match outcome {
            Ok(()) => self.done.push(path.to_owned()),
            Err(error) => self.failed.push(mismatch(path, &error)),
        }
    }

    fn has_failed(&self, path: &str) -> bool {
        self.failed.iter().any(|failed| failed.path == path)
    }
}

/// The error of one path, without its name.
fn mismatch(path: &str, error: &FsError) -> Mismatch {
    let reason = match error {
        FsError::Io { reason, .. } => reason.clone(),
        FsError::Changed { .. } => "it has changed just now".into(),
        other => other.to_string(),
    };
    Mismatch { path: path.to_owned(), reason }
}

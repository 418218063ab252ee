//! A change that becomes a proposal.
//!
//! What a change would find is looked at and held against what is expected, as on disk, and nothing is touched. Recording
//! the event of the change is what makes the proposal; committing only checks that the session's state has it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hames_protocol::{Proposal, SessionState};
use hames_tools::{Expect, FileKind, FsError, FsPath, FsProvider, ProposedChange, Staged, StagedChange};

use super::super::local::{io_failure, wrong_kind};
use super::super::write::{MAX_BEFORE, hash_of};
use super::names::is_edit;
use super::view::{self, Child, Seen};
use super::{LIKELY_MODE, OverlayFs, content_of};

/// A change that waits to be recorded.
struct Proposed {
    state: Arc<Mutex<SessionState>>,
    /// What the session calls the path.
    key: String,
    shown: String,
    change: StagedChange,
    /// Hash of what is on disk there, as the proposals have it.
    base: Option<String>,
    /// Where a folder is, if the disk has it.
    on_disk: Option<(Arc<dyn FsProvider>, FsPath)>,
}

/// What would be found where something is to be written or removed.
struct There {
    kind: FileKind,
    /// A file's content, or what a link leads to.
    content: Option<Vec<u8>>,
    /// Hash of it.
    hash: Option<String>,
    mode: Option<u32>,
    /// Hash of what is on disk.
    base: Option<String>,
}

impl OverlayFs {
    pub(super) fn propose_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        let path = &self.name_of_edit(path);
        let there = self.there(path)?;
        if let Some(there) = there.as_ref().filter(|there| there.kind != FileKind::File) {
            return Err(wrong_kind(&path.shown, there.kind, "a file"));
        }
        let hash = there.as_ref().and_then(|there| there.hash.as_deref());
        let as_expected = match expect {
            Expect::Absent => hash.is_none(),
            Expect::Hash(expected) => hash == Some(expected),
            Expect::Dir => false,
        };
        if !as_expected {
            return Err(FsError::Changed { path: path.shown.clone() });
        }
        self.may_write(path)?;
        let after = hash_of(content);
        self.contents.cache.keep(&after, content.into());
        let mode = there.as_ref().map_or(mode, |there| there.mode);
        let proposed = ProposedChange {
            base: there.as_ref().and_then(|there| there.base.clone()),
            content: Some(content.to_owned()),
            mode,
            folders: self.missing_folders(path)?,
        };
        let change = StagedChange {
            target: path.abs.clone(),
            kind: FileKind::File,
            before: there.and_then(|there| there.content),
            after_hash: Some(after),
            mode: mode.unwrap_or(LIKELY_MODE),
            proposed: Some(proposed),
        };
        self.staged(path, change)
    }

    pub(super) fn propose_removal(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        if self.root().starts_with(&path.abs) {
            return Err(io_failure(&path.shown, "the workspace itself cannot be removed, nor what it lies in"));
        }
        if self.hides(path) {
            return Err(FsError::Denied { path: path.shown.clone() });
        }
        let there = self.there(path)?.ok_or_else(|| self.nothing(path, &Seen::Nothing))?;
        if there.kind == FileKind::Other {
            return Err(wrong_kind(&path.shown, there.kind, "a file, link or folder"));
        }
        let as_expected = match (expect, &there.hash) {
            (Expect::Hash(expected), Some(hash)) => expected == hash,
            (Expect::Dir, None) => there.kind == FileKind::Dir,
            _ => false,
        };
        if !as_expected {
            return Err(FsError::Changed { path: path.shown.clone() });
        }
        self.may_remove(path)?;
        self.keep_edit_of_others(path)?;
        let proposed = ProposedChange { base: there.base, content: None, mode: there.mode, folders: Vec::new() };
        let change = StagedChange {
            target: path.abs.clone(),
            kind: there.kind,
            before: there.content,
            after_hash: None,
            mode: there.mode.unwrap_or(LIKELY_MODE),
            proposed: Some(proposed),
        };
        self.staged(path, change)
    }

    /// Refuses to take away the name that has the edit of a file which stays under other names.
    fn keep_edit_of_others(&self, path: &FsPath) -> Result<(), FsError> {
        let is_edited = matches!(self.look(&path.abs), Seen::File(file) if is_edit(&file));
        if is_edited && self.base.shared_identity(path).is_some() {
            return Err(io_failure(
                &path.shown,
                "the file has other names too, and the change that is proposed for it would be lost with this one; \
                 apply or discard that change first, or remove the other names",
            ));
        }
        Ok(())
    }

    fn staged(&self, path: &FsPath, change: StagedChange) -> Result<Box<dyn Staged>, FsError> {
        let key = path.abs.to_str().ok_or_else(|| {
            io_failure(
                &path.shown,
                "its name is not UTF-8, so a change of it cannot be proposed; change it in Build mode",
            )
        })?;
        let base = change.proposed.as_ref().and_then(|proposed| proposed.base.clone());
        let is_on_disk = change.kind == FileKind::Dir && self.look(&path.abs) != Seen::Made;
        Ok(Box::new(Proposed {
            state: self.state.clone(),
            key: key.to_owned(),
            shown: path.shown.clone(),
            change,
            base,
            on_disk: is_on_disk.then(|| (self.base.clone(), path.clone())),
        }))
    }

    /// What would be found there; nothing where nothing would be.
    fn there(&self, path: &FsPath) -> Result<Option<There>, FsError> {
        match self.look_at(path) {
            Seen::Disk => self.there_on_disk(path),
            Seen::File(file) => self.there_as_proposed(path, file).map(Some),
            Seen::Mixed | Seen::Made => {
                let mode = Some(self.stat(path)?.mode);
                Ok(Some(There { kind: FileKind::Dir, content: None, hash: None, mode, base: None }))
            }
            Seen::Nothing => Ok(None),
            seen @ Seen::BelowFile => Err(self.nothing(path, &seen)),
        }
    }

    fn there_as_proposed(&self, path: &FsPath, file: Proposal) -> Result<There, FsError> {
        let blob = content_of(&file, path)?;
        let content = self.contents.read(blob).map_err(|error| io_failure(&path.shown, error.to_string()))?;
        let hash = Some(blob.hash.clone());
        Ok(There { kind: FileKind::File, content: Some(content), hash, mode: file.mode, base: file.base })
    }

    fn there_on_disk(&self, path: &FsPath) -> Result<Option<There>, FsError> {
        let stat = match self.base.stat(path) {
            Err(FsError::NotFound { .. }) => return Ok(None),
            stat => stat?,
        };
        let content = match stat.kind {
            FileKind::File => Some(self.base.read(path, MAX_BEFORE)?),
            FileKind::Link => Some(self.base.read_link(path)?),
            FileKind::Dir | FileKind::Other => None,
        };
        let hash = content.as_deref().map(hash_of);
        Ok(Some(There { kind: stat.kind, content, base: hash.clone(), hash, mode: Some(stat.mode) }))
    }

    /// The folders on the way to a path that would not be there, outermost first.
    fn missing_folders(&self, path: &FsPath) -> Result<Vec<PathBuf>, FsError> {
        let mut missing = Vec::new();
        for folder in path.abs.ancestors().skip(1) {
            let at = self.fs_path(folder.to_owned(), None);
            match self.stat(&at) {
                Ok(stat) if stat.kind == FileKind::Dir => break,
                Ok(_) => return Err(io_failure(&path.shown, "a part of the path is a file, not a folder")),
                Err(FsError::NotFound { .. }) => missing.push(folder.to_owned()),
                Err(error) => return Err(error),
            }
        }
        missing.reverse();
        Ok(missing)
    }
}

impl Staged for Proposed {
    fn change(&self) -> &StagedChange {
        &self.change
    }

    fn commit(self: Box<Self>) -> Result<(), FsError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = state.proposals.get(&self.key);
        let is_taken_up = match (&self.change.after_hash, own) {
            (Some(after), Some(own)) => own.content.as_ref().is_some_and(|content| content.hash == *after),
            (Some(after), None) => self.base.as_ref() == Some(after),
            (None, Some(own)) => own.content.is_none(),
            (None, None) => self.base.is_none() && !state.proposed_folders.contains(&self.key),
        };
        if !is_taken_up {
            return Err(FsError::NotRecorded(format!(
                "{} was not changed: its proposal is not in the session's state. Whoever records a session's events folds \
                 them into its state before it returns",
                self.shown
            )));
        }
        drop(state);
        if self.change.kind == FileKind::Dir && self.still_holds_something() {
            return Err(io_failure(
                &self.shown,
                "the folder is not empty; its removal is proposed all the same and will not be applied while it is not",
            ));
        }
        Ok(())
    }
}

impl Proposed {
    /// Whether a folder has entries that are not removed.
    fn still_holds_something(&self) -> bool {
        let mut children = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            view::children(&state, Path::new(&self.key))
        };
        let on_disk = self.on_disk.as_ref().and_then(|(base, path)| base.list(path).ok()).unwrap_or_default();
        on_disk.into_iter().any(|entry| children.remove(&entry.name) != Some(Child::Gone))
            || children.into_values().any(|child| child != Child::Gone)
    }
}

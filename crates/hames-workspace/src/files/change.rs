//! What every tool that changes a file has in common: look at the file, work out the new content, show the diff, write.
//!
//! A session that knows a file's content by an earlier read or write refuses to change a different one. Every change is
//! recorded before it happens: `file.changed` with the old content kept as a blob, or, where the filesystem only takes
//! a proposal, `change.proposed` with the new one. Which it is shows in what was staged; no tool asks for the mode.

use hames_protocol::{BlobRef, BlobSource, ChangeKind, ChangeProposed, Diff, Event, FileChanged, FileHash};
use hames_tools::{Expect, FileKind, FsError, FsPath, StagedChange, ToolCx, ToolFailure, ToolOutput};

use super::diff;
use super::local::wrong_kind;
use super::write::hash_of;

/// The largest file that is edited or replaced. Larger ones would be held in memory several times over.
pub(crate) const MAX_EDITED: u64 = 10 * 1024 * 1024;

/// Bytes of a diff that the model is given: it knows what it wrote, and the whole diff goes to the people.
const MODEL_DIFF: usize = 4 * 1024;

/// The content a tool wants a file to have.
pub(crate) struct NewContent {
    /// As it goes to disk.
    pub(crate) bytes: Vec<u8>,
    /// Old and new as text, for the diff; the old one is absent where there was no file or no text.
    pub(crate) old_body: Option<Vec<u8>>,
    pub(crate) new_body: Vec<u8>,
    /// Something the model should know, as a sentence; empty mostly.
    pub(crate) note: String,
}

/// A change that is worked out and not yet made.
pub(crate) struct Change {
    path: FsPath,
    old: Option<Vec<u8>>,
    new: NewContent,
    pub(crate) diff: Diff,
}

/// Works out a change. `make` is given the path for error texts and the old content, absent where there is no file.
pub(crate) fn plan(
    cx: &ToolCx,
    path: &str,
    make: impl FnOnce(&str, Option<&[u8]>) -> Result<NewContent, ToolFailure>,
) -> Result<Change, ToolFailure> {
    let as_folder = path.ends_with('/');
    let path = cx.resolve(path)?;
    if as_folder {
        return Err(wrong_kind(&path.shown, FileKind::Dir, "a file").into());
    }
    let old = current(cx, &path)?;
    if let Some(old) = &old {
        as_known(cx, &path, &hash_of(old))?;
    }
    let new = make(&path.shown, old.as_deref())?;
    let diff = diff::unified(&path.shown, new.old_body.as_deref(), Some(&new.new_body));
    Ok(Change { path, old, new, diff })
}

/// Refuses a file whose content is not what the session knows it by.
pub(crate) fn as_known(cx: &ToolCx, path: &FsPath, hash: &str) -> Result<(), FsError> {
    let known_otherwise: Vec<String> = {
        let state = cx.state();
        match state.files.get(&key(path)) {
            Some(known) if known != hash => {}
            _ => return Ok(()),
        }
        state.files.iter().filter(|(_, known)| *known == hash).map(|(other, _)| other.clone()).collect()
    };
    // The session may have changed it itself, under another of its names.
    let identity = cx.fs.resolve_entry(&key(path))?.identity;
    let is_the_same = |other: &String| cx.fs.resolve_entry(other).is_ok_and(|other| other.identity == identity);
    if identity.is_some() && known_otherwise.iter().any(is_the_same) {
        return Ok(());
    }
    Err(FsError::Changed { path: path.shown.clone() })
}

fn current(cx: &ToolCx, path: &FsPath) -> Result<Option<Vec<u8>>, ToolFailure> {
    let stat = match cx.fs.stat(path) {
        Err(FsError::NotFound { .. }) => return Ok(None),
        stat => stat?,
    };
    if stat.kind != FileKind::File {
        return Err(wrong_kind(&path.shown, stat.kind, "a file").into());
    }
    let too_large = |size| FsError::TooLarge {
        path: path.shown.clone(),
        size,
        limit: MAX_EDITED,
        doing: "edited",
        hint: "; change it with a command instead",
    };
    match cx.fs.read(path, MAX_EDITED) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FsError::TooLarge { size, .. }) => Err(too_large(size).into()),
        Err(error) => Err(error.into()),
    }
}

/// What a session knows a file's content by.
pub(crate) fn key(path: &FsPath) -> String {
    path.abs.to_string_lossy().into_owned()
}

impl Change {
    /// Whether the file has exactly this content already.
    pub(crate) fn is_none(&self) -> bool {
        self.old.as_ref() == Some(&self.new.bytes)
    }

    /// Makes the change.
    pub(crate) fn commit(self, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        if self.is_none() {
            let shown = self.path.shown;
            return Err(ToolFailure::failed(format!("no change: {shown} is already as the edit would leave it")));
        }
        let Change { path, old, new, diff } = self;
        let shown = path.shown.clone();
        if cx.cancel.is_cancelled() {
            return Err(ToolFailure::cancelled());
        }
        let expect = match &old {
            Some(old) => Expect::Hash(hash_of(old)),
            None => Expect::Absent,
        };
        let written = cx.fs.write(&path, &new.bytes, &expect, &mut |staged| record(cx, staged))?;
        let counts = format!("+{}/-{}", diff.added, diff.removed);
        let mut text = match (&written.proposed, &old) {
            (Some(_), _) => format!("Proposed {shown}: {counts}, not written yet"),
            (None, Some(_)) => format!("Edited {shown}: {counts}"),
            (None, None) => format!("Created {shown}: {counts}"),
        };
        if !new.note.is_empty() {
            text.push_str(&format!(". {}", new.note));
        }
        // A new file's diff would only repeat what the model has just written.
        if old.is_some() {
            text.push('\n');
            text.push_str(&diff::hunks(&diff, MODEL_DIFF.min(cx.cap_bytes.saturating_sub(text.len()))));
        }
        let files = vec![FileHash { path: key(&path), hash: written.after_hash.unwrap_or_default() }];
        Ok(ToolOutput { text, diffs: vec![diff], files, ..ToolOutput::default() })
    }
}

/// Records that something is about to change, or to be proposed.
pub(crate) fn record(cx: &ToolCx, staged: &StagedChange) -> Result<(), FsError> {
    let call_id = cx.call_id.clone();
    let path = staged.target.to_string_lossy().into_owned();
    let event = match &staged.proposed {
        Some(proposed) => Event::ChangeProposed(ChangeProposed {
            call_id,
            path,
            base: proposed.base.clone(),
            content: kept(cx, proposed.content.as_deref())?,
            mode: proposed.mode,
            folders: proposed.folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect(),
            kind: match staged.kind {
                FileKind::Dir => ChangeKind::Dir,
                FileKind::Link => ChangeKind::Link,
                FileKind::File | FileKind::Other => ChangeKind::File,
            },
        }),
        None => {
            // What a link led to is a line of text; a file's content may be anything.
            let (before, link) = match (staged.kind, staged.before.as_deref()) {
                (FileKind::Link, target) => (None, target.map(|target| String::from_utf8_lossy(target).into_owned())),
                (_, before) => (kept(cx, before)?, None),
            };
            let mode = Some(staged.mode);
            Event::FileChanged(FileChanged { call_id, path, before, after: staged.after_hash.clone(), mode, link })
        }
    };
    cx.record_blocking(vec![event]).map_err(|failure| FsError::NotRecorded(failure.message))
}

/// Keeps a content as a blob.
fn kept(cx: &ToolCx, content: Option<&[u8]>) -> Result<Option<BlobRef>, FsError> {
    let Some(content) = content else { return Ok(None) };
    let kept = cx.put_blocking("", BlobSource::Bytes(content.to_owned()));
    kept.map(Some).map_err(|failure| FsError::NotRecorded(failure.message))
}

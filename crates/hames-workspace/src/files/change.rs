//! What every tool that changes a file has in common: look at the file, work out the new content, show the diff, write.
//!
//! A session that knows a file's content by an earlier read or write refuses to change a different one. `file.changed`
//! is recorded, with the old content kept as a blob, before the new content takes its place.

use hames_protocol::{BlobSource, Diff, Event, FileChanged, FileHash};
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
        let known = cx.state().files.get(&key(&path)).cloned();
        if known.is_some_and(|known| known != hash_of(old)) {
            return Err(FsError::Changed { path: path.shown }.into());
        }
    }
    let new = make(&path.shown, old.as_deref())?;
    let diff = diff::unified(&path.shown, new.old_body.as_deref(), &new.new_body);
    Ok(Change { path, old, new, diff })
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
        let written = cx.fs.write(&path, &new.bytes, &expect, &mut |staged| record(cx, &path, staged))?;
        let verb = if old.is_some() { "Edited" } else { "Created" };
        let mut text = format!("{verb} {shown}: +{}/-{}", diff.added, diff.removed);
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

/// Records that the file is about to change.
fn record(cx: &ToolCx, path: &FsPath, staged: &StagedChange) -> Result<(), FsError> {
    let refused = |reason: String| FsError::NotRecorded(reason);
    let before = match &staged.before {
        Some(before) => {
            let kept = cx.put_blocking("", BlobSource::Bytes(before.clone()));
            Some(kept.map_err(|failure| refused(failure.message))?)
        }
        None => None,
    };
    let changed = FileChanged {
        call_id: cx.call_id.clone(),
        path: key(path),
        before,
        after: staged.after_hash.clone(),
        mode: Some(staged.mode),
        link: None,
    };
    cx.record_blocking(vec![Event::FileChanged(changed)]).map_err(|failure| refused(failure.message))
}

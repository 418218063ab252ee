//! What Analyze proposes: the fold of `change.proposed`, `changes.applied` and `changes.discarded`.
//!
//! A proposal is the whole difference at one path between the disk as it was when the path was first proposed and the
//! session's would-be tree; the steps in between leave no trace. So:
//!
//! - Base, kind and base mode are those of the **first** proposal of a path, content and mode those of the **last**.
//! - What leads back to the base is no proposal: a file written and written back, a file made and removed.
//! - A file removed and made again is a change of content, with the mode bits of a new file.
//! - A folder that a new file needs is remembered for itself and stays when the file goes, as it would on disk; removing
//!   it then leaves nothing. A removed folder that a new file needs again stays: what it held is removed one by one.
//! - What stands where something of another kind was (a file where a folder or a link was, a folder where a file was) keeps
//!   the kind of what has to make room.
//!
//! The fold looks at no disk. Whether a base still holds is for whoever applies.

use std::collections::{BTreeMap, BTreeSet};

use crate::{BlobRef, CallId, ChangeKind, ChangeProposed};

/// A proposed change: what a path would be, and what it must be on disk for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The last call that proposed it.
    pub call_id: CallId,
    /// When it was last proposed, in Unix milliseconds.
    pub at: u64,
    /// What stood on disk, or a file where nothing did.
    pub kind: ChangeKind,
    /// Hash of what stood on disk: a file's content, what a link led to. Absent where nothing was there, and for folders.
    pub base: Option<String>,
    /// Mode bits of the file that stood there.
    pub base_mode: Option<u32>,
    /// The proposed content; absent for a removal.
    pub content: Option<BlobRef>,
    /// Mode bits of the proposed file, or those a removed one had; absent where the system decides.
    pub mode: Option<u32>,
}

impl Proposal {
    /// Whether nothing stood there.
    pub fn is_new(&self) -> bool {
        self.kind == ChangeKind::File && self.base.is_none()
    }

    /// Whether nothing of what stood there is left and a new file takes its place: it was removed in between, or is of
    /// another kind. It has to go before the file can be made.
    pub fn takes_a_place(&self) -> bool {
        self.content.is_some() && !self.is_new() && (self.kind != ChangeKind::File || self.mode != self.base_mode)
    }

    /// Whether the path would be as it was.
    fn is_none(&self) -> bool {
        match (&self.content, self.kind) {
            (_, ChangeKind::Dir | ChangeKind::Link) => false,
            (None, ChangeKind::File) => self.base.is_none(),
            (Some(content), ChangeKind::File) => {
                self.base.as_ref() == Some(&content.hash) && self.mode == self.base_mode
            }
        }
    }
}

/// Proposals that a person decided on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Paths whose change is on disk now.
    pub applied: Vec<String>,
    /// Paths whose change was dropped.
    pub discarded: Vec<String>,
}

/// Takes in one change that was proposed `at` a time.
pub(crate) fn propose(
    proposals: &mut BTreeMap<String, Proposal>,
    folders: &mut BTreeSet<String>,
    change: &ChangeProposed,
    at: u64,
) {
    if change.content.is_none() && change.kind == ChangeKind::Dir && folders.remove(&change.path) {
        return;
    }
    for folder in change.folders.iter().filter(|_| change.content.is_some()) {
        match proposals.get(folder) {
            Some(removed) if removed.kind == ChangeKind::Dir && removed.content.is_none() => {
                proposals.remove(folder);
            }
            _ => {
                folders.insert(folder.clone());
            }
        }
    }
    let first = proposals.remove(&change.path);
    let (kind, base, base_mode) = match first {
        Some(first) => (first.kind, first.base, first.base_mode),
        None => {
            let had_mode = change.kind == ChangeKind::File && change.base.is_some();
            (change.kind, change.base.clone(), change.mode.filter(|_| had_mode))
        }
    };
    let proposal = Proposal {
        call_id: change.call_id.clone(),
        at,
        kind,
        base,
        base_mode,
        content: change.content.clone(),
        mode: change.mode,
    };
    if !proposal.is_none() {
        proposals.insert(change.path.clone(), proposal);
    }
}

/// Takes out what was decided on, and gives what a person would call the changes: folders that were made only for files
/// among them are none.
pub(crate) fn settle(
    proposals: &mut BTreeMap<String, Proposal>,
    folders: &mut BTreeSet<String>,
    paths: &[String],
) -> Vec<String> {
    let mut settled = Vec::new();
    for path in paths {
        let was_change = proposals.remove(path).is_some();
        let was_folder = folders.remove(path);
        let holds_others = || paths.iter().any(|other| is_below(other, path));
        if was_change || (was_folder && !holds_others()) {
            settled.push(path.clone());
        }
    }
    settled
}

/// Whether anything is proposed below a folder.
pub(crate) fn holds_any(proposals: &BTreeMap<String, Proposal>, folders: &BTreeSet<String>, folder: &str) -> bool {
    let from = format!("{folder}/");
    let next = proposals.range(from.clone()..).next().map(|(path, _)| path).into_iter();
    next.chain(folders.range(from..).next()).any(|path| is_below(path, folder))
}

/// Whether an absolute path lies below a folder.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

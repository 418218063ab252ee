//! Files with several names (hard links): what is proposed for one of them is seen under all.
//!
//! Writing to such a file on disk changes what every name shows, so an edit under a second name goes into the proposal
//! that there is, and one file never has two. Removing a name is the name's own. A walk tells such a file's size as the
//! disk has it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hames_protocol::{Proposal, SessionState};
use hames_tools::FsPath;

use super::OverlayFs;
use super::view::Seen;

/// Which edited file has other names, as it was found when the edits were last others.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The log's end when the edits were looked at last.
    seq: u64,
    /// The paths with edits.
    edited: Vec<String>,
    /// Those of them that are not a file's only name, by device and inode.
    shared: HashMap<(u64, u64), String>,
}

/// Whether a proposal changes the file that is on disk, instead of removing it or taking its place.
pub(super) fn is_edit(proposal: &Proposal) -> bool {
    proposal.content.is_some() && !proposal.is_new() && !proposal.takes_a_place()
}

fn edited(state: &SessionState) -> impl Iterator<Item = &String> {
    state.proposals.iter().filter(|(_, proposal)| is_edit(proposal)).map(|(path, _)| path)
}

impl OverlayFs {
    /// What is to be seen at a path; of a file on disk also what is proposed under another of its names.
    pub(super) fn look_at(&self, path: &FsPath) -> Seen {
        match self.look(&path.abs) {
            Seen::Disk => self.edited_elsewhere(path).map_or(Seen::Disk, |(_, file)| Seen::File(file)),
            seen => seen,
        }
    }

    /// The name under which changes of a file are proposed: another one where an edit is proposed there already.
    pub(super) fn name_of_edit(&self, path: &FsPath) -> FsPath {
        match self.look(&path.abs) {
            Seen::Disk => self.edited_elsewhere(path).map_or_else(|| path.clone(), |(name, _)| name),
            _ => path.clone(),
        }
    }

    /// The edit of a file under another of its names.
    fn edited_elsewhere(&self, path: &FsPath) -> Option<(FsPath, Proposal)> {
        if self.is_untouched() {
            return None;
        }
        // Hardly any edited file has two names, so mostly the disk is not asked for this one's.
        if !self.has_shared_edits() {
            return None;
        }
        let identity = self.base.shared_identity(path)?;
        let name = self.fs_path(PathBuf::from(self.shared_as(identity)?), None);
        // What was found before may not be so any more.
        if name.abs == path.abs || self.base.shared_identity(&name) != Some(identity) {
            return None;
        }
        match self.look(&name.abs) {
            Seen::File(file) => Some((name, file)),
            _ => None,
        }
    }

    /// Whether a file with edits has other names.
    fn has_shared_edits(&self) -> bool {
        !self.known().shared.is_empty()
    }

    /// The path whose file has this device and inode, among those with edits.
    fn shared_as(&self, identity: (u64, u64)) -> Option<String> {
        self.known().shared.get(&identity).cloned()
    }

    /// What is known of the edited files' names; found anew when the edits are others.
    fn known(&self) -> MutexGuard<'_, Known> {
        let mut known = self.names.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = {
            let state = self.state();
            // Every change of the edits is an event; without a log there is only comparing.
            let is_news = state.seq == 0 || state.seq != known.seq;
            known.seq = state.seq;
            (is_news && !edited(&state).eq(&known.edited)).then(|| edited(&state).cloned().collect::<Vec<_>>())
        };
        if let Some(edited) = others {
            let shared = |name: &String| {
                let path = self.fs_path(PathBuf::from(name), None);
                Some((self.base.shared_identity(&path)?, name.clone()))
            };
            known.shared = edited.iter().filter_map(shared).collect();
            known.edited = edited;
        }
        known
    }
}

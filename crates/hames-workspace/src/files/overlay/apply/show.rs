//! Open proposals as a person looks at them.

use std::collections::{BTreeMap, BTreeSet};

use hames_protocol::{BlobRef, CallId, ChangeKind, Diff, Proposal, SessionState, is_unprintable};
use hames_tools::{FsError, FsPath};

use super::super::super::change::MAX_EDITED;
use super::super::super::diff;
use super::super::super::text::Text;
use super::Changes;
use super::perform::Disk;
use super::plan::{self, Found, Strictness};
use super::select::Picked;

/// What would happen to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Something new.
    Create,
    /// Other content.
    Edit,
    /// A new file in the place of something that goes.
    Replace,
    /// It goes.
    Remove,
}

/// One proposal that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenChange {
    /// Absolute path.
    pub path: String,
    /// The same from the workspace, where it is inside.
    pub shown: String,
    /// What would happen.
    pub what: What,
    /// What it happens to: what is there, or what would be made.
    pub kind: ChangeKind,
    /// The last call that proposed it; empty for a folder that was only needed.
    pub call_id: CallId,
    /// Unix milliseconds of the last proposal; 0 for such a folder.
    pub at: u64,
    /// Bytes of the proposed content.
    pub bytes: Option<u64>,
    /// Bytes of the file on disk now.
    pub bytes_now: Option<u64>,
    /// From what is on disk now to what is proposed; absent for what is no text, or too large to compare.
    pub diff: Option<Diff>,
    /// Why it cannot be applied as things are.
    pub mismatch: Option<String>,
}

impl Changes {
    /// What is open at or below the places, or everywhere, in order of paths. Looks at the disk. Folders that proposed
    /// files need are not listed for themselves.
    pub async fn open(
        &self,
        state: &SessionState,
        places: &[String],
    ) -> Result<Vec<OpenChange>, hames_protocol::Failure> {
        let all = Picked::all(state);
        let picked = if places.is_empty() { all.clone() } else { Picked::at(state, places) };
        // Folders that only hold what is proposed are no change of their own.
        let listed: BTreeSet<String> = state.open_changes().map(String::from).collect();
        let disk = self.disk.clone();
        super::blocking(move || {
            let found = disk.look(&all);
            // Judged together: what one makes room for is no mismatch of another.
            let (_, wrong) = plan::plan(&all, &found, Strictness::Fresh);
            let wrong: BTreeMap<String, String> = wrong.into_iter().map(|wrong| (wrong.path, wrong.reason)).collect();
            let folders =
                picked.folders.iter().filter(|path| listed.contains(*path) && !all.proposals.contains_key(*path));
            let mut open: Vec<OpenChange> = picked
                .proposals
                .iter()
                .map(|(path, proposal)| disk.open_change(path, proposal, found.get(path)))
                .chain(folders.map(|path| disk.open_folder(path)))
                .map(|change| OpenChange { mismatch: wrong.get(&change.path).cloned(), ..change })
                .collect();
            open.sort_by(|a, b| a.path.cmp(&b.path));
            open
        })
        .await
    }
}

impl Disk {
    fn open_change(&self, path: &str, proposal: &Proposal, found: Option<&Found>) -> OpenChange {
        let at = FsPath::new(self.fs.root(), path.into(), None);
        let now = match found {
            Some(Found::File { .. }) => Some(self.fs.read(&at, MAX_EDITED)),
            Some(Found::Link { .. }) => Some(self.fs.read_link(&at)),
            _ => None,
        };
        let bytes_now = match found {
            Some(Found::File { .. }) => self.fs.stat(&at).ok().map(|stat| stat.size),
            _ => None,
        };
        let what = match &proposal.content {
            None => What::Remove,
            Some(_) if proposal.is_new() => What::Create,
            Some(_) if proposal.takes_a_place() => What::Replace,
            Some(_) => What::Edit,
        };
        OpenChange {
            path: path.to_owned(),
            diff: self.diff(&at.shown, proposal, now),
            shown: at.shown,
            what,
            kind: proposal.kind,
            call_id: proposal.call_id.clone(),
            at: proposal.at,
            bytes: proposal.content.as_ref().map(|content| content.bytes),
            bytes_now,
            mismatch: None,
        }
    }

    fn open_folder(&self, path: &str) -> OpenChange {
        OpenChange {
            path: path.to_owned(),
            shown: FsPath::new(self.fs.root(), path.into(), None).shown,
            what: What::Create,
            kind: ChangeKind::Dir,
            call_id: CallId::from(""),
            at: 0,
            bytes: None,
            bytes_now: None,
            diff: None,
            mismatch: None,
        }
    }

    fn diff(&self, shown: &str, proposal: &Proposal, now: Option<Result<Vec<u8>, FsError>>) -> Option<Diff> {
        let is_folder = proposal.kind == ChangeKind::Dir && proposal.content.is_none();
        let old = now.map(|now| text(&now.ok()?)).map_or(Some(None), |old| old.map(Some))?;
        let new = match &proposal.content {
            Some(content) => Some(self.text_of(content)?),
            None => None,
        };
        // A name may hold what would end the line it is in.
        let shown: String = shown.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect();
        (!is_folder).then(|| diff::unified(&shown, old.as_deref(), new.as_deref()))
    }

    fn text_of(&self, content: &BlobRef) -> Option<Vec<u8>> {
        if content.bytes > MAX_EDITED {
            return None;
        }
        text(&self.contents.read(content).ok()?)
    }
}

/// The text of a file; none where it is none.
fn text(bytes: &[u8]) -> Option<Vec<u8>> {
    Text::decode(bytes).ok().map(|text| text.body)
}

//! Drafts as values: one for each session that was written in, in the form they are kept in (`keep`).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hames_protocol::{Part, PendingId, SessionId};
use serde::{Deserialize, Serialize};

use super::attach::Attachment;
use super::draft::{Chip, Draft, Piece};
use super::history::Browse;
use super::{Focus, Prompt};
use crate::{Face, SavedFolds};

/// A message that is being written, with what goes along.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(super) draft: Draft,
    pub(super) attachments: Vec<Attachment>,
    /// The message that waits which this is an edit of.
    pub(super) editing: Option<PendingId>,
    /// What was being written when the edit began.
    pub(super) aside: Option<Box<Kept>>,
}

impl Kept {
    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.draft.is_empty() && self.attachments.is_empty() && self.aside.as_ref().is_none_or(|aside| aside.is_empty())
    }

    /// Puts another one before it; what is written here goes on behind.
    pub(super) fn put_ahead(&mut self, other: Kept) {
        let mut piece = other.draft.piece().clone();
        if !piece.is_empty() && !self.draft.is_empty() {
            piece.append(&Piece::typed("\n"));
        }
        if !piece.is_empty() {
            self.draft.put_ahead(piece);
        }
        self.attachments.splice(0..0, other.attachments);
    }
}

/// A draft in a form that files can keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedDraft {
    /// What is written.
    pub text: SavedText,
    /// Names and parts of what goes along. What was not uploaded yet is left out.
    #[serde(default)]
    pub attached: Vec<(String, Vec<Part>)>,
}

impl SavedDraft {
    /// Nothing where there is nothing to keep.
    fn of(kept: &Kept) -> Option<Self> {
        let attached = kept.attachments.iter().filter_map(|a| Some((a.name().to_owned(), a.parts()?.to_vec())));
        let saved = Self { text: SavedText::of(kept.draft.piece()), attached: attached.collect() };
        (!saved.text.text.is_empty() || !saved.attached.is_empty()).then_some(saved)
    }

    fn kept(&self) -> Kept {
        let attachments = self.attached.iter().map(|(name, parts)| Attachment::ready(name.clone(), parts.clone()));
        Kept { draft: Draft::of(self.text.piece()), attachments: attachments.collect(), ..Kept::default() }
    }
}

/// Text with the pastes in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedText {
    /// U+0001 stands where a paste is.
    pub text: String,
    /// The pastes, in order; shared with the prompt, because they may be large.
    #[serde(default)]
    pub pastes: Vec<Arc<str>>,
}

/// Where a draft belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spot {
    /// A session that is still to be made, in this folder.
    Folder(String),
    /// A session.
    Session(SessionId),
}

impl Spot {
    /// The spot of what the face shows.
    pub(crate) fn of(session: Option<&SessionId>, folder: &str) -> Self {
        session.map_or_else(|| Self::Folder(folder.to_owned()), |session| Self::Session(session.clone()))
    }

    fn session(&self) -> Option<SessionId> {
        match self {
            Self::Folder(_) => None,
            Self::Session(session) => Some(session.clone()),
        }
    }
}

/// What was written and not sent, and what was sent since the last time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unsaved {
    /// Every draft there is.
    pub(crate) drafts: BTreeMap<Spot, Vec<SavedDraft>>,
    /// What was sent, with the folder whose history it belongs to.
    pub(crate) sent: Vec<(String, SavedText)>,
    /// How many answers of the files are part of this.
    pub(crate) recalled: u64,
    /// What is open and closed in the sessions that were looked at.
    pub(crate) folds: BTreeMap<SessionId, SavedFolds>,
}

/// What a file gave back for a spot.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// The spot.
    pub spot: Spot,
    /// The folder whose history this is.
    pub folder: String,
    /// Drafts that nobody has open, the oldest first.
    pub drafts: Vec<SavedDraft>,
    /// What was sent there, the oldest first.
    pub sent: Vec<SavedText>,
    /// What was open and closed in the session.
    pub folds: SavedFolds,
}

impl SavedText {
    pub(super) fn of(piece: &Piece) -> Self {
        Self {
            text: piece.text().to_owned(),
            pastes: piece.chips().iter().map(|chip| Arc::clone(chip.text())).collect(),
        }
    }

    /// The piece again; what somebody changed in the file so that it does not fit is taken as pasted text.
    fn piece(&self) -> Piece {
        let is_clean = !self.text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | super::text::CHIP));
        let chips = self.pastes.iter().map(|text| Chip::new(&super::text::clean(text))).collect();
        let piece = Piece::of(&self.text, chips).filter(|_| is_clean);
        piece.unwrap_or_else(|| Piece::pasted(&format!("{}{}", self.text, self.pastes.concat()), false))
    }
}

impl Prompt {
    /// Goes with the session that is shown; every one has its own draft.
    pub(super) fn follow(&mut self, face: &Face) {
        let folder = face.view.as_ref().map_or(&face.folder, |view| &view.row.folder);
        if *folder != self.folder {
            self.folder.clone_from(folder);
            self.browse = Browse::default();
        }
        if self.session == face.session {
            return;
        }
        let before = std::mem::replace(&mut self.session, face.session.clone());
        // A session that was made for what is being written takes it over.
        let is_made = before.is_none() && !self.others.contains_key(&self.session);
        if !is_made {
            let next = self.others.remove(&self.session).unwrap_or_default();
            let kept = std::mem::replace(&mut self.now, next);
            if !kept.is_empty() {
                self.others.insert(before, kept);
            }
            self.waits = None;
            self.menu = None;
        }
        self.laid = None;
        self.browse = Browse::default();
        self.dismissed = None;
        self.offer = None;
        self.note = None;
        self.focus = Focus::Text;
        self.section = Default::default();
        self.mention = Default::default();
    }

    /// Grows, or at least changes, when there is something else to keep in a file.
    pub(crate) fn mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.sent.len(), self.recalled).hash(&mut hasher);
        self.session.hash(&mut hasher);
        for (session, kept) in std::iter::once((&self.session, &self.now)).chain(&self.others) {
            session.hash(&mut hasher);
            for kept in std::iter::successors(Some(kept), |kept| kept.aside.as_deref()) {
                let piece = kept.draft.piece();
                piece.text().hash(&mut hasher);
                // A paste never changes: where it is says which it is.
                piece.chips().iter().for_each(|chip| chip.text().as_ptr().hash(&mut hasher));
                kept.attachments.iter().for_each(|a| (a.name(), a.parts().is_some()).hash(&mut hasher));
            }
        }
        hasher.finish()
    }

    /// Everything that was written and not sent, and what was sent since this was asked last.
    pub(crate) fn unsaved(&mut self, folder: &str) -> Unsaved {
        let mut drafts: BTreeMap<Spot, Vec<SavedDraft>> = BTreeMap::new();
        for (session, kept) in std::iter::once((&self.session, &self.now)).chain(&self.others) {
            // An edit of a message that waits is kept as what it would become without it: a draft.
            let all = std::iter::successors(Some(kept), |kept| kept.aside.as_deref());
            for saved in all.filter_map(SavedDraft::of) {
                drafts.entry(Spot::of(session.as_ref(), folder)).or_default().push(saved);
            }
        }
        Unsaved { drafts, sent: std::mem::take(&mut self.sent), recalled: self.recalled, folds: BTreeMap::new() }
    }

    /// Takes in what a file gave back; what was written since goes on behind it.
    pub(crate) fn recall(&mut self, recalled: &Recalled) {
        self.recalled += 1;
        let session = recalled.spot.session();
        let place = match (session == self.session, &self.now.editing) {
            (true, None) => &mut self.now,
            (true, Some(_)) => self.now.aside.get_or_insert_default(),
            (false, _) => self.others.entry(session).or_default(),
        };
        recalled.drafts.iter().rev().for_each(|draft| place.put_ahead(draft.kept()));
        self.laid = None;
        let before = self.histories.remove(&recalled.folder).unwrap_or_default();
        let history = self.histories.entry(recalled.folder.clone()).or_default();
        recalled.sent.iter().for_each(|text| history.push(text.piece()));
        before.newest_first().collect::<Vec<_>>().into_iter().rev().for_each(|piece| history.push(piece.clone()));
        if self.folder == recalled.folder {
            self.browse = Browse::default();
        }
    }
}

/// A message on its way, as the draft it would be again.
pub(crate) fn as_draft(kept: &Kept) -> Option<SavedDraft> {
    SavedDraft::of(kept)
}

//! Drafts as values: one for each session that was written in, and all of them for when the program ends.

use hames_protocol::{Part, PendingId, SessionId};
use serde::{Deserialize, Serialize};

use super::attach::Attachment;
use super::draft::{Chip, Draft, Piece};
use super::history::{Browse, History};
use super::{Focus, Prompt};
use crate::Face;

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

/// Drafts and history in a form that files can keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    /// What is being written.
    #[serde(default)]
    pub(crate) drafts: Vec<SavedDraft>,
    /// What was sent: the folder, and the messages from the oldest on.
    #[serde(default)]
    pub(crate) history: Vec<(String, Vec<SavedText>)>,
}

/// A draft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedDraft {
    /// Its session; none for one that is still to be made.
    pub(crate) session: Option<SessionId>,
    /// What is written.
    pub(crate) text: SavedText,
    /// Names and parts of what goes along. What was not uploaded yet is left out.
    #[serde(default)]
    pub(crate) attached: Vec<(String, Vec<Part>)>,
}

/// Text with the pastes in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedText {
    /// U+0001 stands where a paste is.
    pub(crate) text: String,
    /// The pastes, in order.
    #[serde(default)]
    pub(crate) pastes: Vec<String>,
}

impl SavedText {
    fn of(piece: &Piece) -> Self {
        Self {
            text: piece.text().to_owned(),
            pastes: piece.chips().iter().map(|chip| chip.text().to_string()).collect(),
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

    /// Everything that was written and not sent, and what was sent, for a file.
    pub(crate) fn saved(&self) -> Saved {
        let drafts = std::iter::once((&self.session, &self.now)).chain(&self.others);
        let drafts = drafts.flat_map(|(session, kept)| {
            // An edit of a message that waits is kept as what it would become without it: a draft.
            let all = std::iter::successors(Some(kept), |kept| kept.aside.as_deref());
            all.map(move |kept| (session, kept))
        });
        let saved = |(session, kept): (&Option<SessionId>, &Kept)| SavedDraft {
            session: session.clone(),
            text: SavedText::of(kept.draft.piece()),
            attached: kept
                .attachments
                .iter()
                .filter_map(|a| Some((a.name().to_owned(), a.parts()?.to_vec())))
                .collect(),
        };
        let of = |history: &History| {
            let mut texts: Vec<_> = history.newest_first().map(SavedText::of).collect();
            texts.reverse();
            texts
        };
        Saved {
            drafts: drafts
                .map(saved)
                .filter(|draft| !draft.text.text.is_empty() || !draft.attached.is_empty())
                .collect(),
            history: self.histories.iter().map(|(folder, history)| (folder.clone(), of(history))).collect(),
        }
    }

    /// A prompt that goes on with what was saved.
    pub(crate) fn restored(saved: &Saved) -> Self {
        let mut prompt = Self::default();
        for draft in saved.drafts.iter().rev() {
            let attachments = draft.attached.iter().map(|(name, parts)| Attachment::ready(name.clone(), parts.clone()));
            let kept =
                Kept { draft: Draft::of(draft.text.piece()), attachments: attachments.collect(), ..Kept::default() };
            let place = match &draft.session {
                None => &mut prompt.now,
                session => prompt.others.entry(session.clone()).or_default(),
            };
            place.put_ahead(kept);
        }
        for (folder, texts) in &saved.history {
            let history = prompt.histories.entry(folder.clone()).or_default();
            texts.iter().for_each(|text| history.push(text.piece()));
        }
        prompt
    }
}

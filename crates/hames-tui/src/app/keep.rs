//! What is written, for files: which of it is looked for, and all of it when it is to be kept.

use super::App;
use crate::prompt::{Unsaved, as_draft};
use crate::{Effect, Link, Recalled, SavedFolds, Spot};

impl App {
    /// Looks for what was written before where another draft is shown.
    pub(super) fn want_written(&mut self, out: &mut Vec<Effect>) {
        if self.is_session_to_come() {
            return;
        }
        let folder = self.face.view.as_ref().map_or(&self.face.folder, |view| &view.row.folder);
        let wanted = (Spot::of(self.face.session.as_ref(), &self.face.folder), folder.clone());
        if self.recalled.as_ref() != Some(&wanted) {
            self.recalled = Some(wanted.clone());
            out.push(Effect::Recall { spot: wanted.0, folder: wanted.1 });
        }
    }

    /// Something else than before means that there is something to keep.
    pub(crate) fn written_mark(&mut self) -> (u64, usize, u64) {
        (self.base.prompt().mark(), self.on_way().count(), self.base.talk().folds_mark())
    }

    /// Takes in what files held.
    pub(super) fn recall(&mut self, recalled: &Recalled) {
        self.base.prompt().recall(recalled);
        if let (Spot::Session(session), Some(shown)) = (&recalled.spot, &self.face.session)
            && session == shown
        {
            self.base.talk().recall_folds(&recalled.folds);
        }
    }

    /// What is open and closed in the session that is shown is known from now on.
    pub(super) fn keep_folds(&mut self) {
        let Some(session) = self.face.session.clone() else { return };
        let folds = self.base.talk().saved_folds();
        // Nothing at all may mean that the file was not read yet.
        if folds != SavedFolds::default() || self.folds.contains_key(&session) {
            self.folds.insert(session, folds);
        }
    }

    /// What is to be kept now.
    pub(crate) fn unsaved(&mut self) -> Unsaved {
        let folder = self.face.folder.clone();
        let on_way: Vec<_> =
            self.on_way().filter_map(|(session, kept)| Some((Spot::of(session, &folder), as_draft(kept)?))).collect();
        let mut unsaved = self.base.prompt().unsaved(&folder);
        self.keep_folds();
        unsaved.folds.clone_from(&self.folds);
        for (spot, draft) in on_way {
            unsaved.drafts.entry(spot).or_default().insert(0, draft);
        }
        unsaved
    }

    /// Whether the connection stands.
    pub(super) fn is_linked(&self) -> bool {
        matches!(self.face.link, Link::Up { .. })
    }
}

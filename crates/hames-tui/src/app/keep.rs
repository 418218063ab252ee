//! What is written, for files: which of it is looked for, and all of it when it is to be kept.

use super::App;
use crate::prompt::{Unsaved, as_draft};
use crate::{Effect, Link, Spot};

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
    pub(crate) fn written_mark(&mut self) -> (u64, usize) {
        (self.base.prompt().mark(), self.on_way().count())
    }

    /// What is to be kept now.
    pub(crate) fn unsaved(&mut self) -> Unsaved {
        let folder = self.face.folder.clone();
        let on_way: Vec<_> =
            self.on_way().filter_map(|(session, kept)| Some((Spot::of(session, &folder), as_draft(kept)?))).collect();
        let mut unsaved = self.base.prompt().unsaved(&folder);
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

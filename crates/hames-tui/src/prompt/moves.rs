//! Where keys take the prompt besides writing: between rows, through the history, to the messages that wait, and back.

use ratatui::crossterm::event::{KeyEvent, KeyModifiers};

use super::draft::To;
use super::draft::wrap::Rows;
use super::keys::TAKEN;
use super::{Focus, Prompt, PromptOutcome};
use crate::Cx;

impl Prompt {
    pub(super) fn go(&mut self, to: To, is_selecting: bool) -> bool {
        let rows = self.rows();
        let went = self.now.draft.go(to, is_selecting, &rows);
        self.laid = Some((self.now.draft.version(), rows));
        went
    }

    /// The rows of the text in the width it was drawn in last; given back by whoever took them.
    pub(super) fn rows(&mut self) -> Rows {
        // Keys may come before anything was drawn.
        let width = if self.width == 0 { 80 } else { self.width };
        match self.laid.take() {
            Some((version, rows)) if version == self.now.draft.version() && rows.width() == width => rows,
            _ => Rows::new(self.now.draft.text(), self.now.draft.piece().chips(), width),
        }
    }

    pub(super) fn say_unless(&mut self, does: impl FnOnce(&mut Self) -> bool, note: &str) {
        if !does(self) {
            self.note = Some(note.to_owned());
        }
    }

    pub(super) fn yank(&mut self) {
        let Some(piece) = self.kills.newest() else {
            self.note = Some("nothing was deleted that could be put back".to_owned());
            return;
        };
        let start = self.now.draft.selection().map_or(self.now.draft.cursor(), |range| range.start);
        let end = start + piece.text().len();
        self.kills.pause();
        self.now.draft.insert(piece);
        self.kills.put(start..end);
    }

    /// Up: a row, then what was sent before.
    pub(super) fn up(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Option<PromptOutcome> {
        if self.go(To::Up, false) {
            return TAKEN;
        }
        let is_in_sight =
            self.now.draft.is_empty() && cx.face.view.as_ref().is_some_and(|view| !view.pending.is_empty());
        if is_in_sight && key.modifiers.contains(KeyModifiers::ALT) {
            return Some(self.go_to_pending(cx));
        }
        let piece = self.now.draft.piece().clone();
        let history = self.histories.entry(self.folder.clone()).or_default();
        match self.browse.older(history, &piece) {
            Some(older) => self.now.draft.set(older),
            None => return (!self.now.draft.is_empty()).then_some(PromptOutcome::Taken),
        }
        TAKEN
    }

    /// Down: a row, then forward again in what was sent.
    pub(super) fn down(&mut self) -> Option<PromptOutcome> {
        if self.go(To::Down, false) {
            return TAKEN;
        }
        let piece = self.now.draft.piece().clone();
        let history = self.histories.entry(self.folder.clone()).or_default();
        match self.browse.newer(history, &piece) {
            Some(newer) => self.now.draft.set(newer),
            None => return (!self.now.draft.is_empty()).then_some(PromptOutcome::Taken),
        }
        TAKEN
    }

    pub(super) fn go_to_pending(&mut self, cx: &Cx<'_>) -> PromptOutcome {
        let pending = cx.face.view.as_ref().map(|view| view.pending.as_slice()).unwrap_or_default();
        if self.section.enter(pending) {
            self.menu = None;
            self.focus = Focus::Pending;
        } else {
            self.note = Some("no message waits".to_owned());
        }
        PromptOutcome::Taken
    }

    /// Esc leaves what is under way here, one thing at a time; else it is not for the prompt.
    pub(super) fn escape(&mut self, cx: &Cx<'_>) -> Option<PromptOutcome> {
        if self.waits.take().is_some() {
            self.note = Some("not sent".to_owned());
        } else if self.offer.take().is_some() {
        } else if let Some(range) = self.now.draft.selection() {
            self.now.draft.go_to(range.end, false);
        } else if self.editing(cx.face).is_some() {
            self.remember();
            drop(self.leave_edit());
            self.note = Some("left as it was; Up has your change".to_owned());
        } else {
            return None;
        }
        TAKEN
    }

    /// Ctrl+C where nothing runs: the prompt is emptied, and what it held can be had again.
    pub(super) fn clear_by_hand(&mut self, cx: &Cx<'_>) -> Option<PromptOutcome> {
        if cx.face.is_busy() || self.now.draft.is_empty() {
            return None;
        }
        self.remember();
        self.now.draft.set(super::Piece::default());
        self.browse = Default::default();
        self.waits = None;
        self.note = Some("cleared; Up brings it back".to_owned());
        TAKEN
    }

    /// Whatever is written next goes into the text.
    pub(super) fn begin_writing(&mut self) {
        self.focus = Focus::Text;
        self.note = None;
        self.offer = None;
        self.kills.pause();
        if self.waits.take().is_some() {
            self.note = Some("not sent: you went on writing".to_owned());
        }
    }

    pub(super) fn click(&mut self, column: u16, row: u16, is_selecting: bool) -> PromptOutcome {
        let (area, first) = self.seen;
        if !area.contains((column, row).into()) {
            return PromptOutcome::Passed;
        }
        self.focus = Focus::Text;
        let rows = self.rows();
        let chips = self.now.draft.piece().chips();
        let at = rows.at(self.now.draft.text(), chips, first + (row - area.y) as usize, (column - area.x) as usize);
        self.now.draft.go_to(at, is_selecting);
        self.laid = Some((self.now.draft.version(), rows));
        PromptOutcome::Taken
    }
}

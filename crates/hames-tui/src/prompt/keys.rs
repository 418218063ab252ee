//! What a key does in the prompt.

use hames_protocol::Delivery;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draft::wrap::Rows;
use super::draft::{Edit, To};
use super::menu::Of;
use super::pending::PendingOutcome;
use super::{Asked, Focus, Prompt, PromptOutcome};
use crate::{Action, Cx};

const TAKEN: Option<PromptOutcome> = Some(PromptOutcome::Taken);

impl Prompt {
    pub(super) fn key(&mut self, key: &KeyEvent, action: Option<Action>, cx: &mut Cx<'_>) -> PromptOutcome {
        self.note = None;
        if let Some(outcome) = self.key_elsewhere(key, action, cx) {
            return outcome;
        }
        let before = (self.now.draft.version(), self.now.draft.cursor());
        let was_waiting = self.waits.is_some();
        let outcome =
            match self.offer.is_some() && key.code == KeyCode::Tab && key.modifiers.is_empty() && self.take_offer(cx) {
                true => TAKEN,
                false => self.act(key, action, cx).or_else(|| self.write(key)),
            };
        let after = (self.now.draft.version(), self.now.draft.cursor());
        if after.0 != before.0 {
            self.offer = None;
            if was_waiting && self.waits.take().is_some() {
                self.note = Some("not sent: you went on writing".to_owned());
            }
        }
        if after != before {
            self.refresh_list(after.0 != before.0 && !is_recall(action), cx);
        }
        outcome.unwrap_or(PromptOutcome::Passed)
    }

    /// Where keys go to a list, the messages that wait or the attachments first.
    fn key_elsewhere(&mut self, key: &KeyEvent, action: Option<Action>, cx: &mut Cx<'_>) -> Option<PromptOutcome> {
        match self.focus {
            Focus::Pending => {
                let Some(view) = &cx.face.view else {
                    self.focus = Focus::Text;
                    return None;
                };
                let mut section = std::mem::take(&mut self.section);
                let outcome = section.handle(key, action, view, cx);
                self.section = section;
                match outcome {
                    PendingOutcome::Taken => {}
                    PendingOutcome::Asked(ticket) => self.asked.push((ticket, Asked::Change)),
                    PendingOutcome::Edit(message) => self.edit_pending(&message),
                    PendingOutcome::Left => self.focus = Focus::Text,
                    PendingOutcome::Passed => {
                        // Any other letter is the beginning of a message.
                        self.focus = Focus::Text;
                        return None;
                    }
                }
                TAKEN
            }
            Focus::Attachment(index) => self.key_on_attachment(index, key, action),
            Focus::Text => self.key_in_list(key, action, cx),
        }
    }

    fn key_on_attachment(&mut self, index: usize, key: &KeyEvent, action: Option<Action>) -> Option<PromptOutcome> {
        let count = self.now.attachments.len();
        self.focus = Focus::Text;
        if index >= count {
            return None;
        }
        match key.code {
            KeyCode::Left => self.focus = Focus::Attachment(index.saturating_sub(1)),
            KeyCode::Right if index + 1 < count => self.focus = Focus::Attachment(index + 1),
            KeyCode::Delete | KeyCode::Backspace => {
                self.now.attachments.remove(index);
                if count > 1 {
                    self.focus = Focus::Attachment(index.min(count - 2));
                }
            }
            KeyCode::Right | KeyCode::Esc => {}
            _ => match action {
                Some(Action::Next) => {}
                _ => return None,
            },
        }
        TAKEN
    }

    fn key_in_list(&mut self, key: &KeyEvent, action: Option<Action>, cx: &mut Cx<'_>) -> Option<PromptOutcome> {
        let menu = self.menu.as_mut()?;
        let is_search = menu.of == Of::History;
        match (key.code, action) {
            (_, Some(Action::Previous)) => menu.step(false),
            (_, Some(Action::Next)) => menu.step(true),
            (_, Some(Action::Abort)) if is_search => self.menu = None,
            (_, Some(Action::Abort)) => self.dismiss(),
            (KeyCode::Tab, None) if key.modifiers.is_empty() => return self.choose(false, cx),
            (_, Some(Action::Submit)) => return self.choose(true, cx),
            (KeyCode::Char(c), None) if is_search && is_typed(key) => self.type_into_search(Some(c)),
            (KeyCode::Backspace, None) | (_, Some(Action::DeleteBack)) if is_search => self.type_into_search(None),
            (_, Some(Action::History)) if is_search => menu.step(true),
            _ if is_search => {
                self.menu = None;
                return None;
            }
            _ => return None,
        }
        TAKEN
    }

    /// Keys that have a meaning in the keymap.
    fn act(&mut self, key: &KeyEvent, action: Option<Action>, cx: &mut Cx<'_>) -> Option<PromptOutcome> {
        let action = action?;
        if !matches!(action, Action::Yank | Action::YankOlder) && kill(action).is_none() {
            self.kills.pause();
        }
        match action {
            Action::Submit => return Some(self.submit(Delivery::Interrupt, cx)),
            Action::Queue => return Some(self.submit(Delivery::Queue, cx)),
            Action::Steer => return Some(self.submit(Delivery::Steer, cx)),
            Action::NewLine => self.now.draft.type_char('\n'),
            Action::Undo => self.say_unless(|prompt| prompt.now.draft.undo(), "nothing to take back"),
            Action::Redo => self.say_unless(|prompt| prompt.now.draft.redo(), "nothing to make again"),
            Action::Editor => self.edit(cx),
            Action::PasteImage => self.paste_image(cx),
            Action::Pending => return Some(self.go_to_pending(cx)),
            Action::Previous => return self.up(key, cx),
            Action::Next => return self.down(),
            Action::Abort => return self.escape(cx),
            Action::Interrupt => return self.clear_by_hand(cx),
            Action::Leave if self.now.draft.is_empty() => return None,
            Action::Leave => drop(self.now.draft.delete(Edit::Ahead)),
            Action::History => self.search_history(),
            Action::ExpandPaste => {
                if let Err(why) = self.now.draft.expand() {
                    self.note = Some(why.to_owned());
                }
            }
            Action::SelectAll => self.now.draft.select_all(),
            Action::DeleteBack => drop(self.now.draft.delete(Edit::Back)),
            Action::Yank => self.yank(),
            Action::YankOlder => {
                if let Some((range, piece)) = self.kills.older() {
                    let end = range.start + piece.text().len();
                    self.now.draft.replace(range.clone(), piece);
                    self.kills.put(range.start..end);
                }
            }
            action => match (kill(action), to(action)) {
                (Some((edit, is_before)), _) => {
                    let gone = self.now.draft.delete(edit);
                    self.kills.push(gone, is_before);
                }
                (None, Some(to)) => drop(self.go(to, false)),
                (None, None) => return None,
            },
        }
        TAKEN
    }

    /// Keys that mean the same everywhere.
    fn write(&mut self, key: &KeyEvent) -> Option<PromptOutcome> {
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let alone = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        self.kills.pause();
        match key.code {
            KeyCode::Tab if key.modifiers.is_empty() && !self.now.draft.is_empty() => {}
            KeyCode::Char(c) if is_typed(key) => self.now.draft.type_char(c),
            KeyCode::Backspace if alone && self.now.draft.cursor() == 0 && self.now.draft.selection().is_none() => {
                let count = self.now.attachments.len();
                if count > 0 {
                    self.focus = Focus::Attachment(count - 1);
                }
            }
            KeyCode::Backspace if alone => drop(self.now.draft.delete(Edit::Back)),
            KeyCode::Delete if alone => drop(self.now.draft.delete(Edit::Ahead)),
            KeyCode::Left if alone => {
                let count = self.now.attachments.len();
                if !self.go(To::Left, shift) && !shift && count > 0 {
                    self.focus = Focus::Attachment(count - 1);
                }
            }
            KeyCode::Right if alone => drop(self.go(To::Right, shift)),
            KeyCode::Left if shift => drop(self.go(To::WordLeft, true)),
            KeyCode::Right if shift => drop(self.go(To::WordRight, true)),
            KeyCode::Home if alone => drop(self.go(To::LineStart, shift)),
            KeyCode::End if alone => drop(self.go(To::LineEnd, shift)),
            KeyCode::Home if shift => drop(self.go(To::Start, true)),
            KeyCode::End if shift => drop(self.go(To::End, true)),
            KeyCode::Up if shift => drop(self.go(To::Up, true)),
            KeyCode::Down if shift => drop(self.go(To::Down, true)),
            _ => return None,
        }
        TAKEN
    }

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

    fn say_unless(&mut self, does: impl FnOnce(&mut Self) -> bool, note: &str) {
        if !does(self) {
            self.note = Some(note.to_owned());
        }
    }

    fn yank(&mut self) {
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
    fn up(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Option<PromptOutcome> {
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
    fn down(&mut self) -> Option<PromptOutcome> {
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

    fn go_to_pending(&mut self, cx: &Cx<'_>) -> PromptOutcome {
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
    fn escape(&mut self, cx: &Cx<'_>) -> Option<PromptOutcome> {
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
    fn clear_by_hand(&mut self, cx: &Cx<'_>) -> Option<PromptOutcome> {
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

/// Whether the text came from somewhere else than the keyboard.
fn is_recall(action: Option<Action>) -> bool {
    matches!(
        action,
        Some(Action::Previous | Action::Next | Action::Undo | Action::Redo | Action::Yank | Action::YankOlder)
            | Some(Action::Submit | Action::Queue | Action::Steer)
    )
}

fn is_typed(key: &KeyEvent) -> bool {
    !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META)
}

/// What an action deletes for good use elsewhere, and whether that stands before the cursor.
fn kill(action: Action) -> Option<(Edit, bool)> {
    Some(match action {
        Action::KillWord => (Edit::WordBack, true),
        Action::KillWordAhead => (Edit::WordAhead, false),
        Action::KillToStart => (Edit::ToLineStart, true),
        Action::KillToEnd => (Edit::ToLineEnd, false),
        _ => return None,
    })
}

fn to(action: Action) -> Option<To> {
    Some(match action {
        Action::LineStart => To::LineStart,
        Action::LineEnd => To::LineEnd,
        Action::WordLeft => To::WordLeft,
        Action::WordRight => To::WordRight,
        _ => return None,
    })
}

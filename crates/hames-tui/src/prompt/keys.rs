//! What a key does in the prompt.

use hames_protocol::Delivery;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draft::{Edit, To};
use super::menu::Of;
use super::pending::PendingOutcome;
use super::{Asked, Command, Focus, Prompt, PromptOutcome};
use crate::{Action, Cx, Effect};

pub(super) const TAKEN: Option<PromptOutcome> = Some(PromptOutcome::Taken);

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
                let turned = cx.keys.turned("pending", key);
                let action = turned.as_ref().map_or(action, |key| cx.keys.action(key));
                let mut section = std::mem::take(&mut self.section);
                let outcome = section.handle(turned.as_ref().unwrap_or(key), action, view, cx);
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
            Action::Copy => {
                let selected = self.now.draft.selection()?;
                cx.push(Effect::Copy(self.now.draft.slice(selected).whole()));
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
            // A message that begins so is written with a space in front.
            KeyCode::Char('?') if is_typed(key) && self.now.is_empty() => {
                return Some(PromptOutcome::Command(Command::Keys));
            }
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
}

/// Whether the text came from somewhere else than the keyboard.
fn is_recall(action: Option<Action>) -> bool {
    matches!(
        action,
        Some(Action::Previous | Action::Next | Action::Undo | Action::Redo | Action::Yank | Action::YankOlder)
            | Some(Action::Submit | Action::Queue | Action::Steer)
    )
}

/// Whether a key is text.
pub(crate) fn is_typed(key: &KeyEvent) -> bool {
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

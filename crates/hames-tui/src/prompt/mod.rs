//! The prompt: what is being written, what goes along with it, what waits above it, and the line that says what Enter does.
//!
//! How to think of it: a value that takes inputs and answers with a [`PromptOutcome`]. What it wants done besides (files to be
//! looked for, uploads, the editor) it pushes as effects; what the app is to do (send, run a command) it returns. Whatever
//! was typed stays somewhere: in the draft, in the draft of another session, in the history, or in the hands of the app,
//! which gives a draft back that could not be sent ([`Prompt::give_back`]).
//!
//! Only a key can submit. Text that comes at once is a paste, whatever it holds.

mod attach;
mod command;
mod draft;
mod draw;
pub(crate) mod fuzzy;
mod hint;
pub(crate) mod history;
mod kept;
mod keys;
mod kills;
mod lists;
mod mention;
mod menu;
mod moves;
pub(crate) mod paint;
mod path;
mod pending;
mod send;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::ops::Range;

use hames_protocol::api::{ApiError, ApiErrorCode};
use hames_protocol::{Delivery, Part, PendingId, SessionId};
use ratatui::crossterm::event::MouseEventKind;
use ratatui::layout::Rect;

use crate::{Action, Answer, Cx, Effect, Input, Ticket};
pub(crate) use command::{COMMANDS, Command};
pub(crate) use kept::{Kept, Unsaved, as_draft};
pub use kept::{Recalled, SavedDraft, SavedText, Spot};
pub(crate) use keys::is_typed;

use draft::Piece;
use draft::wrap::Rows;
use history::{Browse, History};
use kills::Kills;
use mention::Mention;
use menu::Menu;
use pending::PendingSection;

/// What became of an input.
#[derive(Clone, Debug)]
pub(crate) enum PromptOutcome {
    /// It is done with.
    Taken,
    /// Not for the prompt.
    Passed,
    /// A message is to be sent; the prompt is empty already.
    Submit {
        /// What it says.
        parts: Vec<Part>,
        /// How it is delivered.
        delivery: Delivery,
        /// For [`Prompt::give_back`], should it not be taken.
        draft: Box<Kept>,
    },
    /// Something is to be done that was asked for by name.
    Command(Command),
}

/// Where keys go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Focus {
    /// Into the text.
    #[default]
    Text,
    /// To an attachment.
    Attachment(usize),
    /// To the messages that wait.
    Pending,
}

/// Something that was asked about a message that waits.
#[derive(Clone, Debug)]
enum Asked {
    /// A withdrawal, another delivery, another place, a pause.
    Change,
    /// Another content of a message of that session; here it is, should it come too late.
    Content(Option<SessionId>, Box<Kept>),
}

/// The prompt of the app. It holds the drafts of all sessions that were written in.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    session: Option<SessionId>,
    folder: String,
    now: Kept,
    others: BTreeMap<Option<SessionId>, Kept>,
    histories: BTreeMap<String, History>,
    /// What was sent and is in no file yet, with its folder.
    sent: Vec<(String, SavedText)>,
    /// Answers of the files that were taken in.
    recalled: u64,
    browse: Browse,
    kills: Kills,
    menu: Option<Menu>,
    /// Where the list was closed by hand; it stays closed there.
    dismissed: Option<menu::Of>,
    mention: Mention,
    /// Text that is a path, and the paths.
    offer: Option<(Range<usize>, Vec<String>)>,
    note: Option<String>,
    focus: Focus,
    section: PendingSection,
    /// The message is sent so once what it needs is there.
    waits: Option<Delivery>,
    asked: Vec<(Ticket, Asked)>,
    /// The user's editor has the draft.
    edited: Option<(Ticket, Piece)>,
    laid: Option<(u64, Rows)>,
    width: usize,
    /// Where the text was drawn last, and its first row there.
    seen: (Rect, usize),
}

impl Prompt {
    /// Takes an input, and the action its key means.
    pub(crate) fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> PromptOutcome {
        self.tend(cx);
        let outcome = match input {
            Input::Key(key) => self.key(key, action, cx),
            Input::Paste(text) => self.paste(text, cx),
            Input::Mouse(mouse) => {
                let select = match mouse.kind {
                    MouseEventKind::Down(ratatui::crossterm::event::MouseButton::Left) => false,
                    MouseEventKind::Drag(ratatui::crossterm::event::MouseButton::Left) => true,
                    _ => return PromptOutcome::Passed,
                };
                self.click(mouse.column, mouse.row, select)
            }
            _ => PromptOutcome::Passed,
        };
        match outcome {
            PromptOutcome::Passed if !matches!(input, Input::Key(_)) => self.send_what_waits(cx).unwrap_or(outcome),
            outcome => outcome,
        }
    }

    /// Takes an answer, if it is to something the prompt asked.
    pub(crate) fn answer(
        &mut self,
        ticket: Ticket,
        answer: &Result<Answer, ApiError>,
        cx: &mut Cx<'_>,
    ) -> PromptOutcome {
        self.tend(cx);
        let is_ours = self.take_files(ticket, answer)
            || self.take_edited(ticket, answer)
            || self.take_asked(ticket, answer)
            || self.take_attachment(ticket, answer, cx);
        match is_ours {
            true => self.send_what_waits(cx).unwrap_or(PromptOutcome::Taken),
            false => PromptOutcome::Passed,
        }
    }

    /// Whether something waits for a session to exist: files to be named or kept.
    pub(crate) fn wants_session(&self) -> bool {
        self.session.is_none()
            && (self.now.attachments.iter().any(attach::Attachment::wants_session)
                || matches!(self.menu.as_ref().map(|menu| menu.of), Some(menu::Of::Files(_))))
    }

    /// Follows what the app knows: another session brings its own draft.
    fn tend(&mut self, cx: &mut Cx<'_>) {
        self.follow(cx.face);
        for attachment in &mut self.now.attachments {
            attachment.push_on(self.session.as_ref(), false, cx);
        }
        if matches!(self.menu.as_ref().map(|menu| menu.of), Some(menu::Of::Files(_))) {
            self.mention.tend(self.session.as_ref(), cx);
        }
        if let Some(view) = &cx.face.view {
            self.section.see(&view.pending);
            if view.pending.is_empty() && self.focus == Focus::Pending {
                self.focus = Focus::Text;
            }
        }
    }

    fn take_files(&mut self, ticket: Ticket, answer: &Result<Answer, ApiError>) -> bool {
        let files = match answer {
            Ok(Answer::Files(files)) => Some(files),
            _ => None,
        };
        if !self.mention.take(ticket, files) {
            return false;
        }
        if let Err(error) = answer {
            self.note = Some(error.message.clone());
        }
        self.list_files();
        true
    }

    fn take_edited(&mut self, ticket: Ticket, answer: &Result<Answer, ApiError>) -> bool {
        let Some((_, before)) = self.edited.take_if(|(asked, _)| *asked == ticket) else { return false };
        match answer {
            Ok(Answer::Edited(Some(text))) => {
                // Editors end a file with a line end, whether somebody wrote one or not.
                let text = match before.whole().ends_with('\n') {
                    true => text.as_str(),
                    false => text.strip_suffix('\n').unwrap_or(text),
                };
                // What was pasted meanwhile can be had back by undoing.
                self.now.draft.set(before.folded(text));
            }
            Ok(_) => {}
            Err(error) => self.note = Some(error.message.clone()),
        }
        true
    }

    fn take_asked(&mut self, ticket: Ticket, answer: &Result<Answer, ApiError>) -> bool {
        let Some(index) = self.asked.iter().position(|(asked, _)| *asked == ticket) else { return false };
        let (_, asked) = self.asked.remove(index);
        let Err(error) = answer else { return true };
        let late = error.code == ApiErrorCode::NotFound;
        self.note = Some(match (&asked, late) {
            (Asked::Change, true) => "too late: the message was delivered already".to_owned(),
            (Asked::Content(..), true) => {
                "too late: the message was delivered as it was; your change is here".to_owned()
            }
            _ => error.message.clone(),
        });
        if let Asked::Content(session, kept) = asked {
            self.give_back(session, *kept);
        }
        true
    }

    fn take_attachment(&mut self, ticket: Ticket, answer: &Result<Answer, ApiError>, cx: &mut Cx<'_>) -> bool {
        let mut now = self.now.attachments.iter_mut();
        if let Some(at) = now.position(|a| a.take(ticket, answer, self.session.as_ref(), cx)) {
            let Err(error) = answer else { return true };
            let one = &self.now.attachments[at];
            cx.say(format!("Not attached, {}: {}", one.name(), error.message));
            if one.is_nothing() {
                self.now.attachments.remove(at);
            }
            if self.waits.take().is_some() {
                self.note = Some("not sent".to_owned());
            }
            return true;
        }
        // The person has gone to another session meanwhile.
        self.others
            .iter_mut()
            .any(|(session, kept)| kept.attachments.iter_mut().any(|a| a.take(ticket, answer, session.as_ref(), cx)))
    }

    /// The draft goes to the user's editor.
    fn edit(&mut self, cx: &mut Cx<'_>) {
        let ticket = cx.ticket();
        let piece = self.now.draft.piece().clone();
        cx.push(Effect::Edit(ticket, piece.whole()));
        self.edited = Some((ticket, piece));
    }

    /// The message that is edited, and whether it still waits.
    fn editing(&self, face: &crate::Face) -> Option<(PendingId, bool)> {
        let id = self.now.editing.clone()?;
        let waits = face.view.as_ref().is_some_and(|view| view.pending.iter().any(|message| message.id == id));
        Some((id, waits))
    }

    fn is_connected(cx: &Cx<'_>) -> bool {
        cx.face.link.takes_messages()
    }
}

#[cfg(test)]
mod tests;

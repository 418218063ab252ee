//! A session goes for good, once somebody has read what goes with it.

use hames_protocol::Event;
use hames_protocol::api::{ApiError, LogPage, SessionRow, SessionView};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::parts::{Confirm, Decided, Look, plural, some_paths};
use crate::{Action, Answer, Cx, Effect, Input, Layer, Outcome, Request, Sight, Ticket};

/// Events that are read to count messages; a longer session has "more than" what is in them.
const COUNTED: u32 = 1_000;

/// Asks whether a session is to go.
pub(super) struct Delete {
    row: SessionRow,
    confirm: Confirm,
    asked: [Ticket; 2],
    view: Option<SessionView>,
    page: Option<LogPage>,
}

impl Delete {
    pub(super) fn of(row: SessionRow, cx: &mut Cx<'_>) -> Self {
        let view = cx.ask(Request::View(row.id.clone()));
        let page = cx.ask(Request::Page { session: row.id.clone(), before: None, limit: COUNTED });
        let confirm = Confirm::new(format!("Delete \"{}\"?", row.name), Vec::new(), "Delete");
        let mut delete = Self { row, confirm, asked: [view, page], view: None, page: None };
        delete.tell();
        delete
    }

    /// Says what goes, as far as it is known.
    fn tell(&mut self) {
        let mut body = Vec::new();
        let mut goes = vec![plural(self.row.turns.into(), "turn")];
        if let Some(page) = &self.page {
            let is_message = |event: &Event| matches!(event, Event::MessageUser(_) | Event::TextDone(_));
            let of_children = |agent: &[String]| !agent.is_empty();
            let messages = page.events.iter().filter(|e| is_message(&e.event) && !of_children(&e.agent)).count();
            let more = if page.older { "more than " } else { "" };
            goes.push(format!("{more}{}", plural(messages as u64, "message")));
        }
        // Numbers of events that were cut off are not used again, so the last one is only a bound.
        goes.push(match &self.page {
            Some(page) if !page.older => plural(page.events.len() as u64, "event"),
            _ => format!("up to {}", plural(self.row.last_seq, "event")),
        });
        body.push((format!("What goes: {}.", goes.join(", ")), Look::Warn));
        if let Some(view) = &self.view {
            if view.run.is_some() {
                body.push(("A run goes on in it; it has to be stopped first.".into(), Look::Bad));
            }
            if !view.pending.is_empty() {
                let waits = if view.pending.len() == 1 { "waits" } else { "wait" };
                body.push((
                    format!("{} that {waits} and will not be sent.", plural(view.pending.len() as u64, "message")),
                    Look::Warn,
                ));
            }
            if !view.proposals.is_empty() {
                body.push((proposals(&view.proposals, &self.row.folder), Look::Warn));
            }
        }
        body.push((format!("Files in {} stay as they are.", self.row.folder), Look::Text));
        body.push(("It cannot be brought back; an export keeps it.".into(), Look::Text));
        self.confirm.set_body(body);
    }
}

/// Says what was proposed and never made.
fn proposals(paths: &[String], folder: &str) -> String {
    let made = if paths.len() == 1 { "was" } else { "were" };
    format!(
        "{} that {made} proposed and never made: {}.",
        plural(paths.len() as u64, "change"),
        some_paths(paths.iter().map(String::as_str), folder)
    )
}

impl Layer for Delete {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        match self.confirm.handle(input, action) {
            Decided::Passed => return Outcome::Passed,
            Decided::Taken => {}
            Decided::No => return Outcome::Closed,
            Decided::Yes => {
                let ticket = cx.ask(Request::Delete(self.row.id.clone()));
                self.confirm.wait(ticket, "deleting");
            }
        }
        Outcome::Taken
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if self.confirm.is_for(ticket) {
            return match answer {
                Ok(_) => {
                    if cx.face.session.as_ref() == Some(&self.row.id) {
                        cx.push(Effect::Show(None));
                    }
                    cx.say(format!("\"{}\" is deleted.", self.row.name));
                    Outcome::Closed
                }
                Err(error) => {
                    self.confirm.refuse(format!("It could not be deleted: {error}"));
                    Outcome::Taken
                }
            };
        }
        if !self.asked.contains(&ticket) {
            return Outcome::Passed;
        }
        match answer {
            Ok(Answer::View(view)) => {
                self.row = view.row.clone();
                self.view = Some(*view);
            }
            Ok(Answer::Page(page)) => self.page = Some(page),
            // The question can be answered without; the act itself says what is wrong.
            _ => {}
        }
        self.tell();
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        self.confirm.draw(area, buf, sight);
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        self.confirm.hint(sight)
    }

    fn name(&self) -> &'static str {
        "delete"
    }
}

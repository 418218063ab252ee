//! A question that is answered in one line: a name, a folder, a file. What is refused stays to be mended.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{Edited, Field, Look, dialog, frame};
use crate::talk::paint::draw_row;
use crate::talk::text::{Run, Sheet, Wrap, clean};
use crate::{Action, Input, Sight, Ticket};

/// What an input did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing: it is for somebody else.
    Passed,
    /// Something was written.
    Taken,
    /// Nobody wants to answer.
    Left,
    /// The answer.
    Given(String),
}

/// The question.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    title: String,
    body: Vec<(String, Look)>,
    field: Field,
    /// Why the last answer was not taken.
    refusal: Option<String>,
    /// What is being done with the answer, and who says when it is.
    waits: Option<(Ticket, &'static str)>,
}

impl Ask {
    /// A question with an answer in it to begin with.
    pub(crate) fn new(title: impl Into<String>, answer: &str) -> Self {
        Self { title: title.into(), field: Field::new(answer), ..Self::default() }
    }

    /// What is to be known, below the line: a paragraph more.
    pub(crate) fn about(mut self, text: impl AsRef<str>, look: Look) -> Self {
        self.body.push((clean(text.as_ref()).into_owned(), look));
        self
    }

    /// Another answer to begin with.
    pub(crate) fn write(&mut self, answer: &str) {
        self.field = Field::new(answer);
    }

    /// The answer goes where a ticket says; until then nothing is written. `doing` says what is done meanwhile.
    pub(crate) fn wait(&mut self, ticket: Ticket, doing: &'static str) {
        self.refusal = None;
        self.waits = Some((ticket, doing));
    }

    /// Whether a ticket is the one that is waited for, which it is no longer then.
    pub(crate) fn is_for(&mut self, ticket: Ticket) -> bool {
        self.waits.take_if(|(waits, _)| *waits == ticket).is_some()
    }

    /// The answer was not taken.
    pub(crate) fn refuse(&mut self, why: impl AsRef<str>) {
        self.refusal = Some(clean(why.as_ref()).into_owned());
    }

    /// Takes a key or a paste.
    pub(crate) fn handle(&mut self, input: &Input, action: Option<Action>) -> Asked {
        match (input, action) {
            (Input::Key(_), Some(Action::Abort)) => return Asked::Left,
            (Input::Key(_) | Input::Paste(_), _) if self.waits.is_some() => {}
            (Input::Key(_), Some(Action::Submit)) => return Asked::Given(self.field.text().trim().to_owned()),
            (Input::Key(_) | Input::Paste(_), _) => {
                if self.field.handle(input, action) == Edited::Changed {
                    self.refusal = None;
                }
            }
            (Input::Mouse(_), _) => {}
            _ => return Asked::Passed,
        }
        Asked::Taken
    }

    /// Draws it at the bottom of an area of any size.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let area = area.intersection(buf.area);
        let mut sheet = Sheet::new(dialog(area, 0).width.saturating_sub(4));
        let refusal = self.refusal.as_ref().map(|why| (why.clone(), Look::Bad));
        let doing = self.waits.map(|(_, doing)| (format!("{doing} …"), Look::Dim));
        for (text, look) in refusal.iter().chain(&doing).chain(&self.body) {
            sheet.flow(&[], &[], &[Run::new(text.as_str(), look.style(sight.theme))], Wrap::Words);
        }
        let inner = frame(dialog(area, sheet.rows.len() as u16 + 1), buf, sight, &self.title);
        let mut places = inner.rows();
        let cursor = self.field.draw(places.next()?, buf, "› ", sight);
        for (place, row) in places.zip(&sheet.rows) {
            draw_row(row, place, buf);
        }
        cursor
    }

    /// What the hint line says: what Enter does.
    pub(crate) fn hint(&self, does: &str, sight: Sight<'_>) -> String {
        let (submit, leave) = (sight.keys.hint(Action::Submit), sight.keys.hint(Action::Abort));
        match self.waits {
            Some(_) => format!("{leave} closes this; it is done all the same"),
            None => format!("{submit} {does} · {leave} leaves it"),
        }
    }
}

//! A question before something is done that cannot be taken back. It says what goes; nothing but a key of its own, or a
//! click on it, says yes: Enter alone means no until somebody moved to the other answer, and a paste means nothing.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, MouseButton, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{Look, dialog, frame};
use crate::prompt::paint::Line;
use crate::talk::paint::draw_row;
use crate::talk::text::{Run, Sheet, Wrap, clean};
use crate::{Action, Input, Sight, Ticket};

/// Cells between the two answers.
const GAP: usize = 3;

/// What an input decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Nothing: it is for somebody else.
    Passed,
    /// Nothing yet.
    Taken,
    /// Do it.
    Yes,
    /// Leave it.
    No,
}

/// The question.
#[derive(Clone, Debug)]
pub(crate) struct Confirm {
    title: String,
    body: Vec<(String, Look)>,
    /// Why it could not be done.
    refusal: Option<String>,
    /// The verb on the answer that does it.
    verb: &'static str,
    /// What is being done, and who says when it is.
    waits: Option<(Ticket, &'static str)>,
    is_yes: bool,
    scroll: usize,
    /// Rows that do not fit.
    over: usize,
    /// Where the answers were drawn: no, yes.
    answers: [Rect; 2],
}

impl Confirm {
    /// A question with what is to be known about it, paragraph by paragraph, and the verb that does it.
    pub(crate) fn new(title: impl Into<String>, body: Vec<(String, Look)>, verb: &'static str) -> Self {
        let body = body.into_iter().map(|(text, look)| (clean(&text).into_owned(), look)).collect();
        let answers = [Rect::ZERO; 2];
        Self { title: title.into(), body, refusal: None, verb, waits: None, is_yes: false, scroll: 0, over: 0, answers }
    }

    /// What is to be known is this, by what came later.
    pub(crate) fn set_body(&mut self, body: Vec<(String, Look)>) {
        self.body = body.into_iter().map(|(text, look)| (clean(&text).into_owned(), look)).collect();
    }

    /// It is being done, until a ticket is answered.
    pub(crate) fn wait(&mut self, ticket: Ticket, doing: &'static str) {
        self.refusal = None;
        self.waits = Some((ticket, doing));
    }

    /// Whether a ticket is the one that is waited for, which it is no longer then.
    pub(crate) fn is_for(&mut self, ticket: Ticket) -> bool {
        self.waits.take_if(|(waits, _)| *waits == ticket).is_some()
    }

    /// It could not be done.
    pub(crate) fn refuse(&mut self, why: impl AsRef<str>) {
        self.refusal = Some(clean(why.as_ref()).into_owned());
        (self.is_yes, self.scroll) = (false, 0);
    }

    /// Takes a key or a click.
    pub(crate) fn handle(&mut self, input: &Input, action: Option<Action>) -> Decided {
        match (input, action) {
            (Input::Key(_) | Input::Mouse(_), other) if self.waits.is_some() && other != Some(Action::Abort) => {}
            (Input::Mouse(mouse), _) => {
                let at = Position::new(mouse.column, mouse.row);
                return match mouse.kind {
                    MouseEventKind::Up(MouseButton::Left) if self.answers[0].contains(at) => Decided::No,
                    MouseEventKind::Up(MouseButton::Left) if self.answers[1].contains(at) => Decided::Yes,
                    _ => Decided::Taken,
                };
            }
            (Input::Paste(_), _) => {}
            (_, Some(Action::Abort)) => return Decided::No,
            (_, Some(Action::Submit)) => return if self.is_yes { Decided::Yes } else { Decided::No },
            (_, Some(Action::Previous | Action::PageUp)) => self.scroll = self.scroll.saturating_sub(1),
            (_, Some(Action::Next | Action::PageDown)) => self.scroll = (self.scroll + 1).min(self.over),
            (Input::Key(key), None) if key.modifiers.is_empty() => match key.code {
                KeyCode::Char('y') => return Decided::Yes,
                KeyCode::Char('n') => return Decided::No,
                KeyCode::Left => self.is_yes = false,
                KeyCode::Right => self.is_yes = true,
                KeyCode::Tab => self.is_yes = !self.is_yes,
                _ => {}
            },
            (Input::Key(_), _) => {}
            _ => return Decided::Passed,
        }
        Decided::Taken
    }

    /// Draws it at the bottom of an area of any size; the answers are the last to go.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let area = area.intersection(buf.area);
        let width = dialog(area, 0).width.saturating_sub(4);
        let mut sheet = Sheet::new(width);
        let refusal = self.refusal.as_ref().map(|why| (why.clone(), Look::Bad));
        for (text, look) in refusal.iter().chain(&self.body) {
            sheet.flow(&[], &[], &[Run::new(text.as_str(), look.style(sight.theme))], Wrap::Words);
        }
        let rows = sheet.rows.len() as u16;
        let inner = frame(dialog(area, rows.saturating_add(2)), buf, sight, &self.title);
        let Some(last) = inner.rows().next_back() else { return };
        let body = Rect { height: inner.height.saturating_sub(if inner.height > 2 { 2 } else { 1 }), ..inner };
        self.over = sheet.rows.len().saturating_sub(body.height.into());
        self.scroll = self.scroll.min(self.over);
        for (place, row) in body.rows().zip(sheet.rows.iter().skip(self.scroll)) {
            draw_row(row, place, buf);
        }
        self.draw_answers(last, buf, sight);
    }

    fn draw_answers(&mut self, row: Rect, buf: &mut Buffer, sight: Sight<'_>) {
        let mut line = Line::new(row, 0);
        if let Some((_, doing)) = self.waits {
            line.put(buf, &format!("{doing} …"), sight.theme.dim());
            return;
        }
        let key = |name: &str| sight.keys.inner(name);
        let said = [format!(" No ({}) ", key("confirm.no")), format!(" {} ({}) ", self.verb, key("confirm.yes"))];
        for (at, text) in said.iter().enumerate() {
            let from = line.column();
            let style = if (at == 1) == self.is_yes { sight.theme.chosen() } else { sight.theme.text() };
            line.put(buf, text, if at == 1 { sight.theme.bad().patch(style) } else { style });
            self.answers[at] = Rect { x: row.x + from as u16, width: line.column().saturating_sub(from) as u16, ..row };
            let next = line.column() + GAP;
            line.go_to(next);
        }
        if self.over > 0 {
            line.put(buf, "↑↓ more", sight.theme.dim());
        }
    }

    /// What the hint line says.
    pub(crate) fn hint(&self, sight: Sight<'_>) -> String {
        let no = sight.keys.hint(Action::Abort);
        if self.waits.is_some() {
            return format!("{no} closes this; it is done all the same");
        }
        let key = |name: &str| sight.keys.inner(name);
        let (yes, other) = (key("confirm.yes"), key("confirm.no"));
        format!("{yes} {} · {other} or {no} leaves everything as it is", self.verb.to_lowercase())
    }
}

//! Layers that ask for one line and do something with it. What each asks and does is its own file.

use hames_protocol::api::ApiError;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::parts::{Ask, Asked};
use crate::{Action, Answer, Cx, Input, Layer, Outcome, Sight, Ticket};

/// What became of a line that was given.
pub(super) enum Given {
    /// It is being done; who says when it is, and what is done.
    Waits(Ticket, &'static str),
    /// It is done.
    Done,
    /// It cannot be done, and why.
    Refused(String),
}

/// What a line is for.
pub(super) trait Purpose {
    /// The layer's name.
    const NAME: &'static str;
    /// What Enter does, for the hint line.
    const DOES: &'static str;

    /// Takes the line, without spaces around it.
    fn give(&mut self, line: String, cx: &mut Cx<'_>) -> Given;

    /// Takes the answer to what was waited for. Refusals never come here: the line stays to be mended.
    fn done(&mut self, answer: Answer, cx: &mut Cx<'_>);
}

/// The layer.
pub(super) struct Form<P> {
    purpose: P,
    ask: Ask,
}

impl<P: Purpose> Form<P> {
    pub(super) fn new(purpose: P, ask: Ask) -> Self {
        Self { purpose, ask }
    }

    /// The same with the line given already, as by a command with its argument; closed again where that is all.
    pub(super) fn given(mut self, line: &str, cx: &mut Cx<'_>) -> Option<Self> {
        self.ask.write(line);
        self.give(line.trim().to_owned(), cx).then_some(self)
    }

    /// Whether it stays open.
    fn give(&mut self, line: String, cx: &mut Cx<'_>) -> bool {
        match self.purpose.give(line, cx) {
            Given::Waits(ticket, doing) => self.ask.wait(ticket, doing),
            Given::Done => return false,
            Given::Refused(why) => self.ask.refuse(why),
        }
        true
    }
}

impl<P: Purpose> Layer for Form<P> {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        match self.ask.handle(input, action) {
            Asked::Passed => Outcome::Passed,
            Asked::Taken => Outcome::Taken,
            Asked::Left => Outcome::Closed,
            Asked::Given(line) => match self.give(line, cx) {
                true => Outcome::Taken,
                false => Outcome::Closed,
            },
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if !self.ask.is_for(ticket) {
            return Outcome::Passed;
        }
        match answer {
            Ok(answer) => {
                self.purpose.done(answer, cx);
                Outcome::Closed
            }
            Err(error) => {
                self.ask.refuse(format!("Not done: {error}"));
                Outcome::Taken
            }
        }
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        self.ask.draw(area, buf, sight)
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        self.ask.hint(P::DOES, sight)
    }

    fn name(&self) -> &'static str {
        P::NAME
    }
}

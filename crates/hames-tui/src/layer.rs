//! Layers: what lies over the conversation, one over the other.

use hames_protocol::api::{ApiError, Waiting};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::{Action, Answer, Effect, Face, Input, Keymap, Request, Theme, Ticket};

/// What a layer did with an input.
pub enum Outcome {
    /// It is done with; nobody below sees it.
    Taken,
    /// Not for this layer: the next one below gets it.
    Passed,
    /// Done with, and the layer goes.
    Closed,
    /// Done with, and this layer goes on top.
    Opened(Box<dyn Layer>),
    /// Done with, and this layer takes its place.
    Became(Box<dyn Layer>),
    /// The layer goes, and the action is done by whoever does it.
    ClosedFor(Action),
}

/// What a layer may use while it handles something.
pub struct Cx<'a> {
    /// What is known.
    pub face: &'a Face,
    /// Which key means what.
    pub keys: &'a Keymap,
    /// The time, in milliseconds of the app's clock.
    pub now: u64,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) next_ticket: &'a mut u64,
}

impl Cx<'_> {
    /// Wants something done.
    pub fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// A name for something whose answer is awaited.
    pub fn ticket(&mut self) -> Ticket {
        *self.next_ticket += 1;
        Ticket(*self.next_ticket)
    }

    /// Says something in the hint line, until the next key.
    pub fn say(&mut self, text: impl Into<String>) {
        self.push(Effect::Say(text.into()));
    }

    /// Asks the server.
    pub fn ask(&mut self, request: Request) -> Ticket {
        let ticket = self.ticket();
        self.push(Effect::Ask(ticket, Box::new(request)));
        ticket
    }
}

/// What a layer may use while it draws.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    /// What is known.
    pub face: &'a Face,
    /// Which key means what.
    pub keys: &'a Keymap,
    /// Colours.
    pub theme: &'a Theme,
    /// The time, in milliseconds of the app's clock.
    pub now: u64,
}

impl Sight<'_> {
    /// The Unix time in milliseconds.
    pub fn unix(&self) -> u64 {
        self.face.epoch + self.now
    }
}

/// Something that lies over the conversation: a picker, a question, a view.
pub trait Layer {
    /// Takes a key, a paste or the mouse. `action` is what the key means, where it means something.
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome;

    /// Takes an answer to what this layer asked; others' tickets are passed on. Answers come in any order, and late.
    fn answer(&mut self, ticket: Ticket, _answer: Result<Answer, ApiError>, _cx: &mut Cx<'_>) -> Outcome {
        let _ = ticket;
        Outcome::Passed
    }

    /// What waits for a person now; `false` where this shows that and there is nothing any more.
    fn waits(&mut self, _waiting: &Waiting) -> bool {
        true
    }

    /// Whether letters are written into it now, so that none of them means something else.
    fn takes_text(&self) -> bool {
        false
    }

    /// What lay on top has gone: what it did may have changed what this shows.
    fn uncovered(&mut self, _cx: &mut Cx<'_>) {}

    /// Draws into its area, which may be of any size, and says where the cursor stands.
    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position>;

    /// When a frame that was drawn at `now` wants another one, though nothing comes.
    fn wake_at(&self, _now: u64) -> Option<u64> {
        None
    }

    /// What the hint line says while it is on top: keys and what they do.
    fn hint(&self, sight: Sight<'_>) -> String;

    /// Its name for plain mode and for tests.
    fn name(&self) -> &'static str;
}

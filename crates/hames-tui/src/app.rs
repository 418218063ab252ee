//! The app: the stack of layers over the base, and who gets what.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::{Cx, Effect, Face, Input, Keymap, Layer, Outcome, Sight, Theme};

/// Everything the face is, between two inputs.
pub struct App {
    face: Face,
    keys: Keymap,
    theme: Theme,
    /// The base at the bottom, then whatever lies over it.
    layers: Vec<Box<dyn Layer>>,
    next_ticket: u64,
}

impl App {
    /// An app that shows `base`.
    pub fn new(face: Face, keys: Keymap, theme: Theme, base: Box<dyn Layer>) -> Self {
        Self { face, keys, theme, layers: vec![base], next_ticket: 0 }
    }

    /// Takes in what happened at `now` (milliseconds of any clock that only goes forward), and says what is to be done.
    pub fn update(&mut self, input: Input, now: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        match &input {
            Input::Resize { width, height } => self.face.size = (*width, *height),
            Input::Focus(is_focused) => self.face.is_focused = *is_focused,
            Input::Link(link) => self.face.link = link.clone(),
            _ => {}
        }
        let action = match &input {
            Input::Key(key) => self.keys.action(key),
            _ => None,
        };
        let mut at = self.layers.len();
        while at > 0 {
            at -= 1;
            let Self { face, keys, layers, next_ticket, .. } = self;
            let mut cx = Cx { face, keys, now, effects: &mut effects, next_ticket };
            let outcome = match &input {
                Input::Reply(ticket, answer) => layers[at].answer(*ticket, answer.clone(), &mut cx),
                _ => layers[at].handle(&input, action, &mut cx),
            };
            match outcome {
                Outcome::Passed => continue,
                Outcome::Taken => {}
                Outcome::Opened(layer) => self.layers.push(layer),
                Outcome::Closed if at > 0 => drop(self.layers.remove(at)),
                Outcome::Closed | Outcome::ClosedFor(_) => {}
            }
            break;
        }
        effects
    }

    /// Draws the whole screen; says where the cursor stands.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, now: u64) -> Option<Position> {
        let sight = Sight { face: &self.face, keys: &self.keys, theme: &self.theme, now };
        let mut cursor = None;
        for layer in &mut self.layers {
            cursor = layer.draw(area, buf, sight);
        }
        cursor
    }
}

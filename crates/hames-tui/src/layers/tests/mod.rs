//! Layers, driven by keys and answers, and their screens.

mod database;
mod delete;
mod forms;
mod help;
mod messages;
mod models;
mod search;
mod sessions;

use hames_protocol::api::{ApiError, ApiErrorCode};
use ratatui::crossterm::event::KeyCode;

use super::parts::kit::{self, Stand, ctrl, key, row};
use crate::snapshot::compare;
use crate::{Answer, Effect, Input, Layer, Outcome, Request, Ticket};

/// What became of a layer, as a word.
fn went(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Taken => "taken",
        Outcome::Passed => "passed",
        Outcome::Closed => "closed",
        Outcome::Opened(layer) | Outcome::Became(layer) => layer.name(),
        Outcome::ClosedFor(_) => "closed for",
    }
}

fn refusal(code: ApiErrorCode, text: &str) -> Result<Answer, ApiError> {
    Err(ApiError::new(code, text))
}

/// The one thing that was asked.
fn one(stand: &mut Stand) -> (Ticket, Request) {
    let mut asked = stand.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked.remove(0)
}

/// Effects but those that say or wake, and forgotten.
fn effects(stand: &mut Stand) -> Vec<Effect> {
    let all = std::mem::take(&mut stand.effects);
    all.into_iter().filter(|effect| !matches!(effect, Effect::Say(_) | Effect::WakeAt(_))).collect()
}

/// Text with everything that could do harm or take two cells.
const ODD: &str = "漢字 👩‍👩‍👧 e\u{301} \u{1b}[2J\u{7}\u{202e}x";

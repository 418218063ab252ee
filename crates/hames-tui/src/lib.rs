//! The terminal face of Hames: a thin client of the server.
//!
//! How to think of it: everything that can be decided is decided by values. [`Input`] goes in (a key, a paste, events of the
//! session, an answer of the server, the time), the [`App`] changes, [`Effect`]s come out, and a frame can be drawn at any
//! moment from what the app holds. Nothing in between touches a terminal, a socket or a clock, so every screen is tested as
//! text. Only `shell` performs effects, reads keys and draws.
//!
//! What is on the screen is a stack of [`Layer`]s over one base: the conversation, what waits, the prompt and a status line.
//! A layer gets keys first, from the top down. Each layer is its own file; keys are data (`keys`).
//!
//! It deliberately knows nothing below the API: no store, no agent, no configuration file. What it shows of a session is a
//! fold of the same envelopes everybody gets.

mod app;
mod base;
mod effect;
mod face;
mod input;
mod io;
mod keep;
mod keys;
mod layer;
mod layers;
mod plain;
mod prompt;
mod shell;
#[cfg(test)]
mod snapshot;
mod status;
mod talk;
mod theme;

pub use app::{App, Start};
pub use effect::{Answer, Effect, Request, Ticket};
pub use face::{Face, Link};
pub use input::Input;
pub use keys::{Action, Chord, Keymap, KeymapError};
pub use layer::{Cx, Layer, Outcome, Sight};
pub use plain::{PlainEnd, run as run_plain};
pub use prompt::{Recalled, SavedDraft, SavedText, Spot};
pub use shell::{Ending, Options, Terminal, run};
pub use talk::{SavedFolds, Talk};
pub use theme::{Depth, Shade, Theme};

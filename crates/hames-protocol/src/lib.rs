//! The words every part of Hames shares.
//!
//! A session is an append-only sequence of durable [`Event`]s; everything a person or a model sees is a fold of it.
//! This crate holds those words (ids, messages, events, settings, tool specs, failures), the *ports* whose signatures
//! use only these words, in-memory implementations of them, and the pure folds ([`Transcript`], [`SessionState`]).
//!
//! It does no I/O, reads no clock, knows no provider and no tool by name.
//!
//! ```
//! use hames_protocol::{Event, Envelope, Transcript, TextDone};
//! let mut transcript = Transcript::default();
//! transcript.apply(&Event::TextDone(TextDone { index: 0, text: "Hello.".into(), cut: None }));
//! transcript.apply(&Event::step_done_for_tests("stop"));
//! assert_eq!(transcript.items().len(), 1);
//! ```

pub mod api;
pub mod closing;
mod compaction;
mod event;
mod failure;
mod grant;
mod guard;
mod id;
mod lesson;
mod memory;
mod message;
mod model;
mod numbers;
mod ports;
mod proposals;
mod sampling;
pub mod schema;
mod settings;
mod state;
mod tool;
mod transcript;
mod usage;
mod window;

pub use compaction::*;
pub use event::*;
pub use failure::*;
pub use grant::*;
pub use guard::*;
pub use id::*;
pub use lesson::*;
pub use memory::*;
pub use message::*;
pub use model::*;
pub use numbers::grouped;
pub use ports::*;
pub use proposals::{Proposal, Settled};
pub use sampling::*;
pub use settings::*;
pub use state::*;
pub use tool::*;
pub use transcript::*;
pub use usage::*;
pub use window::*;

//! A strict, scripted model provider over real HTTP and server-sent events on loopback.
//!
//! A [`Script`] says what the model answers, [`Turn`] by turn; [`Provider::start`] (or [`blocking`], for a caller
//! without a runtime) serves it as a Chat Completions endpoint. A request that the strictest real providers would
//! refuse is refused with status 400 and kept as a [`Violation`](wire::Violation), under the rule names of [`wire`].
//! Streams can be held at any event by a [`Gate`], cut into any pieces, and broken in every way a network breaks
//! them: so that a test waits for facts instead of sleeping, and sees the fault it means to see.
//!
//! [`chaos`] makes up the turns of a long run, faults included, from a seed; [`trouble`] single streams that go wrong.
//!
//! This crate knows no other part of Hames, speaks no TLS, listens on nothing but 127.0.0.1, and is no model: it
//! answers what it was told to answer.
//!
//! ```
//! use hames_testkit::{Provider, Script, Turn};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! let script = Script::new()
//!     .turn(Turn::call("Read", serde_json::json!({"path": "README.md"})))
//!     .turn(Turn::text("It says hello."));
//! let provider = Provider::start(script).await.unwrap();
//! assert!(provider.base_url().ends_with("/v1"));
//! assert!(provider.violations().is_empty());
//! # });
//! ```

pub mod chaos;
mod connection;
mod counted;
mod gate;
mod json;
mod plan;
mod provider;
mod request;
mod script;
mod sys;
pub mod trouble;
mod turn;
mod window;
pub mod wire;

pub use counted::{COUNTED, counted};
pub use gate::Gate;
pub use provider::{Provider, blocking};
pub use request::{ChatRequest, Prefix};
pub use script::Script;
pub use turn::Turn;
pub use window::TooLong;

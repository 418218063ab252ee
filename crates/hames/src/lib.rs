//! Hames as a library: a coding agent for your application.
//!
//! [`AgentBuilder`] puts an agent together from values; [`agent::Session`] keeps its conversation, in memory or in the
//! SQLite [`store`]. Everything the `hames` command does, it does through these parts. Nothing here reads the
//! environment or the home folder.
//!
//! ```
//! use std::sync::Arc;
//! use hames::agent::{Nobody, Ports, RunControl, RunInput, Session, SystemClock};
//! use hames::model::{ScriptedModel, ScriptedTurn};
//! use hames::protocol::{MemoryLog, Mode, Part, SessionCreated, SessionId, Settings};
//! use hames::AgentBuilder;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("greeting.txt"), "Hello")?;
//!
//! // A real program takes `hames::model::ChatModel`, which speaks to any Chat Completions endpoint.
//! let model = ScriptedModel::new([
//!     ScriptedTurn::calls(&[("Read", r#"{"path":"greeting.txt"}"#)]),
//!     ScriptedTurn::text("It greets."),
//! ]);
//! let mut agent = AgentBuilder::new(folder.path(), Box::new(model)).build()?;
//!
//! let ports = Ports { log: Arc::new(MemoryLog::default()), clock: Arc::new(SystemClock) };
//! let created = SessionCreated {
//!     name: "greeting".into(),
//!     folder: folder.path().display().to_string(),
//!     settings: Settings::default(),
//! };
//! let mut session = Session::create(ports, SessionId::generate(), created).await?;
//! let input = RunInput { parts: vec![Part::text("What does it do?")], mode: Mode::Analyze, ..RunInput::default() };
//! let end = session.run(&mut agent, input, &RunControl::default(), Arc::new(Nobody)).await;
//! assert_eq!(end.exit_code, 0);
//! # Ok(())
//! # }
//! ```

mod approve;
mod builder;

pub use builder::AgentBuilder;

pub use hames_agent as agent;
pub use hames_context as context;
pub use hames_model as model;
pub use hames_protocol as protocol;
pub use hames_skills as skills;
pub use hames_store as store;
pub use hames_tools as tools;
pub use hames_workspace as workspace;

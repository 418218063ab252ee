//! The tool contract, and the door every call passes.
//!
//! A [`Tool`] says what it is ([`ToolSpec`](hames_protocol::ToolSpec)), what one call of it does
//! ([`Declaration`](hames_protocol::Declaration)) and does it. Everything else — validating and mending arguments,
//! policy, locks, approval, cancel, time limits, masking of secrets, caps and blobs — happens once, at the door, for
//! built-in, MCP and custom tools alike.
//!
//! This crate knows no tool by name, pulls in no grammar and no search engine, and touches no file itself: the
//! filesystem and the shell are ports ([`FsProvider`], [`ShellProvider`]).
//!
//! ```
//! use hames_protocol::{Declaration, Effect, ToolSpec};
//! use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput, ToolSet};
//! use serde_json::{Value, json};
//!
//! struct Roll(ToolSpec);
//!
//! #[async_trait::async_trait]
//! impl Tool for Roll {
//!     fn spec(&self) -> &ToolSpec {
//!         &self.0
//!     }
//!     fn declare(&self, _input: &Value) -> Declaration {
//!         Declaration::new(Effect::Session, vec![])
//!     }
//!     async fn run(&self, input: &Value, _cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
//!         Ok(ToolOutput::text(format!("4 of {}", input["sides"])))
//!     }
//! }
//!
//! let spec = ToolSpec {
//!     name: "Roll".into(),
//!     description: "Rolls a die.".into(),
//!     parameters: json!({"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}),
//! };
//! let tools = ToolSet::new(vec![std::sync::Arc::new(Roll(spec))])?;
//! assert_eq!(tools.specs()[0].name, "Roll");
//! # Ok::<(), hames_tools::ToolSetError>(())
//! ```

mod cap;
mod door;
mod fs;
mod guard;
mod locks;
mod memory;
mod mend;
mod parse;
mod policy;
mod schema;
mod secrets;
mod set;
mod shell;
#[cfg(test)]
mod testing;
mod tool;
mod validate;
mod walk;

pub use door::*;
pub use fs::*;
pub use locks::LockTable;
pub use memory::{CallMemory, Recall};
pub use policy::*;
pub use secrets::Secrets;
pub use set::{ToolSet, ToolSetError};
pub use shell::*;
pub use tool::*;
pub use walk::VERSION_CONTROL;

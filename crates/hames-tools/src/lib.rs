//! The tool contract, and the door every call passes.
//!
//! A [`Tool`] says what it is ([`ToolSpec`](hames_protocol::ToolSpec)), what one call of it does
//! ([`Declaration`](hames_protocol::Declaration)) and does it. Everything else — validating and mending arguments,
//! policy, locks, approval, cancel, time limits, masking of secrets, caps and blobs — happens once, at the door, for
//! built-in, MCP and custom tools alike.
//!
//! This crate knows no tool by name, pulls in no grammar and no search engine, and touches no file itself: the
//! filesystem and the shell are ports ([`FsProvider`], [`ShellProvider`]).

mod cap;
mod door;
mod fs;
mod locks;
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

pub use door::*;
pub use fs::*;
pub use locks::LockTable;
pub use policy::*;
pub use secrets::Secrets;
pub use set::{ToolSet, ToolSetError, ToolSource};
pub use shell::*;
pub use tool::*;

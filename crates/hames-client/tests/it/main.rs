//! The client against servers that are made to fail: real sockets, connections cut at any byte.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod find;
mod follow;
mod rows;
mod server;

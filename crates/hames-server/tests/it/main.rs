//! The server from outside: real sockets, a real store.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod http;

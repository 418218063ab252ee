//! The hub over a real store with a model whose every move a test decides, and the server from outside: real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod attach;
mod chaos;
mod deliveries;
mod elsewhere;
mod http;
mod load;
mod races;
mod sessions;
mod support;
mod windows;

//! The local server: this program as a process that outlives its clients.
//!
//! `life` is the server from its beginning to its end, `place` its lock and sockets, `daemon` how it leaves whoever started
//! it, `host` what it is told about configuration and agents, `start` how clients begin one.

mod daemon;
mod host;
mod life;
mod place;
mod start;

pub(crate) use daemon::{Detached, Report, detach};
pub(crate) use life::{Lived, Options, Up, live};
pub(crate) use place::{Note, holder, last_args};
pub(crate) use start::{finder, gives_way, holds, quiet_starter, server_of, starter, until_gone};

/// What the server calls itself in the lease of a session it holds.
pub(crate) const HOLDER: &str = "hames server";

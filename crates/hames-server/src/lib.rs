//! The server's core: sessions that outlive every client.
//!
//! A [`Hub`] holds one actor for each session that is open: it has the session's lease, takes messages in and hands them
//! to runs, and closes when nobody needs it. What happens in a session goes through its channel to everybody who watches,
//! in the order of the log; nobody who watches can slow a run, and nobody misses anything without being told.
//!
//! This crate speaks no HTTP, reads no configuration and no environment. How an agent is put together is the [`Host`]'s
//! business; how requests come in is the caller's.

mod host;
mod hub;
mod subscription;

pub use host::{Host, PreparedRun, RunJob};
pub use hub::{Counts, Hub, HubOptions};
pub use subscription::{News, Subscription};

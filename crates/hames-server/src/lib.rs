//! The server's core: sessions that outlive every client.
//!
//! A [`Hub`] holds one actor for each session that is open: it has the session's lease, takes messages in and hands them
//! to runs, and closes when nobody needs it. What happens in a session goes through its channel to everybody who watches,
//! in the order of the log; nobody who watches can slow a run, and nobody misses anything without being told.
//!
//! [`http`] puts the hub's operations on the wire. This crate reads no configuration and no environment: how an agent is
//! put together is the [`Host`]'s business.

mod actor;
mod attachments;
mod buffer;
mod channel;
mod desk;
mod glance;
mod host;
pub mod http;
mod hub;
mod inbox;
mod ledger;
mod mentions;
mod names;
mod pieces;
mod refusal;
mod rows;
mod subscription;
mod view;

pub use host::{Host, PreparedRun, RunJob};
pub use hub::{Counts, Hub, HubOptions};
pub use subscription::{News, Subscription};

/// Cases of a property: 64, or as many as `HAMES_PROPTEST_CASES` says.
#[cfg(test)]
pub(crate) fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

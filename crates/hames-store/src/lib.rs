//! Where sessions are kept: an append-only event log in SQLite, and beside it blobs, leases, search and what was granted.
//!
//! One thread of the process writes and commits what has queued up together; a few connections read. Everything a
//! list shows lies in the sessions' own rows, which each append keeps in step, so only reading a session reads events.
//! A row that cannot be read is shown as damaged and hides nothing after it; a database that cannot be used is moved
//! aside, and what can be read of it goes into a new one.
//!
//! This crate knows the words of the protocol and not what they mean to an agent: recovery of an unfinished run is
//! written by whoever holds the session's lease. It reads no environment and prints nothing.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use hames_protocol::Settings;
//! let home = tempfile::tempdir()?;
//! let store = hames_store::Store::open(home.path())?.store;
//! let (session, lease) = store.create("fix the parser", "/src/app".as_ref(), Settings::default(), 0, "an example")?;
//! assert_eq!(store.list(None)?, [session]);
//! # drop(lease);
//! # Ok(())
//! # }
//! ```

mod blobs;
mod branch;
mod cut;
mod damage;
mod export;
mod fault;
mod files;
mod grants;
mod home;
mod import;
mod lease;
mod log;
mod log_page;
mod marks;
mod migrate;
mod open;
mod pages;
mod past;
mod read;
mod repair;
mod row;
mod salvage;
mod search;
mod sessions;
mod store;
mod syncer;
mod tail;
#[cfg(test)]
mod tests;
mod upkeep;
mod writer;

pub use cut::CutDone;
pub use export::{EXPORT_BLOB_BYTES, Exported};
pub use files::{SqliteFs, SqliteNodes, open_files};
pub use grants::KeptGrant;
pub use import::Imported;
pub use lease::{InUse, Lease};
pub use log_page::{Page, PageAt};
pub use search::{SEARCH_PATIENCE, SearchHit, SearchKind, Searched};
pub use sessions::SessionInfo;
pub use store::{Opened, Store, StoreReport};
pub use tail::{Moved, Tail};
pub use upkeep::{FreeSpace, StoreStats, VacuumThresholds, Vacuumed};

//! Configuration: what the file says, what the environment adds, and which value is in force.
//!
//! Read once; only `edit` writes it, for `hames providers`. Nothing in the project's folder is ever read: a repository cannot configure Hames.

mod compaction;
mod database;
pub(crate) mod edit;
mod file;
mod guard;
mod keymap;
mod keys;
mod layers;
mod live;
mod nearest;
mod policy;
mod presets;
mod providers;
mod read;
mod server;
mod web;

#[cfg(test)]
pub(crate) use file::FileModel;
pub(crate) use file::{FileConfig, LocalServers, ModelsDev, Thinking};
pub(crate) use layers::{Chosen, Config, Origin};
pub(crate) use live::{Live, Masks};
pub(crate) use nearest::nearest;
pub(crate) use policy::Approve;
pub(crate) use presets::{PRESETS, Preset, preset};
pub(crate) use providers::{Provider, has_secret_parameter, is_secret_name, shown_url};
pub(crate) use read::is_http_url;
pub(crate) use server::IdleExit;

//! The commands, one module each: arguments in, exit code out.

pub(crate) mod changes;
pub(crate) mod checks;
pub(crate) mod compact;
pub(crate) mod config;
pub(crate) mod db;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod face;
pub(crate) mod grants;
pub(crate) mod models;
pub(crate) mod providers;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod server;
pub(crate) mod sessions;
mod set;

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::exit::Stop;
use crate::output::{clean, say};

/// The folder a command works in, canonical: what `-C` names, else the current one.
pub(crate) fn folder(dir: Option<&Path>) -> Result<PathBuf, Stop> {
    let dir = dir.unwrap_or(Path::new("."));
    let shown = dir.display();
    let folder = dir.canonicalize().map_err(|e| Stop::usage(format!("the folder {shown} cannot be used: {e}")))?;
    if !folder.is_dir() {
        return Err(Stop::usage(format!("{shown} is not a folder; -C wants one")));
    }
    if folder.to_str().is_none() {
        return Err(Stop::usage(format!(
            "the folder {shown} has a name that is not UTF-8; rename it to use Hames there"
        )));
    }
    Ok(folder)
}

/// Looks for a model server on this machine, for the commands that need a model where none is configured, and says what
/// is used and how to keep it.
pub(crate) fn look_around(config: &mut Config) -> Result<(), Stop> {
    let runtime = runtime()?;
    if let Some(found) = runtime.block_on(config.look_around()) {
        let (model, name) = (clean::line(&found.model.to_string()), &found.provider.name);
        let (id, url) = (clean::line(&found.model.id), &found.provider.base_url);
        say(&format!(
            "hames: no model is configured; using {model}, of {}\n  to keep it: hames providers add {name} --url {url} --default {id}",
            clean::line(&found.title)
        ));
    }
    Ok(())
}

/// A runtime on this thread, for the commands that wait for something.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Stop> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Stop::storage(format!("the runtime cannot start: {e}")))
}

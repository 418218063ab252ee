//! Running commands: the shell on this machine, the tool over it, and the reaper that cleans up after a dead parent.
//!
//! Each command runs in a session of its own, with nothing to read, no terminal to grab, and both outputs in one pipe.
//! Its environment carries a *cookie* that its children inherit. Ending a command means its session first and then a
//! sweep for the cookie, which finds children that made sessions of their own. A process that both leaves the session
//! and clears (or overwrites) its environment escapes; so does one that became another user.
//!
//! A result never waits for a background child: the pipe is read until the command exits plus a short quiet. What goes
//! on in the background keeps a reader, so that it does not die of a closed pipe, and is ended with the run.
//!
//! Nothing here decides whether a command may run: that is the door's. What is said to it is whether a command is proven
//! to only read (`prove`); such a command is run in a way that keeps the proof true (`hardened`).

mod capture;
mod clean;
mod confine;
mod hardened;
mod local;
mod process;
mod prove;
mod reach;
mod reaper;
mod scripted;
mod sweep;
mod sys;
mod tool;

use std::sync::Arc;

use hames_tools::Tool;

pub use clean::{Cleaner, clean};
pub use local::{LocalShell, LocalShellOptions};
pub use reaper::{ReaperCommand, run_reaper};
pub use scripted::{Reply, ScriptedShell};
pub(crate) use tool::{Shell, hardening};

/// The tools of this module.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(tool::Shell::new())]
}

#[cfg(test)]
mod testing {
    /// 64 cases of a property, or as many as `HAMES_PROPTEST_CASES` says.
    pub(super) fn cases() -> proptest::test_runner::Config {
        let cases = std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
        proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
    }
}

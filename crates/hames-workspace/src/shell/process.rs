//! A child process: waiting for its end without a signal handler, and asking for its exit code exactly once.

use std::io;
use std::os::fd::OwnedFd;

use hames_tools::ShellEnd;
use rustix::process::{self, Pid, WaitId, WaitIdOptions, WaitOptions};
use tokio::io::unix::AsyncFd;

use super::sys;

/// A child of ours. Its number stays its own until [`reap`](Self::reap) has given its exit code; dropped before that,
/// it is waited for in the background, so that no dead process stays in the table.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    /// Readable once the child has ended; absent where the system has no such thing.
    end: Option<AsyncFd<OwnedFd>>,
    reaped: bool,
}

impl Child {
    /// Takes charge of a child just started.
    pub(super) fn new(pid: Pid) -> Self {
        Self { pid, end: sys::watch_end(pid), reaped: false }
    }

    /// Its number, which is also its session's and its group's.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns when it has ended.
    pub(super) async fn ended(&self) {
        match &self.end {
            Some(end) => {
                // The descriptor stays readable, so its readiness is never cleared.
                let _ = end.readable().await;
            }
            None => {
                let pid = self.pid;
                let _ = tokio::task::spawn_blocking(move || wait_unreaped(pid)).await;
            }
        }
    }

    /// How it ended, or `None` while it runs.
    pub(super) fn reap(&mut self) -> io::Result<Option<ShellEnd>> {
        let status = process::waitpid(Some(self.pid), WaitOptions::NOHANG);
        self.reaped = !matches!(status, Ok(None) | Err(rustix::io::Errno::INTR));
        Ok(status?.map(|(_, status)| match status.terminating_signal() {
            Some(signal) => ShellEnd::Signalled(signal),
            None => ShellEnd::Exited(status.exit_status().unwrap_or_default()),
        }))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            let pid = self.pid;
            // A thread that cannot be made leaves an entry in the process table, nothing worse.
            let _ = std::thread::Builder::new().spawn(move || wait_reaping(pid));
        }
    }
}

/// Blocks until the child has ended, leaving its exit code to be asked for.
fn wait_unreaped(pid: Pid) {
    while let Err(rustix::io::Errno::INTR) =
        process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
}

fn wait_reaping(pid: Pid) {
    while let Err(rustix::io::Errno::INTR) = process::waitpid(Some(pid), WaitOptions::empty()) {}
}

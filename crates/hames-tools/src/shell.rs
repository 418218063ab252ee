//! Running commands, as a port.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::tempfile_path::TempFile;

/// A command to run.
#[derive(Clone, Debug)]
pub struct ShellRequest {
    /// The command line, for `bash -c`.
    pub command: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// After this it is killed with all its children.
    pub timeout: Duration,
    /// Firing this kills it with all its children.
    pub cancel: CancellationToken,
    /// Bytes kept in memory: half of it the head, half the tail.
    pub keep_bytes: usize,
    /// What the command writes to stderr is kept apart, instead of in its place in the output.
    pub errors_apart: bool,
    /// Set for a command that was proven to only read: it has to be run so that the proof holds.
    pub hardened: Option<Hardened>,
}

/// How a command that was proven to only read has to be run: the proof is about programs of the system, so nothing of the
/// workspace may decide which programs run or what they run in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardened {
    /// Programs must not come from here. Canonical.
    pub workspace: PathBuf,
    /// What of the environment holds.
    pub surroundings: Surroundings,
    /// Places it cannot read, where the system can keep it from them.
    pub hidden: Vec<PathBuf>,
}

/// The environment of a command that was proven to only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// Made anew: a short list of variables, and programs only from folders that nobody else can write to. What cannot be
    /// had so is not run.
    Made,
    /// The person's own: programs and variables are taken as they are, and only what a repository names is switched off.
    Kept,
}

impl ShellRequest {
    /// A command with a time limit, 64 KB of its output kept, and nothing that cancels it.
    pub fn new(command: impl Into<String>, cwd: impl Into<PathBuf>, timeout: Duration) -> Self {
        Self {
            command: command.into(),
            cwd: cwd.into(),
            timeout,
            cancel: CancellationToken::new(),
            keep_bytes: 64 * 1024,
            errors_apart: false,
            hardened: None,
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal it did not catch.
    Signalled(i32),
    /// Killed at its time limit.
    TimedOut,
    /// Killed because the call was cancelled.
    Cancelled,
}

/// What a command gave: stdout and stderr in the order they came, unless they were to be kept apart.
#[derive(Debug)]
pub struct ShellOutcome {
    /// How it ended.
    pub end: ShellEnd,
    /// The first bytes; everything, where `total` is not larger.
    pub head: Vec<u8>,
    /// The last bytes; empty where `head` is everything.
    pub tail: Vec<u8>,
    /// Bytes in all.
    pub total: u64,
    /// Everything, where it is more than was kept in memory.
    pub spool: Option<(TempFile, u64)>,
    /// Children that still hold the output open and were let go.
    pub left_running: bool,
    /// What came on stderr where it was to be kept apart: its first and last bytes, and how many are missing between.
    pub errors: Option<ErrorsApart>,
}

/// A stream that is kept beside the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorsApart {
    /// The first bytes; everything, where none are missing.
    pub head: Vec<u8>,
    /// The last bytes.
    pub tail: Vec<u8>,
    /// Bytes left out between them.
    pub dropped: u64,
}

/// A command that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ShellError(pub String);

/// Somewhere commands run.
#[async_trait]
pub trait ShellProvider: Send + Sync {
    /// Runs a command to its end. `output` sees the raw bytes as they come and must not block.
    async fn run(
        &self,
        request: ShellRequest,
        output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError>;

    /// The home folder that commands see, absolute: what `~` means in them. `None` where there is none.
    fn home(&self) -> Option<PathBuf> {
        None
    }

    /// Ends everything that commands of this provider left running. Called at the end of a run.
    async fn sweep(&self) {}
}

//! A shell that runs nothing: it answers commands with what it was told to, for tests and for agents without a machine.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_tools::{ShellEnd, ShellError, ShellOutcome, ShellProvider, ShellRequest};

use super::capture::HeadTail;

/// What a shell says of a command it does not know.
const NOT_FOUND: i32 = 127;

/// What a command gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What it writes to stdout.
    pub stdout: Vec<u8>,
    /// What it writes to stderr, after that.
    pub stderr: Vec<u8>,
    /// Its exit code.
    pub exit_code: i32,
    /// It never ends by itself: only its time limit or a cancel ends it, after it has written.
    pub hangs: bool,
}

impl Reply {
    /// A command that succeeds and says this.
    pub fn ok(stdout: impl Into<Vec<u8>>) -> Self {
        Self { stdout: stdout.into(), ..Self::default() }
    }

    /// A command that fails and says this on stderr.
    pub fn failed(exit_code: i32, stderr: impl Into<Vec<u8>>) -> Self {
        Self { stderr: stderr.into(), exit_code, ..Self::default() }
    }

    /// The same, never ending by itself.
    pub fn hanging(mut self) -> Self {
        self.hangs = true;
        self
    }
}

type Answer = Box<dyn Fn(&ShellRequest) -> Option<Reply> + Send + Sync>;

/// Answers commands from a script. Exact commands come first, then functions in the order they were given; what nobody
/// answers is not found.
///
/// ```
/// # use std::time::Duration;
/// use hames_tools::{ShellEnd, ShellProvider, ShellRequest};
/// use hames_workspace::shell::{Reply, ScriptedShell};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let shell = ScriptedShell::new()
///     .on("cargo test", Reply::ok("3 passed\n"))
///     .answer(|request| request.command.starts_with("echo ").then(|| Reply::ok(request.command[5..].to_owned())));
/// let request = ShellRequest::new("cargo test", "/workspace", Duration::from_secs(1));
/// let outcome = shell.run(request, &mut |_| ()).await?;
/// assert_eq!((outcome.end, outcome.head), (ShellEnd::Exited(0), b"3 passed\n".to_vec()));
/// assert_eq!(shell.commands(), ["cargo test"]);
/// # Ok::<(), hames_tools::ShellError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct ScriptedShell {
    exact: HashMap<String, Reply>,
    answers: Vec<Answer>,
    ran: Mutex<Vec<String>>,
}

impl ScriptedShell {
    /// A shell that knows no command.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers exactly this command line.
    pub fn on(mut self, command: impl Into<String>, reply: Reply) -> Self {
        self.exact.insert(command.into(), reply);
        self
    }

    /// Answers whatever the function answers.
    pub fn answer(mut self, answer: impl Fn(&ShellRequest) -> Option<Reply> + Send + Sync + 'static) -> Self {
        self.answers.push(Box::new(answer));
        self
    }

    /// What was run so far, in order.
    pub fn commands(&self) -> Vec<String> {
        self.ran().clone()
    }

    fn ran(&self) -> MutexGuard<'_, Vec<String>> {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, request: &ShellRequest) -> Reply {
        let exact = self.exact.get(&request.command).cloned();
        exact.or_else(|| self.answers.iter().find_map(|answer| answer(request))).unwrap_or_else(|| {
            let name = request.command.split_whitespace().next().unwrap_or_default();
            Reply::failed(NOT_FOUND, format!("{name}: command not found\n"))
        })
    }
}

impl std::fmt::Debug for ScriptedShell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedShell").field("exact", &self.exact).field("ran", &self.commands()).finish()
    }
}

#[async_trait]
impl ShellProvider for ScriptedShell {
    async fn run(
        &self,
        request: ShellRequest,
        output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError> {
        let reply = self.reply(&request);
        self.ran().push(request.command.clone());
        let (mut kept, mut errors) = (HeadTail::new(request.keep_bytes), HeadTail::new(request.keep_bytes));
        kept.push(&reply.stdout);
        if request.errors_apart { &mut errors } else { &mut kept }.push(&reply.stderr);
        output(&reply.stdout);
        output(&reply.stderr);
        let end = match reply.hangs {
            false => ShellEnd::Exited(reply.exit_code),
            true => tokio::select! {
                biased;
                () = request.cancel.cancelled() => ShellEnd::Cancelled,
                () = tokio::time::sleep(request.timeout) => ShellEnd::TimedOut,
            },
        };
        let total = kept.total();
        let (head, tail) = kept.into_parts();
        let errors = request.errors_apart.then(|| errors.into_apart());
        Ok(ShellOutcome { end, head, tail, total, spool: None, left_running: false, errors })
    }
}

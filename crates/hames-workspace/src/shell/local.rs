//! The shell of this machine.

use std::ffi::{CStr, CString, OsStr};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hames_tools::tempfile_path::PREFIX;
use hames_tools::{Hardened, ShellEnd, ShellError, ShellOutcome, ShellProvider, ShellRequest, Surroundings};
use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::capture::{Capture, Captured, HeadTail, SPOOL_LIMITS};
use super::confine::{Confinement, confined};
use super::hardened::{self, Ground, Prepared};
use super::process::Child;
use super::reaper::{self, Message, Reaper, ReaperCommand};
use super::sweep::{self, COOKIE_VARIABLE, GRACE, Mark, Targets};
use super::sys::{self, Spawn};

/// A command's output counts as complete when it ended and nothing came for this long.
const QUIET: Duration = Duration::from_millis(100);

/// However much still comes, a result is not held back longer than this after the command ended.
const QUIET_LIMIT: Duration = Duration::from_millis(500);

/// Bytes read at a time: what a pipe holds.
const READ_BUFFER: usize = 64 * 1024;

/// Reads in a row before other tasks, and the clock, get their turn.
const READS_IN_A_ROW: usize = 16;

/// A command longer than this goes through a file; the kernel takes no argument over 128 KiB.
const ARGUMENT_LIMIT: usize = 120 * 1024;

/// Git is asked for its settings for so long at most; it only reads a few files.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of git's settings that are looked at; a repository with more of them is not known to be harmless.
const ANSWER_LIMIT: usize = 1024 * 1024;

/// Bytes of what git says instead of its settings that are shown.
const ANSWER_SHOWN: usize = 300;

/// Options of a bash that reads no files of its own.
const BARE: &[&CStr] = &[c"--norc", c"--noprofile"];

/// What a [`LocalShell`] is made of. It reads nothing of its own surroundings.
#[derive(Clone, Debug)]
pub struct LocalShellOptions {
    /// The shell, by its absolute path: bash, else sh. It is run as `SHELL -c COMMAND`.
    pub shell: PathBuf,
    /// The whole environment of commands. What was used as a key does not belong into it.
    pub env: Vec<(String, String)>,
    /// What becomes the reaper. Without it, nothing ends the commands of a run that is killed.
    pub reaper: Option<ReaperCommand>,
    /// Where outputs too long for memory go; made when first needed.
    pub spool_dir: PathBuf,
    /// A word no other run on this machine has: letters, digits, `-` and `_`; others are replaced.
    pub run_cookie: String,
}

/// Runs commands on this machine. One per run; needs a tokio runtime with I/O and time.
///
/// Dropped without [`sweep`](ShellProvider::sweep), it leaves what runs in the background to its reaper.
#[derive(Debug)]
pub struct LocalShell {
    shell: CString,
    /// Entries as the kernel wants them, without a cookie.
    env: Vec<CString>,
    /// What commands that only read are run on.
    ground: Ground,
    /// The cookies of runs this one is part of, with a `/` after them.
    outer_cookies: String,
    cookie: String,
    reaper: Option<ReaperCommand>,
    spool_dir: PathBuf,
    /// Commands that only read are started without the right to write.
    confines: bool,
    /// Descriptors this process was started with and did not mark as its own.
    inherited: Vec<RawFd>,
    commands: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    reaper: Option<Reaper>,
    /// Sessions whose leaders are reaped while others in their groups are left.
    left: Vec<Pid>,
}

/// What is started: a shell, its options, the line, and the environment without a cookie.
struct Line<'a> {
    shell: &'a CStr,
    options: &'a [&'a CStr],
    text: &'a str,
    env: &'a [CString],
    /// What it must not be able to do.
    limits: Option<&'a Confinement>,
}

/// Why reading a command's output stops.
enum Stop {
    Ended,
    TimedOut,
    Cancelled,
}

impl LocalShell {
    /// A shell; starts nothing.
    pub fn new(options: LocalShellOptions) -> Result<Self, ShellError> {
        let shell = CString::new(options.shell.into_os_string().into_vec())
            .map_err(|_| ShellError("the shell's path holds a NUL byte; set another shell".to_owned()))?;
        let ground = Ground::new(&options.env);
        let outer = options.env.iter().find(|(name, _)| name == COOKIE_VARIABLE).map(|(_, value)| format!("{value}/"));
        let env = options
            .env
            .iter()
            .filter(|(name, _)| !name.is_empty() && !name.contains('=') && name != COOKIE_VARIABLE)
            // What holds a NUL cannot be a variable of any process.
            .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok())
            .collect();
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        Ok(Self {
            shell,
            env,
            ground,
            outer_cookies: outer.unwrap_or_default(),
            cookie: options.run_cookie.chars().map(|c| if is_word(c) { c } else { '_' }).collect(),
            reaper: options.reaper,
            spool_dir: options.spool_dir,
            confines: true,
            inherited: inheritable_descriptors(),
            commands: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// Leaves out what the kernel does for commands that only read, so that it shows what their proof is worth alone.
    #[doc(hidden)]
    pub fn without_confinement(self) -> Self {
        Self { confines: false, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a command. The reaper exists and knows the cookie before the command does.
    fn start(&self, request: &ShellRequest, line: &Line<'_>) -> Result<Running<'_>, ShellError> {
        let number = self.commands.fetch_add(1, Ordering::Relaxed) + 1;
        self.ensure_reaper();
        let script = self.script(line.text)?;
        let command = match &script {
            Some(file) => c_string(file.path().as_os_str())?,
            None => c_string(OsStr::new(line.text))?,
        };
        let mut argv = vec![line.shell];
        argv.extend(line.options);
        argv.extend(script.is_none().then_some(c"-c"));
        argv.push(&command);
        let cookie =
            c_string(OsStr::new(&format!("{COOKIE_VARIABLE}={}{}:{number}", self.outer_cookies, self.cookie)))?;
        let env: Vec<_> = line.env.iter().chain([&cookie]).map(CString::as_c_str).collect();

        let failed = |error: io::Error| self.start_error(&request.cwd, &error);
        let (ours, its) = io::pipe().map_err(failed)?;
        let pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(ours)).map_err(failed)?;
        let apart = if request.errors_apart { Some(io::pipe().map_err(failed)?) } else { None };
        let child = Spawn {
            argv: &argv,
            env: &env,
            cwd: &c_string(request.cwd.as_os_str())?,
            stdin: None,
            output: Some(its.as_fd()),
            errors: apart.as_ref().map(|(_, its)| its.as_fd()),
            close: &self.inherited,
        };
        let pid = match line.limits {
            None => sys::spawn(&child),
            Some(_) if !self.confines => sys::spawn(&child),
            Some(limits) => confined(limits, || sys::spawn(&child)),
        }
        .map_err(failed)?;
        let errors = match apart {
            Some((ours, _)) => {
                let pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(ours)).map_err(failed)?;
                Some((Some(pipe), HeadTail::new(request.keep_bytes)))
            }
            None => None,
        };
        if !self.tell_reaper(&Message::Running(pid)) {
            // It was killed since the last command: another one takes over.
            self.ensure_reaper();
            self.tell_reaper(&Message::Running(pid));
        }
        Ok(Running {
            shell: self,
            child: Some(Child::new(pid)),
            mark: Mark::command(&self.cookie, number),
            streams: Streams {
                pipe: Some(pipe),
                capture: Capture::new(request.keep_bytes, &self.spool_dir, SPOOL_LIMITS),
                errors,
                buffer: vec![0; READ_BUFFER],
            },
            _script: script,
        })
    }

    /// A command that is proven to only read, ready to run; `None` where it runs like any other.
    async fn prepared(&self, request: &ShellRequest) -> Result<Option<Prepared>, ShellError> {
        let Some(how) = &request.hardened else {
            return Ok(None);
        };
        let prepared = self.harden(request, how).await;
        match how.surroundings {
            Surroundings::Made => prepared.map(Some),
            // Where everything may run anyway, what cannot be switched off is no reason not to.
            Surroundings::Kept => Ok(prepared.ok().filter(|prepared| !prepared.repositories.is_empty())),
        }
    }

    /// Makes a command that is proven to only read ready to run.
    async fn harden(&self, request: &ShellRequest, how: &Hardened) -> Result<Prepared, ShellError> {
        let shell = OsStr::from_bytes(self.shell.as_bytes());
        let mut prepared = match how.surroundings {
            Surroundings::Made => self.ground.prepare(&request.command, &request.cwd, &how.workspace, shell)?,
            Surroundings::Kept => self.ground.prepare_kept(&request.command, &request.cwd, shell)?,
        };
        if prepared.repositories.is_empty() {
            return Ok(prepared);
        }
        let mut answers = Vec::new();
        // A folder that is not there is none that git can be called in.
        for folder in prepared.repositories.iter().filter(|folder| folder.is_dir()) {
            answers.push(self.ask_git(request, folder, &prepared).await?);
        }
        prepared.switch_off(&answers)?;
        Ok(prepared)
    }

    /// A folder for temporary files, removed when it is dropped.
    fn scratch(&self) -> Result<tempfile::TempDir, ShellError> {
        let make = || -> io::Result<_> {
            std::fs::create_dir_all(&self.spool_dir)?;
            tempfile::Builder::new().prefix(PREFIX).tempdir_in(&self.spool_dir)
        };
        make().map_err(|error| {
            ShellError(format!(
                "the command may need a folder for temporary files, which could not be made in {} ({error})",
                self.spool_dir.display()
            ))
        })
    }

    /// The names of git's settings in a folder.
    async fn ask_git(&self, request: &ShellRequest, folder: &Path, prepared: &Prepared) -> Result<Vec<u8>, ShellError> {
        let question = ShellRequest {
            command: hardened::ASK_GIT.to_owned(),
            cwd: folder.to_owned(),
            timeout: request.timeout.min(ASK_TIMEOUT),
            cancel: request.cancel.clone(),
            // Half of it is the head, and more than that is too much.
            keep_bytes: 2 * ANSWER_LIMIT,
            errors_apart: false,
            hardened: None,
        };
        let env = entries(&hardened::asking(prepared));
        let bash = c_string(prepared.bash.as_os_str())?;
        let limits = Confinement::default();
        let line = Line { shell: &bash, options: BARE, text: hardened::ASK_GIT, env: &env, limits: Some(&limits) };
        let outcome = self.follow_to_end(&question, &line, &mut |_| {}).await?;
        match outcome.end {
            ShellEnd::Exited(0) if outcome.total == outcome.head.len() as u64 => Ok(outcome.head),
            ShellEnd::Cancelled => Err(ShellError("cancelled while git was asked for its settings".to_owned())),
            _ => Err(ShellError(format!(
                "not run: git could not say which programs the repository in {} names, so it is not known to only read: {}",
                folder.display(),
                String::from_utf8_lossy(&outcome.head[..outcome.head.len().min(ANSWER_SHOWN)]).trim()
            ))),
        }
    }

    /// Runs a command to its end.
    async fn follow_to_end(
        &self,
        request: &ShellRequest,
        line: &Line<'_>,
        output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError> {
        let deadline = Instant::now().checked_add(request.timeout);
        let mut running = self.start(request, line)?;
        let end = match running.follow(deadline, request.cancel.cancelled(), output).await {
            Stop::Ended => {
                running.read_until_quiet(output).await;
                None
            }
            Stop::TimedOut => Some((ShellEnd::TimedOut, running.end_all(output).await)),
            Stop::Cancelled => Some((ShellEnd::Cancelled, running.end_all(output).await)),
        };
        running.finish(end).await
    }

    /// The file of a command that is too long for an argument.
    fn script(&self, command: &str) -> Result<Option<tempfile::NamedTempFile>, ShellError> {
        if command.len() <= ARGUMENT_LIMIT {
            return Ok(None);
        }
        let write = || -> io::Result<_> {
            std::fs::create_dir_all(&self.spool_dir)?;
            let file = tempfile::Builder::new().prefix(PREFIX).suffix(".sh").tempfile_in(&self.spool_dir)?;
            std::fs::write(file.path(), command)?;
            Ok(file)
        };
        write().map(Some).map_err(|error| {
            ShellError(format!(
                "the command has {} bytes and needs a file, which could not be written in {} ({error}); \
                 write it to a script in the workspace and run that",
                command.len(),
                self.spool_dir.display()
            ))
        })
    }

    fn start_error(&self, cwd: &Path, error: &io::Error) -> ShellError {
        let shell = String::from_utf8_lossy(self.shell.as_bytes());
        ShellError(match error.raw_os_error() {
            _ if !cwd.is_dir() => format!("{} is no folder any more; run the command in another one", cwd.display()),
            Some(libc::E2BIG) => "the command and its environment are too long for the system; \
                                  write it to a script in the workspace and run that"
                .to_owned(),
            _ => format!("{shell} could not be started: {error}"),
        })
    }

    fn ensure_reaper(&self) {
        let Some(command) = &self.reaper else {
            return;
        };
        let mut state = self.state();
        if state.reaper.is_none() {
            // A reaper that cannot be started protects nobody, but the command is what was asked for.
            state.reaper = Reaper::start(command, &self.env, &self.inherited, &self.cookie).ok();
        }
    }

    /// Tells the reaper, if there is one; `false` where it is gone.
    fn tell_reaper(&self, message: &Message) -> bool {
        let mut state = self.state();
        let gone = state.reaper.as_ref().is_some_and(|reaper| !reaper.tell(message));
        if gone {
            state.reaper = None;
        }
        !gone
    }

    /// A session's leader is reaped: remembers it while others in its group are left.
    fn leader_gone(&self, pid: Pid) {
        let left = sweep::group_exists(pid);
        if left {
            let mut state = self.state();
            state.left = reaper::still_ours(&state.left);
            state.left.push(pid);
        }
        self.tell_reaper(&if left { Message::Left(pid) } else { Message::Gone(pid) });
    }
}

#[async_trait]
impl ShellProvider for LocalShell {
    async fn run(
        &self,
        request: ShellRequest,
        output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError> {
        if request.cancel.is_cancelled() {
            return Ok(never_started());
        }
        let Some(prepared) = self.prepared(&request).await? else {
            let line = Line { shell: &self.shell, options: &[], text: &request.command, env: &self.env, limits: None };
            return self.follow_to_end(&request, &line, output).await;
        };
        let scratch = prepared.needs_scratch.then(|| self.scratch()).transpose()?;
        // What holds the workspace itself is not hidden as a whole.
        let hidden = |how: &Hardened| {
            how.hidden.iter().filter(|place| !how.workspace.starts_with(place)).cloned().collect::<Vec<_>>()
        };
        let hidden = request.hardened.as_ref().map(hidden).unwrap_or_default();
        let limits = Confinement { hidden, scratch: scratch.as_ref().map(|folder| folder.path().to_owned()) };
        let mut env = prepared.env;
        env.extend(limits.scratch.iter().map(|folder| ("TMPDIR".to_owned(), folder.display().to_string())));
        let is_made = request.hardened.as_ref().is_some_and(|how| how.surroundings == Surroundings::Made);
        let (env, bash) = (entries(&env), c_string(prepared.bash.as_os_str())?);
        let limits = is_made.then_some(&limits);
        let line = Line { shell: &bash, options: BARE, text: &prepared.line, env: &env, limits };
        self.follow_to_end(&request, &line, output).await
    }

    fn home(&self) -> Option<PathBuf> {
        Some(self.ground.home().to_owned())
    }

    async fn sweep(&self) {
        if self.commands.load(Ordering::Relaxed) == 0 {
            return;
        }
        let State { reaper, left } = std::mem::take(&mut *self.state());
        let targets = Targets { sessions: reaper::still_ours(&left), mark: Mark::run(&self.cookie) };
        let ended = tokio::task::spawn_blocking(move || targets.end(GRACE)).await;
        // Where something could not be ended the reaper is dropped instead, and tries once more.
        if let (Ok(0), Some(reaper)) = (ended, reaper) {
            reaper.bye().await;
        }
    }
}

/// A command under way. Dropped before it is finished, it is ended in the background with all its children.
struct Running<'a> {
    shell: &'a LocalShell,
    child: Option<Child>,
    mark: Mark,
    streams: Streams,
    /// Removed when the command is over.
    _script: Option<tempfile::NamedTempFile>,
}

impl Running<'_> {
    /// Reads until the command ends or has to be ended.
    async fn follow(
        &mut self,
        deadline: Option<Instant>,
        cancelled: impl Future<Output = ()>,
        output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Stop {
        let Self { child, streams, .. } = self;
        let ended = async {
            if let Some(child) = child {
                child.ended().await;
            }
        };
        let (mut ended, mut cancelled) = (pin!(ended), pin!(cancelled));
        let mut timer = pin!(async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        });
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Stop::Cancelled,
                () = &mut ended => return Stop::Ended,
                () = &mut timer => return Stop::TimedOut,
                () = streams.read(output) => {}
            }
        }
    }

    /// The command has ended: takes what it and its children still write, for a moment.
    async fn read_until_quiet(&mut self, output: &mut (dyn FnMut(&[u8]) + Send)) {
        let streams = &mut self.streams;
        let limit = Instant::now() + QUIET_LIMIT;
        while streams.is_open() && Instant::now() < limit {
            let quiet = limit.min(Instant::now() + QUIET);
            if tokio::time::timeout_at(quiet, streams.read(output)).await.is_err() {
                return;
            }
        }
    }

    /// Ends the command and all its children, reading what they say meanwhile. Returns how many could not be ended.
    async fn end_all(&mut self, output: &mut (dyn FnMut(&[u8]) + Send)) -> usize {
        let targets = self.targets();
        let streams = &mut self.streams;
        let mut ending = tokio::task::spawn_blocking(move || targets.end(GRACE));
        let left = loop {
            tokio::select! {
                biased;
                // Should it crash, something may well be left.
                left = &mut ending => break left.unwrap_or(1),
                () = streams.read(output) => {}
            }
        };
        // Nobody writes any more: one turn takes what the pipe holds.
        let _ = tokio::time::timeout(Duration::ZERO, streams.read(output)).await;
        left
    }

    fn targets(&self) -> Targets {
        Targets { sessions: self.child.iter().map(Child::pid).collect(), mark: self.mark.clone() }
    }

    /// Asks for the exit code, lets the pipe go and gives what there is. `ended` says why we ended it, where we did,
    /// and how many of its children withstood.
    async fn finish(mut self, ended: Option<(ShellEnd, usize)>) -> Result<ShellOutcome, ShellError> {
        let mut left_running = ended.is_some_and(|(_, left)| left > 0);
        let mut end = None;
        if let Some(mut child) = self.child.take() {
            end = child.reap().map_err(|error| {
                ShellError(format!(
                    "the command ended, but its exit code was taken by another part of the program: {error}"
                ))
            })?;
            self.shell.leader_gone(child.pid());
        }
        let nothing = Capture::new(0, Path::new(""), SPOOL_LIMITS);
        let nothing = Streams { pipe: None, capture: nothing, errors: None, buffer: Vec::new() };
        let Streams { pipe, capture, errors, .. } = std::mem::replace(&mut self.streams, nothing);
        let (errors_pipe, errors) = errors.unzip();
        for pipe in [pipe, errors_pipe.flatten()].into_iter().flatten() {
            left_running |= ended.is_none();
            tokio::spawn(discard(pipe));
        }
        let Captured { head, tail, total, spool } = if capture.finish_is_slow() {
            tokio::task::spawn_blocking(move || capture.finish())
                .await
                .map_err(|error| ShellError(format!("the output could not be put in order: {error}")))?
        } else {
            capture.finish()
        };
        let end = ended.map(|(end, _)| end).or(end).unwrap_or(ShellEnd::Exited(0));
        let errors = errors.map(HeadTail::into_apart);
        Ok(ShellOutcome { end, head, tail, total, spool, left_running, errors })
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let targets = Targets { sessions: vec![child.pid()], mark: self.mark.clone() };
            // The child is reaped after that, so its number stays its own until then.
            let _ = std::thread::Builder::new().spawn(move || {
                targets.end(GRACE);
                drop(child);
            });
        }
    }
}

/// What a command writes, being read.
struct Streams {
    /// Both outputs, or stdout alone; until its end is reached.
    pipe: Option<pipe::Receiver>,
    capture: Capture,
    /// Stderr, where it is kept apart.
    errors: Option<(Option<pipe::Receiver>, HeadTail)>,
    buffer: Vec<u8>,
}

impl Streams {
    /// Whether somebody may still write.
    fn is_open(&self) -> bool {
        self.pipe.is_some() || self.errors.as_ref().is_some_and(|(pipe, _)| pipe.is_some())
    }

    /// Takes what is there, or waits for it; never returns once the end is reached.
    async fn read(&mut self, output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send)) {
        let Self { pipe, capture, errors, buffer } = self;
        let Some((errors_pipe, kept)) = errors else {
            readable(pipe).await;
            return take(pipe, buffer, |bytes| {
                capture.push(bytes);
                output(bytes);
            });
        };
        tokio::select! {
            biased;
            () = readable(pipe) => take(pipe, buffer, |bytes| {
                capture.push(bytes);
                output(bytes);
            }),
            () = readable(errors_pipe) => take(errors_pipe, buffer, |bytes| {
                kept.push(bytes);
                output(bytes);
            }),
        }
    }
}

/// Waits until there is something to take; never returns once the end is reached.
async fn readable(pipe: &mut Option<pipe::Receiver>) {
    let Some(open) = pipe else {
        return std::future::pending().await;
    };
    if open.readable().await.is_err() {
        *pipe = None;
    }
}

/// Takes what is there.
fn take(pipe: &mut Option<pipe::Receiver>, buffer: &mut [u8], mut keep: impl FnMut(&[u8])) {
    for _ in 0..READS_IN_A_ROW {
        let Some(open) = pipe else { return };
        match open.try_read(buffer) {
            Ok(0) => *pipe = None,
            Ok(n) => keep(&buffer[..n]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return,
            Err(_) => *pipe = None,
        }
    }
}

/// Reads what background children write, so that they go on, until they end.
async fn discard(pipe: pipe::Receiver) {
    let mut buffer = vec![0; 4096];
    while pipe.readable().await.is_ok() {
        match pipe.try_read(&mut buffer) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}

fn never_started() -> ShellOutcome {
    ShellOutcome {
        end: ShellEnd::Cancelled,
        head: Vec::new(),
        tail: Vec::new(),
        total: 0,
        spool: None,
        left_running: false,
        errors: None,
    }
}

/// An environment as the kernel wants it. What holds a NUL cannot be a variable of any process.
fn entries(env: &[(String, String)]) -> Vec<CString> {
    env.iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect()
}

fn c_string(text: &OsStr) -> Result<CString, ShellError> {
    CString::new(text.as_bytes()).map_err(|_| {
        ShellError("a command, folder or variable with a NUL byte cannot be used; leave it out".to_owned())
    })
}

/// Open descriptors above the first three that a child would get.
fn inheritable_descriptors() -> Vec<RawFd> {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&fd| fd > 2 && sys::is_inheritable(fd))
        .collect()
}

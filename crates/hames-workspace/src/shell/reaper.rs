//! The reaper: a tiny process that ends what a run started when the run itself was killed.
//!
//! It holds one end of a line whose other end only its parent has. While the parent lives it is told which sessions
//! exist; when the line closes, whatever the reason, it ends them and everything with the run's cookie, and exits. It
//! has its own session, ignores signals meant for its parent and holds none of its parent's descriptors.

use std::ffi::{CString, OsString};
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::SendFlags;
use rustix::process::Pid;

use super::process::Child;
use super::sweep::{self, GRACE, Mark, Targets};
use super::sys::{self, Spawn};

/// How long a run waits for its reaper to go; it has nothing left to do then.
const BYE_LIMIT: Duration = Duration::from_secs(1);

/// The longest message; a line that is longer comes from nobody we know.
const MESSAGE_LIMIT: usize = 256;

/// A command that becomes the reaper: a process that does nothing but call [`run_reaper`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaperCommand {
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// What the reaper is told, a line each. The first is always the cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The run's cookie.
    Cookie(String),
    /// This session's leader runs, or has ended and is not reaped yet.
    Running(Pid),
    /// The leader is reaped; others in its group are left.
    Left(Pid),
    /// Nobody of it is left.
    Gone(Pid),
    /// All is done: exit without ending anything.
    Bye,
}

impl Message {
    fn to_line(&self) -> String {
        match self {
            Self::Cookie(cookie) => format!("cookie {cookie}\n"),
            Self::Running(pid) => format!("running {}\n", pid.as_raw_nonzero()),
            Self::Left(pid) => format!("left {}\n", pid.as_raw_nonzero()),
            Self::Gone(pid) => format!("gone {}\n", pid.as_raw_nonzero()),
            Self::Bye => "bye\n".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        // One is init and never ours: a mistake here would be a large one.
        let pid = || rest.parse().ok().filter(|&pid: &i32| pid > 1).and_then(Pid::from_raw);
        match word {
            "cookie" if !rest.is_empty() => Some(Self::Cookie(rest.to_owned())),
            "running" => pid().map(Self::Running),
            "left" => pid().map(Self::Left),
            "gone" => pid().map(Self::Gone),
            "bye" => Some(Self::Bye),
            _ => None,
        }
    }
}

/// The parent's end. Dropping it without [`bye`](Self::bye) makes the reaper end everything.
#[derive(Debug)]
pub(super) struct Reaper {
    line: UnixStream,
    child: Child,
}

impl Reaper {
    /// Starts it and tells it the cookie. Does not wait until it is up: what is written is read later.
    pub(super) fn start(command: &ReaperCommand, env: &[CString], close: &[RawFd], cookie: &str) -> io::Result<Self> {
        let (line, its) = UnixStream::pair()?;
        let argv = std::iter::once(command.program.clone().into_os_string())
            .chain(command.args.iter().cloned())
            .map(|arg| CString::new(arg.into_vec()))
            .collect::<Result<Vec<_>, _>>()?;
        let pid = sys::spawn(&Spawn {
            argv: &argv.iter().map(CString::as_c_str).collect::<Vec<_>>(),
            env: &env.iter().map(CString::as_c_str).collect::<Vec<_>>(),
            cwd: c"/",
            stdin: Some(its.as_fd()),
            output: None,
            errors: None,
            close,
        })?;
        let reaper = Self { line, child: Child::new(pid) };
        if reaper.tell(&Message::Cookie(cookie.to_owned())) {
            Ok(reaper)
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    /// Tells it something; `false` where it is no longer there. Never blocks: a message lost to a reaper that does not
    /// read is made up for by the cookie.
    pub(super) fn tell(&self, message: &Message) -> bool {
        // A signal for a reaper that is gone would end this process; the standard library's sockets on macOS never
        // raise it, and there is no such flag there.
        #[cfg(not(target_vendor = "apple"))]
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        #[cfg(target_vendor = "apple")]
        let flags = SendFlags::DONTWAIT;
        match rustix::net::send(&self.line, message.to_line().as_bytes(), flags) {
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Lets it go, everything being ended, and sees it off.
    pub(super) async fn bye(mut self) {
        if self.tell(&Message::Bye) && tokio::time::timeout(BYE_LIMIT, self.child.ended()).await.is_ok() {
            // A failure here means somebody else reaped it.
            let _ = self.child.reap();
        }
    }
}

/// Sessions the reaper knows of.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    cookie: Option<String>,
    running: Vec<Pid>,
    left: Vec<Pid>,
}

impl Known {
    fn hear(&mut self, message: Message) {
        match message {
            Message::Cookie(cookie) => self.cookie = Some(cookie),
            Message::Running(pid) => self.running.push(pid),
            Message::Left(pid) => {
                self.forget(pid);
                self.left.push(pid);
            }
            Message::Gone(pid) => self.forget(pid),
            Message::Bye => {}
        }
    }

    fn forget(&mut self, pid: Pid) {
        self.running.retain(|&p| p != pid);
        self.left.retain(|&p| p != pid);
    }

    fn into_targets(self) -> Option<Targets> {
        let mut sessions = self.running;
        sessions.extend(still_ours(&self.left));
        Some(Targets { sessions, mark: Mark::run(&self.cookie?) })
    }
}

/// Of sessions whose leaders are reaped, those whose number nobody else was given since: a number is free for others
/// only when its group is empty, and then its new owner has it as process number too.
pub(super) fn still_ours(left: &[Pid]) -> Vec<Pid> {
    left.iter().copied().filter(|&pid| !sweep::process_exists(pid) && sweep::group_exists(pid)).collect()
}

/// Becomes the reaper: returns when the parent is gone and everything it left is ended, or when the parent says that
/// nothing is left. Standard input is the line to the parent.
///
/// To be called first thing in a process of its own, started as [`ReaperCommand`], before any other thread and any
/// runtime; the process should exit when it returns.
pub fn run_reaper() {
    sys::ignore_polite_signals();
    // Fails only where this is a session's leader already, which is what it is for.
    let _ = rustix::process::setsid();
    sys::close_inherited();
    let _ = std::env::set_current_dir("/");

    if let Some(targets) = listen(BufReader::new(io::stdin().lock())).and_then(Known::into_targets) {
        targets.end(GRACE);
    }
}

/// Listens until the line closes (then says what is known) or the parent says bye.
fn listen(mut line: impl BufRead) -> Option<Known> {
    let mut known = Known::default();
    let mut text = String::new();
    loop {
        text.clear();
        let read = io::Read::take(&mut line, MESSAGE_LIMIT as u64).read_line(&mut text);
        match read {
            Ok(0) => return Some(known),
            Ok(_) if text.trim_end() == "bye" => return None,
            Ok(_) => {
                if let Some(message) = Message::parse(text.trim_end()) {
                    known.hear(message);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            // A line that broke is a parent that is gone.
            Err(_) => return Some(known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(n: i32) -> Pid {
        Pid::from_raw(n).unwrap()
    }

    #[test]
    fn messages_come_back_as_they_were_sent() {
        for message in [
            Message::Cookie("0192-ab".to_owned()),
            Message::Running(pid(4711)),
            Message::Left(pid(2)),
            Message::Gone(pid(i32::MAX)),
            Message::Bye,
        ] {
            assert_eq!(Message::parse(message.to_line().trim_end()), Some(message));
        }
        for nonsense in ["", "running", "running 0", "running 1", "running -5", "running x", "cookie", "else 3"] {
            assert_eq!(Message::parse(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_closed_line_leaves_what_was_running_or_left() {
        let text = "cookie r\nrunning 10\nrunning 11\nrunning 12\nleft 11\nnonsense\ngone 10\n";
        let known = listen(text.as_bytes()).unwrap();
        assert_eq!(known, Known { cookie: Some("r".to_owned()), running: vec![pid(12)], left: vec![pid(11)] });
    }

    #[test]
    fn a_bye_leaves_nothing() {
        assert_eq!(listen("cookie r\nrunning 10\nbye\n".as_bytes()), None);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_stop_it() {
        let known = listen(&b"cookie r\n\xff\xfe\nrunning 12\n"[..]).unwrap();
        assert_eq!(known.running, vec![pid(12)]);
    }
}

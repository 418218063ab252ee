//! Finding and ending processes that belong to a command or a run.
//!
//! A process belongs if it is in a session of ours or its environment, as it was when it started, holds our cookie.
//! Everything here blocks; it is called from blocking threads and from the reaper. Where there is no `/proc`, only the
//! process groups of the sessions' leaders are reached.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{self, Pid, Signal};

use super::sys;

/// The variable that marks our children. Cookies of nested runs are joined by `/`, so an outer run finds the inner
/// one's children too.
pub(super) const COOKIE_VARIABLE: &str = "HAMES_RUN_COOKIE";

/// How long processes are asked to end before they are killed: long enough to remove a lock file or a socket, short
/// enough for somebody who pressed Esc.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// How long killing is repeated while processes keep appearing or do not die (they may hang in the kernel).
const KILL_LIMIT: Duration = Duration::from_secs(3);

/// How often it is repeated at least: on a machine so busy that a look at the process table takes its time, the time
/// alone says nothing about who does not die.
const KILL_LOOKS: u32 = 8;

/// The longest pause between two looks at the process table.
const LOOK_PAUSE: Duration = Duration::from_millis(40);

/// Environments are read up to here; the kernel's own limit is a quarter of the stack limit, usually 2 MiB.
const ENVIRON_LIMIT: u64 = 8 * 1024 * 1024;

/// What the cookie of a process must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    run: String,
    command: Option<u64>,
}

impl Mark {
    /// Any command of the run.
    pub(super) fn run(run: &str) -> Self {
        Self { run: run.to_owned(), command: None }
    }

    /// The run's nth command.
    pub(super) fn command(run: &str, command: u64) -> Self {
        Self { run: run.to_owned(), command: Some(command) }
    }

    fn is_in(&self, environ: &[u8]) -> bool {
        environ
            .split(|&b| b == 0)
            .filter_map(|entry| entry.strip_prefix(COOKIE_VARIABLE.as_bytes())?.strip_prefix(b"="))
            .flat_map(|cookies| cookies.split(|&b| b == b'/'))
            .any(|cookie| self.is(cookie))
    }

    fn is(&self, cookie: &[u8]) -> bool {
        let Some(number) = cookie.strip_prefix(self.run.as_bytes()).and_then(|rest| rest.strip_prefix(b":")) else {
            return false;
        };
        self.command.is_none_or(|n| number == n.to_string().as_bytes())
    }
}

/// Whom to end.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// Sessions of ours, by their leaders' numbers, which nobody else can have been given.
    pub(super) sessions: Vec<Pid>,
    /// The cookie.
    pub(super) mark: Mark,
}

/// What earlier looks at the process table showed.
struct Looks {
    saw_nobody: bool,
}

impl Targets {
    /// Ends them all: asks, waits up to `grace`, then kills until two looks in a row find nobody (one look can miss a
    /// process that is just executing). Returns how many are left.
    pub(super) fn end(&self, grace: Duration) -> usize {
        let mut asked = self.members();
        let start = Instant::now();
        while !asked.is_empty() && start.elapsed() < grace {
            for &pid in &asked {
                // Gone already is as good. A stopped process handles the signal only once it continues.
                let _ = process::kill_process(pid, Signal::TERM);
                let _ = process::kill_process(pid, Signal::CONT);
            }
            if !wait_until_gone(&asked, grace.saturating_sub(start.elapsed())) {
                break;
            }
            // Whoever was started meanwhile is asked too.
            asked = self.members();
        }
        self.kill(Looks { saw_nobody: asked.is_empty() })
    }

    fn kill(&self, mut looks: Looks) -> usize {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut looked = 0;
        loop {
            for &leader in &self.sessions {
                // At once for the whole group: nobody in it can fork away from this signal.
                let _ = process::kill_process_group(leader, Signal::KILL);
            }
            let members = self.members();
            looked += 1;
            for &pid in &members {
                let _ = process::kill_process(pid, Signal::KILL);
            }
            if members.is_empty() && looks.saw_nobody {
                return 0;
            }
            if start.elapsed() > KILL_LIMIT && looked >= KILL_LOOKS {
                return members.len();
            }
            looks.saw_nobody = members.is_empty();
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOOK_PAUSE);
        }
    }

    /// Everybody alive who belongs, but for this process.
    fn members(&self) -> Vec<Pid> {
        let own = process::getpid();
        let mut environ = Vec::new();
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
            .filter(|&pid| pid != own)
            .filter(|&pid| {
                self.is_in_session(pid) || {
                    read_environ(pid, &mut environ);
                    self.mark.is_in(&environ)
                }
            })
            .collect()
    }

    fn is_in_session(&self, pid: Pid) -> bool {
        !self.sessions.is_empty()
            && sys::session_of(pid).is_some_and(|session| self.sessions.contains(&session))
            && !is_dead(pid)
    }
}

/// Waits for the end of these; `false` where some are still there after that time. Only they are looked at: the whole
/// process table costs a read for every process of the machine, and several commands may be ended at once.
fn wait_until_gone(pids: &[Pid], limit: Duration) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_millis(2);
    while pids.iter().any(|&pid| !is_dead(pid)) {
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(pause.min(limit.saturating_sub(start.elapsed())));
        pause = (pause * 2).min(LOOK_PAUSE);
    }
    true
}

/// Whether a process group still has anybody in it.
pub(super) fn group_exists(leader: Pid) -> bool {
    process::test_kill_process_group(leader).is_ok()
}

/// Whether a process has this number.
pub(super) fn process_exists(pid: Pid) -> bool {
    !matches!(process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// A dead process whose parent has not asked for its exit code yet. (Its environment is gone, its session is not.)
fn is_dead(pid: Pid) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())) else {
        return true;
    };
    // The state follows the name, which is in parentheses and may itself hold some.
    let state = stat.iter().rposition(|&b| b == b')').and_then(|at| stat.get(at + 2));
    matches!(state, None | Some(b'Z' | b'X'))
}

/// Reads an environment; empty where it cannot be read (another user's, a kernel thread's, a dead process's).
fn read_environ(pid: Pid, environ: &mut Vec<u8>) {
    environ.clear();
    let Ok(file) = File::open(format!("/proc/{}/environ", pid.as_raw_nonzero())) else {
        return;
    };
    // Cut short by the process's death, it is no longer of interest.
    let _ = file.take(ENVIRON_LIMIT).read_to_end(environ);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_finds_its_run_and_its_command_and_no_other() {
        let environ = |value: &str| format!("A=1\0{COOKIE_VARIABLE}={value}\0B=2\0").into_bytes();
        for (value, of_run, of_command) in [
            ("r1:7", true, true),
            ("r1:71", true, false),
            ("r1:1", true, false),
            ("r11:7", false, false),
            ("xr1:7", false, false),
            ("r1", false, false),
            ("", false, false),
            ("r0:1/r1:7", true, true),
            ("r1:7/r2:3", true, true),
            ("r0:1/r2:7", false, false),
        ] {
            assert_eq!(Mark::run("r1").is_in(&environ(value)), of_run, "{value}");
            assert_eq!(Mark::command("r1", 7).is_in(&environ(value)), of_command, "{value}");
        }
        assert!(!Mark::run("r1").is_in(b"OTHER=r1:7\0X_HAMES_RUN_COOKIE=r1:7\0"));
        assert!(!Mark::run("r1").is_in(b""));
    }
}

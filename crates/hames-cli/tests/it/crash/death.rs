//! One process, what it printed, and how it was struck.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use serde_json::Value;

use super::aim::When;
use crate::kit::{User, signal};

/// What a process is struck with: it alone, not its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    /// SIGKILL.
    Kill,
    /// SIGINT, as Ctrl-C.
    Interrupt,
}

impl Blow {
    fn strike(self, child: &mut Child) {
        match self {
            Blow::Kill => child.kill().unwrap(),
            Blow::Interrupt => signal(child, "INT"),
        }
    }
}

/// What a process left behind.
pub(super) struct Ran {
    pub(super) status: ExitStatus,
    /// The whole lines it printed.
    pub(super) lines: Vec<String>,
    /// When it was struck, if it was, and what was seen right then.
    pub(super) struck: Option<(Instant, bool)>,
}

impl Ran {
    pub(super) fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    pub(super) fn printed(&self) -> Vec<Value> {
        self.lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }
}

/// Runs the command and strikes it. What it printed before stays in the pipe and is read. `look` is asked right after
/// the blow.
pub(super) fn run_and_strike(
    user: &User,
    args: &[&str],
    blow: Blow,
    when: When,
    look: impl Fn() -> bool + Sync,
) -> Ran {
    let complaints = user.folder("complaints").join("stderr");
    let mut child = user.command(args).stderr(File::create(&complaints).unwrap()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let child = Mutex::new(child);
    let strike = || {
        blow.strike(&mut child.lock().unwrap());
        Some((Instant::now(), look()))
    };
    let mut lines = Vec::new();
    let struck = std::thread::scope(|scope| {
        let (over, is_over) = mpsc::channel::<()>();
        let timer = scope.spawn(move || match when {
            When::After(time) if is_over.recv_timeout(time) == Err(mpsc::RecvTimeoutError::Timeout) => strike(),
            _ => None,
        });
        let (mut seen, mut struck) = (0, None);
        let mut line = String::new();
        while output.read_line(&mut line).unwrap() > 0 {
            if let When::Line { words, count, delay } = when
                && line.contains(words)
            {
                seen += 1;
                if seen == count {
                    std::thread::sleep(delay);
                    struck = strike();
                }
            }
            // The last line may be torn: whoever reads a stream of lines knows that.
            if line.ends_with('\n') {
                line.pop();
                lines.push(std::mem::take(&mut line));
            }
        }
        drop(over);
        timer.join().unwrap().or(struck)
    });
    let status = child.into_inner().unwrap().wait().unwrap();
    let said = std::fs::read_to_string(&complaints).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    Ran { status, lines, struck }
}

//! There is nothing to read, and no terminal to read it from.

use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use hames_tools::{ShellEnd, ShellProvider};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Bed, SUCCESS, found, roles, text};

/// Commands that read, and what they say when there is nothing; with a program that may be missing.
const READING: &[(&str, &str, Option<&str>)] = &[
    ("cat; echo end", "end", None),
    ("read x; echo \"code $? [$x]\"", "code 1 []", None),
    ("python3; echo end", "end", Some("python3")),
    ("python3 -c 'input()'; echo end", "EOFError", Some("python3")),
    ("git init -q . && git commit --allow-empty; echo end", "end", Some("git")),
    ("sh; bash; echo end", "end", None),
    ("wc -c", "0", None),
    ("sort | head -n 1; echo end", "end", None),
    ("(cat &) ; wait; echo end", "end", None),
    ("dd 2>/dev/null; echo end", "end", None),
    ("select x in a b; do echo $x; done; echo end", "end", None),
    ("while read -r line; do echo \"$line\"; done; echo end", "end", None),
    ("exec 0<&0; cat; echo end", "end", None),
    ("tty; echo end", "not a tty", None),
];

#[tokio::test]
async fn a_command_that_reads_finds_nothing_and_ends() {
    for &(command, expected, needs) in READING {
        if needs.is_some_and(|program| found(program).is_none()) {
            eprintln!("skipped, a program is missing: {command}");
            continue;
        }
        let bed = Bed::new();
        let start = Instant::now();
        let outcome = bed.run(command).await;
        assert!(text(&outcome).contains(expected), "{command}: {}", text(&outcome));
        assert!(!outcome.left_running, "{command}");
        assert!(start.elapsed() < Duration::from_secs(10), "{command}");
    }
}

/// The role below has this terminal; its commands must not get it.
const GRABBING: &[&str] = &[
    "cat </dev/tty",
    "read x </dev/tty",
    "echo drawn >/dev/tty",
    "stty -a </dev/tty",
    "exec 3<>/dev/tty",
    "sh -c 'head -c 1 </dev/tty'",
    "(cat </dev/tty)",
    "setsid cat </dev/tty",
    "set -m; cat </dev/tty",
    "head -c 1 | grep .",
    "[ -t 0 ]",
    "[ -t 1 ] || [ -t 2 ]",
];

#[tokio::test]
async fn a_command_cannot_reach_the_terminal_of_its_parent() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let terminal = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    // Held open, so that the terminal stays whole while sessions come and go.
    let _slave = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed())
        .open(&terminal)
        .unwrap();

    // A command leads a session without terminal, so the one it opens becomes the session's.
    let bed = Bed::new();
    let role = roles::command_line("grab");
    let outcome = bed.run(&format!("exec <{terminal}; {role}")).await;
    assert_eq!(outcome.end, SUCCESS, "{}", text(&outcome));
    let said = text(&outcome);
    assert!(said.contains("own terminal: true"), "{said}");
    for command in GRABBING {
        assert!(said.contains(&format!("refused: {command}\n")), "{command}: {said}");
    }
}

/// Runs in a process that has a terminal.
pub(super) async fn grab() {
    println!("own terminal: {}", std::fs::File::open("/dev/tty").is_ok());
    let bed = Bed::new();
    for command in GRABBING {
        let mut request = bed.request(command);
        request.timeout = Duration::from_secs(5);
        let outcome = bed.shell.run(request, &mut |_| {}).await.unwrap();
        let refused = matches!(outcome.end, ShellEnd::Exited(code) if code != 0);
        println!("{}: {command}", if refused { "refused" } else { "allowed" });
    }
}

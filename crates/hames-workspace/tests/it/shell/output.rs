//! Output of any size and any bytes: bounded memory, both ends kept, the count exact.

use std::process::Stdio;

use hames_tools::ShellProvider;
use serde_json::json;

use super::{Bed, SUCCESS, roles, soak, text, tool};

/// What memory may grow by, whatever a command writes. The full sizes are allowed 64 MiB.
const GROWTH_LIMIT_KB: u64 = 8 * 1024;

/// Bytes a command writes, for a usual run and for a soak.
struct Size {
    usual: u64,
    soak: u64,
}

impl Size {
    fn now(&self) -> u64 {
        if soak() { self.soak } else { self.usual }
    }
}

const LARGE: Size = Size { usual: 60_000_000, soak: 1_500_000_000 };
const MIDDLE: Size = Size { usual: 12_000_000, soak: 300_000_000 };

/// Commands that write `N` bytes, and how many.
const CHATTY: &[(&str, Size)] = &[
    ("yes | head -c N", LARGE),
    ("head -c N /dev/zero | tr '\\0' x", MIDDLE),
    ("head -c N /dev/zero", MIDDLE),
    ("head -c N /dev/urandom", MIDDLE),
    ("yes \"$(printf '\\377\\376\\001')\" | head -c N", MIDDLE),
    ("yes \"$(printf '50%%\\r')\" | tr -d '\\n' | head -c N", MIDDLE),
    ("yes \"$(printf '\\033]0;')\" | tr -d '\\n' | head -c N", MIDDLE),
    ("yes \"$(printf '\\033[31m日本語\\033[0m')\" | head -c N", MIDDLE),
    ("yes | head -c N >&2", MIDDLE),
    ("yes '' | head -c N", MIDDLE),
];

#[test]
fn memory_stays_small_whatever_a_command_writes() {
    let folder = tempfile::tempdir().unwrap();
    let output = roles::process("measure", folder.path()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches(" KB for ").count(), CHATTY.len(), "{said}");
    print!("{said}");
}

/// Runs every command through the tool and checks what it grew by.
pub(super) async fn measure() {
    for (command, size) in CHATTY {
        let bed = Bed::new();
        let command = command.replace('N', &size.now().to_string());
        let before = memory_kb("VmRSS:");
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let cx = tool::cx(&bed);
        let output = tool::run(&cx, json!({ "command": format!("set -o pipefail; {{ {command}; }} || echo; exit 7") }))
            .await
            .unwrap();
        let grown = memory_kb("VmHWM:").saturating_sub(before);
        println!("{grown} KB for {command}");
        let limit = if soak() { 64 * 1024 } else { GROWTH_LIMIT_KB };
        assert!(grown < limit, "{grown} KB for {command}");
        assert_eq!(output.exit_code, Some(7), "{command}");
        assert!(output.text.len() <= cx.cap_bytes, "{} for {command}", output.text.len());
        assert!(output.text.ends_with("exit code 7"), "{command}");
    }
}

fn memory_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn both_ends_and_the_whole_are_kept() {
    for (command, total) in [
        ("seq 1 100000", 588_895u64),
        ("yes | head -c 1000000", 1_000_000),
        ("head -c 70000 /dev/zero", 70_000),
        ("head -c 65536 /dev/zero", 65_536),
        ("head -c 65537 /dev/zero", 65_537),
        ("seq 1 1000", 3_893),
        ("printf '\\377\\376\\000'", 3),
        ("true", 0),
    ] {
        let bed = Bed::new();
        let mut seen = Vec::new();
        let outcome = bed.shell.run(bed.request(command), &mut |bytes| seen.extend_from_slice(bytes)).await.unwrap();
        assert_eq!(outcome.end, SUCCESS, "{command}");
        assert_eq!(outcome.total, total, "{command}");
        assert_eq!(seen.len() as u64, total, "{command}");
        assert!(seen.starts_with(&outcome.head) && seen.ends_with(&outcome.tail), "{command}");
        if total <= 64 * 1024 {
            assert_eq!(outcome.head, seen, "{command}");
            assert!(outcome.tail.is_empty() && outcome.spool.is_none(), "{command}");
        } else {
            assert_eq!((outcome.head.len(), outcome.tail.len()), (32 * 1024, 32 * 1024), "{command}");
            let (file, dropped) = outcome.spool.as_ref().unwrap();
            assert_eq!((std::fs::read(file.path()).unwrap() == seen, *dropped), (true, 0), "{command}");
            let path = file.path().to_owned();
            drop(outcome);
            assert!(!path.exists(), "{command}");
        }
    }
}

#[tokio::test]
async fn stdout_and_stderr_come_in_the_order_they_were_written() {
    let bed = Bed::new();
    let outcome = bed.run("for i in 1 2 3; do echo out $i; echo err $i >&2; done").await;
    assert_eq!(text(&outcome), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

#[tokio::test]
async fn a_closing_reader_ends_a_pipeline_quietly() {
    // Rust programs ignore SIGPIPE; commands must not inherit that.
    let outcome = Bed::new().run("yes | head -n 1; echo ${PIPESTATUS[0]}").await;
    assert_eq!(text(&outcome), "y\n141\n");
}

#[tokio::test]
async fn a_command_inherits_no_descriptor() {
    let _leaky = rustix::io::dup(std::io::stdin()).unwrap();
    let bed = Bed::new();
    let outcome = bed.run("ls /proc/self/fd").await;
    // The last one is the folder that is being listed.
    assert_eq!(text(&outcome), "0\n1\n2\n3\n");
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let bed = Bed::new();
    let outcome = bed.run("env").await;
    let said = text(&outcome);
    let mut names: Vec<_> = said.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.retain(|name| !["PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["HAMES_RUN_COOKIE", "HAMES_TEST_MARK"]);
}

#[tokio::test]
async fn a_command_longer_than_an_argument_runs() {
    let bed = Bed::new();
    for length in [100_000, 131_071, 131_072, 140_000, 3_000_000] {
        let outcome = bed.run(&format!("echo start; : {}\necho end", "x".repeat(length))).await;
        assert_eq!((text(&outcome).as_str(), outcome.end), ("start\nend\n", SUCCESS), "{length}");
    }
    assert_eq!(std::fs::read_dir(bed.path().join("spool")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let bed = Bed::new();
    let mut request = bed.request("true");
    request.cwd = bed.path().join("gone");
    let error = bed.shell.run(request, &mut |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("gone is no folder"), "{error}");

    let mut options = super::options(bed.path(), None);
    options.shell = "/nonexistent/bash".into();
    let shell = hames_workspace::shell::LocalShell::new(options).unwrap();
    let error = shell.run(bed.request("true"), &mut |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/bash could not be started"), "{error}");
}

//! Signals: the first ends the run in good order, the second ends the process.

use std::os::unix::process::ExitStatusExt;

use hames_testkit::{Gate, Script, Turn};
use serde_json::json;

use crate::kit::{Ended, PATIENCE, User, signal, until};

#[test]
fn the_first_signal_ends_the_run_and_the_log_is_complete() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let script = Script::new().turn(Turn::text("never").gate_head(Gate::new()));
        let (user, provider) = User::with(script);
        let child = user.start(&["run", "--json", "-s", "s", "x"]);
        assert!(provider.has_requests_within(1, PATIENCE));
        signal(&child, name);
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert_eq!(ended.code, code, "{name}\n{ended:?}");
        let done = ended.event("run.done");
        assert_eq!((&done["result"], &done["exit_code"]), (&json!("interrupted"), &json!(code)), "{name}");
        let log = user.ok(&["sessions", "show", "s", "--json"]);
        assert_eq!(log.types().last().map(String::as_str), Some("run.done"), "{name}");
    }
}

#[test]
fn a_signal_during_a_command_ends_the_command_too() {
    let script =
        Script::new().turn(Turn::call("Shell", json!({"command": "echo $$ > pid; sleep 600"}))).turn(Turn::text("no"));
    let (user, _provider) = User::with(script);
    let child = user.start(&["run", "--json", "--mode", "build", "-s", "s", "x"]);
    let pid_file = user.project().join("pid");
    until("the command's start", || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')));
    signal(&child, "INT");
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{ended:?}");
    assert_eq!(ended.event("tool.error")["class"], "cancelled");
    let pid = std::fs::read_to_string(pid_file).unwrap();
    until("the command's end", || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn the_second_signal_ends_the_process_at_once() {
    // A reader that never reads keeps the first one waiting for its output.
    let script = Script::new().turn(Turn::text("x".repeat(400_000)).chunk_chars(50_000).gate(6, Gate::new()));
    let (user, provider) = User::with(script);
    let mut child = user.start(&["run", "--json", "x"]);
    assert!(provider.has_requests_within(1, PATIENCE));
    // Two signals that come before the process runs again are one to it, so they are sent until there was a second one.
    // By the first alone it would not end: nobody reads what it has to say.
    let mut status = None;
    until("the process's end", || {
        signal(&child, "INT");
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    assert!(status.code() == Some(130) && status.signal().is_none(), "{status:?}");
}

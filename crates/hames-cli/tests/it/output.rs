//! What reaches the terminal: nothing that rules it, nothing that stalls on it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Command;

use hames_testkit::{Gate, Script, Turn};
use serde_json::json;

use crate::kit::{Ended, PATIENCE, User, until};

#[test]
fn control_and_bidi_characters_of_model_and_tools_are_shown_and_not_obeyed() {
    for evil in [
        "\u{1b}[24D\u{1b}[K",
        "\u{1b}]0;title\u{7}",
        "a\rb",
        "\u{8}\u{8}\u{8}",
        "\u{202e}txt",
        "\u{2066}x\u{2069}",
        "\u{9b}31m",
        "\u{1b}]8;;http://x\u{1b}\\",
        "\u{200b}\u{feff}",
    ] {
        let script = Script::new()
            .turn(
                Turn::text(format!("before {evil} after"))
                    .then_call("Shell", json!({"command": format!("echo ok && touch evil {evil} && echo ok")})),
            )
            .turn(Turn::call("Read", json!({"path": format!("no{evil}where")})))
            .turn(Turn::text(format!("end {evil}")));
        let (user, _provider) = User::with(script);
        let run = user.ok(&["run", "--mode", "build", "-s", "s", &format!("do {}", evil.replace('\0', ""))]);
        let shown = user.ok(&["sessions", "show", "s"]);
        let ledger = user.ok(&["sessions", "show", "s", "--runs"]);
        let found = user.ok(&["sessions", "search", "ok"]);
        let listed = user.ok(&["sessions", "list"]);
        for text in [&run.out, &run.err, &shown.out, &ledger.out, &found.out, &listed.out] {
            let harmful = text.chars().find(|c| {
                (c.is_control() && *c != '\n')
                    || matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
            });
            assert_eq!(harmful, None, "{evil:?}\n{text}");
        }
        assert!(run.out.contains("before ") && run.out.contains(" after"), "{}", run.out);
    }
}

#[test]
fn text_of_every_script_stays_as_it_is() {
    let text = "Grüße 漢字 می\u{200c}خواهم 👨\u{200d}👩\u{200d}👧\n\n\tindented\n```\ncode\n```";
    let (user, _provider) = User::with(Script::new().turn(Turn::text(text)));
    assert_eq!(user.ok(&["run", "x"]).out, format!("{text}\n"));
}

#[test]
fn an_answer_that_does_not_stream_is_shown_whole() {
    let (user, _provider) = User::with(Script::new().turn(Turn::text("In one piece.").plain_json()));
    assert_eq!(user.ok(&["run", "x"]).out, "In one piece.\n");
}

#[test]
fn the_answer_streams_while_the_model_speaks() {
    let gate = Gate::new();
    let script = Script::new().turn(Turn::text("first words, then the rest").chunk_chars(11).gate(2, gate.clone()));
    let (user, _provider) = User::with(script);
    let mut child = user.start(&["run", "--json", "x"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The gate is opened only when the first piece has been printed.
    assert!(lines.any(|line| line.unwrap().contains("first words")));
    gate.open();
    assert!(lines.any(|line| line.unwrap().contains("run.done")));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reader_that_does_not_read_stalls_no_command() {
    let script = Script::new()
        .turn(
            Turn::text("x".repeat(300_000))
                .chunk_chars(10_000)
                .then_call("Shell", json!({"command": "seq 1 200000; echo done > marker"})),
        )
        .turn(Turn::text("ok"));
    let (user, provider) = User::with(script);
    let child = user.start(&["run", "--json", "--mode", "build", "x"]);
    let marker = user.project().join("marker");
    until("the command's end", || marker.exists());
    assert!(provider.has_requests_within(2, PATIENCE));
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 0);
    assert_eq!(ended.types().last().map(String::as_str), Some("run.done"));
}

#[test]
fn a_closed_stdout_ends_the_run_quietly_like_an_interrupt() {
    for args in [&["run", "--json", "-s", "s", "x"][..], &["run", "-s", "s", "x"]] {
        let gate = Gate::new();
        let script = Script::new().turn(Turn::text("piece ".repeat(2000)).gate(50, gate.clone()));
        let (user, _provider) = User::with(script);
        let mut child = user.start(args);
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut first = vec![0; 5];
        std::io::Read::read_exact(&mut reader, &mut first).unwrap();
        drop(reader);
        gate.open();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{args:?}");
        let err = String::from_utf8_lossy(&ended.stderr);
        assert!(!err.contains("panic") && !err.contains("rror"), "{err}");
        let log = user.ok(&["sessions", "show", "s", "--json"]);
        assert_eq!(log.event("run.done")["result"], "interrupted", "{args:?}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_a_failure_that_is_said() {
    for args in [&["run", "-s", "s", "x"][..], &["run", "--json", "-s", "s", "x"]] {
        let (user, _provider) = User::saying("an answer that goes nowhere");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = Ended::of(user.command(args).stdout(full).output().unwrap());
        assert_eq!(ended.code, 4, "{args:?}\n{ended:?}");
        assert!(ended.err.contains("the output cannot be written"), "{args:?}\n{ended:?}");
    }
}

#[test]
fn a_closed_stdout_from_the_beginning_is_no_failure() {
    let (user, _provider) = User::saying("ok");
    let mut command = Command::new("bash");
    let hames = user.command(&[]);
    command.arg("-c").arg("\"$0\" run x | true; exit ${PIPESTATUS[0]}").arg(hames.get_program());
    command.current_dir(user.project()).env_clear();
    command.envs(hames.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = Ended::of(command.output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.err.contains("panic"), "{}", ended.err);
}

//! A background child never delays a result, and is ended with the run.

use std::time::{Duration, Instant};

use hames_tools::ShellProvider;

use super::{Bed, SUCCESS, found, marked, text, wait_for};

/// Command, whether it leaves the output open, whether it needs a program that may be missing.
const LEAVING: &[(&str, bool, Option<&str>)] = &[
    ("(sleep 600 &) ; echo done", true, None),
    ("sh -c 'sleep 600 & echo $!'; echo done", true, None),
    ("python3 -m http.server 0 & echo done", true, Some("python3")),
    ("nohup sleep 600 & echo done", true, None),
    ("sleep 600 & disown; echo done", true, None),
    ("coproc sleep 600; echo done", true, None),
    ("setsid sleep 600 & echo done", true, Some("setsid")),
    ("(setsid sh -c 'sleep 600; :' &) ; echo done", true, Some("setsid")),
    // Only once the child runs has it let go of the output for sure.
    ("sh -c ': > up; exec sleep 600' >/dev/null 2>&1 & while [ ! -e up ]; do sleep 0.01; done; echo done", false, None),
    ("sleep 600 >/dev/null & echo done", true, None),
    ("exec 7>&1; sleep 600 >/dev/null 2>&1 & echo done", true, None),
    ("trap '' HUP; (sleep 600; echo late) & echo done", true, None),
    ("while :; do echo tick; sleep 0.02; done & echo done", true, None),
    ("yes & echo done", true, None),
    ("sleep 600 | sleep 600 & echo done", true, None),
];

#[tokio::test]
async fn a_background_child_does_not_delay_the_result() {
    for &(command, open, needs) in LEAVING {
        if needs.is_some_and(|program| found(program).is_none()) {
            eprintln!("skipped, a program is missing: {command}");
            continue;
        }
        let bed = Bed::new();
        let start = Instant::now();
        let outcome = bed.run(command).await;
        // The children take minutes; a busy machine may take seconds.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}: {command}", start.elapsed());
        assert_eq!(outcome.end, SUCCESS, "{command}");
        assert!(text(&outcome).contains("done") || outcome.total > outcome.head.len() as u64, "{command}");
        assert_eq!(outcome.left_running, open, "{command}");
        assert!(!marked(bed.path()).is_empty(), "the child was ended with its command: {command}");

        bed.shell.sweep().await;
        assert_eq!(marked(bed.path()), [], "{command}");
    }
}

#[tokio::test]
async fn a_command_without_children_is_back_at_its_end() {
    let bed = Bed::new();
    bed.run("true").await;
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        let outcome = bed.run("echo hi").await;
        assert_eq!((text(&outcome).as_str(), outcome.end, outcome.left_running), ("hi\n", SUCCESS, false));
        fastest = fastest.min(start.elapsed());
    }
    // A quiet wait takes a tenth of a second each time; what a busy machine adds, it does not add to every one.
    assert!(fastest < Duration::from_millis(90), "{fastest:?}");
}

#[tokio::test]
async fn a_background_child_may_write_on_after_the_result() {
    let bed = Bed::new();
    let beats = bed.path().join("beats");
    let outcome = bed
        .run("while :; do head -c 9000 /dev/zero || exit; echo beat >> beats; sleep 0.01; done & echo started")
        .await;
    assert!(outcome.left_running);
    let size = || std::fs::metadata(&beats).map_or(0, |meta| meta.len());
    let before = size();
    // More than a pipe holds is written meanwhile, so somebody must be reading.
    let grown = async {
        while size() < before + 5 * 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), grown).await.expect("the child stopped when its command was over");
    bed.shell.sweep().await;
    assert_eq!(marked(bed.path()), []);
}

#[tokio::test]
async fn a_sweep_ends_what_several_commands_left_and_the_shell_can_go_on() {
    let bed = Bed::new();
    for _ in 0..3 {
        bed.run("setsid sleep 600 >/dev/null 2>&1 & (trap '' TERM; sleep 600) & :").await;
    }
    bed.shell.sweep().await;
    assert_eq!(marked(bed.path()), []);
    assert_eq!(text(&bed.run("echo again").await), "again\n");
    bed.run("sleep 600 &").await;
    bed.shell.sweep().await;
    assert_eq!(marked(bed.path()), []);
}

#[tokio::test]
async fn a_sweep_reaches_children_that_cleared_their_environment_but_not_their_session() {
    let bed = Bed::new();
    let sleep = super::unique_sleep(1);
    bed.run(&format!("env -i {sleep} >/dev/null 2>&1 & :")).await;
    wait_for("the child runs", || !super::running(&sleep).is_empty());
    bed.shell.sweep().await;
    assert_eq!(super::running(&sleep), []);
}

#[tokio::test]
async fn a_sweep_leaves_other_runs_alone() {
    let (bed, other) = (Bed::new(), Bed::new());
    other.run("setsid sleep 600 & :").await;
    bed.run("setsid sleep 600 & :").await;
    bed.shell.sweep().await;
    assert_eq!(marked(bed.path()), []);
    assert!(!marked(other.path()).is_empty());
}

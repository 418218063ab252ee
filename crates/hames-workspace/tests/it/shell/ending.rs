//! A time limit or a cancel ends everything a command started.

use std::time::{Duration, Instant};

use hames_tools::{ShellEnd, ShellProvider};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Bed, found, marked, running, text};

/// From the limit or the cancel until nothing is left.
const ALL_GONE: Duration = Duration::from_secs(20);

/// Commands that do not want to end. Each says `ready` when its children run.
const STAYING: &[&str] = &[
    "sh -c 'sh -c \"trap \\\"\\\" TERM; echo ready; while :; do sleep 1; done\" & wait'",
    "setsid sh -c 'echo ready; sleep 300' & wait",
    "trap '' TERM INT HUP; echo ready; while :; do sleep 0.1; done",
    "(setsid sh -c '(setsid sleep 300 &) ; echo ready; sleep 300' &) ; sleep 300",
    "sh -c 'echo ready; kill -STOP $$' & sleep 300",
    "setsid sh -c 'echo ready; while :; do (setsid sleep 300 &) ; sleep 0.01; done' & wait",
    "setsid sh -c 'trap \"\" TERM; sleep 300 & echo ready; wait; sleep 300' & wait",
    "setsid bash -c 'trap \"setsid sleep 300 & setsid sleep 300 &\" TERM; echo ready; while :; do sleep 0.1; done' & wait",
    "env -i sh -c 'echo ready; /bin/sleep 300; :' & wait",
    "set -m; env -i sh -c 'trap \"\" TERM; echo ready; while :; do /bin/sleep 0.1; done' & wait",
    "yes >/dev/null & echo ready; yes",
    "nohup setsid sleep 300 >/dev/null 2>&1 & disown; echo ready; sleep 300",
    "echo ready; exec sleep 300",
    "echo ready; kill -STOP $$ & sleep 300",
    "sleep 300 | sleep 300 | (trap '' TERM; echo ready; cat; sleep 300)",
];

/// Runs all of them at once, each with its own shell.
async fn end_all(timeout: Option<Duration>, expected: ShellEnd) {
    assert!(found("setsid").is_some(), "the tests need setsid in PATH");
    let mut all = JoinSet::new();
    for &command in STAYING {
        all.spawn(async move {
            let bed = Bed::new();
            let mut request = bed.request(command);
            let cancel = request.cancel.clone();
            let cancel_when_ready = timeout.is_none();
            request.timeout = timeout.unwrap_or(super::LONG);
            let (mut seen, mut since) = (Vec::new(), timeout.map(|timeout| Instant::now() + timeout));
            let outcome = bed
                .shell
                .run(request, &mut |bytes| {
                    if seen.len() < 100 {
                        seen.extend_from_slice(bytes);
                    }
                    if cancel_when_ready && !cancel.is_cancelled() && seen.windows(5).any(|word| word == b"ready") {
                        cancel.cancel();
                        since = Some(Instant::now());
                    }
                })
                .await
                .unwrap();
            let took = since.expect("it never became ready").elapsed();
            assert_eq!(marked(bed.path()), [], "{command}");
            assert_eq!(outcome.end, expected, "{command}");
            assert!(text(&outcome).contains("ready"), "{command}: {}", text(&outcome));
            assert!(!outcome.left_running, "{command}");
            assert!(took < ALL_GONE, "{took:?}: {command}");
        });
    }
    while let Some(result) = all.join_next().await {
        result.unwrap();
    }
}

#[tokio::test]
async fn a_time_limit_leaves_nothing() {
    // Long enough for all of them to say that they are ready, on a busy machine too.
    end_all(Some(Duration::from_secs(4)), ShellEnd::TimedOut).await;
}

#[tokio::test]
async fn a_cancel_leaves_nothing() {
    end_all(None, ShellEnd::Cancelled).await;
}

#[tokio::test]
async fn children_without_cookie_are_ended_by_their_session() {
    let bed = Bed::new();
    let sleep = super::unique_sleep(2);
    let mut request = bed.request(&format!("set -m; env -i {sleep} & env -i sh -c '{sleep}; :' & wait"));
    request.timeout = Duration::from_millis(500);
    let outcome = bed.shell.run(request, &mut |_| {}).await.unwrap();
    assert_eq!(outcome.end, ShellEnd::TimedOut);
    assert_eq!(running(&sleep), []);
}

#[tokio::test]
async fn a_polite_child_may_clean_up() {
    let bed = Bed::new();
    let mut request =
        bed.request("trap 'echo cleaned; rm lock; exit 0' TERM; touch lock; echo ready; sleep 300 & wait");
    let cancel = request.cancel.clone();
    request.timeout = super::LONG;
    let start = Instant::now();
    let outcome = bed.shell.run(request, &mut |_| cancel.cancel()).await.unwrap();
    assert_eq!(outcome.end, ShellEnd::Cancelled);
    assert!(text(&outcome).contains("cleaned"), "{}", text(&outcome));
    assert!(!bed.path().join("lock").exists());
    assert!(start.elapsed() < Duration::from_secs(60), "it was waited for to the end of its sleep");
}

#[tokio::test]
async fn who_is_started_while_the_others_end_is_asked_too() {
    let bed = Bed::new();
    let late = "trap 'echo asked; exit 0' TERM; : > late; sleep 300 & wait";
    std::fs::write(bed.path().join("late.sh"), late).unwrap();
    let starts_it = "setsid sh late.sh & while [ ! -e late ]; do :; done; exit 0";
    let mut request = bed.request(&format!("trap '{starts_it}' TERM; echo ready; sleep 300 & wait"));
    let cancel = request.cancel.clone();
    request.timeout = super::LONG;
    let outcome = bed.shell.run(request, &mut |_| cancel.cancel()).await.unwrap();
    assert_eq!(outcome.end, ShellEnd::Cancelled);
    assert!(text(&outcome).contains("asked"), "{}", text(&outcome));
    assert_eq!(marked(bed.path()), []);
}

#[tokio::test]
async fn a_cancel_before_the_start_runs_nothing() {
    let bed = Bed::new();
    let mut request = bed.request("touch ran");
    request.cancel = CancellationToken::new();
    request.cancel.cancel();
    let outcome = bed.shell.run(request, &mut |_| {}).await.unwrap();
    assert_eq!(outcome.end, ShellEnd::Cancelled);
    assert!(!bed.path().join("ran").exists());
}

#[tokio::test]
async fn a_dropped_command_is_ended_in_the_background() {
    let bed = Bed::new();
    {
        let ready = tokio::sync::Notify::new();
        let mut note = |_: &[u8]| ready.notify_one();
        let mut request = bed.request("setsid sleep 300 & echo ready; sleep 300");
        request.timeout = super::LONG;
        tokio::select! {
            ended = bed.shell.run(request, &mut note) => panic!("it ended by itself: {:?}", ended.map(|ended| ended.end)),
            () = ready.notified() => {}
        }
    }
    super::wait_for("all are ended", || marked(bed.path()).is_empty());
}

#[tokio::test]
async fn an_ended_command_leaves_no_dead_process() {
    let bed = Bed::new();
    bed.run("true").await;
    let mut request = bed.request("sleep 300 & sleep 300");
    request.timeout = Duration::from_millis(50);
    bed.shell.run(request, &mut |_| {}).await.unwrap();
    let own = std::process::id().to_string();
    let dead_children = super::processes().filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        after_name.starts_with(&format!("Z {own} ")) && stat.contains("(bash)")
    });
    // Other tests of this process may have one for a moment.
    let dead: Vec<_> = dead_children.collect();
    super::wait_for("dead children are reaped", || {
        dead.iter().all(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
            !stat.contains(") Z ")
        })
    });
}

//! Calls of one answer, and of several sessions, on the same files: through the door they come one after the other.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use async_trait::async_trait;
use hames_protocol::{ApprovalAsked, Approver, CallId, Decision, Event, RawCall};
use hames_tools::{About, Door, DoorParts, LockTable, PathPattern, Policy, Rule, RuleVerdict, RunCx, Secrets, ToolSet};
use hames_workspace::files::tools;
use serde_json::{Value, json};

use super::kit::{Bench, tree};

/// Runs of every case: what is lost by chance must not go unseen. In the soak tier as many as to say "each time".
fn runs() -> usize {
    if std::env::var_os("HAMES_SOAK").is_some() { 100 } else { 12 }
}

/// Runs of the simplest case, two edits of one file under one name: they are cheap.
const PLAIN_RUNS: usize = 100;

/// A person who allows everything.
struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn decide(&self, _asked: &ApprovalAsked) -> Option<(Decision, String)> {
        Some((Decision::Once, "test".into()))
    }
}

fn door(bench: &Bench, locks: &Arc<LockTable>) -> Door {
    ruled(bench, locks, Vec::new())
}

fn ruled(bench: &Bench, locks: &Arc<LockTable>, rules: Vec<Rule>) -> Door {
    let policy = Policy { rules, grants: Vec::new() };
    Door::new(DoorParts {
        tools: ToolSet::new(tools()).unwrap(),
        policy,
        fs: bench.fs.clone(),
        preview: None,
        shell: bench.cx.shell.clone(),
        blobs: bench.blobs.clone(),
        approver: Arc::new(Yes),
        grants: None,
        secrets: Secrets::default(),
        locks: locks.clone(),
        window_tokens: 100_000,
        parallel_tools: true,
    })
}

/// Takes calls through a door together; says of each, in call order, whether it was done.
async fn run(bench: &Bench, door: &Door, calls: &[(&str, Value)]) -> Vec<bool> {
    let admitted: Vec<_> = calls
        .iter()
        .map(|(name, input)| {
            let (name, arguments) = ((*name).to_owned(), input.to_string());
            door.admit(RawCall { id: String::new(), name, arguments, extra: None })
        })
        .collect();
    let ids: Vec<_> = admitted.iter().map(|call| call.event.call_id.clone()).collect();
    let cx = RunCx {
        session: bench.cx.session.clone(),
        mode: bench.cx.mode,
        emit: bench.cx.emit.clone(),
        state: bench.cx.state.clone(),
        abort: bench.cx.cancel.clone(),
        interrupt: tokio_util::sync::CancellationToken::new(),
        memory: None,
        pins: hames_tools::PinRoom::default(),
    };
    door.run(admitted, cx).await.unwrap();
    let events = bench.recorder.events.lock().unwrap();
    let was_done =
        |id: &CallId| events.iter().any(|event| matches!(event, Event::ToolDone(done) if done.call_id == *id));
    ids.iter().map(was_done).collect()
}

fn replace(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("StrReplace", json!({"path": path, "old_string": old, "new_string": new}))
}

fn numbers() -> String {
    (1..=100).map(|n| format!("line {n}.\n")).collect()
}

#[tokio::test]
async fn of_edits_to_one_file_by_any_of_its_names_none_is_lost() {
    for (first, second) in [
        ("n.txt", "n.txt"),
        ("./n.txt", "n.txt"),
        ("sub/../n.txt", "n.txt"),
        ("ABSOLUTE", "./n.txt"),
        ("link", "n.txt"),
        ("n.txt", "far link"),
        ("link", "far link"),
        ("hard", "n.txt"),
        ("n.txt", "hard"),
        ("hard", "link"),
        ("sub/folder link/n.txt", "n.txt"),
        ("sub/folder link/hard", "ABSOLUTE"),
    ] {
        for _ in 0..if first == "n.txt" && second == first { PLAIN_RUNS } else { runs() } {
            let bench = Bench::new();
            let file = bench.file("n.txt", numbers());
            std::fs::create_dir(bench.path("sub")).unwrap();
            symlink("n.txt", bench.path("link")).unwrap();
            symlink("sub/../link", bench.path("far link")).unwrap();
            symlink("..", bench.path("sub/folder link")).unwrap();
            if [first, second].iter().any(|name| name.contains("hard")) {
                std::fs::hard_link(&file, bench.path("hard")).unwrap();
            }
            let named = |name: &str| name.replace("ABSOLUTE", &file.to_string_lossy());
            let door = door(&bench, &Arc::new(LockTable::new()));
            let calls = [
                replace(&named(first), "line 50.", "FIFTY"),
                replace(&named(second), "line 75.", "SEVENTY-FIVE"),
                ("Edit", json!({"path": named(first), "edits": [{"old_string": "line 1.", "new_string": "ONE"}]})),
            ];
            assert_eq!(run(&bench, &door, &calls).await, [true; 3], "{first}, {second}");
            let wanted =
                numbers().replace("line 50.", "FIFTY").replace("line 75.", "SEVENTY-FIVE").replace("line 1.", "ONE");
            assert_eq!(String::from_utf8(bench.bytes("n.txt")).unwrap(), wanted, "{first}, {second}");
        }
    }
}

#[tokio::test]
async fn many_edits_of_one_answer_are_all_made_in_their_order() {
    let bench = Bench::new();
    bench.file("n.txt", numbers());
    bench.file("chain.txt", "0");
    let door = door(&bench, &Arc::new(LockTable::new()));
    let mut calls: Vec<_> = (1..=40).map(|n| replace("n.txt", &format!("line {n}."), &format!("row {n}!"))).collect();
    // Each of these needs the one before it.
    calls.extend((0..40).map(|n| replace("./chain.txt", &n.to_string(), &(n + 1).to_string())));
    assert_eq!(run(&bench, &door, &calls).await, [true; 80]);
    let wanted: String =
        (1..=100).map(|n| if n <= 40 { format!("row {n}!\n") } else { format!("line {n}.\n") }).collect();
    assert_eq!(String::from_utf8(bench.bytes("n.txt")).unwrap(), wanted);
    assert_eq!(bench.bytes("chain.txt"), b"40");
}

#[tokio::test]
async fn a_file_and_its_folder_are_one_matter() {
    let delete = |path: &str| ("Delete", json!({"path": path, "recursive": true}));
    let write = |path: &str| ("Write", json!({"path": path, "content": "written"}));
    type Calls = Vec<(&'static str, Value)>;
    // The calls, which of them are done, and what is there then.
    let cases: [(Calls, &[bool], &[&str]); 8] = [
        (vec![replace("d/f", "one", "two"), delete("d")], &[true, true], &["kept"]),
        (vec![delete("d"), replace("d/f", "one", "two")], &[true, false], &["kept"]),
        (vec![delete("d"), write("d/f")], &[true, true], &["d/", "d/f", "kept"]),
        (vec![write("d/sub/new"), delete("d"), write("d/last")], &[true, true, true], &["d/", "d/last", "kept"]),
        (
            vec![write("d/a/b/1"), write("d/a/b/2"), write("d/a/b/3"), delete("./d/../d/a")],
            &[true; 4],
            &["d/", "d/f", "kept"],
        ),
        (vec![delete("d/f"), delete("d"), delete("d")], &[true, true, false], &["kept"]),
        (vec![delete("d"), ("List", json!({"path": "d"}))], &[true, false], &["kept"]),
        (vec![write("d"), delete("d"), write("d")], &[false, true, true], &["d", "kept"]),
    ];
    for (calls, done, left) in cases {
        for _ in 0..runs() {
            let bench = Bench::new();
            bench.file("d/f", "one");
            bench.file("kept", "");
            let door = door(&bench, &Arc::new(LockTable::new()));
            assert_eq!(run(&bench, &door, &calls).await, done, "{calls:?}");
            assert_eq!(tree(&bench.path("")), left, "{calls:?}");
        }
    }
}

#[tokio::test]
async fn a_link_stays_while_a_call_goes_through_it() {
    for (link, target, through, led_to) in
        [("link", "t", "link", "t"), ("d/link", "../t", "d/link", "t"), ("into", "d", "into/f", "d/f")]
    {
        let write = ("Write", json!({"path": through, "content": "two"}));
        let delete = ("Delete", json!({"path": link}));
        for (calls, done, content) in [
            ([write.clone(), delete.clone()], [true, true], "two"),
            // It waits for the link to go, and is then told that the path leads elsewhere.
            ([delete.clone(), write.clone()], [true, false], "one"),
        ] {
            for _ in 0..runs() {
                let bench = Bench::new();
                bench.file("t", "one");
                bench.file("d/f", "one");
                symlink(target, bench.path(link)).unwrap();
                let door = door(&bench, &Arc::new(LockTable::new()));
                assert_eq!(run(&bench, &door, &calls).await, done, "{calls:?}");
                assert_eq!(bench.bytes(led_to), content.as_bytes(), "{calls:?}");
                assert!(std::fs::symlink_metadata(bench.path(link)).is_err(), "{link} is gone");
            }
        }
    }
}

#[tokio::test]
async fn sessions_that_edit_one_file_at_once_lose_nothing_that_was_done() {
    for _ in 0..runs() {
        let bench = Bench::new();
        bench.file("n.txt", numbers());
        std::fs::hard_link(bench.path("n.txt"), bench.path("hard")).unwrap();
        let locks = Arc::new(LockTable::new());
        let sessions: Vec<_> = (0..4)
            .map(|session| {
                // What a session knows of files is its own.
                let (bench, name) = (bench.another_session(), if session % 2 == 0 { "n.txt" } else { "hard" });
                let door = door(&bench, &locks);
                tokio::spawn(async move {
                    let edit = |n| replace(name, &format!("line {}.", session * 5 + n + 1), "changed");
                    run(&bench, &door, &(0..5).map(edit).collect::<Vec<_>>()).await
                })
            })
            .collect();
        let mut done = 0;
        for session in sessions {
            let made = session.await.unwrap();
            assert!(made[0], "nothing was known yet");
            done += made.iter().filter(|made| **made).count();
        }
        let text = String::from_utf8(bench.bytes("n.txt")).unwrap();
        assert_eq!((text.matches("changed").count(), text.matches("line").count()), (done, 100 - done));
        assert_eq!(bench.bytes("hard"), text.as_bytes());
    }
}

#[tokio::test]
async fn a_folder_that_holds_what_a_rule_keeps_does_not_go_in_part() {
    for pattern in ["**/*.env", "d/sub/key.env", "d/sub", "**/key.env"] {
        let bench = Bench::new();
        bench.file("d/a", "x");
        bench.file("d/sub/key.env", "key");
        bench.file("d/z", "x");
        symlink("z", bench.path("d/link")).unwrap();
        let about = About::Path { pattern: PathPattern::new(pattern).unwrap(), access: None };
        let door = ruled(&bench, &Arc::new(LockTable::new()), vec![Rule { verdict: RuleVerdict::Deny, about }]);
        let calls = [
            ("Delete", json!({"path": "d", "recursive": true})),
            ("Delete", json!({"path": "d/link"})),
            ("Delete", json!({"path": "d/a"})),
        ];
        assert_eq!(run(&bench, &door, &calls).await, [false, true, true], "{pattern}");
        assert_eq!(tree(&bench.path("")), ["d/", "d/sub/", "d/sub/key.env", "d/z"], "{pattern}");
    }
}

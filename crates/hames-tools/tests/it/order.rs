//! What overlaps and what waits.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hames_protocol::{Declaration, Effect, Resource, ToolErrorClass};
use hames_tools::{LockTable, ToolOutput};
use serde_json::{Value, json};

use crate::kit::{Gate, Setup, TestDoor, TestTool, door, settle};

fn at(path: &str) -> Value {
    json!({"path": path})
}

fn tools(gate: &Gate) -> Vec<TestTool> {
    let tool = |name: &str, effect| TestTool::new(name).effect(effect).gated(gate);
    vec![
        tool("Read", Effect::Read),
        tool("Edit", Effect::Edit),
        tool("Shell", Effect::Run),
        tool("Web", Effect::External).declares(|_| Declaration::new(Effect::External, vec![])),
        tool("Todo", Effect::Session).declares(|_| Declaration::new(Effect::Session, vec![])),
        tool("TodoWrite", Effect::Session).declares(|_| {
            Declaration::new(Effect::Session, vec![Resource::Named { name: "todos".into(), write: true }])
        }),
        tool("Search", Effect::Read)
            .declares(|_| Declaration::new(Effect::Read, vec![Resource::Workspace { write: false }])),
    ]
}

/// Runs calls whose names at the gate are their paths, and checks which stand at the gate together, in order.
async fn stages(test: &TestDoor, gate: &Gate, calls: &[(&str, &str)], wanted: &[&[&str]]) {
    let calls: Vec<_> = calls.iter().map(|(tool, path)| (*tool, at(path))).collect();
    let running = test.start(&calls);
    let mut inside: Vec<&str> = Vec::new();
    for stage in wanted {
        inside.extend(*stage);
        gate.holds(&inside).await;
        stage.iter().for_each(|name| gate.open(name));
    }
    for outcome in running.await.unwrap() {
        assert!(outcome.output().starts_with("passed"));
    }
}

#[tokio::test]
async fn calls_overlap_only_where_what_they_touch_is_disjoint() {
    type Calls = &'static [(&'static str, &'static str)];
    type Stages = &'static [&'static [&'static str]];
    let cases: &[(Calls, Stages)] = &[
        (&[("Edit", "a"), ("Edit", "b"), ("Read", "c")], &[&["a", "b", "c"]]),
        (&[("Read", "a"), ("Read", "./a")], &[&["a", "./a"]]),
        (&[("Edit", "a"), ("Edit", "./a")], &[&["a"], &["./a"]]),
        (&[("Edit", "a"), ("Edit", "/w/x/../a")], &[&["a"], &["/w/x/../a"]]),
        (&[("Edit", "a"), ("Read", "./a"), ("Edit", "b")], &[&["a", "b"], &["./a"]]),
        (&[("Read", "a"), ("Edit", "./a"), ("Read", "/w/a")], &[&["a"], &["./a"], &["/w/a"]]),
        (&[("Read", "dir"), ("Edit", "dir/a"), ("Edit", "dirt")], &[&["dir", "dirt"], &["dir/a"]]),
        (&[("Edit", "a"), ("Shell", "-"), ("Edit", "b")], &[&["a"], &["-"], &["b"]]),
        (&[("Shell", "-"), ("Read", "a"), ("Read", "b")], &[&["-"], &["a", "b"]]),
        (&[("Shell", "-"), ("Shell", "./-")], &[&["-"], &["./-"]]),
        (&[("Read", "a"), ("Web", "w"), ("Read", "b"), ("Read", "c")], &[&["a"], &["w"], &["b", "c"]]),
        (&[("Web", "v"), ("Web", "w")], &[&["v"], &["w"]]),
        (&[("Todo", "s"), ("Shell", "-"), ("Todo", "t")], &[&["s", "-", "t"]]),
        (&[("TodoWrite", "s"), ("Edit", "a"), ("TodoWrite", "t")], &[&["s", "a"], &["t"]]),
        (&[("Search", "q"), ("Read", "a"), ("Edit", "b"), ("Search", "r")], &[&["q", "a"], &["b"], &["r"]]),
        (&[("Edit", "link"), ("Edit", "real")], &[&["link"], &["real"]]),
        (&[("Edit", "hard1"), ("Edit", "hard2"), ("Edit", "hard3")], &[&["hard1", "hard3"], &["hard2"]]),
        (&[("Edit", "into/a"), ("Edit", "dir/a")], &[&["into/a"], &["dir/a"]]),
    ];
    for (calls, wanted) in cases {
        let gate = Gate::new();
        let test = door(tools(&gate));
        test.fs.links.lock().unwrap().extend([
            (PathBuf::from("/w/link"), PathBuf::from("/w/real")),
            (PathBuf::from("/w/into"), PathBuf::from("/w/dir")),
        ]);
        test.fs.inodes.lock().unwrap().extend(
            [("/w/hard1", 7), ("/w/hard2", 7), ("/w/hard3", 8)].map(|(path, inode)| (PathBuf::from(path), inode)),
        );
        stages(&test, &gate, calls, wanted).await;
    }
}

#[tokio::test]
async fn one_after_another_where_parallel_tools_are_off() {
    let gate = Gate::new();
    let mut setup = Setup::new(tools(&gate));
    setup.parallel = false;
    let calls = [("Read", "a"), ("Read", "b"), ("Todo", "t"), ("Edit", "c")];
    stages(&setup.build(), &gate, &calls, &[&["a"], &["b"], &["t"], &["c"]]).await;
}

#[tokio::test]
async fn sessions_share_the_files_and_nothing_else() {
    let gate = Gate::new();
    let locks = Arc::new(LockTable::new());
    let session = || {
        let mut setup = Setup::new(tools(&gate));
        setup.locks = locks.clone();
        setup.build()
    };
    let (one, two) = (session(), session());
    let first = one.start(&[("Edit", at("a")), ("Web", at("w1"))]);
    gate.holds(&["a"]).await;
    let second = two.start(&[("Web", at("w2")), ("Edit", at("./a")), ("Edit", at("b"))]);
    gate.holds(&["a", "w2"]).await;
    gate.open("w2");
    gate.holds(&["a", "w2", "b"]).await;
    gate.open("a");
    gate.holds(&["a", "w2", "b", "w1", "./a"]).await;
    ["b", "w1", "./a"].iter().for_each(|name| gate.open(name));
    assert_eq!((first.await.unwrap().len(), second.await.unwrap().len()), (2, 3));
}

#[tokio::test]
async fn of_two_edits_to_one_file_none_is_lost() {
    for (first, second) in [
        ("n.txt", "n.txt"),
        ("n.txt", "./n.txt"),
        ("/w/n.txt", "n.txt"),
        ("x/../n.txt", "n.txt"),
        ("alias", "n.txt"),
        ("n.txt", "hard"),
        ("x//..//n.txt", "alias"),
        ("./n.txt", "/w/./n.txt"),
    ] {
        for _ in 0..100 {
            let file = Arc::new(Mutex::new((1..=100).map(|n| n.to_string()).collect::<Vec<_>>()));
            let edit = TestTool::new("StrReplace").effect(Effect::Edit).parameters(json!({"type": "object"})).does({
                let file = file.clone();
                move |input, _| {
                    let file = file.clone();
                    async move {
                        let mut content = file.lock().unwrap().clone();
                        // Reading, thinking, writing: whoever does not wait loses the other's change here.
                        settle().await;
                        let line = content.iter_mut().find(|line| **line == input["old"]).unwrap();
                        *line = input["new"].as_str().unwrap().to_owned();
                        *file.lock().unwrap() = content;
                        Ok(ToolOutput::text("replaced"))
                    }
                }
            });
            let test = door(vec![edit]);
            test.fs.links.lock().unwrap().insert("/w/alias".into(), "/w/n.txt".into());
            test.fs.inodes.lock().unwrap().extend([("/w/n.txt".into(), 3), ("/w/hard".into(), 3)]);
            let calls = [
                ("StrReplace", json!({"path": first, "old": "50", "new": "FIFTY"})),
                ("StrReplace", json!({"path": second, "old": "75", "new": "SEVENTYFIVE"})),
            ];
            test.run(&calls).await.iter().for_each(|outcome| assert_eq!(outcome.output(), "replaced"));
            let content = file.lock().unwrap().clone();
            assert!(content.contains(&"FIFTY".into()) && content.contains(&"SEVENTYFIVE".into()), "{first} {second}");
        }
    }
}

#[tokio::test]
async fn a_path_that_an_earlier_call_led_elsewhere_is_looked_at_again() {
    for target in ["/etc/passwd", "/w/other"] {
        let gate = Gate::new();
        let test = door(tools(&gate));
        let running = test.start(&[("Shell", at("sh")), ("Edit", at("x"))]);
        gate.holds(&["sh"]).await;
        test.fs.links.lock().unwrap().insert("/w/x".into(), target.into());
        gate.open("sh");
        let outcomes = running.await.unwrap();
        let error = outcomes[1].failed_as(ToolErrorClass::Failed);
        assert!(error.contains(target) && !outcomes[1].started, "{error}");
        gate.holds(&["sh"]).await;
    }
}

#[tokio::test]
async fn a_next_call_begins_after_the_end_before_it_is_recorded() {
    for (next, path) in [("Edit", "./a"), ("Read", "/w/a"), ("Shell", "s"), ("Web", "w"), ("Search", "q")] {
        let (gate, log) = (Gate::new(), Gate::new());
        let test = door(tools(&gate));
        test.log.hold_at("tool.done", &log);
        ["a", path].iter().for_each(|name| gate.open(name));
        let running = test.start(&[("Edit", at("a")), (next, at(path))]);
        log.holds(&["tool.done"]).await;
        assert_eq!(gate.order(), ["a"], "{next}");
        log.open("tool.done");
        running.await.unwrap();
        assert_eq!(gate.order(), ["a", path]);
        assert_eq!(test.log.types(), ["tool.start", "tool.done"].repeat(2));
    }
}

#[tokio::test]
async fn a_hundred_calls_on_a_few_files_all_end_in_order_of_their_file() {
    let gate = Gate::new();
    let test = door(tools(&gate));
    let paths: Vec<String> = (0..120).map(|n| format!("{}f{}", "./".repeat(n), n % 7)).collect();
    paths.iter().for_each(|path| gate.open(path));
    let kinds = ["Edit", "Read", "Edit", "Shell", "Search", "Web", "TodoWrite"];
    let calls: Vec<_> = paths.iter().enumerate().map(|(n, path)| (kinds[(n / 3) % kinds.len()], at(path))).collect();
    assert_eq!(test.run(&calls).await.len(), 120);
    for file in 0..7 {
        let of_file = |path: &&String| path.ends_with(&format!("f{file}"));
        let edits = |all: &[String]| {
            let edit = |path: &&String| calls.iter().any(|(kind, at)| *kind == "Edit" && at["path"] == path.as_str());
            all.iter().filter(of_file).filter(edit).cloned().collect::<Vec<_>>()
        };
        assert_eq!(edits(&gate.order()), edits(&paths));
    }
}

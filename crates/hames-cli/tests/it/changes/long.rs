//! A long session that only proposes, against the same one that acts.

use std::os::unix::fs::{PermissionsExt, symlink};

use hames_testkit::{Provider, Script, Turn};
use serde_json::{Value, json};

use super::picture;
use crate::kit::{Ended, User, as_another_user};

/// Edits on edits, files moved by writing and deleting, things replaced by things of another kind, and looks in between.
fn calls() -> Vec<(&'static str, Value)> {
    let write = |path: &str, content: &str| ("Write", json!({"path": path, "content": content}));
    let replace =
        |path: &str, old: &str, new: &str| ("StrReplace", json!({"path": path, "old_string": old, "new_string": new}));
    let delete = |path: &str| ("Delete", json!({"path": path}));
    let read = |path: &str| ("Read", json!({"path": path}));
    let list = |path: &str| ("List", json!({"path": path}));
    vec![
        read("a.txt"),
        replace("a.txt", "one", "ONE"),
        read("a.txt"),
        replace("a.txt", "ONE\ntwo", "ONE and a half\ntwo"),
        (
            "Edit",
            json!({"path": "a.txt", "edits": [
                {"old_string": "three", "new_string": "3"}, {"old_string": "two", "new_string": "2"},
            ]}),
        ),
        read("a.txt"),
        write("new/deep/one.txt", "made\nby hand\n"),
        read("new/deep/one.txt"),
        ("Grep", json!({"pattern": "made|half"})),
        write("run.sh", "#!/bin/sh\necho changed\n"),
        delete("src/old.rs"),
        ("Glob", json!({"pattern": "**/*.rs"})),
        read("src/moved.rs"),
        write("lib/moved.rs", "fn moved() {}\n"),
        delete("src/moved.rs"),
        list("src"),
        ("Delete", json!({"path": "gone", "recursive": true})),
        read("gone/b/c.txt"),
        write("gone/again.txt", "again\n"),
        write(".gitignore", "ignored/\n*.log\n"),
        write("build.log", "not seen: half\n"),
        ("Grep", json!({"pattern": "seen|half"})),
        ("Grep", json!({"pattern": "seen|half", "no_ignore": true, "mode": "files"})),
        delete("link"),
        write("link", "a file now\n"),
        replace("dos.txt", "second", "zweite"),
        replace("wide.txt", "grün", "rot"),
        delete("tool.sh"),
        write("tool.sh", "#!/bin/sh\nexit 1\n"),
        delete("new/deep/one.txt"),
        list("new"),
        delete("empty"),
        write("empty", "now a file\n"),
        delete("plain"),
        write("plain/inner.txt", "now a folder\n"),
        write("same.txt", "changed\n"),
        write("same.txt", "as it was\n"),
        write("temp.txt", "short\n"),
        delete("temp.txt"),
        replace("alias", "led to", "led astray to"),
        read("target.txt"),
        ("Grep", json!({"pattern": "astray|zweite|rot|now a"})),
        list("."),
    ]
}

fn script() -> Script {
    calls()
        .into_iter()
        .fold(Script::new(), |script, (tool, input)| script.turn(Turn::call(tool, input)))
        .respond(|_| Turn::text("done"))
}

fn user() -> (User, Provider) {
    let (user, provider) = User::with(script());
    user.write("a.txt", "one\ntwo\nthree");
    user.write("run.sh", "#!/bin/sh\necho hi\n");
    user.write("tool.sh", "#!/bin/sh\nexit 0\n");
    for (name, mode) in [("run.sh", 0o750), ("tool.sh", 0o755), ("a.txt", 0o600)] {
        std::fs::set_permissions(user.project().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    user.write("src/old.rs", "fn old() {}\n");
    user.write("src/moved.rs", "fn moved() {}\n");
    user.write("src/kept.rs", "fn kept() {}\n");
    user.write("gone/b/c.txt", "c\n");
    user.write("gone/d.bin", b"\0\x01\x02");
    user.write("dos.txt", "first\r\nsecond\r\n");
    let wide: Vec<u8> = [0xfeff].into_iter().chain("grün\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    user.write("wide.txt", wide);
    user.write("plain", "a file\n");
    user.write("same.txt", "as it was\n");
    user.write("target.txt", "led to\n");
    user.write("ignored/x.txt", "half\n");
    std::fs::create_dir(user.project().join("empty")).unwrap();
    symlink("a.txt", user.project().join("link")).unwrap();
    symlink("target.txt", user.project().join("alias")).unwrap();
    (user, provider)
}

/// What the looking tools said, in order.
fn looks(ended: &Ended) -> Vec<(String, String)> {
    let events = ended.json();
    let said = events.iter().map(|line| &line["event"]).filter(|event| event["type"] == "tool.done");
    said.filter(|event| ["Read", "Grep", "Glob", "List"].contains(&event["name"].as_str().unwrap()))
        .map(|event| (event["name"].as_str().unwrap().to_owned(), event["output"].as_str().unwrap().to_owned()))
        .collect()
}

/// How each call ended.
fn ends(ended: &Ended) -> Vec<String> {
    let events = ended.json();
    let ends = events
        .iter()
        .map(|line| &line["event"])
        .filter(|event| matches!(event["type"].as_str(), Some("tool.done" | "tool.error")));
    ends.map(|event| format!("{} {}", event["type"].as_str().unwrap(), event["name"].as_str().unwrap())).collect()
}

const ANALYZE: [&str; 6] = ["run", "--json", "--mode", "analyze", "-s", "long"];

#[test]
fn a_long_session_that_proposes_leaves_after_apply_what_the_same_one_does() {
    assert!(calls().len() >= 40);
    let (acting, _provider) = user();
    let acted = acting.ok(&["run", "--json", "--mode", "build", "--approve", "allow", "go"]);

    let (proposing, _provider) = user();
    let before = picture(&proposing.project(), true);
    let proposed = proposing.ok(&[&ANALYZE[..], &["go"]].concat());
    assert_eq!(picture(&proposing.project(), true), before, "nothing is touched");
    assert_eq!(ends(&proposed), ends(&acted));
    for ((tool, proposed), (_, acted)) in looks(&proposed).iter().zip(looks(&acted)) {
        assert_eq!(*proposed, acted, "{tool}");
    }
    for args in [["changes", "list"], ["changes", "show"]] {
        proposing.ok(&args);
    }
    assert_eq!(picture(&proposing.project(), true), before, "looking changes nothing");

    let applied = proposing.ok(&["changes", "apply"]);
    assert!(applied.out.ends_with("changes of session \"long\"\n"), "{applied:?}");
    assert_eq!(picture(&proposing.project(), false), picture(&acting.project(), false));
    assert_eq!(proposing.ok(&["changes", "list"]).out.lines().count(), 1);
}

#[test]
fn one_file_that_was_changed_meanwhile_refuses_the_whole_set_and_is_named() {
    let (user, _provider) = user();
    user.ok(&[&ANALYZE[..], &["go"]].concat());
    user.write("dos.txt", "somebody else\n");
    std::fs::remove_file(user.project().join("src/moved.rs")).unwrap();
    user.write("new", "in the way\n");
    let before = picture(&user.project(), true);
    let refused = user.run(&["changes", "apply"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert_eq!(picture(&user.project(), true), before);
    let project = user.project().display().to_string();
    for line in ["dos.txt: its content has changed since", "new: nothing was there, and now a file is"] {
        assert!(refused.err.contains(&format!("{project}/{line}")), "{refused:?}");
    }
    // What was to be removed is gone: that is no reason against anything.
    assert!(!refused.err.contains("moved.rs"), "{refused:?}");
    let lines = user.run(&["changes", "apply", "--json"]).json();
    assert!(lines.iter().all(|line| line["outcome"] == "refused"), "{lines:?}");
    let list = user.ok(&["changes", "list"]).out;
    assert!(list.contains("          cannot be applied: its content has changed since\n"), "{list}");
    // The others can be applied by name.
    user.ok(&["changes", "apply", "a.txt", "plain"]);
    assert!(user.project().join("plain/inner.txt").exists());
    assert_eq!(std::fs::read_to_string(user.project().join("dos.txt")).unwrap(), "somebody else\n");
}

/// Calls of every file tool, most of which come to nothing, each for another reason.
fn hopeless(beside: &str) -> Vec<(&'static str, Value)> {
    let mut calls = Vec::new();
    let paths = [
        "a.txt",
        "locked.txt",
        "shut/in.txt",
        "shut/new.txt",
        "none/of/it.txt",
        "link",
        "d",
        "..",
        beside,
        "a\0b",
        ".",
    ];
    for path in paths {
        let edits = json!([{"old_string": "one", "new_string": "two"}]);
        calls.extend([
            ("Read", json!({"path": path})),
            ("Read", json!({"path": path, "offset": 2, "limit": 1})),
            ("List", json!({"path": path})),
            ("Glob", json!({"pattern": "**/*", "path": path})),
            ("Grep", json!({"pattern": "one", "path": path, "no_ignore": true})),
            ("Edit", json!({"path": path, "edits": edits})),
            ("Edit", json!({"path": path, "edits": [edits[0], {"old_string": "not there", "new_string": "x"}]})),
            ("StrReplace", json!({"path": path, "old_string": "nowhere in it", "new_string": "x"})),
            ("StrReplace", json!({"path": path, "old_string": "two", "new_string": "three"})),
            ("Write", json!({"path": path, "content": "written"})),
            ("Delete", json!({"path": path})),
            ("Delete", json!({"path": path, "recursive": true})),
            ("Write", json!({"path": format!("{path}/below/it"), "content": "written"})),
        ]);
    }
    calls
}

#[test]
fn no_file_tool_modifies_anything_whatever_it_is_asked() {
    let scratch = User::new();
    let beside = scratch.folder("beside");
    std::fs::write(beside.join("one.txt"), "one\n").unwrap();
    let calls = hopeless(beside.to_str().unwrap());
    let made = calls.clone().into_iter();
    let script = made.fold(Script::new(), |script, (tool, input)| script.turn(Turn::call(tool, input)));
    let (user, _provider) = User::with(script.respond(|_| Turn::text("done")));
    for path in ["a.txt", "locked.txt", "shut/in.txt", "d/e/f.txt"] {
        user.write(path, "one\n");
    }
    symlink("a.txt", user.project().join("link")).unwrap();
    symlink(&beside, user.project().join("d/out")).unwrap();
    let mode = |path: &str, mode| {
        std::fs::set_permissions(user.project().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("locked.txt", 0o444);
    mode("shut", 0o555);
    let pictures = || (picture(&user.project(), true), picture(&beside, true));
    let before = pictures();
    // Nothing but failures is what is asked for here, and what the guard ends.
    let args = ["--approve", "deny", "--max-steps", "1000", "--guard", "off", "go"];
    let ended = user.ok(&[&ANALYZE[..], &args].concat());
    assert_eq!(pictures(), before);
    let ends = ends(&ended);
    assert_eq!(ends.len(), calls.len());
    for tool in ["Read", "List", "Glob", "Grep", "StrReplace", "Edit", "Write", "Delete"] {
        for end in ["tool.done", "tool.error"] {
            assert!(ends.contains(&format!("{end} {tool}")), "{end} {tool}");
        }
    }
    for args in [["changes", "list"], ["changes", "show"], ["changes", "discard"]] {
        user.ok(&args);
    }
    assert_eq!(pictures(), before);
    mode("shut", 0o755);
}

#[test]
fn as_another_user_no_file_tool_modifies_anything_either() {
    as_another_user(&[
        "changes::long::a_long_session_that_proposes_leaves_after_apply_what_the_same_one_does",
        "changes::long::no_file_tool_modifies_anything_whatever_it_is_asked",
    ]);
}

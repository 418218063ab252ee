//! `hames changes` from outside.

use hames_testkit::{Gate, Provider, Script, Turn};
use serde_json::{Value, json};

use super::picture;
use crate::kit::{PATIENCE, User};

/// A user whose session "s" proposed some changes.
fn user(calls: &[(&str, Value)]) -> (User, Provider) {
    let script = calls.iter().fold(Script::new(), |script, (tool, input)| script.turn(Turn::call(tool, input.clone())));
    let (user, provider) = User::with(script.respond(|_| Turn::text("ok")));
    user.write("a.txt", "old\n");
    user.write("d/x.txt", "x\n");
    user.write("d/y.txt", "y\n");
    (user, provider)
}

fn propose(user: &User) -> crate::kit::Ended {
    user.ok(&["run", "-s", "s", "propose"])
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("Write", json!({"path": path, "content": content}))
}

fn paths(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| line["shown"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_that_proposed_says_what_can_be_done() {
    let (user, _provider) = user(&[write("a.txt", "new\n")]);
    let ran = propose(&user);
    assert!(ran.err.contains("1 proposed change, nothing is modified yet"), "{ran:?}");
    for command in ["show", "apply", "discard"] {
        assert!(ran.err.contains(&format!("`hames changes {command}`")), "{ran:?}");
    }
    assert!(ran.err.contains("Write a.txt (1 line) (proposed)"), "{ran:?}");
    let shown = user.ok(&["sessions", "show", "s"]).out;
    assert!(shown.contains("Write a.txt (1 line) (proposed)") && shown.contains("+new"), "{shown}");
    user.ok(&["changes", "apply"]);
    let shown = user.ok(&["sessions", "show", "s"]).out;
    assert!(shown.contains("[proposal applied: ") && shown.contains("a.txt]"), "{shown}");
    // Nothing is open any more.
    let ran = user.ok(&["run", "-s", "s", "again"]);
    assert!(!ran.err.contains("proposed change"), "{ran:?}");
}

#[test]
fn changes_are_listed_and_shown_for_people_and_for_programs() {
    let (user, _provider) = user(&[
        write("a.txt", "new\n"),
        write("n/new.txt", "1\n2\n"),
        ("Delete", json!({"path": "d/x.txt"})),
        ("Delete", json!({"path": "blob.bin"})),
    ]);
    user.write("blob.bin", b"\0\x01\x02\x03");
    propose(&user);
    let list = user.ok(&["changes", "list"]).out;
    for line in [
        "session \"s\": 4 proposed changes",
        "  edit    a.txt      +1/−1",
        "  remove  blob.bin   binary, 4 bytes",
        "  remove  d/x.txt    +0/−1",
        "  create  n/new.txt  +2/−0",
    ] {
        assert!(list.lines().any(|shown| shown == line), "{line}\n{list}");
    }
    let show = user.ok(&["changes", "show", "a.txt", "n"]).out;
    assert!(show.contains("2 of 4 proposed changes") && !show.contains("x.txt"), "{show}");
    assert!(show.contains("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"), "{show}");
    assert!(show.contains("--- /dev/null\n+++ b/n/new.txt\n"), "{show}");

    let lines = user.ok(&["changes", "list", "--json"]).json();
    assert_eq!(paths(&lines), ["a.txt", "blob.bin", "d/x.txt", "n/new.txt"]);
    assert_eq!(lines[0]["path"], user.project().join("a.txt").display().to_string());
    assert_eq!(lines[0]["change"], "edit");
    assert_eq!((&lines[0]["added"], &lines[0]["removed"], &lines[0]["mismatch"]), (&json!(1), &json!(1), &Value::Null));
    assert_eq!(
        (&lines[1]["change"], &lines[1]["bytes_now"], &lines[1]["added"]),
        (&json!("remove"), &json!(4), &Value::Null)
    );
    let lines = user.ok(&["changes", "show", "--json", "n/new.txt"]).json();
    assert_eq!(lines[0]["diff"], "--- /dev/null\n+++ b/n/new.txt\n@@ -0,0 +1,2 @@\n+1\n+2\n");
}

#[test]
fn a_part_is_applied_or_discarded_with_what_belongs_to_it() {
    let (user, _provider) = user(&[
        write("a.txt", "new\n"),
        write("n/m/new.txt", "1\n"),
        ("Delete", json!({"path": "d", "recursive": true})),
        write("b.txt", "b\n"),
    ]);
    propose(&user);
    let at = |name: &str| user.project().join(name);
    let applied = user.ok(&["changes", "apply", "--json", "n/m/new.txt"]).json();
    assert_eq!(paths(&applied), ["n/m/new.txt"]);
    assert_eq!(applied[0]["outcome"], "applied");
    assert!(at("n/m/new.txt").exists() && !at("b.txt").exists() && at("d/x.txt").exists());
    // A folder that has to keep one file is not removed.
    let discarded = user.ok(&["changes", "discard", "--json", "d/x.txt"]).json();
    assert_eq!(paths(&discarded), ["d", "d/x.txt"]);
    user.ok(&["changes", "apply", "d"]);
    assert!(at("d/x.txt").exists() && !at("d/y.txt").exists());
    let discarded = user.ok(&["changes", "discard"]);
    assert!(discarded.out.contains("discarded 2 changes of session \"s\""), "{discarded:?}");
    assert_eq!(std::fs::read_to_string(at("a.txt")).unwrap(), "old\n");
    assert!(!at("b.txt").exists());
    assert!(user.ok(&["changes", "list"]).out.starts_with("nothing is proposed in "));
}

#[test]
fn what_cannot_be_meant_is_a_wrong_command_line() {
    let (user, _provider) = user(&[write("a.txt", "new\n")]);
    for args in [&["changes", "list"][..], &["changes", "apply"], &["changes", "discard"]] {
        let nothing = user.ok(args);
        assert!(nothing.out.starts_with("nothing is proposed in "), "{nothing:?}");
        assert_eq!(user.ok(&[args, &["--json"]].concat()).out, "");
    }
    propose(&user);
    let before = picture(&user.project(), true);
    for args in [
        &["changes", "apply", "b.txt"][..],
        &["changes", "apply", "a.txt", "d"],
        &["changes", "discard", ""],
        &["changes", "show", "../a.txt"],
        &["changes", "list", "a.txt/x"],
        &["changes", "list", "-s", "nobody"],
        &["changes", "apply", "-C", "missing"],
        &["changes"],
    ] {
        let wrong = user.run(args);
        assert_eq!(wrong.code, 2, "{args:?} {wrong:?}");
        assert!(!wrong.err.is_empty());
    }
    assert_eq!(picture(&user.project(), true), before);
    let folder = user.folder("elsewhere").display().to_string();
    assert!(user.ok(&["changes", "list", "-C", &folder]).out.starts_with("nothing is proposed in "));
    for args in [&["changes", "list", "-C", &folder, "-s", "s"][..], &["changes", "list", "./d/../a.txt"]] {
        let list = user.run(args);
        assert!(list.out.contains("a.txt"), "{args:?} {list:?}");
    }
}

#[test]
fn the_newest_session_with_proposals_is_meant() {
    let script = Script::new().respond(|request| match request.messages().last() {
        Some(last) if last["role"] == "tool" => Turn::text("ok"),
        Some(last) if last.to_string().contains("make one") => {
            Turn::call("Write", json!({"path": "1.txt", "content": "x"}))
        }
        Some(last) if last.to_string().contains("make two") => {
            Turn::call("Write", json!({"path": "2.txt", "content": "x"}))
        }
        _ => Turn::text("ok"),
    });
    let (user, _provider) = User::with(script);
    user.ok(&["run", "-s", "one", "make one"]);
    user.ok(&["run", "-s", "two", "make two"]);
    user.ok(&["run", "-s", "three", "only talk"]);
    assert_eq!(paths(&user.ok(&["changes", "list", "--json"]).json()), ["2.txt"]);
    assert_eq!(paths(&user.ok(&["changes", "list", "--json", "-s", "one"]).json()), ["1.txt"]);
    user.ok(&["changes", "discard"]);
    assert_eq!(paths(&user.ok(&["changes", "list", "--json"]).json()), ["1.txt"]);
}

#[test]
fn names_that_could_rule_the_terminal_are_shown_harmless() {
    let names = ["tab\there", "line\nbreak", "esc\u{1b}[31m", "bidi\u{202e}x", "ünï 漢字", " lead", "-dash", "q\"uote"];
    let calls: Vec<_> = names.iter().map(|name| write(name, "x\u{1b}[2J\n")).collect();
    let (user, _provider) = user(&calls);
    propose(&user);
    for args in [["changes", "list"], ["changes", "show"], ["changes", "apply"]] {
        let said = user.ok(&args).out;
        assert!(!said.contains(['\u{1b}', '\t', '\u{202e}']), "{said}");
        assert!(said.contains("ünï 漢字"));
        if args[1] == "list" {
            assert_eq!(said.lines().count(), names.len() + 1, "{said}");
            assert!(said.contains(r"line\nbreak") && said.contains(r"tab\there"), "{said}");
        }
    }
    for name in names {
        assert!(user.project().join(name).exists(), "{name:?}");
    }
}

#[test]
fn whoever_holds_the_session_is_named_and_looking_needs_no_leave() {
    let gate = Gate::new();
    let script = Script::new()
        .turn(Turn::call("Write", json!({"path": "a.txt", "content": "new\n"})))
        .turn(Turn::text("held").gate(1, gate.clone()));
    let (user, _provider) = User::with(script);
    let run = user.start(&["run", "-s", "s", "propose"]);
    assert!(gate.reached_within(PATIENCE));
    for args in [["changes", "apply"], ["changes", "discard"]] {
        let refused = user.run(&args);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(&format!("in use by hames run (process {})", run.id())), "{refused:?}");
    }
    for args in [["changes", "list"], ["changes", "show"]] {
        assert!(user.ok(&args).out.contains("create"), "{args:?}");
    }
    gate.open();
    assert!(run.wait_with_output().unwrap().status.success());
    user.ok(&["changes", "apply"]);
    assert_eq!(std::fs::read_to_string(user.project().join("a.txt")).unwrap(), "new\n");
}

#[test]
fn the_model_is_told_what_became_of_its_proposals() {
    let (user, provider) = user(&[write("a.txt", "new\n"), write("b.txt", "b\n"), write("c.txt", "c\n")]);
    propose(&user);
    user.ok(&["changes", "apply", "a.txt"]);
    user.ok(&["changes", "discard", "b.txt"]);
    let note = |args: &[&str]| {
        user.ok(args);
        let request = provider.requests().pop().unwrap();
        let users = request.messages().iter().filter(|message| message["role"] == "user").cloned().collect::<Vec<_>>();
        users.last().unwrap().to_string()
    };
    let told = note(&["run", "-s", "s", "--mode", "build", "go on"]);
    assert!(told.contains("The user applied these proposals: a.txt."), "{told}");
    assert!(told.contains("The user discarded these proposals: b.txt."), "{told}");
    assert!(told.contains("Proposals still open, so not on disk: c.txt."), "{told}");
    let told = note(&["run", "-s", "s", "--mode", "analyze", "go on"]);
    assert!(!told.contains("The user") && told.contains("Proposals still open: c.txt."), "{told}");
    assert!(!user.project().join("c.txt").exists());
}

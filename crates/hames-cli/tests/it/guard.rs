//! The loop guard, through the program itself.

use hames_testkit::{Script, Turn};
use serde_json::json;

use crate::kit::{User, body_text};

fn reads(times: usize) -> Script {
    (0..times).fold(Script::new(), |script, _| script.turn(Turn::call("Read", json!({"path": "a.txt"}))))
}

#[test]
fn a_repeated_read_is_answered_from_memory_until_the_file_changes_and_a_loop_ends_the_run_loudly() {
    let (user, provider) = User::with(reads(6).turn(Turn::text("never")));
    user.write("a.txt", "the content\n");
    let ended = user.run(&["run", "read it"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    for part in ["from memory", "nudge 1 of 2", "nudge 2 of 2", "❌ Loop not resolved [tool_repeat]", "hames run -c"] {
        assert!(ended.err.contains(part), "{part}\n{}", ended.err);
    }
    let requests = provider.requests();
    assert_eq!(requests.len(), 5);
    let body = body_text(&requests[3]);
    assert!(body.contains("[Not run again") && body.contains("[Loop guard]"), "{body}");
    assert_eq!(provider.violations().len(), 0, "{:?}", provider.violations());
    let shown = user.ok(&["sessions", "show", "read it"]);
    assert!(shown.out.contains("Loop not resolved [tool_repeat]"), "{}", shown.out);

    // What a command changes is read anew, also where no tool of ours made the change.
    let script = Script::new()
        .turn(Turn::call("Read", json!({"path": "b.txt"})))
        .turn(Turn::call("Read", json!({"path": "b.txt"})))
        .turn(Turn::call("Shell", json!({"command": "echo second > b.txt"})))
        .turn(Turn::call("Read", json!({"path": "b.txt"})))
        .turn(Turn::text("Seen."));
    let (user, provider) = User::with(script);
    user.write("b.txt", "first\n");
    let ended = user.ok(&["run", "--mode", "build", "read it"]);
    assert!(!ended.err.contains("nudge") && !ended.err.contains("from memory"), "{}", ended.err);
    let requests = provider.requests();
    assert!(body_text(requests.last().unwrap()).contains("second"));
}

#[test]
fn the_guard_is_set_by_file_session_and_flag_and_nonsense_is_refused_with_the_scale() {
    // Off: nothing is detected, however often it is read.
    let (user, provider) = User::with(reads(6).turn(Turn::text("Done.")));
    user.write("a.txt", "the content\n");
    let ended = user.ok(&["run", "--guard", "off", "read it"]);
    assert!(!ended.err.contains("nudge") && !ended.err.contains("from memory"), "{}", ended.err);
    assert_eq!(provider.requests().len(), 7);

    // A number of its own, kept with the session; an empty answer is nudged so often.
    let (user, provider) =
        User::with(Script::new().turns([Turn::text(""), Turn::text(""), Turn::text(" "), Turn::text("")]));
    let ended = user.run(&["run", "-s", "s", "--guard-set", "maxNudges=1", "go"]);
    assert_eq!((ended.code, provider.requests().len()), (3, 2), "{ended:?}");
    assert!(
        ended.err.contains("nudge 1 of 1") && ended.err.contains("Loop not resolved [empty_turn]"),
        "{}",
        ended.err
    );
    let ended = user.run(&["run", "-s", "s", "--json", "again"]);
    assert_eq!((ended.code, provider.requests().len()), (3, 4), "{ended:?}");
    assert_eq!(ended.event("run.start")["settings"]["guard"], json!({"max_nudges": 1}));
    assert_eq!(ended.event("loop.stopped")["kind"], "empty_turn");
    assert_eq!(ended.event("done")["reason"], "loop");

    for (set, says) in [
        ("max_nudges=11", "from 1 to 10 in steps of 1"),
        ("reasoning_threshold=NaN", "from 0.05 to 1 in steps of 0.05"),
        ("nudges=1", "max_nudges"),
        ("max_nudges", "NAME=VALUE"),
    ] {
        let ended = user.run(&["run", "--guard-set", set, "go"]);
        assert_eq!(ended.code, 2, "{set}");
        assert!(ended.err.contains(says), "{set}\n{}", ended.err);
    }
    assert_eq!(user.run(&["run", "--guard", "loud", "go"]).code, 2);
}

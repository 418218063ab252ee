//! The settings of one session from the command line: set, shown, taken back, and tried before they are set.

use hames_testkit::{Provider, Script, Turn};
use serde_json::{Value, json};

use crate::kit::User;

/// A user with a session, and the model it talks to.
fn user() -> (User, Provider) {
    let (user, provider) = User::with(Script::new().respond(|_| Turn::text("Noted.")));
    user.ok(&["run", "-s", "s", "hello"]);
    (user, provider)
}

fn set(user: &User, args: &[&str]) -> Value {
    user.ok(&[&["sessions", "set", "s", "--json"], args].concat()).json().remove(0)
}

#[test]
fn every_setting_of_a_session_can_be_set_shown_and_taken_back() {
    let (user, _provider) = user();
    let before = user.ok(&["sessions", "show", "s", "--json"]).out;
    let shown = set(&user, &[]);
    assert_eq!(user.ok(&["sessions", "show", "s", "--json"]).out, before, "showing writes nothing");
    assert_eq!(
        shown["effective"]["compaction"],
        json!({"auto": true, "strategy": "carried", "trigger": 80, "landing": 10})
    );
    assert_eq!(shown["effective"]["max_output_tokens"], 16_384);
    assert_eq!(shown["effective"]["guard"]["max_nudges"], 2);
    assert_eq!(shown["effective"]["guard"].as_object().unwrap().len(), 14, "level, switch and twelve numbers");
    assert!(shown["settings"].get("compaction").is_none(), "{shown}");

    let flags = [
        "--mode",
        "build",
        "--context-window",
        "32000",
        "--max-output-tokens",
        "2000",
        "--compaction",
        "deterministic",
        "--compact-at",
        "60",
        "--compact-keep",
        "5",
        "--summary-model",
        "openai/mock-1",
        "--guard",
        "high",
        "--guard-set",
        "max_nudges=1",
        "--guard-set",
        "guard_response=on",
        "--thinking",
        "low",
        "--max-steps",
        "9",
    ];
    let own = set(&user, &flags)["settings"].clone();
    let expected = json!({
        "mode": "build", "context_window": 32_000, "max_output_tokens": 2_000, "thinking_level": "low", "max_steps": 9,
        "guard": {"level": "high", "guard_response": true, "max_nudges": 1},
        "compaction": {
            "auto": true, "strategy": "deterministic", "trigger": 60, "landing": 5, "summary_model": "openai/mock-1",
        },
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&own[name], value, "{name}");
    }
    // The next run goes by it.
    let run = user.ok(&["run", "-s", "s", "--json", "again"]);
    assert_eq!(run.event("run.start")["settings"]["compaction"], expected["compaction"]);
    assert_eq!(run.event("run.start")["settings"]["context_window"], 32_000);
    let context = user.ok(&["context", "s", "--json"]).json().remove(0);
    assert_eq!((&context["budget"]["window"], &context["strategy"]), (&json!(32_000), &json!("deterministic")));

    let unset = ["--unset", "compaction.trigger", "--unset", "guard.max_nudges", "--unset", "context_window"];
    let back = set(&user, &unset);
    assert_eq!(back["settings"]["compaction"]["trigger"], Value::Null);
    assert_eq!(back["settings"]["compaction"]["landing"], 5);
    assert_eq!(back["effective"]["compaction"]["trigger"], 80);
    assert_eq!(
        (&back["effective"]["guard"]["max_nudges"], &back["settings"]["guard"]["level"]),
        (&json!(3), &json!("high"))
    );
    assert_eq!(back["settings"].get("context_window"), None);
    let shown = user.ok(&["sessions", "set", "s", "--unset", "guard", "--unset", "compaction"]).out;
    assert!(shown.contains("  guard.level") && shown.contains("* mode"), "{shown}");
}

#[test]
fn what_cannot_be_set_is_refused_before_anything_is_written() {
    let (user, _provider) = user();
    let before = user.ok(&["sessions", "show", "s", "--json"]).out;
    for (args, says) in [
        (&["--compact-at", "10"] as &[&str], "20..=95"),
        (&["--compact-keep", "95"], "0..=94"),
        (&["--context-window", "0"], "1.."),
        (&["--guard-set", "max_nudges=99"], "from 1 to 10"),
        (&["--unset", "colour"], "there is no setting \"colour\""),
        (&["--unset", "guard.colour"], "there is no setting"),
        (&["--unset", "mode.x"], "there is no setting"),
        (&["--summary-model", "nobody/x"], "nobody"),
        (&["-m", "nobody/x"], "nobody"),
    ] {
        let ended = user.run(&[&["sessions", "set", "s"], args].concat());
        assert_eq!(ended.code, 2, "{args:?} {ended:?}");
        assert!(ended.err.contains(says), "{args:?}\n{}", ended.err);
    }
    assert_eq!(user.run(&["sessions", "set", "nobody"]).code, 2);
    assert_eq!(user.ok(&["sessions", "show", "s", "--json"]).out, before);
}

#[test]
fn a_dry_run_shows_the_plan_of_settings_that_are_only_tried() {
    let (user, _provider) = user();
    for n in 0..6 {
        user.ok(&[
            "run",
            "-s",
            "s",
            "--compaction",
            "off",
            "--context-window",
            "20000",
            &format!("{n} {}", "word ".repeat(900)),
        ]);
    }
    let before = user.ok(&["sessions", "show", "s", "--json"]).out;
    let plan = |flags: &[&str]| -> Value {
        let plan = user.ok(&[&["compact", "s", "--dry-run", "--json"], flags].concat()).json().remove(0);
        plan["plan"].clone()
    };
    let as_set = plan(&[]);
    assert_eq!(as_set["stage"], "summary");
    assert_eq!(plan(&["--compaction", "deterministic"])["stage"], "rolled");
    let tokens = |plan: &Value, name: &str| plan[name].as_u64().unwrap();
    assert!(tokens(&plan(&["--compact-keep", "30"]), "kept") > tokens(&as_set, "kept"));
    assert!(tokens(&plan(&["--compact-at", "40"]), "trigger") < tokens(&as_set, "trigger"));
    assert!(tokens(&plan(&["--context-window", "12000"]), "trigger") < tokens(&as_set, "trigger"));
    assert_eq!(user.ok(&["sessions", "show", "s", "--json"]).out, before);
    let refused = user.run(&["compact", "s", "--compact-keep", "0"]);
    assert!(refused.code == 2 && refused.err.contains("hames sessions set"), "{refused:?}");
}

//! Answers of a newer server, as this version reads them: whatever is new is left out, and nothing else is.

use hames_protocol::api::{CheckState, Ledger, ProviderTest, SessionActivity, SessionView, Sessions};
use hames_protocol::{Mode, RunResult, Settings};
use serde_json::{Value, json};

fn row() -> Value {
    json!({
        "id": "s", "name": "one", "folder": "/w", "created_at": 1, "updated_at": 2, "last_seq": 3, "turns": 1,
        "mode": "build", "first_line": "go", "state": "running", "last_result": "error", "colour": "green",
    })
}

fn with(mut value: Value, member: &str, to: &str) -> Value {
    value[member] = to.into();
    value
}

#[test]
fn a_list_with_words_that_are_not_known_is_read_all_the_same() {
    let rows = json!({"sessions": [row(), with(row(), "state", "dreaming"), with(row(), "mode", "swarm"),
                                   with(row(), "last_result", "handed_over")], "more": true});
    let Sessions { sessions } = serde_json::from_value(rows).unwrap();
    let read: Vec<_> = sessions.iter().map(|row| (row.state, row.mode, row.last_result)).collect();
    let (running, build, error) = (SessionActivity::Running, Some(Mode::Build), Some(RunResult::Error));
    assert_eq!(
        read,
        [
            (running, build, error),
            (SessionActivity::Unknown, build, error),
            (running, None, error),
            (running, build, None)
        ]
    );
}

#[test]
fn a_session_keeps_the_settings_that_are_known() {
    let settings = json!({"max_steps": 7, "thinking_level": "as long as it takes", "mode": "build", "gait": 3});
    let view = json!({
        "row": row(), "settings": settings, "effective": settings, "pending": [], "paused": false, "todos": [],
        "proposals": [], "window": {"used": 1, "usable": 2, "window": 3},
    });
    let view: SessionView = serde_json::from_value(view).unwrap();
    let known = Settings { max_steps: Some(7), mode: Some(Mode::Build), ..Settings::default() };
    assert_eq!((view.settings, view.effective), (known.clone(), known));
}

#[test]
fn ledgers_and_tests_are_read_all_the_same() {
    let ledger = json!({
        "run": "r", "turn": 1, "mode": "build", "model": "p/m", "started_at": 1, "result": "handed_over", "steps": 1,
        "usage": {},
    });
    assert_eq!(serde_json::from_value::<Ledger>(ledger).unwrap().result, None);
    let checks = json!([{"name": "key", "state": "ok", "what": ""}, {"name": "key", "state": "odd", "what": ""}]);
    let test: ProviderTest = serde_json::from_value(json!({"ok": true, "checks": checks})).unwrap();
    assert_eq!([test.checks[0].state, test.checks[1].state], [CheckState::Ok, CheckState::Unknown]);
}

#[test]
fn results_have_the_names_they_are_written_with() {
    for result in
        [RunResult::Complete, RunResult::Stopped, RunResult::MaxSteps, RunResult::Error, RunResult::Interrupted]
    {
        assert_eq!(json!(result), result.as_str());
        assert_eq!(RunResult::named(result.as_str()), Some(result));
    }
    assert_eq!(RunResult::named("handed_over"), None);
}

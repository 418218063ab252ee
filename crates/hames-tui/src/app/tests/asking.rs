//! What waits for a person: when it comes up, when it goes, and how it comes back.

use hames_protocol::api::Waiting;
use serde_json::{Value, json};

use super::*;

fn event(seq: u64, value: Value) -> Envelope {
    news("s1", seq, serde_json::from_value(value).unwrap())
}

fn call(id: &str) -> Value {
    json!({"call_id": id, "name": "Shell", "reason": "it is outside", "digest": id,
        "label": {"tool": "Shell", "target": id}, "input": {"command": id}})
}

fn asks(seq: u64, id: &str) -> Envelope {
    let mut value = call(id);
    value["type"] = json!("approval.asked");
    event(seq, value)
}

fn answered(seq: u64, id: &str) -> Envelope {
    event(seq, json!({"type": "approval.answered", "call_id": id, "decision": "once", "by": "web", "digest": id}))
}

fn waiting(calls: &[&str]) -> Answer {
    let calls: Vec<Value> = calls.iter().map(|id| call(id)).collect();
    Answer::Waiting(serde_json::from_value::<Waiting>(json!({"approvals": calls, "questions": []})).unwrap())
}

/// Takes in events, and answers what is asked about what waits; says how often it was.
fn hear(app: &mut App, envelope: Envelope, now_waits: &[&str]) -> usize {
    let effects = app.update(Input::News(vec![envelope]), 0);
    give(app, &effects, now_waits)
}

fn give(app: &mut App, effects: &[Effect], now_waits: &[&str]) -> usize {
    let open = asked(effects).into_iter().filter(|(_, request)| matches!(request, Request::Waiting(_)));
    let open: Vec<_> = open.collect();
    for (ticket, _) in &open {
        app.update(Input::Reply(*ticket, Ok(waiting(now_waits))), 0);
    }
    open.len()
}

#[test]
fn what_another_terminal_decides_goes_from_this_one() {
    let mut app = shown(Some(Mode::Build));
    assert_eq!(hear(&mut app, asks(1, "make"), &["make"]), 1);
    assert_eq!(app.top(), "decide");
    hear(&mut app, asks(2, "lint"), &["make", "lint"]);
    assert!(screen(&mut app, 80, 20, 0).contains("Shell make"));
    hear(&mut app, answered(3, "make"), &["lint"]);
    assert!(screen(&mut app, 80, 20, 0).contains("Shell lint"));
    hear(&mut app, answered(4, "lint"), &[]);
    assert_eq!(app.top(), "base");
    // Nothing is asked about where nothing is on the screen.
    assert_eq!(hear(&mut app, answered(5, "other"), &[]), 0);
}

#[test]
fn a_run_that_is_stopped_elsewhere_takes_its_questions_along() {
    let mut app = shown(Some(Mode::Build));
    hear(&mut app, asks(1, "make"), &["make"]);
    let done = event(2, json!({"type": "run.done", "result": "interrupted", "exit_code": 130}));
    hear(&mut app, done, &[]);
    assert_eq!(app.top(), "base");
}

#[test]
fn what_was_put_off_comes_back_by_a_key_or_a_command() {
    let mut app = shown(Some(Mode::Build));
    hear(&mut app, asks(1, "make"), &["make"]);
    app.update(key(KeyCode::Esc), 0);
    assert_eq!(app.top(), "base");
    assert!(screen(&mut app, 100, 20, 0).contains("It still waits: F8 brings it back"));
    let effects = app.update(key(KeyCode::F(8)), 0);
    assert_eq!(give(&mut app, &effects, &["make"]), 1);
    assert_eq!(app.top(), "decide");
    app.update(key(KeyCode::Esc), 0);
    app.update(Input::Paste("/decide".into()), 0);
    let effects = app.update(key(KeyCode::Enter), 0);
    assert_eq!(give(&mut app, &effects, &[]), 1);
    assert_eq!(app.top(), "base");
    assert!(screen(&mut app, 100, 20, 0).contains("Nothing waits for your decision."));
}

#[test]
fn what_is_typed_while_a_question_comes_up_is_in_the_prompt() {
    let mut app = shown(Some(Mode::Build));
    app.update(key(KeyCode::Char('t')), 0);
    hear(&mut app, asks(1, "make"), &["make"]);
    screen(&mut app, 80, 20, 0);
    for (at, c) in "ypewriter".chars().enumerate() {
        app.update(key(KeyCode::Char(c)), 100 * at as u64);
    }
    assert_eq!(app.top(), "decide");
    app.update(key(KeyCode::Esc), 2_000);
    assert!(screen(&mut app, 80, 20, 2_000).contains("› typewriter"));
}

#[test]
fn an_answer_that_is_lost_on_its_way_is_said() {
    let mut app = shown(Some(Mode::Build));
    hear(&mut app, asks(1, "make"), &["make"]);
    screen(&mut app, 80, 20, 0);
    let effects = app.update(key(KeyCode::Char('y')), 5_000);
    let (ticket, _) = asked(&effects).remove(0);
    let error = hames_protocol::api::ApiError::new(hames_protocol::api::ApiErrorCode::Unknown, "the connection broke");
    app.update(Input::Reply(ticket, Err(error)), 5_100);
    assert!(screen(&mut app, 80, 20, 5_100).contains("Not answered: the connection broke"));
}

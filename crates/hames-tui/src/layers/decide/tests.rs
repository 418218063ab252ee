//! What is asked, how it looks, and what answers it.

use serde_json::{Value, json};

use super::super::parts::kit::{Stand, key, row};
use super::*;
use crate::snapshot::compare;

/// A call with what would hide in it.
fn shell(id: &str, grants: bool) -> Value {
    let grants = if grants { json!([{"type": "command", "words": ["cargo", "test"]}]) } else { json!([]) };
    json!({"call_id": id, "name": "Shell", "reason": "it runs outside of the folder", "digest": format!("digest of {id}"),
        "label": {"tool": "Shell", "target": "cargo test"}, "grants": grants,
        "input": {"command": "cargo test\n\trm -rf ~ \u{1b}[8m# \u{202e}gnihtyreve", "timeout_s": 30}})
}

fn write(lines: usize) -> Value {
    let added: String = (1..=lines).map(|n| format!("+line {n}\n")).collect();
    json!({"call_id": "w", "name": "Write", "reason": "/etc/hosts is outside of the folder", "digest": "d",
        "label": {"tool": "Write", "target": "/etc/hosts"}, "input": {"path": "/etc/hosts", "content": "漢字"},
        "diff": {"path": "/etc/hosts", "added": lines, "removed": 1,
            "text": format!("@@ -1 +1,{lines} @@\n-127.0.0.1 localhost\n{added}")}})
}

fn waiting(approvals: Vec<Value>, questions: Vec<Value>) -> Waiting {
    serde_json::from_value(json!({"approvals": approvals, "questions": questions})).unwrap()
}

fn question(id: &str, choices: &[&str]) -> Value {
    json!({"call_id": id, "text": "Which of the two \u{1b}[31mlathes\u{200b}?\nThe old one has no guard.", "digest": id,
        "choices": choices})
}

fn open(stand: &mut Stand, waiting: &Waiting) -> Decide {
    let mut layer = Decide::of(waiting).unwrap();
    stand.screen(&mut layer, 80, 22);
    // Nobody types any more.
    stand.now += UNMEANT;
    layer
}

fn is_passed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Passed)
}

#[test]
fn the_screens() {
    let proposals = Waiting {
        proposals: Some(ProposalsAsked {
            run: "r1".into(),
            paths: vec!["/home/ada/lathe/src/a.rs".into(), "/elsewhere/漢\u{7}.rs".into()],
        }),
        ..waiting(vec![], vec![])
    };
    let mut out = String::new();
    for (name, waiting) in [
        ("a command", waiting(vec![shell("a", true), shell("b", false)], vec![])),
        ("a change that is longer than the screen", waiting(vec![write(60)], vec![])),
        ("a question", waiting(vec![], vec![question("q", &[])])),
        ("a question with choices", waiting(vec![], vec![question("q", &["the old one", "the new one", "neither"])])),
        ("proposals", proposals),
    ] {
        let mut stand = Stand::showing(row("s1", "lathe"));
        let mut layer = open(&mut stand, &waiting);
        if name == "a question" {
            stand.type_text(&mut layer, "the one with 漢");
        }
        out.push_str(&format!("== {name}\n{}", stand.screens(&mut layer)));
        stand.at_every_size(&mut layer);
    }
    compare("layer-decide", &out);
}

#[test]
fn each_key_answers_and_the_answer_is_bound_to_what_was_shown() {
    for (key_, decision, needs_grants) in [
        ('y', Decision::Once, false),
        ('n', Decision::Deny, false),
        ('s', Decision::Session, true),
        ('f', Decision::Folder, true),
    ] {
        for has_grants in [true, false] {
            let mut stand = Stand::showing(row("s1", "lathe"));
            let mut layer = open(&mut stand, &waiting(vec![shell("a", has_grants)], vec![]));
            stand.give(&mut layer, &key(KeyCode::Char(key_)));
            let asked = stand.asked();
            if needs_grants && !has_grants {
                assert_eq!(asked, [], "{key_}");
                continue;
            }
            let [(ticket, Request::AnswerApproval(_, call, answer))] = &asked[..] else { panic!("{asked:?}") };
            assert_eq!((call.as_str(), answer.decision, answer.digest.as_str()), ("a", decision, "digest of a"));
            // A second key does not answer twice.
            stand.give(&mut layer, &key(KeyCode::Char('y')));
            assert_eq!(stand.asked(), []);
            assert!(matches!(layer.answer(*ticket, Ok(Answer::Done), &mut stand.cx()), Outcome::Closed));
        }
    }
}

#[test]
fn what_is_typed_while_it_comes_up_is_the_prompts_and_decides_nothing() {
    let mut stand = Stand::showing(row("s1", "lathe"));
    let mut layer = Decide::of(&waiting(vec![shell("a", true)], vec![])).unwrap();
    stand.screen(&mut layer, 80, 22);
    for code in [KeyCode::Char('y'), KeyCode::Backspace, KeyCode::Char('n'), KeyCode::Enter] {
        stand.now += UNMEANT - 1;
        assert!(is_passed(&stand.give(&mut layer, &key(code))), "{code:?}");
    }
    assert!(is_passed(&stand.give(&mut layer, &Input::Paste("y".into()))));
    stand.now += UNMEANT;
    assert!(is_passed(&stand.give(&mut layer, &Input::Paste("y".into()))), "nothing pasted decides, ever");
    assert_eq!(stand.asked(), []);
    stand.give(&mut layer, &key(KeyCode::Char('x')));
    assert_eq!(stand.asked(), []);
    stand.give(&mut layer, &key(KeyCode::Char('y')));
    assert_eq!(stand.asked().len(), 1);
}

#[test]
fn everything_that_will_run_can_be_read_and_that_there_is_more_is_said() {
    let mut stand = Stand::showing(row("s1", "lathe"));
    let mut layer = open(&mut stand, &waiting(vec![write(200)], vec![]));
    let mut seen = String::new();
    for _ in 0..40 {
        let screen = stand.screen(&mut layer, 60, 12);
        seen.push_str(&screen);
        if !screen.contains("PageDown shows more") {
            break;
        }
        stand.give(&mut layer, &key(KeyCode::PageDown));
    }
    for n in 1..=200 {
        assert!(seen.contains(&format!("+line {n} ")) || seen.contains(&format!("+line {n}\n")), "line {n}");
    }
    let end = stand.screen(&mut layer, 60, 12);
    for _ in 0..5 {
        stand.give(&mut layer, &key(KeyCode::PageDown));
    }
    assert_eq!(stand.screen(&mut layer, 60, 12), end, "there is nothing behind the end");
}

#[test]
fn an_answer_that_is_not_taken_is_said_and_can_be_given_again() {
    let mut stand = Stand::showing(row("s1", "lathe"));
    let mut layer = open(&mut stand, &waiting(vec![shell("a", false)], vec![]));
    stand.give(&mut layer, &key(KeyCode::Char('y')));
    let outcome = stand.answer(&mut layer, Err(ApiError::new(ApiErrorCode::Stale, "It has changed since.")));
    assert!(matches!(outcome, Outcome::Taken));
    assert!(stand.screen(&mut layer, 80, 22).contains("Not answered: It has changed since."));
    stand.give(&mut layer, &key(KeyCode::Char('n')));
    // Somebody else was faster.
    let late = stand.answer(&mut layer, Err(ApiError::new(ApiErrorCode::Answered, "It was answered by ada.")));
    assert!(matches!(late, Outcome::Closed));
    assert_eq!(stand.said(), ["It was answered by ada."]);
}

#[test]
fn what_others_answer_goes_and_what_comes_meanwhile_stands_behind() {
    let mut stand = Stand::showing(row("s1", "lathe"));
    let mut layer = open(&mut stand, &waiting(vec![], vec![question("q", &[])]));
    stand.type_text(&mut layer, "half an answer");
    assert!(layer.waits(&waiting(vec![shell("a", true)], vec![question("q", &[])])));
    let screen = stand.screen(&mut layer, 80, 22);
    assert!(screen.contains("half an answer") && !screen.contains("May this run?"), "{screen}");
    assert!(layer.hint(stand.sight()).ends_with("1 more"));
    // The question was answered elsewhere: the call comes up, and keys do not reach it at once.
    assert!(layer.waits(&waiting(vec![shell("a", true)], vec![])));
    assert!(stand.screen(&mut layer, 80, 22).contains("May this run?"));
    assert!(is_passed(&stand.give(&mut layer, &key(KeyCode::Char('y')))));
    // What is asked about it has changed: it is another question.
    let mut changed = shell("a", true);
    changed["digest"] = json!("another");
    changed["input"]["command"] = json!("cargo clean");
    assert!(layer.waits(&waiting(vec![changed], vec![])));
    assert!(stand.screen(&mut layer, 80, 22).contains("cargo clean"));
    assert!(!layer.waits(&waiting(vec![], vec![])));
}

#[test]
fn a_question_is_answered_by_a_number_by_what_is_marked_or_in_words() {
    let many: Vec<String> = (1..=12).map(|n| format!("choice {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (keys, answer) in [
        (vec![KeyCode::Char('3')], "choice 3"),
        (vec![KeyCode::Enter], "choice 1"),
        (vec![KeyCode::Down, KeyCode::Enter], "choice 2"),
        (vec![KeyCode::Up, KeyCode::Enter], "choice 12"),
    ] {
        let mut stand = Stand::showing(row("s1", "lathe"));
        let mut layer = open(&mut stand, &waiting(vec![], vec![question("q", &many)]));
        for code in keys {
            stand.give(&mut layer, &key(code));
            stand.screen(&mut layer, 80, 22);
        }
        let asked = stand.asked();
        let [(_, Request::AnswerQuestion(_, _, given))] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(given.answer, answer);
    }
    let mut stand = Stand::showing(row("s1", "lathe"));
    let mut layer = open(&mut stand, &waiting(vec![], vec![question("q", &[])]));
    stand.give(&mut layer, &key(KeyCode::Enter));
    assert_eq!(stand.asked(), [], "nothing is no answer");
    stand.give(&mut layer, &Input::Paste("y\nn ".into()));
    stand.type_text(&mut layer, "neithe");
    stand.give(&mut layer, &key(KeyCode::Left));
    stand.type_text(&mut layer, "h");
    stand.give(&mut layer, &key(KeyCode::Enter));
    let asked = stand.asked();
    let [(_, Request::AnswerQuestion(_, _, given))] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(given.answer, "y n neithhe");
}

#[test]
fn later_closes_it_and_says_how_it_comes_back() {
    let mut stand = Stand::showing(row("s1", "lathe"));
    let mut layer = open(&mut stand, &waiting(vec![shell("a", true)], vec![]));
    assert!(matches!(stand.give(&mut layer, &key(KeyCode::Esc)), Outcome::Closed));
    assert!(stand.said()[0].starts_with("It still waits: F8 brings it back"));
    assert_eq!(stand.asked(), []);
}

#[test]
fn those_who_read_lines_are_told_everything_too() {
    let asked: ApprovalAsked = serde_json::from_value(shell("a", true)).unwrap();
    assert_eq!(
        approval_lines(&asked),
        [
            "it runs outside of the folder",
            "command: cargo test",
            "  \\trm -rf ~ \\e[8m# \\u{202e}gnihtyreve",
            "timeout_s: 30",
            "It holds characters that would not show, or would move others: they are written out.",
            "could be allowed from now on: exactly the command cargo test",
        ]
    );
}

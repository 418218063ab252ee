use hames_protocol::Envelope;
use hames_protocol::api::Changes;
use ratatui::crossterm::event::KeyCode;

use super::super::parts::kit::{Stand, click, key, row};
use super::*;
use crate::Effect;
use crate::snapshot::compare;

const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,4 @@\n fn main() {\n-    let count = 1;\n+    let count = 22;\n+    // -- more\n }\n";

fn change(path: &str, diff: Option<&str>, added: u64, removed: u64) -> Change {
    Change { path: path.into(), kind: "write".into(), diff: diff.map(str::to_owned), added, removed, conflict: None }
}

fn three() -> Vec<Change> {
    let mut sql = change(
        "/home/ada/lathe/db/設計/\u{1b}[31mold.zz",
        Some("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- a comment\n-\u{202e}gone\n+kept\u{7}\n"),
        1,
        2,
    );
    sql.conflict = Some("the file was changed after the proposal\nby somebody".into());
    let mut gone = change("/home/ada/lathe/empty", None, 0, 0);
    gone.kind = "remove".into();
    vec![sql, change("/home/ada/lathe/src/lib.zz", Some(DIFF), 2, 1), gone, change("/elsewhere/far.bin", None, 0, 0)]
}

fn open(stand: &mut Stand, changes: Vec<Change>) -> Proposed {
    let mut layer = Proposed::new(&mut stand.cx());
    stand.answer(&mut layer, Ok(Answer::Changes(Changes { changes })));
    layer
}

fn stand() -> Stand {
    Stand::showing(row("s1", "lathe"))
}

/// The one thing that was asked: `apply` or `discard`, and of which paths.
fn decided(stand: &mut Stand) -> Option<(&'static str, Vec<String>)> {
    match &stand.asked()[..] {
        [] => None,
        [(_, Request::ApplyChanges(_, paths))] => Some(("apply", paths.clone())),
        [(_, Request::DiscardChanges(_, paths))] => Some(("discard", paths.clone())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_screens() {
    let mut stand = stand();
    let mut out = stand.screens(&mut open_and(&mut Stand::default(), |_, _| {}));
    let mut layer = open(&mut stand, vec![]);
    out.push_str(&stand.screens(&mut layer));
    let mut layer = open(&mut stand, three());
    out.push_str(&stand.screens(&mut layer));
    for code in [KeyCode::Char(' '), KeyCode::Char('d')] {
        stand.give(&mut layer, &key(code));
    }
    out.push_str(&stand.screens(&mut layer));
    let mut layer = open(&mut stand, three());
    stand.give(&mut layer, &key(KeyCode::Char('A')));
    stand.answer(&mut layer, Err(stale()));
    out.push_str(&stand.screens(&mut layer));
    compare("layer-changes", &out);
}

fn stale() -> ApiError {
    let text = "Nothing was applied, because a file has changed since it was proposed.\n/home/ada/lathe/db/old.zz: the \
                file was changed\n/home/ada/lathe/src/lib.zz: \u{1b}[2Jit is gone";
    ApiError::new(ApiErrorCode::Stale, text)
}

fn open_and(stand: &mut Stand, with: impl FnOnce(&mut Proposed, &mut Stand)) -> Proposed {
    let mut layer = Proposed::new(&mut stand.cx());
    with(&mut layer, stand);
    layer
}

#[test]
fn a_key_decides_about_what_is_marked_else_about_what_is_chosen() {
    let paths = |at: &[usize]| at.iter().map(|at| three()[*at].path.clone()).collect::<Vec<_>>();
    for (keys, asked) in [
        (vec![KeyCode::Char('a')], Some(("apply", paths(&[0])))),
        (vec![KeyCode::Down, KeyCode::Char('a')], Some(("apply", paths(&[1])))),
        (
            vec![KeyCode::Char(' '), KeyCode::Down, KeyCode::Char(' '), KeyCode::Char('a')],
            Some(("apply", paths(&[0, 2]))),
        ),
        // Marked and taken back: what is chosen counts again.
        (vec![KeyCode::Char(' '), KeyCode::Up, KeyCode::Char(' '), KeyCode::Char('a')], Some(("apply", paths(&[1])))),
        (vec![KeyCode::Char('A')], Some(("apply", paths(&[0, 1, 2, 3])))),
        (vec![KeyCode::Char('d')], None),
        (vec![KeyCode::Char('d'), KeyCode::Enter], None),
        (vec![KeyCode::Char('d'), KeyCode::Esc], None),
        (vec![KeyCode::Char('d'), KeyCode::Char('y')], Some(("discard", paths(&[0])))),
        (vec![KeyCode::Char('D'), KeyCode::Right, KeyCode::Enter], Some(("discard", paths(&[0, 1, 2, 3])))),
    ] {
        let mut stand = stand();
        let mut layer = open(&mut stand, three());
        for code in &keys {
            stand.give(&mut layer, &key(*code));
        }
        assert_eq!(decided(&mut stand), asked, "{keys:?}");
    }
}

#[test]
fn nothing_pasted_decides_and_nothing_is_decided_twice() {
    let mut stand = stand();
    let mut layer = open(&mut stand, three());
    stand.give(&mut layer, &Input::Paste("aAdDy".into()));
    assert_eq!(decided(&mut stand), None);
    stand.give(&mut layer, &key(KeyCode::Char('a')));
    let asked = stand.asked();
    stand.give(&mut layer, &key(KeyCode::Char('a')));
    assert_eq!(decided(&mut stand), None);
    assert_eq!(stand.said(), ["The last decision is not answered yet."]);
    let settled = ChangesSettled {
        paths: vec![three()[0].path.clone()],
        left: vec![("/home/ada/lathe/b".into(), "busy".into())],
    };
    layer.answer(asked[0].0, Ok(Answer::Settled(settled)), &mut stand.cx());
    let screen = stand.screen(&mut layer, 80, 20);
    assert!(screen.contains("Applied 1 change.") && screen.contains("b: busy"), "{screen}");
    // What is left is read again.
    assert!(matches!(&stand.asked()[..], [(_, Request::Changes(_))]));
}

#[test]
fn what_happens_meanwhile_is_read_and_what_is_outdated_is_read_again() {
    let mut stand = stand();
    let mut layer = Proposed::new(&mut stand.cx());
    let [(first, _)] = stand.asked()[..] else { panic!() };
    let proposed = Event::ChangesDiscarded(hames_protocol::ChangesDiscarded { paths: vec![] });
    let news = Input::News(vec![Envelope::detached(9, proposed)]);
    assert!(matches!(stand.give(&mut layer, &news), Outcome::Passed));
    assert!(stand.asked().is_empty(), "one question at a time");
    layer.answer(first, Ok(Answer::Changes(Changes { changes: three() })), &mut stand.cx());
    let [(second, _)] = stand.asked()[..] else { panic!("it was outdated") };
    stand.give(&mut layer, &key(KeyCode::Down));
    // Somebody else's answer, and the old one once more, change nothing.
    assert!(matches!(layer.answer(first, Ok(Answer::Done), &mut stand.cx()), Outcome::Passed));
    layer.answer(second, Ok(Answer::Changes(Changes { changes: three()[1..].to_vec() })), &mut stand.cx());
    stand.give(&mut layer, &key(KeyCode::Char('a')));
    assert_eq!(decided(&mut stand), Some(("apply", vec![three()[1].path.clone()])), "the choice stays on its file");
}

#[test]
fn a_refused_apply_lists_what_stands_in_its_way() {
    let mut stand = stand();
    let mut layer = open(&mut stand, three());
    stand.give(&mut layer, &key(KeyCode::Char('A')));
    stand.answer(&mut layer, Err(stale()));
    let screen = stand.screen(&mut layer, 100, 30);
    for text in ["Nothing was applied", "/home/ada/lathe/src/lib.zz: \\x1b[2Jit is gone", "Discard those"] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
}

#[test]
fn the_mouse_chooses_and_the_wheel_scrolls_the_diff() {
    let mut stand = stand();
    let mut layer = open(&mut stand, three());
    stand.screen(&mut layer, 80, 24);
    stand.give(&mut layer, &click(5, 2));
    stand.give(&mut layer, &key(KeyCode::Char('a')));
    assert_eq!(decided(&mut stand), Some(("apply", vec![three()[1].path.clone()])));
}

#[test]
fn a_diff_of_any_length_is_drawn_and_code_has_its_colours() {
    let mut stand = stand();
    let long: String = (0..200_000).map(|n| format!("+let a{n} = {n};\n")).collect();
    let wide = format!("+{}\n", "wide ".repeat(200_000));
    let diff = format!("--- a/x\n+++ b/x\n@@ -0,0 +1,200001 @@\n{long}{wide}");
    let mut layer = open(&mut stand, vec![change("/home/ada/lathe/x.rs", Some(&diff), 200_001, 0)]);
    let area = Rect::new(0, 0, 80, 24);
    let colours = |layer: &mut Proposed, stand: &Stand| {
        let mut buf = Buffer::empty(area);
        layer.draw(area, &mut buf, stand.sight());
        buf.content.iter().map(|cell| cell.fg).collect::<std::collections::HashSet<_>>().len()
    };
    let plain = colours(&mut layer, &stand);
    assert!(layer.wake_at(0).is_some(), "colours are on their way");
    layer.diff.wait();
    assert!(colours(&mut layer, &stand) > plain, "words of a language have their own");
    stand.give(&mut layer, &Input::Key(KeyEvent::new(KeyCode::End, ratatui::crossterm::event::KeyModifiers::CONTROL)));
    let screen = stand.screen(&mut layer, 80, 24);
    assert!(screen.contains("wide wide"), "{screen}");
    stand.at_every_size(&mut layer);
    assert!(!stand.effects.iter().any(|effect| matches!(effect, Effect::Ask(..))));
}

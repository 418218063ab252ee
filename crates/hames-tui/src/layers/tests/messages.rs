use hames_protocol::api::{LogPage, SessionCutDone};
use hames_protocol::{Envelope, Event};
use serde_json::{Value, json};

use super::super::messages::{For, Messages};
use super::kit::UNIX;
use super::*;

fn event(seq: u64, run: &str, value: Value) -> Envelope {
    let event: Event = serde_json::from_value(value).unwrap();
    assert!(!matches!(event, Event::Unknown(_)), "{event:?}");
    let at = UNIX - (1_000 - seq) * 60_000;
    Envelope { seq: Some(seq), session: Some("s1".into()), run: Some(run.into()), at, ..Envelope::detached(seq, event) }
}

/// A session of so many turns, six events each: its start, a message, a proposal, an answer and the end.
fn log(turns: u64) -> Vec<Envelope> {
    let mut all = vec![event(1, "", json!({"type": "session.created", "name": "n", "folder": "/w"}))];
    for turn in 0..turns {
        let (seq, run) = (2 + turn * 5, format!("r{turn}"));
        let text = if turn == 2 { format!("message {turn} {ODD}\nand more") } else { format!("message {turn}") };
        all.push(event(seq, &run, json!({"type": "run.start", "mode": "build", "model": "a/b"})));
        all.push(event(seq + 1, &run, json!({"type": "message.user", "parts": [{"type": "text", "text": text}]})));
        all.push(event(
            seq + 2,
            &run,
            json!({"type": "change.proposed", "path": format!("/home/ada/lathe/src/{turn}.rs"), "call_id": "c"}),
        ));
        all.push(event(seq + 3, &run, json!({"type": "text.done", "index": 0, "text": format!("answer {turn}")})));
        all.push(event(seq + 4, &run, json!({"type": "run.done", "result": "complete", "exit_code": 0})));
    }
    all
}

/// Answers the question for a page from a log, at most so many events.
fn page(stand: &mut Stand, layer: &mut Messages, log: &[Envelope], most: usize) -> Outcome {
    let (ticket, request) = one(stand);
    let Request::Page { before, .. } = request else { panic!("{request:?}") };
    let end = log.partition_point(|event| event.seq < Some(before.unwrap_or(u64::MAX)));
    let from = end.saturating_sub(most);
    let page = LogPage { events: log[from..end].to_vec(), older: from > 0, newer: false };
    layer.answer(ticket, Ok(Answer::Page(page)), &mut stand.cx())
}

fn stand() -> Stand {
    let mut stand = Stand::showing(row("s1", "mend the lathe"));
    stand.face.view.as_mut().unwrap().proposals = vec!["/home/ada/lathe/src/2.rs".into(), "/other.rs".into()];
    stand
}

#[test]
fn screens_of_choosing_and_of_what_goes() {
    let mut stand = stand();
    let mut cut = Messages::of(row("s1", "mend the lathe"), For::Cut, None, &mut stand.cx());
    page(&mut stand, &mut cut, &log(4), 1_000);
    let mut shown = stand.screens(&mut cut);
    stand.give(&mut cut, &key(KeyCode::Up));
    assert_eq!(went(&stand.give(&mut cut, &key(KeyCode::Enter))), "taken");
    shown.push_str("what goes\n");
    shown.push_str(&stand.screens(&mut cut));
    compare("layer-cut", &shown);
    stand.at_every_size(&mut cut);
    let mut branch = Messages::of(row("s1", "mend the lathe"), For::Branch, None, &mut stand.cx());
    page(&mut stand, &mut branch, &log(4), 1_000);
    compare("layer-branch-at", &stand.screens(&mut branch));
}

#[test]
fn a_cut_says_how_much_goes_and_gives_the_message_back() {
    let mut stand = stand();
    let mut cut = Messages::of(row("s1", "mend the lathe"), For::Cut, None, &mut stand.cx());
    page(&mut stand, &mut cut, &log(4), 1_000);
    stand.give(&mut cut, &key(KeyCode::Up));
    stand.give(&mut cut, &key(KeyCode::Enter));
    let shown = stand.screen(&mut cut, 100, 22);
    assert!(shown.contains("2 messages of yours, 2 answers, 0 calls; 10 events in all."), "{shown}");
    assert!(shown.contains("What was proposed there goes too: src/2.rs."), "{shown}");
    // What comes meanwhile counts.
    let news = event(22, "r9", json!({"type": "text.done", "index": 0, "text": "late"}));
    stand.give(&mut cut, &Input::News(vec![news]));
    assert!(stand.screen(&mut cut, 100, 22).contains("3 answers, 0 calls; 11 events"));
    assert_eq!(went(&stand.give(&mut cut, &key(KeyCode::Enter))), "taken", "Enter alone means no");
    assert_eq!(stand.asked(), []);
    stand.give(&mut cut, &key(KeyCode::Enter));
    stand.give(&mut cut, &key(KeyCode::Char('y')));
    let (ticket, request) = one(&mut stand);
    assert_eq!(request, Request::Cut("s1".into(), 13));
    let done = SessionCutDone { seq: 23, removed: 11, suggest_vacuum: true };
    assert_eq!(went(&cut.answer(ticket, Ok(Answer::Cut(done)), &mut stand.cx())), "closed");
    assert!(stand.said()[0].starts_with("11 events are gone; the message is in the prompt. /vacuum"));
    let [Effect::Draft(session, text)] = &effects(&mut stand)[..] else { panic!() };
    assert_eq!((session.as_str(), text.as_str()), ("s1", format!("message 2 {ODD}\nand more").as_str()));
}

#[test]
fn a_refused_cut_says_why_and_changes_nothing() {
    let mut stand = stand();
    let mut cut = Messages::of(row("s1", "mend the lathe"), For::Cut, None, &mut stand.cx());
    page(&mut stand, &mut cut, &log(2), 1_000);
    stand.give(&mut cut, &key(KeyCode::Enter));
    stand.give(&mut cut, &key(KeyCode::Char('y')));
    stand.answer(&mut cut, refusal(ApiErrorCode::Busy, "A run goes on; stop it first."));
    assert!(stand.screen(&mut cut, 80, 22).contains("It could not be cut: A run goes on; stop it first."));
    assert_eq!(went(&stand.give(&mut cut, &key(KeyCode::Esc))), "taken", "back to the list");
    assert_eq!(went(&stand.give(&mut cut, &key(KeyCode::Esc))), "closed");
    assert_eq!(effects(&mut stand), []);
}

#[test]
fn older_messages_come_where_somebody_goes_near_them() {
    let mut stand = stand();
    let log = log(100);
    let mut cut = Messages::of(row("s1", "x"), For::Cut, None, &mut stand.cx());
    page(&mut stand, &mut cut, &log, 200);
    assert_eq!(stand.asked(), [], "far enough away");
    for _ in 0..25 {
        stand.give(&mut cut, &key(KeyCode::Up));
    }
    let chosen = |stand: &Stand, cut: &mut Messages| {
        let shown = stand.screen(cut, 60, 22);
        shown.lines().find(|line| line.contains("› ") && line.contains("message")).unwrap_or_default().to_owned()
    };
    let before = chosen(&stand, &mut cut);
    page(&mut stand, &mut cut, &log, 200);
    assert_eq!(chosen(&stand, &mut cut), before, "the choice stays");
    stand.give(&mut cut, &key(KeyCode::Home));
    page(&mut stand, &mut cut, &log, 200);
    assert_eq!(stand.asked(), []);
    stand.give(&mut cut, &key(KeyCode::Home));
    assert!(stand.screen(&mut cut, 60, 22).contains("message 0"));
}

#[test]
fn the_marked_message_is_meant_at_once_however_far_back() {
    let mut stand = stand();
    let log = log(100);
    // An answer is marked: its message is where a cut begins.
    let mut cut = Messages::of(row("s1", "x"), For::Cut, Some(30), &mut stand.cx());
    for _ in 0..3 {
        page(&mut stand, &mut cut, &log, 120);
    }
    assert_eq!(went(&page(&mut stand, &mut cut, &log, 120)), "taken");
    let shown = stand.screen(&mut cut, 100, 22);
    assert!(shown.contains("Your message \"message 5\""), "{shown}");
    let mut branch = Messages::of(row("s1", "x"), For::Branch, Some(500), &mut stand.cx());
    assert_eq!(went(&page(&mut stand, &mut branch, &log, 120)), "branch");
}

#[test]
fn a_copy_names_what_is_copied() {
    let mut stand = stand();
    let mut branch = Messages::of(row("s1", "x"), For::Branch, None, &mut stand.cx());
    page(&mut stand, &mut branch, &log(3), 1_000);
    let mut says = Vec::new();
    for _ in 0..4 {
        let outcome = stand.give(&mut branch, &key(KeyCode::Enter));
        let Outcome::Opened(mut form) = outcome else { panic!("{}", went(&outcome)) };
        let shown = stand.screen(form.as_mut(), 120, 22);
        let line = shown.lines().find(|line| line.contains("opied")).unwrap_or_default();
        says.push(line.trim_matches(|c: char| !c.is_alphanumeric() && c != '.').trim().to_owned());
        stand.give(form.as_mut(), &key(KeyCode::Enter));
        let Request::Branch(_, asked) = one(&mut stand).1 else { panic!() };
        says.push(format!("{:?}", asked.up_to_seq));
        stand.give(&mut branch, &key(KeyCode::Up));
    }
    assert_eq!(
        says,
        [
            "Everything that was said is copied.",
            "None",
            "Copied is everything up to and with the answer \"answer 2\": 6 messages.",
            "None",
            "Copied is what stands before your message \"message 2 漢字 👩‍👩‍👧 e",
            "Some(11)",
            "Copied is everything up to and with the answer \"answer 1\": 4 messages.",
            "Some(11)",
        ]
    );
}

#[test]
fn an_empty_session_and_one_that_cannot_be_read_say_so() {
    let mut stand = stand();
    let mut cut = Messages::of(row("s1", "x"), For::Cut, None, &mut stand.cx());
    page(&mut stand, &mut cut, &log(0), 1_000);
    assert!(stand.screen(&mut cut, 80, 22).contains("Nothing was said in this session yet."));
    assert_eq!(went(&stand.give(&mut cut, &key(KeyCode::Enter))), "taken");
    let mut cut = Messages::of(row("s1", "x"), For::Cut, None, &mut stand.cx());
    stand.answer(&mut cut, refusal(ApiErrorCode::NotFound, "There is no such session."));
    assert!(stand.screen(&mut cut, 80, 22).contains("The messages cannot be read: There is no such session."));
}

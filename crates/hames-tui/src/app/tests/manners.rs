//! Manners: what is said while nobody looks, what takes long, what is copied, what stays as it was.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use serde_json::{Value, json};

use super::*;
use crate::Recalled;

fn event(seq: u64, at: u64, value: Value) -> Envelope {
    Envelope { at, ..news("s1", seq, serde_json::from_value(value).unwrap()) }
}

fn told(effects: &[Effect]) -> Vec<String> {
    let told = |effect: &Effect| if let Effect::Notify(text) = effect { Some(text.clone()) } else { None };
    effects.iter().filter_map(told).collect()
}

#[test]
fn a_long_run_that_ends_and_a_question_are_told_where_nobody_looks() {
    let done = |result: &str| json!({"type": "run.done", "result": result, "exit_code": 0});
    let approval = json!({"type": "approval.asked", "call_id": "c", "name": "Shell", "reason": "r", "digest": "d",
        "label": {"tool": "Shell", "target": "make"}, "input": {}});
    let question = json!({"type": "question.asked", "call_id": "c", "text": "which?", "digest": "d"});
    for (what, looks, after, expected) in [
        (done("complete"), false, 10_000, vec!["mend the lathe is done"]),
        (done("complete"), false, 9_999, vec![]),
        (done("complete"), true, 60_000, vec![]),
        (done("error"), false, 60_000, vec!["mend the lathe has stopped"]),
        // Whoever stopped it knows.
        (done("interrupted"), false, 60_000, vec![]),
        (approval.clone(), false, 0, vec!["mend the lathe asks whether a call may run"]),
        (question.clone(), false, 0, vec!["mend the lathe has a question"]),
        (approval, true, 0, vec![]),
    ] {
        let mut app = shown(Some(Mode::Build));
        app.update(Input::Focus(looks), 0);
        let effects = app.update(Input::News(vec![event(1, after, what.clone())]), after);
        assert_eq!(told(&effects), expected, "{what} after {after} ms, looked at: {looks}");
    }
}

#[test]
fn what_takes_over_half_a_second_is_shown_until_it_is_answered() {
    let mut app = shown(None);
    app.progress = Progress::default();
    for (effect, says) in [
        (Effect::Ask(Ticket(901), Box::new(Request::Vacuum)), "making the database smaller"),
        (Effect::SaveExport(Ticket(902), "s1".into(), "x.jsonl".into()), "writing the export"),
        (Effect::ReadFile(Ticket(903), "x.png".into()), "reading the file"),
        (Effect::PasteImage(Ticket(904)), "asking for the clipboard"),
    ] {
        let (Effect::Ask(ticket, _)
        | Effect::SaveExport(ticket, ..)
        | Effect::ReadFile(ticket, _)
        | Effect::PasteImage(ticket)) = &effect
        else {
            panic!()
        };
        let ticket = *ticket;
        let mut effects = vec![effect];
        app.settle(10_000, &mut effects);
        assert!(effects.contains(&Effect::WakeAt(10_500)), "{effects:?}");
        app.update(Input::Wake, 10_400);
        assert!(!screen(&mut app, 100, 12, 10_400).contains(says), "{says}: not before half a second");
        let effects = app.update(Input::Wake, 10_500);
        assert!(screen(&mut app, 100, 12, 10_500).contains(&format!("{says} 0 s")), "{says}");
        assert!(effects.contains(&Effect::WakeAt(11_000)), "{effects:?}");
        app.update(Input::Wake, 12_000);
        assert!(screen(&mut app, 100, 12, 12_000).contains(&format!("{says} 2 s")), "{says}");
        app.update(Input::Reply(ticket, Ok(Answer::Done)), 12_100);
        assert!(!screen(&mut app, 100, 12, 12_100).contains(says), "{says}");
    }
}

#[test]
fn the_time_of_a_run_is_shown_and_changes_each_second() {
    let mut app = shown(Some(Mode::Build));
    app.progress = Progress::default();
    app.set_time(1_000_000, 0);
    app.face.view.as_mut().unwrap().run.as_mut().unwrap().started_at = 998_700;
    let effects = app.update(Input::Focus(true), 0);
    assert!(screen(&mut app, 100, 12, 0).contains("thinking 1s"));
    assert!(effects.contains(&Effect::WakeAt(700)), "{effects:?}");
    assert!(screen(&mut app, 100, 12, 700).contains("thinking 2s"));
    assert!(screen(&mut app, 100, 12, 3_725_300).contains("thinking 1h 2m"));
}

#[test]
fn the_status_line_keeps_what_counts_whatever_a_call_is_called() {
    let mut app = shown(Some(Mode::Build));
    app.progress = Progress::default();
    let view = app.face.view.as_mut().unwrap();
    view.row.name = "漢字".repeat(60);
    view.run.as_mut().unwrap().doing =
        "Shell for i in 1 2 3 4; do echo running; sleep 1; done; echo and more of it".repeat(3);
    view.effective.model = "a-provider/with-a-model-of-a-very-long-name-that-nobody-can-remember".parse().ok();
    let message =
        |delivery, id: &str| Pending { id: id.into(), parts: vec![Part::text(id)], delivery, idempotency_id: None };
    let added = |seq, delivery, id| news("s1", seq, Event::PendingAdded(message(delivery, id)));
    app.update(Input::News(vec![added(1, Delivery::Queue, "later"), added(2, Delivery::Steer, "soon")]), 5_000);
    let now = screen(&mut app, 100, 14, 5_000);
    let status = now.lines().last().unwrap();
    for part in ["Shell for i in 1 2 3 4; do", "… 5s", "1 joining, 1 queued", "漢 字"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    assert!(now.find("soon") < now.find("later"), "in the order of delivery: {now}");
}

#[test]
fn a_copy_is_confirmed_and_one_that_is_too_long_says_so() {
    let mut app = shown(None);
    let answer = |seq, text: &str| event(seq, 0, json!({"type": "text.done", "index": 0, "text": text}));
    app.update(Input::News(vec![answer(1, "twelve chars")]), 0);
    let alt_c = Input::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::ALT));
    let effects = app.update(alt_c.clone(), 0);
    assert!(effects.contains(&Effect::Copy("twelve chars".into())));
    assert!(screen(&mut app, 100, 12, 0).contains("Copied 12 characters."));
    app.update(Input::News(vec![answer(2, &"漢".repeat(50_000))]), 0);
    app.update(alt_c, 0);
    let now = screen(&mut app, 100, 12, 0);
    assert!(now.contains("Copied the first 72.2 KB of 146.4 KB: terminals take no more at once."), "{now}");
}

#[test]
fn that_the_server_was_stopped_is_said_until_it_is_there_again() {
    let mut app = shown(None);
    app.update(Input::Link(Link::Stopped), 0);
    assert!(screen(&mut app, 100, 12, 0).contains("The server was stopped."));
    app.update(Input::Link(Link::Up { notice: None }), 0);
    assert!(!screen(&mut app, 100, 12, 0).contains("The server was stopped."));
    app.face.notice = Some("Something else.".into());
    app.update(Input::Link(Link::Up { notice: None }), 0);
    assert!(screen(&mut app, 100, 12, 0).contains("Something else."));
}

#[test]
fn the_mouse_is_left_to_the_terminal_and_taken_back() {
    let mut app = shown(None);
    app.face.has_mouse = true;
    let effects = app.update(key(KeyCode::F(6)), 0);
    assert!(effects.contains(&Effect::Mouse(false)) && !app.face.has_mouse);
    assert!(screen(&mut app, 100, 12, 0).contains("it selects by itself. F6 takes it back."));
    let effects = app.update(key(KeyCode::F(6)), 0);
    assert!(effects.contains(&Effect::Mouse(true)) && app.face.has_mouse);
}

/// What a session has to say when it is read.
fn pages(app: &mut App, effects: &[Effect], events: &[Envelope]) {
    for (ticket, request) in asked(effects) {
        let answer = match request {
            Request::View(id) => Answer::View(Box::new(view(id.as_str(), None))),
            Request::Page { session, .. } => {
                let of = |e: &&Envelope| e.session.as_ref() == Some(&session);
                Answer::Page(LogPage {
                    events: events.iter().filter(of).cloned().collect(),
                    older: false,
                    newer: false,
                })
            }
            _ => continue,
        };
        app.update(Input::Reply(ticket, Ok(answer)), 0);
    }
}

#[test]
fn what_was_opened_stays_open_through_a_gap_another_session_and_another_terminal() {
    let thought = |session: &str| {
        let event = json!({"type": "reasoning.done", "index": 0, "text": "a long\nthought of it"});
        news(session, 1, serde_json::from_value(event).unwrap())
    };
    let events = [thought("s1"), thought("s2")];
    let is_open = |app: &mut App| screen(app, 60, 12, 0).contains("thought of it");
    let mut app = shown(None);
    app.update(Input::News(vec![events[0].clone()]), 0);
    screen(&mut app, 60, 12, 0);
    app.update(control('b'), 0);
    assert!(is_open(&mut app));
    let effects = app.update(Input::Resync, 0);
    pages(&mut app, &effects, &events);
    assert!(is_open(&mut app), "read anew");
    let go = |app: &mut App, session: &str| {
        let mut effects = vec![Effect::Show(Some(session.into()))];
        app.settle(0, &mut effects);
        pages(app, &effects, &events);
    };
    go(&mut app, "s2");
    assert!(!is_open(&mut app), "another one has its own");
    go(&mut app, "s1");
    assert!(is_open(&mut app));
    // What is kept for the next terminal, and taken in there.
    let kept = app.unsaved().folds;
    assert_eq!(kept.keys().map(|id| id.as_str()).collect::<Vec<_>>(), ["s1"]);
    let mut next = shown(None);
    next.update(Input::News(vec![events[0].clone()]), 0);
    let folds = kept[&hames_protocol::SessionId::from("s1")].clone();
    let spot = Spot::Session("s1".into());
    let recalled = Recalled { spot, folder: "/home/ada/lathe".into(), drafts: vec![], sent: vec![], folds };
    next.update(Input::Recalled(Box::new(recalled)), 0);
    assert!(is_open(&mut next));
    // Closed again, it is closed for whoever comes next.
    let mark = next.written_mark();
    next.update(control('b'), 0);
    assert_ne!(next.written_mark(), mark, "there is something to keep");
    assert_ne!(next.unsaved().folds, kept);
}

#[test]
fn what_is_said_is_never_cut_at_the_edge_of_the_screen() {
    let mut lost = shown(None);
    let why = "the socket /home/ada/.local/share/hames/run/server.sock refuses connections";
    lost.update(Input::Link(Link::Lost(why.into())), 0);
    let mut help = shown(None);
    help.update(key(KeyCode::F(1)), 0);
    let mut sessions = shown(None);
    sessions.update(control('o'), 0);
    let mut noticed = shown(None);
    noticed.update(control('o'), 0);
    noticed.face.notice = Some(format!("The sessions cannot be read: {why}"));
    for (app, parts) in [
        (&mut lost, vec!["Connecting again", "refuses connections"]),
        (&mut help, vec!["PageUp PageDown scroll", "any other key closes"]),
        (&mut sessions, vec!["Enter opens", "Tab all folders", "F2 renames"]),
        (&mut noticed, vec!["cannot be read", "refuses connections"]),
        (&mut app(), vec!["your first message makes a session.", "F1 keys"]),
    ] {
        for (width, height) in [(80, 24), (40, 15), (120, 40)] {
            let now = screen(app, width, height, 0).replace('\n', " ");
            let now = now.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in &parts {
                assert!(now.contains(part), "{part} at {width}x{height}: {now}");
            }
        }
    }
}

#[test]
fn a_drag_selects_and_copies_what_it_goes_over() {
    let mut app = shown(None);
    app.update(Input::News(vec![event(1, 0, json!({"type": "text.done", "index": 0, "text": "copy me please"}))]), 0);
    screen(&mut app, 60, 12, 0);
    let mouse = |kind, column| Input::Mouse(MouseEvent { kind, column, row: 0, modifiers: KeyModifiers::NONE });
    app.update(mouse(MouseEventKind::Down(MouseButton::Left), 5), 0);
    app.update(mouse(MouseEventKind::Drag(MouseButton::Left), 6), 0);
    let effects = app.update(mouse(MouseEventKind::Up(MouseButton::Left), 6), 0);
    assert!(effects.contains(&Effect::Copy("me".into())), "{effects:?}");
}

mod asking;
mod manners;
mod screens;

use hames_protocol::api::{
    Abort, AbortScope, Aborted, LogPage, OpenRun, SessionActivity, SessionRow, SessionView, Sessions, WindowFill,
};
use hames_protocol::{Delivery, Envelope, Event, Mode, Part, Pending, Settings};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::{Answer, Link, Request, Ticket};

fn app() -> App {
    let face = Face { folder: "/home/ada/lathe".into(), size: (60, 12), is_focused: true, ..Face::default() };
    let theme = Theme { depth: crate::Depth::None, ..Theme::default() };
    App::new(face, Keymap::default(), theme, Start { seed: "t".into(), ..Start::default() })
}

fn key(code: KeyCode) -> Input {
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn control(c: char) -> Input {
    Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL))
}

/// The requests among effects, with their tickets.
fn asked(effects: &[Effect]) -> Vec<(Ticket, Request)> {
    let one = |effect: &Effect| match effect {
        Effect::Ask(ticket, request) => Some((*ticket, (**request).clone())),
        _ => None,
    };
    effects.iter().filter_map(one).collect()
}

fn screen(app: &mut App, width: u16, height: u16, now: u64) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    app.draw(area, &mut buf, now);
    let row = |y: u16| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

fn row(id: &str) -> SessionRow {
    SessionRow {
        id: id.into(),
        name: "mend the lathe".into(),
        folder: "/home/ada/lathe".into(),
        folder_missing: false,
        created_at: 0,
        updated_at: 0,
        last_seq: 0,
        turns: 3,
        model: None,
        mode: None,
        first_line: "mend the lathe".into(),
        state: SessionActivity::Idle,
        last_result: None,
        pending: 0,
        held_by: None,
    }
}

fn view(id: &str, run: Option<Mode>) -> SessionView {
    SessionView {
        row: row(id),
        settings: Settings::default(),
        effective: Settings {
            mode: Some(run.unwrap_or_default()),
            model: "shop/small".parse().ok(),
            ..Settings::default()
        },
        run: run.map(|mode| OpenRun {
            run: "r1".into(),
            turn: 1,
            mode,
            model: "shop/small".parse().unwrap(),
            step: 1,
            started_at: 0,
            doing: "thinking".into(),
            finishing: vec![],
        }),
        next_run: vec![],
        pending: vec![],
        paused: false,
        todos: vec![],
        proposals: vec![],
        window: WindowFill { used: 30_000, usable: 100_000, window: 128_000 },
    }
}

fn news(session: &str, seq: u64, event: Event) -> Envelope {
    Envelope { seq: Some(seq), session: Some(session.into()), ..Envelope::detached(seq, event) }
}

/// An app that shows a session, with what was asked about it answered.
fn shown(run: Option<Mode>) -> App {
    let mut app = app();
    let mut open = asked(&app.update(Input::Link(Link::Up { notice: None }), 0));
    let (ticket, _) = open.remove(0);
    app.update(Input::Reply(ticket, Ok(Answer::Sessions(Sessions { sessions: vec![row("s1")] }))), 0);
    let open = asked(&app.update(key(KeyCode::Enter), 0));
    for (ticket, request) in open {
        let answer = match request {
            Request::View(_) => Answer::View(Box::new(view("s1", run))),
            Request::Page { .. } => Answer::Page(LogPage { events: vec![], older: false, newer: false }),
            _ => continue,
        };
        app.update(Input::Reply(ticket, Ok(answer)), 0);
    }
    app
}

#[test]
fn the_folders_last_session_is_offered_and_the_first_message_makes_one() {
    let mut app = app();
    let open = asked(&app.update(Input::Link(Link::Up { notice: None }), 0));
    assert!(matches!(&open[..], [(_, Request::Sessions(Some(folder)))] if folder == "/home/ada/lathe"));
    app.update(Input::Reply(open[0].0, Ok(Answer::Sessions(Sessions { sessions: vec![row("s1")] }))), 0);
    assert!(screen(&mut app, 60, 12, 0).contains("Enter goes on with \"mend the lathe\" (3 turns)."));

    app.update(Input::Paste("write a test".into()), 0);
    let effects = app.update(key(KeyCode::Enter), 0);
    let [(create, Request::Create(made))] = &asked(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((made.folder.as_str(), made.name.as_deref()), ("/home/ada/lathe", None));
    let effects = app.update(Input::Reply(*create, Ok(Answer::View(Box::new(view("s2", None))))), 0);
    let sent: Vec<_> = asked(&effects)
        .into_iter()
        .filter_map(|(_, request)| match request {
            Request::Send(session, message) => Some((session.to_string(), message.parts, message.idempotency_id)),
            _ => None,
        })
        .collect();
    assert_eq!(sent, [("s2".into(), vec![Part::text("write a test")], Some("t-1".into()))]);
}

#[test]
fn what_could_not_be_sent_is_back_in_the_prompt() {
    let mut app = shown(None);
    app.update(Input::Paste("do it".into()), 0);
    let effects = app.update(key(KeyCode::Enter), 0);
    let (ticket, _) = asked(&effects).into_iter().find(|(_, request)| matches!(request, Request::Send(..))).unwrap();
    assert!(screen(&mut app, 60, 12, 0).contains("… do it"));
    app.update(Input::Paste("and more".into()), 0);
    let refused = hames_protocol::api::ApiError::new(hames_protocol::api::ApiErrorCode::Configuration, "no model");
    app.update(Input::Reply(ticket, Err(refused)), 0);
    let now = screen(&mut app, 60, 14, 0);
    assert!(
        now.contains("do it") && now.contains("and more") && now.contains("no model") && !now.contains("… do it"),
        "{now}"
    );
}

#[test]
fn escape_stops_the_run_once_and_everything_the_second_time() {
    let mut app = shown(Some(Mode::Build));
    let scope = |effects: &[Effect]| match &asked(effects)[..] {
        [(_, Request::Abort(_, Abort { scope, .. }))] => Some(*scope),
        _ => None,
    };
    let effects = app.update(key(KeyCode::Esc), 1_000);
    assert_eq!(scope(&effects), Some(AbortScope::Foreground));
    assert!(screen(&mut app, 60, 12, 1_000).contains("stopping · Esc again stops background work too"));
    let (ticket, _) = asked(&effects)[0].clone();
    let returned = vec![Pending {
        id: "p".into(),
        parts: vec![Part::text("wait")],
        delivery: Delivery::Steer,
        idempotency_id: None,
    }];
    app.update(Input::Reply(ticket, Ok(Answer::Aborted(Aborted { run: None, returned, queued: 0 }))), 1_100);
    assert!(screen(&mut app, 60, 12, 1_100).contains("wait"));
    assert_eq!(scope(&app.update(key(KeyCode::Esc), 2_000)), Some(AbortScope::All));
    app.face.view.as_mut().unwrap().run = None;
    assert_eq!(scope(&app.update(key(KeyCode::Esc), 9_000)), None);
}

#[test]
fn ctrl_c_stops_first_and_leaves_the_second_time_from_anywhere() {
    let leaves = |effects: &[Effect]| effects.contains(&Effect::Quit);
    // While it still connects, in a session at rest, while a run goes on, and in a layer.
    for (mut app, layer) in
        [(app(), false), (shown(None), false), (shown(Some(Mode::Analyze)), false), (shown(None), true)]
    {
        if layer {
            app.update(key(KeyCode::F(1)), 0);
            assert_eq!(app.top(), "help");
        }
        let is_busy = app.face.is_busy();
        let first = app.update(control('c'), 10_000);
        assert!(!leaves(&first));
        assert_eq!(asked(&first).iter().any(|(_, request)| matches!(request, Request::Abort(..))), is_busy);
        assert_eq!(app.top(), "base");
        let hint = screen(&mut app, 60, 12, 10_001);
        assert!(hint.contains("Ctrl+C again leaves"), "{hint}");
        assert!(leaves(&app.update(control('c'), 11_000)));
    }
    // Two that have nothing to do with each other do not leave.
    let mut app = shown(None);
    assert!(!leaves(&app.update(control('c'), 10_000)) && !leaves(&app.update(control('c'), 20_000)));
}

#[test]
fn the_mode_of_a_run_is_its_own_and_a_change_is_for_the_next() {
    let mut app = shown(Some(Mode::Analyze));
    let effects = app.update(key(KeyCode::BackTab), 0);
    assert!(
        matches!(&asked(&effects)[..], [(_, Request::ChangeSettings(_, change, _))] if change.mode == Some(Mode::Build))
    );
    let now = screen(&mut app, 100, 12, 0);
    assert!(now.contains("Build from the next run on; the one that goes on keeps Analyze."), "{now}");
    assert!(now.lines().last().unwrap().starts_with("Analyze · then Build · thinking"), "{now}");
}

#[test]
fn the_view_follows_the_events_and_is_read_again_where_they_do_not_say_it() {
    let mut app = shown(Some(Mode::Build));
    let pending =
        Pending { id: "p1".into(), parts: vec![Part::text("later")], delivery: Delivery::Queue, idempotency_id: None };
    let effects = app.update(Input::News(vec![news("s1", 1, Event::PendingAdded(pending.clone()))]), 0);
    assert_eq!(asked(&effects), []);
    assert!(screen(&mut app, 100, 12, 0).contains("1 queued"));
    // The same again, or one of another session, changes nothing.
    app.update(
        Input::News(vec![
            news("s1", 1, Event::PendingAdded(pending.clone())),
            news("s9", 2, Event::PendingAdded(pending)),
        ]),
        0,
    );
    assert!(screen(&mut app, 100, 12, 0).contains("1 queued"));
    let looks =
        |effects: &[Effect]| asked(effects).iter().filter(|(_, request)| matches!(request, Request::View(_))).count();
    let step = |seq| Input::News(vec![news("s1", seq, Event::step_done_for_tests("stop"))]);
    let first = app.update(step(3), 0);
    assert_eq!((looks(&first), looks(&app.update(step(4), 0))), (1, 0), "one look at a time");
    let (ticket, _) = asked(&first)[0].clone();
    let mut old = view("s1", None);
    old.row.last_seq = 2;
    let again = app.update(Input::Reply(ticket, Ok(Answer::View(Box::new(old)))), 0);
    assert_eq!(looks(&again), 1, "it was outdated before it came");
    assert!(app.face.is_busy(), "what is older than the events changes nothing");
}

#[test]
fn a_gap_reads_the_session_again_and_says_nothing_twice() {
    let mut app = shown(None);
    let said = |seq, text: &str| {
        news("s1", seq, Event::TextDone(hames_protocol::TextDone { index: 0, text: text.into(), cut: None }))
    };
    app.update(Input::News(vec![said(1, "first"), said(2, "second")]), 0);
    let effects = app.update(Input::Resync, 0);
    assert!(effects.contains(&Effect::Unwatch));
    let page =
        LogPage { events: vec![said(1, "first"), said(2, "second"), said(3, "third")], older: false, newer: false };
    let (ticket, _) = asked(&effects).into_iter().find(|(_, request)| matches!(request, Request::Page { .. })).unwrap();
    let effects = app.update(Input::Reply(ticket, Ok(Answer::Page(page))), 0);
    assert!(effects.contains(&Effect::Watch { session: "s1".into(), after: 3 }));
    let now = screen(&mut app, 60, 12, 0);
    for text in ["first", "second", "third"] {
        assert_eq!(now.matches(text).count(), 1, "{now}");
    }
}

#[test]
fn nothing_wakes_an_app_that_waits_for_nothing() {
    let mut app = shown(None);
    let wakes = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::WakeAt(_)));
    // What was asked when it was opened is not answered in this test but for what was: answer nothing, ask nothing.
    app.progress = Progress::default();
    assert!(!wakes(&app.update(Input::Focus(true), 100_000)));
    let mut busy = shown(Some(Mode::Build));
    assert!(wakes(&busy.update(Input::Focus(true), 100_000)), "the time of a run is shown");
}

#[test]
fn every_size_is_drawn_and_build_is_never_missing_where_there_is_a_status_line() {
    let mut app = shown(Some(Mode::Build));
    app.update(Input::Paste("안녕🙂\nzwei\n".repeat(30)), 0);
    for width in 0..70 {
        for height in 0..20 {
            app.update(Input::Resize { width, height }, 0);
            let now = screen(&mut app, width, height, 0);
            if width >= 7 && height >= 2 {
                assert!(now.lines().last().unwrap_or("").contains("Build"), "{width}x{height}:\n{now}");
            }
        }
    }
}

#[test]
fn a_hit_of_a_search_is_shown_however_far_back_it_is() {
    let mut app = shown(None);
    let said = |seq: u64| {
        let text = if seq == 40 { "the needle".to_owned() } else { format!("number {seq}") };
        news("s2", seq, Event::TextDone(hames_protocol::TextDone { index: 0, text, cut: None }))
    };
    let show = Effect::ShowAt { session: "s2".into(), seq: 40, words: "needle".into() };
    let mut effects = vec![show];
    app.settle(0, &mut effects);
    // Pages come until the event is there, and no further ones.
    let mut pages = 0;
    loop {
        let page = asked(&effects).into_iter().find_map(|(ticket, request)| match request {
            Request::Page { before, .. } => Some((ticket, before)),
            _ => None,
        });
        let Some((ticket, before)) = page else { break };
        pages += 1;
        let end = before.unwrap_or(2_001);
        let from = end.saturating_sub(400).max(1);
        let events = (from..end).map(said).collect();
        let answer = Answer::Page(LogPage { events, older: from > 1, newer: false });
        effects = app.update(Input::Reply(ticket, Ok(answer)), 0);
    }
    assert_eq!(pages, 5);
    let now = screen(&mut app, 60, 20, 0);
    assert!(now.contains("the needle") && now.contains("Find: needle"), "{now}");
    // It was there already: nothing is read again, and another place is shown.
    let mut effects = vec![Effect::ShowAt { session: "s2".into(), seq: 900, words: String::new() }];
    app.settle(0, &mut effects);
    assert_eq!(asked(&effects), []);
    let now = screen(&mut app, 60, 20, 0);
    assert!(now.contains("number 900"), "{now}");
}

#[test]
fn what_a_layer_gives_back_is_in_the_prompt_of_its_session() {
    let mut app = shown(None);
    let mut effects = vec![Effect::Draft("s1".into(), "say it again".into()), Effect::New(Some("bed".into()))];
    app.settle(0, &mut effects);
    let now = screen(&mut app, 70, 12, 0);
    assert!(now.contains("Your first message makes the session \"bed\"."), "{now}");
    assert!(!now.contains("Enter goes on with"), "{now}");
    app.update(key(KeyCode::Left), 0);
    assert!(!screen(&mut app, 70, 12, 0).contains("say it again"));
    let mut effects = vec![Effect::Show(Some("s1".into()))];
    app.settle(0, &mut effects);
    app.update(key(KeyCode::Left), 0);
    assert!(screen(&mut app, 70, 12, 0).contains("say it again"));
}

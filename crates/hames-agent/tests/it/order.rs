//! Which events a run has, in which order, and what stands in their envelopes.

use std::sync::Arc;

use hames_agent::{Nobody, RunControl, RunInput, Session};
use hames_protocol::{
    Done, Durability, Event, Mode, Part, RunResult, SessionCreated, SessionId, Settings, ToolErrorClass, Usage,
};
use serde_json::json;

use crate::support::{Reply, Setup, ended, hames};

fn done_of(hames: &crate::support::Hames) -> Done {
    let mut all = hames.find(|event| match event {
        Event::Done(done) => Some(done.clone()),
        _ => None,
    });
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[tokio::test]
async fn a_run_of_two_steps_has_exactly_these_events() {
    let first = Reply::new().reasoning("Hm.").then_text("I look.").then_call("Look", json!({"path": "a"}));
    let mut hames = hames([first, Reply::text("Done.")]).await;
    let end = hames.run("go").await;
    ended(&end, RunResult::Complete, 0);
    let expected = "run.start message.user step.start reasoning.done text.done tool.call step.done tool.start tool.done \
                    step.start text.done step.done done turn.done run.done";
    assert_eq!(hames.types().join(" "), expected);
    let steps: Vec<Option<u32>> = hames.events().iter().map(|e| e.step).collect();
    let (no, one, two) = (None, Some(1), Some(2));
    assert_eq!(steps, [no, no, one, one, one, one, one, one, one, two, two, two, no, no, no]);
    let all = hames.log.events();
    assert_eq!((all[0].seq, all[0].run.is_none(), all[0].turn, all[0].step), (Some(1), true, None, None));
    assert!(all[1..].iter().all(|e| e.run.is_some() && e.turn == Some(1)));
    assert_eq!(all[1].session, Some(SessionId::from("s-1")));
    let usage = Usage { input: Some(200), output: Some(20), ..Usage::default() };
    let expected =
        Done { result: RunResult::Complete, reason: None, usage: usage.clone(), steps: 2, calls: 1, errors: 0 };
    assert_eq!(done_of(&hames), expected);
    let turn = hames.find(|e| if let Event::TurnDone(turn) = e { Some(turn.clone()) } else { None });
    assert_eq!(turn[0].usage, usage);
    let [start, .., last] = &all[1..] else { panic!() };
    assert!(turn[0].duration_ms > 0 && turn[0].duration_ms <= last.at - start.at);
}

#[tokio::test]
async fn turns_count_on_and_steps_begin_anew() {
    let mut hames = hames([]).await;
    for turn in 1..=3 {
        hames.model.push(Reply::call("Look", json!({"path": "a"})));
        hames.model.push(Reply::text("Done."));
        hames.renew();
        hames.run("go").await;
        let events = hames.events();
        assert!(events.iter().all(|e| e.turn == Some(turn)));
        assert_eq!(events.iter().filter_map(|e| e.step).max(), Some(2));
        assert_eq!(hames.session.state().turn, turn);
        assert_eq!(hames.session.state().open_run, None);
    }
    let runs: std::collections::HashSet<_> = hames.log.events().into_iter().filter_map(|e| e.run).collect();
    assert_eq!(runs.len(), 3);
}

#[tokio::test]
async fn run_start_freezes_what_the_run_stands_on() {
    let mut hames = Setup::new([Reply::text("ok"), Reply::text("ok")]).build().await;
    let input = RunInput {
        parts: vec![Part::text("go")],
        note: Some("[note]".into()),
        idempotency_id: Some("i-1".into()),
        mode: Mode::Analyze,
        settings: Settings { max_steps: Some(7), ..Settings::default() },
        instructions: Vec::new(),
        ..RunInput::default()
    };
    let control = RunControl::default();
    hames.session.run(&mut hames.agent, input, &control, Arc::new(Nobody)).await;
    let events = hames.events();
    let Event::RunStart(start) = &events[0].event else { panic!() };
    assert_eq!((start.mode, start.parallel, start.settings.max_steps), (Mode::Analyze, false, Some(7)));
    assert_eq!(start.model.to_string(), "test/script");
    let names: Vec<&str> = start.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["Look", "Change", "Do", "Post", "Note"]);
    assert!(start.tools.iter().all(|tool| tool.hash.len() == 64));
    let Event::MessageUser(message) = &events[1].event else { panic!() };
    assert_eq!(message.parts, [Part::text("go")]);
    assert_eq!((message.note.as_deref(), message.idempotency_id.as_deref()), (Some("[note]"), Some("i-1")));
    assert_eq!((message.delivery, message.pending_id.clone()), (None, None));
}

#[tokio::test]
async fn analyze_refuses_what_is_no_read_without_a_start() {
    for (tool, runs) in [("Look", true), ("Note", true), ("Change", false), ("Do", false), ("Post", false)] {
        let mut setup = Setup::new([Reply::call(tool, json!({"path": "a"})), Reply::text("Done.")]);
        setup.mode = Mode::Analyze;
        let mut hames = setup.build().await;
        ended(&hames.run("go").await, RunResult::Complete, 0);
        assert_eq!(hames.types().contains(&"tool.start".to_owned()), runs, "{tool}");
        assert_eq!(done_of(&hames).errors, u32::from(!runs));
        if !runs {
            assert_eq!(hames.errors()[0].0, ToolErrorClass::Refused);
        }
    }
}

#[tokio::test]
async fn done_counts_every_call_and_every_call_without_a_result() {
    let first = Reply::call("Look", json!({"path": "a"})).then_call("Nothing", json!({})).raw_call("Look", &["{"]);
    let second = Reply::call("Look", json!({"wrong": 1})).then_call("Note", json!({"path": "b"}));
    let mut hames = hames([first, second, Reply::text("Done.").no_usage()]).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    let done = done_of(&hames);
    assert_eq!((done.steps, done.calls, done.errors), (3, 5, 3));
    assert_eq!(done.usage.input, Some(200));
}

#[tokio::test]
async fn what_a_person_said_what_was_paid_for_and_the_end_survive_a_power_cut() {
    let mut hames = hames([Reply::call("Look", json!({"path": "a"})), Reply::text("Done.")]).await;
    hames.run("go").await;
    for (kind, durability) in hames.log.durable() {
        let expected = match kind.as_str() {
            "message.user" | "run.done" => Durability::Power,
            "step.done" => Durability::PowerSoon,
            "step.start" | "tool.start" | "tool.done" | "session.created" => Durability::Process,
            _ => continue,
        };
        assert_eq!(durability, expected, "{kind}");
    }
    let marks = hames.trace.all();
    let order: Vec<&str> = marks
        .iter()
        .map(String::as_str)
        .filter(|mark| matches!(*mark, "log settled" | "log step.done" | "log tool.start"))
        .collect();
    assert_eq!(
        order,
        ["log settled", "log step.done", "log tool.start", "log settled", "log step.done", "log settled"],
        "a step's calls run, and the end is announced, only when the step before is safe"
    );
}

#[tokio::test]
async fn the_first_event_is_seen_once_and_first_whoever_asks_first() {
    let changed = Settings { max_steps: Some(3), ..Settings::default() };
    for change_first in [false, true] {
        let mut hames = hames([Reply::text("one"), Reply::text("two")]).await;
        if change_first {
            hames.session.change_settings(changed.clone().into(), Arc::new(hames.seen.clone())).await.unwrap();
        }
        hames.run("go").await;
        hames.renew();
        hames.run("go").await;
        let seen = hames.seen.all();
        assert_eq!(seen[0].event.type_name(), "session.created");
        assert_eq!(seen.iter().filter(|e| e.event.type_name() == "session.created").count(), 1);
    }
}

#[tokio::test]
async fn a_session_that_had_events_is_not_introduced_again() {
    let mut hames = hames([Reply::text("one"), Reply::text("two")]).await;
    hames.run("go").await;
    hames.reopen().await;
    hames.renew();
    hames.run("go").await;
    assert_eq!(hames.trace.count("see session.created"), 1);
}

#[tokio::test]
async fn settings_are_recorded_once_and_only_where_they_differ() {
    let hames = hames([]).await;
    let patches = [
        (Settings { max_steps: Some(3), ..Settings::default() }, true),
        (Settings { max_steps: Some(3), ..Settings::default() }, false),
        (Settings::default(), false),
        (Settings { mode: Some(Mode::Build), ..Settings::default() }, true),
        (Settings { mode: Some(Mode::Build), max_steps: Some(3), ..Settings::default() }, false),
        (Settings { mode: Some(Mode::Build), max_steps: Some(4), ..Settings::default() }, true),
    ];
    for (patch, recorded) in patches {
        let before = hames.log.events().len();
        hames.session.change_settings(patch.clone().into(), Arc::new(hames.seen.clone())).await.unwrap();
        assert_eq!(hames.log.events().len() - before, usize::from(recorded), "{patch:?}");
    }
    let reopened = Session::resume(hames.ports.clone(), hames.session.id().clone()).await.unwrap();
    let settings = reopened.state().settings.clone();
    assert_eq!((settings.mode, settings.max_steps), (Some(Mode::Build), Some(4)));
    let last = hames.log.events().pop().unwrap();
    assert_eq!((last.run, last.turn, last.step), (None, None, None));
}

#[tokio::test]
async fn an_id_that_is_taken_makes_no_second_session() {
    let hames = hames([]).await;
    let created = SessionCreated { name: "again".into(), folder: "/w".into(), settings: Settings::default() };
    assert!(Session::create(hames.ports.clone(), SessionId::from("s-1"), created).await.is_err());
    assert!(Session::resume(hames.ports.clone(), SessionId::from("s-2")).await.is_err());
    assert_eq!(hames.session.state().name, "test");
}

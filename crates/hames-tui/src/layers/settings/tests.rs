use hames_protocol::api::{ApiErrorCode, Configuration, SessionContext};
use hames_protocol::{WindowPreview, WindowReport};
use serde_json::json;

use super::super::parts::kit::{Stand, key, row, view};
use super::*;
use crate::snapshot::compare;

fn stand() -> Stand {
    let mut stand = Stand::showing(row("s1", "lathe"));
    let view = stand.face.view.as_mut().unwrap();
    view.settings = serde_json::from_value(json!({"thinking_level": "low", "guard": {"max_nudges": 5}})).unwrap();
    view.effective = serde_json::from_value(json!({"thinking_level": "low", "model": "shop/small", "mode": "build",
        "guard": {"level": "low", "max_nudges": 5}, "compaction": {"trigger": 70}, "max_output_tokens": 16_384}))
    .unwrap();
    stand
}

fn told(stage: &str, after: u64) -> Answer {
    let report = json!({"strategy": "carried", "budget": {"window": 128_000, "reserve": 16_384, "margin": 0,
        "usable": 111_616, "trigger": 78_131, "landing": 11_161, "head": 7_000, "fill": 60_000, "pin_limit": 0,
        "pinned": 0, "ratio": 1000}, "items": [], "sent": {"items": 0, "tokens": 0, "bytes": 0},
        "masked": {"items": 0, "tokens": 0, "bytes": 0}, "retired": {"items": 0, "tokens": 0, "bytes": 0},
        "archived": {"items": 0, "tokens": 0, "bytes": 0}, "pins": [],
        "requests": {"requests": 0, "bytes": 0, "uncached_bytes": 0, "breaks": {}},
        "repairs": hames_protocol::Repairs::default()});
    let report: WindowReport = serde_json::from_value(report).unwrap();
    let next = WindowPreview {
        fill: 60_000,
        trigger: 78_131,
        stage: stage.into(),
        after,
        kept: 11_000,
        leaving: 12,
        floor_percent: 4,
        ceiling_percent: 69,
        document: 900,
    };
    Answer::Context(Box::new(SessionContext { report, next }))
}

fn open(stand: &mut Stand) -> Dials {
    let mut layer = Dials::new(&mut stand.cx());
    for (ticket, request) in stand.asked() {
        let answer = match request {
            Request::Configuration => {
                Answer::Configuration(Configuration { config: json!({"guard": {"set": {"level": "low"}}}) })
            }
            Request::Preview(..) => told("summary", 20_000),
            other => panic!("{other:?}"),
        };
        layer.answer(ticket, Ok(answer), &mut stand.cx());
    }
    layer
}

/// Chooses a dial by its name.
fn choose(stand: &mut Stand, layer: &mut Dials, name: &str) {
    stand.screen(layer, 80, 24);
    layer.list.choose(name);
    assert_eq!(layer.chosen().map(Dial::name), Some(name));
}

/// Changes that were asked for: what is set and what is given back, with their tickets.
fn changes(asked: &[(Ticket, Request)]) -> Vec<(Ticket, Value)> {
    let one = |(ticket, request): &(Ticket, Request)| match request {
        Request::ChangeSettings(_, settings, unset) => Some((*ticket, json!([settings, unset]))),
        _ => None,
    };
    asked.iter().filter_map(one).collect()
}

fn previews(asked: &[(Ticket, Request)]) -> Vec<Ticket> {
    asked.iter().filter(|(_, request)| matches!(request, Request::Preview(..))).map(|(ticket, _)| *ticket).collect()
}

fn wake(stand: &mut Stand, layer: &mut Dials, at: u64) -> Vec<(Ticket, Request)> {
    stand.now = at;
    stand.give(layer, &Input::Wake);
    stand.asked()
}

#[test]
fn the_screens() {
    let mut stand = stand();
    let mut layer = open(&mut stand);
    let mut out = stand.screens(&mut layer);
    stand.face.view.as_mut().unwrap().next_run = vec!["compaction".into(), "thinking_level".into()];
    stand.face.view.as_mut().unwrap().run = Some(
        serde_json::from_value(json!({"run": "r1", "turn": 1, "mode": "build", "model": "shop/small", "step": 1,
            "started_at": 0, "doing": "thinking"}))
        .unwrap(),
    );
    choose(&mut stand, &mut layer, "begins at");
    out.push_str(&stand.screens(&mut layer));
    choose(&mut stand, &mut layer, "reasoning_threshold");
    stand.give(&mut layer, &key(KeyCode::Enter));
    stand.type_text(&mut layer, "7");
    stand.give(&mut layer, &key(KeyCode::Enter));
    out.push_str(&stand.screens(&mut layer));
    compare("layer-settings", &out);
    stand.at_every_size(&mut layer);
}

#[test]
fn a_dial_that_is_turned_far_is_one_change() {
    let mut stand = stand();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "begins at");
    for _ in 0..5 {
        stand.give(&mut layer, &key(KeyCode::Right));
    }
    assert_eq!(changes(&stand.asked()), []);
    assert!(stand.screen(&mut layer, 80, 24).contains("75%"), "what is turned is seen at once");
    assert_eq!(changes(&wake(&mut stand, &mut layer, QUIET - 1)), []);
    let sent = changes(&wake(&mut stand, &mut layer, QUIET));
    assert_eq!(
        sent.iter().map(|(_, change)| change.clone()).collect::<Vec<_>>(),
        [json!([{"compaction": {"trigger": 75}}, []])]
    );
    // What is turned meanwhile waits for the answer.
    stand.give(&mut layer, &key(KeyCode::Right));
    assert_eq!(changes(&wake(&mut stand, &mut layer, 10 * QUIET)), []);
    let mut after = view(row("s1", "lathe"));
    after.row.last_seq = 99;
    after.settings = serde_json::from_value(json!({"compaction": {"trigger": 75}})).unwrap();
    layer.answer(sent[0].0, Ok(Answer::View(Box::new(after))), &mut stand.cx());
    let next: Vec<Value> = changes(&stand.asked()).into_iter().map(|(_, change)| change).collect();
    assert_eq!(next, [json!([{"compaction": {"trigger": 76}}, []])]);
    assert!(stand.screen(&mut layer, 80, 24).contains("76%"));
}

#[test]
fn the_plan_is_of_what_is_tried_and_asked_one_at_a_time() {
    let mut stand = stand();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "begins at");
    assert!(stand.screen(&mut layer, 80, 30).contains("About 20,000 tokens"));
    stand.give(&mut layer, &key(KeyCode::Left));
    let first = previews(&stand.asked());
    stand.give(&mut layer, &key(KeyCode::Left));
    stand.give(&mut layer, &key(KeyCode::Left));
    assert_eq!((first.len(), previews(&stand.asked()).len()), (1, 0), "one at a time");
    let now = stand.screen(&mut layer, 80, 30);
    assert!(now.contains("asking the server") && !now.contains("20,000"), "what is outdated is not shown: {now}");
    layer.answer(first[0], Ok(told("mask", 55_000)), &mut stand.cx());
    assert!(!stand.screen(&mut layer, 80, 30).contains("55,000"), "nor what comes too late");
    let second = previews(&stand.asked());
    assert_eq!(second.len(), 1);
    layer.answer(second[0], Ok(told("rolled", 33_000)), &mut stand.cx());
    assert!(stand.screen(&mut layer, 80, 30).contains("About 33,000 tokens"));
    assert!(matches!(layer.answer(first[0], Ok(told("mask", 1)), &mut stand.cx()), Outcome::Passed));
    assert_eq!(previews(&stand.asked()), []);
}

#[test]
fn what_is_written_is_set_and_what_is_empty_is_given_back() {
    for (dial, text, change) in [
        ("context window", "64k", json!([{"context_window": 64_000}, []])),
        ("thinking", "", json!([{}, ["thinking_level"]])),
        ("max_nudges", "7", json!([{"guard": {"max_nudges": 7}}, []])),
    ] {
        let mut stand = stand();
        let mut layer = open(&mut stand);
        choose(&mut stand, &mut layer, dial);
        stand.give(&mut layer, &key(KeyCode::Enter));
        for _ in 0..10 {
            stand.give(&mut layer, &key(KeyCode::Backspace));
        }
        stand.give(&mut layer, &Input::Paste(text.into()));
        stand.give(&mut layer, &key(KeyCode::Enter));
        let sent: Vec<Value> = changes(&wake(&mut stand, &mut layer, QUIET)).into_iter().map(|(_, c)| c).collect();
        assert_eq!(sent, [change], "{dial}");
    }
    let mut stand = stand();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "begins at");
    stand.give(&mut layer, &key(KeyCode::Enter));
    stand.type_text(&mut layer, "200");
    stand.give(&mut layer, &key(KeyCode::Enter));
    assert!(stand.screen(&mut layer, 80, 24).contains("it is a percentage from 20 to 95"));
    assert_eq!(changes(&wake(&mut stand, &mut layer, QUIET)), []);
    stand.give(&mut layer, &key(KeyCode::Esc));
    assert!(layer.writing.is_none());
}

#[test]
fn delete_gives_one_dial_back_and_nothing_else() {
    let mut stand = stand();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "max_nudges");
    stand.give(&mut layer, &key(KeyCode::Delete));
    let sent: Vec<Value> = changes(&wake(&mut stand, &mut layer, QUIET)).into_iter().map(|(_, c)| c).collect();
    assert_eq!(sent, [json!([{}, ["guard"]])]);
    choose(&mut stand, &mut layer, "presence penalty");
    stand.give(&mut layer, &key(KeyCode::Delete));
    assert!(layer.draft.is_none(), "there is nothing of the session's to give back");
}

#[test]
fn leaving_loses_nothing_that_was_turned() {
    let mut stand = stand();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "thinking");
    stand.give(&mut layer, &key(KeyCode::Right));
    assert!(matches!(stand.give(&mut layer, &key(KeyCode::Esc)), Outcome::Closed));
    let set = |stand: &Stand| {
        stand
            .effects
            .iter()
            .filter_map(|e| if let Effect::Set(set, _) = e { Some(json!(set)) } else { None })
            .collect::<Vec<_>>()
    };
    assert_eq!(set(&stand), [json!({"thinking_level": "medium"})]);
    // With a change on its way, what is left goes behind it.
    let mut stand = self::stand();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "thinking");
    stand.give(&mut layer, &key(KeyCode::Right));
    let sent = changes(&wake(&mut stand, &mut layer, QUIET));
    stand.give(&mut layer, &key(KeyCode::Right));
    assert!(matches!(stand.give(&mut layer, &key(KeyCode::Esc)), Outcome::Taken));
    assert_eq!(set(&stand), [] as [Value; 0]);
    let refused = ApiError::new(ApiErrorCode::Busy, "not now");
    assert!(matches!(layer.answer(sent[0].0, Err(refused), &mut stand.cx()), Outcome::Closed));
    assert_eq!(set(&stand), [json!({"thinking_level": "high"})]);
    assert!(stand.said()[0].contains("not now"));
}

#[test]
fn without_a_session_they_are_kept_for_the_one_to_come() {
    let mut stand = Stand::default();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "preset");
    assert!(stand.screen(&mut layer, 80, 24).contains("low"), "the configuration's");
    stand.give(&mut layer, &key(KeyCode::Right));
    let set: Vec<Value> = stand
        .effects
        .iter()
        .filter_map(|e| if let Effect::Set(set, _) = e { Some(json!(set)) } else { None })
        .collect();
    assert_eq!(set, [json!({"guard": {"level": "medium"}})]);
    assert_eq!(previews(&stand.asked()), []);
}

#[test]
fn a_refused_change_is_said_and_what_holds_is_shown() {
    let mut stand = stand();
    let mut layer = open(&mut stand);
    choose(&mut stand, &mut layer, "thinking");
    stand.give(&mut layer, &key(KeyCode::Right));
    let sent = changes(&wake(&mut stand, &mut layer, QUIET));
    let refused = ApiError::new(ApiErrorCode::HeldElsewhere, "hames run holds it\u{1b}[2J");
    layer.answer(sent[0].0, Err(refused), &mut stand.cx());
    let now = stand.screen(&mut layer, 80, 24);
    assert!(now.contains("hames run holds it\\x1b[2J") && now.contains("low"), "{now}");
}

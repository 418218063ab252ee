//! Events as JSON: what goes out comes back, and what nobody knows is kept.

#![allow(clippy::unwrap_used)] // helpers of tests fail like tests

use std::collections::BTreeSet;

use hames_protocol::{
    ENVELOPE_VERSION, Envelope, Event, SessionState, StepDone, TextDelta, Timings, Transcript, schema::protocol_schema,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::samples;

fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

fn envelope(event: Event) -> Envelope {
    Envelope {
        v: ENVELOPE_VERSION,
        seq: event.is_durable().then_some(12),
        at: 1_796_050_000_123,
        session: Some("s".into()),
        run: Some("r".into()),
        turn: Some(3),
        step: Some(7),
        agent: vec![],
        event,
    }
}

fn read(text: &str) -> Envelope {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// An envelope around event text that nobody has parsed.
fn raw(event: &str) -> String {
    format!(r#"{{"v":1,"seq":1,"at":0,"session":null,"run":null,"turn":null,"step":null,"agent":[],"event":{event}}}"#)
}

/// Every value of `type` that the schema knows.
fn known_types() -> BTreeSet<String> {
    fn collect(value: &Value, types: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                if let Some(name) = object.get("type").and_then(|t| t.get("const")).and_then(Value::as_str) {
                    types.insert(name.to_owned());
                }
                object.values().for_each(|value| collect(value, types));
            }
            Value::Array(array) => array.iter().for_each(|value| collect(value, types)),
            _ => {}
        }
    }
    let mut types = BTreeSet::new();
    collect(&protocol_schema()["$defs"]["Event"], &mut types);
    types
}

#[test]
fn every_event_comes_back_from_json_as_it_went() {
    for event in samples::events() {
        let out = envelope(event);
        let text = serde_json::to_string(&out).unwrap();
        let back = read(&text);
        assert_eq!(back, out);
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert!(!matches!(back.event, Event::Unknown(_)), "{text}");
        assert_eq!(serde_json::from_value::<Envelope>(serde_json::to_value(&out).unwrap()).unwrap(), out);
        assert_eq!(serde_json::from_slice::<Envelope>(text.as_bytes()).unwrap(), out);
    }
}

#[test]
fn the_samples_hold_every_type_and_their_names_are_the_wire_names() {
    let sampled: BTreeSet<String> = samples::events().iter().map(|e| e.type_name().to_owned()).collect();
    assert_eq!(sampled, known_types());
    for event in samples::events() {
        assert_eq!(serde_json::to_value(&event).unwrap()["type"], event.type_name());
        assert!(!event.is_damaged());
    }
}

#[test]
fn exactly_deltas_and_snapshots_are_live_only() {
    let live: BTreeSet<String> =
        samples::events().iter().filter(|e| !e.is_durable()).map(|e| e.type_name().to_owned()).collect();
    let expected =
        ["text.delta", "reasoning.delta", "tool.input.delta", "tool.output.delta", "step.snapshot"].map(String::from);
    assert_eq!(live, BTreeSet::from(expected));
}

#[test]
fn an_envelope_has_its_fields_in_a_fixed_order_and_a_live_one_has_a_null_seq() {
    let mut durable = envelope(samples::done("c", "out").into());
    durable.agent = vec!["explore-2".into()];
    assert_eq!(
        serde_json::to_string(&durable).unwrap(),
        r#"{"v":1,"seq":12,"at":1796050000123,"session":"s","run":"r","turn":3,"step":7,"agent":["explore-2"],"#
            .to_owned()
            + r#""event":{"type":"tool.done","call_id":"c","name":"Read","output":"out","duration_ms":3}}"#
    );
    let live = envelope(TextDelta { index: 0, offset: 5, text: "ü".into() }.into());
    assert_eq!(
        serde_json::to_string(&live).unwrap(),
        r#"{"v":1,"seq":null,"at":1796050000123,"session":"s","run":"r","turn":3,"step":7,"agent":[],"#.to_owned()
            + r#""event":{"type":"text.delta","index":0,"offset":5,"text":"ü"}}"#
    );
    let event = Event::RunDone(hames_protocol::RunDone { result: hames_protocol::RunResult::Error, exit_code: 2 });
    assert_eq!(
        serde_json::to_string(&Envelope::detached(5, event)).unwrap(),
        r#"{"v":1,"seq":null,"at":5,"session":null,"run":null,"turn":null,"step":null,"agent":[],"#.to_owned()
            + r#""event":{"type":"run.done","result":"error","exit_code":2}}"#
    );
}

#[test]
fn an_unknown_type_is_kept_to_the_byte_and_every_fold_passes_it_over() {
    for event in [
        r#"{"type":"future.thing"}"#,
        r#"{"type":"future.thing","z":1,"a":{"c":[],"b":[null,true,-1,18446744073709551615,0.1,1e+300,-0.0]}}"#,
        r#"{"z":"before the type","type":"text.done.v2","text":"\u0000\"\\ü"}"#,
        r#"{"type":"","x":1}"#,
    ] {
        let back = read(&raw(event));
        assert!(matches!(back.event, Event::Unknown(_)));
        assert_eq!(serde_json::to_string(&back.event).unwrap(), event);
        assert!(back.event.is_durable() && !back.event.is_damaged(), "{event}");
        let (mut transcript, mut state) = (Transcript::default(), SessionState::default());
        transcript.apply(&back.event);
        state.apply(&back);
        assert!(transcript.items().is_empty() && !transcript.has_open_answer());
        assert_eq!(state, SessionState { seq: 1, ..SessionState::default() });
    }
}

#[test]
fn a_known_type_with_damaged_fields_is_kept_and_says_so() {
    for event in [
        r#"{"type":"text.done"}"#,
        r#"{"type":"text.done","index":-1,"text":"a"}"#,
        r#"{"type":"text.done","index":0,"text":5}"#,
        r#"{"type":"text.done","index":0,"text":"a","cut":"moon"}"#,
        r#"{"type":"reasoning.done","index":0}"#,
        r#"{"type":"message.user","parts":[{"type":"smell"}]}"#,
        r#"{"type":"run.start","mode":"build","model":"noslash"}"#,
        r#"{"type":"run.done","result":"complete"}"#,
        r#"{"type":"todo.updated","todos":[{"id":"1","content":"a","status":"later"}]}"#,
        r#"{"no":"type"}"#,
        r#"{"type":7}"#,
        "null",
        r#""text.done""#,
        "[]",
    ] {
        let back = read(&raw(event));
        assert!(back.event.is_damaged(), "{event}");
        assert_eq!(serde_json::to_string(&back.event).unwrap(), event);
        let mut transcript = Transcript::default();
        transcript.apply(&back.event);
        assert!(transcript.items().is_empty() && !transcript.has_open_answer());
    }
}

#[test]
fn any_one_damaged_field_of_any_event_is_survived() {
    for event in samples::events() {
        let whole = serde_json::to_value(&event).unwrap();
        for field in whole.as_object().unwrap().keys().filter(|field| *field != "type") {
            for bad in [json!({"?": []}), json!(-1.5), json!([[null]]), json!("?"), Value::Null] {
                let mut damaged = whole.clone();
                damaged[field] = bad.clone();
                let text = damaged.to_string();
                let back: Event = serde_json::from_str(&text).unwrap();
                assert_eq!(back.type_name(), event.type_name());
                if let Event::Unknown(value) = &back {
                    assert!(back.is_damaged() && serde_json::to_string(value).unwrap() == text);
                }
            }
            let mut bare = whole.clone();
            bare.as_object_mut().unwrap().remove(field);
            let back: Event = serde_json::from_value(bare).unwrap();
            assert_eq!(back.is_damaged(), matches!(back, Event::Unknown(_)));
        }
    }
}

#[test]
fn unknown_fields_of_a_known_event_are_no_damage() {
    let event = r#"{"type":"text.done","index":0,"text":"a","colour":"blue"}"#;
    assert!(matches!(read(&raw(event)).event, Event::TextDone(_)));
    let grown = raw(event).replacen("\"v\":1", "\"v\":1,\"shard\":3", 1);
    assert!(matches!(read(&grown).event, Event::TextDone(_)));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no such number", |f| f.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_in_the_place_of_an_event_is_read_and_an_unknown_one_is_kept(
        mut value in any_json(),
        name in prop::option::of(prop_oneof![
            prop::sample::select(known_types().into_iter().collect::<Vec<_>>()),
            "[a-z]{1,6}\\.[a-z]{1,6}",
        ]),
    ) {
        if let (Some(object), Some(name)) = (value.as_object_mut(), name) {
            object.insert("type".into(), name.into());
        }
        let text = value.to_string();
        let back = read(&raw(&text));
        if matches!(back.event, Event::Unknown(_)) {
            prop_assert_eq!(serde_json::to_string(&back.event).unwrap(), text);
        }
        let name = value.get("type").and_then(Value::as_str).unwrap_or("");
        prop_assert_eq!(back.event.type_name(), name);
    }

    #[test]
    fn numbers_and_texts_of_any_size_come_back(
        text in any::<String>(),
        numbers in any::<(u64, u64, u32)>(),
        seq in prop::option::of(any::<u64>()),
        agent in prop::collection::vec(any::<String>(), 0..3),
    ) {
        let (at, total_ms, step) = numbers;
        let event = Event::StepDone(StepDone {
            finish_reason: Some(text.clone()),
            whole: true,
            usage: None,
            cost: None,
            timings: Timings { first_token_ms: Some(at), total_ms },
            request_id: Some(text.clone()),
        });
        let session = Some(text.clone().into());
        let out = Envelope { seq, at, step: Some(step), agent, session, ..envelope(event) };
        let json = serde_json::to_string(&out).unwrap();
        prop_assert_eq!(json.lines().count(), 1);
        prop_assert_eq!(read(&json), out);
    }
}

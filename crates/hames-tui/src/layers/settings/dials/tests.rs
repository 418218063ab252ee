use serde_json::json;

use super::*;

fn settings(value: Value) -> Settings {
    serde_json::from_value(value).unwrap()
}

/// A session that sets `own` over a configuration that says `file`.
fn known(own: Value, file: Value) -> Known {
    let (own, file) = (settings(own), settings(file));
    Known { effective: file.patched(&own), own, window: Some(32_000), configuration: Value::Null }
}

fn json_of(change: Option<Change>) -> Value {
    change.map_or(Value::Null, |change| json!([serde_json::to_value(change.settings).unwrap(), change.unset]))
}

#[test]
fn a_dial_goes_from_place_to_place_and_ends_at_its_ends() {
    let high = Dial::Guard(GuardParameter::CrossTurnSimilarity);
    for (dial, own, up, set) in [
        (Dial::Thinking, json!({}), true, json!({"thinking_level": "medium"})),
        (Dial::Thinking, json!({"thinking_level": "high"}), true, Value::Null),
        (Dial::Thinking, json!({"thinking_level": "high"}), false, json!({"thinking_level": "medium"})),
        (Dial::Sampler, json!({}), true, json!({"sampler": {"temperature": 1.0}})),
        (Dial::Sampler, json!({"sampler": {"temperature": 0.3}}), true, json!({"sampler": {"top_p": 1.0}})),
        (Dial::Sampler, json!({"sampler": {"temperature": 0.3}}), false, json!({"sampler": {"temperature": "auto"}})),
        (Dial::Sampler, json!({"sampler": {"top_p": 0.3}}), true, Value::Null),
        (Dial::SamplerValue, json!({}), true, json!({"sampler": {"temperature": 1.0}})),
        (Dial::SamplerValue, json!({"sampler": {"temperature": 0.3}}), true, json!({"sampler": {"temperature": 0.4}})),
        (Dial::SamplerValue, json!({"sampler": {"temperature": 2}}), true, Value::Null),
        (Dial::SamplerValue, json!({"sampler": {"top_p": 0.1}}), false, json!({"sampler": {"top_p": 0.0}})),
        (Dial::SamplerValue, json!({"sampler": {"top_p": 0.0}}), false, Value::Null),
        (Dial::Presence, json!({}), false, Value::Null),
        (Dial::Presence, json!({}), true, json!({"presence_penalty": 0.1})),
        (Dial::Presence, json!({"presence_penalty": 0}), false, json!({"presence_penalty": "auto"})),
        (Dial::Frequency, json!({"frequency_penalty": 2}), true, Value::Null),
        (Dial::Window, json!({}), true, json!({"context_window": 33_000})),
        (Dial::Window, json!({"context_window": 2_000}), false, Value::Null),
        (Dial::Output, json!({"max_output_tokens": 300}), true, json!({"max_output_tokens": 512})),
        (Dial::Auto, json!({}), true, Value::Null),
        (Dial::Auto, json!({}), false, json!({"compaction": {"auto": false}})),
        (Dial::Strategy, json!({}), true, json!({"compaction": {"strategy": "deterministic"}})),
        (Dial::Trigger, json!({"compaction": {"trigger": 95}}), true, Value::Null),
        (Dial::Trigger, json!({}), false, json!({"compaction": {"trigger": 79}})),
        (Dial::Landing, json!({"compaction": {"trigger": 20, "landing": 19}}), true, Value::Null),
        (Dial::Landing, json!({"compaction": {"landing": 0}}), false, Value::Null),
        (Dial::GuardLevel, json!({}), true, json!({"guard": {"level": "high"}})),
        (Dial::GuardAnswers, json!({}), true, json!({"guard": {"guard_response": true}})),
        (Dial::Guard(GuardParameter::MaxNudges), json!({"guard": {"max_nudges": 10}}), true, Value::Null),
        (Dial::Guard(GuardParameter::MaxNudges), json!({}), false, json!({"guard": {"max_nudges": 1}})),
        (high, json!({}), true, json!({"guard": {"cross_turn_similarity": 0.9}})),
    ] {
        let expected = if set.is_null() { Value::Null } else { json!([set, []]) };
        assert_eq!(json_of(dial.turned(&known(own.clone(), json!({})), up)), expected, "{dial:?} {own} {up}");
    }
}

#[test]
fn a_dial_can_be_turned_from_end_to_end() {
    for dial in Dial::all() {
        for up in [true, false] {
            let mut known = known(json!({}), json!({}));
            let mut turns = 0;
            while let Some(change) = dial.turned(&known, up) {
                let before = dial.value(&known);
                known.own = change.on(&known.own);
                known.effective = change.on(&known.effective);
                assert_ne!(dial.value(&known), before, "{dial:?}");
                turns += 1;
                assert!(turns < 11_000, "{dial:?}");
            }
        }
    }
}

#[test]
fn what_is_written_is_taken_or_said_to_be_wrong() {
    let now = known(json!({}), json!({}));
    let parameter = Dial::Guard(GuardParameter::ReasoningThreshold);
    for (dial, text, set) in [
        (Dial::Thinking, "HIGH", Ok(json!({"thinking_level": "high"}))),
        (Dial::Thinking, "loud", Err("is not one of off, low, medium, high")),
        (Dial::Sampler, "top-p", Ok(json!({"sampler": {"top_p": 1.0}}))),
        (Dial::Sampler, "none", Ok(json!({"sampler": {"temperature": "auto"}}))),
        (Dial::Sampler, "mirostat", Err("it is one of none, temperature, top_p")),
        (Dial::SamplerValue, "0.75", Ok(json!({"sampler": {"temperature": 0.75}}))),
        (Dial::SamplerValue, "auto", Ok(json!({"sampler": {"temperature": "auto"}}))),
        (Dial::SamplerValue, "2.1", Err("neither a number from 0 to 2 nor auto")),
        (Dial::Presence, "NaN", Err("neither a number from 0 to 2")),
        (Dial::Window, "128k", Ok(json!({"context_window": 128_000}))),
        (Dial::Window, "1.5M", Ok(json!({"context_window": 1_500_000}))),
        (Dial::Window, "64,000", Ok(json!({"context_window": 64_000}))),
        (Dial::Window, "1e99", Err("a number of tokens from 2,000")),
        (Dial::Window, "-5", Err("a number of tokens")),
        (Dial::Output, "0", Err("from 256 to 1,000,000")),
        (Dial::Trigger, "60 %", Ok(json!({"compaction": {"trigger": 60}}))),
        (Dial::Trigger, "10", Err("a percentage from 20 to 95")),
        (Dial::Landing, "80", Err("a percentage from 0 to 79")),
        (Dial::Auto, "off", Ok(json!({"compaction": {"auto": false}}))),
        (Dial::SummaryModel, "shop/a/b", Ok(json!({"compaction": {"summary_model": "shop/a/b"}}))),
        (Dial::SummaryModel, "small", Err("PROVIDER/MODEL")),
        (Dial::GuardAnswers, "perhaps", Err("on or off")),
        (parameter, "0.65", Ok(json!({"guard": {"reasoning_threshold": 0.65}}))),
        (parameter, "0.62", Err("goes from 0.05 to 1 in steps of 0.05")),
        (Dial::Thinking, "  ", Err("nothing is set here")),
    ] {
        match (dial.written(&now, text), set) {
            (Ok(change), Ok(set)) => assert_eq!(json_of(Some(change)), json!([set, []]), "{dial:?} {text}"),
            (Err(why), Err(says)) => assert!(why.contains(says), "{dial:?} {text}: {why}"),
            (got, expected) => panic!("{dial:?} {text}: {got:?} {expected:?}"),
        }
    }
}

#[test]
fn a_value_comes_from_the_session_the_configuration_or_nobody() {
    let own = json!({"thinking_level": "low", "guard": {"max_nudges": 5}, "compaction": {"landing": 20}});
    let file = json!({"thinking_level": "high", "guard": {"level": "low", "answer_threshold": 0.9},
        "compaction": {"trigger": 70}, "presence_penalty": 1});
    let mut known = known(own, file);
    known.effective.model = "shop/small".parse().ok();
    known.configuration = json!({"providers": {"shop": {"max_tokens": {"value": 9_000}}}});
    for (dial, value, source) in [
        (Dial::Thinking, "low", Source::Session),
        (Dial::Presence, "1", Source::Configuration),
        (Dial::Frequency, "auto", Source::Default),
        (Dial::Window, "32,000", Source::Default),
        (Dial::Output, "as configured", Source::Configuration),
        (Dial::Trigger, "70%", Source::Configuration),
        (Dial::Landing, "20%", Source::Session),
        (Dial::Strategy, "carried", Source::Default),
        (Dial::GuardLevel, "low", Source::Configuration),
        (Dial::Guard(GuardParameter::MaxNudges), "5", Source::Session),
        (Dial::Guard(GuardParameter::AnswerThreshold), "0.9", Source::Configuration),
        (Dial::Guard(GuardParameter::ErrorStreakTurns), "5", Source::Default),
    ] {
        assert_eq!((dial.value(&known).as_str(), dial.source(&known)), (value, source), "{dial:?}");
    }
}

#[test]
fn what_is_given_back_leaves_the_rest_of_the_session() {
    let own = json!({"thinking_level": "low", "guard": {"level": "high", "max_nudges": 5, "guard_response": true},
        "compaction": {"landing": 20}});
    let known = known(own, json!({}));
    for (dial, change) in [
        (Dial::Thinking, json!([{}, ["thinking_level"]])),
        (Dial::Presence, Value::Null),
        (Dial::Landing, json!([{}, ["compaction"]])),
        (Dial::Trigger, Value::Null),
        (
            Dial::Guard(GuardParameter::MaxNudges),
            json!([{"guard": {"level": "high", "guard_response": true}}, ["guard"]]),
        ),
        (Dial::GuardAnswers, json!([{"guard": {"level": "high", "max_nudges": 5}}, ["guard"]])),
        (Dial::GuardLevel, json!([{"guard": {"guard_response": true}}, ["guard"]])),
    ] {
        assert_eq!(json_of(dial.given_back(&known)), change, "{dial:?}");
        if let Some(change) = dial.given_back(&known) {
            let after = Known { own: change.on(&known.own), effective: change.on(&known.own), ..known.clone() };
            assert_ne!(dial.source(&after), Source::Session, "{dial:?}");
        }
    }
}

#[test]
fn one_change_behind_another_is_both() {
    let own = settings(json!({"guard": {"level": "high", "max_nudges": 5}, "thinking_level": "low"}));
    let mut change = Change::default();
    for (set, unset) in [
        (json!({"thinking_level": "high"}), vec![]),
        (json!({"guard": {"level": "high"}}), vec!["guard"]),
        (json!({}), vec!["thinking_level"]),
        (json!({"guard": {"answer_threshold": 0.9}}), vec![]),
    ] {
        let next = Change { settings: settings(set), unset: unset.iter().map(|name| (*name).to_owned()).collect() };
        change.then(next);
    }
    let after = serde_json::to_value(change.on(&own)).unwrap();
    assert_eq!(after, json!({"guard": {"level": "high", "answer_threshold": 0.9}}));
}

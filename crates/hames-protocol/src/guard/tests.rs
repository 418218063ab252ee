use super::*;

fn read(json: Value) -> GuardSettings {
    serde_json::from_value(json).expect("reading never fails")
}

#[test]
fn the_presets_are_those_of_the_table() {
    let row = |level| GuardParameter::ALL.map(|parameter| parameter.preset(level));
    let medium = [2.0, 0.5, 60.0, 0.85, 120.0, 2.0, 3.0, 3.0, 16.0, 3.0, 0.6, 300.0];
    assert_eq!(row(GuardLevel::High), [3.0, 0.45, 50.0, 0.75, 120.0, 2.0, 2.0, 2.0, 10.0, 2.0, 0.5, 200.0]);
    assert_eq!(row(GuardLevel::Medium), medium);
    assert_eq!(row(GuardLevel::Low), [2.0, 0.65, 120.0, 0.92, 120.0, 2.0, 5.0, 4.0, 20.0, 4.0, 0.7, 400.0]);
    assert_eq!(row(GuardLevel::Off), medium);
}

#[test]
fn a_number_off_its_scale_is_brought_onto_it() {
    use GuardParameter::*;
    for (parameter, given, kept) in [
        (MaxNudges, 0.0, Some(1.0)),
        (MaxNudges, -3.0, Some(1.0)),
        (MaxNudges, 11.0, Some(10.0)),
        (MaxNudges, 2.4, Some(2.0)),
        (MaxNudges, 2.5, Some(3.0)),
        (ReasoningThreshold, 0.0, Some(0.05)),
        (ReasoningThreshold, 0.62, Some(0.6)),
        (ReasoningThreshold, 0.6, Some(0.6)),
        (ReasoningThreshold, 1.5, Some(1.0)),
        (ReasoningMinTokens, 64.0, Some(60.0)),
        (ReasoningMinTokens, f64::INFINITY, Some(500.0)),
        (ReasoningMinTokens, f64::NEG_INFINITY, Some(10.0)),
        (CrossTurnSimilarity, 0.92, Some(0.92)),
        (CrossTurnSimilarity, 0.93, Some(0.95)),
        (CrossTurnMinLength, 0.0, Some(0.0)),
        (CrossTurnMinLength, 1e300, Some(1000.0)),
        (ToolRepeatWindow, 51.0, Some(50.0)),
        (AnswerMinTokens, 1001.0, Some(1000.0)),
        (AnswerThreshold, f64::NAN, None),
    ] {
        assert_eq!(parameter.nearest(given), kept, "{parameter} {given}");
    }
}

#[test]
fn every_place_on_every_scale_is_kept_exactly() {
    for parameter in GuardParameter::ALL {
        let (min, max, step) = parameter.range();
        let mut at = min;
        let mut count = 0;
        while at <= max + 1e-9 {
            let kept = parameter.nearest(at).unwrap();
            assert!((kept - at).abs() < 1e-9, "{parameter} {at} {kept}");
            let mut set = GuardSettings::default();
            set.set(parameter, at);
            assert_eq!(read(serde_json::to_value(&set).unwrap()), set);
            count += 1;
            at = min + step * f64::from(count);
        }
        assert!(count >= 10, "{parameter}");
    }
}

#[test]
fn whatever_a_file_holds_is_read() {
    for (given, kept) in [
        (json!({}), json!({})),
        (json!(null), json!({})),
        (json!("medium"), json!({})),
        (json!([1]), json!({})),
        (json!({"level": "normal"}), json!({"level": "medium"})),
        (json!({"level": "loud"}), json!({})),
        (json!({"level": 3}), json!({})),
        (json!({"max_nudges": 99}), json!({"max_nudges": 10})),
        (json!({"maxNudges": 3}), json!({"max_nudges": 3})),
        (json!({"max_nudges": "3"}), json!({})),
        (json!({"max_nudges": null}), json!({})),
        (
            json!({"reasoning_threshold": 0.61, "guardResponse": true}),
            json!({"guard_response": true, "reasoning_threshold": 0.6}),
        ),
        (json!({"guard_response": "yes"}), json!({})),
        (json!({"from_a_newer_version": {"x": 1}}), json!({})),
    ] {
        assert_eq!(serde_json::to_value(read(given.clone())).unwrap(), kept, "{given}");
    }
}

#[test]
fn naming_a_level_takes_its_preset_and_a_number_only_itself() {
    for (before, patch, after) in [
        (json!({}), json!({"max_nudges": 3}), json!({"max_nudges": 3})),
        (json!({"level": "low", "max_nudges": 3}), json!({"max_nudges": 4}), json!({"level": "low", "max_nudges": 4})),
        (json!({"level": "low", "max_nudges": 3}), json!({"level": "high"}), json!({"level": "high"})),
        (json!({"level": "low", "max_nudges": 3}), json!({"level": "low"}), json!({"level": "low"})),
        (
            json!({"max_nudges": 3, "guard_response": true}),
            json!({"level": "high", "answer_threshold": 0.5}),
            json!({"level": "high", "guard_response": true, "answer_threshold": 0.5}),
        ),
    ] {
        let patched = read(before.clone()).patched(&read(patch.clone()));
        assert_eq!(serde_json::to_value(patched).unwrap(), after, "{before} {patch}");
    }
}

#[test]
fn what_holds_is_the_preset_under_what_is_set_and_the_window_bounds_its_threshold() {
    let dials = read(json!({"level": "high", "tool_repeat_window": 3, "tool_repeat_window_threshold": 9})).in_force();
    assert_eq!(dials.count(GuardParameter::ToolRepeatWindow), 3);
    assert_eq!(dials.count(GuardParameter::ToolRepeatWindowThreshold), 3);
    assert_eq!(dials.count(GuardParameter::MaxNudges), 3);
    assert!((dials.get(GuardParameter::ReasoningThreshold) - 0.45).abs() < 1e-9);
    assert!(dials.is_on() && !dials.guard_response);
    assert!(!GuardSettings::level(GuardLevel::Off).in_force().is_on());
    assert_eq!(GuardSettings::default().in_force().level, GuardLevel::Medium);
}

#[test]
fn both_spellings_name_a_parameter() {
    for parameter in GuardParameter::ALL {
        let mut camel = String::new();
        for (at, word) in parameter.name().split('_').enumerate() {
            let (first, rest) = word.split_at(1);
            camel.push_str(if at == 0 { first } else { "" });
            camel.push_str(&if at == 0 { String::new() } else { first.to_uppercase() });
            camel.push_str(rest);
        }
        assert_eq!(camel.parse(), Ok(parameter), "{camel}");
        assert_eq!(parameter.name().parse(), Ok(parameter));
    }
    let unknown = "nudges".parse::<GuardParameter>().unwrap_err().to_string();
    assert!(GuardParameter::ALL.iter().all(|parameter| unknown.contains(parameter.name())), "{unknown}");
}

#[test]
fn a_person_is_told_the_scale_instead_of_being_corrected() {
    let change = |text: &str| text.parse::<GuardChange>().map_err(|bad| bad.to_string());
    for text in
        ["max_nudges=3", "maxNudges=3", " reasoning_threshold = 0.6", "guard_response=on", "crossTurnSimilarity=0.92"]
    {
        assert!(change(text).is_ok(), "{text}");
    }
    for (text, says) in [
        ("max_nudges", "NAME=VALUE"),
        ("max_nudges=11", "max_nudges goes from 1 to 10 in steps of 1"),
        ("max_nudges=2.5", "max_nudges goes from 1 to 10 in steps of 1"),
        ("reasoning_threshold=NaN", "reasoning_threshold goes from 0.05 to 1 in steps of 0.05"),
        ("reasoning_threshold=", "reasoning_threshold goes from 0.05"),
        ("reasoning_threshold=0.62", "in steps of 0.05"),
        ("guard_response=maybe", "on or off"),
        ("nudges=3", "max_nudges, reasoning_threshold"),
    ] {
        let bad = change(text).unwrap_err();
        assert!(bad.contains(says), "{text}: {bad}");
    }
    let low = GuardSettings::level(GuardLevel::Low);
    let changed = change("tool_repeat_window=5").unwrap().on(&low);
    assert_eq!(serde_json::to_value(changed).unwrap(), json!({"level": "low", "tool_repeat_window": 5}));
}

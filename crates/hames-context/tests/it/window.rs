//! One behaviour at a time.

use std::sync::Arc;

use hames_context::{
    Author, Budget, Choice, Moment, PinRefused, Plan, Policy, Refused, Situation, Strategy, SummaryAnswer,
    SummaryRequest, Terms, estimate_tokens,
};
use hames_protocol::{
    Break, CheckpointKind, Event, Item, ItemState, PinAdded, PinTarget, PinnedBy, Projection, RetireScope, StepDone,
    Usage, WindowRetired,
};
use serde_json::json;

use crate::support::{Log, event, terse, turns, words};

fn terms(window: u64, head: u64) -> Terms {
    Terms::new(Budget { window, wanted_output: 8_000 }, head)
}

fn with(strategy: impl Strategy + 'static, terms: Terms) -> Terms {
    Terms { policy: Policy { strategy: Arc::new(strategy), ..Policy::default() }, ..terms }
}

#[test]
fn a_long_turn_is_masked_and_then_summed_up() {
    let mut log = Log::new();
    let terms = terms(32_000, 1_000);
    log.user("Read everything.");
    for n in 0..400 {
        log.step("", &[(&format!("src/{n}.rs"), &words(500))]);
        let ready = log.settle(Moment::AtBoundary, &terms, &terse).unwrap().unwrap();
        assert!(ready.input_estimate <= 24_000);
    }
    assert!(log.lines.iter().any(|line| line.starts_with("masked:")), "{:#?}", log.lines);
    assert!(log.lines.iter().any(|line| line.starts_with("compacted:")), "{:#?}", log.lines);
    assert!(log.lines.iter().all(|line| line.contains("tally: mask ")));
    assert!(log.texts()[0].contains("items summed up"), "{:#?}", log.texts());
    assert!(log.texts()[1].contains("Read everything."), "{:#?}", log.texts());
}

#[test]
fn a_stub_says_what_was_there_and_how_to_get_it_back() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    log.user("Go.");
    for n in 0..24 {
        log.step("", &[(&format!("src/{n}.rs"), &words(450))]);
        log.settle(Moment::AtBoundary, &terms, &terse).unwrap();
    }
    let stub = log.texts()[2].clone();
    assert!(stub.starts_with("[Output of Read src/0.rs left out to save room (1 line, "), "{stub}");
    assert!(stub.ends_with("It is kept as out-1; Recall shows it.]"), "{stub}");
    assert_eq!(log.kept[0].1, words(450));
    // The result of the last step stays, whatever it weighs.
    assert!(log.texts().last().unwrap().starts_with("word "));
}

#[test]
fn what_completed_turns_called_leaves_before_anything_is_summed_up() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    for n in 0..120 {
        log.user(&format!("Question {n}?"));
        for call in 0..3 {
            log.step("", &[(&format!("src/{n}-{call}.rs"), &words(40))]);
        }
        log.answer("Done.");
        log.settle(Moment::AfterResponse, &terms, &terse).unwrap();
        if log.state.retired_up_to > 0 {
            break;
        }
    }
    assert!(log.asked.is_empty());
    log.user("And now?");
    log.settle(Moment::BeforeRequest, &terms, &terse).unwrap();
    let texts = log.texts();
    assert!(texts[0].contains("Question 0?"));
    assert!(
        texts[1].starts_with("[3 calls were made here and are left out to save room: Read src/0-0.rs, "),
        "{texts:?}"
    );
    assert_eq!(texts[2], "Done.");
}

#[test]
fn the_cut_falls_between_turns_and_inside_one_only_where_that_one_is_too_large() {
    let mut log = Log::new();
    let terms = terms(32_000, 500);
    turns(&mut log, 30, 300);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    let first =
        log.window.report(&log.state, &terms).items.iter().position(|item| item.state == ItemState::Active).unwrap();
    let places = log.transcript.places();
    assert_eq!(places[first].origin, hames_protocol::Origin::Opening);
    assert!(log.state.checkpoint.as_ref().unwrap().held.is_empty());
    // One turn that is larger than what stays verbatim.
    let mut log = Log::new();
    let asked = log.user("Do it all.");
    for n in 0..30 {
        log.step("", &[(&format!("src/{n}.rs"), &words(300))]);
    }
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    assert_eq!(log.state.checkpoint.as_ref().unwrap().held, [asked]);
    log.plan(Moment::AtBoundary, &terms);
    assert!(log.texts()[1].starts_with("Do it all."));
}

#[test]
fn a_landing_point_of_zero_keeps_the_last_complete_turn() {
    let mut log = Log::new();
    let mut terms = terms(32_000, 500);
    terms.policy.landing = 0;
    turns(&mut log, 10, 300);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    log.user("Next.");
    log.settle(Moment::BeforeRequest, &terms, &terse).unwrap();
    let texts = log.texts();
    assert_eq!(texts.len(), 1 + 4 + 1, "{texts:?}");
    assert!(texts[1].starts_with("Question 9"));
}

#[test]
fn a_document_is_updated_and_never_part_of_what_is_summed_up() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    let author = |request: &SummaryRequest| SummaryAnswer::Text(format!("{}\n- pass", request.previous).trim().into());
    for _ in 0..3 {
        turns(&mut log, 12, 200);
        log.settle(Moment::Manual, &terms, &author).unwrap();
    }
    assert_eq!(log.state.document(), "- pass\n- pass\n- pass");
    assert_eq!(log.asked[2].previous, "- pass\n- pass");
    assert!(log.asked.iter().all(|request| !request.span.contains("- pass")));
    // Calls are named; what they were given is not told.
    assert!(log.asked[0].span.contains("[call] Read src/0.rs") && !log.asked[0].span.contains("\"path\""));
    assert!(log.asked[0].target_tokens <= log.asked[0].span_tokens / 10 + 64);
}

#[test]
fn a_document_that_is_too_long_gets_one_more_pass_and_is_cut_then() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    turns(&mut log, 14, 300);
    let author =
        |request: &SummaryRequest| SummaryAnswer::Text("line of text\n".repeat(request.target_tokens as usize));
    log.settle(Moment::Manual, &terms, &author).unwrap();
    assert_eq!(log.asked.iter().map(|request| request.compress).collect::<Vec<_>>(), [false, true]);
    assert!(estimate_tokens(log.state.document()) <= log.asked[1].target_tokens * 13 / 10 + 1);
    assert_eq!(log.state.repairs.compactions.total(), 1);
}

#[test]
fn a_span_larger_than_its_reader_is_summed_up_in_its_newest_part_and_the_rest_is_deferred() {
    let mut log = Log::new();
    let mut terms = terms(64_000, 500);
    terms.summary_budget = Some(Budget { window: 4_000, wanted_output: 1_000 });
    turns(&mut log, 60, 300);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    let checkpoint = log.state.checkpoint.clone().unwrap();
    assert_eq!(checkpoint.kind, CheckpointKind::Summary);
    let deferred = checkpoint.deferred.unwrap();
    assert_eq!(deferred.from_seq, 1);
    assert!(deferred.to_seq < checkpoint.from_seq);
    let request = &log.asked[0];
    assert!(estimate_tokens(&request.span) + request.max_output_tokens + terms.prompt_tokens <= 4_000);
    assert!(!request.span.contains("Question 0:") && request.span.contains("Question 40:"));
    // The whole of it can be recalled.
    let archive = checkpoint.archive.unwrap().name.unwrap();
    let kept = &log.kept.iter().find(|(name, _)| *name == archive).unwrap().1;
    assert!(kept.contains("Question 0:"));
}

#[test]
fn a_window_that_can_read_nothing_is_trimmed_and_keeps_its_document() {
    let mut log = Log::new();
    let mut terms = terms(64_000, 500);
    turns(&mut log, 20, 300);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    let document = log.state.document().to_owned();
    terms.summary_budget = Some(Budget { window: 600, wanted_output: 600 });
    turns(&mut log, 20, 300);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    assert_eq!(log.asked.len(), 1);
    assert_eq!(log.state.document_kind(), Some(CheckpointKind::Trim));
    assert_eq!(log.state.document(), document);
    assert!(log.lines.last().unwrap().contains("trim 1 (1 session/0 sub)"), "{:?}", log.lines);
}

#[test]
fn an_author_that_fails_costs_no_session() {
    for answer in [SummaryAnswer::Failed("away".into()), SummaryAnswer::Text(" ".into())] {
        let mut log = Log::new();
        let terms = terms(16_000, 500);
        turns(&mut log, 20, 300);
        log.settle(Moment::Manual, &terms, &move |_: &SummaryRequest| answer.clone()).unwrap();
        assert_eq!(log.state.document_kind(), Some(CheckpointKind::Trim));
        log.user("Go on.");
        assert!(log.settle(Moment::BeforeRequest, &terms, &terse).unwrap().is_some());
    }
}

#[test]
fn the_deterministic_strategy_never_asks_a_model() {
    let mut log = Log::new();
    let terms = with(hames_context::Deterministic, terms(8_000, 500));
    for _ in 0..12 {
        turns(&mut log, 10, 200);
        log.settle(Moment::AfterResponse, &terms, &|_| panic!("asked")).unwrap();
    }
    log.settle(Moment::Manual, &terms, &|_| panic!("asked")).unwrap();
    assert!(log.state.document().contains("- user: Question 9"), "{}", log.state.document());
    assert!(log.state.document().contains("- Read src/9.rs"));
}

#[test]
fn pruning_leaves_a_protected_end_and_a_new_summary_takes_the_old_one_in() {
    let mut log = Log::new();
    let terms = with(hames_context::PruneThenSummarize::default(), terms(200_000, 500));
    log.user("Go.");
    for n in 0..200 {
        log.step("", &[(&format!("src/{n}.rs"), &words(1_000))]);
        log.settle(Moment::AtBoundary, &terms, &terse).unwrap();
        if !log.lines.is_empty() {
            break;
        }
    }
    assert!(log.lines[0].starts_with("masked:"), "{:?}", log.lines);
    let whole = log.texts().iter().filter(|text| text.starts_with("word ")).count();
    assert!((38..=40).contains(&whole), "{whole}");
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    log.answer("Done.");
    turns(&mut log, 40, 1_000);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    assert!(log.asked[1].previous.is_empty() && log.asked[1].span.contains("items summed up"));
}

#[test]
fn a_strategy_of_ones_own_is_held_to_the_same_limits() {
    #[derive(Debug)]
    struct Mine;
    impl Strategy for Mine {
        fn name(&self) -> &str {
            "mine"
        }
        fn choose(&self, s: &Situation<'_>) -> Choice {
            let sketch = s.checkpoint(s.usable / 5);
            if !sketch.moves_window {
                return Choice::Nothing;
            }
            Choice::Checkpoint(sketch, Author::Own("my own words ".repeat(4_000)))
        }
    }
    let mut log = Log::new();
    let terms = with(Mine, terms(8_000, 500));
    for _ in 0..10 {
        turns(&mut log, 4, 300);
        log.user("More.");
        let ready = log.settle(Moment::BeforeRequest, &terms, &|_| panic!("asked")).unwrap().unwrap();
        assert!(ready.input_estimate < 7_400);
    }
    assert!(log.state.document().starts_with("my own words"));
}

#[test]
fn a_head_that_leaves_no_room_is_refused_at_once_and_names_itself() {
    let mut log = Log::new();
    log.user("continue");
    let Plan::Refused(refused) = log.plan(Moment::BeforeRequest, &terms(8_000, 7_900)) else { panic!() };
    assert_eq!(refused, Refused::Head { head: 7_900, window: 8_000 });
    assert!(refused.to_string().contains("The fixed part of every request"));
    assert!(log.lines.is_empty() && log.asked.is_empty());
}

#[test]
fn an_output_limit_as_large_as_the_window_is_no_reason_to_compact() {
    for wanted_output in [32_768, 1_000_000, 0] {
        let mut log = Log::new();
        log.user("Go.");
        log.step("", &[("src/a.rs", &words(6_000))]);
        let terms = Terms::new(Budget { window: 32_768, wanted_output }, 0);
        assert!(matches!(log.plan(Moment::AtBoundary, &terms), Plan::Ready(_)));
    }
}

#[test]
fn without_usage_estimates_are_enough_and_with_it_they_are_corrected() {
    let mut log = Log::new();
    let terms = terms(4_000, 300);
    for n in 0..10 {
        log.user(&format!("{n} {}", words(400)));
        let ready = log.settle(Moment::BeforeRequest, &terms, &terse).unwrap().unwrap();
        assert!(ready.input_estimate < 3_600);
        log.answer(&words(500));
    }
    assert!(log.state.checkpoint.is_some());
    let model = "acme/large".parse().unwrap();
    let mut log = Log::new();
    log.push(event(json!({"type": "run.start", "mode": "build", "model": "acme/large"})));
    let mut measured = |counted: u64| {
        log.push(event(json!({"type": "step.start", "number": 1, "fingerprint": "f", "bytes": 1, "changed_why": "first", "input_estimate": 1_000})));
        let Event::StepDone(done) = Event::step_done_for_tests("stop") else { panic!() };
        log.push(StepDone { usage: Some(Usage { input: Some(counted), ..Usage::default() }), ..done });
        log.state.measure.ratio(&model)
    };
    let counts = [1_300, 0, 90_000, 499, 1, 500, 900];
    assert_eq!(counts.map(&mut measured), [1_300, 1_300, 2_000, 2_000, 2_000, 500, 900]);
}

#[test]
fn a_message_over_half_of_the_window_is_sent_as_beginning_and_end() {
    let mut log = Log::new();
    let terms = terms(8_000, 500);
    log.user(&format!("BEGIN {} END", words(5_000)));
    log.settle(Moment::BeforeRequest, &terms, &terse).unwrap();
    let text = &log.texts()[0];
    assert!(
        text.starts_with("BEGIN ")
            && text.ends_with(" END")
            && text.contains("the whole message is kept as out-1; Recall shows it")
    );
    assert!(estimate_tokens(text) < 2_000);
    assert!(log.kept[0].1.starts_with("BEGIN "));
}

#[test]
fn pins_are_bounded_survive_everything_and_say_where_they_stand() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    let said = log.user("The port is 8080, always.");
    let pin = |log: &mut Log, target: PinTarget| log.push(PinAdded { target, by: PinnedBy::User });
    log.plan(Moment::BeforeRequest, &terms);
    let check = |log: &Log, target: &PinTarget| log.window.check_pin(target, &terms);
    assert!(matches!(
        check(&log, &PinTarget::Text { text: words(4_000) }),
        Err(PinRefused::TooMuch { limit: 1_800, .. })
    ));
    assert_eq!(check(&log, &PinTarget::Message { seq: 99 }), Err(PinRefused::Unknown { seq: 99 }));
    assert_eq!(check(&log, &PinTarget::Text { text: " ".into() }), Err(PinRefused::Empty));
    assert_eq!(check(&log, &PinTarget::Message { seq: said }), Ok(()));
    pin(&mut log, PinTarget::Message { seq: said });
    pin(&mut log, PinTarget::Text { text: "never force-push".into() });
    log.answer("Noted.");
    turns(&mut log, 60, 200);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    log.user("Go on.");
    log.settle(Moment::BeforeRequest, &terms, &terse).unwrap();
    let opening = &log.texts()[0];
    assert!(opening.contains("The port is 8080, always.") && opening.contains("never force-push"), "{opening}");
    let report = log.window.report(&log.state, &terms);
    assert!(report.pins.iter().all(|pin| pin.projection == Projection::Opening));
    assert_eq!(report.items.iter().filter(|item| item.state == ItemState::Pinned).count(), 2);
}

#[test]
fn only_the_newest_nudge_of_a_kind_is_sent() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    log.user("Go.");
    for (n, kind) in ["empty", "failing", "empty"].iter().enumerate() {
        log.step("", &[(&format!("{n}"), "out")]);
        log.push(event(json!({"type": "nudge", "kind": kind, "text": format!("nudge {n}")})));
    }
    log.settle(Moment::AtBoundary, &terms, &terse).unwrap();
    let nudges: Vec<String> = log.texts().into_iter().filter(|text| text.starts_with("nudge")).collect();
    assert_eq!(nudges, ["nudge 1", "nudge 2"]);
    log.push(event(json!({"type": "step.start", "number": 4, "fingerprint": "f", "bytes": 9, "changed_at": 4, "changed_why": "item"})));
    assert_eq!(log.window.report(&log.state, &terms).request.unwrap().changed_by, Some(Break::Nudge));
}

#[test]
fn where_nothing_can_be_gained_nothing_is_done() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    log.user("Hello.");
    log.answer("Hello.");
    assert!(matches!(log.plan(Moment::Manual, &terms), Plan::Nothing));
    assert!(matches!(log.plan(Moment::AfterResponse, &terms), Plan::Nothing));
    assert_eq!(log.window.preview(&terms).stage, "nothing");
}

#[test]
fn where_compaction_is_off_a_full_window_is_refused_and_a_hand_still_helps() {
    let mut log = Log::new();
    let mut terms = terms(8_000, 500);
    terms.policy.auto = false;
    turns(&mut log, 40, 300);
    log.user("Next.");
    let Plan::Refused(refused) = log.plan(Moment::BeforeRequest, &terms) else { panic!() };
    assert!(matches!(refused, Refused::Full { .. }) && refused.to_string().contains("Compaction is switched off"));
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    assert!(matches!(log.plan(Moment::BeforeRequest, &terms), Plan::Ready(_)));
}

#[test]
fn a_preview_says_what_the_next_compaction_does_and_changes_nothing() {
    let mut log = Log::new();
    let terms = terms(32_000, 500);
    turns(&mut log, 30, 300);
    log.plan(Moment::AfterResponse, &terms);
    let preview = log.window.preview(&terms);
    assert_eq!(preview, log.window.preview(&terms));
    assert_eq!((preview.stage.as_str(), preview.ceiling_percent), ("summary", 79));
    assert!(preview.kept <= 2_400 && preview.after < preview.fill && preview.floor_percent < 10, "{preview:?}");
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    let after = log.window.preview(&terms);
    assert!(after.fill <= preview.after, "{after:?} {preview:?}");
    assert_eq!(log.window.report(&log.state, &terms).opening.unwrap().items_above, preview.leaving);
}

#[test]
fn turns_can_leave_without_a_document_and_pins_stay() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    turns(&mut log, 4, 20);
    let up_to_seq = log.events.len() as u64;
    log.push(WindowRetired { up_to_seq, tokens: 0, scope: RetireScope::Turns, archive: None });
    log.user("Next.");
    log.settle(Moment::BeforeRequest, &terms, &terse).unwrap();
    assert_eq!(log.texts().len(), 2);
    assert!(matches!(log.window.items()[0].as_ref(), Item::User(_)));
}

/// A step of which one result says what can be done.
fn capability(log: &mut Log, what: &str, size: u64) {
    let (skill, other) = (log.call(what), log.call("src/beside.rs"));
    log.push(Event::step_done_for_tests("tool_calls"));
    log.push(event(json!({
        "type": "tool.done", "call_id": skill, "name": "Read", "output": format!("SKILL {}", words(size)),
        "duration_ms": 1, "capability": true,
    })));
    log.result(other, &words(size));
}

#[test]
fn what_says_what_can_be_done_is_masked_last_and_stays_while_its_turn_does() {
    for strategy in [true, false] {
        let mut log = Log::new();
        let plain = terms(16_000, 500);
        let terms = if strategy { with(hames_context::Deterministic, plain) } else { plain };
        log.user("Go.");
        capability(&mut log, "skills/release", 800);
        for n in 0..24 {
            log.step("", &[(&format!("src/{n}.rs"), &words(900))]);
            log.settle(Moment::AtBoundary, &terms, &terse).unwrap();
            if log.state.checkpoint.is_some() {
                break;
            }
            let texts = log.texts();
            assert!(texts.iter().any(|text| text.starts_with("SKILL ")), "{n}: {:?}", log.lines);
        }
        assert!(log.lines.iter().any(|line| line.starts_with("masked")), "{:?}", log.lines);
        // What came beside it is a stub all the same.
        assert!(log.state.masked.len() > 4);
    }
    // Where nothing else is left to give, it goes too, and is kept.
    let mut log = Log::new();
    let terms = terms(4_096, 300);
    log.user("Go.");
    capability(&mut log, "skills/release", 3_600);
    log.settle(Moment::AtBoundary, &terms, &terse).unwrap();
    assert!(log.texts().iter().all(|text| !text.starts_with("SKILL ")), "{:?}", log.lines);
    assert!(log.kept.iter().any(|(_, text)| text.contains("SKILL ")));
}

#[test]
fn the_model_may_pin_what_people_left_of_the_room() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    log.user("Go.");
    let pin = |by, text: &str| PinAdded { target: PinTarget::Text { text: text.into() }, by };
    log.push(pin(PinnedBy::User, &words(1_000)));
    log.push(pin(PinnedBy::Model, &words(500)));
    log.plan(Moment::BeforeRequest, &terms);
    let others = log.window.pinned_by_people();
    assert!((1_000..1_020).contains(&others), "{others}");
    // The list is given whole, so what the model has pinned already counts for nothing.
    assert_eq!(terms.check_texts(&[words(780)], others), Ok(()));
    let refused = terms.check_texts(&[words(780), words(100)], others).unwrap_err();
    assert!(matches!(refused, PinRefused::TooMuch { limit: 1_800, .. }));
    assert!(refused.to_string().contains("15% of the usable window"), "{refused}");
}

#[test]
fn the_report_names_the_text_that_holds_what_left() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    for _ in 0..3 {
        turns(&mut log, 20, 300);
        log.settle(Moment::Manual, &terms, &terse).unwrap();
    }
    let report = log.window.report(&log.state, &terms);
    let left: Vec<_> = report.items.iter().enumerate().filter(|(_, item)| item.state == ItemState::Archived).collect();
    assert!(left.len() > 60, "{}", left.len());
    for (at, item) in left {
        let name = item.archive.as_ref().unwrap();
        let whole = &log.kept.iter().find(|(known, _)| known == name).unwrap().1;
        let said = crate::support::text(&log.transcript.items()[at]);
        assert!(whole.contains(said.trim()), "{at} is not in {name}");
    }
    assert!(report.items.iter().all(|item| (item.state == ItemState::Archived) == item.archive.is_some()));
}

#[test]
fn exchanges_that_leave_are_kept_whole_and_their_digest_names_the_text() {
    let mut log = Log::new();
    let terms = terms(16_000, 500);
    for n in 0..40 {
        log.user(&format!("Question {n}: {}", words(30)));
        // Small results: a line in their place would save nothing.
        let small = format!("fact {n} {}", words(60));
        log.step("I look first.", &[("a.rs", &small), ("b.rs", &small), ("c.rs", &small)]);
        log.answer("Nothing much.");
        log.settle(Moment::AfterResponse, &terms, &terse).unwrap();
        if log.state.retired_up_to > 0 {
            break;
        }
    }
    let report = log.window.report(&log.state, &terms);
    let gone: Vec<usize> = (0..report.items.len()).filter(|at| report.items[*at].archive.is_some()).collect();
    assert!(log.state.archived_up_to == 0 && gone.len() > 10, "{:?} {}", log.lines, gone.len());
    for at in gone {
        let name = report.items[at].archive.clone().unwrap();
        let whole = &log.kept.iter().find(|(known, _)| *known == name).unwrap().1;
        assert!(whole.contains(crate::support::text(&log.transcript.items()[at]).trim()));
        assert!(log.texts().iter().any(|text| text.contains(&format!("kept as {name}; Recall shows it"))), "{name}");
    }
}

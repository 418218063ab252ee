//! Faults that long sessions are known for, each over a whole range of the numbers it was seen with.

use hames_context::{Budget, Moment, Plan, Refused, Terms};
use hames_protocol::{Delivery, Event};

use crate::support::{Log, terse, words};

fn compactions(log: &Log) -> usize {
    log.events.iter().filter(|envelope| matches!(envelope.event, Event::CompactionDone(_))).count()
}

#[test]
fn however_much_a_head_takes_a_session_goes_on_or_is_refused_by_its_name_and_never_compacted_in_vain() {
    for window in [2_048u64, 8_000, 32_768, 128_000] {
        let (mut went_on, mut refused) = (0, 0);
        for percent in (5..=100).step_by(5) {
            let terms = Terms::new(Budget { window, wanted_output: 16_384 }, window * percent / 100);
            let mut log = Log::new();
            let turns = 40;
            for n in 0..turns {
                log.user(&format!("continue {n}"));
                match log.settle(Moment::BeforeRequest, &terms, &terse) {
                    Ok(ready) => assert!(ready.is_some()),
                    Err(why) => {
                        assert!(matches!(why, Refused::Head { .. }), "{window} {percent}%: {why}");
                        assert!(why.to_string().starts_with("The fixed part of every request"), "{why}");
                        assert_eq!((n, log.asked.len()), (0, 0), "{window} {percent}%: at once, and nobody was asked");
                        break;
                    }
                }
                log.answer(&words(window / 50));
            }
            if log.transcript.items().len() < turns {
                refused += 1;
                continue;
            }
            went_on += 1;
            for envelope in &log.events {
                let Event::CompactionDone(done) = &envelope.event else { continue };
                assert!(done.tokens_after < done.tokens_before, "{window} {percent}%: {done:?}");
            }
            assert!(compactions(&log) <= turns, "{window} {percent}%: {}", compactions(&log));
        }
        assert!(went_on >= 12 && refused >= 1, "{window}: {went_on} {refused}");
    }
}

#[test]
fn no_answers_limit_however_absurd_makes_a_window_too_small_for_a_fifth_of_it() {
    for window in [2_048u64, 4_096, 8_192, 32_768, 128_000, 1_000_000, 10_000_000, u64::MAX - 8] {
        let more = window.saturating_mul(4);
        for wanted_output in [0, 1, window / 4, window - 1, window, window + 1, more, u64::MAX] {
            let budget = Budget { window, wanted_output };
            assert!(budget.usable() >= window - window / 4, "{budget:?}");
            let mut log = Log::new();
            log.user("Go.");
            log.step("", &[("src/a.rs", &words((window / 5).min(100_000)))]);
            let terms = Terms::new(budget, 0);
            let plan = log.plan(Moment::AtBoundary, &terms);
            let told = log.window.budget(&terms);
            assert!(told.trigger.abs_diff(budget.usable() / 100 * 80) <= 80, "{told:?}");
            let Plan::Ready(ready) = plan else { panic!("{budget:?}: {plan:?}") };
            assert!(ready.max_output_tokens >= 1 && ready.max_output_tokens <= wanted_output.max(1), "{budget:?}");
            assert!(ready.input_estimate + ready.max_output_tokens + budget.margin() <= window, "{budget:?}");
        }
    }
}

#[test]
fn a_window_that_is_none_is_refused_plainly() {
    for window in 0..600 {
        for wanted_output in [0, 100, u64::MAX] {
            let mut log = Log::new();
            log.user("Go.");
            match log.settle(Moment::BeforeRequest, &Terms::new(Budget { window, wanted_output }, 0), &terse) {
                Ok(ready) => assert!(ready.is_some() && window > 320, "{window}"),
                Err(why) => {
                    assert!(matches!(why, Refused::Head { .. }), "{window}: {why}");
                    let terms = Terms::new(Budget { window, wanted_output }, 0);
                    assert_eq!(log.window.preview(&terms).stage, "nothing", "{window}: what is refused has no plan");
                }
            }
        }
    }
}

#[test]
fn a_steer_that_was_handled_stays_where_it_was_said_and_is_never_the_last_word_again() {
    for compact_after in 1..6 {
        let mut log = Log::new();
        let terms = Terms::new(Budget { window: 16_000, wanted_output: 8_000 }, 500);
        for turn in 0..8 {
            log.user(&format!("Turn {turn}: look around."));
            log.step("", &[(&format!("src/{turn}.rs"), &words(500))]);
            if turn == 1 {
                log.say("rename foo to bar", Some(Delivery::Steer));
                log.step("I rename it.", &[("src/foo.rs", &words(100))]);
            }
            log.answer("Done.");
            if turn == compact_after {
                log.settle(Moment::Manual, &terms, &terse).unwrap();
            }
            log.settle(Moment::AfterResponse, &terms, &terse).unwrap();
        }
        log.user("What next?");
        log.settle(Moment::BeforeRequest, &terms, &terse).unwrap();
        let texts = log.texts();
        let times = texts.iter().filter(|text| text.contains("rename foo to bar")).count();
        assert!(times <= 1 && texts.last().unwrap() == "What next?", "{texts:?}");
        let said: usize = log.asked.iter().map(|request| request.span.matches("rename foo to bar").count()).sum();
        assert!(said <= 1, "told of once: {compact_after}");
    }
}

#[test]
fn a_message_whose_work_left_with_everything_else_is_not_asked_for_anew() {
    let mut log = Log::new();
    let terms = Terms::new(Budget { window: 4_096, wanted_output: 1_000 }, 300);
    log.user("Look around.");
    log.step("", &[("src/a.rs", &words(200))]);
    log.say("rename foo to bar", Some(Delivery::Steer));
    // One step that is too large to stay, whatever becomes a stub.
    log.step("I rename it.", &[(&words(3_400), "renamed")]);
    let ready = log.settle(Moment::AtBoundary, &terms, &terse).unwrap().unwrap();
    assert!(ready.input_estimate < 3_700);
    let texts = log.texts();
    assert_eq!(texts.iter().filter(|text| text.contains("rename foo to bar")).count(), 1, "{texts:?}");
    assert!(texts.last().unwrap().starts_with("[This was being worked on"), "{texts:?}");
    // From the log alone it is the same, also when the work has gone on.
    let same = |log: &mut Log| {
        let mut again = log.again();
        again.settle(Moment::AtBoundary, &terms, &terse).unwrap();
        log.settle(Moment::AtBoundary, &terms, &terse).unwrap();
        assert_eq!(again.window.items(), log.window.items());
    };
    same(&mut log);
    log.step("I go on.", &[("src/b.rs", "fine")]);
    same(&mut log);
    assert!(log.texts().iter().any(|text| text.starts_with("[This was being worked on")));
    // What was only just said has no work behind it.
    let mut log = Log::new();
    for n in 0..12 {
        log.user(&format!("{n} {}", words(200)));
        log.answer(&words(200));
    }
    log.user(&format!("The newest. {}", words(1_400)));
    log.settle(Moment::BeforeRequest, &terms, &terse).unwrap();
    assert!(log.texts().last().unwrap().starts_with("The newest."), "{:?}", log.texts());
}

#[test]
fn what_stays_verbatim_is_what_was_set_as_long_as_leaving_gains_something() {
    let budget = Budget { window: 100_000, wanted_output: 8_000 };
    let usable = budget.usable();
    for (landing, kept_percent) in [(5u8, 5u64), (10, 10), (30, 30), (45, 45), (55, 55), (79, 59)] {
        let mut terms = Terms::new(budget, 1_000);
        terms.policy.landing = landing;
        let mut log = Log::new();
        while log.state.checkpoint.is_none() {
            // Nothing that could become a stub: only the window's beginning can move.
            log.user(&words(100));
            log.answer(&words(100));
            log.settle(Moment::AfterResponse, &terms, &terse).unwrap();
        }
        let done = log.state.last_compaction.clone().unwrap();
        assert!(done.tokens_before >= usable * 80 / 100, "{landing}: {done:?}");
        let kept = done.tokens_after.saturating_sub(1_000 + 200);
        let wanted = usable * kept_percent / 100;
        assert!(kept.abs_diff(wanted) <= usable / 50, "{landing}: {kept} of {wanted}");
        assert!(done.tokens_before - done.tokens_after >= usable / 20, "{landing}: {done:?}");
    }
}

#[test]
fn images_that_are_sent_no_more_are_no_reason_to_compact() {
    let terms = Terms::new(Budget { window: 64_000, wanted_output: 8_000 }, 500);
    let mut log = Log::new();
    for n in 0..80 {
        let image = |at: usize| {
            serde_json::json!({"type": "image", "media_type": "image/png",
                "blob": {"hash": format!("{n}-{at}"), "bytes": 100, "dropped": 0}})
        };
        let parts = [serde_json::json!({"type": "text", "text": format!("screenshot {n}")}), image(0)];
        log.push(crate::support::event(serde_json::json!({"type": "message.user", "parts": parts})));
        let ready = log.settle(Moment::BeforeRequest, &terms, &terse).unwrap().unwrap();
        let sent: u64 = log.window.items().iter().map(|item| hames_context::estimate_item(item)).sum();
        assert_eq!(ready.input_estimate, sent + 500, "{n}");
        let report = log.window.report(&log.state, &terms);
        assert_eq!((report.sent.tokens, report.budget.fill), (sent, sent + 500), "{n}");
        log.answer("I see.");
    }
    // Twenty images are 32,000 tokens at most, well below the trigger.
    assert_eq!(compactions(&log), 0, "{:?}", log.lines);
}

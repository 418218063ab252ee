//! What the author of a document is asked for, and what becomes of an answer that is not as it was asked for.

use std::sync::Arc;

use hames_context::{
    Budget, Moment, Policy, PruneThenSummarize, SummaryAnswer, SummaryRequest, Terms, estimate_tokens,
};
use hames_protocol::{CheckpointKind, Item};
use serde_json::json;

use crate::support::{Log, event, terse, turns, words};

#[test]
fn a_document_is_never_asked_for_longer_than_an_answer_may_be() {
    for wanted_output in [200, 1_000, 4_000, 16_384] {
        for is_afresh in [false, true] {
            let mut log = Log::new();
            let mut terms = Terms::new(Budget { window: 128_000, wanted_output }, 1_000);
            if is_afresh {
                terms.policy = Policy { strategy: Arc::new(PruneThenSummarize::default()), ..Policy::default() };
            }
            // An author that fills what it is told to.
            let author = |request: &SummaryRequest| {
                SummaryAnswer::Text("fact of it\n".repeat(request.target_tokens as usize * 4 / 11))
            };
            for _ in 0..3 {
                turns(&mut log, 160, 500);
                log.settle(Moment::Manual, &terms, &author).unwrap();
            }
            for request in &log.asked {
                assert_eq!(request.max_output_tokens, wanted_output);
                assert!(request.target_tokens <= wanted_output * 3 / 4, "{wanted_output}: {}", request.target_tokens);
            }
            assert!(log.asked.len() == 3 && estimate_tokens(log.state.document()) <= wanted_output);
        }
    }
}

#[test]
fn a_document_that_ran_into_the_end_of_its_answer_is_asked_for_once_more_and_shorter() {
    let mut log = Log::new();
    let terms = Terms::new(Budget { window: 32_000, wanted_output: 8_000 }, 500);
    turns(&mut log, 40, 300);
    let wordy = |request: &SummaryRequest| {
        let whole = format!("{}## Next\n- run the tests", "- a line of it\n".repeat(20));
        // The first time it begins with the events of it.
        match request.events.is_empty() {
            false => SummaryAnswer::Cut(whole[..80].to_owned()),
            true => SummaryAnswer::Text(whole),
        }
    };
    log.settle(Moment::Manual, &terms, &wordy).unwrap();
    let (first, second) = (&log.asked[0], &log.asked[1]);
    assert_eq!((log.asked.len(), second.target_tokens), (2, first.target_tokens / 2));
    assert_eq!((&first.span, &first.previous, second.compress), (&second.span, &second.previous, false));
    assert!(second.events.is_empty(), "it began once");
    assert!(log.state.document().ends_with("- run the tests"), "{}", log.state.document());
    assert_eq!(log.state.document_kind(), Some(CheckpointKind::Summary));
}

#[test]
fn a_document_that_is_cut_again_is_taken_as_it_is() {
    let mut log = Log::new();
    let terms = Terms::new(Budget { window: 32_000, wanted_output: 8_000 }, 500);
    turns(&mut log, 40, 300);
    let endless = |request: &SummaryRequest| SummaryAnswer::Cut("- a line\n".repeat(request.target_tokens as usize));
    log.settle(Moment::Manual, &terms, &endless).unwrap();
    assert_eq!(log.asked.iter().map(|request| request.compress).collect::<Vec<_>>(), [false, false]);
    assert!(log.state.document().starts_with("- a line\n- a line"));
    log.user("Go on.");
    assert!(log.settle(Moment::BeforeRequest, &terms, &terse).unwrap().is_some());
    // Nothing at all is nothing, and the window moves all the same.
    let mut log = Log::new();
    turns(&mut log, 40, 300);
    log.settle(Moment::Manual, &terms, &|_| SummaryAnswer::Cut(String::new())).unwrap();
    assert_eq!((log.asked.len(), log.state.document_kind()), (2, Some(CheckpointKind::Trim)));
}

#[test]
fn of_a_step_that_is_too_much_for_its_reader_alone_a_part_is_read() {
    let mut log = Log::new();
    let mut terms = Terms::new(Budget { window: 64_000, wanted_output: 8_000 }, 500);
    terms.summary_budget = Some(Budget { window: 4_000, wanted_output: 1_000 });
    turns(&mut log, 30, 300);
    log.user(&format!("BEGIN {} END", words(12_000)));
    log.answer("Read.");
    turns(&mut log, 2, 100);
    terms.policy.landing = 2;
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    let checkpoint = log.state.checkpoint.clone().unwrap();
    assert_eq!(checkpoint.kind, CheckpointKind::Summary, "{:?}", log.lines);
    let request = &log.asked[0];
    assert!(request.span.contains("Read."), "{}", request.span);
    assert!(estimate_tokens(&request.span) + request.max_output_tokens + terms.prompt_tokens <= 4_000);
    // The message behind which nothing fits is the newest: then it is read in part.
    let mut log = Log::new();
    turns(&mut log, 30, 300);
    log.user(&format!("BEGIN {} END", words(12_000)));
    log.user("short");
    log.answer("Fine.");
    log.user("And now?");
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    let asked: Vec<&SummaryRequest> = log.asked.iter().filter(|request| request.span.contains("BEGIN")).collect();
    let [request] = asked.as_slice() else { panic!("{:?}", log.lines) };
    assert!(request.span.contains("END") && request.span.contains("bytes left out here"), "{}", request.span);
    assert!(request.deferred.is_some());
    assert_eq!(log.state.document_kind(), Some(CheckpointKind::Summary));
}

#[test]
fn nudges_are_no_part_of_a_span_and_are_named_as_what_they_are_where_everything_is_kept() {
    let mut log = Log::new();
    let terms = Terms::new(Budget { window: 16_000, wanted_output: 8_000 }, 500);
    turns(&mut log, 4, 300);
    log.push(event(json!({"type": "nudge", "kind": "empty", "text": "You said nothing."})));
    turns(&mut log, 20, 300);
    log.settle(Moment::Manual, &terms, &terse).unwrap();
    assert!(!log.asked[0].span.contains("You said nothing."));
    let whole = &log.kept.last().unwrap().1;
    assert!(whole.contains("## Loop guard\nYou said nothing."), "{whole}");
    assert!(matches!(log.window.items()[0].as_ref(), Item::User(_)));
}

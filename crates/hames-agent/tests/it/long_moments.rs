//! When a run tidies its window, and what the answers of a document's author come to.

use std::sync::Arc;

use hames_agent::RunControl;
use hames_protocol::{CheckpointKind, Effect, ErrorClass, Event, Failure, Item, Part, RunResult, ThinkingLevel};
use hames_tools::ToolOutput;
use serde_json::json;

use crate::support::{Hames, Reply, Setup, TestTool, ended};

/// A text of about so many tokens.
fn words(tokens: usize) -> String {
    "word ".repeat(tokens * 4 / 5)
}

/// A session that a thousand tokens more would fill up to the trigger.
async fn nearly_full() -> Hames {
    let mut setup = Setup::new((0..8).map(|_| Reply::text("Noted.").no_usage()));
    setup.window = 16_000;
    let look = TestTool::new("Look", Effect::Read).does(|_, _| async { Ok(ToolOutput::text(words(2_000))) });
    let mut hames = setup.tool(look).build().await;
    for n in 0..8 {
        ended(&hames.run(&format!("message {n} {}", words(1_000))).await, RunResult::Complete, 0);
        hames.renew();
    }
    assert!(!hames.types().contains(&"compaction.start".to_owned()));
    hames
}

/// The events of the last run, by their names.
fn last_run(hames: &Hames) -> Vec<String> {
    let types = hames.types();
    let begin = types.iter().rposition(|kind| kind == "run.start").unwrap();
    types[begin..].to_vec()
}

#[tokio::test]
async fn a_window_is_tidied_before_a_request_between_steps_and_after_an_answer() {
    let document = || Reply::text("- what was said").no_usage();
    let answer = |tokens: usize| Reply::text(&words(tokens)).no_usage();
    for (message, replies, steps_before, steps_after) in [
        (2_000, vec![document(), answer(10)], 0, 1),
        (10, vec![Reply::call("Look", json!({"path": "a"})).no_usage(), document(), answer(10)], 1, 1),
        (10, vec![answer(2_000), document()], 1, 0),
    ] {
        let mut hames = nearly_full().await;
        replies.into_iter().for_each(|reply| hames.model.push(reply));
        ended(&hames.run(&words(message)).await, RunResult::Complete, 0);
        let run = last_run(&hames);
        let at = run.iter().position(|kind| kind == "window.checkpoint").unwrap_or_else(|| panic!("{run:?}"));
        let steps = |part: &[String]| part.iter().filter(|kind| *kind == "step.done").count();
        assert_eq!((steps(&run[..at]), steps(&run[at..])), (steps_before, steps_after), "{run:?}");
        assert_eq!(run.iter().filter(|kind| *kind == "compaction.done").count(), 1, "{run:?}");
        assert_eq!(run.last().map(String::as_str), Some("run.done"));
    }
}

async fn compacted(replies: impl IntoIterator<Item = Reply>) -> Hames {
    let mut hames = nearly_full().await;
    replies.into_iter().for_each(|reply| hames.model.push(reply));
    let control = RunControl::default();
    let done = hames.session.compact(&mut hames.agent, &control, Arc::new(hames.seen.clone())).await.unwrap();
    assert!(done.is_some());
    hames
}

fn question(hames: &Hames, at: usize) -> String {
    match hames.model.asked()[at].items[0].as_ref() {
        Item::User(message) => match &message.parts[0] {
            Part::Text { text } => text.clone(),
            Part::Image { .. } => String::new(),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_author_that_only_thinks_is_asked_again_without_and_no_more_than_that() {
    let thinks = || Reply::new().reasoning("What do I write?").finish(Some("length")).no_usage();
    let hames = compacted([thinks(), Reply::text("- what was said")]).await;
    assert_eq!(hames.session.window().document(), "- what was said");
    let asked = hames.model.asked();
    assert_eq!((asked[8].options.thinking, asked[9].options.thinking), (None, Some(ThinkingLevel::Off)));
    assert_eq!(asked[8].items, asked[9].items);
    let costs = hames.find(|event| if let Event::CompactionAsked(asked) = event { Some(asked.compress) } else { None });
    assert_eq!(costs, [false, false], "what was spent is recorded");

    let mut hames = nearly_full().await;
    [thinks(), thinks(), Reply::text("Done.")].into_iter().for_each(|reply| hames.model.push(reply));
    ended(&hames.run(&words(2_000)).await, RunResult::Complete, 0);
    assert_eq!(hames.session.window().document_kind(), Some(CheckpointKind::Trim));
    assert_eq!(hames.model.asked().len(), 8 + 3);
}

#[tokio::test]
async fn without_an_author_a_run_goes_on_and_a_compaction_by_hand_changes_nothing_and_says_why() {
    let refused = || {
        let failure = Failure::new(ErrorClass::Auth, "The key is not accepted. Set another.");
        Reply::refused(Failure { status: Some(401), ..failure })
    };
    let empty = || Reply::new().no_usage();
    for (reply, class, why) in [
        (refused(), ErrorClass::Auth, "The key is not accepted."),
        (empty(), ErrorClass::StreamIncomplete, "was empty"),
    ] {
        let mut hames = nearly_full().await;
        hames.model.push(reply.clone());
        let before = hames.session.items();
        let control = RunControl::default();
        let failure =
            hames.session.compact(&mut hames.agent, &control, Arc::new(hames.seen.clone())).await.unwrap_err();
        assert_eq!(failure.class, class);
        for words in [why, "nothing has changed", "deterministic"] {
            assert!(failure.message.contains(words), "{}", failure.message);
        }
        assert!(hames.session.window().checkpoint.is_none());
        assert_eq!(hames.session.items(), before);
        // What a run needs is room, with a document or without.
        [reply, Reply::text("Done.")].into_iter().for_each(|reply| hames.model.push(reply));
        ended(&hames.run(&words(2_000)).await, RunResult::Complete, 0);
        assert_eq!(hames.session.window().document_kind(), Some(CheckpointKind::Trim));
    }
}

#[tokio::test]
async fn a_document_that_its_authors_limit_cut_is_asked_for_shorter() {
    let half = Reply::text("## Goal\n- half of what").finish(Some("length")).no_usage();
    let hames = compacted([half, Reply::text("## Goal\n- all of it")]).await;
    assert_eq!(hames.session.window().document(), "## Goal\n- all of it");
    let most = |at: usize| -> u64 {
        let asked = question(&hames, at);
        let (_, rest) = asked.rsplit_once("in at most ").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(most(9), most(8) / 8 * 4);
    let span = |at: usize| question(&hames, at).split("Write the document").next().unwrap().to_owned();
    assert_eq!(span(8), span(9));
}

//! Requests that did not fit: what is learned of the window, what is made smaller, and where it ends.

use hames_protocol::{Effect, ErrorClass, Event, Failure, RunResult, Stated, Usage};
use hames_tools::ToolOutput;
use serde_json::json;

use crate::support::{Hames, Reply, Setup, TestTool, ended};

/// A refusal for the size of the input, with what it states.
fn too_long(limit: Option<u64>, requested: Option<u64>, input: Option<u64>) -> Failure {
    let stated = Stated { limit_tokens: limit, requested_tokens: requested, input_tokens: input, ..Stated::default() };
    Failure {
        status: Some(400),
        provider_message: Some("too many tokens".into()),
        stated: (limit.or(requested).is_some()).then(|| Box::new(stated)),
        ..Failure::new(ErrorClass::ContextOverflow, "The model says the input is too large. Start a new session.")
    }
}

/// A session with some turns behind it: eight messages of about 500 tokens.
async fn with_history(window: u64, replies: impl IntoIterator<Item = Reply>) -> Hames {
    with_turns(8, window, replies).await
}

async fn with_turns(turns: usize, window: u64, replies: impl IntoIterator<Item = Reply>) -> Hames {
    let mut setup = Setup::new((0..turns).map(|_| Reply::text("Noted.").no_usage()));
    setup.window = window;
    let mut hames = setup.build().await;
    for turn in 0..turns {
        ended(&hames.run(&format!("message {turn} {}", "word ".repeat(400))).await, RunResult::Complete, 0);
        hames.renew();
    }
    replies.into_iter().for_each(|reply| hames.model.push(reply));
    hames
}

fn kinds(hames: &Hames) -> Vec<String> {
    let skip = ["run.start", "message.user", "done", "turn.done", "run.done", "text.done"];
    hames.types().into_iter().filter(|kind| !skip.contains(&kind.as_str())).collect()
}

fn limits(hames: &Hames) -> Vec<(u64, String)> {
    hames.find(|event| match event {
        Event::WindowLimited(limited) => Some((limited.tokens, limited.how.clone())),
        _ => None,
    })
}

#[tokio::test]
async fn a_stated_limit_is_kept_to_and_the_turn_goes_out_again_once() {
    let refusal = Reply::refused(too_long(Some(4_096), Some(5_000), None));
    let mut hames = with_history(128_000, [refusal, Reply::text("What was said."), Reply::text("Done.")]).await;
    ended(&hames.run("go on").await, RunResult::Complete, 0);
    assert_eq!(limits(&hames), [(4_096, "stated".into())]);
    let asked = hames.model.asked();
    // The refused request, the document, the same turn again.
    assert_eq!(asked.len(), 8 + 3);
    let last = asked.last().unwrap();
    assert_eq!(last.items.last(), asked[8].items.last());
    assert!(last.items.len() < asked[8].items.len());
    let kinds = kinds(&hames).join(" ");
    assert!(kinds.starts_with("step.start step.done window.limited compaction.start compaction.asked"), "{kinds}");
    assert!(kinds.ends_with("window.checkpoint compaction.done retry step.start step.done"), "{kinds}");

    // The next run knows, also of whoever opens the session anew.
    hames.renew();
    hames.reopen().await;
    hames.model.push(Reply::text("Fine."));
    ended(&hames.run("and now").await, RunResult::Complete, 0);
    assert_eq!(hames.model.asked().len(), 8 + 4);
    assert!(hames.model.asked()[11].options.max_output_tokens.unwrap() < 4_096);
}

#[tokio::test]
async fn where_the_input_fits_alone_only_the_answer_becomes_shorter() {
    let refusal = Reply::refused(too_long(Some(8_192), Some(9_000), Some(4_904)));
    let mut hames = with_history(128_000, [refusal, Reply::text("Done.")]).await;
    ended(&hames.run("go on").await, RunResult::Complete, 0);
    let asked = hames.model.asked();
    assert_eq!(asked.len(), 8 + 2);
    assert_eq!(asked[8].items, asked[9].items);
    let output = |at: usize| asked[at].options.max_output_tokens.unwrap();
    assert!(output(9) < output(8) && output(9) + 4_904 <= 8_192, "{} {}", output(8), output(9));
    assert_eq!(kinds(&hames).join(" "), "step.start step.done window.limited retry step.start step.done");
}

#[tokio::test]
async fn without_a_number_the_window_shrinks_once_and_two_failed_recoveries_end_with_the_providers_words() {
    let refusal = || Reply::refused(too_long(None, None, None));
    let document = || Reply::text("What was said.");
    let replies = [refusal(), document(), refusal(), document(), refusal(), document()];
    // Boxed: the replies alone make it a large future.
    let mut hames = Box::pin(with_history(128_000, replies)).await;
    let end = hames.run("go on").await;
    ended(&end, RunResult::Error, 1);
    let failure = end.failure.unwrap();
    assert_eq!(
        (failure.class, failure.provider_message.as_deref()),
        (ErrorClass::ContextOverflow, Some("too many tokens"))
    );
    assert_eq!(limits(&hames).len(), 1, "{:?}", limits(&hames));
    assert_eq!(limits(&hames)[0].1, "estimated");
    let steps = hames.types().iter().filter(|kind| *kind == "step.start").count();
    assert!(steps <= 3, "{:?}", hames.types());
    // The session is as good as before: the next message is answered.
    hames.renew();
    hames.model.clear();
    hames.model.push(Reply::text("Here."));
    ended(&hames.run("still there?").await, RunResult::Complete, 0);
}

#[tokio::test]
async fn a_vague_refusal_and_an_empty_answer_count_as_an_overflow_near_the_limit_only() {
    let vague =
        || Reply::refused(Failure { status: Some(400), ..Failure::new(ErrorClass::InvalidRequest, "Bad request.") });
    let empty = || {
        Reply::new().finish(Some("length")).ending(|end| {
            end.usage = None;
        })
    };
    for (reply, far) in [(vague(), RunResult::Error), (empty(), RunResult::Stopped)] {
        let mut hames = with_history(128_000, [reply.clone()]).await;
        assert_eq!(hames.run("go on").await.result, far);
        assert_eq!(hames.model.asked().len(), 8 + 1);
        // Nearly full, where nothing is tidied by itself.
        let mut hames = with_turns(14, 128_000, []).await;
        hames.agent = hames.agent.compacting(hames_agent::Compaction {
            context_window: Some(8_100),
            policy: hames_context::Policy { auto: false, ..Default::default() },
            ..Default::default()
        });
        [reply, Reply::text("What was said."), Reply::text("Done.")]
            .into_iter()
            .for_each(|reply| hames.model.push(reply));
        let end = hames.run(&format!("go on {}", "word ".repeat(30))).await;
        ended(&end, RunResult::Complete, 0);
        assert!(hames.types().iter().filter(|kind| *kind == "step.start").count() <= 2, "{:?}", hames.types());
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_refusal_for_the_rate_twice_counts_as_an_overflow_near_the_limit_only() {
    let busy = || {
        let failure = Failure::new(ErrorClass::RateLimit, "The provider limits the rate of requests.").retryable();
        Reply::refused(Failure {
            status: Some(429),
            provider_message: Some("Resource has been exhausted.".into()),
            ..failure
        })
    };
    // Far from it, waiting is what helps.
    let mut hames = with_history(128_000, [busy(), busy(), Reply::text("Done.")]).await;
    ended(&hames.run("go on").await, RunResult::Complete, 0);
    assert_eq!(kinds(&hames).join(" "), "step.start retry retry step.done");
    // Near it, the second says that no waiting will.
    let mut hames = with_turns(14, 128_000, []).await;
    hames.agent = hames.agent.compacting(hames_agent::Compaction {
        context_window: Some(8_100),
        policy: hames_context::Policy { auto: false, ..Default::default() },
        ..Default::default()
    });
    [busy(), busy(), Reply::text("What was said."), Reply::text("Done.")]
        .into_iter()
        .for_each(|reply| hames.model.push(reply));
    ended(&hames.run(&format!("go on {}", "word ".repeat(30))).await, RunResult::Complete, 0);
    let kinds = kinds(&hames).join(" ");
    assert!(kinds.starts_with("step.start retry step.done window.limited compaction.start"), "{kinds}");
    assert!(kinds.ends_with("compaction.done retry step.start step.done"), "{kinds}");
}

#[tokio::test]
async fn a_refused_step_does_not_use_up_the_step_limit() {
    let mut setup = Setup::new([Reply::refused(too_long(Some(2_048), Some(4_296), Some(200))), Reply::text("Done.")]);
    setup.max_steps = Some(1);
    ended(&setup.build().await.run("go").await, RunResult::Complete, 0);
}

#[tokio::test]
async fn a_server_that_cuts_silently_is_noticed_and_kept_to() {
    let looks = |input: u64| {
        Reply::call("Look", json!({"path": "a"})).ending(move |end| {
            end.usage = Some(Usage { input: Some(input), output: Some(5), ..Usage::default() });
        })
    };
    let mut setup = Setup::new([looks(2_048), looks(2_048), looks(2_048), Reply::text("Done.")]);
    setup = setup.tool(
        TestTool::new("Look", Effect::Read).does(|_, _| async { Ok(ToolOutput::text("line of text\n".repeat(300))) }),
    );
    let mut hames = setup.build().await;
    hames.run(&"word ".repeat(1_800)).await;
    assert_eq!(limits(&hames), [(2_048, "observed".into())]);
}

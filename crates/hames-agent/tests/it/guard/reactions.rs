//! Each reaction as the model and the log see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hames_protocol::{
    Cut, Declaration, Delivery, Effect, Event, GuardLevel, GuardParameter, GuardSettings, Item, Part, ReasoningDone,
    Resource, RunResult, ToolDone, ToolErrorClass,
};
use hames_tools::{ToolFailure, ToolOutput};
use serde_json::json;

use crate::guard::play::play;
use crate::support::{Hames, Reply, Setup, TestTool, ended, pending};

fn medium() -> GuardSettings {
    GuardSettings::level(GuardLevel::Medium)
}

fn guarded(replies: impl IntoIterator<Item = Reply>) -> Setup {
    let mut setup = Setup::new(replies);
    setup.guard = medium();
    setup
}

/// Text of the user messages of a request, after the first.
fn told(hames: &Hames, request: usize) -> Vec<String> {
    let asked = hames.model.asked();
    let text = |item: &Arc<Item>| match item.as_ref() {
        Item::User(user) => Some(
            user.parts
                .iter()
                .map(|part| match part {
                    Part::Text { text } => text.as_str(),
                    Part::Image { .. } => "",
                })
                .collect::<String>(),
        ),
        _ => None,
    };
    asked[request].items.iter().filter_map(text).skip(1).collect()
}

fn thinking(text: &str, times: usize) -> Reply {
    (0..times).fold(Reply::new(), |reply, _| reply.reasoning(text))
}

#[tokio::test(start_paused = true)]
async fn looping_reasoning_is_cut_kept_and_never_sent_and_the_model_is_told_to_act() {
    let circle = thinking("Let me look at the parser once more. ", 200).then_text("never comes");
    let mut hames = guarded([circle, Reply::text("Done.")]).build().await;
    let end = hames.run("go").await;
    ended(&end, RunResult::Complete, 0);
    let kept: Vec<ReasoningDone> =
        hames.find(|event| if let Event::ReasoningDone(done) = event { Some(done.clone()) } else { None });
    assert_eq!(kept.iter().map(|done| done.cut).collect::<Vec<_>>(), [Some(Cut::Guard)]);
    assert!((200..1_200).contains(&kept[0].block.text.len()), "{}", kept[0].block.text.len());
    // The answer that was cut is no part of the next request; what the model is told is.
    let asked = hames.model.asked();
    assert!(asked[1].items.iter().all(|item| matches!(item.as_ref(), Item::User(_))), "{:?}", asked[1].items);
    let told = told(&hames, 1);
    assert!(told.len() == 1 && told[0].contains("Stop thinking"), "{told:?}");
    let nudge = hames.find(|event| if let Event::Nudge(nudge) = event { Some(nudge.clone()) } else { None });
    assert_eq!((nudge.len(), nudge[0].kind.as_str(), nudge[0].count, nudge[0].max), (1, "reasoning", 1, 2));
    assert!(!nudge[0].detected.is_empty() && !nudge[0].done.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_complete_before_the_loop_runs_and_one_that_was_not_is_dropped() {
    let circle = |reply: Reply| (0..200).fold(reply, |reply, _| reply.reasoning("Or is it the other file after all? "));
    let whole = circle(Reply::new().then_call("Look", json!({"path": "a"})));
    let mut hames = guarded([whole, Reply::text("Done.")]).build().await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(hames.trace.count("body Look"), 1);
    assert_eq!(hames.types().iter().filter(|name| *name == "nudge").count(), 0);
    let half = circle(Reply::new().raw_call("Look", &["{\"pa"]));
    let mut hames = guarded([half, Reply::text("Done.")]).build().await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!((hames.trace.count("body Look"), hames.types().iter().filter(|name| *name == "nudge").count()), (0, 1));
    assert!(!hames.types().contains(&"tool.call".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_nudged_then_stopped_loudly_and_the_session_goes_on() {
    let mut hames = guarded([Reply::new(), Reply::new(), Reply::new()]).build().await;
    let end = hames.run("go").await;
    ended(&end, RunResult::Stopped, 3);
    assert_eq!(end.reason.as_deref(), Some("loop"));
    let stopped =
        hames.find(|event| if let Event::LoopStopped(stopped) = event { Some(stopped.clone()) } else { None });
    assert_eq!((stopped.len(), stopped[0].kind.as_str(), stopped[0].nudges), (1, "empty_turn", 2));
    // Only the newest of the two nudges was sent with the third request.
    assert_eq!([told(&hames, 1).len(), told(&hames, 2).len()], [1, 1]);
    hames.renew();
    hames.model.push(Reply::text("Here."));
    ended(&hames.run("and now?").await, RunResult::Complete, 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_only_hit_its_limit_or_a_filter_is_not_an_empty_one() {
    for (reason, result) in [("length", RunResult::Stopped), ("content_filter", RunResult::Error)] {
        let cut = Reply::new().reasoning("I will begin with").finish(Some(reason));
        let mut hames = guarded([cut]).build().await;
        let end = hames.run("go").await;
        assert_eq!(end.result, result, "{reason}");
        assert!(!hames.types().contains(&"nudge".to_owned()), "{reason}");
    }
}

fn failing(text: &'static str) -> TestTool {
    TestTool::new("Look", Effect::Read).does(move |_, _| async move { Err(ToolFailure::failed(text)) })
}

#[tokio::test(start_paused = true)]
async fn the_third_identical_failing_call_is_not_run_and_gets_the_recorded_failure() {
    let look = || Reply::call("Look", json!({"path": "a"}));
    let replies = [look(), look(), look(), Reply::text("I give up.")];
    let mut hames = guarded(replies).tool(failing("a: no such file")).build().await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(hames.trace.count("body Look"), 2);
    let errors = hames.errors();
    assert_eq!(errors.len(), 3);
    assert!(errors[2].1.starts_with("[Not run again") && errors[2].1.ends_with("a: no such file"), "{errors:?}");
    assert_eq!(errors[2].0, ToolErrorClass::Failed);
    // The nudge stands behind the result, in one user message of its own.
    let asked = hames.model.asked();
    let last = &asked[3].items;
    assert!(matches!(last[last.len() - 2].as_ref(), Item::Tool(_)));
    assert!(told(&hames, 3)[0].contains("Look"), "{:?}", told(&hames, 3));
}

#[tokio::test(start_paused = true)]
async fn a_streak_of_errors_is_summed_up() {
    let replies = (0..3).map(|n| Reply::call("Look", json!({"path": format!("file-{n}")}))).chain([Reply::text("Hm.")]);
    let mut hames = guarded(replies).tool(failing("no such file")).build().await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    let told = told(&hames, 3);
    assert!(told.len() == 1 && told[0].contains("Change your strategy"), "{told:?}");
    assert_eq!(told[0].matches("no such file").count(), 1, "equal failures are told once: {told:?}");
}

/// A tool whose results may be given again; it counts how often it ran.
fn fetch(runs: &Arc<AtomicUsize>, cache_ms: u64) -> impl hames_tools::Tool + use<> {
    struct Fetch(hames_protocol::ToolSpec, Arc<AtomicUsize>, u64);
    #[async_trait::async_trait]
    impl hames_tools::Tool for Fetch {
        fn spec(&self) -> &hames_protocol::ToolSpec {
            &self.0
        }
        fn declare(&self, _: &serde_json::Value) -> Declaration {
            let host = Resource::Host { host: "example.com".into() };
            Declaration { cacheable: true, cache_ms: Some(self.2), ..Declaration::new(Effect::Read, vec![host]) }
        }
        async fn run(&self, _: &serde_json::Value, _: &hames_tools::ToolCx) -> Result<ToolOutput, ToolFailure> {
            self.1.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(std::time::Duration::from_secs(20)).await;
            Ok(ToolOutput::text("the page"))
        }
    }
    let spec = hames_protocol::ToolSpec {
        name: "Fetch".into(),
        description: "Fetches.".into(),
        parameters: json!({"type": "object"}),
    };
    Fetch(spec, Arc::clone(runs), cache_ms)
}

#[tokio::test(start_paused = true)]
async fn an_identical_read_is_served_from_memory_says_so_and_expires() {
    for (cache_ms, expected) in [(60_000, 2), (10_000, 3)] {
        let runs = Arc::new(AtomicUsize::new(0));
        let call = || Reply::call("Fetch", json!({"url": "https://example.com"}));
        let mut setup = guarded([call(), call(), call(), Reply::text("Read.")]);
        setup.extra = vec![Arc::new(fetch(&runs, cache_ms))];
        let mut hames = setup.build().await;
        ended(&hames.run("go").await, RunResult::Complete, 0);
        assert_eq!(runs.load(Ordering::SeqCst), expected, "{cache_ms}");
        let done: Vec<ToolDone> =
            hames.find(|event| if let Event::ToolDone(done) = event { Some(done.clone()) } else { None });
        assert_eq!(done[2].served_from.is_some(), expected == 2);
        if expected == 2 {
            assert_eq!(done[2].served_from.as_ref(), Some(&done[1].call_id));
            assert!(done[2].output.starts_with("[Not run again") && done[2].output.ends_with("the page"));
        }
        assert_eq!(hames.types().iter().filter(|name| *name == "nudge").count(), 1, "flagged either way");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_repeats_itself_is_kept_up_to_where_it_begins_to() {
    let good =
        "The loader keeps the handle until the session ends. Both tests fail without the change, as they should. ";
    let circle = |reply: Reply| (0..150).fold(reply, |reply, _| reply.then_text("I hope that this helps you a lot. "));
    let mut setup = guarded([circle(Reply::text(good)), Reply::text("Done.")]);
    setup.guard.guard_response = Some(true);
    let mut hames = setup.build().await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(hames.texts(), [format!("{good}I hope that this helps you a lot. "), "Done.".into()]);
    let cuts = hames.find(|event| if let Event::TextDone(done) = event { Some(done.cut) } else { None });
    assert_eq!(cuts, [Some(Cut::Guard), None]);
    // Without the switch the answer is the model's own business.
    let mut hames = guarded([circle(Reply::text(good))]).build().await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert!(hames.texts()[0].len() > 4_000);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_comes_instead_of_a_nudge_for_an_empty_answer() {
    let mut hames = guarded([Reply::new(), Reply::text("Yes.")]).build().await;
    let inbox = hames.inbox.clone();
    hames.model.on_send(move |number| {
        if number == 0 {
            inbox.push(pending("m", Delivery::Steer)).unwrap();
        }
    });
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(told(&hames, 1), ["message m"]);
}

#[tokio::test(start_paused = true)]
async fn a_nudge_stands_before_a_message_that_came_meanwhile() {
    let look = || Reply::call("Look", json!({"path": "a"}));
    let mut hames = guarded([look(), look(), look(), Reply::text("Yes.")]).build().await;
    let inbox = hames.inbox.clone();
    hames.model.on_send(move |number| {
        if number == 2 {
            inbox.push(pending("m", Delivery::Steer)).unwrap();
        }
    });
    ended(&hames.run("go").await, RunResult::Complete, 0);
    let told = told(&hames, 3);
    assert!(told.len() == 2 && told[0].starts_with("[Loop guard]") && told[1] == "message m", "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn nudges_follow_their_number() {
    for nudges in [1u32, 3] {
        let step = json!({"calls": [{"tool": "Ask", "input": {"q": 1}, "gives": "same"}], "repeat": 12});
        let mut settings = medium();
        settings.set(GuardParameter::MaxNudges, f64::from(nudges));
        let played = play(&json!({"steps": [step]}), settings).await;
        assert_eq!(played.nudges.len() as u32, nudges);
        assert_eq!(played.stopped.as_deref(), Some("tool_repeat"));
    }
}

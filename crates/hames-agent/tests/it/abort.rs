//! A person stops the run, anywhere.

use hames_protocol::{Cut, Effect, Event, Item, RunResult, ToolErrorClass};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Gate, Hames, Reply, Setup, TestTool, ended, hames, settle};

/// Runs, and stops the run when `reached` returns.
async fn stopped(hames: &mut Hames, reached: impl Future<Output = ()>) {
    let abort = hames.abort.clone();
    let stops = async {
        reached.await;
        settle().await;
        abort.cancel();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Interrupted, 130);
    assert_eq!(end.failure, None);
    // The session goes on.
    let before = hames.model.asked().len();
    hames.renew();
    hames.model.push(Reply::text("Still here."));
    ended(&hames.run("again").await, RunResult::Complete, 0);
    assert_eq!(hames.model.asked().len(), before + 1);
}

fn look() -> serde_json::Value {
    json!({"path": "a"})
}

#[tokio::test]
async fn before_the_first_request_nothing_is_sent() {
    let mut hames = hames([]).await;
    hames.abort.cancel();
    ended(&hames.run("go").await, RunResult::Interrupted, 130);
    assert_eq!(hames.types().join(" "), "run.start message.user done turn.done run.done");
    assert_eq!(hames.trace.count("sent"), 0);
}

#[tokio::test]
async fn between_step_start_and_the_request_nothing_is_sent() {
    let mut hames = hames([]).await;
    let gate = hames.seen.hold("step.start");
    let (abort, trace) = (hames.abort.clone(), hames.trace.clone());
    let stops = async {
        gate.reached().await;
        abort.cancel();
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Interrupted, 130);
    assert_eq!(trace.count("sent"), 0);
}

#[tokio::test]
async fn while_the_provider_thinks() {
    let head = Gate::new();
    let mut hames = hames([Reply::text("late").gate_head(&head)]).await;
    stopped(&mut hames, head.reached()).await;
    assert_eq!(hames.texts(), ["Still here."]);
}

#[tokio::test]
async fn in_the_middle_of_text_the_text_is_kept() {
    let gate = Gate::new();
    let mut hames = hames([Reply::new().reasoning("Hm.").then_text("Half a sen").gate(&gate).then_text("tence")]).await;
    stopped(&mut hames, gate.reached()).await;
    assert_eq!(hames.texts(), ["Half a sen", "Still here."]);
    let Item::Assistant(answer) = hames.session.items()[1].as_ref().clone() else { panic!() };
    assert_eq!((answer.cut, answer.reasoning[0].text.as_str()), (Some(Cut::Abort), "Hm."));
}

#[tokio::test]
async fn in_the_middle_of_reasoning_it_is_kept_and_never_sent() {
    let gate = Gate::new();
    let mut hames = hames([Reply::new().reasoning("Hm").gate(&gate).reasoning("m")]).await;
    stopped(&mut hames, gate.reached()).await;
    let Item::Assistant(answer) = hames.session.items()[1].as_ref().clone() else { panic!() };
    assert_eq!((answer.cut, answer.reasoning[0].text.as_str()), (Some(Cut::Abort), "Hm"));
    let sent = hames.model.asked().pop().unwrap().items;
    assert!(sent.iter().all(|item| matches!(item.as_ref(), Item::User(_))));
}

#[tokio::test]
async fn in_the_middle_of_arguments_the_call_is_answered_not_run() {
    let gate = Gate::new();
    let cut = Reply::text("I look.").then_call("Look", look()).raw_call("Change", &["{\"pa"]).gate(&gate);
    let mut hames = hames([cut]).await;
    let abort = hames.abort.clone();
    let stops = async {
        gate.reached().await;
        abort.cancel();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Interrupted, 130);
    let errors = hames.errors();
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|(class, text)| *class == ToolErrorClass::NotRun && text.contains("stopped")));
    assert!(!hames.types().contains(&"tool.start".to_owned()));
}

#[tokio::test]
async fn between_step_done_and_the_start_of_its_calls() {
    let mut hames = hames([Reply::call("Look", look()).then_call("Change", look())]).await;
    let gate = hames.seen.hold("step.done");
    let abort = hames.abort.clone();
    let stops = async {
        gate.reached().await;
        abort.cancel();
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Interrupted, 130);
    assert_eq!(hames.errors().iter().filter(|(class, _)| *class == ToolErrorClass::NotRun).count(), 2);
    assert_eq!(hames.trace.count("body Look"), 0);
}

#[tokio::test]
async fn while_a_call_of_any_kind_runs_it_is_cancelled() {
    for effect in [Effect::Read, Effect::Edit, Effect::Run, Effect::External, Effect::Session] {
        let gate = Gate::new();
        let slow = TestTool::new("Slow", effect).gated(&gate);
        let mut hames = Setup::new([Reply::call("Slow", look())]).tool(slow).build().await;
        let abort = hames.abort.clone();
        let stops = async {
            gate.reached().await;
            abort.cancel();
        };
        let (end, ()) = tokio::join!(hames.run("go"), stops);
        ended(&end, RunResult::Interrupted, 130);
        assert_eq!(hames.errors().iter().map(|e| e.0).collect::<Vec<_>>(), [ToolErrorClass::Cancelled], "{effect:?}");
    }
}

#[tokio::test]
async fn while_a_call_waits_for_another_it_never_starts() {
    let gate = Gate::new();
    let slow = TestTool::new("Slow", Effect::Edit).gated(&gate);
    let calls = Reply::call("Slow", look()).then_call("Change", look());
    let mut hames = Setup::new([calls]).tool(slow).build().await;
    stopped(&mut hames, gate.reached()).await;
    assert_eq!(hames.trace.count("body Change"), 0);
    let all = hames.log.events();
    let classes: Vec<ToolErrorClass> = all
        .iter()
        .filter_map(|e| if let Event::ToolError(error) = &e.event { Some(error.class) } else { None })
        .collect();
    assert_eq!(classes.len(), 2);
    assert!(classes.contains(&ToolErrorClass::NotRun) && classes.contains(&ToolErrorClass::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_hear_is_left_behind() {
    for effect in [Effect::Read, Effect::Edit] {
        let gate = Gate::new();
        let deaf = {
            let gate = gate.clone();
            TestTool::new("Deaf", effect).does(move |_, _| {
                let gate = gate.clone();
                async move {
                    gate.pass().await;
                    Ok(hames_tools::ToolOutput::text("late"))
                }
            })
        };
        let mut hames = Setup::new([Reply::call("Deaf", look())]).tool(deaf).build().await;
        stopped(&mut hames, gate.reached()).await;
        assert_eq!(hames.trace.count("body Deaf"), 1);
    }
}

#[tokio::test]
async fn a_run_that_is_over_is_not_interrupted_any_more() {
    let mut hames = hames([Reply::text("Done.")]).await;
    let gate = hames.seen.hold("text.done");
    let abort = hames.abort.clone();
    let stops = async {
        gate.reached().await;
        abort.cancel();
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Complete, 0);
}

/// Anything a model may answer.
fn reply() -> impl Strategy<Value = Reply> {
    let tools = ["Look", "Change", "Do", "Post", "Note", "Nothing", "Slow", "Break"];
    let piece = prop_oneof![
        3 => "[a-z]{1,8}".prop_map(Piece::Text),
        1 => Just(Piece::Text("\n".into())),
        2 => "[a-z]{1,8}".prop_map(Piece::Reasoning),
        5 => (proptest::sample::select(tools.to_vec()), 0..3u8).prop_map(|(tool, path)| Piece::Call(tool, path)),
        1 => proptest::sample::select(tools.to_vec()).prop_map(Piece::BrokenCall),
    ];
    let ends = prop_oneof![
        6 => Just(End::Fitting),
        1 => Just(End::Reason("length")),
        1 => Just(End::Reason("content_filter")),
        1 => Just(End::Never),
        1 => Just(End::Breaks),
        1 => Just(End::Refused),
    ];
    (proptest::collection::vec(piece, 0..5), ends).prop_map(|(pieces, end)| {
        let failure = || {
            let failure = hames_protocol::Failure::new(hames_protocol::ErrorClass::Connection, "Broken.");
            hames_protocol::Failure { retry_after_ms: Some(5), ..failure.retryable() }
        };
        let reply = pieces.into_iter().fold(Reply::new(), |reply, piece| match piece {
            Piece::Text(text) => reply.then_text(&text),
            Piece::Reasoning(text) => reply.reasoning(&text),
            Piece::Call(tool, path) => reply.then_call(tool, json!({"path": format!("f{path}")})),
            Piece::BrokenCall(tool) => reply.raw_call(tool, &["{\"pa", "th\": "]),
        });
        match end {
            End::Fitting => reply,
            End::Reason(reason) => reply.finish(Some(reason)),
            End::Never => reply.finish(None).no_usage(),
            End::Breaks => reply.breaks(failure()),
            End::Refused => Reply::refused(failure()),
        }
    })
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Reasoning(String),
    Call(&'static str, u8),
    BrokenCall(&'static str),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Fitting,
    Reason(&'static str),
    Never,
    Breaks,
    Refused,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("reply")
    }
}

async fn any_run(replies: Vec<Reply>, stop_after: usize) {
    let slow = TestTool::new("Slow", Effect::Read).does(|_, cx| async move {
        tokio::select! {
            () = tokio::time::sleep(std::time::Duration::from_millis(50)) => Ok(hames_tools::ToolOutput::text("slept")),
            () = cx.cancel.cancelled() => Err(hames_tools::ToolFailure::cancelled()),
        }
    });
    let breaks = TestTool::new("Break", Effect::Run).does(|_, _| async { panic!("broken") });
    let mut hames = Setup::new(replies).tool(slow).tool(breaks).build().await;
    hames.trace.light(stop_after, hames.abort.clone());
    hames.run("go").await;
    // Every check is in `run`; and once more for what stands when it is opened again.
    let before = hames.log.events().len();
    hames.reopen().await;
    assert_eq!(hames.log.events().len(), before);
    hames.renew();
    hames.model.clear();
    ended(&hames.run("again").await, RunResult::Complete, 0);
}

pub(crate) fn cases() -> ProptestConfig {
    let cases = std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn whatever_the_model_does_and_whenever_it_is_stopped_the_log_stays_sendable(
        replies in proptest::collection::vec(reply(), 1..6),
        stop_after in 0..160usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(any_run(replies, stop_after));
    }
}

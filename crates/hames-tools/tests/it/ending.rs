//! Abort, interrupt, time limits, crashes and a log that fails.

use std::sync::Arc;
use std::time::Duration;

use hames_protocol::{Decision, Declaration, Effect, Resource, ToolErrorClass};
use hames_tools::{ToolFailure, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::kit::{Answers, Gate, Setup, TestTool, door, raw, settle, touching};

fn at(path: &str) -> Value {
    json!({"path": path})
}

fn tools(gate: &Gate) -> Vec<TestTool> {
    let tool = |name: &str, effect| TestTool::new(name).effect(effect).gated(gate);
    let deaf = |name: &str, effect| {
        let gate = gate.clone();
        TestTool::new(name).effect(effect).does(move |input, _| {
            let gate = gate.clone();
            async move {
                gate.pass(input["path"].as_str().unwrap()).await;
                Ok(ToolOutput::text("at last"))
            }
        })
    };
    vec![
        tool("Read", Effect::Read),
        tool("Edit", Effect::Edit),
        tool("Shell", Effect::Run),
        tool("Web", Effect::External),
        deaf("DeafRead", Effect::Read),
        deaf("DeafEdit", Effect::Edit),
    ]
}

#[tokio::test]
async fn abort_cancels_what_runs_and_keeps_the_rest_from_starting() {
    let gate = Gate::new();
    let test = door(tools(&gate));
    let calls = [("Read", at("a")), ("Edit", at("b")), ("Web", at("c")), ("Shell", at("s")), ("Read", at("z"))];
    let running = test.start(&calls);
    gate.holds(&["a", "b", "c"]).await;
    test.cx.abort.cancel();
    let outcomes = running.await.unwrap();
    for outcome in &outcomes[..3] {
        let error = outcome.failed_as(ToolErrorClass::Cancelled);
        assert!(error.contains("was stopped: the run was stopped") && outcome.started, "{error}");
    }
    for outcome in &outcomes[3..] {
        assert_eq!(outcome.failed_as(ToolErrorClass::NotRun), "not run: the run was stopped");
        assert!(!outcome.started);
    }
}

#[tokio::test]
async fn nothing_starts_in_a_run_that_was_stopped_before() {
    let gate = Gate::new();
    for interrupt in [false, true] {
        let test = door(tools(&gate));
        if interrupt {
            test.cx.interrupt.cancel()
        } else {
            test.cx.abort.cancel()
        }
        for outcome in
            test.run(&[("Read", at("a")), ("Edit", at("a")), ("Nope", at("a")), ("Read", json!({"n": "x"}))]).await
        {
            assert!(!outcome.started, "{outcome:?}");
        }
    }
    assert!(gate.order().is_empty());
}

#[tokio::test]
async fn a_call_whose_turn_comes_as_the_run_is_stopped_does_not_start() {
    for interrupt in [false, true] {
        let gate = Gate::new();
        let test = door(tools(&gate));
        let running = test.start(&[("Edit", at("a")), ("Edit", at("./a"))]);
        gate.holds(&["a"]).await;
        let stop = if interrupt { test.cx.interrupt.clone() } else { test.cx.abort.clone() };
        *test.fs.on_resolve.lock().unwrap() = Some(Box::new(move || stop.cancel()));
        gate.open("a");
        let outcomes = running.await.unwrap();
        outcomes[0].output();
        outcomes[1].failed_as(ToolErrorClass::NotRun);
        assert!(!outcomes[1].started);
    }
}

#[tokio::test]
async fn an_interrupt_cuts_reads_and_lets_the_rest_finish() {
    let gate = Gate::new();
    let test = door(tools(&gate));
    let running =
        test.start(&[("Read", at("r")), ("Edit", at("e")), ("Web", at("x")), ("Edit", at("./e")), ("Shell", at("s"))]);
    gate.holds(&["r", "e", "x"]).await;
    test.cx.interrupt.cancel();
    settle().await;
    assert_eq!(test.log.types().iter().filter(|kind| *kind == "tool.error").count(), 3);
    ["e", "x"].iter().for_each(|name| gate.open(name));
    let outcomes = running.await.unwrap();
    assert!(outcomes[0].failed_as(ToolErrorClass::Cancelled).contains("the user added a message"));
    assert_eq!(outcomes[1].output(), "passed e");
    assert_eq!(outcomes[2].output(), "passed x");
    for outcome in &outcomes[3..] {
        assert_eq!(outcome.failed_as(ToolErrorClass::NotRun), "not run: the user added a message");
    }
}

#[tokio::test]
async fn a_running_command_survives_an_interrupt_and_not_an_abort() {
    let gate = Gate::new();
    let test = door(tools(&gate));
    let running = test.start(&[("Shell", at("s"))]);
    gate.holds(&["s"]).await;
    test.cx.interrupt.cancel();
    settle().await;
    assert!(!running.is_finished());
    test.cx.abort.cancel();
    running.await.unwrap()[0].failed_as(ToolErrorClass::Cancelled);
}

#[tokio::test]
async fn waiting_for_an_approval_ends_with_the_run() {
    for interrupt in [false, true] {
        let mut setup = Setup::new(tools(&Gate::new()));
        setup.approver = Answers::new(&[]);
        let test = setup.build();
        let running = test.start(&[("Edit", at("/outside"))]);
        test.log.until("approval.asked").await;
        if interrupt {
            test.cx.interrupt.cancel()
        } else {
            test.cx.abort.cancel()
        }
        running.await.unwrap()[0].failed_as(ToolErrorClass::NotRun);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_stop_is_answered_without_it() {
    let gate = Gate::new();
    let test = door(tools(&gate));
    let running = test.start(&[("DeafRead", at("r")), ("DeafEdit", at("e"))]);
    gate.holds(&["r", "e"]).await;
    let before = tokio::time::Instant::now();
    test.cx.abort.cancel();
    let outcomes = running.await.unwrap();
    assert_eq!(before.elapsed().as_secs(), 10);
    assert!(!outcomes[0].failed_as(ToolErrorClass::Cancelled).contains("unknown"));
    assert!(outcomes[1].failed_as(ToolErrorClass::Cancelled).contains("What it has done is unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_a_given_up_edit_may_still_write_is_not_touched_by_the_next() {
    let gate = Gate::new();
    let test = door(tools(&gate));
    let running = test.start(&[("DeafEdit", at("e"))]);
    gate.holds(&["e"]).await;
    test.cx.abort.cancel();
    running.await.unwrap();
    let mut next = door(tools(&gate));
    next.door = test.door.clone();
    next.cx.session = test.cx.session.clone();
    let outcomes = next.run(&[("Edit", at("./e")), ("Read", at("e"))]).await;
    for outcome in &outcomes {
        assert!(outcome.failed_as(ToolErrorClass::Failed).contains("may still be at work") && !outcome.started);
    }
    ["f", "/w/e"].iter().for_each(|name| gate.open(name));
    next.run(&[("Edit", at("f"))]).await[0].output();
    gate.open("e");
    settle().await;
    assert_eq!(next.run(&[("Edit", at("/w/e"))]).await[0].output(), "passed /w/e");
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_cancels_after_its_grace_and_says_so() {
    let gate = Gate::new();
    let timed = |name: &str, deaf: bool| {
        let gate = gate.clone();
        TestTool::new(name)
            .declares(|input| Declaration { timeout_ms: Some(20_000), ..touching(Effect::Run, input) })
            .does(move |_, cx| {
                let gate = gate.clone();
                async move {
                    if !deaf {
                        cx.cancel.cancelled().await;
                        return Err(ToolFailure { text: "so far: 7 tests".into(), ..ToolFailure::cancelled() });
                    }
                    gate.pass("deaf").await;
                    Ok(ToolOutput::default())
                }
            })
    };
    let test = door(vec![timed("Shell", false), timed("Deaf", true)]);
    let before = tokio::time::Instant::now();
    let outcome = &test.run(&[("Shell", json!({}))]).await[0];
    assert_eq!(
        outcome.failed_as(ToolErrorClass::Timeout),
        "Shell was stopped: it took longer than 20 s. so far: 7 tests"
    );
    assert_eq!((before.elapsed().as_secs(), outcome.error().duration_ms), (25, 25_000));
    let outcome = &test.run(&[("Deaf", json!({}))]).await[0];
    assert!(outcome.failed_as(ToolErrorClass::Timeout).contains("did not within 10 s"));
    assert_eq!(before.elapsed().as_secs(), 25 + 35);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ends_in_time_or_in_the_grace_gives_its_own_answer() {
    for (ends_after, class) in [(1, None), (19, None), (22, Some(ToolErrorClass::Timeout))] {
        let tool = TestTool::new("Shell")
            .declares(|input| Declaration { timeout_ms: Some(20_000), ..touching(Effect::Run, input) })
            .does(move |_, _| async move {
                tokio::time::sleep(Duration::from_secs(ends_after)).await;
                match class {
                    None => Ok(ToolOutput::text("done")),
                    Some(class) => Err(ToolFailure { class, ..ToolFailure::failed("my own words") }),
                }
            });
        let outcome = &door(vec![tool]).run(&[("Shell", json!({}))]).await[0];
        match class {
            None => assert_eq!(outcome.output(), "done"),
            Some(class) => assert_eq!(outcome.failed_as(class), "my own words"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_approval_does_not_count_against_the_time_limit() {
    let mut setup = Setup::new(vec![
        TestTool::new("Edit").declares(|input| Declaration { timeout_ms: Some(1), ..touching(Effect::Edit, input) }),
    ]);
    struct Slow;
    #[async_trait::async_trait]
    impl hames_protocol::Approver for Slow {
        async fn decide(&self, _: &hames_protocol::ApprovalAsked) -> Option<(Decision, String)> {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Some((Decision::Once, "user".into()))
        }
    }
    setup.approver = Arc::new(Slow);
    assert_eq!(setup.build().run(&[("Edit", at("/x"))]).await[0].output(), "done");
}

#[tokio::test]
async fn a_tool_that_panics_is_an_error_of_its_own() {
    let run = TestTool::new("Run").does(|_, _| async { panic!("index out of bounds") });
    let declare = TestTool::new("Declare").declares(|_| panic!("no"));
    let blocking = TestTool::new("Blocking")
        .does(|_, cx| async move { cx.blocking(|_| -> Result<ToolOutput, ToolFailure> { panic!("deep") }).await });
    let test = door(vec![run, declare, blocking, TestTool::new("Fine")]);
    let outcomes = test.run(&[("Run", at("a")), ("Declare", at("b")), ("Blocking", at("c")), ("Fine", at("d"))]).await;
    let error = outcomes[0].failed_as(ToolErrorClass::Failed);
    assert!(error.contains("Run crashed (index out of bounds)") && error.contains("fault of the tool"), "{error}");
    assert!(outcomes[1].failed_as(ToolErrorClass::Failed).contains("Declare crashed") && !outcomes[1].started);
    assert!(outcomes[2].failed_as(ToolErrorClass::Failed).contains("fault of Hames"));
    assert_eq!(outcomes[3].output(), "done");
    // Nothing it held is left behind.
    assert_eq!(test.run(&[("Fine", at("a"))]).await[0].output(), "done");
}

#[tokio::test]
async fn a_failed_record_ends_the_run_before_the_next_effect() {
    for broken in ["tool.start", "tool.done", "tool.error", "approval.asked"] {
        let gate = Gate::new();
        let mut setup = Setup::new(tools(&gate));
        setup.approver = Answers::new(&[]);
        let test = setup.build();
        test.log.fail_at(broken);
        let calls = test.admit(&[
            ("Edit", at("a")),
            ("Edit", at("./a")),
            ("Nope", at("b")),
            ("Read", at("/outside")),
            ("Read", at("c")),
        ]);
        let (door, cx) = (test.door.clone(), test.cx.clone());
        let running = tokio::spawn(async move { door.run(calls, cx).await });
        settle().await;
        gate.open("a");
        assert_eq!(running.await.unwrap().unwrap_err().message, "the disk is full");
        assert!(!gate.order().contains(&"./a".to_owned()), "{broken}");
    }
}

#[tokio::test]
async fn dropping_the_run_cancels_its_tools() {
    let (told, entered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = TestTool::new("Shell").effect(Effect::Run).does({
        let (told, entered) = (told.clone(), entered.clone());
        move |_, cx| {
            let (told, entered) = (told.clone(), entered.clone());
            async move {
                entered.notify_one();
                cx.cancel.cancelled().await;
                told.notify_one();
                Err(ToolFailure::cancelled())
            }
        }
    });
    let test = door(vec![tool]);
    let calls = vec![test.door.admit(raw("Shell", "{}"))];
    tokio::select! {
        _ = test.door.run(calls, test.cx.clone()) => unreachable!(),
        () = entered.notified() => {}
    }
    told.notified().await;
}

#[tokio::test]
async fn a_waiting_call_that_is_cancelled_leaves_no_trace_in_the_order() {
    let gate = Gate::new();
    let test = door(tools(&gate));
    let one = test.start(&[("Edit", at("a"))]);
    gate.holds(&["a"]).await;
    let mut other = door(tools(&gate));
    other.door = test.door.clone();
    let two = other.start(&[("Edit", at("free")), ("Edit", at("./a"))]);
    gate.holds(&["a", "free"]).await;
    other.cx.abort.cancel();
    two.await.unwrap()[1].failed_as(ToolErrorClass::NotRun);
    let three = test.start(&[("Edit", at("/w/a"))]);
    gate.open("a");
    one.await.unwrap()[0].output();
    gate.holds(&["a", "free", "/w/a"]).await;
    gate.open("/w/a");
    three.await.unwrap()[0].output();
}

#[tokio::test]
async fn named_things_are_held_like_files() {
    let gate = Gate::new();
    let port = TestTool::new("Serve")
        .declares(|_| Declaration::new(Effect::External, vec![Resource::Named { name: "port".into(), write: true }]))
        .gated(&gate);
    let test = door(vec![port]);
    let running = test.start(&[("Serve", at("1")), ("Serve", at("2"))]);
    gate.holds(&["1"]).await;
    gate.open("1");
    gate.holds(&["1", "2"]).await;
    gate.open("2");
    running.await.unwrap();
}

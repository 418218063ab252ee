//! What has to be recorded and seen before what.

use std::sync::Arc;

use hames_protocol::{Effect, Event, FileChanged, RunResult, ToolOutputDelta};
use hames_tools::ToolOutput;
use serde_json::json;

use crate::support::{Gate, Hames, Reply, Setup, TestTool, ended, hames, settle};

/// Runs in a task, so that the test can look while something holds it.
fn spawned(mut hames: Hames) -> tokio::task::JoinHandle<(Hames, hames_agent::RunEnd)> {
    tokio::spawn(async move {
        let end = hames.run("go").await;
        (hames, end)
    })
}

#[tokio::test]
async fn each_effect_comes_after_its_event_is_in_the_log_and_seen() {
    let mut hames = hames([Reply::call("Look", json!({"path": "a"})), Reply::text("Done.")]).await;
    let end = hames.run("go").await;
    ended(&end, RunResult::Complete, 0);
    let order = [
        "log run.start",
        "log message.user",
        "see message.user",
        "log step.start",
        "see step.start",
        "sent",
        "delta",
        "see tool.input.delta",
        "log tool.call",
        "log step.done",
        "see step.done",
        "log tool.start",
        "see tool.start",
        "body Look",
        "log tool.done",
        "see tool.done",
    ];
    let places: Vec<usize> = order.iter().map(|mark| hames.trace.at(mark)).collect();
    assert!(places.is_sorted(), "{:#?}", hames.trace.all());
}

/// Who watches slowly, and what must not have happened while it looks.
#[tokio::test]
async fn a_slow_watcher_delays_the_next_effect() {
    for (held, next, so_far) in [
        ("run.start", "log step.start", 0),
        ("message.user", "log step.start", 0),
        ("step.start", "sent", 0),
        ("text.delta", "log step.done", 0),
        ("tool.input.delta", "log step.done", 0),
        ("text.done", "log tool.start", 0),
        ("tool.call", "log tool.start", 0),
        ("step.done", "log tool.start", 0),
        ("tool.start", "body Look", 0),
        ("tool.done", "log step.start", 1),
    ] {
        let last = Gate::new();
        let reply = Reply::text("I look.").then_call("Look", json!({"path": "a"}));
        let hames = hames([reply, Reply::text("Done.").gate_head(&last)]).await;
        let trace = hames.trace.clone();
        let gate = hames.seen.hold(held);
        let run = spawned(hames);
        gate.reached().await;
        settle().await;
        assert_eq!(trace.count(next), so_far, "{held}: {:#?}", trace.all());
        gate.open();
        last.open();
        let (_, end) = run.await.unwrap();
        ended(&end, RunResult::Complete, 0);
    }
}

#[tokio::test]
async fn a_slow_watcher_does_not_hold_up_what_a_tool_shows() {
    let (look, watched) = (Gate::new(), Gate::new());
    let shows = {
        let (look, watched) = (look.clone(), watched.clone());
        TestTool::new("Do", Effect::Read).does(move |_, cx| {
            let (look, watched) = (look.clone(), watched.clone());
            async move {
                look.pass().await;
                for n in 0..1_000u64 {
                    let delta = ToolOutputDelta { call_id: cx.call_id.clone(), offset: n, text: "x".into() };
                    cx.emit.show(Event::ToolOutputDelta(delta));
                }
                watched.pass().await;
                Ok(ToolOutput::text("shown"))
            }
        })
    };
    let calls = Reply::call("Do", json!({"path": "a"})).then_call("Look", json!({"path": "b"}));
    let hames = Setup::new([calls, Reply::text("Done.")]).tool(shows).build().await;
    let (seen, trace) = (hames.seen.clone(), hames.trace.clone());
    let run = spawned(hames);
    look.reached().await;
    trace.until("see tool.done").await;
    // The watcher is stuck on another call's event while the first tool talks.
    let gate = seen.hold("file.changed");
    look.open();
    watched.reached().await;
    assert_eq!(trace.count("glimpse tool.output.delta"), 1_000);
    watched.open();
    gate.open();
    let (_, end) = run.await.unwrap();
    ended(&end, RunResult::Complete, 0);
}

#[tokio::test]
async fn a_tool_waits_for_its_own_event_before_it_acts() {
    let acted = Gate::new();
    let changes = {
        let acted = acted.clone();
        TestTool::new("Change", Effect::Edit).does(move |_, cx| {
            let acted = acted.clone();
            async move {
                let path = "/w/a".to_owned();
                let changed = FileChanged {
                    call_id: cx.call_id.clone(),
                    path,
                    before: None,
                    after: None,
                    mode: None,
                    link: None,
                };
                cx.emit.record(vec![Event::FileChanged(changed)]).await?;
                acted.pass().await;
                Ok(ToolOutput::text("changed"))
            }
        })
    };
    let hames =
        Setup::new([Reply::call("Change", json!({"path": "a"})), Reply::text("Done.")]).tool(changes).build().await;
    let gate = hames.seen.hold("file.changed");
    acted.open();
    let trace = hames.trace.clone();
    let run = spawned(hames);
    gate.reached().await;
    settle().await;
    assert_eq!((trace.count("log file.changed"), trace.count("log tool.done")), (1, 0));
    gate.open();
    let (hames, end) = run.await.unwrap();
    ended(&end, RunResult::Complete, 0);
    let changed = hames.events().into_iter().find(|e| e.event.type_name() == "file.changed").unwrap();
    assert_eq!(changed.step, Some(1));
}

#[tokio::test]
async fn calls_that_overlap_still_give_one_order_for_all() {
    for count in [2, 3, 8, 20, 40] {
        let calls = (0..count).fold(Reply::new(), |r, n| r.then_call("Look", json!({"path": format!("f{n}")})));
        let mut hames = hames([calls, Reply::text("Done.")]).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Complete, 0);
        assert_eq!(hames.types().iter().filter(|t| *t == "tool.done").count(), count);
        // Results stand in the order of their calls, whatever order they came in.
        let items = hames.session.items();
        let hames_protocol::Item::Assistant(answer) = items[1].as_ref() else { panic!() };
        for (call, item) in answer.calls.iter().zip(&items[2..]) {
            let hames_protocol::Item::Tool(tool) = item.as_ref() else { panic!() };
            assert_eq!(call.call_id, tool.call_id);
        }
    }
}

#[tokio::test]
async fn live_events_come_between_the_durable_ones_and_have_no_seq() {
    let reply = Reply::new().reasoning("Hm.").then_text("a").then_text("é").then_text("b");
    let mut hames = hames([reply]).await;
    hames.run("go").await;
    let live: Vec<_> = hames
        .seen
        .all()
        .into_iter()
        .filter(|e| !e.event.is_durable())
        .map(|e| {
            assert_eq!((e.seq, e.step, e.turn), (None, Some(1), Some(1)));
            match e.event {
                Event::TextDelta(d) => ("text", d.offset, d.text),
                Event::ReasoningDelta(d) => ("reasoning", d.offset, d.text),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let expected = [("reasoning", 0, "Hm."), ("text", 0, "a"), ("text", 1, "é"), ("text", 3, "b")];
    assert_eq!(live, expected.map(|(kind, offset, text)| (kind, offset, text.to_owned())));
}

#[tokio::test]
async fn a_tool_that_was_given_up_on_can_neither_record_nor_show_after_the_end() {
    tokio::time::pause();
    let late = Gate::new();
    let refused = Arc::new(std::sync::Mutex::new(None));
    let deaf = {
        let (late, refused) = (late.clone(), Arc::clone(&refused));
        TestTool::new("Change", Effect::Edit).does(move |_, cx| {
            let (late, refused) = (late.clone(), Arc::clone(&refused));
            async move {
                // Hears no cancel, and wants to change a file much later.
                late.pass().await;
                let delta = ToolOutputDelta { call_id: cx.call_id.clone(), offset: 0, text: "late".into() };
                cx.emit.show(Event::ToolOutputDelta(delta));
                let path = "/w/a".to_owned();
                let changed = FileChanged {
                    call_id: cx.call_id.clone(),
                    path,
                    before: None,
                    after: None,
                    mode: None,
                    link: None,
                };
                let result = cx.emit.record(vec![Event::FileChanged(changed)]).await;
                *refused.lock().unwrap() = Some(result.is_err());
                Ok(ToolOutput::text("changed"))
            }
        })
    };
    let hames = Setup::new([Reply::call("Change", json!({"path": "a"}))]).tool(deaf).build().await;
    let abort = hames.abort.clone();
    let run = spawned(hames);
    late.reached().await;
    abort.cancel();
    let (mut hames, end) = run.await.unwrap();
    ended(&end, RunResult::Interrupted, 130);
    let before = hames.seen.all().len();
    late.open();
    settle().await;
    assert_eq!(*refused.lock().unwrap(), Some(true));
    assert_eq!(hames.seen.all().len(), before);
    hames.renew();
    hames.model.push(Reply::text("Still here."));
    ended(&hames.run("again").await, RunResult::Complete, 0);
}

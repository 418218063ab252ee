//! A death anywhere in a run, and what the next holder of the session makes of it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hames_agent::{Ports, Session, SystemClock};
use hames_protocol::{
    CallId, Cut, Delivery, Durability, Effect, Envelope, Event, EventLog, FileChanged, Item, MemoryLog, OpenBlock,
    OpenKind, PendingPaused, RunResult, SessionCreated, SessionId, Settings, ToolErrorClass,
};
use serde_json::json;

use crate::support::{Gate, Hames, Reply, Setup, TestTool, ended, pending, settle, sound};

fn at(path: &str) -> serde_json::Value {
    json!({ "path": path })
}

/// Logs of runs that came to their end, of every kind.
async fn recorded() -> Vec<Vec<Envelope>> {
    let all = Reply::call("Look", at("a"))
        .then_call("Change", at("b"))
        .then_call("Do", at("c"))
        .then_call("Post", at("d"))
        .then_call("Note", at("e"));
    let thought = Reply::new().reasoning("Hm.").then_text("I look.").then_call("Look", at("a"));
    let scripts: Vec<Vec<Reply>> = vec![
        vec![Reply::text("Done.")],
        vec![Reply::call("Look", at("a")), Reply::text("Done.")],
        vec![Reply::call("Change", at("a")), Reply::text("Done.")],
        vec![Reply::call("Do", at("a")), Reply::call("Post", at("a")), Reply::text("Done.")],
        vec![Reply::call("Note", at("a")), Reply::text("Done.")],
        vec![all.clone(), all, Reply::text("Done.")],
        vec![thought.clone(), thought.finish(Some("length")), Reply::text("Done.")],
        vec![Reply::call("Nothing", at("a")).raw_call("Look", &["{"]), Reply::text("Done.")],
        vec![Reply::call("Break", at("a")), Reply::text("So").finish(None).no_usage()],
    ];
    let mut logs = Vec::new();
    for script in scripts {
        let breaks = TestTool::new("Break", Effect::Run).does(|_, _| async { panic!("broken") });
        let mut hames = Setup::new(script).tool(breaks).build().await;
        hames.run("go").await;
        // A second run, so that a death in it leaves the first as it is.
        hames.renew();
        hames.inbox.push(pending("1", Delivery::Steer)).unwrap();
        hames.model.push(Reply::call("Change", at("z")));
        hames.model.push(Reply::text("Done again."));
        hames.run("again").await;
        logs.push(hames.log.events());
    }
    logs
}

/// A session whose log ends after so many events, opened by the next holder.
async fn after_death(events: &[Envelope], pieces: &[OpenBlock]) -> Hames {
    Setup::new([]).build_from(events, pieces).await
}

/// What each open call of a log that ends here has to be answered with.
fn due(events: &[Envelope]) -> Vec<(CallId, ToolErrorClass)> {
    let mut open: Vec<(CallId, Option<Effect>, bool)> = Vec::new();
    for envelope in events {
        match &envelope.event {
            Event::ToolCall(call) => {
                open.push((call.call_id.clone(), call.declaration.as_ref().map(|d| d.effect), false));
            }
            Event::ToolStart(start) => open.iter_mut().filter(|c| c.0 == start.call_id).for_each(|c| c.2 = true),
            Event::ToolDone(done) => open.retain(|c| c.0 != done.call_id),
            Event::ToolError(error) => open.retain(|c| c.0 != error.call_id),
            _ => {}
        }
    }
    let class = |(id, effect, started)| match (started, effect) {
        (false, _) => (id, ToolErrorClass::NotRun),
        (true, Some(Effect::Read)) => (id, ToolErrorClass::Interrupted),
        (true, _) => (id, ToolErrorClass::OutcomeUnknown),
    };
    open.into_iter().map(class).collect()
}

fn is_open(events: &[Envelope]) -> bool {
    let last = events.iter().rfind(|e| matches!(e.event, Event::RunStart(_) | Event::RunDone(_)));
    last.is_some_and(|e| matches!(e.event, Event::RunStart(_)))
}

/// Everything that has to hold after a death at the end of `events`.
async fn check(events: &[Envelope], pieces: &[OpenBlock]) -> Hames {
    let mut hames = after_death(events, pieces).await;
    let all = hames.log.events();
    assert_eq!(all[..events.len()], *events, "what was announced stays");
    let written = &all[events.len()..];
    assert_eq!(!written.is_empty(), is_open(events));
    let answers: Vec<(CallId, ToolErrorClass)> = written
        .iter()
        .filter_map(|e| {
            if let Event::ToolError(error) = &e.event { Some((error.call_id.clone(), error.class)) } else { None }
        })
        .collect();
    assert_eq!(answers, due(events));
    let ends = written.iter().filter(|e| matches!(e.event, Event::RunDone(_))).count();
    assert_eq!(ends, usize::from(is_open(events)));
    if let Some(Event::RunDone(done)) = written.last().map(|e| &e.event) {
        assert_eq!((done.result, done.exit_code), (RunResult::Interrupted, 130));
    }
    assert!(written.iter().all(|e| e.run == events.last().unwrap().run && e.turn == events.last().unwrap().turn));
    // The end of a run is one append, so a death within it is only tried to see that nothing breaks.
    let within_end = matches!(events.last().unwrap().event, Event::Error(_) | Event::Done(_) | Event::TurnDone(_));
    if !within_end {
        sound::log(&all);
    }
    sound::sendable(&hames.session.items());
    // Once more adds nothing.
    hames.reopen().await;
    assert_eq!(hames.log.events().len(), all.len());
    // The next run works, is told, and nothing ran in between.
    assert!(!hames.trace.all().iter().any(|mark| mark.starts_with("body") || mark == "sent"));
    hames.model.push(Reply::text("Going on."));
    ended(&hames.run_unchecked("go on").await, RunResult::Complete, 0);
    let sent = hames.model.asked().pop().unwrap().items;
    for (id, _) in due(events) {
        let told = sent.iter().any(|item| matches!(item.as_ref(), Item::Tool(tool) if tool.call_id == id));
        assert!(told);
    }
    hames
}

#[tokio::test]
async fn after_a_death_behind_any_event_the_session_goes_on() {
    let mut seen = HashSet::new();
    for log in recorded().await {
        for end in 1..=log.len() {
            check(&log[..end], &[]).await;
            seen.extend(due(&log[..end]).into_iter().map(|d| d.1));
        }
    }
    use ToolErrorClass::{Interrupted, NotRun, OutcomeUnknown};
    assert_eq!(seen, HashSet::from([NotRun, Interrupted, OutcomeUnknown]));
}

fn block(kind: OpenKind, index: u32, text: &str) -> OpenBlock {
    let name = (kind == OpenKind::ToolInput).then(|| "Look".to_owned());
    OpenBlock { kind, index, name, text: text.into() }
}

#[tokio::test]
async fn what_the_open_step_had_shown_is_kept_and_marked() {
    use OpenKind::{Reasoning, Text, ToolInput};
    let cases: Vec<(Vec<OpenBlock>, Option<&str>, Option<&str>)> = vec![
        (vec![], None, None),
        (vec![block(Text, 0, "Half a sen")], Some("Half a sen"), None),
        (vec![block(Reasoning, 0, "Hm")], None, Some("Hm")),
        (vec![block(Reasoning, 0, "Hm"), block(Text, 0, "So")], Some("So"), Some("Hm")),
        (vec![block(Text, 0, "I look."), block(ToolInput, 0, "{\"pa")], Some("I look."), None),
        (vec![block(ToolInput, 0, "{\"path\":\"a\"}")], None, None),
        (vec![block(Text, 0, " \n")], None, None),
        (vec![block(Text, 0, ""), block(Reasoning, 0, "")], None, None),
        (vec![block(Text, 0, "a\u{0}é🙂")], Some("a\u{0}é🙂"), None),
    ];
    let log = recorded().await.remove(1);
    let starts: Vec<usize> = (0..log.len()).filter(|&i| matches!(log[i].event, Event::StepStart(_))).collect();
    for (pieces, text, reasoning) in cases {
        for start in &starts {
            let hames = check(&log[..=*start], &pieces).await;
            let written = &hames.log.events()[start + 1..];
            let written = &written[..written.iter().position(|e| matches!(e.event, Event::RunDone(_))).unwrap()];
            let texts: Vec<_> = written
                .iter()
                .filter_map(|e| if let Event::TextDone(d) = &e.event { Some((d.text.as_str(), d.cut)) } else { None })
                .collect();
            assert_eq!(texts, text.map(|text| (text, Some(Cut::Crash))).into_iter().collect::<Vec<_>>());
            let thoughts: Vec<_> = written
                .iter()
                .filter_map(|e| {
                    if let Event::ReasoningDone(d) = &e.event { Some((d.block.text.as_str(), d.cut)) } else { None }
                })
                .collect();
            assert_eq!(thoughts, reasoning.map(|text| (text, Some(Cut::Crash))).into_iter().collect::<Vec<_>>());
            assert!(!written.iter().any(|e| matches!(e.event, Event::ToolCall(_))));
        }
    }
}

#[tokio::test]
async fn pieces_left_over_from_a_step_that_is_closed_are_not_told_again() {
    let pieces = [block(OpenKind::Text, 0, "stale")];
    for log in recorded().await {
        for end in 1..log.len() {
            let open = log[..end].iter().rfind(|e| matches!(e.event, Event::StepStart(_) | Event::StepDone(_)));
            let has_blocks =
                matches!(log[end - 1].event, Event::TextDone(_) | Event::ReasoningDone(_) | Event::ToolCall(_));
            if is_open(&log[..end]) && (has_blocks || !open.is_some_and(|e| matches!(e.event, Event::StepStart(_)))) {
                let hames = after_death(&log[..end], &pieces).await;
                assert!(!hames.texts().contains(&"stale".to_owned()), "{end}");
            }
        }
    }
}

#[tokio::test]
async fn a_death_within_the_recovery_is_recovered_from_too() {
    for log in recorded().await {
        for end in 2..log.len() {
            if !is_open(&log[..end]) {
                continue;
            }
            let once = after_death(&log[..end], &[block(OpenKind::Text, 0, "Half")]).await.log.events();
            for second in end..once.len() {
                let hames = after_death(&once[..second], &[]).await;
                let all = hames.log.events();
                // Its closing events may be there twice then, but run.done is not, and the calls are not.
                let ends = all.iter().filter(|e| matches!(e.event, Event::RunDone(_)) && e.run == once[end].run);
                assert_eq!(ends.count(), 1);
                assert!(due(&all).is_empty());
                sound::sendable(&hames.session.items());
            }
        }
    }
}

/// Dies at a moment of a real run: whatever is in the log and beside it by then is what the next holder finds.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_is_closed_by_the_next_run_of_the_same_session() {
    for moment in ["step.start", "text.delta", "step.done", "tool.start", "tool.done", "done"] {
        let gate = Gate::new();
        let slow = TestTool::new("Slow", Effect::Edit).gated(&gate);
        let reply = Reply::text("I work.").then_call("Slow", at("a"));
        let mut hames = Setup::new([reply, Reply::text("Done.")]).tool(slow).build().await;
        let stop = hames.seen.hold(moment);
        gate.open();
        {
            let run = hames.run_unchecked("go");
            tokio::pin!(run);
            tokio::select! {
                _ = &mut run => panic!("{moment}"),
                () = stop.reached() => {}
            }
        }
        settle().await;
        hames.renew();
        hames.model.clear();
        hames.model.push(Reply::text("Going on."));
        let end = hames.run("again").await;
        ended(&end, RunResult::Complete, 0);
        let ends = hames.log.events().iter().filter(|e| matches!(e.event, Event::RunDone(_))).count();
        assert_eq!(ends, 2, "{moment}");
    }
}

#[tokio::test]
async fn a_tool_of_a_run_that_was_dropped_can_record_nothing_more() {
    let (inside, late) = (Gate::new(), Gate::new());
    let deaf = {
        let (inside, late) = (inside.clone(), late.clone());
        TestTool::new("Deaf", Effect::Edit).does(move |_, cx| {
            let (inside, late) = (inside.clone(), late.clone());
            async move {
                inside.open();
                inside.pass().await;
                late.pass().await;
                let changed = hames_protocol::FileChanged {
                    call_id: cx.call_id.clone(),
                    path: "/w/a".into(),
                    before: None,
                    after: None,
                    mode: None,
                    link: None,
                };
                cx.emit.record(vec![Event::FileChanged(changed)]).await?;
                panic!("it acted");
            }
        })
    };
    let mut hames = Setup::new([Reply::call("Deaf", at("a"))]).tool(deaf).build().await;
    tokio::select! {
        _ = hames.run_unchecked("go") => panic!("it ended"),
        () = late.reached() => {}
    }
    let before = hames.log.events();
    late.open();
    settle().await;
    assert_eq!(hames.log.events(), before);
    hames.renew();
    hames.model.push(Reply::text("Going on."));
    ended(&hames.run("again").await, RunResult::Complete, 0);
    assert_eq!(hames.trace.count("log file.changed"), 0);
}

#[tokio::test]
async fn a_result_that_cannot_be_read_any_more_does_not_lock_the_session() {
    let log = recorded().await.remove(5);
    let results: Vec<usize> = (0..log.len()).filter(|&i| matches!(log[i].event, Event::ToolDone(_))).collect();
    assert!(results.len() >= 8);
    for at in results {
        let mut damaged = log.clone();
        damaged[at].event = Event::Unknown(json!({"type": "damaged"}));
        let mut hames = after_death(&damaged, &[]).await;
        sound::sendable(&hames.session.items());
        assert_eq!(hames.log.events().len(), log.len() + 1);
        hames.model.push(Reply::text("Going on."));
        let end = hames.run_unchecked("go on").await;
        ended(&end, RunResult::Complete, 0);
    }
}

#[tokio::test]
async fn damaged_and_unknown_events_anywhere_are_skipped() {
    for log in recorded().await {
        for at in 1..log.len() {
            for unknown in
                [json!({"type": "damaged"}), json!({"type": "from.the.future", "x": 1}), json!({"type": "tool.done"})]
            {
                let mut damaged = log.clone();
                damaged[at].event = Event::Unknown(unknown);
                let mut hames = after_death(&damaged, &[]).await;
                hames.model.push(Reply::text("Going on."));
                let end = hames.run_unchecked("go on").await;
                assert_eq!(end.exit_code, 0, "{at}: {end:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_answers_tell_the_model_what_to_do() {
    let log = recorded().await.remove(5);
    let last_start = log.iter().position(|e| matches!(e.event, Event::ToolStart(_))).unwrap();
    for end in last_start..log.len() {
        let hames = after_death(&log[..end], &[]).await;
        for envelope in &hames.log.events()[end..] {
            let Event::ToolError(error) = &envelope.event else { continue };
            let words: &[&str] = match error.class {
                ToolErrorClass::NotRun => &["Not run"],
                ToolErrorClass::Interrupted => &["Interrupted", "Nothing was changed"],
                ToolErrorClass::OutcomeUnknown => &["unknown", "Look at the present state before"],
                other => panic!("{other:?}"),
            };
            assert!(words.iter().all(|word| error.error.contains(word)), "{}", error.error);
        }
    }
}

#[tokio::test]
async fn a_log_of_thousands_of_events_is_replayed_whole() {
    let mut hames = Setup::new([]).build().await;
    for n in 0..450 {
        hames.model.push(Reply::call("Look", at(&format!("f{n}"))));
    }
    hames.model.push(Reply::text("Done."));
    hames.run("go").await;
    let log = hames.log.events();
    assert!(log.len() > 2_000, "{}", log.len());
    for end in [999, 1_000, 1_001, 2_000, log.len()] {
        let hames = after_death(&log[..end], &[]).await;
        sound::sendable(&hames.session.items());
        assert_eq!(hames.session.state().seq, hames.log.events().len() as u64);
    }
    assert_eq!(hames.session.id(), &SessionId::from("s-1"));
}

#[tokio::test]
async fn the_next_holder_is_told_which_files_were_in_the_middle_of_a_change() {
    let mut hames = Setup::new([Reply::call("Change", at("a")), Reply::text("Done.")]).build().await;
    hames.run("go").await;
    let mut events = hames.log.events();
    let start = events.iter().position(|e| matches!(e.event, Event::ToolStart(_))).unwrap();
    let answer = events[start + 1..].iter().find(|e| matches!(e.event, Event::ToolDone(_))).unwrap().clone();
    events.truncate(start + 1);
    let Event::ToolStart(started) = &events[start].event else { unreachable!() };
    let changed = |path: &str, seq: u64| Envelope {
        seq: Some(seq),
        event: Event::FileChanged(FileChanged {
            call_id: started.call_id.clone(),
            path: path.into(),
            before: None,
            after: None,
            mode: None,
            link: None,
        }),
        ..events[start].clone()
    };
    let first = events.len() as u64 + 1;
    let (one, two) = (changed("/w/a", first), changed("/w/b", first + 1));
    events.extend([one, two]);
    let cut = after_death(&events, &[]).await.session.cut_changes();
    assert_eq!(cut, [Path::new("/w/a"), Path::new("/w/b")]);
    events.push(Envelope { seq: Some(first + 2), ..answer });
    assert!(after_death(&events, &[]).await.session.cut_changes().is_empty(), "an answered call is no cut one");
}

#[tokio::test]
async fn others_go_on_while_a_long_log_is_read() {
    let (log, id) = (Arc::new(MemoryLog::default()), SessionId::from("long"));
    let created = SessionCreated { name: "long".into(), folder: "/w".into(), settings: Settings::default() };
    let paused = (2..=10_000).map(|n| Event::from(PendingPaused { paused: n % 2 == 0 }));
    let events = std::iter::once(created.into()).chain(paused);
    let events = events.map(|event| Envelope { session: Some(id.clone()), ..Envelope::detached(1, event) }).collect();
    log.append(&id, 1, events, Durability::Process).await.unwrap();
    // The log answers at once: whoever takes it in on this thread lets nobody else have a turn.
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    });
    let ports = Ports { log, clock: Arc::new(SystemClock) };
    let session = Session::look(ports, id).await.unwrap();
    assert!(turns.load(Ordering::SeqCst) > 0, "nobody else had a turn");
    assert_eq!(session.state().seq, 10_000);
    other.abort();
}

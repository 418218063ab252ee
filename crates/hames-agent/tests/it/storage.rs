//! A log that cannot be written to.

use hames_protocol::{Effect, ErrorClass, Event, RunResult};
use serde_json::json;

use crate::support::{Gate, Hames, Reply, Setup, TestTool, ended, hames};

fn at(path: &str) -> serde_json::Value {
    json!({ "path": path })
}

fn scripts() -> Vec<Vec<Reply>> {
    let many = Reply::text("All:")
        .then_call("Look", at("a"))
        .then_call("Change", at("b"))
        .then_call("Do", at("c"))
        .then_call("Look", at("d"))
        .then_call("Post", at("e"));
    let failure = hames_protocol::Failure::new(ErrorClass::Overloaded, "Busy.").retryable();
    vec![
        vec![Reply::text("Done.")],
        vec![Reply::call("Change", at("a")), Reply::call("Change", at("a")), Reply::text("Done.")],
        vec![many.clone(), Reply::refused(failure), many, Reply::text("Done.")],
        vec![
            Reply::call("Nothing", at("a")),
            Reply::call("Look", at("a")).finish(Some("length")),
            Reply::text("Done."),
        ],
    ]
}

/// What must hold when the append with this number fails.
fn check_stopped(hames: &Hames, end: &hames_agent::RunEnd) {
    ended(end, RunResult::Error, 4);
    let failure = end.failure.as_ref().unwrap();
    assert_eq!(failure.class, ErrorClass::Storage);
    assert!(failure.message.contains("/data") && failure.message.contains("full"), "{failure}");
    // The watcher learns how it ended, though it is not in the log.
    let seen = hames.seen.all();
    let [.., error, done] = seen.as_slice() else { panic!() };
    assert!(matches!(&error.event, Event::Error(told) if told == failure));
    assert!(matches!(&done.event, Event::RunDone(done) if (done.result, done.exit_code) == (RunResult::Error, 4)));
    assert_eq!((error.seq, done.seq), (None, None));
    assert!(done.run.is_some() && done.turn == Some(1));
    assert_eq!(seen.iter().filter(|e| matches!(e.event, Event::RunDone(_))).count(), 1);
    // Nothing was recorded, sent or begun after it.
    let marks = hames.trace.all();
    let after = &marks[hames.trace.at("log fails")..];
    assert!(!after.iter().any(|mark| mark.starts_with("log ") && mark != "log fails"), "{after:?}");
    assert!(!after.contains(&"sent".to_owned()), "{after:?}");
    let bodies = marks.iter().filter(|mark| mark.starts_with("body")).count();
    assert!(bodies <= hames.trace.count("log tool.start"), "{marks:#?}");
}

#[tokio::test(start_paused = true)]
async fn whichever_append_fails_the_run_ends_at_once_and_the_next_one_works() {
    for script in scripts() {
        let mut append = 1;
        loop {
            let mut hames = hames(script.clone()).await;
            hames.log.fail_at(append);
            let end = hames.run_unchecked("go").await;
            if hames.log.appends() <= append {
                ended(&end, RunResult::Complete, 0);
                break;
            }
            check_stopped(&hames, &end);
            // Space is free again.
            let seen = hames.seen.all().len();
            hames.renew();
            hames.model.clear();
            hames.model.push(Reply::text("Going on."));
            let end = hames.run_unchecked("again").await;
            ended(&end, RunResult::Complete, 0);
            crate::support::sound::log(&hames.log.events());
            let later: Vec<_> = hames.seen.all()[seen..].to_vec();
            assert!(later.iter().filter(|e| e.event.is_durable()).all(|e| e.seq.is_some()));
            append += 1;
        }
        assert!(append > 4);
    }
}

#[tokio::test]
async fn tools_that_run_while_the_log_fails_are_cancelled_and_no_other_starts() {
    let gate = Gate::new();
    let slow = TestTool::new("Slow", Effect::Read).gated(&gate);
    // The second call waits for the first; the third records at once.
    let calls = Reply::call("Slow", at("a")).then_call("Change", at("a")).then_call("Look", at("b"));
    let mut hames = Setup::new([calls]).tool(slow).build().await;
    // created 0, opening 1, step.start 2, step 3, then two starts and the first end.
    hames.log.fail_at(6);
    let end = hames.run_unchecked("go").await;
    check_stopped(&hames, &end);
    assert_eq!((hames.trace.count("body Slow"), hames.trace.count("body Change")), (1, 0));
}

#[tokio::test]
async fn another_writer_is_noticed_and_nothing_is_overwritten() {
    let mut hames = hames([Reply::text("Done.")]).await;
    let intruder = hames.log.events().remove(0);
    hames.log.put(&"s-1".into(), vec![intruder]).await;
    let before = hames.log.events();
    let end = hames.run_unchecked("go").await;
    ended(&end, RunResult::Error, 4);
    assert!(end.failure.unwrap().message.contains("open it again"));
    assert_eq!(hames.log.events(), before);
    assert_eq!(hames.trace.count("sent"), 0);
}

#[tokio::test]
async fn an_event_of_a_tool_that_cannot_be_recorded_stops_the_tool_before_it_acts() {
    let acts = TestTool::new("Change", Effect::Edit).does(|_, cx| async move {
        let path = "/w/a".to_owned();
        let call_id = cx.call_id.clone();
        let changed = hames_protocol::FileChanged { call_id, path, before: None, after: None, mode: None, link: None };
        cx.emit.record(vec![Event::FileChanged(changed)]).await?;
        panic!("it acted");
    });
    let mut hames = Setup::new([Reply::call("Change", at("a"))]).tool(acts).build().await;
    hames.log.fail_at(5);
    let end = hames.run_unchecked("go").await;
    check_stopped(&hames, &end);
}

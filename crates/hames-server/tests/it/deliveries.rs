//! Messages to a session that is busy, in every moment a run has.

use hames_protocol::api::*;
use hames_protocol::{Delivery, Event, Part, RunResult};

use crate::support::{Bed, Reply, edit, message, settle, text_of, texts, wait};

use Delivery::{Interrupt, Queue, Steer};

/// Where a run is when a message comes.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The model has said something and will say more.
    Streaming,
    /// A tool runs.
    InTool,
    /// The answer is about to end, and with it the run.
    Ending,
}

/// A run that has come to that moment, its first message being "go".
async fn at(moment: Moment) -> Bed {
    let bed = Bed::held().await;
    match moment {
        Moment::Streaming => {
            bed.model.will([Reply::pieces(["One ".into(), "two.".into()])]);
            bed.send("go", Queue).await;
            bed.model.allow(1);
            bed.model.reached(2).await;
        }
        Moment::InTool => {
            bed.model.will([wait()]);
            bed.send("go", Queue).await;
            bed.model.allow(2);
            bed.model.entered(1).await;
        }
        Moment::Ending => {
            bed.model.will([Reply::text("One.")]);
            bed.send("go", Queue).await;
            bed.model.allow(1);
            bed.model.reached(2).await;
        }
    }
    settle().await;
    bed
}

fn runs(events: &[hames_protocol::Envelope]) -> Vec<Vec<String>> {
    let mut runs: Vec<Vec<String>> = Vec::new();
    for envelope in events {
        match &envelope.event {
            Event::RunStart(_) => runs.push(Vec::new()),
            Event::MessageUser(message) => runs.last_mut().unwrap().push(text_of(&message.parts)),
            _ => {}
        }
    }
    runs
}

#[tokio::test]
async fn each_delivery_reaches_the_model_where_it_should_in_every_moment() {
    for moment in [Moment::Streaming, Moment::InTool, Moment::Ending] {
        for (deliveries, expected) in [
            (&[Steer][..], vec![vec!["go", "m0"]]),
            (&[Interrupt], vec![vec!["go", "m0"]]),
            (&[Queue], vec![vec!["go"], vec!["m0"]]),
            (&[Steer, Steer, Queue], vec![vec!["go", "m0", "m1"], vec!["m2"]]),
            (&[Queue, Steer, Queue, Interrupt], vec![vec!["go", "m1", "m3"], vec!["m0"], vec!["m2"]]),
            (&[Steer, Interrupt, Steer], vec![vec!["go", "m0", "m1", "m2"]]),
        ] {
            let bed = at(moment).await;
            for (n, delivery) in deliveries.iter().enumerate() {
                let sent = bed.send(&format!("m{n}"), *delivery).await;
                assert!(!sent.starts_run);
            }
            settle().await;
            bed.model.allow_tools(1);
            bed.model.allow(100);
            let view = bed.quiet().await;
            let case = format!("{moment:?} {deliveries:?}");
            assert_eq!(runs(&bed.log().await), expected, "{case}");
            assert_eq!((view.pending, view.paused), (vec![], false), "{case}");
            // Everything waiting at one boundary is in one request.
            let heard = bed.model.heard();
            assert_eq!(heard.last().unwrap().len(), 1 + deliveries.len(), "{case}");
        }
    }
}

#[tokio::test]
async fn stop_gives_steers_back_and_lets_the_queue_wait() {
    for moment in [Moment::Streaming, Moment::InTool, Moment::Ending] {
        let bed = at(moment).await;
        for (text, delivery) in [("s1", Steer), ("q1", Queue), ("s2", Steer), ("q2", Queue)] {
            bed.send(text, delivery).await;
        }
        let aborted = bed.hub.abort(&bed.id, Abort::default()).await.unwrap();
        assert_eq!((texts(&aborted.returned), aborted.queued), (vec!["s1".into(), "s2".into()], 2), "{moment:?}");
        assert!(aborted.run.is_some());
        let view = bed.quiet().await;
        assert_eq!((texts(&view.pending), view.paused), (vec!["q1".into(), "q2".into()], true));
        assert_eq!(bed.said().await, ["go"]);
        // What is said now is heard now; the queue goes on when it is told to.
        bed.model.allow(100);
        assert!(bed.send("now", Queue).await.starts_run);
        let view = bed.quiet().await;
        assert_eq!((texts(&view.pending), view.paused), (vec!["q1".into(), "q2".into()], true));
        bed.hub.pause(&bed.id, PausePending { paused: false }).await.unwrap();
        bed.quiet().await;
        assert_eq!(bed.said().await, ["go", "now", "q1", "q2"]);
        let nothing = bed.hub.abort(&bed.id, Abort::default()).await.unwrap();
        assert_eq!((nothing.run, nothing.returned, nothing.queued), (None, vec![], 0));
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_says_what_its_command_exits_with() {
    for (codes, said) in [(&[None][..], 130), (&[Some(143)], 143), (&[Some(129), Some(143), None], 129)] {
        let bed = at(Moment::InTool).await;
        for wrong in [0, -1, 256] {
            let refused =
                bed.hub.abort(&bed.id, Abort { exit_code: Some(wrong), ..Abort::default() }).await.unwrap_err();
            assert_eq!(refused.code, ApiErrorCode::Invalid, "{refused}");
        }
        let aborting = codes.iter().map(|code| bed.hub.abort(&bed.id, Abort { exit_code: *code, ..Abort::default() }));
        for aborted in futures_util::future::join_all(aborting).await {
            aborted.unwrap();
        }
        bed.quiet().await;
        let log = bed.log().await;
        let done = log.iter().find_map(|envelope| match &envelope.event {
            Event::RunDone(done) => Some((done.result, done.exit_code)),
            _ => None,
        });
        assert_eq!(done, Some((RunResult::Interrupted, said)), "{codes:?}");
    }
}

#[tokio::test]
async fn a_message_in_the_gap_before_a_run_ends_is_heard_once_without_a_nudge() {
    for delivery in [Steer, Interrupt, Queue] {
        for yields in 0..40 {
            let bed = at(Moment::Ending).await;
            bed.model.allow(100);
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            bed.send("late", delivery).await;
            let view = bed.quiet().await;
            assert_eq!(bed.said().await, ["go", "late"], "{delivery:?} after {yields} turns of the runtime");
            assert_eq!(view.pending, []);
            let heard = bed.model.heard();
            assert_eq!(heard.iter().filter(|said| said.last().is_some_and(|text| text == "late")).count(), 1);
        }
    }
}

#[tokio::test]
async fn an_abort_that_meets_a_steer_leaves_it_in_exactly_one_place() {
    for yields in 0..60 {
        let bed = at(Moment::InTool).await;
        bed.send("use no npm", Steer).await;
        bed.model.allow_tools(1);
        bed.model.allow(1);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        let aborted = bed.hub.abort(&bed.id, Abort { scope: AbortScope::All, ..Abort::default() }).await.unwrap();
        let view = bed.quiet().await;
        let said = bed.said().await;
        let places = [said.contains(&"use no npm".to_owned()), !aborted.returned.is_empty(), !view.pending.is_empty()];
        assert_eq!(places.iter().filter(|place| **place).count(), 1, "{yields}: {places:?}");
        let (calls, results) = bed.log().await.iter().fold((0, 0), |(calls, results), e| match e.event {
            Event::ToolCall(_) => (calls + 1, results),
            Event::ToolDone(_) | Event::ToolError(_) => (calls, results + 1),
            _ => (calls, results),
        });
        assert_eq!(calls, results, "every call has an answer");
    }
}

#[tokio::test]
async fn a_steer_among_three_calls_that_meets_an_abort_leaves_every_call_answered() {
    for yields in 0..60 {
        let bed = Bed::held().await;
        // Each does something, so they come one after the other.
        bed.model.will([Reply::calls("Work", 3)]);
        bed.send("go", Queue).await;
        bed.model.allow(4);
        bed.model.entered(1).await;
        bed.send("use no npm", Steer).await;
        bed.model.allow_tools(3);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        let aborted = bed.hub.abort(&bed.id, Abort::default()).await.unwrap();
        let view = bed.quiet().await;
        let said = bed.said().await.contains(&"use no npm".to_owned());
        let places = [said, texts(&aborted.returned) == ["use no npm"], !view.pending.is_empty()];
        assert_eq!(places.iter().filter(|place| **place).count(), 1, "{yields}: {places:?}");
        let log = bed.log().await;
        let asked = log.iter().filter(|e| matches!(e.event, Event::ToolCall(_))).count();
        let answered = log.iter().filter(|e| matches!(e.event, Event::ToolDone(_) | Event::ToolError(_))).count();
        assert_eq!((asked, answered), (3, 3), "{yields}");
    }
}

#[tokio::test]
async fn what_waits_can_be_changed_moved_converted_and_withdrawn() {
    let bed = at(Moment::InTool).await;
    let (a, b, c, d) = (
        bed.send("a", Queue).await.pending_id,
        bed.send("b", Queue).await.pending_id,
        bed.send("c", Steer).await.pending_id,
        bed.send("d", Queue).await.pending_id,
    );
    let list = async |(id, edit): (&hames_protocol::PendingId, EditPending)| {
        texts(&bed.hub.edit_pending(&bed.id, id, edit).await.unwrap().pending)
    };
    assert_eq!(list((&b, EditPending { before: Some(a.clone()), ..edit() })).await, ["c", "b", "a", "d"]);
    assert_eq!(list((&b, EditPending { last: true, ..edit() })).await, ["c", "a", "d", "b"]);
    // A steer that is taken back does not reach the run; a queued message made one does.
    assert_eq!(list((&c, EditPending { delivery: Some(Queue), ..edit() })).await, ["a", "c", "d", "b"]);
    let words = Some(vec![Part::text("d, and more")]);
    assert_eq!(list((&d, EditPending { delivery: Some(Steer), parts: words, ..edit() })).await[0], "d, and more");
    let back = bed.hub.cancel_pending(&bed.id, &a).await.unwrap();
    assert_eq!(text_of(&back.parts), "a");
    for (id, edit, code) in [
        (&a, EditPending { last: true, ..edit() }, ApiErrorCode::NotFound),
        (&b, EditPending { before: Some(a.clone()), ..edit() }, ApiErrorCode::NotFound),
        (&b, EditPending { parts: Some(vec![Part::text(" ")]), ..edit() }, ApiErrorCode::Invalid),
    ] {
        assert_eq!(bed.hub.edit_pending(&bed.id, id, edit).await.unwrap_err().code, code);
    }
    bed.model.allow_tools(1);
    bed.model.allow(100);
    bed.quiet().await;
    assert_eq!(runs(&bed.log().await), [vec!["go", "d, and more"], vec!["c"], vec!["b"]]);
    let gone = bed.hub.cancel_pending(&bed.id, &b).await.unwrap_err();
    assert_eq!(gone.code, ApiErrorCode::NotFound);
}

#[tokio::test]
async fn a_change_that_meets_the_delivery_is_either_made_or_refused() {
    for yields in 0..60 {
        let bed = at(Moment::InTool).await;
        let id = bed.send("old", Steer).await.pending_id;
        bed.model.allow_tools(1);
        bed.model.allow(100);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        let words = EditPending { parts: Some(vec![Part::text("new")]), ..edit() };
        let edited = bed.hub.edit_pending(&bed.id, &id, words).await;
        let cancelled = bed.hub.cancel_pending(&bed.id, &id).await;
        bed.quiet().await;
        let expected = match (edited.is_ok(), cancelled.is_ok()) {
            (_, true) => vec!["go"],
            (true, false) => vec!["go", "new"],
            (false, false) => vec!["go", "old"],
        };
        assert_eq!(bed.said().await, expected, "{yields}");
    }
}

#[tokio::test]
async fn a_run_that_fails_lets_everything_wait_with_what_it_missed_first() {
    let bed = at(Moment::InTool).await;
    bed.send("q", Queue).await;
    bed.model.will([Reply::failed()]);
    bed.model.allow_tools(1);
    bed.model.allow(100);
    let view = bed.quiet().await;
    assert_eq!((texts(&view.pending), view.paused), (vec!["q".into()], true));
    // A queued message made a steer where nothing runs is heard at once.
    let id = view.pending[0].id.clone();
    bed.hub.edit_pending(&bed.id, &id, EditPending { delivery: Some(Steer), ..edit() }).await.unwrap();
    bed.quiet().await;
    assert_eq!(bed.said().await, ["go", "q"]);
}

#[tokio::test]
async fn a_message_sent_twice_under_one_id_is_taken_once_also_after_a_restart() {
    let mut bed = Bed::new().await;
    let mine = || SendMessage { idempotency_id: Some("mine-1".into()), ..message("go", Queue) };
    let first = bed.hub.send(&bed.id, mine()).await.unwrap();
    assert_eq!((first.starts_run, first.repeated), (true, false));
    let again = bed.hub.send(&bed.id, mine()).await.unwrap();
    assert_eq!((again.repeated, &again.pending_id, again.seq), (true, &first.pending_id, first.seq));
    bed.quiet().await;
    bed.restart().await;
    let again = bed.hub.send(&bed.id, mine()).await.unwrap();
    assert_eq!((again.repeated, &again.pending_id, again.seq), (true, &first.pending_id, first.seq));
    assert_eq!(bed.said().await, ["go"]);
}

#[tokio::test]
async fn what_waited_through_a_stop_is_there_when_the_server_starts_again() {
    let mut bed = at(Moment::InTool).await;
    bed.send("steer", Steer).await;
    bed.send("queue", Queue).await;
    let busy = bed.hub.stop(StopServer { force: false, when_idle: false }).await.unwrap_err();
    assert_eq!(busy.code, ApiErrorCode::Busy);
    bed.restart().await;
    let view = bed.quiet().await;
    assert_eq!((texts(&view.pending), view.paused), (vec!["steer".into(), "queue".into()], true));
    let events = bed.log().await;
    let ended = events.iter().rev().find_map(|e| match &e.event {
        Event::RunDone(done) => Some(done.result),
        _ => None,
    });
    assert_eq!(ended, Some(RunResult::Interrupted));
    bed.model.allow(100);
    bed.hub.pause(&bed.id, PausePending { paused: false }).await.unwrap();
    bed.quiet().await;
    assert_eq!(bed.said().await, ["go", "steer", "queue"]);
}

#[tokio::test]
async fn a_message_whose_run_cannot_begin_is_not_taken_in_and_a_queued_one_waits() {
    let bed = at(Moment::InTool).await;
    bed.send("later", Queue).await;
    let no_key = hames_protocol::Failure::new(hames_protocol::ErrorClass::Configuration, "There is no key.");
    *bed.host.refuses.lock().unwrap() = Some(no_key);
    bed.model.allow_tools(1);
    bed.model.allow(100);
    let view = bed.quiet().await;
    assert_eq!((texts(&view.pending), view.paused), (vec!["later".into()], true));
    assert!(
        bed.log().await.iter().any(|e| matches!(&e.event, Event::Error(failure) if failure.message.contains("key")))
    );
    let refused = bed.hub.send(&bed.id, message("now", Queue)).await.unwrap_err();
    assert_eq!(refused.code, ApiErrorCode::Configuration);
    assert_eq!(texts(&bed.hub.pending(&bed.id).await.unwrap().pending), ["later"]);
    *bed.host.refuses.lock().unwrap() = None;
    bed.hub.pause(&bed.id, PausePending { paused: false }).await.unwrap();
    bed.quiet().await;
    assert_eq!(bed.said().await, ["go", "later"]);
}

#[tokio::test]
async fn an_empty_message_is_refused() {
    let bed = Bed::new().await;
    for parts in [vec![], vec![Part::text(" \n")], vec![Part::text("x"); 201]] {
        let refused = bed.hub.send(&bed.id, SendMessage { parts, ..message("", Queue) }).await.unwrap_err();
        assert_eq!(refused.code, ApiErrorCode::Invalid);
    }
    assert_eq!(bed.types().await, ["session.created"]);
}

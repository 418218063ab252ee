//! Messages that meet something else in the very moment it happens: each delivery against the end of a tool, of a step
//! and of a run, against a stop, and against clients that come and go. How the two meet is a number of turns of the
//! runtime between them, every one of which is tried.
//!
//! Whatever comes first: a message is in the transcript once, or given back, or still waits; order is kept; nobody has
//! to nudge anything.

use hames_protocol::api::*;
use hames_protocol::{Delivery, Event};

use crate::support::{Bed, Picture, Reply, message, settle, text_of, texts, wait};

/// Turns of the runtime that are tried: by then either is done with what it does. A soak tries each of them.
fn tried() -> impl Iterator<Item = usize> {
    let step = if std::env::var_os("HAMES_SOAK").is_some() { 1 } else { 7 };
    (0..60).step_by(step)
}

/// What a message meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meets {
    ToolEnd,
    /// The end of a step whose call comes next.
    StepEnd,
    RunEnd,
    Abort,
    /// Clients that go and come again, in the middle of a step.
    Reconnect,
}

/// A run that has come to just before it. The model may say all it has left once it happens.
async fn before(meets: Meets) -> Bed {
    let bed = Bed::held().await;
    match meets {
        Meets::ToolEnd | Meets::Abort => {
            bed.model.will([wait()]);
            bed.send("go", Delivery::Queue).await;
            bed.model.allow(2);
            bed.model.entered(1).await;
        }
        Meets::StepEnd => {
            // The tool itself never waits.
            bed.model.allow_tools(10);
            bed.model.will([wait()]);
            bed.send("go", Delivery::Queue).await;
            bed.model.allow(1);
            bed.model.reached(2).await;
        }
        Meets::RunEnd | Meets::Reconnect => {
            bed.model.will([Reply::pieces(["One ".into(), "two ".into(), "three.".into()])]);
            bed.send("go", Delivery::Queue).await;
            bed.model.allow(if meets == Meets::RunEnd { 3 } else { 1 });
            bed.model.reached(if meets == Meets::RunEnd { 4 } else { 2 }).await;
        }
    }
    settle().await;
    bed
}

async fn turns(count: usize) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Lets it happen.
async fn happen(bed: &Bed, meets: Meets) -> Vec<String> {
    match meets {
        Meets::ToolEnd => bed.model.allow_tools(1),
        Meets::StepEnd | Meets::RunEnd => {}
        Meets::Abort => {
            let aborted = bed.hub.abort(&bed.id, Abort::default()).await.unwrap();
            bed.model.allow(100);
            return texts(&aborted.returned);
        }
        Meets::Reconnect => {
            for after in [0, 3] {
                let mut client = bed.hub.attach(&bed.id, Some(after)).await.unwrap();
                client.next().await.unwrap().unwrap();
            }
        }
    }
    bed.model.allow(100);
    Vec::new()
}

/// Sends "a" and "b", the first of them so many turns after, or before, it begins to happen.
async fn meet(meets: Meets, delivery: Delivery, after: usize, first: bool) {
    let bed = before(meets).await;
    let mut client = bed.hub.attach(&bed.id, Some(0)).await.unwrap();
    let sending = async {
        turns(if first { 0 } else { after }).await;
        for text in ["a", "b"] {
            bed.send(text, delivery).await;
        }
    };
    let happening = async {
        turns(if first { after } else { 0 }).await;
        happen(&bed, meets).await
    };
    let ((), mut elsewhere) = tokio::join!(sending, happening);
    bed.model.allow_tools(10);
    let case = format!("{delivery:?} and {meets:?}, {after} turns, message first: {first}");
    let mut view = bed.quiet().await;
    if meets == Meets::Abort {
        // What came behind the stop began a run; what waits stands still until it is told to go on.
        elsewhere.extend(texts(&view.pending));
        assert!(view.pending.is_empty() || view.paused, "{case}");
    } else {
        assert_eq!((texts(&view.pending), view.paused), (vec![], false), "{case}");
    }
    let said = bed.said().await;
    let mut all: Vec<String> = said.iter().skip(1).cloned().chain(elsewhere.clone()).collect();
    assert!(said[1..].is_sorted() && elsewhere.is_sorted(), "{case}: {said:?} {elsewhere:?}");
    if meets == Meets::Abort {
        // What is sent when all is still is heard at once, whatever waits there or was given back.
        all.sort();
    }
    assert_eq!(all, ["a", "b"], "{case}: said {said:?}, elsewhere {elsewhere:?}");
    if meets == Meets::Abort {
        // What came into the transcript in the moment of the stop is heard with whatever is said next.
        bed.send("next", Delivery::Steer).await;
        bed.quiet().await;
    }
    let said = bed.said().await;
    // Each was in a request, and in the order of the log.
    let heard = bed.model.heard();
    for text in said.iter().skip(1) {
        assert!(heard.iter().any(|request| request.contains(text)), "{case}: {text} in {heard:?}");
    }
    for request in &heard {
        let mut words = request.clone();
        words.dedup();
        assert_eq!(&words, request, "{case}: sent twice");
        assert!(said.starts_with(request), "{case}: {request:?} of {said:?}");
    }
    // Whoever watched saw all of it once.
    view = bed.hub.view(&bed.id).await.unwrap();
    let mut picture = Picture::default();
    while client.cursor() < view.row.last_seq {
        client.next().await.unwrap().unwrap().iter().for_each(|news| picture.take_in(news));
    }
    let log = bed.log().await;
    assert_eq!(picture.seqs, log.iter().filter_map(|e| e.seq).collect::<Vec<_>>(), "{case}");
    let (calls, results) = log.iter().fold((0, 0), |(calls, results), e| match e.event {
        Event::ToolCall(_) => (calls + 1, results),
        Event::ToolDone(_) | Event::ToolError(_) => (calls, results + 1),
        _ => (calls, results),
    });
    assert_eq!(calls, results, "{case}: every call has an answer");
}

async fn meet_in_every_way(meets: Meets) {
    for delivery in [Delivery::Steer, Delivery::Interrupt, Delivery::Queue] {
        for after in tried() {
            for first in [false, true] {
                meet(meets, delivery, after, first).await;
            }
        }
    }
}

#[tokio::test]
async fn a_message_that_meets_the_end_of_a_tool() {
    meet_in_every_way(Meets::ToolEnd).await;
}

#[tokio::test]
async fn a_message_that_meets_the_end_of_a_step() {
    meet_in_every_way(Meets::StepEnd).await;
}

#[tokio::test]
async fn a_message_that_meets_the_end_of_a_run() {
    meet_in_every_way(Meets::RunEnd).await;
}

#[tokio::test]
async fn a_message_that_meets_a_stop() {
    meet_in_every_way(Meets::Abort).await;
}

#[tokio::test]
async fn a_message_that_meets_clients_who_come_again() {
    meet_in_every_way(Meets::Reconnect).await;
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_and_that_is_sent_again_meets_its_own_delivery() {
    for delivery in [Delivery::Steer, Delivery::Interrupt, Delivery::Queue] {
        for after in tried() {
            let bed = before(Meets::ToolEnd).await;
            let mine = || SendMessage { idempotency_id: Some("mine".into()), ..message("a", delivery) };
            let first = bed.hub.send(&bed.id, mine()).await.unwrap();
            bed.model.allow_tools(10);
            bed.model.allow(100);
            turns(after).await;
            let again = bed.hub.send(&bed.id, mine()).await.unwrap();
            assert_eq!((again.repeated, &again.pending_id), (true, &first.pending_id), "{delivery:?} {after}");
            bed.quiet().await;
            assert_eq!(bed.said().await, ["go", "a"], "{delivery:?} {after}");
        }
    }
}

#[tokio::test]
async fn a_conversion_that_meets_a_boundary_moves_a_message_to_exactly_one_side() {
    for (from, to) in [(Delivery::Steer, Delivery::Queue), (Delivery::Queue, Delivery::Steer)] {
        for meets in [Meets::ToolEnd, Meets::StepEnd, Meets::RunEnd] {
            for after in tried() {
                let bed = before(meets).await;
                let id = bed.send("a", from).await.pending_id;
                let edit = EditPending { delivery: Some(to), ..crate::support::edit() };
                let converting = async {
                    turns(after).await;
                    bed.hub.edit_pending(&bed.id, &id, edit).await
                };
                let (converted, _) = tokio::join!(converting, happen(&bed, meets));
                bed.model.allow_tools(10);
                let view = bed.quiet().await;
                let log = bed.log().await;
                let case = format!("{from:?} to {to:?} at {meets:?}, {after} turns: {converted:?}");
                assert_eq!((bed.said().await, view.pending), (vec!["go".to_owned(), "a".to_owned()], vec![]), "{case}");
                let runs = log.iter().filter(|e| matches!(e.event, Event::RunStart(_))).count();
                let delivered = log.iter().find_map(|e| match &e.event {
                    Event::MessageUser(said) if text_of(&said.parts) == "a" => Some(said.delivery),
                    _ => None,
                });
                // A steer taken back is withdrawn from the run: it begins one of its own.
                let expected = if converted.is_ok() { to } else { from };
                match (expected, runs) {
                    (Delivery::Queue, 2) => assert_eq!(delivered, Some(None), "{case}"),
                    (Delivery::Steer, 1) => assert_eq!(delivered, Some(Some(Delivery::Steer)), "{case}"),
                    // It came behind the last look of the run, and begins the next.
                    (Delivery::Steer, 2) => assert_eq!(delivered, Some(Some(Delivery::Steer)), "{case}"),
                    _ => panic!("{case}: {runs} runs"),
                }
            }
        }
    }
}

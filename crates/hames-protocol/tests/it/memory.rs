//! The in-memory ports keep the promises their traits make.

#![allow(clippy::unwrap_used)] // helpers of tests fail like tests

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use hames_protocol::*;

use crate::samples::{pending, user};

fn event(text: &str) -> Envelope {
    Envelope::detached(1, user(text).into())
}

fn seqs(envelopes: &[Envelope]) -> Vec<u64> {
    envelopes.iter().map(|e| e.seq.unwrap()).collect()
}

fn texts(envelopes: &[Envelope]) -> Vec<Event> {
    envelopes.iter().map(|e| e.event.clone()).collect()
}

#[tokio::test]
async fn events_are_numbered_from_one_and_read_back_in_pages() {
    let (log, id) = (MemoryLog::default(), SessionId::from("s"));
    let first = log.append(&id, 1, vec![event("a"), event("b")], Durability::Process).await.unwrap();
    assert_eq!(seqs(&first), [1, 2]);
    let second = log.append(&id, 3, vec![event("c")], Durability::Power).await.unwrap();
    assert_eq!(seqs(&second), [3]);
    assert_eq!(seqs(&log.read(&id, 0, 2).await.unwrap()), [1, 2]);
    assert_eq!(seqs(&log.read(&id, 2, 2).await.unwrap()), [3]);
    assert!(log.read(&id, 3, 2).await.unwrap().is_empty());
    assert!(log.read(&id, u64::MAX, usize::MAX).await.unwrap().is_empty());
    assert_eq!(texts(&log.read(&id, 0, 9).await.unwrap()), texts(&[event("a"), event("b"), event("c")]));
}

#[tokio::test]
async fn a_wrong_expected_seq_is_a_conflict_and_changes_nothing() {
    let (log, id) = (MemoryLog::default(), SessionId::from("s"));
    log.append(&id, 1, vec![event("a")], Durability::Process).await.unwrap();
    for expected in [0, 1, 3, u64::MAX] {
        let error = log.append(&id, expected, vec![event("x"), event("y")], Durability::Process).await.unwrap_err();
        assert_eq!(error, LogError::Conflict { session: id.clone(), expected, found: 2 });
    }
    assert_eq!(log.read(&id, 0, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_exists_from_its_first_event_on() {
    let (log, id) = (MemoryLog::default(), SessionId::from("s"));
    let missing = Err(LogError::NoSession(id.clone()));
    assert_eq!(log.read(&id, 0, 9).await, missing);
    assert!(log.append(&id, 7, vec![event("x")], Durability::Process).await.is_err());
    assert!(log.append(&id, 1, vec![], Durability::Process).await.unwrap().is_empty());
    assert_eq!(log.read(&id, 0, 9).await, missing, "neither a conflict nor an empty append makes one");
}

#[test]
fn of_writers_that_race_each_seq_has_one_winner() {
    let log = Arc::new(MemoryLog::default());
    let won = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (log, won) = (&log, &won);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for seq in 1..=200 {
                    let text = format!("{writer}");
                    let appended =
                        runtime.block_on(log.append(&"s".into(), seq, vec![event(&text)], Durability::Process));
                    match appended {
                        Ok(events) => {
                            assert_eq!(seqs(&events), [seq]);
                            won.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => assert!(matches!(error, LogError::Conflict { .. })),
                    }
                }
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let all = runtime.block_on(log.read(&"s".into(), 0, usize::MAX)).unwrap();
    assert_eq!(all.len(), won.load(Ordering::Relaxed));
    assert_eq!(seqs(&all), (1..=all.len() as u64).collect::<Vec<_>>());
}

fn piece(kind: OpenKind, index: u32, name: Option<&str>, text: &str) -> OpenBlock {
    OpenBlock { kind, index, name: name.map(String::from), text: text.into() }
}

#[tokio::test]
async fn pieces_of_the_open_step_are_joined_and_gone_once_it_is_closed() {
    let (log, id) = (MemoryLog::default(), SessionId::from("s"));
    let pieces = vec![
        piece(OpenKind::Reasoning, 0, None, "h"),
        piece(OpenKind::Text, 0, None, "a"),
        piece(OpenKind::ToolInput, 0, None, ""),
    ];
    log.save_open(&id, pieces).await.unwrap();
    let pieces = vec![
        piece(OpenKind::Text, 0, None, "b"),
        piece(OpenKind::Text, 1, None, "c"),
        piece(OpenKind::ToolInput, 0, Some("Read"), "{"),
    ];
    log.save_open(&id, pieces.clone()).await.unwrap();
    let expected = [
        piece(OpenKind::Reasoning, 0, None, "h"),
        piece(OpenKind::Text, 0, None, "ab"),
        piece(OpenKind::ToolInput, 0, Some("Read"), "{"),
        piece(OpenKind::Text, 1, None, "c"),
    ];
    assert_eq!(log.take_open(&id).await.unwrap(), expected);
    assert_eq!(log.take_open(&id).await.unwrap(), expected, "it goes with the step, not before");

    let ends = [Event::step_done_for_tests("stop"), RunDone { result: RunResult::Error, exit_code: 1 }.into()];
    for (end, seq) in ends.into_iter().zip([1, 3]) {
        log.save_open(&id, pieces.clone()).await.unwrap();
        log.append(&id, seq, vec![event("kept")], Durability::Process).await.unwrap();
        log.append(&id, seq + 1, vec![Envelope::detached(0, end)], Durability::Process).await.unwrap();
        assert!(log.take_open(&id).await.unwrap().is_empty());
    }
    log.save_open(&id, pieces).await.unwrap();
    assert!(
        log.append(&id, 1, vec![Envelope::detached(0, Event::step_done_for_tests("stop"))], Durability::Process)
            .await
            .is_err()
    );
    assert!(!log.take_open(&id).await.unwrap().is_empty(), "a refused append drops nothing");
}

#[tokio::test]
async fn a_blob_is_kept_by_its_content_and_read_in_parts() {
    let (blobs, id) = (MemoryBlobs::default(), SessionId::from("s"));
    let kept = blobs.put(&id, "out-1", BlobSource::Bytes(b"0123456789".to_vec())).await.unwrap();
    assert_eq!((kept.bytes, kept.dropped, kept.name.as_deref()), (10, 0, Some("out-1")));
    assert_eq!(kept.hash, blake3::hash(b"0123456789").to_hex().to_string());
    let again = blobs.put(&id, "", BlobSource::Bytes(b"0123456789".to_vec())).await.unwrap();
    assert_eq!((again.hash, again.name), (kept.hash.clone(), None));
    for (offset, limit, part) in [(0, 4, "0123"), (8, 4, "89"), (10, 4, ""), (u64::MAX, u64::MAX, ""), (3, 0, "")] {
        assert_eq!(blobs.get(&kept.hash, offset, limit).await.unwrap(), part.as_bytes());
    }
    assert!(matches!(blobs.get("no", 0, 1).await, Err(LogError::Damaged(_))));
    let missing = BlobSource::File { path: "/nonexistent/file".into(), dropped: 0 };
    assert!(matches!(blobs.put(&id, "x", missing).await, Err(LogError::Io(_))));
}

#[test]
fn an_inbox_closes_only_when_empty_and_then_gives_messages_back() {
    let inbox = MemoryInbox::default();
    inbox.push(pending("p1", Delivery::Steer)).unwrap();
    inbox.push(pending("p2", Delivery::Interrupt)).unwrap();
    assert!(!inbox.close_if_empty());
    let waiting: Vec<_> = inbox.waiting().into_iter().map(|p| p.id).collect();
    assert_eq!(waiting, ["p1".into(), "p2".into()]);
    inbox.delivered(&"p1".into());
    inbox.delivered(&"nobody".into());
    assert!(!inbox.close_if_empty());
    // Not closed by the refusal: a message may still join.
    inbox.push(pending("p3", Delivery::Steer)).unwrap();
    inbox.delivered(&"p2".into());
    inbox.delivered(&"p3".into());
    assert!(inbox.close_if_empty());
    assert!(inbox.close_if_empty(), "closing again changes nothing");
    let back = inbox.push(pending("p4", Delivery::Steer)).unwrap_err();
    assert_eq!(back, pending("p4", Delivery::Steer));
    assert!(inbox.waiting().is_empty());
}

#[test]
fn a_queued_message_starts_a_new_run_and_never_holds_this_one_open() {
    let inbox = MemoryInbox::default();
    assert_eq!(inbox.push(pending("p1", Delivery::Queue)), Err(pending("p1", Delivery::Queue)));
    assert!(inbox.waiting().is_empty());
    assert!(inbox.close_if_empty());
}

#[test]
fn an_inbox_closed_whatever_waits_gives_back_what_waits() {
    let inbox = MemoryInbox::default();
    inbox.push(pending("p1", Delivery::Steer)).unwrap();
    inbox.push(pending("p2", Delivery::Interrupt)).unwrap();
    inbox.delivered(&"p1".into());
    assert_eq!(inbox.close(), [pending("p2", Delivery::Interrupt)]);
    assert!(inbox.close().is_empty() && inbox.close_if_empty());
    assert!(inbox.push(pending("p3", Delivery::Steer)).is_err());
}

#[test]
fn a_message_that_races_the_close_is_delivered_or_given_back_never_lost() {
    const SENDERS: usize = 4;
    const EACH: usize = 250;
    let inbox = MemoryInbox::default();
    let given_back = AtomicUsize::new(0);
    let mut delivered = 0;
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (inbox, given_back) = (&inbox, &given_back);
            scope.spawn(move || {
                for n in 0..EACH {
                    if inbox.push(pending(&format!("{sender}-{n}"), Delivery::Steer)).is_err() {
                        given_back.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        while !inbox.close_if_empty() {
            for message in inbox.waiting() {
                inbox.delivered(&message.id);
                delivered += 1;
            }
        }
    });
    assert!(inbox.waiting().is_empty());
    assert_eq!(delivered + given_back.load(Ordering::Relaxed), SENDERS * EACH);
}

#[test]
fn only_an_interrupt_wakes_the_step_and_one_sent_early_is_not_missed() {
    let inbox = MemoryInbox::default();
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = pin!(inbox.interrupt());
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
    inbox.push(pending("p1", Delivery::Steer)).unwrap();
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
    inbox.push(pending("p2", Delivery::Interrupt)).unwrap();
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));

    inbox.push(pending("p3", Delivery::Interrupt)).unwrap();
    assert_eq!(pin!(inbox.interrupt()).as_mut().poll(&mut context), Poll::Ready(()), "sent before anybody listened");
}

#[tokio::test]
async fn where_nobody_answers_the_answer_is_no() {
    let asked = ApprovalAsked {
        call_id: "c".into(),
        name: "Write".into(),
        label: Label::default(),
        reason: String::new(),
        input: serde_json::Value::Null,
        diff: None,
        digest: String::new(),
        grants: vec![],
    };
    assert_eq!(NobodyAnswers.decide(&asked).await, None);
    assert!(!NobodyAnswers.can_answer());
}

#[tokio::test]
async fn grants_are_kept_once_each() {
    let grants = MemoryGrants::default();
    let [host, tool] = [Grant::Host { host: "example.com".into() }, Grant::Tool { name: "Delete".into() }];
    grants.keep(&[host.clone(), tool.clone()]).await.unwrap();
    grants.keep(&[tool.clone(), host.clone()]).await.unwrap();
    assert_eq!(grants.all(), [host, tool]);
}

#[test]
fn ids_are_unique_and_sort_by_their_birth() {
    let ids: Vec<SessionId> = (0..1_000).map(|_| SessionId::generate()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
}

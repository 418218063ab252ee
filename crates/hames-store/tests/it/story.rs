//! A session with everything in it that a cut, a branch and an export have to think of.

use hames_protocol::*;
use hames_store::Store;

use crate::kit::*;

/// Content of output `n`: every other one is large enough to be a file.
pub(crate) fn content(n: u8) -> Vec<u8> {
    vec![n; if n.is_multiple_of(2) { 100_000 } else { 500 }]
}

pub(crate) fn put(store: &Store, id: &SessionId, n: u8) -> BlobRef {
    wait(store.blobs().put(id, &format!("out-{n}"), BlobSource::Bytes(content(n)))).unwrap()
}

fn in_run(turn: u32, step: Option<u32>, event: Event) -> Envelope {
    Envelope { run: Some(format!("r{turn}").as_str().into()), turn: Some(turn), step, ..Envelope::detached(0, event) }
}

pub(crate) fn named_call(call: &str) -> Event {
    Event::ToolCall(ToolCall {
        call_id: call.into(),
        provider_id: String::new(),
        name: "Shell".into(),
        arguments: "{}".into(),
        input: None,
        label: Label::new("Shell", call),
        declaration: None,
        extra: None,
    })
}

fn step_start(number: u32) -> Event {
    let start = serde_json::json!({
        "type": "step.start", "number": number, "fingerprint": "f", "bytes": 1, "changed_at": null, "changed_why": "x",
    });
    let event: Event = serde_json::from_value(start).unwrap();
    assert!(!event.is_damaged());
    event
}

fn result(call: &str, blob: Option<BlobRef>) -> Event {
    let Event::ToolDone(done) = tool_done(&format!("output of {call}")) else { panic!() };
    Event::ToolDone(ToolDone { call_id: call.into(), blob, ..done })
}

fn steer(text: &str) -> Event {
    let Event::MessageUser(message) = user(text) else { panic!() };
    Event::MessageUser(MessageUser { delivery: Some(Delivery::Steer), ..message })
}

pub(crate) fn proposed(path: &str, content: &BlobRef) -> Event {
    Event::ChangeProposed(ChangeProposed {
        call_id: "c".into(),
        path: path.into(),
        base: None,
        content: Some(content.clone()),
        mode: None,
        kind: ChangeKind::File,
        folders: vec![],
    })
}

/// Seqs of the messages: of run 1, the steer in it, of run 2, of run 3.
pub(crate) struct Story {
    pub(crate) id: SessionId,
    pub(crate) first: u64,
    pub(crate) steer: u64,
    pub(crate) second: u64,
    pub(crate) third: u64,
}

/// Three runs; outputs `out-1` to `out-4`, one more that no event names, settings, todos, a grant and a waiting message.
pub(crate) fn story(home: &Home) -> Story {
    let id = home.session("the story").id;
    let store = home.store();
    let blobs: Vec<BlobRef> = (1..=4).map(|n| put(store, &id, n)).collect();
    put(store, &id, 5);
    let proposal = wait(store.blobs().put(&id, "", BlobSource::Bytes(b"proposed".to_vec()))).unwrap();
    let later = wait(store.blobs().put(&id, "", BlobSource::Bytes(b"proposed later".to_vec()))).unwrap();
    let grant = Event::ApprovalAnswered(ApprovalAnswered {
        call_id: "b".into(),
        decision: Decision::Session,
        by: "user".into(),
        digest: "d".into(),
        grants: vec![Grant::Tool { name: "WebFetch".into() }],
        note: None,
    });
    let todo =
        Todo { id: "1".into(), content: "later".into(), status: TodoStatus::Pending, priority: TodoPriority::High };
    let settings = Settings { max_steps: Some(7), ..Settings::default() };
    let waiting = Pending {
        id: "p".into(),
        parts: vec![Part::text("then this")],
        delivery: Delivery::Queue,
        idempotency_id: None,
    };
    let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let end = |turn| in_run(turn, None, run_done());
    let events = vec![
        in_run(1, None, run_start("a/one", Mode::Analyze)),
        in_run(1, None, user("first words")),
        in_run(1, Some(1), step_start(1)),
        in_run(1, Some(1), named_call("a")),
        in_run(1, Some(1), step_done()),
        in_run(1, Some(1), result("a", Some(blobs[0].clone()))),
        in_run(1, Some(1), result("a2", Some(blobs[1].clone()))),
        in_run(1, Some(1), proposed("/w/early", &proposal)),
        in_run(1, Some(1), proposed("/w/early too", &proposal)),
        in_run(1, Some(1), proposed("/w/early and open", &proposal)),
        in_run(1, None, steer("a steer")),
        in_run(1, Some(2), step_start(2)),
        in_run(1, Some(2), answer("an answer")),
        in_run(1, Some(2), step_done()),
        end(1),
        in_run(2, None, run_start("a/two", Mode::Build)),
        in_run(2, None, user("second words")),
        in_run(2, Some(1), step_start(1)),
        in_run(2, Some(1), named_call("b")),
        in_run(2, Some(1), step_done()),
        in_run(2, Some(1), grant),
        in_run(2, Some(1), result("b", Some(blobs[2].clone()))),
        in_run(2, Some(1), TodoUpdated { todos: vec![todo] }.into()),
        in_run(2, Some(1), proposed("/w/late", &later)),
        end(2),
        Envelope::detached(0, SettingsChanged { settings, unset: vec![] }.into()),
        Envelope::detached(0, ChangesApplied { paths: paths(&["/w/early"]) }.into()),
        Envelope::detached(0, ChangesDiscarded { paths: paths(&["/w/early too", "/w/late"]) }.into()),
        in_run(3, None, run_start("a/three", Mode::Build)),
        in_run(3, None, user("third words")),
        in_run(3, Some(1), step_start(1)),
        in_run(3, Some(1), named_call("d")),
        in_run(3, Some(1), step_done()),
        in_run(3, Some(1), result("d", Some(blobs[3].clone()))),
        end(3),
        Envelope::detached(0, Event::PendingAdded(waiting)),
        Envelope::detached(0, SessionRenamed { name: "the renamed story".into() }.into()),
    ];
    let events: Vec<Envelope> =
        events.into_iter().zip(2..).map(|(event, at)| Envelope { at, session: Some(id.clone()), ..event }).collect();
    wait(home.log().append(&id, 2, events, Durability::Process)).unwrap();
    let log = home.read(&id);
    let of = |text: &str| texts(&log).iter().position(|found| found == text).map(|at| at as u64 + 1).unwrap();
    Story { first: of("first words"), steer: of("a steer"), second: of("second words"), third: of("third words"), id }
}

/// The state of a log, whatever gaps it has.
pub(crate) fn state(log: &[Envelope]) -> SessionState {
    let mut state = SessionState::default();
    log.iter().for_each(|envelope| state.apply(envelope));
    state
}

/// What a model would be sent of it.
pub(crate) fn items(log: &[Envelope]) -> Vec<Item> {
    let mut transcript = Transcript::default();
    log.iter().for_each(|envelope| transcript.apply(&envelope.event));
    assert!(transcript.open_calls().is_empty() && !transcript.has_open_answer(), "the log can be sent");
    transcript.items().iter().map(|item| item.as_ref().clone()).collect()
}

pub(crate) fn is_whole(log: &[Envelope]) -> bool {
    let mut end = closing::OpenEnd::default();
    log.iter().for_each(|envelope| end.apply(envelope));
    end.is_whole()
}

/// Which of `out-1` to `out-5` Recall would find, with its content.
pub(crate) fn outputs(store: &Store, id: &SessionId) -> Vec<u8> {
    let found = |n: &u8| match store.blob_named(id, &format!("out-{n}")).unwrap() {
        Some(blob) => {
            assert_eq!(wait(store.blobs().get(&blob.hash, 0, u64::MAX >> 1)).unwrap(), content(*n));
            true
        }
        None => false,
    };
    (1..=5).filter(found).collect()
}

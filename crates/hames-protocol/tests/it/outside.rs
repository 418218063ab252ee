//! What a cut, a branch and an import leave of a session, and the events that close an open end.

use hames_protocol::closing::OpenEnd;
use hames_protocol::*;

use crate::samples::*;

fn numbered(events: Vec<Event>) -> Vec<Envelope> {
    let at = |(event, seq)| Envelope {
        seq: Some(seq),
        run: Some("r".into()),
        turn: Some(1),
        ..Envelope::detached(seq, event)
    };
    events.into_iter().zip(1..).map(at).collect()
}

fn state(events: Vec<Event>) -> SessionState {
    let mut state = SessionState::default();
    numbered(events).iter().for_each(|envelope| state.apply(envelope));
    state
}

fn proposed(path: &str) -> Event {
    Event::ChangeProposed(ChangeProposed {
        call_id: "c".into(),
        path: path.into(),
        base: None,
        content: Some(blob()),
        mode: None,
        kind: ChangeKind::File,
        folders: vec![],
    })
}

fn applying(paths: &[&str]) -> Event {
    Event::ChangesApplyStarted(ChangePaths { paths: paths.iter().map(|path| (*path).to_owned()).collect() })
}

fn session_grant() -> Event {
    Event::ApprovalAnswered(ApprovalAnswered {
        call_id: "c".into(),
        decision: Decision::Session,
        by: "user".into(),
        digest: "d".into(),
        grants: vec![Grant::Tool { name: "WebFetch".into() }],
        note: None,
    })
}

/// What a session may hold when it is cut, branched or exported.
fn busy() -> Vec<Event> {
    vec![
        SessionCreated { name: "old".into(), folder: "/v".into(), settings: Settings::default() }.into(),
        session_grant(),
        Event::PendingAdded(pending("p1", Delivery::Queue)),
        ToolDone {
            files: vec![FileHash { path: "/v/a".into(), hash: "1".into() }],
            blob: Some(blob()),
            ..done("c0", "x")
        }
        .into(),
        proposed("/v/a"),
        proposed("/v/b"),
        proposed("/v/c"),
        applying(&["/v/a"]),
    ]
}

#[test]
fn a_cut_keeps_what_lives_outside_and_settles_what_was_settled() {
    let cut = SessionCut {
        from_seq: 9,
        removed: 3,
        outside: Some(Box::new(outside())),
        applied: vec!["/v/a".into(), "/v/never".into()],
        discarded: vec!["/v/b".into()],
    };
    let folded = state([busy(), vec![cut.into()]].concat());
    assert_eq!(folded.outside(), outside());
    assert_eq!(folded.proposals.keys().collect::<Vec<_>>(), ["/v/c"]);
    assert_eq!(folded.settled, Settled { applied: vec!["/v/a".into()], discarded: vec!["/v/b".into()] });
    assert!(folded.applying.is_empty());
    assert_eq!((folded.blobs, folded.files.len()), (18, 1), "names of outputs are not given twice");
    let bare = SessionCut { from_seq: 9, removed: 0, outside: None, applied: vec![], discarded: vec![] };
    assert_eq!(state([busy(), vec![bare.into()]].concat()).name, "old");
}

#[test]
fn a_branch_takes_proposals_and_neither_applies_nor_is_allowed_anything() {
    let begins = Outside { grants: vec![], pending: vec![], ..outside() };
    let branched = SessionBranched { from: "s0".into(), up_to_seq: 8, outside: Some(Box::new(begins.clone())) };
    let folded = state([busy(), vec![branched.into()]].concat());
    assert_eq!((folded.outside(), folded.proposals.len()), (begins, 3));
    assert!(folded.applying.is_empty());
}

#[test]
fn an_import_brings_words_and_no_power() {
    let here = Outside { grants: vec![], pending: vec![], paused: false, ..outside() };
    let imported = SessionImported { from: "s0".into(), outside: Some(Box::new(here.clone())) };
    let folded = state([busy(), vec![imported.into()]].concat());
    assert_eq!(folded.outside(), here);
    assert!(folded.proposals.is_empty() && folded.applying.is_empty() && folded.files.is_empty());
    let bare = SessionImported { from: "s0".into(), outside: None };
    let folded = state([busy(), vec![bare.into()]].concat());
    assert!(folded.grants.is_empty() && folded.pending.is_empty() && folded.applying.is_empty());
}

#[test]
fn whatever_a_log_leaves_open_is_closed_once() {
    let start = || Event::from(run_start());
    let step = || {
        Event::StepStart(StepStart {
            number: 1,
            fingerprint: "f".into(),
            bytes: 9,
            changed_at: None,
            changed_why: "first".into(),
            input_estimate: None,
        })
    };
    let step_done = || Event::step_done_for_tests("stop");
    let started = || Event::from(ToolStart { call_id: "c0".into(), name: "Read".into() });
    let text = || Event::from(TextDone { index: 0, text: "So".into(), cut: None });
    let cases: Vec<(Vec<Event>, &[&str])> = vec![
        (vec![], &[]),
        (vec![start()], &["done", "turn.done", "run.done"]),
        (vec![start(), user("go").into(), step()], &["step.done", "done", "turn.done", "run.done"]),
        (vec![start(), user("go").into(), step(), text()], &["step.done", "done", "turn.done", "run.done"]),
        (
            vec![start(), step(), call("c0").into(), call("c1").into()],
            &["step.done", "tool.error", "tool.error", "done", "turn.done", "run.done"],
        ),
        (
            vec![start(), step(), call("c0").into(), step_done(), started()],
            &["tool.error", "done", "turn.done", "run.done"],
        ),
        (
            vec![start(), step(), call("c0").into(), step_done(), done("c0", "x").into()],
            &["done", "turn.done", "run.done"],
        ),
        (vec![start(), RunDone { result: RunResult::Complete, exit_code: 0 }.into()], &[]),
        // A call whose run is over: its answer could not be read.
        (
            vec![start(), call("c0").into(), step_done(), RunDone { result: RunResult::Complete, exit_code: 0 }.into()],
            &["tool.error"],
        ),
    ];
    for (events, closing) in cases {
        let mut end = OpenEnd::default();
        let log = numbered(events);
        log.iter().for_each(|envelope| end.apply(envelope));
        let closed = end.close(&"s".into(), "cut", 99);
        let types: Vec<&str> = closed.iter().map(|e| e.event.type_name()).collect();
        assert_eq!(types, closing, "{log:?}");
        assert_eq!(end.is_whole(), closed.is_empty(), "{log:?}");
        closed.iter().for_each(|envelope| end.apply(envelope));
        assert!(end.is_whole(), "{log:?}");
        assert!(end.close(&"s".into(), "cut", 99).is_empty());
        if let Some(Event::Done(done)) = closed.iter().map(|e| &e.event).find(|e| matches!(e, Event::Done(_))) {
            assert_eq!((done.result, done.reason.as_deref()), (RunResult::Interrupted, Some("cut")));
        }
    }
}

//! What waits in a session: its row and its outline say what the whole log says, whatever happened.

use std::io::BufReader;

use hames_protocol::*;
use hames_store::SessionInfo;
use proptest::prelude::*;

use crate::kit::{Home, envelope, run_done, run_start, step_done, tool_done, user, wait};
use crate::story::story;

fn state(log: &[Envelope]) -> SessionState {
    let mut state = SessionState::default();
    log.iter().for_each(|envelope| state.apply(envelope));
    state
}

/// How the last run of the session itself ended, where none has begun since.
fn last_result(log: &[Envelope]) -> Option<RunResult> {
    log.iter().rev().filter(|envelope| envelope.agent.is_empty()).find_map(|envelope| match &envelope.event {
        Event::RunDone(done) => Some(Some(done.result)),
        Event::RunStart(_) => Some(None),
        _ => None,
    })?
}

/// What the row says is what the log says, and the outline is the state without what steps leave.
fn holds(home: &Home, id: &SessionId) -> SessionInfo {
    let (info, whole) = (home.store().session(id).unwrap().unwrap(), state(&home.read(id)));
    assert_eq!(info.pending as usize, whole.pending.len());
    assert_eq!(info.undecided, whole.undecided.is_some());
    assert_eq!(info.last_result, last_result(&home.read(id)));
    let listed = home.store().list(None).unwrap().into_iter().find(|listed| &listed.id == id);
    assert_eq!(listed.as_ref(), Some(&info));
    let outline = home.store().outline(id).unwrap().unwrap();
    let without = |state: SessionState| SessionState { files: Default::default(), blobs: 0, step: 0, ..state };
    assert_eq!(without(outline), without(whole));
    info
}

#[test]
fn cuts_branches_and_imports_leave_in_the_row_what_they_leave_in_the_log() {
    let home = Home::new();
    let story = story(&home);
    let before = holds(&home, &story.id);
    assert_eq!(before.pending, 1);
    let (branch, lease) = home.store().branch(&story.id, None, None, 9, "t").unwrap();
    assert_eq!(holds(&home, &branch.id).pending, 0);
    drop(lease);
    let mut exported = Vec::new();
    home.store().export_whole(&story.id, u64::MAX, &mut exported).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let imported = home.store().import(&mut BufReader::new(&exported[..]), folder.path(), None, 9, "t").unwrap();
    assert_eq!(holds(&home, &imported.session.id).pending, 0);
    let lease = home.store().lease(&story.id, "t").unwrap();
    home.store().cut(&lease, story.second, 9).unwrap();
    assert_eq!(holds(&home, &story.id).pending, 1);
    assert_eq!(home.store().outline(&"nobody".into()).unwrap(), None);
}

#[test]
fn a_database_from_before_the_rows_knew_is_brought_to_what_its_logs_say() {
    let mut home = Home::new();
    let story = story(&home);
    let lease = home.store().lease(&story.id, "t").unwrap();
    home.store().cut(&lease, story.third, 9).unwrap();
    let next = home.store().session(&story.id).unwrap().unwrap().last_seq + 1;
    let events = ["p-8", "p-9"].map(pending).into_iter();
    home.append(&story.id, next, events.chain([delivered("p-8")]).collect()).unwrap();
    assert_eq!(holds(&home, &story.id).pending, 2);
    drop(lease);
    home.close();
    home.sql()
        .execute_batch(
            "DROP INDEX rare; ALTER TABLE sessions DROP COLUMN pending; ALTER TABLE sessions DROP COLUMN asks;
             ALTER TABLE sessions DROP COLUMN ended;
             DELETE FROM migrations WHERE version > 4; PRAGMA user_version = 4;
             UPDATE events SET body = 'no JSON' WHERE type = 'nudge';
             INSERT INTO events (key, v, at, type, body) VALUES ((900 << 32) + 1, 1, 1, 'pending.added', '{\"id\":'),
               ((901 << 32) + 1, 1, 1, 'session.cut', '');",
        )
        .unwrap();
    home.reopen();
    assert_eq!(holds(&home, &story.id).pending, 2);
}

fn pending(id: &str) -> Event {
    let parts = vec![Part::text("later")];
    Event::PendingAdded(Pending { id: id.into(), parts, delivery: Delivery::Queue, idempotency_id: None })
}

fn delivered(id: &str) -> Event {
    let Event::MessageUser(message) = user("later") else { unreachable!() };
    Event::MessageUser(MessageUser { pending_id: Some(id.into()), ..message })
}

fn proposed(path: &str) -> Event {
    let call_id = "c".into();
    let (base, kind) = (Some("base".into()), ChangeKind::File);
    let change = ChangeProposed { call_id, path: path.into(), base, content: None, mode: None, kind, folders: vec![] };
    Event::ChangeProposed(change)
}

/// What may come in a log; what is proposed is so in a run.
fn some_events() -> impl Strategy<Value = (bool, Vec<Event>)> {
    let id = || prop::sample::select(vec!["p-1", "p-2", "p-3"]);
    let path = || prop::sample::select(vec!["/w/a", "/w/b"]);
    let paths = || path().prop_map(|path| vec![path.to_owned()]);
    let event = prop_oneof![
        id().prop_map(delivered),
        id().prop_map(|id| Event::PendingCancelled(PendingCancelled { id: id.into() })),
        path().prop_map(|path| Event::from(PendingPaused { paused: path == "/w/a" })),
        paths().prop_map(|paths| Event::ChangesApplied(ChangesApplied { paths })),
        paths().prop_map(|paths| Event::ChangesDiscarded(ChangesDiscarded { paths })),
        Just(Event::ChangesKept(ChangesKept { run: "r".into() })),
        Just(run_start("p/m", Mode::Analyze)),
        Just(run_done()),
        prop::sample::select(vec![RunResult::Error, RunResult::MaxSteps, RunResult::Stopped, RunResult::Interrupted])
            .prop_map(|result| Event::RunDone(RunDone { result, exit_code: 1 })),
        Just(step_done()),
        (1_u64..9).prop_map(|n| Event::CompactionDone(CompactionDone { tokens_before: 9, tokens_after: n })),
        Just(tool_done("words")),
    ];
    let events = prop_oneof![
        event.prop_map(|event| vec![event]),
        path().prop_map(|path| vec![run_start("p/m", Mode::Analyze), proposed(path)]),
    ];
    // A child has no runs of its own.
    (prop::bool::weighted(0.1), events).prop_map(|(child, events)| (child && events.len() == 1, events))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn the_row_follows_the_log(batches in prop::collection::vec(prop::collection::vec(some_events(), 1..5), 1..8)) {
        let home = Home::new();
        let id = home.session("one").id;
        // A message gets its id once.
        let adds = ["p-1", "p-2", "p-3"].map(pending);
        home.append(&id, 2, adds.to_vec()).unwrap();
        for batch in batches {
            let next = home.store().last_seq(&id).unwrap() + 1;
            let each = batch.into_iter().flat_map(|(child, events)| events.into_iter().map(move |event| (child, event)));
            let envelopes = each.zip(next..).map(|((of_a_child, event), seq)| Envelope {
                agent: if of_a_child { vec!["explore-1".into()] } else { vec![] },
                run: Some("r".into()),
                ..envelope(&id, seq, event)
            });
            wait(home.log().append(&id, next, envelopes.collect(), Durability::Process)).unwrap();
            holds(&home, &id);
        }
    }
}

//! Two processes: a session that another one writes is watched here, and taken once it is free.

use std::sync::Arc;
use std::time::Duration;

use hames_agent::{Nobody, Ports, Session, SystemClock, Watch};
use hames_protocol::api::*;
use hames_protocol::*;
use hames_server::HubOptions;
use hames_store::Store;

use crate::support::{Bed, hub_with, message, settle};

/// A session that somebody else has opened under its lease.
async fn foreign(bed: &Bed) -> (Store, hames_store::Lease, Session) {
    let store = Store::open(bed.home.path()).unwrap().store;
    let folder = bed.folder.path();
    let (info, lease) = store.create("theirs", folder, Settings::default(), 5, "hames run").unwrap();
    let ports = Ports { log: store.log(), clock: Arc::new(SystemClock) };
    (store, lease, Session::resume(ports, info.id).await.unwrap())
}

fn run_start() -> RunStart {
    RunStart {
        mode: Mode::Build,
        parallel: false,
        model: "test/model".parse().unwrap(),
        settings: Settings::default(),
        tools: vec![],
        instructions: vec![],
        skills: vec![],
    }
}

fn step_start(number: u32) -> Event {
    let fingerprint = number.to_string();
    StepStart { number, fingerprint, bytes: 0, changed_at: None, changed_why: "item".into(), input_estimate: None }
        .into()
}

#[tokio::test]
async fn a_session_of_another_process_is_followed_and_taken_when_it_is_free() {
    let bed = Bed::new().await;
    let (store, lease, session) = foreign(&bed).await;
    let id = session.id().clone();
    let mut client = bed.hub.attach(&id, Some(0)).await.unwrap();
    let seen = client.next().await.unwrap().unwrap();
    assert!(matches!(seen[0].envelope().event, Event::SessionCreated(_)));
    let row = bed.hub.view(&id).await.unwrap().row;
    assert_eq!(row.state, SessionActivity::Elsewhere);
    assert!(row.held_by.as_ref().unwrap().contains("hames run"), "{row:?}");
    for refused in [
        bed.hub.send(&id, message("go", Delivery::Queue)).await.err().unwrap(),
        bed.hub.rename(&id, RenameSession { name: "x".into() }).await.err().unwrap(),
        bed.hub.pause(&id, PausePending { paused: true }).await.err().unwrap(),
        bed.hub.abort(&id, Abort { scope: AbortScope::All, ..Abort::default() }).await.err().unwrap(),
        bed.hub.delete(&id).await.unwrap_err(),
    ] {
        assert_eq!(refused.code, ApiErrorCode::HeldElsewhere);
        assert!(refused.by.is_some());
    }
    let watch = Arc::new(Nobody) as Arc<dyn Watch>;
    for paused in [true, false, true] {
        session.journal().record(vec![PendingPaused { paused }.into()], &watch).await.unwrap();
        let seen = client.next().await.unwrap().unwrap();
        assert!(matches!(&seen[0].envelope().event, Event::PendingPaused(pause) if pause.paused == paused));
    }
    assert!(bed.hub.view(&id).await.unwrap().paused, "what another process wrote is shown");
    drop((session, lease, store));
    // It is free: the next thing that is asked for takes it.
    let sent = bed.hub.send(&id, message("mine now", Delivery::Queue)).await.unwrap();
    assert!(sent.starts_run);
    bed.hub.counts().wait_for(|counts| counts.runs == 0).await.unwrap();
    assert_eq!(bed.hub.view(&id).await.unwrap().row.held_by, None);
}

#[tokio::test]
async fn a_run_that_a_death_cut_is_closed_by_whoever_opens_the_session_and_its_queue_waits() {
    let bed = Bed::new().await;
    let (store, lease, session) = foreign(&bed).await;
    let id = session.id().clone();
    let at = |seq: u64, event: Event| Envelope {
        session: Some(id.clone()),
        run: Some("r-1".into()),
        turn: Some(1),
        ..Envelope::detached(seq, event)
    };
    let pending =
        Pending { id: "p-1".into(), parts: vec![Part::text("later")], delivery: Delivery::Steer, idempotency_id: None };
    let events = vec![at(2, run_start().into()), at(3, Event::PendingAdded(pending))];
    store.log().append(&id, 2, events, Durability::Process).await.unwrap();
    drop((session, lease, store));
    let mut client = bed.hub.attach(&id, Some(3)).await.unwrap();
    let view = bed.hub.view(&id).await.unwrap();
    assert_eq!((view.paused, view.pending.len(), view.pending[0].delivery), (true, 1, Delivery::Queue));
    assert_eq!(view.run, None);
    let mut kinds = Vec::new();
    while client.cursor() < view.row.last_seq {
        kinds.extend(client.next().await.unwrap().unwrap().iter().map(|n| n.envelope().event.type_name().to_owned()));
    }
    assert_eq!(kinds, ["done", "turn.done", "run.done", "pending.edited", "pending.paused"]);
}

#[tokio::test]
async fn a_session_that_nobody_needs_is_closed_and_its_lease_is_free() {
    let mut bed = Bed::new().await;
    let client = bed.hub.attach(&bed.id, None).await.unwrap();
    bed.restart().await;
    drop(client);
    let options = HubOptions { close_after: Duration::ZERO, ..HubOptions::default() };
    bed.hub = hub_with(bed.home.path(), &bed.host, options);
    let client = bed.hub.attach(&bed.id, None).await.unwrap();
    bed.send("go", Delivery::Queue).await;
    bed.quiet().await;
    settle().await;
    assert_eq!(bed.hub.counts().borrow().sessions, 1, "somebody watches");
    drop(client);
    bed.hub.counts().wait_for(|counts| counts.sessions == 0).await.unwrap();
    assert!(bed.hub.is_idle());
    drop(bed.hub.store().lease(&bed.id, "somebody else").unwrap());
    assert!(bed.hub.send(&bed.id, message("again", Delivery::Queue)).await.unwrap().starts_run);
}

#[tokio::test]
async fn a_run_that_another_process_began_before_anybody_looked_is_shown_with_what_it_does() {
    let bed = Bed::new().await;
    let (store, lease, session) = foreign(&bed).await;
    let id = session.id().clone();
    let at = |step: Option<u32>, event: Event| Envelope {
        session: Some(id.clone()),
        run: Some("r-1".into()),
        turn: Some(1),
        step,
        ..Envelope::detached(1, event)
    };
    let append = async |from: u64, events: Vec<Envelope>| {
        store.log().append(&id, from, events, Durability::Process).await.unwrap();
    };
    let call = |n: u32| ToolCall {
        call_id: format!("c-{n}").into(),
        provider_id: String::new(),
        name: "Shell".into(),
        arguments: "{}".into(),
        input: None,
        label: Label::new("Shell", &format!("make {n}")),
        declaration: Some(Declaration::new(Effect::Run, Vec::new())),
        extra: None,
    };
    let started = |n: u32| ToolStart { call_id: format!("c-{n}").into(), name: "Shell".into() };
    let done = |n: u32| ToolError {
        call_id: format!("c-{n}").into(),
        name: "Shell".into(),
        error: "no".into(),
        class: ToolErrorClass::Failed,
        blob: None,
        duration_ms: 1,
    };
    append(2, vec![at(None, run_start().into()), at(Some(1), step_start(1)), at(Some(1), call(1).into())]).await;
    // More than one page of the log lies between its beginning and whoever looks.
    let steps =
        (2..600).flat_map(|n| [at(Some(n), step_start(n)), at(Some(n), Event::step_done_for_tests("tool_calls"))]);
    append(5, vec![at(Some(1), started(1).into()), at(Some(1), done(1).into())]).await;
    append(7, steps.collect()).await;
    append(1203, vec![at(Some(600), step_start(600)), at(Some(600), call(2).into()), at(Some(600), started(2).into())])
        .await;

    let seen = bed.hub.view(&id).await.unwrap();
    let run = seen.run.unwrap();
    assert_eq!((run.run.as_str(), run.turn, run.step, run.doing.as_str()), ("r-1", 1, 600, "Shell make 2"));
    assert_eq!((run.finishing.len(), seen.row.state), (1, SessionActivity::Elsewhere));

    // It is followed from there on, to its end.
    let mut client = bed.hub.attach(&id, Some(1_205)).await.unwrap();
    append(1206, vec![at(Some(600), done(2).into()), at(Some(601), step_start(601))]).await;
    while client.cursor() < 1_207 {
        client.next().await.unwrap().unwrap();
    }
    let run = bed.hub.view(&id).await.unwrap().run.unwrap();
    assert_eq!((run.step, run.doing.as_str()), (601, "thinking"));
    append(1208, vec![at(None, RunDone { result: RunResult::Complete, exit_code: 0 }.into())]).await;
    while client.cursor() < 1_208 {
        client.next().await.unwrap().unwrap();
    }
    assert_eq!(bed.hub.view(&id).await.unwrap().run, None);
    drop(lease);
}

#[tokio::test]
async fn a_run_that_ended_elsewhere_before_anybody_looked_is_not_shown() {
    let bed = Bed::new().await;
    let (store, _lease, session) = foreign(&bed).await;
    let id = session.id().clone();
    let at = |event: Event| Envelope {
        session: Some(id.clone()),
        run: Some("r-1".into()),
        turn: Some(1),
        ..Envelope::detached(1, event)
    };
    assert_eq!(bed.hub.view(&id).await.unwrap().run, None, "there was none");
    let events = vec![at(run_start().into()), at(RunDone { result: RunResult::Complete, exit_code: 0 }.into())];
    store.log().append(&id, 2, events, Durability::Process).await.unwrap();
    bed.hub.stop(StopServer { force: true, when_idle: false }).await.unwrap();
    bed.hub.stopped().await;
    let hub = hub_with(bed.home.path(), &bed.host, HubOptions::default());
    assert_eq!(hub.view(&id).await.unwrap().run, None);
}

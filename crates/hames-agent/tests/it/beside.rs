//! What is recorded beside a run that goes on.

use std::sync::Arc;

use hames_agent::Watch;
use hames_protocol::{Delivery, Event, PendingPaused, RunResult, Settings, SettingsChanged};

use crate::support::{Gate, Hames, Reply, ended, hames, pending};

fn changed(max_steps: u32) -> Event {
    SettingsChanged { settings: Settings { max_steps: Some(max_steps), ..Settings::default() }, unset: vec![] }.into()
}

fn watch(hames: &Hames) -> Arc<dyn Watch> {
    Arc::new(hames.seen.clone())
}

#[tokio::test]
async fn what_a_person_decides_is_recorded_while_a_run_streams() {
    let gate = Gate::new();
    let mut hames = hames([Reply::text("One ").gate(&gate).then_text("two.")]).await;
    let (journal, watch) = (hames.session.journal(), watch(&hames));
    let beside = async {
        gate.reached().await;
        let first = journal.record(vec![changed(7), PendingPaused { paused: true }.into()], &watch).await.unwrap();
        let second = journal.record(vec![pending("p", Delivery::Queue).into()], &watch).await.unwrap();
        assert_eq!(journal.record(vec![], &watch).await.unwrap(), second);
        gate.open();
        (first, second)
    };
    let (end, (first, second)) = tokio::join!(hames.run("go"), beside);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(second, first + 1);
    let events = hames.log.events();
    let at = |seq: u64| events.iter().find(|e| e.seq == Some(seq)).unwrap();
    for seq in [first, second] {
        assert_eq!((&at(seq).run, at(seq).turn, at(seq).step), (&None, None, None), "it belongs to no run");
    }
    assert_eq!(hames.session.state().settings.max_steps, Some(7));
    assert!(hames.session.state().paused);
    let durable: Vec<u64> = hames.seen.all().iter().filter_map(|e| e.seq).collect();
    assert_eq!(durable, (1..=events.len() as u64).collect::<Vec<_>>(), "seen in the order of the log");
}

#[tokio::test]
async fn a_record_beside_a_run_that_fails_stops_nothing() {
    let gate = Gate::new();
    let mut hames = hames([Reply::text("One ").gate(&gate).then_text("two.")]).await;
    let (journal, watch, log) = (hames.session.journal(), watch(&hames), hames.log.clone());
    let beside = async {
        gate.reached().await;
        log.fail_at(log.appends());
        journal.record(vec![changed(7)], &watch).await.unwrap_err();
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), beside);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(hames.session.state().settings.max_steps, None);
    journal.record(vec![changed(8)], &watch).await.unwrap();
    assert_eq!(journal.state().settings.max_steps, Some(8));
}

#[tokio::test]
async fn the_failure_of_a_run_does_not_keep_a_person_from_deciding() {
    let mut hames = hames([Reply::text("One.")]).await;
    let (journal, watch) = (hames.session.journal(), watch(&hames));
    let steps = hames.log.appends() + 2;
    hames.log.fail_at(steps);
    let end = hames.run_unchecked("go").await;
    ended(&end, RunResult::Error, 4);
    let seq = journal.record(vec![changed(9)], &watch).await.unwrap();
    assert_eq!(hames.log.events().last().unwrap().seq, Some(seq));
}

//! Applying proposals that was cut: finished before anything else happens.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{
    BlobStore, ChangeKind, ChangePaths, ChangeProposed, ChangesApplied, Emit, Envelope, Event, Failure, SessionId,
    SessionState,
};
use hames_tools::{Finished, FsProvider, Preview};

use crate::support::{Reply, Setup};

/// Says of each path that it is applied, but for one that it leaves.
struct Finishes(Arc<Mutex<Vec<Vec<String>>>>);

#[async_trait]
impl Preview for Finishes {
    fn over(
        &self,
        base: Arc<dyn FsProvider>,
        _: Arc<Mutex<SessionState>>,
        _: Arc<dyn BlobStore>,
    ) -> Arc<dyn FsProvider> {
        base
    }
    async fn finish(
        &self,
        _: Arc<dyn FsProvider>,
        _: &SessionId,
        state: &SessionState,
        _: Arc<dyn BlobStore>,
        emit: &dyn Emit,
    ) -> Result<Finished, Failure> {
        self.0.lock().unwrap().push(state.applying.clone());
        let applied = vec!["/w/a".to_owned()];
        emit.record(vec![ChangesApplied { paths: applied.clone() }.into()]).await?;
        Ok(Finished { applied, left: vec![("/w/b".into(), "somebody changed it".into())] })
    }
    async fn settle(
        &self,
        _: Arc<dyn FsProvider>,
        _: &SessionId,
        _: &SessionState,
        _: Arc<dyn BlobStore>,
        _: &dyn Emit,
    ) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

/// A session that died while two proposals were being applied.
async fn cut() -> Vec<Envelope> {
    let mut hames = Setup::new([Reply::text("Done.")]).build().await;
    hames.run("go").await;
    let propose = |path: &str| ChangeProposed {
        call_id: "c".into(),
        path: path.into(),
        base: Some("h".into()),
        content: None,
        mode: None,
        kind: ChangeKind::File,
        folders: vec![],
    };
    let mut log = hames.log.events();
    let last = log.last().unwrap().clone();
    let started = Event::ChangesApplyStarted(ChangePaths { paths: vec!["/w/a".into(), "/w/b".into()] });
    for event in [propose("/w/a").into(), propose("/w/b").into(), started] {
        let seq = log.last().unwrap().seq.map(|seq| seq + 1);
        log.push(Envelope { seq, run: None, turn: None, step: None, event, ..last.clone() });
    }
    log
}

fn types(events: &[Envelope]) -> Vec<&str> {
    events.iter().map(|envelope| envelope.event.type_name()).collect()
}

#[tokio::test]
async fn a_run_begins_when_what_was_being_applied_is_finished() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = cut().await;
    let setup = Setup::new([Reply::text("Yes."), Reply::text("Yes.")]).preview(Finishes(asked.clone()));
    let mut hames = setup.build_from(&log, &[]).await;
    assert_eq!(types(&hames.log.events()).last(), Some(&"changes.apply_started"), "opening alone finishes nothing");
    let opened = hames.log.events().len();
    hames.run_unchecked("go on").await;
    assert_eq!(types(&hames.log.events())[opened..][..3], ["changes.applied", "run.start", "message.user"]);
    assert_eq!(*asked.lock().unwrap(), [["/w/a", "/w/b"]]);
    let open: Vec<String> = hames.session.state().open_changes().map(String::from).collect();
    assert_eq!(open, ["/w/b"], "what was left alone stays proposed");
    // Once is enough.
    hames.renew();
    hames.run_unchecked("and on").await;
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn whoever_asks_before_the_run_is_told_what_was_left() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut hames = Setup::new([]).preview(Finishes(asked.clone())).build_from(&cut().await, &[]).await;
    let watch = Arc::new(hames_agent::Nobody) as Arc<dyn hames_agent::Watch>;
    let finished = hames.session.finish_changes(&mut hames.agent, &watch).await.unwrap();
    assert_eq!(finished.left, [("/w/b".to_owned(), "somebody changed it".to_owned())]);
    let again = hames.session.finish_changes(&mut hames.agent, &watch).await.unwrap();
    assert_eq!((again, asked.lock().unwrap().len()), (Finished::default(), 1));
}

#[tokio::test]
async fn an_agent_without_previews_leaves_it_to_the_next() {
    let log = cut().await;
    let mut hames = Setup::new([Reply::text("Yes.")]).build_from(&log, &[]).await;
    hames.run_unchecked("go on").await;
    assert_eq!(hames.session.state().applying, ["/w/a", "/w/b"]);
}

#[tokio::test]
async fn what_a_person_decides_is_recorded_outside_any_run() {
    let mut hames = Setup::new([Reply::text("Yes."), Reply::text("Yes.")]).build().await;
    hames.run("go").await;
    let seen = Arc::new(hames.seen.clone());
    hames.session.emit(seen).record(vec![ChangesApplied { paths: vec![] }.into()]).await.unwrap();
    let last = hames.log.events().pop().unwrap();
    assert_eq!((last.event.type_name(), &last.run, last.turn, last.step), ("changes.applied", &None, None, None));
    assert_eq!(last.seq, Some(hames.session.state().seq));
    hames.renew();
    hames.run("go on").await;
}

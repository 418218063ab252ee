//! What a person decides: calls, and what becomes of proposals.

use hames_protocol::api::{
    AnswerApproval, AnswerQuestion, ApiErrorCode, Change, ChangePathsGiven, Changes, ChangesSettled, DecideProposals,
    ProposalsAsked, ProposalsDecision, RunTerms, SessionView, Waiting,
};
use hames_protocol::{
    CallId, ChangesKept, Delivery, Event, Mode, Part, Pending, PendingId, RunId, SessionState, Settings,
    SettingsChanged,
};
use hames_tools::FsProvider;
use hames_workspace::files::{ApplyError, Changes as Proposals, NotProposed, OpenChange, What, proposed_places};
use tokio::sync::oneshot;

use super::Actor;
use crate::desk::Given;
use crate::refusal::{Answer, failed, refuse};
use crate::view;

/// Who answered, where a client does not say.
const SOMEBODY: &str = "user";
/// What the run is told that makes the proposals.
const MAKE_THEM: &str = "Make the proposed changes now.";

impl Actor {
    /// What waits for a person.
    pub(crate) async fn waiting(&mut self) -> Answer<Waiting> {
        let state = self.state().await?;
        let (approvals, questions) = self.channel.glance(|glance| (glance.approvals.clone(), glance.questions.clone()));
        Ok(Waiting { approvals, questions, proposals: self.asked(&state) })
    }

    /// Answers about a call. What is given back says whether the answer came to hold.
    pub(crate) async fn answer_approval(
        &mut self,
        call: &CallId,
        answer: AnswerApproval,
    ) -> Answer<oneshot::Receiver<bool>> {
        self.journal().await?;
        self.channel.desk.answer(call, &answer.digest, Given::Decision(answer.decision), who(answer.by.as_deref()))
    }

    /// Answers a tool's question. What is given back says whether the answer came to hold.
    pub(crate) async fn answer_question(
        &mut self,
        call: &CallId,
        answer: AnswerQuestion,
    ) -> Answer<oneshot::Receiver<bool>> {
        self.journal().await?;
        if answer.answer.trim().is_empty() {
            return Err(refuse(ApiErrorCode::Invalid, "The answer is empty. Say something, or stop the run."));
        }
        let (text, digest) = (self.hub.host.mask(answer.answer), answer.digest.unwrap_or_default());
        self.channel.desk.answer(call, &digest, Given::Text(text), who(answer.by.as_deref()))
    }

    /// Decides about the proposals a run left. The first decision holds.
    pub(crate) async fn decide_proposals(&mut self, decide: DecideProposals) -> Answer<SessionView> {
        let state = self.journal().await?.state().clone();
        let Some(asked) = self.asked(&state) else {
            let text = "Nobody asks about proposals now: it was decided, or another run has begun.";
            return Err(refuse(ApiErrorCode::Answered, text));
        };
        if asked.run != decide.run {
            let text = "Another run has proposed changes since. Look at them before you decide.";
            return Err(refuse(ApiErrorCode::Stale, text));
        }
        match decide.decision {
            ProposalsDecision::Keep => self.keep(asked.run).await?,
            ProposalsDecision::Apply => {
                self.apply_changes(ChangePathsGiven { paths: Vec::new() }).await?;
            }
            ProposalsDecision::Discard => {
                self.discard_changes(ChangePathsGiven { paths: Vec::new() }).await?;
            }
            ProposalsDecision::Build => self.build(asked.run).await?,
        }
        self.view().await
    }

    /// What is asked about proposals: nothing while a run goes on, which may change them.
    pub(super) fn asked(&self, state: &SessionState) -> Option<ProposalsAsked> {
        self.run.is_none().then(|| view::asked(state)).flatten()
    }

    /// Nobody is asked about these proposals again.
    pub(super) async fn keep(&mut self, run: RunId) -> Answer<()> {
        self.record(vec![ChangesKept { run }.into()]).await.map(|_| ())
    }

    /// Goes on in Build: the mode changes, and a run makes what is proposed.
    async fn build(&mut self, run: RunId) -> Answer<()> {
        self.not_stopping()?;
        self.not_beside_a_run("going on in Build")?;
        let settings = Settings { mode: Some(Mode::Build), ..Settings::default() };
        let mut state = self.owned()?.state().clone();
        state.settings = state.settings.patched(&settings);
        // Where no run can begin, nothing has changed and the question stands.
        let prepared = self.prepare_as(state, RunTerms::default()).await?;
        let pending = Pending {
            id: PendingId::generate(),
            parts: vec![Part::text(MAKE_THEM)],
            delivery: Delivery::Queue,
            idempotency_id: None,
        };
        let changed = SettingsChanged { settings, unset: Vec::new() };
        self.record(vec![changed.into(), ChangesKept { run }.into(), Event::PendingAdded(pending.clone())]).await?;
        self.start(pending, prepared);
        Ok(())
    }

    fn proposals(&self, state: &SessionState) -> Answer<(Proposals, std::sync::Arc<dyn FsProvider>)> {
        let disk = self.hub.host.files(state.folder.as_ref()).map_err(failed)?;
        let blobs = self.hub.store.blobs();
        Ok((Proposals::new(self.id.clone(), std::sync::Arc::clone(&disk), blobs), disk))
    }

    /// The open proposals.
    pub(crate) async fn changes(&mut self) -> Answer<Changes> {
        let state = self.state().await?;
        if !state.has_proposals() {
            return Ok(Changes { changes: Vec::new() });
        }
        let (proposals, _) = self.proposals(&state)?;
        let open = proposals.open(&state, &[]).await.map_err(failed)?;
        Ok(Changes { changes: open.into_iter().map(shown).collect() })
    }

    /// Makes proposed changes: all that are meant, or none.
    pub(crate) async fn apply_changes(&mut self, given: ChangePathsGiven) -> Answer<ChangesSettled> {
        let watch = self.watch();
        let session = self.session("applying changes").await?;
        let (emit, state) = (session.emit(watch), session.state().clone());
        let (proposals, disk) = self.proposals(&state)?;
        // What a death cut in the middle is finished first.
        let finished = proposals.finish(&state, emit.as_ref()).await.map_err(failed)?;
        if !finished.left.is_empty() {
            return Ok(ChangesSettled { paths: finished.applied, left: finished.left });
        }
        let state = self.state().await?;
        let places = places(&given.paths, disk.as_ref(), &state)?;
        let applied = match proposals.apply(&state, &places, emit.as_ref()).await {
            Ok(applied) => applied,
            Err(ApplyError::Failed(failure)) => return Err(failed(failure)),
            Err(refused @ ApplyError::Refused(_)) => {
                let mut text = refused.to_string();
                if let ApplyError::Refused(wrong) = refused {
                    wrong
                        .iter()
                        .take(20)
                        .for_each(|wrong| text.push_str(&format!("\n{}: {}", wrong.path, wrong.reason)));
                }
                return Err(refuse(ApiErrorCode::Stale, text));
            }
        };
        let mut paths = finished.applied;
        paths.extend(applied.paths);
        Ok(ChangesSettled { paths, left: applied.failed.into_iter().map(|left| (left.path, left.reason)).collect() })
    }

    /// Drops proposed changes.
    pub(crate) async fn discard_changes(&mut self, given: ChangePathsGiven) -> Answer<ChangesSettled> {
        let watch = self.watch();
        let session = self.session("discarding changes").await?;
        let (emit, state) = (session.emit(watch), session.state().clone());
        let (proposals, disk) = self.proposals(&state)?;
        let places = places(&given.paths, disk.as_ref(), &state)?;
        let paths = proposals.discard(&state, &places, emit.as_ref()).await.map_err(failed)?;
        Ok(ChangesSettled { paths, left: Vec::new() })
    }
}

/// Who answers, for the record.
fn who(by: Option<&str>) -> &str {
    by.filter(|by| !by.trim().is_empty()).unwrap_or(SOMEBODY)
}

fn shown(change: OpenChange) -> Change {
    let kind = match (change.what, change.kind) {
        (What::Remove, _) => "remove",
        (_, hames_protocol::ChangeKind::Dir) => "folder",
        _ => "write",
    };
    Change {
        path: change.path,
        kind: kind.to_owned(),
        added: change.diff.as_ref().map_or(0, |diff| diff.added.into()),
        removed: change.diff.as_ref().map_or(0, |diff| diff.removed.into()),
        diff: change.diff.map(|diff| diff.text),
        conflict: change.mismatch,
    }
}

/// The absolute paths a person means.
fn places(paths: &[String], disk: &dyn FsProvider, state: &SessionState) -> Answer<Vec<String>> {
    let nothing = |why: NotProposed| refuse(ApiErrorCode::Invalid, format!("Nothing is proposed at {}.", why.0));
    proposed_places(paths, disk, state).map_err(nothing)
}

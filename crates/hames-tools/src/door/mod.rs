//! The door: the one way from a call a model asked for to a result.
//!
//! `admit` reads, mends and validates the arguments and lets the tool declare what the call does; it touches nothing.
//! `run` takes calls through policy, locks, approval, execution, masking and capping, each exactly once and for every
//! kind of tool, and answers every call with one `tool.done` or `tool.error`.
//!
//! What a call may do in Analyze beyond reading (proposing edits, commands proved to read) is decided where the
//! verdict is made, in [`policy`](crate::decide); the pipeline after it does not know the mode.

mod admit;
mod approve;
mod ask;
mod call;
mod emit;
mod execute;
mod keep;
mod print;
mod report;
mod scope;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hames_protocol::{
    Approver, BlobStore, CallId, Emit, Event, Failure, Grant, GrantKeeper, Mode, RawCall, SessionId, SessionState,
    ToolError, ToolErrorClass, ToolSpec,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    CallMemory, Finished, FsProvider, LockTable, PinRoom, Policy, Preview, Recall, Rule, Secrets, ShellProvider,
    ToolFailure, ToolSet,
};
pub use admit::Admitted;
use call::{Ended, Job, Origin};

/// What a door is made of.
pub struct DoorParts {
    /// The tools of the run.
    pub tools: ToolSet,
    /// Rules, and what was granted for the folder. What was granted for the session is in its state.
    pub policy: Policy,
    /// Files.
    pub fs: Arc<dyn FsProvider>,
    /// What edits run against in Analyze; without it they are refused there.
    pub preview: Option<Arc<dyn Preview>>,
    /// Commands.
    pub shell: Arc<dyn ShellProvider>,
    /// Blobs.
    pub blobs: Arc<dyn BlobStore>,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// Where grants for the folder are kept; without it they end with the door.
    pub grants: Option<Arc<dyn GrantKeeper>>,
    /// What no result may carry.
    pub secrets: Secrets,
    /// The locks of the process.
    pub locks: Arc<LockTable>,
    /// Tokens of the model's window: results are capped at a share of it.
    pub window_tokens: u64,
    /// Whether calls of one step may overlap at all.
    pub parallel_tools: bool,
}

/// What the calls of one step share.
#[derive(Clone)]
pub struct RunCx {
    /// The session.
    pub session: SessionId,
    /// The run's mode.
    pub mode: Mode,
    /// Where events go.
    pub emit: Arc<dyn Emit>,
    /// The fold of the session, kept current by the run.
    pub state: Arc<Mutex<SessionState>>,
    /// Ends everything: what has not started does not start, what runs is cancelled.
    pub abort: CancellationToken,
    /// A message wants in: what has not started does not start, reads are cancelled, the rest finishes.
    pub interrupt: CancellationToken,
    /// What the run remembers of its calls; without it every call runs.
    pub memory: Option<Arc<dyn CallMemory>>,
    /// What the model may pin.
    pub pins: PinRoom,
}

/// The door of a run.
pub struct Door {
    parts: Arc<Parts>,
}

/// [`DoorParts`] in use.
struct Parts {
    tools: ToolSet,
    rules: Vec<Rule>,
    /// What was granted for the folder, before this door and through it.
    folder_grants: Mutex<Vec<Grant>>,
    fs: Arc<dyn FsProvider>,
    preview: Option<Arc<dyn Preview>>,
    shell: Arc<dyn ShellProvider>,
    blobs: Arc<dyn BlobStore>,
    approver: Arc<dyn Approver>,
    grants: Option<Arc<dyn GrantKeeper>>,
    /// Held while somebody is asked: one question at a time, and what it grants counts for the next.
    asking: tokio::sync::Mutex<()>,
    secrets: Arc<Secrets>,
    locks: Arc<LockTable>,
    window_tokens: u64,
    parallel_tools: bool,
}

impl Parts {
    fn folder_grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.folder_grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything a person allowed that holds for a call now.
    fn grants_in_force(&self, cx: &RunCx) -> Vec<Grant> {
        let mut all = self.folder_grants().clone();
        let state = cx.state.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(state.grants.iter().cloned());
        all
    }

    /// The files that calls of this run see: in Analyze with the proposals over them.
    fn fs_for(&self, cx: &RunCx) -> Arc<dyn FsProvider> {
        match (&self.preview, cx.mode) {
            (Some(preview), Mode::Analyze) => preview.over(self.fs.clone(), cx.state.clone(), self.blobs.clone()),
            _ => self.fs.clone(),
        }
    }
}

impl Door {
    /// A door of these parts.
    pub fn new(parts: DoorParts) -> Self {
        let DoorParts {
            tools,
            policy,
            fs,
            preview,
            shell,
            blobs,
            approver,
            grants,
            secrets,
            locks,
            window_tokens,
            parallel_tools,
        } = parts;
        let parts = Parts {
            tools,
            rules: policy.rules,
            folder_grants: Mutex::new(policy.grants),
            fs,
            preview,
            shell,
            blobs,
            approver,
            grants,
            asking: tokio::sync::Mutex::default(),
            secrets: Arc::new(secrets),
            locks,
            window_tokens,
            parallel_tools,
        };
        Self { parts: Arc::new(parts) }
    }

    /// What is advertised, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.parts.tools.specs()
    }

    /// Reads, mends and validates a call and lets its tool declare it. No I/O and no effect; a call that cannot run is
    /// admitted too, and answered by [`run`](Self::run).
    pub fn admit(&self, raw: RawCall) -> Admitted {
        admit::admit(&self.parts.tools, raw)
    }

    /// Takes the calls of one step through the door and answers each of them exactly once, in whatever order they end.
    /// Fails only where an event could not be recorded; then nothing more is started.
    ///
    /// Dropping the future cancels the tools that run.
    pub async fn run(&self, calls: Vec<Admitted>, cx: RunCx) -> Result<(), Failure> {
        // Fires on abort, on a failed record, and when this future is dropped.
        let halt = cx.abort.child_token();
        let _halt_when_dropped = halt.clone().drop_guard();
        let cx = RunCx { abort: halt.clone(), ..cx };
        let names = self.parts.locks.output_names(&cx.session);
        let Started { mut tasks, mut origins, known, mut shared } = self.start(calls, &cx).await;

        let mut outcome = if known.is_empty() { Ok(()) } else { cx.emit.record(known).await };
        if outcome.is_err() {
            halt.cancel();
        }
        while let Some(joined) = tasks.join_next_with_id().await {
            let id = joined.as_ref().map_or_else(tokio::task::JoinError::id, |(id, _)| *id);
            let Some(origin) = origins.remove(&id) else { continue };
            if outcome.is_err() {
                continue;
            }
            let ended = match joined {
                Ok((_, ended)) => ended,
                Err(crash) => Ok(Ended::failed(call::crashed(&origin.name, &crash.to_string()))),
            };
            let share = shared.remove(&origin.call_id).unwrap_or_default();
            outcome = match ended {
                Ok(ended) => report::report(&self.parts, &cx, &names, origin, ended, &share).await,
                Err(failure) => Err(failure),
            };
            if outcome.is_err() {
                halt.cancel();
            }
        }
        outcome
    }

    /// Starts every call that has to run, taking tickets in call order.
    async fn start(&self, calls: Vec<Admitted>, cx: &RunCx) -> Started {
        let batch = self.parts.locks.batch();
        let fs = self.parts.fs_for(cx);
        let scopes = scope::resolve(&fs, &calls).await;
        let prints = print::prints(&fs, &calls, &scopes, cx.memory.as_ref()).await;
        let mut started = Started::default();
        for ((call, scope), print) in calls.into_iter().zip(scopes).zip(prints) {
            let origin = Origin::of(&call);
            let job = Job::new(self.parts.clone(), fs.clone(), cx.clone(), call, scope, print, batch);
            match job.recalled() {
                Recall::Run => {
                    started.origins.insert(started.tasks.spawn(job.carry_out()).id(), origin);
                }
                Recall::Answer(event) => started.known.push(*event),
                Recall::Share(first) => started.shared.entry(first).or_default().push(origin),
            }
        }
        started
    }

    /// Finishes forward what was being applied when its process died. Does nothing where nothing is under way, or where
    /// this door has nothing that could.
    pub async fn finish_changes(
        &self,
        session: &SessionId,
        state: &SessionState,
        emit: &dyn Emit,
    ) -> Result<Finished, Failure> {
        let Parts { preview, fs, blobs, .. } = self.parts.as_ref();
        match preview {
            Some(preview) if !state.applying.is_empty() => {
                preview.finish(fs.clone(), session, state, blobs.clone(), emit).await
            }
            _ => Ok(Finished::default()),
        }
    }

    /// Settles the proposals that the disk is already as they have it. Gives their paths; none where this door proposes
    /// nothing.
    pub async fn settle_changes(
        &self,
        session: &SessionId,
        state: &SessionState,
        emit: &dyn Emit,
    ) -> Result<Vec<String>, Failure> {
        let Parts { preview, fs, blobs, .. } = self.parts.as_ref();
        match preview {
            Some(preview) if state.has_proposals() => {
                preview.settle(fs.clone(), session, state, blobs.clone(), emit).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Answers every call with the same error, without running any: the step was cut, or its output limit was hit.
    pub async fn refuse(
        &self,
        calls: Vec<Admitted>,
        class: ToolErrorClass,
        text: &str,
        emit: &dyn Emit,
    ) -> Result<(), Failure> {
        if calls.is_empty() {
            return Ok(());
        }
        let answers = calls.iter().map(|call| {
            let Origin { call_id, name, .. } = Origin::of(call);
            Event::ToolError(ToolError { call_id, name, error: text.to_owned(), class, blob: None, duration_ms: 0 })
        });
        emit.record(answers.collect()).await
    }
}

/// The calls of a step on their way.
#[derive(Default)]
struct Started {
    tasks: JoinSet<Result<Ended, Failure>>,
    origins: HashMap<tokio::task::Id, Origin>,
    /// Answers that are known without running anything.
    known: Vec<Event>,
    /// Calls that get what another one gets, by that one.
    shared: HashMap<CallId, Vec<Origin>>,
}

/// Why a call goes no further: it has its answer, or the run has failed.
enum Stop {
    Answer(ToolFailure),
    Fail(Failure),
}

impl From<ToolFailure> for Stop {
    fn from(failure: ToolFailure) -> Self {
        Stop::Answer(failure)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Fail(failure)
    }
}

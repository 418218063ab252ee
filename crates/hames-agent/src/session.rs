//! A session: its log replayed, its runs recorded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use hames_context::Moment;
use hames_protocol::{
    CompactionDone, Delivery, Durability, ENVELOPE_VERSION, Emit, Envelope, ErrorClass, Event, EventLog, Failure,
    Inbox, InstructionFile, Item, MemoryInbox, MessageUser, Mode, NamedHash, Part, PendingId, PinAdded, PinRemoved,
    PinTarget, PinnedBy, RunId, RunResult, RunStart, SessionCreated, SessionId, SessionState, Settings,
    SettingsChanged, WindowPreview, WindowReport, WindowState, closing,
};
use hames_tools::{Door, Finished};
use tokio_util::sync::CancellationToken;

use crate::compaction::Planned;
use crate::frozen;
use crate::guard::SharedGuard;
use crate::journal::{Journal, locked};
use crate::recorder::Recorder;
use crate::run_loop::{LoopCx, says_something};
use crate::{Agent, Clock, Nobody, RunEnd, Watch};

/// What a session stands on.
#[derive(Clone)]
pub struct Ports {
    /// The log.
    pub log: Arc<dyn EventLog>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// What starts a run.
#[derive(Clone, Debug, Default)]
pub struct RunInput {
    /// What the user says.
    pub parts: Vec<Part>,
    /// What Hames adds: mode, folder, date.
    pub note: Option<String>,
    /// The sender's own id.
    pub idempotency_id: Option<String>,
    /// The message that waited until now, where it did.
    pub pending_id: Option<PendingId>,
    /// How it was to be delivered, where it waited for a run that is over.
    pub delivery: Option<Delivery>,
    /// The mode, frozen for the run.
    pub mode: Mode,
    /// The settings in force, for the record.
    pub settings: Settings,
    /// The instruction files in the head, for the record.
    pub instructions: Vec<InstructionFile>,
}

/// How a run is steered from outside.
#[derive(Clone)]
pub struct RunControl {
    /// Firing it ends the run: every open call gets an answer.
    pub abort: CancellationToken,
    /// Messages that arrive meanwhile.
    pub inbox: Arc<dyn Inbox>,
    /// What a command exits with when `abort` ended its run; set before `abort` fires. 130 where nobody says otherwise.
    pub aborted_code: Arc<AtomicI32>,
}

impl Default for RunControl {
    fn default() -> Self {
        Self {
            abort: CancellationToken::new(),
            inbox: Arc::new(MemoryInbox::default()),
            aborted_code: Arc::new(AtomicI32::new(closing::INTERRUPTED_CODE)),
        }
    }
}

/// A conversation with its log.
pub struct Session {
    journal: Arc<Journal>,
    /// Files a death left in the middle of a change.
    cut_changes: Mutex<Vec<PathBuf>>,
}

impl Session {
    /// A new session in a log that does not know it yet.
    pub async fn create(ports: Ports, id: SessionId, created: SessionCreated) -> Result<Self, Failure> {
        let envelope = Envelope {
            v: ENVELOPE_VERSION,
            seq: None,
            at: ports.clock.now_ms(),
            session: Some(id.clone()),
            run: None,
            turn: None,
            step: None,
            agent: Vec::new(),
            event: Event::SessionCreated(created),
        };
        ports.log.append(&id, 1, vec![envelope], Durability::Process).await?;
        Self::resume(ports, id).await
    }

    /// An existing session, its log replayed; what a death left open is closed first.
    pub async fn resume(ports: Ports, id: SessionId) -> Result<Self, Failure> {
        let session = Self { journal: Arc::new(Journal::new(id, ports)), cut_changes: Mutex::default() };
        session.journal.replay().await?;
        session.recover(&(Arc::new(Nobody) as Arc<dyn Watch>)).await?;
        Ok(session)
    }

    /// A session to look at: its log replayed, and nothing of what a death left open closed. For nothing that writes.
    pub async fn look(ports: Ports, id: SessionId) -> Result<Self, Failure> {
        let session = Self { journal: Arc::new(Journal::new(id, ports)), cut_changes: Mutex::default() };
        session.journal.replay().await?;
        Ok(session)
    }

    /// The id.
    pub fn id(&self) -> &SessionId {
        self.journal.session()
    }

    /// The journal, for whoever records beside the runs of this session.
    pub fn journal(&self) -> Arc<Journal> {
        Arc::clone(&self.journal)
    }

    /// Name, folder, settings, todos and the rest, for a moment; never across an await.
    pub fn state(&self) -> MutexGuard<'_, SessionState> {
        self.journal.state()
    }

    /// The conversation so far.
    pub fn items(&self) -> Vec<Arc<Item>> {
        self.journal.items()
    }

    /// The files that were about to change when a death cut the run before, where this value closed it. Each is as it
    /// was or as it was meant to be; something staged may lie beside it.
    pub fn cut_changes(&self) -> Vec<PathBuf> {
        locked(&self.cut_changes).clone()
    }

    fn recorder(&self, watch: Arc<dyn Watch>) -> Recorder {
        Recorder::new(self.journal(), watch)
    }

    /// Closes what a death left open: the step, its calls, the run.
    async fn recover(&self, watch: &Arc<dyn Watch>) -> Result<(), Failure> {
        let (open_run, turn, step) = {
            let state = self.state();
            (state.open_run.clone(), state.turn, state.step)
        };
        let (open_calls, is_recorded) = {
            let transcript = locked(&self.journal.folds.transcript);
            (transcript.open_calls().to_vec(), transcript.has_open_answer())
        };
        let mut tally = locked(&self.journal.folds.tally).clone();
        locked(&self.cut_changes).extend(tally.changing.iter().map(|(_, path)| PathBuf::from(path)));
        let recorder = self.recorder(Arc::clone(watch));
        let mut events = Vec::new();
        if open_run.is_some() {
            // Blocks in the log are whole; what is kept beside it can only be less.
            let kept = self.journal.log().take_open(self.id()).await?;
            if tally.in_step {
                events.extend(closing::close_step(if is_recorded { Vec::new() } else { kept }));
            }
        }
        // Without an open run these are calls whose result cannot be read any more.
        events.extend(open_calls.iter().map(closing::close_call));
        if let Some(run) = open_run {
            recorder.enter_run(run, turn, (step > 0).then_some(step));
            tally.errors += u32::try_from(open_calls.len()).unwrap_or(u32::MAX);
            events.extend(RunEnd::because(RunResult::Interrupted, "crash").events(&tally, tally.last));
        }
        recorder.record(events).await
    }

    /// Records what belongs to no run: what a person decides about the session. Once it could not record something it
    /// takes nothing more.
    pub fn emit(&self, watch: Arc<dyn Watch>) -> Arc<dyn Emit> {
        Arc::new(self.recorder(watch))
    }

    /// Finishes forward what was being applied to the files when its process died; [`run`](Self::run) begins with it.
    /// Says what could not be finished, once.
    pub async fn finish_changes(&self, agent: &mut Agent, watch: &Arc<dyn Watch>) -> Result<Finished, Failure> {
        let state = self.state().clone();
        if state.applying.is_empty() {
            return Ok(Finished::default());
        }
        agent.door.finish_changes(self.id(), &state, &self.recorder(Arc::clone(watch))).await
    }

    /// Shows the session's first event to the first who watches.
    async fn introduce(&self, watch: &Arc<dyn Watch>) {
        let created = locked(&self.journal.unseen).take();
        if let Some(created) = created {
            watch.see(&[created]).await;
        }
    }

    /// Records changed settings; what is the same already is not recorded again.
    pub async fn change_settings(&self, changed: SettingsChanged, watch: Arc<dyn Watch>) -> Result<(), Failure> {
        let before = self.state().settings.clone();
        if before.without(&changed.unset).patched(&changed.settings) == before {
            return Ok(());
        }
        self.introduce(&watch).await;
        self.recorder(watch).record(vec![Event::SettingsChanged(changed)]).await
    }

    /// Runs the agent on one input, to its end. Every event is in the log before `watch` sees it; the last is
    /// `run.done`, also where the log itself failed (then it is only shown).
    pub async fn run(
        &mut self,
        agent: &mut Agent,
        input: RunInput,
        control: &RunControl,
        watch: Arc<dyn Watch>,
    ) -> RunEnd {
        self.introduce(&watch).await;
        let ready = match says_something(&input.parts, None) {
            true => self.make_ready(agent, &watch).await,
            false => Err(Failure::new(ErrorClass::Usage, "The message is empty. Say what is to be done.")),
        };
        let recorder = Arc::new(self.recorder(watch));
        let _ends = recorder.ends_when_dropped();
        recorder.enter_run(RunId::generate(), self.state().turn + 1, None);
        let ended = match ready {
            Ok(()) => self.recorded_run(agent, input, control, &recorder).await,
            Err(failure) => Err(failure),
        };
        match ended {
            Ok(end) => end,
            Err(failure) => unrecorded_end(&recorder, failure).await,
        }
    }

    /// Compacts by hand: outside of a run, by the agent's own policy. `None` where nothing would be gained. A person who
    /// aborts it leaves the session as it was.
    pub async fn compact(
        &mut self,
        agent: &mut Agent,
        control: &RunControl,
        watch: Arc<dyn Watch>,
    ) -> Result<Option<CompactionDone>, Failure> {
        self.introduce(&watch).await;
        self.make_ready(agent, &watch).await?;
        self.take_up(agent).await;
        agent.recall_limit(&self.journal.folds);
        let recorder = Arc::new(self.recorder(watch));
        let _ends = recorder.ends_when_dropped();
        let before = self.window().revision;
        let cx = self.loop_cx(agent, Mode::default(), control, &recorder);
        match agent.plan(&cx, Moment::Manual).await? {
            Planned::Refused(failure) => Err(failure),
            Planned::Cut => {
                Err(Failure::new(ErrorClass::Interrupted, "The compaction was stopped; nothing has changed."))
            }
            Planned::Ready(_) | Planned::Nothing => {
                let window = self.window();
                Ok(window.last_compaction.clone().filter(|_| window.revision != before))
            }
        }
    }

    /// What [`compact`](Self::compact) would do now. Asks no model and changes nothing.
    pub fn preview_compaction(&self, agent: &mut Agent) -> WindowPreview {
        agent.recall_limit(&self.journal.folds);
        agent.preview(&self.journal.folds)
    }

    /// What was decided about the window so far, for a moment; never across an await.
    pub fn window(&self) -> MutexGuard<'_, WindowState> {
        locked(&self.journal.folds.window)
    }

    /// What the next request would carry, what was left out of it, and why.
    pub fn report(&self, agent: &mut Agent) -> WindowReport {
        agent.recall_limit(&self.journal.folds);
        agent.report(&self.journal.folds)
    }

    /// Keeps something in the window whatever leaves it, within the share that pins may have. Gives the pin's name, for
    /// [`unpin`](Self::unpin).
    pub async fn pin(
        &self,
        agent: &mut Agent,
        target: PinTarget,
        by: PinnedBy,
        watch: Arc<dyn Watch>,
    ) -> Result<u64, Failure> {
        agent
            .check_pin(&self.journal.folds, &target)
            .map_err(|refused| Failure::new(ErrorClass::Usage, refused.to_string()))?;
        self.introduce(&watch).await;
        self.recorder(watch).record(vec![Event::PinAdded(PinAdded { target, by })]).await?;
        Ok(self.state().seq)
    }

    /// Takes a pin away. Whether there was one of that name.
    pub async fn unpin(&self, pin: u64, watch: Arc<dyn Watch>) -> Result<bool, Failure> {
        if self.window().pins.iter().all(|known| known.seq != pin) {
            return Ok(false);
        }
        self.recorder(watch).record(vec![Event::PinRemoved(PinRemoved { pin })]).await?;
        Ok(true)
    }

    /// Gives the agent the head that the session has had so far, as the next run would: for looking at its window with
    /// [`report`](Self::report) and [`preview_compaction`](Self::preview_compaction). Keeps and records nothing.
    pub async fn take_up(&self, agent: &mut Agent) {
        let checkpoint = self.window().checkpoint_seq;
        let model = agent.model_info().model.clone();
        let known = frozen::known_head(agent.door.blobs().as_ref(), self.id(), &model, checkpoint, &agent.head).await;
        if let Some(head) = known {
            agent.set_head(head);
        }
    }

    /// Gives the agent the head that the session has had so far, and tells of instruction files that have changed since.
    async fn keep_head(&self, agent: &mut Agent, input: RunInput) -> RunInput {
        let before = self.state().instructions.clone();
        let checkpoint = self.window().checkpoint_seq;
        let model = agent.model_info().model.clone();
        let head = frozen::head_of(agent.door.blobs().as_ref(), self.id(), &model, checkpoint, &agent.head).await;
        if Arc::ptr_eq(&head, &agent.head) {
            return input;
        }
        let told = frozen::changed_instructions(&before, &input.instructions, &agent.head.system);
        agent.set_head(head);
        let note = [input.note, told].into_iter().flatten().reduce(|note, told| format!("{note}\n{told}"));
        RunInput { note, ..input }
    }

    fn loop_cx(&self, agent: &Agent, mode: Mode, control: &RunControl, recorder: &Arc<Recorder>) -> LoopCx {
        let guard = SharedGuard::new(&agent.guard);
        LoopCx {
            session: self.id().clone(),
            door: Arc::clone(&agent.door),
            mode,
            folds: Arc::clone(&self.journal.folds),
            emit: guard.hearing(Arc::clone(recorder) as Arc<dyn Emit>),
            guard,
            inbox: Arc::clone(&control.inbox),
            abort: control.abort.clone(),
        }
    }

    /// A run of this value that did not come to its end (its future was dropped, or the log failed) is closed first, and
    /// what was being applied is finished.
    async fn make_ready(&self, agent: &mut Agent, watch: &Arc<dyn Watch>) -> Result<(), Failure> {
        if self.state().open_run.is_some() {
            self.journal.replay().await?;
            self.recover(watch).await?;
        }
        self.finish_changes(agent, watch).await.map(|_| ())
    }

    async fn recorded_run(
        &self,
        agent: &mut Agent,
        input: RunInput,
        control: &RunControl,
        recorder: &Arc<Recorder>,
    ) -> Result<RunEnd, Failure> {
        let mode = input.mode;
        let input = self.keep_head(agent, input).await;
        agent.recall_limit(&self.journal.folds);
        recorder.record(opening_events(agent, input)).await?;
        let cx = self.loop_cx(agent, mode, control, recorder);
        let mut end = agent.run_loop(&cx).await?;
        if mode == Mode::Build {
            self.settle_made(&cx.door, recorder).await?;
        }
        if end.result == RunResult::Interrupted {
            end.exit_code = control.aborted_code.load(Ordering::SeqCst);
        }
        let tally = locked(&self.journal.folds.tally).clone();
        recorder.record(end.events(&tally, self.journal.clock().now_ms())).await?;
        Ok(end)
    }

    /// What a run made just as it had been proposed is proposed no more.
    async fn settle_made(&self, door: &Door, recorder: &Recorder) -> Result<(), Failure> {
        if !self.state().has_proposals() {
            return Ok(());
        }
        let state = self.state().clone();
        door.settle_changes(self.id(), &state, recorder).await.map(drop)
    }
}

fn opening_events(agent: &Agent, input: RunInput) -> Vec<Event> {
    let hash = |text: String| blake3::hash(text.as_bytes()).to_hex().to_string();
    let tools = agent.head.tools.iter().map(|tool| NamedHash {
        name: tool.name.clone(),
        hash: hash(format!("{}\n{}", tool.description, tool.parameters)),
    });
    let start = RunStart {
        mode: input.mode,
        parallel: false,
        model: agent.model_info().model.clone(),
        settings: input.settings,
        tools: tools.collect(),
        instructions: input.instructions,
        skills: Vec::new(),
    };
    let message = MessageUser {
        parts: input.parts,
        delivery: input.delivery,
        pending_id: input.pending_id,
        idempotency_id: input.idempotency_id,
        note: input.note,
    };
    vec![Event::RunStart(start), Event::MessageUser(message)]
}

/// The log failed: nothing more may happen, but whoever watches must learn how it ended.
async fn unrecorded_end(recorder: &Recorder, failure: Failure) -> RunEnd {
    let end = RunEnd::failed(failure.clone());
    recorder.announce(vec![Event::Error(failure), end.run_done()]).await;
    end
}

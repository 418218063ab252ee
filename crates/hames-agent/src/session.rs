//! A session: its log replayed, its runs recorded.

use std::sync::{Arc, MutexGuard};

use hames_protocol::{
    Durability, ENVELOPE_VERSION, Emit, Envelope, ErrorClass, Event, EventLog, Failure, Inbox, InstructionFile, Item,
    MemoryInbox, MessageUser, Mode, NamedHash, Part, RunDone, RunId, RunResult, RunStart, SessionCreated, SessionId,
    SessionState, Settings, SettingsChanged, TurnDone,
};
use tokio_util::sync::CancellationToken;

use crate::recorder::{Folds, Recorder, locked};
use crate::run_loop::{LoopCx, LoopEnd, Tally, done_event, exit_code};
use crate::{Agent, Clock, Watch, recovery};

/// Events read at once while a log is replayed.
const REPLAY_PAGE: usize = 1_000;

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
}

impl Default for RunControl {
    fn default() -> Self {
        Self { abort: CancellationToken::new(), inbox: Arc::new(MemoryInbox::default()) }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// The result.
    pub result: RunResult,
    /// Why, where the result alone does not say.
    pub reason: Option<String>,
    /// What a command exits with.
    pub exit_code: i32,
    /// What failed, where something did.
    pub failure: Option<Failure>,
}

/// A conversation with its log.
pub struct Session {
    id: SessionId,
    ports: Ports,
    folds: Arc<Folds>,
    /// `session.created`, until somebody has seen it.
    unseen: Option<Envelope>,
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
        let folds = Arc::new(Folds::default());
        let mut unseen = None;
        let mut after = 0;
        loop {
            let page = ports.log.read(&id, after, REPLAY_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq.unwrap_or(after + page.len() as u64);
            for envelope in &page {
                folds.apply(envelope);
            }
            unseen = if after == 1 { page.into_iter().next() } else { None };
        }
        let session = Self { id, ports, folds, unseen };
        session.recover().await?;
        Ok(session)
    }

    /// The id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Name, folder, settings, todos and the rest, for a moment; never across an await.
    pub fn state(&self) -> MutexGuard<'_, SessionState> {
        locked(&self.folds.state)
    }

    /// The conversation so far.
    pub fn items(&self) -> Vec<Arc<Item>> {
        locked(&self.folds.transcript).items().to_vec()
    }

    fn recorder(&self, watch: Arc<dyn Watch>) -> Recorder {
        Recorder::new(
            Arc::clone(&self.ports.log),
            Arc::clone(&self.ports.clock),
            self.id.clone(),
            Arc::clone(&self.folds),
            watch,
        )
    }

    async fn recover(&self) -> Result<(), Failure> {
        let (open_run, turn, step) = {
            let state = self.state();
            (state.open_run.clone(), state.turn, state.step)
        };
        let Some(run) = open_run else { return Ok(()) };
        let open_step = self.ports.log.take_open(&self.id).await?;
        let open_calls = locked(&self.folds.transcript).open_calls().to_vec();
        let recorder = self.recorder(Arc::new(crate::Nobody));
        recorder.enter_run(run, turn, (step > 0).then_some(step));
        recorder.record(recovery::closing_events(open_step, &open_calls, step)).await
    }

    /// Records changed settings; what is the same already is not recorded again.
    pub async fn change_settings(&self, patch: &Settings, watch: Arc<dyn Watch>) -> Result<(), Failure> {
        let before = self.state().settings.clone();
        if before.patched(patch) == before {
            return Ok(());
        }
        let changed = SettingsChanged { settings: patch.clone() };
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
        if let Some(created) = self.unseen.take() {
            watch.see(&[created]).await;
        }
        let recorder = Arc::new(self.recorder(watch));
        let began = self.ports.clock.now_ms();
        let mut tally = Tally::default();
        let run = self.recorded_run(agent, input, control, &recorder, &mut tally, began);
        match run.await {
            Ok(end) => RunEnd {
                exit_code: exit_code(&end),
                result: end.result,
                reason: end.reason.map(str::to_owned),
                failure: end.failure,
            },
            Err(failure) => unrecorded_end(&recorder, failure).await,
        }
    }

    async fn recorded_run(
        &self,
        agent: &mut Agent,
        input: RunInput,
        control: &RunControl,
        recorder: &Arc<Recorder>,
        tally: &mut Tally,
        began: u64,
    ) -> Result<LoopEnd, Failure> {
        let turn = self.state().turn + 1;
        recorder.enter_run(RunId::generate(), turn, None);
        let mode = input.mode;
        recorder.record(opening_events(agent, input)).await?;
        let cx = LoopCx {
            session: self.id.clone(),
            mode,
            folds: Arc::clone(&self.folds),
            emit: Arc::clone(recorder) as Arc<dyn Emit>,
            inbox: Arc::clone(&control.inbox),
            abort: control.abort.clone(),
        };
        let end = agent.run_loop(&cx, tally).await?;
        let mut events = Vec::with_capacity(4);
        events.extend(end.failure.clone().map(Event::Error));
        events.push(done_event(&end, tally, self.errors_of_turn()));
        let duration_ms = self.ports.clock.now_ms().saturating_sub(began);
        events.push(Event::TurnDone(TurnDone { duration_ms, usage: tally.usage.clone() }));
        events.push(Event::RunDone(RunDone { result: end.result, exit_code: exit_code(&end) }));
        recorder.record(events).await?;
        Ok(end)
    }

    /// Calls of the last turn that gave no result.
    fn errors_of_turn(&self) -> u32 {
        let transcript = locked(&self.folds.transcript);
        let errors = transcript
            .items()
            .iter()
            .rev()
            .take_while(|item| !matches!(item.as_ref(), Item::User(_)))
            .filter(|item| matches!(item.as_ref(), Item::Tool(tool) if tool.error.is_some()))
            .count();
        u32::try_from(errors).unwrap_or(u32::MAX)
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
        delivery: None,
        pending_id: None,
        idempotency_id: input.idempotency_id,
        note: input.note,
    };
    vec![Event::RunStart(start), Event::MessageUser(message)]
}

/// The log failed: nothing more may happen, but whoever watches must learn how it ended.
async fn unrecorded_end(recorder: &Recorder, failure: Failure) -> RunEnd {
    let exit_code = if failure.class == ErrorClass::Storage { 4 } else { 1 };
    let done = RunDone { result: RunResult::Error, exit_code };
    recorder.announce(vec![Event::Error(failure.clone()), Event::RunDone(done)]).await;
    RunEnd { result: RunResult::Error, reason: None, exit_code, failure: Some(failure) }
}

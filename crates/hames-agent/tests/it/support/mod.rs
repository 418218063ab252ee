//! A session over stand-ins whose every move a test can see, hold and break. Nothing here sleeps.
//!
//! [`Hames`] is one session with a scripted model and tools of closures. Whatever happens around it (an append, an event
//! seen, a request sent, a tool's body entered) leaves a mark in one [`Trace`], in the order in which it happened.

pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod sound;
pub(crate) mod tools;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_agent::{Agent, AgentParts, Clock, Ports, RetryPolicy, RunControl, RunEnd, RunInput, Session, Watch};
use hames_protocol::{
    Delivery, Envelope, Event, EventLog, GuardLevel, GuardSettings, Head, Item, MemoryBlobs, MemoryInbox, Mode,
    ModelClient, ModelInfo, ModelRef, NobodyAnswers, OpenBlock, Part, Pending, PendingId, Price, RunResult, Sampling,
    SessionCreated, SessionId, Settings, ToolErrorClass,
};
use hames_tools::{Door, DoorParts, FsProvider, LockTable, Policy, Preview, Secrets, Tool, ToolSet};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use log::TestLog;
pub(crate) use model::{Reply, ScriptModel};
pub(crate) use tools::TestTool;

/// Marks in the order in which things happened, and a fuse that burns with them.
#[derive(Clone)]
pub(crate) struct Trace(Arc<Traced>);

struct Traced {
    marks: watch::Sender<Vec<String>>,
    fuse: Mutex<Option<(usize, CancellationToken)>>,
}

impl Trace {
    fn new() -> Self {
        Self(Arc::new(Traced { marks: watch::Sender::new(Vec::new()), fuse: Mutex::default() }))
    }
    pub(crate) fn mark(&self, mark: impl Into<String>) {
        self.0.marks.send_modify(|marks| marks.push(mark.into()));
        let burnt = self.0.fuse.lock().unwrap().as_mut().is_some_and(|(left, _)| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        if burnt && let Some((_, token)) = self.0.fuse.lock().unwrap().take() {
            token.cancel();
        }
    }
    /// Cancels the token at the mark after `marks` more.
    pub(crate) fn light(&self, marks: usize, token: CancellationToken) {
        *self.0.fuse.lock().unwrap() = Some((marks + 1, token));
    }
    /// Puts the fuse out.
    pub(crate) fn unlight(&self) {
        *self.0.fuse.lock().unwrap() = None;
    }
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.marks.borrow().clone()
    }
    pub(crate) fn count(&self, mark: &str) -> usize {
        self.0.marks.borrow().iter().filter(|m| *m == mark).count()
    }
    pub(crate) async fn until(&self, mark: &str) {
        self.0.marks.subscribe().wait_for(|marks| marks.iter().any(|m| m == mark)).await.unwrap();
    }
    /// Where the first such mark is.
    #[track_caller]
    pub(crate) fn at(&self, mark: &str) -> usize {
        let marks = self.all();
        marks.iter().position(|m| m == mark).unwrap_or_else(|| panic!("no {mark} in {marks:#?}"))
    }
}

/// A place where something waits for the test, and the test for it.
#[derive(Clone)]
pub(crate) struct Gate(Arc<(watch::Sender<bool>, watch::Sender<bool>)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new((watch::Sender::new(false), watch::Sender::new(false))))
    }
    pub(crate) async fn pass(&self) {
        self.0.0.send_replace(true);
        self.0.1.subscribe().wait_for(|open| *open).await.unwrap();
    }
    pub(crate) async fn reached(&self) {
        self.0.0.subscribe().wait_for(|reached| *reached).await.unwrap();
    }
    pub(crate) fn open(&self) {
        self.0.1.send_replace(true);
    }
}

/// Lets every task that can go on do so.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// A clock that moves when told, or by itself by one at every look.
pub(crate) struct ManualClock {
    now: AtomicU64,
    pub(crate) step: u64,
}

impl ManualClock {
    pub(crate) fn set(&self, now: u64) {
        self.now.store(now, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now.fetch_add(self.step, Ordering::SeqCst)
    }
}

/// Keeps what it sees; stops where it is told.
#[derive(Clone)]
pub(crate) struct Seen {
    all: Arc<Mutex<Vec<Envelope>>>,
    holds: Arc<Mutex<Vec<(String, Gate)>>>,
    panics_at: Arc<Mutex<Option<String>>>,
    trace: Trace,
}

impl Seen {
    fn new(trace: &Trace) -> Self {
        Self { all: Arc::default(), holds: Arc::default(), panics_at: Arc::default(), trace: trace.clone() }
    }
    pub(crate) fn all(&self) -> Vec<Envelope> {
        self.all.lock().unwrap().clone()
    }
    /// Holds the first batch with such an event until the gate opens.
    pub(crate) fn hold(&self, kind: &str) -> Gate {
        let gate = Gate::new();
        self.holds.lock().unwrap().push((kind.to_owned(), gate.clone()));
        gate
    }
    pub(crate) fn panic_at(&self, kind: &str) {
        *self.panics_at.lock().unwrap() = Some(kind.to_owned());
    }
}

#[async_trait]
impl Watch for Seen {
    async fn see(&self, batch: &[Envelope]) {
        for envelope in batch {
            self.all.lock().unwrap().push(envelope.clone());
            self.trace.mark(format!("see {}", envelope.event.type_name()));
        }
        let is_in = |kind: &str| batch.iter().any(|e| e.event.type_name() == kind);
        let held = {
            let mut holds = self.holds.lock().unwrap();
            holds.iter().position(|(kind, _)| is_in(kind)).map(|at| holds.remove(at).1)
        };
        if let Some(gate) = held {
            gate.pass().await;
        }
        let bad = self.panics_at.lock().unwrap().take_if(|kind| is_in(kind));
        assert!(bad.is_none(), "the watcher breaks down");
    }
    fn glimpse(&self, live: Envelope) {
        self.trace.mark(format!("glimpse {}", live.event.type_name()));
        self.all.lock().unwrap().push(live);
    }
}

const ID: &str = "s-1";

/// What a session is made of.
pub(crate) struct Setup {
    pub(crate) tools: Vec<TestTool>,
    pub(crate) replies: Vec<Reply>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) window: u64,
    /// What the model charges.
    pub(crate) price: Option<Price>,
    pub(crate) system: String,
    pub(crate) retry: RetryPolicy,
    pub(crate) mode: Mode,
    pub(crate) clock_step: u64,
    /// In place of the script.
    pub(crate) model: Option<Box<dyn ModelClient>>,
    pub(crate) preview: Option<Arc<dyn Preview>>,
    pub(crate) blobs: Arc<MemoryBlobs>,
    pub(crate) guard: GuardSettings,
    pub(crate) fs: Arc<dyn FsProvider>,
    /// Tools besides those of closures.
    pub(crate) extra: Vec<Arc<dyn Tool>>,
}

impl Setup {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            tools: tools::all(),
            replies: replies.into_iter().collect(),
            max_steps: None,
            window: 128_000,
            price: None,
            system: "Be brief.".into(),
            retry: RetryPolicy::default(),
            mode: Mode::Build,
            clock_step: 1,
            model: None,
            preview: None,
            blobs: Arc::default(),
            guard: GuardSettings::level(GuardLevel::Off),
            fs: Arc::new(tools::StubFs),
            extra: Vec::new(),
        }
    }

    pub(crate) fn preview(mut self, preview: impl Preview + 'static) -> Self {
        self.preview = Some(Arc::new(preview));
        self
    }

    pub(crate) fn tool(mut self, tool: TestTool) -> Self {
        self.tools.retain(|known| known.name() != tool.name());
        self.tools.push(tool);
        self
    }

    pub(crate) async fn build(self) -> Hames {
        let created = SessionCreated { name: "test".into(), folder: "/w".into(), settings: Settings::default() };
        let first = Envelope { session: Some(SessionId::from(ID)), ..Envelope::detached(1, created.into()) };
        self.build_from(&[first], &[]).await
    }

    /// A session whose log ends here, with these pieces of its open step: as a death leaves it.
    pub(crate) async fn build_from(mut self, events: &[Envelope], pieces: &[OpenBlock]) -> Hames {
        let trace = Trace::new();
        let log = TestLog::new(&trace);
        let id = SessionId::from(ID);
        log.put(&id, events.to_vec()).await;
        log.save_open(&id, pieces.to_vec()).await.unwrap();
        let clock = Arc::new(ManualClock { now: AtomicU64::new(1_000), step: self.clock_step });
        let ports = Ports { log: Arc::new(log.clone()), clock: clock.clone() };
        let session = Session::resume(ports.clone(), id).await.unwrap();
        let (model, agent) = self.agent(&trace);
        let introduced = u64::from(log.events().len() > 1);
        Hames {
            agent,
            session,
            seen: Seen::new(&trace),
            inbox: Arc::new(MemoryInbox::default()),
            abort: CancellationToken::new(),
            mode: self.mode,
            trace,
            clock,
            ports,
            model,
            unwatched: (1..=introduced * log.events().len() as u64).collect(),
            log,
        }
    }

    fn agent(&mut self, trace: &Trace) -> (ScriptModel, Agent) {
        let info = ModelInfo {
            price: self.price.clone(),
            ..ModelInfo::new(ModelRef { provider: "test".into(), id: "script".into() }, self.window, 4_096)
        };
        let model = ScriptModel::new(info, self.replies.iter().cloned().collect::<VecDeque<_>>(), trace);
        let mut tools: Vec<Arc<dyn Tool>> =
            self.tools.iter().cloned().map(|tool| Arc::new(tool.traced(trace)) as Arc<dyn Tool>).collect();
        tools.append(&mut self.extra);
        let door = Arc::new(Door::new(DoorParts {
            tools: ToolSet::new(tools).unwrap(),
            policy: Policy::default(),
            fs: self.fs.clone(),
            preview: self.preview.clone(),
            shell: Arc::new(tools::NoShell),
            blobs: self.blobs.clone(),
            approver: Arc::new(NobodyAnswers),
            grants: None,
            secrets: Secrets::new(Vec::new()),
            locks: Arc::new(LockTable::new()),
            window_tokens: self.window,
            parallel_tools: true,
        }));
        let agent = Agent::new(AgentParts {
            model: self.model.take().unwrap_or_else(|| Box::new(model.clone())),
            head: Arc::new(Head { tools: door.specs(), system: self.system.clone() }),
            door,
            max_steps: self.max_steps,
            thinking: None,
            sampling: Sampling::default(),
            max_output_tokens: None,
            retry: self.retry,
            guard: self.guard.clone(),
        });
        (model, agent)
    }
}

/// One session with everything around it.
pub(crate) struct Hames {
    pub(crate) agent: Agent,
    pub(crate) session: Session,
    pub(crate) seen: Seen,
    pub(crate) inbox: Arc<MemoryInbox>,
    pub(crate) abort: CancellationToken,
    pub(crate) mode: Mode,
    pub(crate) trace: Trace,
    pub(crate) log: TestLog,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ports: Ports,
    pub(crate) model: ScriptModel,
    /// Events that were recorded while nobody watched.
    unwatched: Vec<u64>,
}

/// A session with these replies, the usual tools and nothing special.
pub(crate) async fn hames(replies: impl IntoIterator<Item = Reply>) -> Hames {
    Setup::new(replies).build().await
}

impl Hames {
    fn input(&self, text: &str) -> RunInput {
        RunInput { parts: vec![Part::text(text)], mode: self.mode, ..RunInput::default() }
    }

    /// Runs to the end and checks everything that holds for every run.
    pub(crate) async fn run(&mut self, text: &str) -> RunEnd {
        let end = self.run_unchecked(text).await;
        self.check(&end);
        end
    }

    pub(crate) async fn run_unchecked(&mut self, text: &str) -> RunEnd {
        let control = RunControl { abort: self.abort.clone(), inbox: self.inbox.clone(), ..RunControl::default() };
        let input = self.input(text);
        self.session.run(&mut self.agent, input, &control, Arc::new(self.seen.clone())).await
    }

    pub(crate) fn check(&self, end: &RunEnd) {
        let events = self.log.events();
        sound::log(&events);
        let watched = |e: &&Envelope| !e.seq.is_some_and(|seq| self.unwatched.contains(&seq));
        sound::watched(events.iter().filter(watched), &self.seen.all());
        sound::sendable(&self.session.items());
        let Some(Event::RunDone(done)) = events.last().map(|e| &e.event) else { panic!("{events:#?}") };
        assert_eq!((done.result, done.exit_code), (end.result, end.exit_code));
    }

    /// The next run has an abort and an inbox of its own.
    pub(crate) fn renew(&mut self) {
        self.abort = CancellationToken::new();
        self.inbox = Arc::new(MemoryInbox::default());
    }

    /// Leaves the session as a death would, and opens it again.
    pub(crate) async fn reopen(&mut self) {
        let before = self.log.events().len() as u64;
        self.session = Session::resume(self.ports.clone(), self.session.id().clone()).await.unwrap();
        self.unwatched.extend(before + 1..=self.log.events().len() as u64);
    }

    /// Types of the durable events of the last run, the first ones left out.
    pub(crate) fn types(&self) -> Vec<String> {
        self.events().iter().map(|e| e.event.type_name().to_owned()).collect()
    }

    /// The durable events of the last run.
    pub(crate) fn events(&self) -> Vec<Envelope> {
        let all = self.log.events();
        let from = all.iter().rposition(|e| matches!(e.event, Event::RunStart(_))).unwrap_or(0);
        all[from..].to_vec()
    }

    pub(crate) fn find<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.events().iter().filter_map(|e| pick(&e.event)).collect()
    }

    /// Why each call of the last run gave no result, in log order.
    pub(crate) fn errors(&self) -> Vec<(ToolErrorClass, String)> {
        self.find(|event| match event {
            Event::ToolError(error) => Some((error.class, error.error.clone())),
            _ => None,
        })
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.session
            .items()
            .iter()
            .filter_map(|item| match item.as_ref() {
                Item::Assistant(answer) if !answer.text.is_empty() => Some(answer.text.clone()),
                _ => None,
            })
            .collect()
    }
}

pub(crate) fn pending(id: &str, delivery: Delivery) -> Pending {
    Pending {
        id: PendingId::from(id),
        parts: vec![Part::text(format!("message {id}"))],
        delivery,
        idempotency_id: None,
    }
}

#[track_caller]
pub(crate) fn ended(end: &RunEnd, result: RunResult, exit_code: i32) {
    assert_eq!((end.result, end.exit_code), (result, exit_code), "{end:?}");
}

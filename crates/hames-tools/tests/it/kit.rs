//! A door over stand-ins whose every move a test can see and steer. Nothing here sleeps.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{
    ApprovalAsked, Approver, Decision, Declaration, Diff, Effect, Emit, Envelope, ErrorClass, Event, Failure,
    GrantKeeper, MemoryBlobs, Mode, NobodyAnswers, RawCall, Resource, SessionId, SessionState, ToolError,
    ToolErrorClass, ToolSpec,
};
use hames_tools::{
    Admitted, DirEntry, Door, DoorParts, Expect, FileKind, FileStat, FsError, FsPath, FsProvider, LockTable, Policy,
    RunCx, Secrets, ShellError, ShellOutcome, ShellProvider, ShellRequest, Staged, Tool, ToolCx, ToolFailure,
    ToolOutput, ToolSet,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

type Answer = Result<ToolOutput, ToolFailure>;
type Body = Arc<dyn Fn(Value, ToolCx) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;
type Preview = Arc<dyn Fn(&Value) -> Result<Vec<Diff>, ToolFailure> + Send + Sync>;
type Declare = Arc<dyn Fn(&Value) -> Declaration + Send + Sync>;

/// A tool made of closures.
#[derive(Clone)]
pub(crate) struct TestTool {
    spec: ToolSpec,
    declare: Declare,
    preview: Preview,
    body: Body,
    recalls: bool,
}

impl TestTool {
    /// A tool that reads the one path it is given and answers at once.
    pub(crate) fn new(name: &str) -> Self {
        let parameters =
            json!({"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}});
        Self {
            spec: ToolSpec { name: name.into(), description: String::new(), parameters },
            declare: Arc::new(|input| touching(Effect::Read, input)),
            preview: Arc::new(|_| Ok(Vec::new())),
            body: Arc::new(|_, _| Box::pin(async { Ok(ToolOutput::text("done")) })),
            recalls: false,
        }
    }
    /// With this effect on the path it is given.
    pub(crate) fn effect(self, effect: Effect) -> Self {
        self.declares(move |input| touching(effect, input))
    }
    pub(crate) fn declares(mut self, declare: impl Fn(&Value) -> Declaration + Send + Sync + 'static) -> Self {
        self.declare = Arc::new(declare);
        self
    }
    /// Says of itself that it gives back what was kept.
    pub(crate) fn recalling(mut self) -> Self {
        self.recalls = true;
        self
    }
    pub(crate) fn parameters(mut self, parameters: Value) -> Self {
        self.spec.parameters = parameters;
        self
    }
    pub(crate) fn previews(
        mut self,
        preview: impl Fn(&Value) -> Result<Vec<Diff>, ToolFailure> + Send + Sync + 'static,
    ) -> Self {
        self.preview = Arc::new(preview);
        self
    }
    pub(crate) fn does<F>(mut self, body: impl Fn(Value, ToolCx) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.body = Arc::new(move |input, cx| Box::pin(body(input, cx)));
        self
    }
    /// Waits at a gate under the name of its path.
    pub(crate) fn gated(self, gate: &Gate) -> Self {
        let gate = gate.clone();
        self.does(move |input, cx| {
            let gate = gate.clone();
            async move {
                let name = input["path"].as_str().unwrap_or("-").to_owned();
                tokio::select! {
                    () = gate.pass(&name) => Ok(ToolOutput::text(format!("passed {name}"))),
                    () = cx.cancel.cancelled() => Err(ToolFailure::cancelled()),
                }
            }
        })
    }
}

pub(crate) fn touching(effect: Effect, input: &Value) -> Declaration {
    let write = !matches!(effect, Effect::Read | Effect::Session);
    let path = input["path"].as_str().map(|path| Resource::path(path, write));
    Declaration::new(effect, path.into_iter().collect())
}

#[async_trait]
impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("file_path", "path")]
    }
    fn declare(&self, input: &Value) -> Declaration {
        (self.declare)(input)
    }
    fn recalls(&self) -> bool {
        self.recalls
    }
    async fn preview(&self, input: &Value, _cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        (self.preview)(input)
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Answer {
        (self.body)(input.clone(), cx.clone()).await
    }
}

/// Holds tools where a test wants them.
#[derive(Clone)]
pub(crate) struct Gate {
    inside: Arc<watch::Sender<Vec<String>>>,
    open: Arc<watch::Sender<BTreeSet<String>>>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { inside: Arc::new(watch::Sender::new(Vec::new())), open: Arc::new(watch::Sender::new(BTreeSet::new())) }
    }
    /// Goes in, and on when the test opens the gate for this name.
    pub(crate) async fn pass(&self, name: &str) {
        self.inside.send_modify(|inside| inside.push(name.to_owned()));
        self.open.subscribe().wait_for(|open| open.contains(name)).await.unwrap();
    }
    pub(crate) fn open(&self, name: &str) {
        self.open.send_modify(|open| open.extend([name.to_owned()]));
    }
    /// Waits until exactly these came in, in any order, and lets everything else settle first.
    pub(crate) async fn holds(&self, wanted: &[&str]) {
        let wanted: BTreeSet<String> = wanted.iter().map(ToString::to_string).collect();
        let all = |inside: &Vec<String>| inside.iter().cloned().collect::<BTreeSet<_>>();
        self.inside.subscribe().wait_for(|inside| all(inside).is_superset(&wanted)).await.unwrap();
        settle().await;
        assert_eq!(all(&self.inside.borrow()), wanted);
    }
    /// Everything that came in so far, in order.
    pub(crate) fn order(&self) -> Vec<String> {
        self.inside.borrow().clone()
    }
}

/// Lets every task that can go on do so.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Waits until something is so.
pub(crate) async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

/// An event log that a test can read, wait on and break.
#[derive(Clone)]
pub(crate) struct Log {
    events: Arc<watch::Sender<Vec<Event>>>,
    shown: Arc<Mutex<Vec<Event>>>,
    state: Arc<Mutex<SessionState>>,
    fails_at: Arc<Mutex<Option<&'static str>>>,
    holds_at: Arc<Mutex<Option<(&'static str, Gate)>>>,
    lags: Arc<Mutex<bool>>,
}

impl Log {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.borrow().clone()
    }
    pub(crate) fn shown(&self) -> Vec<Event> {
        self.shown.lock().unwrap().clone()
    }
    pub(crate) fn types(&self) -> Vec<String> {
        self.events().iter().map(|event| event.type_name().to_owned()).collect()
    }
    pub(crate) async fn until(&self, kind: &str) {
        self.events.subscribe().wait_for(|all| all.iter().any(|e| e.type_name() == kind)).await.unwrap();
    }
    /// Records of this kind wait at the gate, under the kind's name.
    pub(crate) fn hold_at(&self, kind: &'static str, gate: &Gate) {
        *self.holds_at.lock().unwrap() = Some((kind, gate.clone()));
    }
    /// The fold of the session stays behind what is recorded.
    pub(crate) fn lag(&self) {
        *self.lags.lock().unwrap() = true;
    }
    pub(crate) fn fail_at(&self, kind: &'static str) {
        *self.fails_at.lock().unwrap() = Some(kind);
    }
}

#[async_trait]
impl Emit for Log {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        let broken = *self.fails_at.lock().unwrap();
        if events.iter().any(|event| Some(event.type_name()) == broken) {
            return Err(Failure::new(ErrorClass::Storage, "the disk is full"));
        }
        let held = self.holds_at.lock().unwrap().clone();
        if let Some((kind, gate)) = held.filter(|(kind, _)| events.iter().any(|event| event.type_name() == *kind)) {
            gate.pass(kind).await;
        }
        let lags = *self.lags.lock().unwrap();
        for event in events.iter().filter(|_| !lags) {
            self.state.lock().unwrap().apply(&Envelope::detached(0, event.clone()));
        }
        self.events.send_modify(|all| all.extend(events));
        tokio::task::yield_now().await;
        Ok(())
    }
    fn show(&self, event: Event) {
        self.shown.lock().unwrap().push(event);
    }
}

/// Paths under `/w` are inside. Links and inodes are what a test says.
#[derive(Default)]
pub(crate) struct StubFs {
    pub(crate) links: Mutex<HashMap<PathBuf, PathBuf>>,
    pub(crate) inodes: Mutex<HashMap<PathBuf, u64>>,
    pub(crate) on_resolve: Mutex<Option<Box<dyn Fn() + Send>>>,
    /// Empty files, in every folder.
    pub(crate) entries: Mutex<Vec<&'static str>>,
}

impl FsProvider for StubFs {
    fn root(&self) -> &Path {
        Path::new("/w")
    }
    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        if let Some(act) = &*self.on_resolve.lock().unwrap() {
            act();
        }
        if path.contains("secret-home") {
            return Err(FsError::Denied { path: path.into() });
        }
        let mut abs = PathBuf::new();
        for part in Path::new("/w").join(path).components() {
            match part {
                Component::ParentDir => drop(abs.pop()),
                Component::CurDir => {}
                part => abs.push(part),
            }
            if let Some(target) = self.links.lock().unwrap().get(&abs) {
                abs.clone_from(target);
            }
        }
        let inside = abs.starts_with("/w");
        let identity = self.inodes.lock().unwrap().get(&abs).map(|inode| (1, *inode));
        Ok(FsPath { shown: path.to_owned(), abs, inside, identity })
    }
    fn stat(&self, _: &FsPath) -> Result<FileStat, FsError> {
        Err(FsError::Cancelled)
    }
    fn open(&self, _: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        Ok(Box::new(std::io::empty()))
    }
    fn list(&self, _: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        let entry = |name: &&str| DirEntry { name: (*name).to_owned(), kind: FileKind::File, size: 0 };
        Ok(self.entries.lock().unwrap().iter().map(entry).collect())
    }
    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.resolve(path)
    }
    fn stage_write(&self, _: &FsPath, _: &[u8], _: &Expect, _: Option<u32>) -> Result<Box<dyn Staged>, FsError> {
        Err(FsError::Cancelled)
    }
    fn stage_remove(&self, _: &FsPath, _: &Expect) -> Result<Box<dyn Staged>, FsError> {
        Err(FsError::Cancelled)
    }
}

struct NoShell;

#[async_trait]
impl ShellProvider for NoShell {
    async fn run(
        &self,
        _: ShellRequest,
        _: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError> {
        Err(ShellError("no shell".into()))
    }
}

/// Answers with what it was given, in order, and keeps what it was asked.
pub(crate) struct Answers {
    pub(crate) asked: Mutex<Vec<ApprovalAsked>>,
    answers: Mutex<Vec<Option<Decision>>>,
    pub(crate) while_asked: Box<dyn Fn(usize) + Send + Sync>,
}

impl Answers {
    pub(crate) fn new(answers: &[Option<Decision>]) -> Arc<Self> {
        Self::doing(answers, |_| {})
    }
    /// Does something while the question stands.
    pub(crate) fn doing(answers: &[Option<Decision>], act: impl Fn(usize) + Send + Sync + 'static) -> Arc<Self> {
        let answers = answers.iter().rev().copied().collect();
        Arc::new(Self { asked: Mutex::default(), answers: Mutex::new(answers), while_asked: Box::new(act) })
    }
}

#[async_trait]
impl Approver for Answers {
    async fn decide(&self, asked: &ApprovalAsked) -> Option<(Decision, String)> {
        let count = {
            let mut all = self.asked.lock().unwrap();
            all.push(asked.clone());
            all.len()
        };
        (self.while_asked)(count);
        let answer = self.answers.lock().unwrap().pop();
        match answer {
            Some(decision) => decision.map(|decision| (decision, "user".to_owned())),
            // Out of answers: nobody comes back.
            None => std::future::pending().await,
        }
    }
}

/// A door with everything around it.
pub(crate) struct TestDoor {
    pub(crate) door: Arc<Door>,
    pub(crate) log: Log,
    pub(crate) cx: RunCx,
    pub(crate) fs: Arc<StubFs>,
    pub(crate) blobs: Arc<MemoryBlobs>,
}

/// What a test may choose about a door.
pub(crate) struct Setup {
    pub(crate) tools: Vec<TestTool>,
    pub(crate) mode: Mode,
    pub(crate) policy: Policy,
    pub(crate) secrets: Vec<String>,
    pub(crate) window: u64,
    pub(crate) parallel: bool,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) grants: Option<Arc<dyn GrantKeeper>>,
    pub(crate) locks: Arc<LockTable>,
}

impl Setup {
    pub(crate) fn new(tools: Vec<TestTool>) -> Self {
        Self {
            tools,
            mode: Mode::Build,
            policy: Policy::default(),
            secrets: Vec::new(),
            window: 200_000,
            parallel: true,
            approver: Arc::new(NobodyAnswers),
            grants: None,
            locks: Arc::new(LockTable::new()),
        }
    }

    pub(crate) fn build(self) -> TestDoor {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let state = Arc::new(Mutex::new(SessionState::default()));
        let log = Log {
            events: Arc::new(watch::Sender::new(Vec::new())),
            shown: Arc::default(),
            state: state.clone(),
            fails_at: Arc::default(),
            holds_at: Arc::default(),
            lags: Arc::default(),
        };
        let (fs, blobs) = (Arc::new(StubFs::default()), Arc::new(MemoryBlobs::default()));
        let tools = self.tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect();
        let door = Door::new(DoorParts {
            tools: ToolSet::new(tools).unwrap(),
            policy: self.policy,
            fs: fs.clone(),
            preview: None,
            shell: Arc::new(NoShell),
            blobs: blobs.clone(),
            approver: self.approver,
            grants: self.grants,
            secrets: Secrets::new(self.secrets),
            locks: self.locks,
            window_tokens: self.window,
            parallel_tools: self.parallel,
        });
        let cx = RunCx {
            session: SessionId::from(format!("s{}", SESSIONS.fetch_add(1, Ordering::Relaxed))),
            mode: self.mode,
            emit: Arc::new(log.clone()),
            state,
            abort: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            memory: None,
            pins: hames_tools::PinRoom::default(),
        };
        TestDoor { door: Arc::new(door), log, cx, fs, blobs }
    }
}

pub(crate) fn door(tools: Vec<TestTool>) -> TestDoor {
    Setup::new(tools).build()
}

pub(crate) fn raw(name: &str, arguments: impl ToString) -> RawCall {
    RawCall { id: "call_0".into(), name: name.into(), arguments: arguments.to_string(), extra: None }
}

impl TestDoor {
    pub(crate) fn admit(&self, calls: &[(&str, Value)]) -> Vec<Admitted> {
        calls.iter().map(|(name, arguments)| self.door.admit(raw(name, arguments))).collect()
    }

    /// Runs calls to their end and checks what must hold for all of them.
    pub(crate) async fn run(&self, calls: &[(&str, Value)]) -> Vec<Outcome> {
        let calls = self.admit(calls);
        self.run_admitted(calls).await
    }

    pub(crate) async fn run_admitted(&self, calls: Vec<Admitted>) -> Vec<Outcome> {
        let ids: Vec<_> = calls.iter().map(|call| call.event.call_id.clone()).collect();
        self.door.run(calls, self.cx.clone()).await.unwrap();
        let events = self.log.events();
        ids.iter().map(|id| Outcome::find(&events, id.as_str())).collect()
    }

    /// Starts calls and leaves them running.
    pub(crate) fn start(&self, calls: &[(&str, Value)]) -> tokio::task::JoinHandle<Vec<Outcome>> {
        let calls = self.admit(calls);
        let ids: Vec<_> = calls.iter().map(|call| call.event.call_id.clone()).collect();
        let (door, cx, log) = (self.door.clone(), self.cx.clone(), self.log.clone());
        tokio::spawn(async move {
            door.run(calls, cx).await.unwrap();
            let events = log.events();
            ids.iter().map(|id| Outcome::find(&events, id.as_str())).collect()
        })
    }
}

/// How one call ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) started: bool,
    pub(crate) end: Event,
}

impl Outcome {
    /// The one end of a call. Fails where there is none or more, or where a start is missing or doubled.
    fn find(events: &[Event], id: &str) -> Self {
        let (mut starts, mut ends) = (0, Vec::new());
        for event in events {
            match event {
                Event::ToolStart(start) if start.call_id.as_str() == id => {
                    assert!(ends.is_empty(), "started after its end");
                    starts += 1;
                }
                Event::ToolDone(done) if done.call_id.as_str() == id => ends.push(event.clone()),
                Event::ToolError(error) if error.call_id.as_str() == id => ends.push(event.clone()),
                _ => {}
            }
        }
        assert!(starts <= 1, "started {starts} times");
        assert_eq!(ends.len(), 1, "{ends:?}");
        let end = ends.remove(0);
        assert!(starts == 1 || matches!(end, Event::ToolError(_)), "a result without a start");
        Self { started: starts == 1, end }
    }

    #[track_caller]
    pub(crate) fn output(&self) -> &str {
        match &self.end {
            Event::ToolDone(done) => &done.output,
            other => panic!("{other:?}"),
        }
    }
    #[track_caller]
    pub(crate) fn error(&self) -> &ToolError {
        match &self.end {
            Event::ToolError(error) => error,
            other => panic!("{other:?}"),
        }
    }
    #[track_caller]
    pub(crate) fn failed_as(&self, class: ToolErrorClass) -> &str {
        let error = self.error();
        assert_eq!(error.class, class, "{error:?}");
        &error.error
    }
}

pub(crate) fn unique<T: std::hash::Hash + Eq>(all: &[T]) -> bool {
    all.iter().collect::<HashSet<_>>().len() == all.len()
}

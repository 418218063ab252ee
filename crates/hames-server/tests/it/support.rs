//! A hub with a home of its own, a model that goes on when it is told, and a look at what became of every message.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hames::AgentBuilder;
use hames_agent::{Clock, Compaction};
use hames_protocol::api::{
    Configuration, CreateSession, EditPending, KnownProviders, Models, ProviderDraft, ProviderTest, Providers,
    SendMessage, Sent, SessionView, StopServer,
};
use hames_protocol::*;
use hames_server::{Host, Hub, HubOptions, News, PreparedRun, RunJob};
use hames_store::{Store, VacuumThresholds};
use hames_tools::{FsProvider, Policy, Tool, ToolCx, ToolFailure, ToolOutput};
use hames_workspace::files::{LocalFs, LocalFsOptions};
use hames_workspace::shell::ScriptedShell;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

/// One answer of the model: what comes piece by piece. Each piece takes a permit where the model is held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    deltas: Vec<Delta>,
    failure: Option<Failure>,
    /// Time from piece to piece.
    pace: Option<Duration>,
    /// Tokens of input that it counted; 0 where it counts nothing, 100 where nobody says.
    counted: Option<u64>,
}

impl Reply {
    pub(crate) fn text(text: &str) -> Self {
        Self { deltas: vec![Delta::Text(text.into())], ..Self::default() }
    }
    pub(crate) fn pieces(pieces: impl IntoIterator<Item = String>) -> Self {
        Self { deltas: pieces.into_iter().map(Delta::Text).collect(), ..Self::default() }
    }
    /// The same with another count of the input; 0 is no count at all.
    pub(crate) fn counting(self, tokens: u64) -> Self {
        Self { counted: Some(tokens), ..self }
    }
    /// The same, so many milliseconds apart, whatever the time each takes.
    pub(crate) fn paced(self, ms: u64) -> Self {
        Self { pace: Some(Duration::from_millis(ms)), ..self }
    }
    pub(crate) fn call(name: &str, arguments: &Value) -> Self {
        let delta = Delta::ToolInput { call: 0, name: Some(name.into()), text: arguments.to_string() };
        Self { deltas: vec![delta], ..Self::default() }
    }
    /// The same call several times in one step.
    pub(crate) fn calls(name: &str, count: u32) -> Self {
        let delta = |call| Delta::ToolInput { call, name: Some(name.into()), text: "{}".into() };
        Self { deltas: (0..count).map(delta).collect(), failure: None, ..Self::default() }
    }
    pub(crate) fn failed() -> Self {
        let failure = Failure::new(ErrorClass::Auth, "The key is not accepted.");
        Self { failure: Some(failure), ..Self::default() }
    }
}

struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    /// The items of each request.
    asked: watch::Sender<Vec<Vec<Arc<Item>>>>,
    /// Pieces the model may say; `None` where nothing holds it.
    permits: Option<Semaphore>,
    /// Requests and pieces that wait, and bodies of tools.
    reached: watch::Sender<u64>,
    tool: Semaphore,
    entered: watch::Sender<u64>,
}

/// The model. Clones share script and permits; without a script it says "ok".
#[derive(Clone)]
pub(crate) struct Model(Arc<Shared>);

impl Model {
    fn new(held: bool) -> Self {
        Self(Arc::new(Shared {
            replies: Mutex::default(),
            asked: watch::Sender::new(Vec::new()),
            permits: held.then(|| Semaphore::new(0)),
            reached: watch::Sender::new(0),
            tool: Semaphore::new(0),
            entered: watch::Sender::new(0),
        }))
    }
    pub(crate) fn will(&self, replies: impl IntoIterator<Item = Reply>) {
        self.0.replies.lock().unwrap().extend(replies);
    }
    /// Lets the model say so many pieces; the end of an answer is one too.
    pub(crate) fn allow(&self, pieces: usize) {
        self.0.permits.as_ref().unwrap().add_permits(pieces);
    }
    /// Lets so many bodies of the tool `Wait` end.
    pub(crate) fn allow_tools(&self, bodies: usize) {
        self.0.tool.add_permits(bodies);
    }
    /// Returns when that many pieces were waited for.
    pub(crate) async fn reached(&self, count: u64) {
        self.0.reached.subscribe().wait_for(|reached| *reached >= count).await.unwrap();
    }
    pub(crate) async fn entered(&self, count: u64) {
        self.0.entered.subscribe().wait_for(|entered| *entered >= count).await.unwrap();
    }
    /// What the user says in each request, message by message.
    pub(crate) fn heard(&self) -> Vec<Vec<String>> {
        let said = |item: &Arc<Item>| match item.as_ref() {
            Item::User(user) => Some(text_of(&user.parts)),
            _ => None,
        };
        self.0.asked.borrow().iter().map(|items| items.iter().filter_map(said).collect()).collect()
    }
}

pub(crate) fn text_of(parts: &[Part]) -> String {
    parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None }).collect()
}

struct Client {
    model: Model,
    info: ModelInfo,
    items: Vec<Arc<Item>>,
    requests: u64,
}

#[async_trait]
impl ModelClient for Client {
    fn info(&self) -> &ModelInfo {
        &self.info
    }
    async fn prepare(
        &mut self,
        _: &Arc<Head>,
        items: &[Arc<Item>],
        _: &RequestOptions,
    ) -> Result<PreparedInfo, Failure> {
        self.items = items.to_vec();
        self.requests += 1;
        Ok(PreparedInfo { bytes: 0, fingerprint: self.requests.to_string(), changed_at: None, changed_why: "first" })
    }
    async fn send(&mut self) -> Result<Box<dyn ModelStream>, Failure> {
        let shared = &self.model.0;
        shared.asked.send_modify(|asked| asked.push(self.items.clone()));
        let reply = shared.replies.lock().unwrap().pop_front().unwrap_or_else(|| Reply::text("ok"));
        match reply.failure {
            Some(failure) => Err(failure),
            None => Ok(Box::new(Stream {
                shared: Arc::clone(shared),
                deltas: reply.deltas.into(),
                said: Vec::new(),
                whole: false,
                counted: false,
                pace: reply.pace.map(|pace| tokio::time::interval(pace)),
                input: reply.counted.unwrap_or(100),
            })),
        }
    }
}

struct Stream {
    shared: Arc<Shared>,
    deltas: VecDeque<Delta>,
    said: Vec<Delta>,
    whole: bool,
    counted: bool,
    pace: Option<tokio::time::Interval>,
    input: u64,
}

#[async_trait]
impl ModelStream for Stream {
    async fn next(&mut self) -> Option<Vec<Delta>> {
        if !std::mem::replace(&mut self.counted, true) {
            self.shared.reached.send_modify(|reached| *reached += 1);
        }
        if let Some(permits) = &self.shared.permits {
            permits.acquire().await.unwrap().forget();
        }
        self.counted = false;
        if let Some(pace) = &mut self.pace {
            pace.tick().await;
        }
        let delta = self.deltas.pop_front();
        self.whole = delta.is_none();
        self.said.extend(delta.clone());
        delta.map(|delta| vec![delta])
    }
    fn finish(self: Box<Self>) -> Completion {
        let mut end = Completion::default();
        for delta in self.said {
            match delta {
                Delta::Text(text) => end.text.push_str(&text),
                Delta::ToolInput { name, text, .. } => end.calls.push(RawCall {
                    id: "call_0".into(),
                    name: name.unwrap_or_default(),
                    arguments: text,
                    extra: None,
                }),
                _ => {}
            }
        }
        if self.whole {
            end.finish_reason = Some("stop".into());
            let usage = Usage { input: Some(self.input), output: Some(10), ..Usage::default() };
            end.usage = (self.input > 0).then_some(usage);
            end.usage_raw = Some("{}".into());
            end.done_marker = true;
        }
        end
    }
}

/// `Wait`: a tool whose body ends when the test says so, or when it is cancelled.
struct Wait(ToolSpec, Model, Effect);

#[async_trait]
impl Tool for Wait {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn declare(&self, _: &Value) -> Declaration {
        Declaration::new(self.2, Vec::new())
    }
    async fn run(&self, _: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let shared = &self.1.0;
        shared.entered.send_modify(|entered| *entered += 1);
        tokio::select! {
            permit = shared.tool.acquire() => permit.unwrap().forget(),
            () = cx.cancel.cancelled() => return Err(ToolFailure::cancelled()),
        }
        Ok(ToolOutput::text("waited"))
    }
}

/// `Ask`: asks a person its questions, one after the other, and says what it was told.
struct Ask(ToolSpec);

#[async_trait]
impl Tool for Ask {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn declare(&self, _: &Value) -> Declaration {
        Declaration::new(Effect::Session, Vec::new())
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let mut told = Vec::new();
        for question in input["questions"].as_array().into_iter().flatten() {
            let choices = ["red".to_owned(), "blue".to_owned()];
            told.push(cx.ask(question.as_str().unwrap_or_default(), &choices).await?.unwrap_or("nothing".into()));
        }
        Ok(ToolOutput::text(told.join(", ")))
    }
}

pub(crate) fn ask(questions: &[&str]) -> Reply {
    Reply::call("Ask", &json!({"questions": questions}))
}

pub(crate) fn wait() -> Reply {
    Reply::call("Wait", &json!({}))
}

/// A clock that moves by one at every look.
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

pub(crate) struct TestHost {
    pub(crate) model: Model,
    clock: Arc<Ticks>,
    /// Whether every call is asked about.
    pub(crate) asks: bool,
    /// Why no run can begin.
    pub(crate) refuses: Mutex<Option<Failure>>,
    pub(crate) title: Option<String>,
    pub(crate) vacuum: VacuumThresholds,
    blobs: Mutex<Option<Arc<dyn BlobStore>>>,
}

fn info() -> ModelInfo {
    ModelInfo::new("test/model".parse().unwrap(), 128_000, 8_192)
}

#[async_trait]
impl Host for TestHost {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }
    fn born(&self, _: &Path, asked: &Settings) -> Settings {
        Settings { model: Some(info().model), mode: Some(asked.mode.unwrap_or_default()), ..asked.clone() }
    }
    fn effective(&self, folder: &Path, settings: &Settings) -> Settings {
        self.born(folder, settings)
    }
    fn model_info(&self, _: &Settings) -> Option<ModelInfo> {
        Some(info())
    }
    async fn prepare(&self, job: RunJob) -> Result<PreparedRun, Failure> {
        if let Some(failure) = self.refuses.lock().unwrap().clone() {
            return Err(failure);
        }
        let settings = self.effective(&job.folder, &job.state.settings);
        let known = info();
        let known = ModelInfo { context_window: settings.context_window.unwrap_or(known.context_window), ..known };
        let client = Client { model: self.model.clone(), info: known, items: Vec::new(), requests: 0 };
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: "Waits.".into(),
            parameters: json!({"type": "object", "properties": {}}),
        };
        let mut tools = hames_workspace::tools();
        tools.push(Arc::new(Wait(spec("Wait"), self.model.clone(), Effect::Read)));
        tools.push(Arc::new(Wait(spec("Work"), self.model.clone(), Effect::External)));
        let questions = json!({"type": "object", "properties": {"questions": {"type": "array"}}});
        tools.push(Arc::new(Ask(ToolSpec { parameters: questions, ..spec("Ask") })));
        let policy = if self.asks { Policy::ask_everything() } else { Policy::default() };
        let agent = AgentBuilder::new(&job.folder, Box::new(client))
            .tools(tools)
            .shell(Arc::new(ScriptedShell::new()))
            .blobs(self.blobs.lock().unwrap().clone().unwrap())
            .policy(policy)
            .approver(job.approver)
            .compaction(Compaction::of(&settings.compaction.clone().unwrap_or_default()))
            .build()?;
        Ok(PreparedRun { agent, note: None, settings, instructions: Vec::new(), shell: None })
    }
    fn files(&self, folder: &Path) -> Result<Arc<dyn FsProvider>, Failure> {
        let files = LocalFs::new(folder, LocalFsOptions::default());
        Ok(Arc::new(files.map_err(|e| Failure::new(ErrorClass::Configuration, e.to_string()))?))
    }
    fn vacuum_thresholds(&self) -> VacuumThresholds {
        self.vacuum
    }
    async fn title(&self, _: &Settings, first_message: &str) -> Option<String> {
        self.title.as_ref().map(|title| title.replace("{message}", first_message))
    }
    async fn models(&self) -> Result<Models, Failure> {
        Ok(Models { models: Vec::new(), default: None })
    }
    async fn providers(&self) -> Result<Providers, Failure> {
        Ok(Providers { providers: Vec::new() })
    }
    async fn save_provider(&self, draft: ProviderDraft) -> Result<Providers, Failure> {
        Err(Failure::new(ErrorClass::Configuration, format!("No provider {} can be written here.", draft.name)))
    }

    async fn known_providers(&self) -> Result<KnownProviders, Failure> {
        Ok(KnownProviders { local: Vec::new(), known: Vec::new() })
    }

    async fn test_provider(&self, _: ProviderDraft) -> Result<ProviderTest, Failure> {
        Ok(ProviderTest { ok: false, checks: Vec::new(), models: Vec::new(), model: None })
    }

    async fn configuration(&self) -> Result<Configuration, Failure> {
        Ok(Configuration { config: json!({}) })
    }
}

/// A hub and everything around it.
pub(crate) struct Bed {
    pub(crate) hub: Hub,
    pub(crate) host: Arc<TestHost>,
    pub(crate) model: Model,
    pub(crate) home: Arc<tempfile::TempDir>,
    pub(crate) folder: Arc<tempfile::TempDir>,
    pub(crate) id: SessionId,
}

impl Bed {
    /// One session; the model answers at once.
    pub(crate) async fn new() -> Bed {
        Self::with(false, |_| {}).await
    }
    /// One session; the model says a piece whenever it is allowed to.
    pub(crate) async fn held() -> Bed {
        Self::with(true, |_| {}).await
    }
    pub(crate) async fn with(held: bool, change: impl FnOnce(&mut TestHost)) -> Bed {
        let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let model = Model::new(held);
        let mut host = TestHost {
            model: model.clone(),
            clock: Arc::new(Ticks(AtomicU64::new(1))),
            asks: false,
            refuses: Mutex::default(),
            title: None,
            vacuum: VacuumThresholds::default(),
            blobs: Mutex::default(),
        };
        change(&mut host);
        let host = Arc::new(host);
        let hub = hub(home.path(), &host);
        let mut bed = Bed { hub, host, model, home: Arc::new(home), folder: Arc::new(folder), id: "none".into() };
        bed.id = bed.session(None).await;
        bed
    }
    /// The server dies and is started again; runs that went on are cut.
    pub(crate) async fn restart(&mut self) {
        let stop = StopServer { force: true, when_idle: false };
        self.hub.stop(stop).await.unwrap();
        self.hub.stopped().await;
        self.hub = hub(self.home.path(), &self.host);
    }
    pub(crate) async fn session(&self, mode: Option<Mode>) -> SessionId {
        let settings = Settings { mode: mode.or(Some(Mode::Build)), ..Settings::default() };
        let folder = self.folder.path().to_str().unwrap().to_owned();
        self.hub.create(CreateSession { folder, name: None, settings }).await.unwrap().row.id
    }
    pub(crate) async fn send(&self, text: &str, delivery: Delivery) -> Sent {
        self.hub.send(&self.id, message(text, delivery)).await.unwrap()
    }
    /// Returns when nothing runs and nothing is about to; gives the session as it is then.
    pub(crate) async fn quiet(&self) -> SessionView {
        loop {
            self.hub.counts().wait_for(|counts| counts.runs == 0).await.unwrap();
            let view = self.hub.view(&self.id).await.unwrap();
            if self.hub.counts().borrow().runs == 0 {
                return view;
            }
        }
    }
    pub(crate) async fn log(&self) -> Vec<Envelope> {
        self.hub.store().log().read(&self.id, 0, 100_000).await.unwrap()
    }
    /// What the user said, in the order of the log.
    pub(crate) async fn said(&self) -> Vec<String> {
        let events = self.log().await;
        let said = events.iter().filter_map(|e| match &e.event {
            Event::MessageUser(message) => Some(text_of(&message.parts)),
            _ => None,
        });
        said.collect()
    }
    pub(crate) async fn types(&self) -> Vec<String> {
        self.log().await.iter().map(|e| e.event.type_name().to_owned()).collect()
    }
}

pub(crate) fn hub(home: &Path, host: &Arc<TestHost>) -> Hub {
    hub_with(home, host, HubOptions::default())
}

pub(crate) fn hub_with(home: &Path, host: &Arc<TestHost>, options: HubOptions) -> Hub {
    let store = Store::open(home).unwrap().store;
    *host.blobs.lock().unwrap() = Some(store.blobs());
    Hub::new(store, Arc::clone(host) as Arc<dyn Host>, options)
}

pub(crate) fn message(text: &str, delivery: Delivery) -> SendMessage {
    SendMessage { parts: vec![Part::text(text)], delivery, idempotency_id: None, terms: None }
}

pub(crate) fn edit() -> EditPending {
    EditPending { parts: None, delivery: None, before: None, last: false }
}

/// What waits, as text.
pub(crate) fn texts(pending: &[Pending]) -> Vec<String> {
    pending.iter().map(|pending| text_of(&pending.parts)).collect()
}

/// Lets every task that can go on do so.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// A client's picture of a session, built of what it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picture {
    /// Seqs of durable events, as they came.
    pub(crate) seqs: Vec<u64>,
    /// Text of each step, put together from snapshots and pieces, checked against what was recorded.
    pub(crate) texts: Vec<String>,
    open: String,
}

impl Picture {
    pub(crate) fn take_in(&mut self, news: &News) {
        let envelope = news.envelope();
        self.seqs.extend(envelope.seq);
        match &envelope.event {
            Event::StepStart(_) => self.open.clear(),
            Event::StepSnapshot(snapshot) => {
                let text = snapshot.blocks.iter().filter(|block| block.kind == OpenKind::Text);
                self.open = text.map(|block| block.text.as_str()).collect();
            }
            Event::TextDelta(delta) => {
                assert_eq!(delta.offset, self.open.len() as u64, "no gap and no double: {delta:?}");
                self.open.push_str(&delta.text);
            }
            Event::TextDone(done) => self.texts.push(done.text.clone()),
            _ => {}
        }
    }
    /// What the open step has shown so far.
    pub(crate) fn open(&self) -> &str {
        &self.open
    }
}

//! The running server: it takes connections, keeps what it saw, and decides what to answer.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{AbortHandle, JoinSet},
};

use crate::{
    ChatRequest, Prefix, Script, Turn,
    connection::{self, HttpRequest},
    gate::Signal,
    json::{self, Parsed},
    plan::{Context, Plan, TOKEN_BYTES, error_body, json_plan, plan},
    script::{Refuser, Responder},
    wire::{self, Violation},
};

/// Bytes of request bodies that are kept; beyond, the oldest are let go. A test sees all it sends, and a soak of days
/// does not fill the memory.
const KEPT_BYTES: usize = 256 << 20;
/// Requests, other requests and violations that are kept, each.
const KEPT_COUNT: usize = 10_000;
/// How long to wait when no connection can be taken, as when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running provider. Dropping it stops it and closes its connections.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Stop,
}

#[derive(Debug)]
enum Stop {
    Task(AbortHandle),
    Thread { quit: Option<oneshot::Sender<()>>, thread: Option<thread::JoinHandle<()>> },
}

impl Provider {
    /// Serves the script on a free port of 127.0.0.1, in tasks of the runtime that calls.
    pub async fn start(script: Script) -> io::Result<Provider> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script));
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Provider { address, shared, stop: Stop::Task(task.abort_handle()) })
    }

    /// The base URL to give to a client.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The chat requests so far, refused ones included, in order. The oldest are let go beyond 256 MiB of bodies;
    /// [`ChatRequest::n`] tells.
    pub fn requests(&self) -> Vec<Arc<ChatRequest>> {
        self.shared.state.read(|state| state.requests.iter().cloned().collect())
    }

    /// Requests to anything but `chat/completions`, as method and path.
    pub fn other_requests(&self) -> Vec<String> {
        self.shared.state.read(|state| state.others.iter().cloned().collect())
    }

    /// Every broken rule so far, in order.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.state.read(|state| state.violations.iter().cloned().collect())
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.shared.state.read(|state| state.connections)
    }

    /// How many requests and answers the client left before they were complete.
    pub fn hangups(&self) -> usize {
        self.shared.state.read(|state| state.hangups)
    }

    /// How many fixed turns were not used.
    pub fn unused_turns(&self) -> usize {
        self.shared.state.read(|state| state.turns.len())
    }

    /// Returns when at least so many chat requests have come in.
    pub async fn wait_for_requests(&self, count: usize) {
        self.shared.state.until(|state| state.chats >= count).await;
    }

    /// Returns when no answer is being given: every count is settled then.
    pub async fn wait_idle(&self) {
        self.shared.state.until(|state| state.answering == 0).await;
    }

    /// [`wait_for_requests`](Self::wait_for_requests) for plain threads: whether they came within `limit`.
    pub fn has_requests_within(&self, count: usize, limit: Duration) -> bool {
        self.shared.state.until_blocking(limit, |state| state.chats >= count)
    }

    /// [`wait_idle`](Self::wait_idle) for plain threads: whether it came to rest within `limit`.
    pub fn is_idle_within(&self, limit: Duration) -> bool {
        self.shared.state.until_blocking(limit, |state| state.answering == 0)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        match &mut self.stop {
            Stop::Task(task) => task.abort(),
            Stop::Thread { quit, thread } => {
                drop(quit.take());
                // A panic of the server's thread was reported when it happened; there is nothing to add here.
                let _ = thread.take().map(thread::JoinHandle::join);
            }
        }
    }
}

/// Serves the script from a thread of its own, for a caller without a runtime.
pub fn blocking(script: Script) -> io::Result<Provider> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut provider = runtime.block_on(Provider::start(script))?;
    let (quit, asked_to_quit) = oneshot::channel();
    let thread = thread::Builder::new().name("provider".to_owned()).spawn(move || {
        // The sender sends nothing; it is dropped to end this.
        let _ = runtime.block_on(asked_to_quit);
        runtime.shutdown_background();
    })?;
    provider.stop = Stop::Thread { quit: Some(quit), thread: Some(thread) };
    Ok(provider)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                shared.state.update(|state| state.connections += 1);
                connections.spawn(connection::serve(stream, Arc::clone(&shared)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// What all connections share.
pub(crate) struct Shared {
    responder: Option<Responder>,
    refusers: Vec<Refuser>,
    strict: bool,
    models: Value,
    window: Option<u64>,
    state: Signal<State>,
    /// Tells the ids of this provider from those of any other.
    salt: u64,
    ids: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("strict", &self.strict).field("window", &self.window).finish_non_exhaustive()
    }
}

struct State {
    turns: VecDeque<Turn>,
    requests: VecDeque<Arc<ChatRequest>>,
    kept_bytes: usize,
    chats: usize,
    others: VecDeque<String>,
    violations: VecDeque<Violation>,
    connections: usize,
    answering: usize,
    hangups: usize,
}

impl Shared {
    fn new(script: Script) -> Shared {
        let Script { turns, responder, refusers, strict, models, window } = script;
        let state = State {
            turns,
            requests: VecDeque::new(),
            kept_bytes: 0,
            chats: 0,
            others: VecDeque::new(),
            violations: VecDeque::new(),
            connections: 0,
            answering: 0,
            hangups: 0,
        };
        Shared {
            responder,
            refusers,
            strict,
            models,
            window,
            state: Signal::new(state),
            salt: RandomState::new().hash_one(0),
            ids: AtomicU64::new(0),
        }
    }

    /// Decides the response to a request and keeps the request.
    pub(crate) fn answer(&self, request: HttpRequest) -> Plan {
        let path = request.target.split(['?', '#']).next().unwrap_or_default();
        let route = path.strip_prefix("/v1").unwrap_or(path);
        if (request.method.as_str(), route) == ("POST", "/chat/completions") {
            return self.chat(request);
        }
        self.state.update(|state| push_bounded(&mut state.others, format!("{} {path}", request.method)));
        match (request.method.as_str(), route) {
            ("GET" | "HEAD", "/models") => json_plan(200, &self.model_list()),
            (_, "/models" | "/chat/completions") => {
                refusal(405, "this method is not offered here", "method_not_allowed")
            }
            _ => refusal(404, &format!("{path} is not offered here"), "not_found"),
        }
    }

    fn model_list(&self) -> Value {
        match &self.models {
            Value::Array(models) => json!({"object": "list", "data": models}),
            other => other.clone(),
        }
    }

    fn chat(&self, request: HttpRequest) -> Plan {
        let (mut request, prompt_tokens) = self.read(request);
        if let Some(first) = request.violations.first() {
            let all: Vec<_> = request.violations.iter().take(5).map(Violation::to_string).collect();
            let message = format!("the request breaks the rules: {}", all.join("; "));
            let body = error_body(&message, "invalid_request_error", first.rule, Some(&first.param));
            self.keep(request);
            return json_plan(400, &body);
        }
        if let Some(plan) = self.over_window(&request, prompt_tokens) {
            self.keep(request);
            return plan;
        }
        let refused = self.refusers.iter().find_map(|refuse| refuse(&request));
        let turn = refused.or_else(|| self.state.update(|state| state.turns.pop_front()));
        let turn = match (turn, &self.responder) {
            (Some(turn), _) => turn,
            (None, Some(respond)) => respond(&request),
            (None, None) => {
                let message = "the script has no turn left for this request";
                request.violations.push(violation("scenario_exhausted", message));
                self.keep(request);
                return json_plan(500, &error_body(message, "scenario_error", "scenario_exhausted", None));
            }
        };
        let request = self.keep(request);
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        plan(turn, &request, &Context { fresh_id: &|kind| self.fresh_id(kind), created, prompt_tokens })
    }

    /// Reads a chat request, numbers and checks it; with its estimated tokens.
    fn read(&self, request: HttpRequest) -> (ChatRequest, u64) {
        let HttpRequest { headers, body: raw, .. } = request;
        let text = std::str::from_utf8(&raw).map_err(|error| format!("the body is not UTF-8: {error}"));
        let (parsed, violations) = match text.and_then(|text| Ok((text, json::parse(text)?))) {
            Ok((text, parsed)) => {
                let found = if self.strict { wire::check(&parsed.body, text) } else { Vec::new() };
                (parsed, found)
            }
            Err(message) => (Parsed::default(), vec![violation("invalid_json", &message)]),
        };
        let Parsed { body, messages, tools } = parsed;
        let end_of_messages = end_of_messages(&raw, &messages);
        let prompt_tokens = (messages.len() + tools.len()).div_ceil(TOKEN_BYTES) as u64;
        let n = self.state.update(|state| {
            state.chats += 1;
            state.chats
        });
        let mut request = ChatRequest { n, headers, raw, body, violations, prefix: None, end_of_messages };
        request.prefix = self.state.read(|state| prefix(&request, &state.requests));
        (request, prompt_tokens)
    }

    fn over_window(&self, request: &ChatRequest, prompt: u64) -> Option<Plan> {
        let limit = |key: &str| request.body[key].as_u64();
        let output = limit("max_completion_tokens").or_else(|| limit("max_tokens")).unwrap_or(0);
        let window = self.window.filter(|&window| prompt.saturating_add(output) > window)?;
        let message = format!(
            "This model's maximum context length is {window} tokens, but the request needs {} tokens: {prompt} in the \
             messages and tools and {output} for the answer.",
            prompt.saturating_add(output)
        );
        let body = error_body(&message, "invalid_request_error", "context_length_exceeded", Some("messages"));
        Some(json_plan(400, &body))
    }

    fn keep(&self, request: ChatRequest) -> Arc<ChatRequest> {
        let request = Arc::new(request);
        self.state.update(|state| {
            for violation in &request.violations {
                push_bounded(&mut state.violations, violation.clone());
            }
            state.kept_bytes += request.raw.len();
            // Two requests at once may be kept in another order than they were numbered.
            let at = state.requests.partition_point(|known| known.n < request.n);
            state.requests.insert(at, Arc::clone(&request));
            while state.requests.len() > 1 && (state.kept_bytes > KEPT_BYTES || state.requests.len() > KEPT_COUNT) {
                let oldest = state.requests.pop_front();
                state.kept_bytes -= oldest.map_or(0, |oldest| oldest.raw.len());
            }
        });
        request
    }

    fn fresh_id(&self, kind: &str) -> String {
        format!("{kind}_{:016x}{:06x}", self.salt, self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Notes bytes that are no request.
    pub(crate) fn bad_http(&self, message: &str) {
        self.state.update(|state| push_bounded(&mut state.violations, violation("bad_http", message)));
    }

    /// Counts an answer from now until the result is dropped.
    pub(crate) fn answering(self: &Arc<Shared>) -> Answering {
        self.state.update(|state| state.answering += 1);
        Answering(Arc::clone(self))
    }

    pub(crate) fn hung_up(&self) {
        self.state.update(|state| state.hangups += 1);
    }
}

/// An answer that is being given.
pub(crate) struct Answering(Arc<Shared>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.state.update(|state| state.answering -= 1);
    }
}

fn violation(rule: &'static str, message: &str) -> Violation {
    Violation { rule, param: String::new(), message: message.to_owned() }
}

fn refusal(status: u16, message: &str, code: &str) -> Plan {
    json_plan(status, &error_body(message, "invalid_request_error", code, None))
}

fn push_bounded<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == KEPT_COUNT {
        list.pop_front();
    }
    list.push_back(item);
}

fn prefix(request: &ChatRequest, earlier: &VecDeque<Arc<ChatRequest>>) -> Option<Prefix> {
    let opening = request.opening();
    let before = earlier.iter().rev().find(|before| before.opening() == opening).or_else(|| earlier.back())?;
    let shared = request.raw.iter().zip(&before.raw).take_while(|(now, then)| now == then).count();
    Some(Prefix { shared, before: before.end_of_messages })
}

/// Where the last message of a body ends; the whole body where it has no messages.
fn end_of_messages(raw: &Bytes, messages: &Range<usize>) -> usize {
    if messages.is_empty() {
        return raw.len();
    }
    messages.start + raw[messages.start..messages.end - 1].trim_ascii_end().len()
}

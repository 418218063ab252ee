//! A conversation's connection to one model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hames_protocol::{
    BlobStore, ErrorClass, Failure, Head, Item, ModelClient, ModelInfo, ModelStream, ParameterLearned, PreparedInfo,
    RequestOptions,
};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Client, Response, Url};
use tokio::time::{Instant, timeout, timeout_at};

use super::Body;
use super::content::Reading;
use super::encode::{Encoder, Style, Wanted};
use super::learning::LearningStream;
use super::stream::{ChatStream, Draining, silent};
use crate::Endpoint;
use crate::error::Place;
use crate::http::{self, SharedBody};
use crate::learned::{LearnedStore, Learning, MemoryLearned, ModelAt};
use crate::url::{CHAT, resolve};

/// Bytes of an error body that are read: the longest real ones quote a whole request.
const MAX_ERROR_BODY_BYTES: usize = 256 * 1024;

/// How long to wait for an error body. The status is known by then; its words are only nicer.
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);

/// How long a request waits for the rest of the body before it, to get its connection rather than open another.
const DRAIN_PATIENCE: Duration = Duration::from_millis(25);

/// A model behind an endpoint that speaks Chat Completions.
pub struct ChatModel {
    endpoint: Endpoint,
    info: ModelInfo,
    blobs: Arc<dyn BlobStore>,
    place: Arc<Place>,
    url: Url,
    encoder: Encoder,
    client: Option<Client>,
    learning: Arc<Mutex<Learning>>,
    prepared: Option<Prepared>,
    draining: Draining,
    /// Whether this model's answers begin inside their reasoning, as the last one showed.
    begins_inside: Arc<AtomicBool>,
    /// Whether a response has come, so that a broken connection may be one the server had closed meanwhile.
    has_answered: bool,
}

/// A request as it will be sent. Its items are with the encoder.
struct Prepared {
    head: Arc<Head>,
    options: RequestOptions,
    body: Body,
}

impl std::fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatModel").field("endpoint", &self.endpoint).field("info", &self.info).finish_non_exhaustive()
    }
}

impl ChatModel {
    /// A connection for one conversation. `blobs` is where its images are. No connection is opened and no certificate
    /// read before the first request. Fails where the base URL is none.
    pub fn new(endpoint: Endpoint, info: ModelInfo, blobs: Arc<dyn BlobStore>) -> Result<Self, Failure> {
        let url = resolve(&endpoint.base_url, CHAT)?;
        let host = url.host_str().unwrap_or("").to_owned();
        let place = Arc::new(Place::new(&endpoint, &host, &info.model.id));
        let is_openai = host == "api.openai.com" || host.ends_with(".api.openai.com");
        let encoder = Encoder::new(Style {
            model: info.model.clone(),
            thinking: endpoint.thinking,
            replay_reasoning: endpoint.replay_reasoning,
            limit_name: if is_openai { "max_completion_tokens" } else { "max_tokens" },
            images: info.images != Some(false),
        });
        let at = ModelAt::new(&url, &info.model.id);
        let learning = Learning::new(at, info.model.clone(), Arc::new(MemoryLearned::default()));
        Ok(Self {
            endpoint,
            learning: Arc::new(Mutex::new(learning)),
            info,
            blobs,
            place,
            url,
            encoder,
            client: None,
            prepared: None,
            draining: Draining::default(),
            begins_inside: Arc::default(),
            has_answered: false,
        })
    }

    /// The same connection, with lessons of refusals recalled from and kept in `store`. Without one they are kept as long
    /// as the connection.
    pub fn learning_in(mut self, store: Arc<dyn LearnedStore>) -> Self {
        let at = ModelAt::new(&self.url, &self.info.model.id);
        let learning = Learning::new(at, self.info.model.clone(), store);
        self.narrow(learning.window());
        self.learning = Arc::new(Mutex::new(learning));
        self
    }

    /// The same connection with a window that a person says the model has, whatever was learned before. A refusal still
    /// makes it smaller.
    pub fn with_window(mut self, tokens: u64) -> Self {
        self.info.context_window = tokens;
        self
    }

    /// Lets the window be no larger than this; one that is unknown stays so.
    fn narrow(&mut self, window: Option<u64>) {
        self.info.context_window = window.map_or(self.info.context_window, |limit| limit.min(self.info.context_window));
    }

    fn learning(&self) -> MutexGuard<'_, Learning> {
        self.learning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renders a request by what is known now.
    async fn write(
        &mut self,
        head: Arc<Head>,
        items: &[Arc<Item>],
        options: RequestOptions,
    ) -> Result<PreparedInfo, Failure> {
        self.prepared = None;
        let lessons = self.learning().lessons().to_vec();
        let wanted = Wanted { head: &head, items, options: &options, lessons: &lessons };
        let (body, info) = self.encoder.prepare(wanted, self.blobs.as_ref(), self.place.as_ref()).await?;
        self.learning().written(self.encoder.sent().clone());
        self.prepared = Some(Prepared { head, options, body });
        Ok(info)
    }

    /// Renders the prepared request anew where something was learned since.
    async fn rewrite(&mut self) -> Result<(), Failure> {
        if !self.learning().is_outdated() {
            return Ok(());
        }
        let Some(Prepared { head, options, .. }) = self.prepared.take() else { return Ok(()) };
        let items = self.encoder.items();
        self.write(head, &items, options).await.map(drop)
    }

    /// The first response that is none of a lesson: a success, or a refusal nothing can be done about.
    async fn accepted(&mut self) -> Result<(Response, Instant), Failure> {
        loop {
            self.rewrite().await?;
            self.log_request();
            let started = Instant::now();
            let response = self.respond(started + self.endpoint.timeouts.first_byte).await?;
            self.has_answered = true;
            if response.status().is_success() {
                return Ok((response, started));
            }
            let mut failure = refusal(response, &self.place).await;
            if self.learning().refused(&mut failure) {
                continue;
            }
            let keep = self.learning().moved_on(&failure);
            if let Some(keep) = keep {
                let _ = tokio::task::spawn_blocking(keep).await;
            }
            return Err(failure);
        }
    }

    fn client(&mut self) -> Result<Client, Failure> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let client = http::client(&self.endpoint, &self.url, &self.place)?;
        Ok(self.client.insert(client).clone())
    }

    /// Sends the prepared request once.
    async fn attempt(&self, client: &Client, deadline: Instant) -> Result<Response, Attempt> {
        let Some(prepared) = &self.prepared else { return Err(Attempt::Failed(unprepared(&self.place))) };
        let body = reqwest::Body::wrap(SharedBody::new(prepared.body.clone()));
        let mut request = client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        if let (Some(name), Some(session)) = (&self.endpoint.session_header, &prepared.options.session) {
            request = request.header(name, session);
        }
        match timeout_at(deadline, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let stale = self.has_answered && error.is_request() && !error.is_connect() && !error.is_timeout();
                let failure = http::accident(&error, &self.place);
                Err(if stale { Attempt::Stale } else { Attempt::Failed(failure) })
            }
            Err(_) => Err(Attempt::Failed(silent(&self.place, false, &self.endpoint.timeouts))),
        }
    }

    async fn respond(&mut self, deadline: Instant) -> Result<Response, Failure> {
        let client = self.client()?;
        match self.attempt(&client, deadline).await {
            Err(Attempt::Stale) => {
                // The kept connection was closed by the server while the tools ran. Once more, on a new one.
                self.has_answered = false;
                self.attempt(&client, deadline).await.map_err(|attempt| match attempt {
                    Attempt::Failed(failure) => failure,
                    Attempt::Stale => unprepared(&self.place),
                })
            }
            Err(Attempt::Failed(failure)) => Err(failure),
            Ok(response) => Ok(response),
        }
    }

    /// How the content of the answer to the prepared request is read.
    fn reading(&self) -> Reading {
        let head = self.prepared.as_ref().map(|prepared| Arc::clone(&prepared.head));
        Reading {
            thinking_tags: self.endpoint.thinking_tags,
            begins_inside: self.begins_inside.load(Ordering::Relaxed),
            tools: head.filter(|head| self.endpoint.text_tool_calls && !head.tools.is_empty()),
        }
    }

    async fn wait_for_connection(&self) {
        let task = self.draining.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = timeout(DRAIN_PATIENCE, task).await;
        }
    }

    fn log_request(&self) {
        const TARGET: &str = "hames::request";
        if tracing::enabled!(target: TARGET, tracing::Level::DEBUG)
            && let Some(prepared) = &self.prepared
        {
            let body: Vec<u8> = prepared.body.frames.iter().flat_map(|frame| frame.iter().copied()).collect();
            let body = self.place.masked(&String::from_utf8_lossy(&body));
            tracing::debug!(target: TARGET, provider = %self.place.name, host = %self.place.host, %body, "request");
        }
    }
}

enum Attempt {
    Failed(Failure),
    /// The connection was kept from before and had gone.
    Stale,
}

fn unprepared(place: &Place) -> Failure {
    place.failure(ErrorClass::Internal, "a request was sent before it was prepared", "Please report this")
}

#[async_trait]
impl ModelClient for ChatModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn prepare(
        &mut self,
        head: &Arc<Head>,
        items: &[Arc<Item>],
        options: &RequestOptions,
    ) -> Result<PreparedInfo, Failure> {
        self.learning().begin();
        self.write(Arc::clone(head), items, options.clone()).await
    }

    async fn send(&mut self) -> Result<Box<dyn ModelStream>, Failure> {
        self.wait_for_connection().await;
        let (response, started) = self.accepted().await?;
        if let Some(coding) = compression(&response) {
            let what = format!("it compressed the answer ({coding}) although nobody asked for that");
            let next = "Switch compression off in the server or the proxy before it";
            return Err(self.place.failure(ErrorClass::StreamIncomplete, &what, next));
        }
        let stream = ChatStream::new(
            response,
            Arc::clone(&self.place),
            self.endpoint.timeouts,
            started,
            Arc::clone(&self.draining),
            self.reading(),
            Arc::clone(&self.begins_inside),
        );
        Ok(Box::new(LearningStream::new(stream, Arc::clone(&self.learning))))
    }

    fn fork(&self) -> Option<Box<dyn ModelClient>> {
        let other = Self::new(self.endpoint.clone(), self.info.clone(), Arc::clone(&self.blobs)).ok()?;
        Some(Box::new(Self { learning: Arc::clone(&self.learning), client: self.client.clone(), ..other }))
    }

    async fn limit_window(&mut self, tokens: u64, words: Option<&str>) {
        self.narrow(Some(tokens));
        let keep = self.learning().limit_window(tokens, words);
        if let Some(keep) = keep {
            let _ = tokio::task::spawn_blocking(keep).await;
        }
    }

    async fn window_holds(&mut self, tokens: u64) {
        let keep = self.learning().window_holds(tokens);
        if let Some(keep) = keep {
            let _ = tokio::task::spawn_blocking(keep).await;
        }
    }

    fn take_learned(&mut self) -> Vec<ParameterLearned> {
        self.learning().take_news()
    }
}

/// How a response is compressed, if it is. A stream that arrives in blocks would not be one, so none is asked for.
fn compression(response: &Response) -> Option<&str> {
    let coding = response.headers().get(CONTENT_ENCODING)?.to_str().ok()?.trim();
    (!coding.is_empty() && !coding.eq_ignore_ascii_case("identity")).then_some(coding)
}

/// The failure for a response that is no success, with as much of its body as comes in time.
pub(crate) async fn refusal(mut response: Response, place: &Place) -> Failure {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BODY_BYTES - body.len())]);
            if body.len() >= MAX_ERROR_BODY_BYTES {
                break;
            }
        }
    };
    let _ = timeout(ERROR_BODY_TIME, read).await;
    place.refused(response.status().as_u16(), response.headers(), &body)
}

//! `hames providers test`: a provider step by step — its address, its list, one token of an answer — until a step fails,
//! which is then named with what to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hames_model::{ChatModel, Endpoint, ModelList, list_models, model_names};
use hames_protocol::{
    Completion, ErrorClass, Failure, Head, Item, MemoryBlobs, ModelClient, ModelInfo, ModelRef, Part, RequestOptions,
    UserItem,
};
use serde_json::json;
use tokio::time::timeout;

use super::{Ground, key_text};
use crate::catalog::{describe, section};
use crate::commands::checks::{Check, State};
use crate::config::{Config, Origin, Provider, nearest, preset, shown_url};
use crate::engine::{endpoint, learned};
use crate::env::{Env, host_of};
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::text::{count, duration, failure_lines};
use crate::output::{Out, Style, clean};

/// How long a name may take to be looked up.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);
/// How long the answer may take to begin: somebody waits, and a model of one's own may have to be loaded.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
/// How long another address is tried that may be the one meant.
const GUESS_PATIENCE: Duration = Duration::from_secs(3);
/// Names that are offered for a model that is not there.
const NEAR_NAMES: usize = 3;

pub(super) fn run(ground: &Ground<'_>, name: &str, model: Option<String>, as_json: bool) -> Result<u8, Stop> {
    let config = &ground.config;
    let local = || preset(name).filter(|preset| preset.key_var.is_none()).map(Provider::local);
    let provider = config.providers.iter().find(|provider| provider.name == name).cloned().or_else(local);
    let Some(provider) = provider else {
        ground.must_be_in_file(name)?;
        return Err(Stop::usage(format!("there is no provider \"{}\"", clean::line(name))));
    };
    let mut checks = Checks { out: (!as_json).then(Out::new), style: Style::for_stdout(ground.env), all: Vec::new() };
    if let Some(out) = &mut checks.out {
        out.line(format!("{}  {}", clean::line(name), clean::line(&shown_url(&provider.base_url))))?;
    }
    let test = Test::of(provider, config, &ground.home, ground.env);
    let asked = test.run(model, |check| checks.add(check));
    crate::commands::runtime()?.block_on(asked)?;
    let ok = checks.all.iter().all(|check| check.state != State::Bad);
    match checks.out {
        Some(out) => out.finish()?,
        None => {
            let all: Vec<_> = checks.all.iter().map(Check::json).collect();
            let mut out = Out::new();
            out.json(&json!({"provider": name, "ok": ok, "checks": all}))?;
            out.finish()?;
        }
    }
    Ok(if ok { exit::COMPLETE } else { exit::MODEL })
}

/// What was found so far.
struct Checks {
    /// Where each is printed as it comes; none where all come at the end.
    out: Option<Out>,
    style: Style,
    all: Vec<Check>,
}

impl Checks {
    /// Adds one, and says whether to go on.
    fn add(&mut self, check: Check) -> Result<bool, Stop> {
        if let Some(out) = &mut self.out {
            check.print(self.style, out)?;
            std::io::Write::flush(out)?;
        }
        let goes_on = check.state != State::Bad;
        self.all.push(check);
        Ok(goes_on)
    }
}

/// A provider under test.
pub(crate) struct Test<'a> {
    config: &'a Config,
    home: &'a Home,
    provider: Provider,
    endpoint: Endpoint,
    /// Whether it is still being written: then what to do is said of the form, not of the command.
    is_draft: bool,
}

/// What a test found besides its steps.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Ids of the models it lists.
    pub(crate) models: Vec<String>,
    /// The model that was asked.
    pub(crate) model: Option<String>,
}

impl<'a> Test<'a> {
    /// Of a provider of this configuration.
    pub(crate) fn of(provider: Provider, config: &'a Config, home: &'a Home, env: &Env) -> Self {
        Self { config, home, endpoint: endpoint(&provider, config, env), provider, is_draft: false }
    }

    /// The same for one that is being written.
    pub(crate) fn of_draft(self) -> Self {
        Self { is_draft: true, ..self }
    }

    /// Takes one step after the other and tells each as it is done, until one fails.
    pub(crate) async fn run(
        &self,
        model: Option<String>,
        mut tell: impl FnMut(Check) -> Result<bool, Stop>,
    ) -> Result<Found, Stop> {
        let mut found = Found::default();
        if !tell(self.key())? || !tell(self.address().await)? {
            return Ok(found);
        }
        let began = Instant::now();
        let asked = list_models(&self.endpoint).await;
        if !tell(self.listed(&asked, began.elapsed()).await)? {
            return Ok(found);
        }
        if let (Ok(list), false) = (&asked, self.is_draft) {
            self.config.shelf.keep_list(&self.provider, list, now_ms());
        }
        let list = asked.unwrap_or_default();
        found.models = list.models.iter().map(|model| model.id.clone()).collect();
        let Some(id) = model.or_else(|| self.model(&list)) else {
            let remedy =
                self.remedy("name a model", || format!("name one: hames providers test {} MODEL", self.provider.name));
            tell(Check::bad("model", "it has no default model and lists none", remedy))?;
            return Ok(found);
        };
        found.model = Some(id.clone());
        tell(self.known(&id, &list))?;
        let began = Instant::now();
        let answer = self.ask(&id).await;
        tell(self.answered(&id, &list, answer, began.elapsed()).await)?;
        Ok(found)
    }

    /// What to do, said of the form or of the command.
    fn remedy(&self, in_form: &str, by_command: impl FnOnce() -> String) -> String {
        if self.is_draft { in_form.to_owned() } else { by_command() }
    }

    fn key_text(&self) -> String {
        match &self.provider.key {
            // Nothing of a key that was just typed is shown.
            Some(key) if self.is_draft && matches!(key.origin, Origin::File(_)) => "a key".into(),
            _ => key_text(&self.provider, self.config),
        }
    }

    fn key(&self) -> Check {
        let what = self.key_text();
        if self.provider.base_url.is_empty() {
            let remedy =
                self.remedy("say where it is", || format!("hames providers edit {} --url URL", self.provider.name));
            return Check::bad("url", "it has no base_url", remedy);
        }
        match &self.provider.missing_key_var {
            Some(var) => {
                let remedy = self.remedy("give a key, or export it before the server starts", || {
                    format!("export {var}, or set another key: hames providers edit")
                });
                Check::bad("key", what, remedy)
            }
            None => Check::good("key", what),
        }
    }

    /// Whether the host's name leads anywhere. Behind a proxy that is the proxy's business.
    async fn address(&self) -> Check {
        let url = match hames_model::chat_url(&self.provider.base_url) {
            Ok(url) => url,
            Err(failure) => {
                let remedy = self.remedy("correct it", || "correct it: hames providers edit".into());
                return Check::bad("url", failure.message, remedy);
            }
        };
        let (scheme, rest) = url.split_once("://").unwrap_or(("", &url));
        if let Some(proxy) = &self.endpoint.proxy {
            return Check::good("address", format!("through the proxy {}", shown_url(proxy.url.expose())));
        }
        let host = host_of(rest).to_owned();
        let authority = rest.split('/').next().unwrap_or("");
        let port = authority.rsplit(']').next().and_then(|end| end.rsplit_once(':')?.1.parse().ok());
        let port: u16 = port.unwrap_or(if scheme == "https" { 443 } else { 80 });
        let began = Instant::now();
        let looked_up = timeout(LOOKUP_PATIENCE, tokio::net::lookup_host((host.as_str(), port))).await;
        let remedy = "check the spelling of base_url, and the network; behind a company's proxy set HTTPS_PROXY";
        match looked_up {
            Ok(Ok(mut found)) => match found.next() {
                Some(at) => {
                    Check::good("address", format!("{host} is {} ({})", at.ip(), duration(millis(began.elapsed()))))
                }
                None => Check::bad("address", format!("{host} has no address"), remedy),
            },
            Ok(Err(e)) => Check::bad("address", format!("{host} has no address ({e})"), remedy),
            Err(_) => Check::bad("address", format!("the address of {host} cannot be looked up in time"), remedy),
        }
    }

    async fn listed(&self, asked: &Result<ModelList, Failure>, took: Duration) -> Check {
        match asked {
            Ok(list) => {
                let server = list.server.map(|kind| format!(" ({})", kind.name())).unwrap_or_default();
                let found = count(list.models.len() as u64);
                Check::good("models", format!("{found} listed{server} ({})", duration(millis(took))))
            }
            // Nothing further can work.
            Err(failure) if matches!(failure.class, ErrorClass::Connection | ErrorClass::Timeout) => {
                self.failed("models", failure).await
            }
            Err(failure) if failure.class != ErrorClass::Auth && self.other_address().await.is_some() => {
                self.failed("models", &Failure { class: ErrorClass::WrongBaseUrl, ..failure.clone() }).await
            }
            // Some have no list, or one only for other keys; whether it answers is what counts.
            Err(failure) => Check::odd("models", format!("no list: {}", words(failure))),
        }
    }

    /// The model in question: the default one if it is of this provider, else the first it lists.
    fn model(&self, list: &ModelList) -> Option<String> {
        let default = self.config.choose(None, None).ok().map(|chosen| chosen.info.model);
        let default = default.filter(|model| model.provider == self.provider.name).map(|model| model.id);
        let known = self.provider.default_model.map(str::to_owned);
        let declared = self.provider.models.first().map(|model| model.id.clone());
        let first = list.loaded.first().or_else(|| {
            list.models.iter().map(|model| &model.id).find(|id| !id.to_ascii_lowercase().contains("embed"))
        });
        default.or(known).or(declared).or_else(|| first.cloned())
    }

    fn known(&self, id: &str, list: &ModelList) -> Check {
        let described = describe(&self.provider, id, None, &self.config.shelf);
        let window = format!(
            "{}: window {} tokens ({})",
            clean::line(id),
            count(described.window.value),
            described.window.source.text(now_ms())
        );
        let is_listed = list.models.is_empty() || list.models.iter().any(|model| model.id == id);
        if is_listed {
            Check::good("model", window)
        } else {
            Check::odd("model", format!("{window}; it is not listed"))
        }
    }

    /// One token of an answer.
    async fn ask(&self, id: &str) -> Result<Completion, Failure> {
        let mut endpoint = self.endpoint.clone();
        endpoint.timeouts.first_byte = endpoint.timeouts.first_byte.min(ANSWER_PATIENCE);
        let reference = ModelRef { provider: self.provider.name.clone(), id: id.to_owned() };
        let info = ModelInfo::new(reference, 8_192, 1);
        let mut model =
            ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default()))?.learning_in(learned(self.home));
        let head = Arc::new(Head { tools: Vec::new(), system: "Answer with one word.".into() });
        let question = Item::User(UserItem { parts: vec![Part::text("Say ok.")], ..UserItem::default() });
        let options = RequestOptions { max_output_tokens: Some(1), ..RequestOptions::default() };
        model.prepare(&head, &[Arc::new(question)], &options).await?;
        let mut stream = model.send().await?;
        while stream.next().await.is_some() {}
        let done = stream.finish();
        match done.failure.clone() {
            Some(failure) => Err(failure),
            None => Ok(done),
        }
    }

    async fn answered(&self, id: &str, list: &ModelList, answer: Result<Completion, Failure>, took: Duration) -> Check {
        match answer {
            Ok(done) => {
                let first = done.timings.first_token_ms.unwrap_or_else(|| millis(took));
                let tokens = crate::output::text::tokens(&done.usage.unwrap_or_default());
                let tokens = tokens.map(|tokens| format!("; {tokens}")).unwrap_or_default();
                Check::good("answer", format!("the first token came after {}{tokens}", duration(first)))
            }
            // A model that thinks first has used its one token up, which is an answer too.
            Err(failure) if ran_out(&failure) => Check::good(
                "answer",
                format!("it answers ({}); it thinks first, so one token was too few", duration(millis(took))),
            ),
            Err(failure) if failure.class == ErrorClass::ModelNotFound => {
                let near = nearest(id, list.models.iter().map(|model| model.id.as_str()), NEAR_NAMES);
                let remedy = match near.as_slice() {
                    [] => self.remedy("choose one that it lists", || "`hames models` lists what it has".into()),
                    near => format!(
                        "did you mean {}?",
                        near.iter().map(|id| clean::line(id)).collect::<Vec<_>>().join(", ")
                    ),
                };
                Check::bad("answer", words(&failure), remedy)
            }
            Err(failure) => self.failed("answer", &failure).await,
        }
    }

    /// A failure with what can be found out about it.
    async fn failed(&self, name: &'static str, failure: &Failure) -> Check {
        let check = Check { state: State::Bad, ..Check::good(name, words(failure)) };
        match failure.class {
            ErrorClass::Auth => {
                let key = self.key_text();
                check.with_remedy(self.remedy(&format!("it was sent with {key}; give another"), || {
                    format!(
                        "it was sent with {key}; set another: hames providers edit {} --key-stdin",
                        self.provider.name
                    )
                }))
            }
            ErrorClass::WrongBaseUrl => match self.other_address().await {
                Some(url) => check.with_remedy(self.remedy(&format!("{url} has a model list; take that"), || {
                    format!("{url} has a model list: hames providers edit {} --url {url}", self.provider.name)
                })),
                None => check,
            },
            ErrorClass::Connection if self.speaks_plainly().await => {
                let url = shown_url(&self.without_tls());
                check.with_remedy(self.remedy(&format!("it answers without TLS; take {url}"), || {
                    format!("it answers without TLS: hames providers edit {} --url {url}", self.provider.name)
                }))
            }
            ErrorClass::Connection if self.endpoint.proxy.is_some() => {
                check.with_remedy("the proxy is between: check HTTPS_PROXY, HTTP_PROXY and NO_PROXY")
            }
            _ => check,
        }
    }

    fn without_tls(&self) -> String {
        self.provider.base_url.replacen("https://", "http://", 1)
    }

    /// Whether a server that is spoken to with TLS has a model list without it. Never tried where a key would go out into
    /// the open.
    async fn speaks_plainly(&self) -> bool {
        if !self.provider.base_url.starts_with("https://") || section(&self.provider).is_some() {
            return false;
        }
        let endpoint = Endpoint::new(self.provider.name.clone(), self.without_tls());
        timeout(GUESS_PATIENCE, model_names(&endpoint)).await.is_ok_and(|list| list.is_ok())
    }

    /// Another address on the same host that has a model list, where the one that is set has none.
    async fn other_address(&self) -> Option<String> {
        // A known host has one address, and a query would have to be guessed along.
        let base = self.provider.base_url.split(['?', '#']).next()?.trim_end_matches('/');
        let (scheme, rest) = base.split_once("://")?;
        let host = rest.split('/').next()?;
        let up = rest.rsplit_once('/').map(|(up, _)| up).filter(|up| up.len() > host.len());
        let mut guesses: Vec<String> = up.iter().map(|up| format!("{scheme}://{up}")).collect();
        guesses.extend(["/v1", "/api/v1", "/openai/v1", "/api"].map(|path| format!("{scheme}://{host}{path}")));
        guesses.retain(|guess| guess != base && section(&self.provider).is_none());
        for url in guesses {
            let endpoint = Endpoint { base_url: url.clone(), ..self.endpoint.clone() };
            let list = timeout(GUESS_PATIENCE, model_names(&endpoint)).await;
            if list.is_ok_and(|list| list.is_ok_and(|list| !list.models.is_empty())) {
                return Some(shown_url(&url));
            }
        }
        None
    }
}

fn words(failure: &Failure) -> String {
    let lines = failure_lines(failure);
    lines.join("\n").trim_start_matches("hames: ").to_owned()
}

/// Refused because one token left none for an answer.
fn ran_out(failure: &Failure) -> bool {
    let theirs = failure.provider_message.as_deref().unwrap_or("").to_ascii_lowercase();
    theirs.contains("output limit was reached") || theirs.contains("max_tokens or model output limit")
}

fn now_ms() -> u64 {
    use hames_agent::{Clock, SystemClock};
    SystemClock.now_ms()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

//! The connection: one client per conversation, its sockets kept between steps.
//!
//! Nothing is inherited: no proxy from the environment, no process-wide crypto provider, no redirect (a key would travel
//! with it). An http endpoint loads no certificates, because starting must take a few milliseconds.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use hames_protocol::{ErrorClass, Failure};
use http_body::{Frame, SizeHint};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use crate::Endpoint;
use crate::chat::Body;
use crate::error::Place;

/// Builds the client for one endpoint.
pub(crate) fn client(endpoint: &Endpoint, url: &Url, place: &Place) -> Result<Client, Failure> {
    let proxy = endpoint.proxy.as_ref().filter(|_| !is_loopback(url));
    let tls = if url.scheme() == "https" || proxy.is_some() { trusting(place)? } else { trusting_nobody(place)? };
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(endpoint.timeouts.connect)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(1)
        .user_agent(concat!("hames/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers(endpoint, place)?);
    if let Some(proxy) = proxy {
        let proxy = reqwest::Proxy::all(proxy.url.expose())
            .map_err(|_| place.failure(ErrorClass::Configuration, "its proxy is not a URL", "Correct or remove it"))?;
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(|error| {
        place.failure(
            ErrorClass::Configuration,
            &format!("no HTTP client: {}", root_cause(&error)),
            "Check its settings",
        )
    })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

fn headers(endpoint: &Endpoint, place: &Place) -> Result<HeaderMap, Failure> {
    let bad = |what: &str| {
        place.failure(
            ErrorClass::Configuration,
            &format!("{what} cannot be sent in a header"),
            "Check for stray characters",
        )
    };
    let mut map = HeaderMap::new();
    map.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(key) = endpoint.api_key.as_ref().filter(|key| !key.expose().trim().is_empty()) {
        let value = HeaderValue::from_str(&format!("Bearer {}", key.expose().trim()));
        let mut value = value.map_err(|_| bad("its api_key"))?;
        value.set_sensitive(true);
        map.insert(AUTHORIZATION, value);
    }
    for (name, value) in &endpoint.headers {
        let header = name.parse::<HeaderName>().map_err(|_| bad(&format!("the header name \"{name}\"")))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| bad(&format!("the value of the header \"{name}\"")))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// A configuration that trusts what the platform trusts, read once per process and only when first needed.
fn trusting(place: &Place) -> Result<ClientConfig, Failure> {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let config = tls_builder()
        .and_then(|builder| builder.with_platform_verifier())
        .map(|builder| builder.with_no_client_auth())
        .map_err(|error| {
            place.failure(
                ErrorClass::Configuration,
                &format!("no certificates to trust ({error})"),
                "Install the system's CA certificates (package ca-certificates)",
            )
        })?;
    Ok(CONFIG.get_or_init(|| config).clone())
}

/// A configuration for endpoints without TLS: it costs nothing and trusts nobody.
fn trusting_nobody(place: &Place) -> Result<ClientConfig, Failure> {
    let builder =
        tls_builder().map_err(|error| place.failure(ErrorClass::Internal, &error.to_string(), "Please report this"))?;
    Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
}

/// The failure for a request that got no response, or a body that broke.
pub(crate) fn accident(error: &reqwest::Error, place: &Place) -> Failure {
    let cause = place.masked(&root_cause(error));
    if error.is_connect() && error.is_timeout() {
        let what = "no connection came about in time";
        return place.failure(ErrorClass::Timeout, what, "Check that it can be reached, and try again").retryable();
    }
    if is_certificate_trouble(&cause) {
        let what = format!("its certificate is not trusted ({cause})");
        return place.failure(ErrorClass::Connection, &what, "Check base_url and the system's CA certificates");
    }
    if error.is_connect()
        && let Some(port) = error.url().filter(|url| is_loopback(url)).and_then(Url::port_or_known_default)
        && is_refused(error)
    {
        // Nobody will listen a moment later either: a server of one's own is started by hand.
        let what = format!("no server listens on port {port} of this machine (connection refused)");
        let next =
            "Start the model server there (such as llama-server, ollama serve or vllm serve), or correct base_url";
        return place.failure(ErrorClass::Connection, &what, next);
    }
    if error.is_connect() {
        let what = format!("cannot be reached ({cause})");
        let next = "Check base_url, and that the server runs";
        return place.failure(ErrorClass::Connection, &what, next).retryable();
    }
    place.failure(ErrorClass::Connection, &format!("the connection broke ({cause})"), "Try again").retryable()
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn is_certificate_trouble(cause: &str) -> bool {
    ["certificate", "UnknownIssuer", "CertNotValid"].iter().any(|word| cause.contains(word))
}

/// The innermost reason: the outer ones only say that something failed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match std::ptr::addr_eq(cause, error) {
        // Without a source the message would name the address, with whatever its query holds.
        true if error.source().is_none() => "no further reason given".to_owned(),
        _ => cause.to_string(),
    }
}

/// A body of shared pieces with an exact length: nothing is joined, and a second attempt shares them too.
pub(crate) struct SharedBody {
    body: Body,
    next: usize,
    left: u64,
}

impl SharedBody {
    pub(crate) fn new(body: Body) -> Self {
        let left = body.len;
        Self { body, next: 0, left }
    }
}

impl http_body::Body for SharedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = self.body.frames.get(self.next).cloned();
        self.next += 1;
        Poll::Ready(frame.map(|bytes| {
            self.left -= bytes.len() as u64;
            Ok(Frame::data(bytes))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

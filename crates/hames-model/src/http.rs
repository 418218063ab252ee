//! The connection: one client per conversation, its sockets kept between steps.
//!
//! Nothing is inherited (see [`hames_http`]). An http endpoint loads no certificates, because starting must take a few
//! milliseconds.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hames_http::{Trust, is_certificate_trouble, is_refused, root_cause};
use hames_protocol::{ErrorClass, Failure};
use http_body::{Frame, SizeHint};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use crate::Endpoint;
use crate::chat::Body;
use crate::error::Place;

/// Builds the client for one endpoint.
pub(crate) fn client(endpoint: &Endpoint, url: &Url, place: &Place) -> Result<Client, Failure> {
    let proxy = endpoint.proxy.as_ref().filter(|_| !is_loopback(url));
    let trust = if url.scheme() == "https" || proxy.is_some() { Trust::Platform } else { Trust::Nobody };
    let mut builder = hames_http::client(trust)
        .map_err(|error| place.failure(ErrorClass::Configuration, &error.to_string(), error.next()))?
        .connect_timeout(endpoint.timeouts.connect)
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

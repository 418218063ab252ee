//! One GET, from an address to a body: every hop checked, everything bounded.
//!
//! Names are looked up here and nowhere else, each address that comes back is checked, and the connection is made to
//! exactly these addresses: a name that has another address a moment later leads nowhere else. Redirects are followed by
//! hand, so each is checked like an address the model wrote.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hames_http::{Trust, cause_of, is_certificate_trouble, is_refused, root_cause};
use hames_tools::{ToolCx, ToolFailure};
use reqwest::dns::{Addrs, Name as DnsName, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use reqwest::{Client, Response, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::address::{Border, Name};
use super::body::{Collector, MediaType, Packing, Shown, Taken};
use super::target::Target;
use crate::files::Content;

/// Bytes of a body that are read, unpacked.
pub(super) const MAX_BODY: usize = 5 * 1024 * 1024;

/// Bytes of a body that only explains an error.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// Bytes that tell what a body is.
const HEAD: usize = 8 * 1024;

/// What everything together may take: looking up, connecting, redirects, the body.
pub(super) const TIME: Duration = Duration::from_secs(20);

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// What is asked for, in order of what reads best.
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5";

/// What came back.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Where it came from in the end.
    pub(super) target: Target,
    /// Redirects to another host, or away from TLS, one sentence each.
    pub(super) redirects: Vec<String>,
    pub(super) status: StatusCode,
    pub(super) media: MediaType,
    /// Unpacked; empty where the type alone says that it is not shown.
    pub(super) body: Vec<u8>,
    /// Bytes of the whole, where they are known.
    pub(super) size: Option<u64>,
    /// Why the body is not the whole.
    pub(super) cut: Option<String>,
}

type LookedUp = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Turns a name into addresses.
pub(super) type Lookup = Arc<dyn Fn(String) -> LookedUp + Send + Sync>;

/// Asks the system.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    })
}

/// Fetches pages. Clients are made when first needed.
pub(super) struct Fetcher {
    border: Arc<Border>,
    lookup: Lookup,
    proxy: Option<String>,
    time: Duration,
    with_tls: OnceLock<Client>,
    without_tls: OnceLock<Client>,
}

impl Fetcher {
    pub(super) fn new(border: Border, proxy: Option<String>, lookup: Lookup, time: Duration) -> Self {
        let border = Arc::new(border);
        Self { border, lookup, proxy, time, with_tls: OnceLock::new(), without_tls: OnceLock::new() }
    }

    /// What one fetch may take.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// Fetches a page, or says why not. Whatever the status, a response is one.
    pub(super) async fn fetch(&self, first: Target, cx: &ToolCx) -> Result<Fetched, ToolFailure> {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(ToolFailure::cancelled()),
            fetched = self.follow(first, cx) => fetched,
        }
    }

    async fn follow(&self, first: Target, cx: &ToolCx) -> Result<Fetched, ToolFailure> {
        let deadline = Instant::now() + self.time;
        let mut target = first;
        let mut redirects = Vec::new();
        for _ in 0..=MAX_REDIRECTS {
            target.check(&self.border).map_err(|bad| refused(&target, &bad.to_string(), &redirects))?;
            let response = self.send(&target, deadline).await?;
            let Some(location) = redirect(&response) else {
                return self.read(target, redirects, response, deadline).await;
            };
            let next = target.redirected(&location).map_err(|bad| {
                let location: String = location.chars().filter(|c| !c.is_control()).take(200).collect();
                ToolFailure::failed(format!("{} redirects to {location}, which {bad}", target.url))
            })?;
            if next.host != target.host {
                cx.may_reach(&next.host)
                    .map_err(|why| ToolFailure::refused(format!("{} redirects to {}: {why}", target.url, next.url)))?;
                redirects.push(format!("redirected from {} to {}", target.host, next.host));
            } else if target.url.scheme() == "https" && next.url.scheme() == "http" {
                redirects.push(format!("redirected from https to http at {}", next.host));
            }
            target = next;
        }
        Err(ToolFailure::failed(format!(
            "more than {MAX_REDIRECTS} redirects, the last to {}; fetch what you need from there by its own address",
            target.url
        )))
    }

    async fn send(&self, target: &Target, deadline: Instant) -> Result<Response, ToolFailure> {
        let client = self.client(target)?;
        let request = client.get(target.url.clone()).header(ACCEPT, ACCEPTED).header(ACCEPT_ENCODING, "gzip");
        match timeout_at(deadline, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(accident(&error, target)),
            Err(_) => Err(ToolFailure::failed(format!(
                "{} did not answer within {} s; try again later, or use another source",
                target.host,
                self.time.as_secs()
            ))),
        }
    }

    fn client(&self, target: &Target) -> Result<Client, ToolFailure> {
        let tls_to_proxy = self.proxy.as_deref().is_some_and(|proxy| proxy.starts_with("https:"));
        let tls = target.url.scheme() == "https" || tls_to_proxy;
        let (slot, trust) = if tls { (&self.with_tls, Trust::Platform) } else { (&self.without_tls, Trust::Nobody) };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let failed = |why: &str, next: &str| ToolFailure::failed(format!("nothing can be fetched: {why}. {next}."));
        let mut builder = hames_http::client(trust).map_err(|error| failed(&error.to_string(), error.next()))?;
        builder = match &self.proxy {
            // The proxy looks names up, and only it can check what they lead to.
            Some(proxy) => builder.proxy(
                reqwest::Proxy::all(proxy)
                    .map_err(|_| failed("the proxy's address is no URL", "Correct or remove it"))?,
            ),
            None => {
                builder.dns_resolver(Arc::new(Checked { border: self.border.clone(), lookup: self.lookup.clone() }))
            }
        };
        let client = builder.build().map_err(|error| failed(&root_cause(&error), "Please report this"))?;
        Ok(slot.get_or_init(|| client).clone())
    }

    async fn read(
        &self,
        target: Target,
        redirects: Vec<String>,
        mut response: Response,
        deadline: Instant,
    ) -> Result<Fetched, ToolFailure> {
        let status = response.status();
        let media = MediaType::parse(header(response.headers(), CONTENT_TYPE).unwrap_or_default());
        let packing =
            Packing::parse(header(response.headers(), CONTENT_ENCODING).unwrap_or_default()).map_err(|packing| {
                ToolFailure::failed(format!(
                    "{} came packed as {packing}, which was not asked for; use another source",
                    target.url
                ))
            })?;
        let size = response.content_length().filter(|_| packing == Packing::Plain);
        let mut fetched = Fetched { target, redirects, status, media, body: Vec::new(), size, cut: None };
        let shown = fetched.media.shown();
        if shown == Shown::Named && status.is_success() {
            return Ok(fetched);
        }
        let limit = if status.is_success() { MAX_BODY } else { MAX_ERROR_BODY };
        let mut body = Collector::new(packing, limit);
        let mut looked_at = shown != Shown::Unknown;
        fetched.cut = loop {
            let piece = match timeout_at(deadline, response.chunk()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(format!("the connection broke: {}", root_cause(&error))),
                Err(_) => break Some(format!("the rest did not come within {} s", self.time.as_secs())),
            };
            match body.take(&piece) {
                Taken::All => {}
                Taken::Full => break Some(format!("the rest, after {limit} bytes, is not read")),
                Taken::Damaged => break Some("the rest cannot be unpacked".into()),
            }
            if !looked_at && body.len() >= HEAD {
                looked_at = true;
                if !matches!(Content::of(body.so_far()), Content::Text(_)) {
                    break Some("it is no text".into());
                }
            }
        };
        let (bytes, whole) = body.finish();
        if !whole && fetched.cut.is_none() {
            fetched.cut = Some("its end is missing".into());
        }
        fetched.body = bytes;
        Ok(fetched)
    }
}

/// Where a response sends whoever asked; `None` where it is no redirect that can be followed.
fn redirect(response: &Response) -> Option<String> {
    let follows = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| follows)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn refused(target: &Target, why: &str, redirects: &[String]) -> ToolFailure {
    let by = if redirects.is_empty() { String::new() } else { format!(" ({})", redirects.join("; ")) };
    ToolFailure::refused(format!("{}{by} {why}", target.url))
}

/// The failure for a request that got no response.
fn accident(error: &reqwest::Error, target: &Target) -> ToolFailure {
    if let Some(closed) = cause_of::<Closed>(error) {
        return ToolFailure::refused(format!("{} is not fetched: {closed}", target.url));
    }
    let host = &target.host;
    if let Some(NotFound(why)) = cause_of::<NotFound>(error) {
        return ToolFailure::failed(format!("{host} has no address ({why}); check the name"));
    }
    let cause = root_cause(error);
    let port = target.url.port_or_known_default().unwrap_or_default();
    ToolFailure::failed(if is_certificate_trouble(&cause) {
        format!("the certificate of {host} is not trusted ({cause}), so nothing was fetched; use another source")
    } else if is_refused(error) {
        format!("nothing listens at {host}, port {port} (connection refused)")
    } else if error.is_connect() {
        format!("no connection to {host}, port {port} ({cause}); check scheme and port, or try again later")
    } else {
        format!("{host} gave no answer that can be read ({cause}); try again later, or use another source")
    })
}

/// Addresses a name has that may not be spoken to.
#[derive(Debug, thiserror::Error)]
#[error("{name} resolves to {ip}, {what}; only hosts of the public internet are")]
struct Closed {
    name: String,
    ip: IpAddr,
    what: &'static str,
}

/// A name without an address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotFound(String);

/// Looks names up and lets only addresses through that may be spoken to.
struct Checked {
    border: Arc<Border>,
    lookup: Lookup,
}

impl Checked {
    async fn addresses(
        border: &Border,
        lookup: &Lookup,
        name: String,
    ) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
        let found = lookup(name.clone()).await.map_err(|error| NotFound(error.to_string()))?;
        if found.is_empty() {
            return Err(NotFound("the look-up gave none".into()).into());
        }
        let plain = name.trim_end_matches('.').to_lowercase();
        let worth = if plain.parse::<IpAddr>().is_ok() { Name::Open } else { border.name(&plain) };
        // One that is closed is enough: a name that leads inside and outside is not to be trusted with either.
        for ip in &found {
            if let Some(what) = border.resolved(worth, *ip) {
                return Err(Closed { name, ip: *ip, what }.into());
            }
        }
        Ok(Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0))))
    }
}

impl Resolve for Checked {
    fn resolve(&self, name: DnsName) -> Resolving {
        let (border, lookup) = (self.border.clone(), self.lookup.clone());
        Box::pin(async move { Self::addresses(&border, &lookup, name.as_str().to_owned()).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(addresses: &'static [&'static str]) -> Lookup {
        Arc::new(move |_| Box::pin(async move { Ok(addresses.iter().map(|ip| ip.parse().unwrap()).collect()) }))
    }

    async fn resolved(allowed: &[&str], name: &str, addresses: &'static [&'static str]) -> Result<Vec<IpAddr>, String> {
        let border = Border::new(allowed.iter().map(|text| text.parse().unwrap()).collect());
        let found = Checked::addresses(&border, &found(addresses), name.to_owned()).await;
        found.map(|all| all.map(|address| address.ip()).collect()).map_err(|error| error.to_string())
    }

    /// A server that answers every request alike and gives back its first line and its host.
    async fn serve(listener: tokio::net::TcpListener, seen: tokio::sync::mpsc::UnboundedSender<String>) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let n = connection.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..n]).to_lowercase();
            let host = head.lines().find(|line| line.starts_with("host:")).unwrap_or_default();
            seen.send(host.to_owned()).unwrap();
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        }
    }

    #[tokio::test]
    async fn a_name_that_changes_its_address_leads_nowhere_it_was_not_checked_for() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, mut hosts) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(serve(listener, seen));
        let asked = Arc::new(std::sync::atomic::AtomicU8::new(0));
        let count = Arc::clone(&asked);
        // Every look-up gives the next address; only the first may be spoken to.
        let lookup: Lookup = Arc::new(move |_| {
            let last = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            Box::pin(async move { Ok(vec![IpAddr::from([127, 0, 0, last])]) })
        });
        let border = Border::new(vec!["127.0.0.1".parse().unwrap()]);
        let fetcher = Fetcher::new(border, None, lookup, TIME);
        let target = Target::parse(&format!("http://rebind.example:{port}/")).unwrap();
        let deadline = Instant::now() + TIME;
        assert_eq!(fetcher.send(&target, deadline).await.unwrap().status(), StatusCode::OK);
        assert_eq!(hosts.recv().await.unwrap(), format!("host: rebind.example:{port}"));
        assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 1, "what was checked is what is connected to");
        let failed = fetcher.send(&target, deadline).await.unwrap_err();
        assert!(failed.text.contains("rebind.example resolves to 127.0.0.2, a loopback address"), "{}", failed.text);
        assert!(hosts.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_name_is_worth_the_worst_of_its_addresses() {
        for (allowed, name, addresses, refusal) in [
            (&[][..], "example.com", &["1.1.1.1", "2606:4700:4700::1111"][..], None),
            (&[], "evil.example", &["127.0.0.1"], Some("evil.example resolves to 127.0.0.1, a loopback address")),
            (&[], "evil.example", &["1.1.1.1", "10.0.0.1"], Some("resolves to 10.0.0.1, a private address")),
            (&[], "evil.example", &["169.254.169.254"], Some("where clouds keep their metadata")),
            (&[], "evil.example", &["::1"], Some("a loopback address")),
            (&[], "evil.example", &["::ffff:127.0.0.1"], Some("an IPv4 address inside")),
            (&[], "evil.example", &["64:ff9b::10.0.0.1"], Some("a private address")),
            (&[], "evil.example", &["fd00:ec2::254"], Some("a private address")),
            (&[], "six.example", &["64:ff9b::1.1.1.1"], None),
            (&[], "nowhere.example", &[], Some("the look-up gave none")),
            (&["10.0.0.0/8"], "evil.example", &["10.0.0.1"], None),
            (&["10.0.0.0/8"], "evil.example", &["10.0.0.1", "127.0.0.1"], Some("a loopback address")),
            (&["10.0.0.0/8"], "wiki.corp", &["10.0.0.1"], None),
            (&["10.0.0.0/8"], "wiki.corp", &["1.1.1.1"], Some("a name of the local network")),
            (&["wiki.corp"], "wiki.corp", &["127.0.0.1", "10.0.0.1"], None),
            (&["wiki.corp"], "other.example", &["10.0.0.1"], Some("a private address")),
        ] {
            match (resolved(allowed, name, addresses).await, refusal) {
                (Ok(found), None) => assert_eq!(found.len(), addresses.len(), "{name}"),
                (Err(error), Some(words)) => assert!(error.contains(words), "{name}: {error}"),
                (other, _) => panic!("{allowed:?} {name} {addresses:?}: {other:?}"),
            }
        }
    }
}

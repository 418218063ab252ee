//! Listeners: a unix socket for this user alone, and loopback TCP with a token.

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hames_client::Place;
use hames_protocol::api::{ApiError, ApiErrorCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::guard::Guard;
use super::patience::Patient;
use super::refusal::refuse;
use super::{Api, finish};

/// What a listener bears.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// How long the head of a request may take, and how long a connection may wait for one.
    pub head: Duration,
    /// How long a peer may take nothing of what is written to it.
    pub write: Duration,
    /// How long connections may take to end when the server stops.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            head: Duration::from_secs(10),
            write: Duration::from_secs(60),
            goodbye: Duration::from_secs(3),
        }
    }
}

/// Bytes the head of a request may have, and the room for it: 8 KB is what most servers take.
const MAX_HEAD: usize = 32 * 1024;
const MAX_HEADERS: usize = 64;

/// Pause after an accept that failed: without descriptors it would fail at once again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum NoListener {
    /// Somebody listens there already.
    #[error("a server already listens at {0}; `hames server status` shows it")]
    Taken(String),
    /// An address that others can reach.
    #[error(
        "{0} is no loopback address: everybody who reaches it could run commands here. Use 127.0.0.1:PORT, and an ssh tunnel from elsewhere"
    )]
    NotLoopback(SocketAddr),
    /// The system refuses.
    #[error("cannot listen at {place} ({why})")]
    Failed {
        /// Where.
        place: String,
        /// What the system said.
        why: String,
    },
}

/// A place where clients come in.
pub struct Listener {
    kind: Kind,
    limits: Limits,
}

enum Kind {
    Unix { listener: UnixListener, file: SocketFile },
    Tcp { listener: TcpListener, guard: Guard, address: SocketAddr },
}

impl Listener {
    /// The unix socket of a home. The caller holds the home's [`server_lock`](Place::server_lock), so what is left of an
    /// earlier server is removed.
    pub async fn unix(place: &Place) -> Result<Self, NoListener> {
        let mut last = None;
        for path in place.sockets() {
            match bind(place, &path).await {
                Ok(listener) => {
                    let kind = Kind::Unix { listener, file: SocketFile::of(path) };
                    return Ok(Self { kind, limits: Limits::default() });
                }
                Err(NoListener::Taken(path)) => return Err(NoListener::Taken(path)),
                // A file system that holds no sockets: the short place is elsewhere.
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| failed(&place.folder().display().to_string(), "there is no place for a socket")))
    }

    /// Loopback TCP; port 0 takes a free one. Every request needs the token.
    pub async fn tcp(address: SocketAddr, token: &str) -> Result<Self, NoListener> {
        if !address.ip().to_canonical().is_loopback() {
            return Err(NoListener::NotLoopback(address));
        }
        let place = address.to_string();
        let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => NoListener::Taken(place.clone()),
            _ => failed(&place, error),
        })?;
        let address = listener.local_addr().map_err(|error| failed(&place, error))?;
        let guard = Guard::new(address, token);
        Ok(Self { kind: Kind::Tcp { listener, guard, address }, limits: Limits::default() })
    }

    /// The same with other limits.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Where it listens: a path, or an address with its port.
    pub fn place(&self) -> String {
        match &self.kind {
            Kind::Unix { file, .. } => file.path.display().to_string(),
            Kind::Tcp { address, .. } => address.to_string(),
        }
    }

    /// The address, for TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Unix { .. } => None,
            Kind::Tcp { address, .. } => Some(*address),
        }
    }

    /// Serves the API until `stop` is cancelled and every connection has ended or had its time to.
    pub async fn serve(self, api: Api, stop: CancellationToken) {
        let router = api.router();
        let limits = self.limits;
        let door = Arc::new(Semaphore::new(limits.connections));
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = self.accept() => accepted,
            };
            let (stream, guard) = match accepted {
                Ok(Some(accepted)) => accepted,
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!(%error, place = self.place(), "a connection could not be taken");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(permit) = door.clone().try_acquire_owned() else {
                // Whoever is one too many is told so, and holds nothing.
                connections.spawn(turn_away(stream, limits.write));
                continue;
            };
            let (router, stop) = (router.clone(), stop.clone());
            connections.spawn(async move {
                converse(stream, router, guard, limits, stop).await;
                drop(permit);
            });
        }
        connections.close();
        if tokio::time::timeout(limits.goodbye, connections.wait()).await.is_err() {
            tracing::info!(place = self.place(), "connections that did not end were cut");
        }
    }

    /// The next connection; `None` where it is another user's.
    async fn accept(&self) -> io::Result<Option<(Box<dyn Io>, Option<Guard>)>> {
        match &self.kind {
            Kind::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                let theirs = stream.peer_cred()?.uid();
                if !may_connect(theirs, rustix::process::geteuid().as_raw()) {
                    tracing::warn!(uid = theirs, "another user was turned away");
                    return Ok(None);
                }
                Ok(Some((Box::new(stream), None)))
            }
            Kind::Tcp { listener, guard, .. } => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Some((Box::new(stream), Some(guard.clone()))))
            }
        }
    }
}

/// The superuser reaches everything of ours anyway.
fn may_connect(theirs: u32, ours: u32) -> bool {
    theirs == ours || theirs == 0
}

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

async fn bind(place: &Place, path: &Path) -> Result<UnixListener, NoListener> {
    let shown = path.display().to_string();
    place.prepare(path).map_err(|error| failed(&shown, error))?;
    if UnixStream::connect(path).await.is_ok() {
        return Err(NoListener::Taken(shown));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&shown, error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(|error| failed(&shown, error))?;
    // The folder keeps others out until this is done.
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(|error| failed(&shown, error))?;
    Ok(listener)
}

fn failed(place: &str, why: impl ToString) -> NoListener {
    NoListener::Failed { place: place.to_owned(), why: why.to_string() }
}

/// The file of a socket, removed with its listener unless another server has put its own there.
struct SocketFile {
    path: PathBuf,
    made: Option<(u64, u64)>,
}

impl SocketFile {
    fn of(path: PathBuf) -> Self {
        let made = identity(&path);
        Self { path, made }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.made.is_some() && self.made == identity(&self.path) {
            // A socket that stays is removed by the next server.
            let _ = fs::remove_file(&self.path);
        }
    }
}

async fn converse(stream: Box<dyn Io>, router: Router, guard: Option<Guard>, limits: Limits, stop: CancellationToken) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let (router, guard) = (router.clone(), guard.clone());
        async move {
            let (parts, body) = request.into_parts();
            if let Some(Err(refusal)) = guard.map(|guard| guard.check(&parts)) {
                return Ok(finish(refuse(&refusal)));
            }
            router.oneshot(Request::from_parts(parts, Body::new(body))).await
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    let connection = builder.serve_connection(TokioIo::new(Patient::new(stream, limits.write)), answer);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn turn_away(mut stream: Box<dyn Io>, patience: Duration) {
    let refusal =
        ApiError::new(ApiErrorCode::Overloaded, "The server has too many connections; close some and try again.");
    let body = serde_json::to_string(&refusal).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // Nobody waits for somebody who does not listen.
    let _ = tokio::time::timeout(patience, async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_user_and_the_superuser_come_in() {
        let cases = [(1000, 1000, true), (0, 1000, true), (1001, 1000, false), (1000, 0, false), (65534, 1000, false)];
        for (theirs, ours, expected) in cases {
            assert_eq!(may_connect(theirs, ours), expected, "{theirs} to {ours}");
        }
    }
}

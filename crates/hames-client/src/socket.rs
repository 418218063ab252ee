//! HTTP over a unix socket, or over loopback TCP with a token.
//!
//! Each request has its own connection: over a local socket that costs some tens of microseconds, and there is no idle
//! connection that died meanwhile, so a request that fails before its connection stands was surely not sent.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::header::{AUTHORIZATION, CONNECTION, HOST, HeaderValue};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream as Frames, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;

use crate::{BodyStream, ClientError, Transport, Upload};

/// How long a connection may take to stand. A local server takes it at once, whatever it is doing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server at the other end of a socket.
#[derive(Clone, Debug)]
pub struct Socket {
    target: Target,
}

#[derive(Clone)]
enum Target {
    /// The first of these that somebody answers at.
    Unix(Vec<PathBuf>),
    Tcp {
        address: SocketAddr,
        authorization: HeaderValue,
    },
}

impl std::fmt::Debug for Target {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Unix(paths) => write!(f, "Unix({paths:?})"),
            Target::Tcp { address, .. } => write!(f, "Tcp({address})"),
        }
    }
}

impl Socket {
    /// The unix sockets a server of this user may listen on; the first that answers is used.
    pub fn unix(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { target: Target::Unix(paths.into_iter().collect()) }
    }

    /// A loopback address and its token.
    pub fn tcp(address: SocketAddr, token: &str) -> Result<Self, ClientError> {
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| ClientError::Place("the token has characters that no header takes".into()))?;
        authorization.set_sensitive(true);
        Ok(Self { target: Target::Tcp { address, authorization } })
    }

    async fn connect(&self) -> Result<Box<dyn Io>, ClientError> {
        let connecting = async {
            match &self.target {
                Target::Unix(paths) => connect_unix(paths).await.map(|stream| Box::new(stream) as Box<dyn Io>),
                Target::Tcp { address, .. } => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    Ok(Box::new(stream) as Box<dyn Io>)
                }
            }
        };
        let why = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
        };
        Err(ClientError::Unreachable { place: self.place(), why })
    }
}

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// The first socket that somebody of this user answers at; the first error where nobody does.
async fn connect_unix(paths: &[PathBuf]) -> io::Result<UnixStream> {
    let mut first = None;
    for path in paths {
        match connect_own(path).await {
            Ok(stream) => return Ok(stream),
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no socket to try")))
}

/// A socket in a shared folder may be another user's trap: what is typed must not go there.
async fn connect_own(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    let theirs = stream.peer_cred()?.uid();
    let ours = rustix::process::geteuid().as_raw();
    if theirs != ours && theirs != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} belongs to user {theirs}, not to {ours}", path.display()),
        ));
    }
    Ok(stream)
}

#[async_trait]
impl Transport for Socket {
    async fn send(&self, request: Request<Upload>) -> Result<Response<BodyStream>, ClientError> {
        let stream = self.connect().await?;
        let unsent = |error: hyper::Error| ClientError::Unreachable { place: self.place(), why: error.to_string() };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(unsent)?;
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
        let request = self.complete(request);
        let answer = sender.send_request(request).await.map_err(lost)?;
        Ok(answer.map(|body| Box::pin(Answer { body: Frames::new(body), _connection: connection }) as BodyStream))
    }

    fn place(&self) -> String {
        match &self.target {
            Target::Unix(paths) => paths.first().map_or_else(String::new, |path| path.display().to_string()),
            Target::Tcp { address, .. } => address.to_string(),
        }
    }
}

impl Socket {
    /// Adds what this connection needs: the host, and the token where there is one.
    fn complete(&self, request: Request<Upload>) -> Request<UnsyncBoxBody<Bytes, ClientError>> {
        let mut request = request.map(|upload| match upload {
            Upload::Bytes(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            Upload::Stream(pieces) => StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync(),
        });
        let headers = request.headers_mut();
        match &self.target {
            Target::Unix(_) => drop(headers.insert(HOST, HeaderValue::from_static("localhost"))),
            Target::Tcp { address, authorization } => {
                if let Ok(host) = HeaderValue::try_from(address.to_string()) {
                    headers.insert(HOST, host);
                }
                headers.insert(AUTHORIZATION, authorization.clone());
            }
        }
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        request
    }
}

fn lost(error: hyper::Error) -> ClientError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    ClientError::Lost(text)
}

/// The task that drives a connection; it ends with the answer it carries.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Answer {
    body: Frames<Incoming>,
    _connection: Connection,
}

impl Stream for Answer {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            return Poll::Ready(match std::task::ready!(self.body.poll_next_unpin(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => Some(Ok(bytes)),
                    // Trailers say nothing to us.
                    Err(_) => continue,
                },
                Some(Err(error)) => Some(Err(lost(error))),
                None => None,
            });
        }
    }
}

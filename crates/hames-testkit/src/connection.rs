//! HTTP/1.1 on one connection: requests in, bounded and strictly read; responses out, byte for byte as planned.
//!
//! Responses are written straight to the socket, so that a cut falls exactly where it was planned. A stream is one HTTP
//! chunk a piece. No TLS, no pipelining of answers, no compression.

use std::{io, os::fd::AsFd, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time,
};

use crate::{
    plan::{End, Plan, error_body, json_plan},
    provider::Shared,
    sys,
    turn::Sever,
};

/// Bytes of a request head, or of the trailer of a chunked body, at most.
const HEAD_LIMIT: usize = 64 << 10;
/// Headers of a request at most.
const HEADER_COUNT: usize = 128;
/// Bytes of a request body at most: more than any window holds.
const BODY_LIMIT: usize = 256 << 20;
/// Bytes a client may send ahead while it is being answered.
const AHEAD_LIMIT: usize = 64 << 10;
/// Room made for a read. An announced length is not trusted for more than this.
const READ_SIZE: usize = 64 << 10;
/// Bytes, and time, given to a refused client that is still sending; closing at once would reset the connection and the
/// client would not read why.
const DRAIN_LIMIT: usize = 16 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// How often, and how far apart, it is looked whether the peer has everything: together one second.
const DELIVERY_CHECKS: usize = 1000;
const DELIVERY_PAUSE: Duration = Duration::from_millis(1);

/// A request, read in full.
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// Whether the client understands chunked responses.
    chunked_ok: bool,
    keep_alive: bool,
}

enum Trouble {
    /// The connection is of no use any more.
    Gone,
    /// The client went away within a request: a death, no mistake.
    Cut,
    /// What came is no request: status and what is wrong.
    Bad(u16, String),
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Trouble {
        Trouble::Gone
    }
}

fn bad(message: impl Into<String>) -> Trouble {
    Trouble::Bad(400, message.into())
}

fn too_large(what: &str, limit: usize) -> Trouble {
    Trouble::Bad(413, format!("{what} is larger than {limit} bytes"))
}

/// Serves one connection until either side ends it.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Pieces have to leave one by one; without this they would be merely slower.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection { stream, input: BytesMut::new() };
    loop {
        match connection.request().await {
            Ok(Some(request)) => {
                let _answering = shared.answering();
                match connection.answer(request, &shared).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        shared.hung_up();
                        return;
                    }
                }
            }
            Ok(None) | Err(Trouble::Gone) => break,
            Err(Trouble::Cut) => {
                shared.hung_up();
                return;
            }
            Err(Trouble::Bad(status, message)) => {
                shared.bad_http(&message);
                connection.refuse(status, &message).await;
                break;
            }
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes received and not yet used.
    input: BytesMut,
}

impl Connection {
    /// The next request; `None` where the client is done.
    async fn request(&mut self) -> Result<Option<HttpRequest>, Trouble> {
        let Some(mut head) = self.head().await? else { return Ok(None) };
        let one = |name: &str| {
            let mut values = head.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
            let first = values.next();
            if values.any(|value| Some(value) != first) {
                return Err(bad(format!("the header {name} is given twice")));
            }
            Ok(first)
        };
        let wants = |name: &str, token: &str| {
            let values = head.headers.iter().filter(|(key, _)| key == name);
            values.flat_map(|(_, value)| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
        };
        let length = one("content-length")?.map(content_length).transpose()?;
        let encoding = one("transfer-encoding")?;
        let must_continue = wants("expect", "100-continue") && head.chunked_ok;
        head.keep_alive =
            if head.chunked_ok { !wants("connection", "close") } else { wants("connection", "keep-alive") };
        let chunked = match encoding {
            None => false,
            Some(encoding) if encoding.eq_ignore_ascii_case("chunked") && length.is_none() => true,
            Some(_) => return Err(bad("transfer-encoding must be chunked, and come without content-length")),
        };
        if must_continue {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        head.body = if chunked { self.chunked_body().await? } else { self.take(length.unwrap_or(0)).await? };
        Ok(Some(head))
    }

    /// A request head, with an empty body.
    async fn head(&mut self) -> Result<Option<HttpRequest>, Trouble> {
        loop {
            if let Some((length, head)) = parse_head(&self.input)? {
                self.input.advance(length);
                return Ok(Some(head));
            }
            if self.input.len() > HEAD_LIMIT {
                return Err(Trouble::Bad(431, format!("the head is larger than {HEAD_LIMIT} bytes")));
            }
            if self.fill().await? == 0 {
                let is_silent = self.input.iter().all(u8::is_ascii_whitespace);
                return if is_silent { Ok(None) } else { Err(Trouble::Cut) };
            }
        }
    }

    /// Receives some bytes; 0 at the end of the connection.
    async fn fill(&mut self) -> io::Result<usize> {
        self.input.reserve(READ_SIZE);
        self.stream.read_buf(&mut self.input).await
    }

    /// Exactly so many bytes.
    async fn take(&mut self, count: usize) -> Result<Bytes, Trouble> {
        while self.input.len() < count {
            if self.fill().await? == 0 {
                return Err(Trouble::Cut);
            }
        }
        Ok(self.input.split_to(count).freeze())
    }

    /// A line without its CR LF.
    async fn line(&mut self) -> Result<Bytes, Trouble> {
        loop {
            if let Some(end) = self.input.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.input.split_to(end).freeze();
                self.input.advance(2);
                return Ok(line);
            }
            if self.input.len() > HEAD_LIMIT {
                return Err(bad("a line of the chunked body does not end"));
            }
            if self.fill().await? == 0 {
                return Err(Trouble::Cut);
            }
        }
    }

    async fn chunked_body(&mut self) -> Result<Bytes, Trouble> {
        let mut body = BytesMut::new();
        loop {
            let size = chunk_size(&self.line().await?)?;
            if size == 0 {
                break;
            }
            if body.len() + size > BODY_LIMIT {
                return Err(too_large("the body", BODY_LIMIT));
            }
            body.extend_from_slice(&self.take(size).await?);
            if !self.take(2).await?.starts_with(b"\r\n") {
                return Err(bad("a chunk does not end where its size says"));
            }
        }
        let mut trailer = 0;
        loop {
            let line = self.line().await?;
            trailer += line.len();
            if line.is_empty() {
                return Ok(body.freeze());
            }
            if trailer > HEAD_LIMIT {
                return Err(too_large("the trailer", HEAD_LIMIT));
            }
        }
    }

    /// Answers a request and says whether the connection can carry another.
    async fn answer(&mut self, request: HttpRequest, shared: &Shared) -> io::Result<bool> {
        let (chunked_ok, keep_alive, is_head) = (request.chunked_ok, request.keep_alive, request.method == "HEAD");
        let mut plan = shared.answer(request);
        if let Some(gate) = plan.head_gate.take() {
            self.unless_gone(gate.pass()).await?;
        }
        if let End::SeverBeforeHead(sever) = plan.end {
            self.sever(sever).await;
            return Ok(false);
        }
        let chunked = plan.length.is_none() && chunked_ok;
        let says_close = plan.headers.iter().any(|(name, value)| name == "connection" && value == "close");
        let keep_alive = keep_alive && !says_close && (chunked || plan.length.is_some());
        self.stream.write_all(response_head(&plan, chunked, keep_alive).as_bytes()).await?;
        if is_head {
            return Ok(keep_alive);
        }
        let last = plan.pieces.last().filter(|_| plan.end == End::Endless).map(|piece| piece.bytes.clone());
        for piece in plan.pieces {
            if !piece.wait.is_zero() {
                self.unless_gone(time::sleep(piece.wait)).await?;
            }
            self.send(&piece.bytes, chunked).await?;
            for gate in piece.gates {
                self.unless_gone(gate.pass()).await?;
            }
        }
        if let Some(last) = last.filter(|last| !last.is_empty()) {
            // Ends where the client leaves: sending fails then.
            loop {
                self.send(&last, chunked).await?;
            }
        }
        self.end(plan.end, chunked).await?;
        Ok(keep_alive && plan.end == End::Complete)
    }

    async fn send(&mut self, bytes: &[u8], chunked: bool) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !chunked {
            return self.stream.write_all(bytes).await;
        }
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        self.stream.write_all(&framed).await
    }

    async fn end(&mut self, end: End, chunked: bool) -> io::Result<()> {
        match end {
            End::Complete if chunked => self.stream.write_all(b"0\r\n\r\n").await,
            End::Complete => Ok(()),
            End::SeverBeforeHead(sever) | End::Sever(sever) => {
                self.sever(sever).await;
                Ok(())
            }
            // An endless response of nothing says as much as one that stalls.
            End::Stall | End::Endless => self.unless_gone(std::future::pending()).await,
            End::Keepalives(interval, bytes) => loop {
                self.send(bytes, chunked).await?;
                self.unless_gone(time::sleep(interval)).await?;
            },
        }
    }

    /// Ends the connection without ending the response.
    async fn sever(&mut self, sever: Sever) {
        // Where this fails the connection is gone already, which is what was asked for.
        let _ = match sever {
            Sever::Cut => self.stream.shutdown().await,
            Sever::Reset => {
                self.delivered().await;
                self.stream.set_zero_linger()
            }
        };
    }

    /// Waits until the peer has what was sent, for a reset throws away the rest. A peer that takes nothing is not
    /// waited for.
    async fn delivered(&self) {
        for _ in 0..DELIVERY_CHECKS {
            if sys::unacknowledged(self.stream.as_fd()) == 0 {
                return;
            }
            time::sleep(DELIVERY_PAUSE).await;
        }
    }

    /// Waits for something, unless the client leaves meanwhile.
    async fn unless_gone<T>(&mut self, wait: impl Future<Output = T>) -> io::Result<T> {
        tokio::select! {
            biased;
            result = wait => Ok(result),
            gone = gone(&mut self.stream, &mut self.input) => Err(gone),
        }
    }

    async fn refuse(&mut self, status: u16, message: &str) {
        let plan = json_plan(status, &error_body(message, "invalid_request_error", "bad_http", None));
        let mut response = response_head(&plan, false, false).into_bytes();
        response.extend(plan.pieces.into_iter().flat_map(|piece| piece.bytes));
        let told = async {
            self.stream.write_all(&response).await?;
            self.stream.shutdown().await?;
            let mut drained = 0;
            while drained < DRAIN_LIMIT {
                self.input.clear();
                match self.fill().await? {
                    0 => break,
                    more => drained += more,
                }
            }
            io::Result::Ok(())
        };
        // A client that does not listen, or never stops, is left.
        let _ = time::timeout(DRAIN_TIME, told).await;
    }
}

/// Returns when the client has left. What it sends ahead is kept up to a limit.
async fn gone(stream: &mut TcpStream, input: &mut BytesMut) -> io::Error {
    while input.len() < AHEAD_LIMIT {
        match stream.read_buf(input).await {
            Ok(0) => return io::ErrorKind::ConnectionAborted.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
    std::future::pending().await
}

/// The head at the start of the input and its length, once it is there as a whole.
fn parse_head(input: &[u8]) -> Result<Option<(usize, HttpRequest)>, Trouble> {
    let mut headers = [httparse::EMPTY_HEADER; HEADER_COUNT];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(bad(format!("the request head is broken: {error}"))),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let request = HttpRequest {
        method: head.method.unwrap_or_default().to_owned(),
        target: head.path.unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(|header| (header.name.to_ascii_lowercase(), text(header.value))).collect(),
        body: Bytes::new(),
        chunked_ok: head.version == Some(1),
        keep_alive: false,
    };
    Ok(Some((length, request)))
}

fn content_length(text: &str) -> Result<usize, Trouble> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad(format!("content-length {text:?} is no number")));
    }
    text.parse().ok().filter(|length| *length <= BODY_LIMIT).ok_or_else(|| too_large("the body", BODY_LIMIT))
}

/// The size a chunk announces; extensions are ignored.
fn chunk_size(line: &[u8]) -> Result<usize, Trouble> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(bad("a chunk begins without its size"));
    }
    let size = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
    size.filter(|size| *size <= BODY_LIMIT).ok_or_else(|| too_large("a chunk", BODY_LIMIT))
}

/// The head of a response. What the script says itself is not said twice.
fn response_head(plan: &Plan, chunked: bool, keep_alive: bool) -> String {
    let mut headers = plan.headers.clone();
    let mut add = |name: &str, value: String| {
        if !headers.iter().any(|(known, _)| known == name) {
            headers.push((name.to_owned(), value));
        }
    };
    match plan.length {
        Some(length) => add("content-length", length.to_string()),
        None if chunked => add("transfer-encoding", "chunked".to_owned()),
        None => {}
    }
    add("connection", if keep_alive { "keep-alive" } else { "close" }.to_owned());
    let mut head = format!("HTTP/1.1 {} {}\r\n", plan.status, reason(plan.status));
    for (name, value) in headers {
        // A line break would end the header: a script cannot break the framing by mistake.
        head.push_str(&format!("{name}: {}\r\n", value.replace(['\r', '\n'], " ")));
    }
    head.push_str("\r\n");
    head
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Other",
    }
}

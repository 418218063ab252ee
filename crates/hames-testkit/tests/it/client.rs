//! A client that sees every byte: no pooling, no repair, no opinion.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use hames_testkit::Provider;
use serde_json::{Value, json};

/// Far longer than any answer here takes; only a bug reaches it.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    ahead: Vec<u8>,
}

/// A response, and how it ended.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The chunks of a chunked body, or the body as one.
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) end: End,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// The connection closed within the response.
    Cut,
    /// The connection was reset within the response.
    Reset,
}

impl Response {
    pub(crate) fn body(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body()).unwrap()
    }

    /// The JSON of each `data:` line, `[DONE]` as text.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
    }

    /// The first choice's deltas.
    pub(crate) fn deltas(&self) -> Vec<Value> {
        self.events().into_iter().map(|event| event["choices"][0]["delta"].clone()).collect()
    }
}

impl Client {
    pub(crate) fn to(provider: &Provider) -> Client {
        Client::to_address(&address(provider))
    }

    pub(crate) fn to_address(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, ahead: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Posts a chat request.
    pub(crate) fn post(&mut self, body: &str) {
        self.send(format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ));
    }

    pub(crate) fn chat(&mut self, body: &Value) -> Response {
        self.post(&body.to_string());
        self.response().unwrap()
    }

    /// Receives until `enough` holds of what is there.
    fn receive_until(&mut self, enough: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        while !enough(&self.ahead) {
            match self.stream.read(&mut buffer)? {
                0 => return Ok(false),
                count => self.ahead.extend_from_slice(&buffer[..count]),
            }
        }
        Ok(true)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let end = |bytes: &[u8]| bytes.windows(2).position(|pair| pair == b"\r\n");
        if !self.receive_until(|bytes| end(bytes).is_some())? {
            return Ok(None);
        }
        let line: Vec<u8> = self.ahead.drain(..end(&self.ahead).unwrap() + 2).collect();
        Ok(Some(String::from_utf8(line).unwrap().trim_end().to_owned()))
    }

    /// Everything up to the end of the connection.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        self.receive_until(|_| false)?;
        Ok(std::mem::take(&mut self.ahead))
    }

    /// The status line and headers of the next response; `None` where the connection closes first.
    pub(crate) fn head(&mut self) -> io::Result<Option<String>> {
        let mut head = String::new();
        loop {
            match self.line()? {
                None => return Ok(None),
                Some(line) if line.is_empty() => return Ok(Some(head)),
                Some(line) => head.push_str(&(line + "\n")),
            }
        }
    }

    /// The next response. `Err` where the connection ends before its head.
    pub(crate) fn response(&mut self) -> io::Result<Response> {
        let head = self.head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head[9..12].parse().unwrap();
        let header = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start_matches(": ").to_owned())
        };
        let mut chunks = Vec::new();
        let result = if header("transfer-encoding").is_some() {
            self.chunked(&mut chunks)
        } else if let Some(length) = header("content-length") {
            self.sized(length.parse().unwrap(), &mut chunks)
        } else {
            self.rest().map(|rest| {
                chunks.push(rest);
                true
            })
        };
        let end = match result {
            Ok(true) => End::Complete,
            Ok(false) => End::Cut,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => End::Reset,
            Err(error) => panic!("{error}"),
        };
        Ok(Response { status, head, chunks, end })
    }

    fn sized(&mut self, length: usize, chunks: &mut Vec<Vec<u8>>) -> io::Result<bool> {
        let whole = self.receive_until(|bytes| bytes.len() >= length);
        chunks.push(self.ahead.drain(..length.min(self.ahead.len())).collect());
        whole
    }

    fn chunked(&mut self, chunks: &mut Vec<Vec<u8>>) -> io::Result<bool> {
        loop {
            match self.chunk()? {
                None => return Ok(false),
                Some(chunk) if chunk.is_empty() => return Ok(true),
                Some(chunk) => chunks.push(chunk),
            }
        }
    }

    /// The next chunk, empty at the end of the body; `None` where the connection closes first.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(size) = self.line()? else { return Ok(None) };
        let size = usize::from_str_radix(&size, 16).unwrap();
        if !self.receive_until(|bytes| bytes.len() >= size + 2)? {
            return Ok(None);
        }
        let chunk = self.ahead.drain(..size + 2).take(size).collect();
        Ok(Some(chunk))
    }
}

pub(crate) fn address(provider: &Provider) -> String {
    provider.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned()
}

/// A sound streaming request.
pub(crate) fn request() -> Value {
    json!({"model": "mock-1", "messages": [{"role": "user", "content": "hello"}], "stream": true,
        "stream_options": {"include_usage": true}})
}

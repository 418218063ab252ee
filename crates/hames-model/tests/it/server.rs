//! A server that answers with exactly the bytes it is told, and remembers what it was sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hames_model::{ChatModel, Endpoint};
use hames_protocol::{
    Completion, Delta, Failure, Head, Item, MemoryBlobs, ModelClient, ModelInfo, Part, RequestOptions, UserItem,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One thing a reply does.
#[derive(Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// Sends the same again and again, until the client is gone.
    Repeat(Duration, Vec<u8>),
    /// Waits until the test says so.
    Wait(Arc<Notify>),
    /// Says nothing more.
    Hang,
    /// Breaks the connection.
    Close,
}

pub(crate) type Reply = Vec<Act>;

/// What a client sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) connection: usize,
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) base_url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Answers one request after the other with the replies; what comes after the last is hung up on.
    pub(crate) async fn start(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            base_url: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let replies = Arc::new(Mutex::new(replies.into_iter()));
        let shared = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = shared.connections.fetch_add(1, Ordering::SeqCst);
                let (shared, replies) = (shared.clone(), Arc::clone(&replies));
                tokio::spawn(async move {
                    let _ = shared.serve(stream, connection, &replies).await;
                });
            }
        });
        server
    }

    async fn serve(
        &self,
        mut stream: TcpStream,
        connection: usize,
        replies: &Mutex<std::vec::IntoIter<Reply>>,
    ) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        while let Some(request) = read_request(&mut stream, connection).await? {
            self.requests.lock().unwrap().push(request);
            let Some(reply) = replies.lock().unwrap().next() else { return Ok(()) };
            for act in reply {
                match act {
                    Act::Send(bytes) => stream.write_all(&bytes).await?,
                    Act::Repeat(every, bytes) => loop {
                        stream.write_all(&bytes).await?;
                        tokio::time::sleep(every).await;
                    },
                    Act::Wait(notify) => notify.notified().await,
                    Act::Hang => std::future::pending().await,
                    Act::Close => return Ok(()),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new("acme", &self.base_url).with_key("sk-test-secret")
    }

    pub(crate) fn model(&self) -> ChatModel {
        model(self.endpoint())
    }
}

async fn read_request(stream: &mut TcpStream, connection: usize) -> std::io::Result<Option<Request>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Ok(None),
        }
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    stream.read_exact(&mut body).await?;
    Ok(Some(Request { connection, line, headers, body: String::from_utf8(body).unwrap() }))
}

pub(crate) const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub(crate) const END: &str = "0\r\n\r\n";

pub(crate) fn send(text: impl AsRef<[u8]>) -> Act {
    Act::Send(text.as_ref().to_vec())
}

/// Bytes as one chunk of a chunked body.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A whole response with a status, headers and a body.
pub(crate) fn response(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    vec![send(format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}"))]
}

/// A whole stream of events.
pub(crate) fn stream(body: &str) -> Reply {
    vec![send(SSE), send(chunk(body)), send(END)]
}

pub(crate) fn text_event(text: &str) -> String {
    format!("data: {}\n\n", serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

pub(crate) const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A whole answer of one text.
pub(crate) fn says(text: &str) -> Reply {
    stream(&format!("{}{STOP}{DONE}", text_event(text)))
}

pub(crate) fn model(endpoint: Endpoint) -> ChatModel {
    let info = ModelInfo::new("acme/large/v1".parse().unwrap(), 100_000, 1_000);
    ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap()
}

pub(crate) fn head() -> Arc<Head> {
    Arc::new(Head { tools: Vec::new(), system: "Be brief.".into() })
}

pub(crate) fn user(text: &str) -> Arc<Item> {
    Arc::new(Item::User(UserItem { parts: vec![Part::text(text)], ..UserItem::default() }))
}

/// One step: prepare, send, read to the end.
pub(crate) async fn ask_with(
    model: &mut ChatModel,
    items: &[Arc<Item>],
    options: &RequestOptions,
) -> Result<(Completion, Vec<Delta>), Failure> {
    model.prepare(&head(), items, options).await?;
    let mut answer = model.send().await?;
    let mut deltas = Vec::new();
    while let Some(more) = answer.next().await {
        assert!(!more.is_empty());
        deltas.extend(more);
    }
    Ok((answer.finish(), deltas))
}

pub(crate) async fn ask(model: &mut ChatModel) -> Result<Completion, Failure> {
    Ok(ask_with(model, &[user("hi")], &RequestOptions::default()).await?.0)
}

//! A small server of one session, whose connections can be cut at any byte. Its log and its open step are what it says; it
//! shares no code with the server of Hames.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hames_protocol::api::{API_VERSION, ApiVersion};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// What the server knows; tests change it while it runs.
#[derive(Default)]
pub(crate) struct World {
    /// Durable events and live ones, in the order they happened; a live one is gone for who was not attached.
    pub(crate) happened: Vec<Value>,
    /// How many more bytes each connection carries before it is cut; the last one is for all that follow.
    pub(crate) cuts: Vec<usize>,
    /// What `GET …/events` answers instead, once each: a status and a refusal.
    pub(crate) refusals: Vec<(u16, Value)>,
    /// Seqs that clients asked to go on behind.
    pub(crate) asked: Vec<u64>,
    /// Requests to stop.
    pub(crate) stops: usize,
    /// What `POST …/stop` answers.
    pub(crate) busy: bool,
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) path: PathBuf,
    api: ApiVersion,
    changed: Arc<watch::Sender<u64>>,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::speaking(folder.join("s.sock"), API_VERSION)
    }

    pub(crate) fn speaking(path: PathBuf, api: ApiVersion) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let server = Self { world: Arc::default(), path, api, changed: Arc::new(watch::Sender::new(0)) };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.converse(stream).await });
            }
        });
        server
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut World) -> R) -> R {
        let changed = change(&mut self.world.lock().unwrap());
        self.changed.send_modify(|n| *n += 1);
        changed
    }

    /// A durable event happens.
    pub(crate) fn log(&self, text: &str) {
        self.change(|world| {
            let seq = world.happened.iter().filter(|event| !event["seq"].is_null()).count() + 1;
            world.happened.push(envelope(json!(seq), json!({"type": "text.done", "index": 0, "text": text})));
        });
    }

    /// A piece of text comes.
    pub(crate) fn delta(&self, offset: usize, text: &str) {
        let event = json!({"type": "text.delta", "index": 0, "offset": offset, "text": text});
        self.change(|world| world.happened.push(envelope(Value::Null, event)));
    }

    async fn converse(self, mut stream: UnixStream) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte).await {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        match target.split('?').next().unwrap_or_default() {
            "/v1/health" => {
                let health = json!({"name": "hames", "version": "0.0.9", "api": self.api, "pid": 7, "started_at": 1});
                answer(&mut stream, 200, &health).await;
            }
            "/v1/server/stop" => {
                let busy = self.change(|world| {
                    world.stops += 1;
                    world.busy
                });
                if busy {
                    answer(&mut stream, 409, &json!({"code": "busy", "message": "A run goes on."})).await;
                } else {
                    // Gone before it is answered: what a stop may look like.
                    std::fs::remove_file(&self.path).unwrap();
                }
            }
            _ => self.events(stream, &target).await,
        }
    }

    async fn events(self, mut stream: UnixStream, target: &str) {
        let after: u64 = target.split("after=").nth(1).and_then(|seq| seq.parse().ok()).unwrap();
        let (refusal, mut room) = self.change(|world| {
            world.asked.push(after);
            let refusal = if world.refusals.is_empty() { None } else { Some(world.refusals.remove(0)) };
            let room = if world.cuts.len() > 1 {
                world.cuts.remove(0)
            } else {
                world.cuts.first().copied().unwrap_or(usize::MAX)
            };
            (refusal, room)
        });
        if let Some((status, refusal)) = refusal {
            return answer(&mut stream, status, &refusal).await;
        }
        let mut changed = self.changed.subscribe();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n:\n\n";
        let (mut frames, mut at) = {
            let world = self.world.lock().unwrap();
            let logged = world.happened.iter().filter(|event| event["seq"].as_u64().is_some_and(|seq| seq > after));
            let replay: String = logged.map(frame).collect();
            // The open step so far: what came since the last durable event.
            let open = world.happened.iter().rev().take_while(|event| event["seq"].is_null());
            let mut pieces: Vec<_> = open.map(|event| event["event"]["text"].as_str().unwrap()).collect();
            pieces.reverse();
            let block = json!({"kind": "text", "index": 0, "text": pieces.concat()});
            let snapshot = envelope(Value::Null, json!({"type": "step.snapshot", "blocks": [block]}));
            (format!("{head}{replay}{}", frame(&snapshot)), world.happened.len())
        };
        loop {
            let count = frames.len().min(room);
            if stream.write_all(&frames.as_bytes()[..count]).await.is_err() || count < frames.len() {
                return;
            }
            room -= count;
            if changed.changed().await.is_err() {
                return;
            }
            let world = self.world.lock().unwrap();
            frames = world.happened[at..].iter().map(frame).collect();
            at = world.happened.len();
        }
    }
}

pub(crate) fn envelope(seq: Value, event: Value) -> Value {
    json!({"v": 1, "seq": seq, "at": 5, "session": "s", "run": null, "turn": null, "step": null, "agent": [], "event": event})
}

fn frame(event: &Value) -> String {
    match event["seq"].as_u64() {
        Some(seq) => format!("id: {seq}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    }
}

async fn answer(stream: &mut UnixStream, status: u16, body: &Value) {
    let body = body.to_string();
    let text = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // A client that went away needs no answer.
    let _ = stream.write_all(text.as_bytes()).await;
}

/// Nothing here takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

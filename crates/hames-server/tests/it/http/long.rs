//! A very long session over a real socket: what a face asks for first does not wait until all of it is read.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hames_client::{Client, Socket};
use hames_protocol::api::RenameSession;
use hames_protocol::*;
use hames_store::Store;
use tokio::net::UnixStream;

use super::kit::{Served, converse};

/// A session of about so many events: runs of twenty steps with a call each.
async fn session(store: &Store, folder: &std::path::Path, events: usize) -> SessionId {
    let (info, lease) = store.create("long", folder, Settings::default(), 1, "a test").unwrap();
    let (id, log) = (info.id, store.log());
    let mut next = 2;
    for turn in 1.. {
        if next as usize > events {
            break;
        }
        let run = RunId::from(format!("r-{turn}"));
        let envelope = |step: Option<u32>, event: Event| Envelope {
            session: Some(id.clone()),
            run: Some(run.clone()),
            turn: Some(turn),
            step,
            ..Envelope::detached(1, event)
        };
        let batch: Vec<Envelope> = turn_of(turn).into_iter().map(|(step, event)| envelope(step, event)).collect();
        let count = batch.len() as u64;
        log.append(&id, next, batch, Durability::Process).await.unwrap();
        next += count;
    }
    drop(lease);
    id
}

fn turn_of(turn: u32) -> Vec<(Option<u32>, Event)> {
    let pending = format!("p-{turn}");
    let parts = vec![Part::text(format!("message {turn}"))];
    let waits =
        Pending { id: pending.as_str().into(), parts: parts.clone(), delivery: Delivery::Queue, idempotency_id: None };
    let start = RunStart {
        mode: Mode::Build,
        parallel: false,
        model: "test/model".parse().unwrap(),
        settings: Settings::default(),
        tools: vec![],
        instructions: vec![],
        skills: vec![],
    };
    let said = MessageUser {
        parts,
        delivery: None,
        pending_id: Some(pending.as_str().into()),
        idempotency_id: None,
        note: None,
    };
    let mut events: Vec<(Option<u32>, Event)> =
        vec![(None, Event::PendingAdded(waits)), (None, start.into()), (None, said.into())];
    for step in 1..=20 {
        let call = CallId::from(format!("c-{turn}-{step}"));
        let asked = ToolCall {
            call_id: call.clone(),
            provider_id: String::new(),
            name: "Shell".into(),
            arguments: r#"{"command":"cargo check"}"#.into(),
            input: None,
            label: Label::new("Shell", "cargo check"),
            declaration: None,
            extra: None,
        };
        let done = ToolDone {
            call_id: call.clone(),
            name: "Shell".into(),
            output: "a line of output that nobody reads\n".repeat(20),
            blob: None,
            diffs: vec![],
            files: vec![],
            exit_code: Some(0),
            attachments: vec![],
            duration_ms: 1,
            served_from: None,
            capability: false,
        };
        let text = TextDone { index: 0, text: "I look at it once more. ".repeat(8), cut: None };
        let of_step: [Event; 4] = [text.into(), asked.into(), Event::step_done_for_tests("tool_calls"), done.into()];
        events.extend(of_step.map(|event| (Some(step), event)));
    }
    events.push((None, RunDone { result: RunResult::Complete, exit_code: 0 }.into()));
    events
}

async fn timed(served: &Served, path: &str) -> (Duration, Vec<u8>) {
    let began = Instant::now();
    let stream = UnixStream::connect(served.place.sockets().remove(0)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: hames\r\nconnection: close\r\n\r\n");
    let answer = converse(stream, request.as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    (began.elapsed(), answer.body)
}

/// How late the most delayed task of this thread is, looked at each millisecond. Ends when it is dropped.
async fn delay(most: Arc<Mutex<Duration>>) {
    const LOOK_EVERY: Duration = Duration::from_millis(1);
    loop {
        let due = tokio::time::Instant::now() + LOOK_EVERY;
        tokio::time::sleep_until(due).await;
        let mut most = most.lock().unwrap();
        *most = most.max(due.elapsed());
    }
}

/// Times of list, view, last page, the view once more while somebody has begun to watch, the first change to a session
/// that is only then read whole, and the longest that anything else in the server had to wait for that.
async fn opened(events: usize) -> Vec<(&'static str, Duration)> {
    let served = Served::start().await;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(served.home.path()).unwrap().store;
    let id = session(&store, folder.path(), events).await;
    let client = Client::new(Arc::new(Socket::unix(served.place.sockets())));
    let (list, _) = timed(&served, "/v1/sessions").await;
    let (view, body) = timed(&served, &format!("/v1/sessions/{id}")).await;
    let seen: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let last = seen["row"]["last_seq"].as_u64().unwrap();
    assert!(last as usize >= events);
    assert_eq!((seen["row"]["pending"].as_u64(), seen["row"]["turns"].as_u64()), (Some(0), Some(last / 84)));
    let (page, body) = timed(&served, &format!("/v1/sessions/{id}/log?limit=200")).await;
    let seen: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(seen["events"].as_array().unwrap().last().unwrap()["seq"].as_u64(), Some(last));
    let mut events = client.events(&id, last);
    // The actor reads the whole log now; who looks does not wait for it.
    let watching = tokio::spawn(async move { events.next().await.is_some() });
    let (again, _) = timed(&served, &format!("/v1/sessions/{id}")).await;
    let most = Arc::new(Mutex::new(Duration::ZERO));
    let looking = tokio::spawn(delay(Arc::clone(&most)));
    let began = Instant::now();
    client.rename_session(&id, &RenameSession { name: "longer".into() }).await.unwrap();
    let changed = began.elapsed();
    looking.abort();
    watching.abort();
    served.stop().await;
    let most = *most.lock().unwrap();
    vec![
        ("list", list),
        ("view", view),
        ("last page", page),
        ("view while it is opened", again),
        ("first change", changed),
        ("others waited", most),
    ]
}

#[tokio::test]
async fn a_long_session_is_looked_at_without_being_read_whole() {
    opened(2_000).await;
}

/// Run by hand: `cargo nextest run -p hames-server --release --run-ignored only hundred_thousand`.
#[tokio::test]
#[ignore = "a measurement"]
async fn a_session_of_a_hundred_thousand_events_shows_its_last_page_at_once() {
    let times = opened(100_000).await;
    let text = format!("{times:?}");
    std::fs::write(std::env::temp_dir().join("hames-server-long.txt"), &text).unwrap();
    let of = |what: &str| times.iter().find(|(name, _)| *name == what).map_or(Duration::MAX, |(_, time)| *time);
    let page = of("list") + of("view") + of("last page");
    assert!(page < Duration::from_millis(100), "{text}");
}

//! Streams of events on the wire: from where on they come, and what says that the connection still stands.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use futures_util::StreamExt;
use hames_protocol::SessionId;
use hames_protocol::api::{CreateSession, RenameSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tower::ServiceExt;

use super::kit::{PATIENCE, Served};

/// A session with three events.
async fn session(served: &Served) -> SessionId {
    let (client, folder) = (served.api.client(), served.home.path().to_str().unwrap().to_owned());
    let create = CreateSession { folder, name: Some("one".into()), settings: Default::default() };
    let id = client.create_session(&create).await.unwrap().row.id;
    for name in ["two", "three"] {
        client.rename_session(&id, &RenameSession { name: name.into() }).await.unwrap();
    }
    id
}

/// The ids of the events that come, up to that of the third.
async fn ids(served: &Served, id: &SessionId, query: &str, headers: &str) -> Vec<u64> {
    let mut stream = UnixStream::connect(served.place.sockets().remove(0)).await.unwrap();
    let request = format!("GET /v1/sessions/{id}/events{query} HTTP/1.1\r\nhost: hames\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let reading = async {
        let mut piece = vec![0; 4096];
        while !text.contains("\nid: 3\n") {
            let count = stream.read(&mut piece).await.unwrap();
            assert_ne!(count, 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the events do not come");
    text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

#[tokio::test]
async fn events_come_behind_the_header_before_the_parameter() {
    let served = Served::start().await;
    let id = session(&served).await;
    for (query, headers, expected) in [
        ("?after=0", "", &[1, 2, 3][..]),
        ("?after=1", "", &[2, 3]),
        ("", "last-event-id: 1\r\n", &[2, 3]),
        ("?after=0", "last-event-id: 2\r\n", &[3]),
        ("?after=3", "Last-Event-ID: 0\r\n", &[1, 2, 3]),
    ] {
        assert_eq!(ids(&served, &id, query, headers).await, expected, "{query} {headers}");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_stream_on_which_nothing_happens_beats_every_fifteen_seconds() {
    let served = Served::start().await;
    let id = session(&served).await;
    let request = Request::get(format!("/v1/sessions/{id}/events")).body(Body::empty()).unwrap();
    let answer = served.api.router().oneshot(request).await.unwrap();
    let mut pieces = answer.into_body().into_data_stream();
    assert_eq!(pieces.next().await.unwrap().unwrap(), ":\n\n", "at once, so that whoever attached knows it");
    // Nobody waits for the time: it moves where everybody does.
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for beats in 1..=3 {
        assert_eq!(pieces.next().await.unwrap().unwrap(), ":\n\n");
        assert_eq!(began.elapsed().as_secs(), Duration::from_secs(15 * beats).as_secs());
    }
}

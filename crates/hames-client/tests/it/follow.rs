//! Following a session through connections that break: not an event missing, doubled or out of order.

use std::sync::Arc;

use hames_client::{Client, ClientError, EventStream, News, Socket};
use hames_protocol::api::ApiErrorCode;
use hames_protocol::{Event, SessionId};
use serde_json::json;

use crate::server::{PATIENCE, Server};

/// Connections cut in the tests, and in a soak.
fn cuts() -> usize {
    if std::env::var_os("HAMES_SOAK").is_some() { 500 } else { 25 }
}

fn follow(server: &Server, after: u64) -> EventStream {
    Client::new(Arc::new(Socket::unix([server.path.clone()]))).events(&SessionId::from("s"), after)
}

async fn next(stream: &mut EventStream) -> News {
    tokio::time::timeout(PATIENCE, stream.next()).await.expect("no news").expect("the stream ended")
}

/// What a face holds: the log, and the text of the open step.
#[derive(Debug, Default, PartialEq)]
struct Screen {
    log: Vec<(u64, String)>,
    open: String,
    losses: usize,
}

impl Screen {
    fn take(&mut self, news: News) {
        match news {
            News::Event(envelope) => match (envelope.seq, envelope.event) {
                (Some(seq), Event::TextDone(done)) => {
                    self.log.push((seq, done.text));
                    self.open.clear();
                }
                (None, Event::TextDelta(delta)) => {
                    assert_eq!(
                        usize::try_from(delta.offset).unwrap(),
                        self.open.len(),
                        "a gap or a double in the open step"
                    );
                    self.open.push_str(&delta.text);
                }
                (None, Event::StepSnapshot(snapshot)) => self.open = snapshot.blocks[0].text.clone(),
                (_, other) => panic!("{other:?}"),
            },
            News::Lost { .. } => self.losses += 1,
            News::Connected => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn connections_cut_at_any_byte_neither_lose_nor_double_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let seed: u64 = std::env::var("HAMES_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(11);
    let mut dice = seed.max(1);
    let mut roll = move |below: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % below as u64) as usize
    };
    let cuts = cuts();
    server.change(|world| {
        // From in the middle of the head to some events further.
        world.cuts = (0..cuts).map(|_| roll(900)).chain([usize::MAX]).collect();
    });
    let mut stream = follow(&server, 0);
    let mut screen = Screen::default();
    let mut said = Vec::new();
    let mut open = String::new();
    // What is cut before its head is there is no loss of its own: the connections are counted, not the losses.
    while server.world.lock().unwrap().cuts.len() > 1 {
        assert!(said.len() < 100 * cuts, "seed {seed}: connections are no longer cut");
        match roll(4) {
            0 => {
                let text = format!("text {} {}", said.len(), "é".repeat(roll(60)));
                said.push((said.len() as u64 + 1, text.clone()));
                server.log(&text);
                open.clear();
            }
            1 | 2 => {
                let piece = "x".repeat(roll(40) + 1);
                server.delta(open.len(), &piece);
                open.push_str(&piece);
            }
            // A future that is dropped loses nothing.
            _ => drop(
                tokio::time::timeout(std::time::Duration::from_micros(1), stream.next())
                    .await
                    .map(|news| screen.take(news.unwrap())),
            ),
        }
        if screen.log.len() < said.len() || screen.open != open {
            screen.take(next(&mut stream).await);
        }
    }
    while screen.log != said || screen.open != open {
        screen.take(next(&mut stream).await);
    }
    // Each attempt went on behind what was given last.
    let asked = server.change(|world| world.asked.clone());
    assert!(asked.is_sorted(), "seed {seed}: {asked:?}");
    assert!(asked.len() >= cuts, "seed {seed}: {} connections", asked.len());
}

#[tokio::test]
async fn three_who_attach_at_different_times_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.change(|world| world.cuts = vec![700, 300, 1200, 90, usize::MAX]);
    let mut screens: [Screen; 3] = Default::default();
    let mut streams = [follow(&server, 0), follow(&server, 0), follow(&server, 0)];
    server.log("first");
    screens[0].take(next(&mut streams[0]).await);
    server.delta(0, "half ");
    // Attaches in the middle of the step.
    screens[1].take(next(&mut streams[1]).await);
    server.delta(5, "and half");
    server.log("half and half");
    server.delta(0, "third");
    for (screen, stream) in screens.iter_mut().zip(&mut streams) {
        while screen.log.len() < 2 || screen.open != "third" {
            screen.take(next(stream).await);
        }
        screen.losses = 0;
    }
    assert_eq!(screens[0].log, [(1, "first".to_owned()), (2, "half and half".to_owned())]);
    assert_eq!(screens[0], screens[1]);
    assert_eq!(screens[1], screens[2]);
}

#[tokio::test]
async fn a_resync_says_what_still_holds_and_an_end_is_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    for text in ["a", "b", "c"] {
        server.log(text);
    }
    server.change(|world| {
        world.refusals = vec![
            (503, json!({"code": "stopping", "message": "The server is stopping."})),
            (410, json!({"code": "resync", "message": "There is no event 9 yet."})),
        ];
    });
    let mut stream = follow(&server, 9);
    assert!(matches!(next(&mut stream).await, News::Lost { why, stopping: true } if why == "The server is stopping."));
    assert_eq!(next(&mut stream).await, News::Resync { after: 0 });
    assert_eq!(next(&mut stream).await, News::Connected);
    let mut screen = Screen::default();
    while screen.log.len() < 3 {
        screen.take(next(&mut stream).await);
    }
    server.change(|world| {
        world.refusals = vec![(404, json!({"code": "not_found", "message": "The session was deleted."}))];
    });
    let mut stream = follow(&server, 0);
    let News::Ended(ClientError::Refused(refusal)) = next(&mut stream).await else { panic!("it goes on") };
    assert_eq!(refusal.code, ApiErrorCode::NotFound);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again_and_the_loss_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let client = Client::new(Arc::new(Socket::unix([path])));
    let mut stream = client.events(&SessionId::from("s"), 0);
    assert!(matches!(next(&mut stream).await, News::Lost { .. }));
    let server = Server::start(folder.path());
    server.log("back");
    assert_eq!(next(&mut stream).await, News::Connected);
    assert!(matches!(next(&mut stream).await, News::Event(_)));
}

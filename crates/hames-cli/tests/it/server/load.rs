//! Many sessions that stream at once.

use std::time::{Duration, Instant};

use hames_client::News;
use hames_protocol::{Delivery, Event, Mode, OpenKind};
use hames_testkit::{Script, Turn};
use serde_json::json;
use tokio::task::JoinSet;

use super::{Server, client, message, session};
use crate::crash::dice::{report, size};
use crate::kit::{PATIENCE, User};

/// Pieces of each answer, and the time between two: 50 a second.
const PIECES: usize = 250;
const PAUSE: Duration = Duration::from_millis(20);
/// Resident memory the server may have.
const MEMORY: u64 = 300_000_000;

#[test]
fn many_sessions_stream_at_once_and_nothing_is_lost() {
    let sessions = size(12, 200);
    let text: String = (0..PIECES).map(|n| format!("word{n:04} ")).collect();
    let said = text.clone();
    let (user, provider) = User::with(
        Script::new()
            .respond(move |_| Turn::text(said.clone()).chunk_chars(said.len() / PIECES).delay_per_chunk(PAUSE)),
    );
    let _server = Server::start(&user, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let began = Instant::now();
    let most = runtime.block_on(async {
        let client = client(&user).await;
        let mut running = JoinSet::new();
        for n in 0..sessions {
            let (client, text, folder) = (client.clone(), text.clone(), user.project());
            running.spawn(async move {
                let id = session(&client, &folder, &format!("s{n}"), Mode::Analyze).await;
                let mut news = client.events(&id, 0);
                message(&client, &id, "speak", Delivery::Queue).await;
                let (mut live, mut seqs) = (String::new(), Vec::new());
                loop {
                    match news.next().await.unwrap() {
                        News::Event(envelope) => {
                            seqs.extend(envelope.seq);
                            match envelope.event {
                                // Whoever comes in the middle is told what there was.
                                Event::StepSnapshot(open) => {
                                    let texts = open.blocks.into_iter().filter(|block| block.kind == OpenKind::Text);
                                    live = texts.map(|block| block.text).collect();
                                }
                                Event::TextDelta(delta) => live.push_str(&delta.text),
                                Event::TextDone(done) => assert_eq!(done.text, text),
                                Event::RunDone(_) => break,
                                _ => {}
                            }
                        }
                        News::Connected => {}
                        other => panic!("session {n}: {other:?}"),
                    }
                }
                assert_eq!(live, text);
                assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
            });
        }
        let mut most = 0;
        while !running.is_empty() {
            tokio::select! {
                ended = running.join_next() => ended.unwrap().unwrap(),
                () = tokio::time::sleep(Duration::from_millis(500)) => {
                    most = most.max(client.status().await.unwrap().memory_bytes.unwrap_or(0));
                }
            }
            assert!(began.elapsed() < PATIENCE * 5, "it takes for ever");
        }
        most
    });
    assert!(most < MEMORY, "{most} bytes");
    assert_eq!(provider.violations(), []);
    let counts = json!({"sessions": sessions, "deltas": sessions * PIECES, "memory_mb": most / 1_000_000,
        "seconds": began.elapsed().as_secs()});
    println!("{}", report(&json!({"name": "server_load", "counts": counts})));
}

//! Many sessions at once, each watched.

use std::time::Instant;

use hames_protocol::api::CreateSession;
use hames_protocol::{Delivery, Event, Settings};

use crate::support::{Bed, Picture, Reply, message};

/// Bytes of this process that are resident.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// So many sessions stream so many pieces each, with a client on each from the beginning; gives seconds and bytes.
async fn stream(sessions: usize, pieces: usize, pace_ms: Option<u64>) -> (f64, u64) {
    let bed = Bed::new().await;
    let before = resident();
    let reply = || Reply::pieces((0..pieces).map(|n| format!("piece {n} ")));
    let reply = || pace_ms.map_or_else(reply, |ms| reply().paced(ms));
    bed.model.will((0..sessions).map(|_| reply()));
    let mut clients = Vec::new();
    let mut ids = Vec::new();
    for n in 0..sessions {
        let folder = bed.folder.path().to_str().unwrap().to_owned();
        let new = CreateSession { folder, name: Some(format!("s{n}")), settings: Settings::default() };
        let id = bed.hub.create(new).await.unwrap().row.id;
        let mut client = bed.hub.attach(&id, Some(0)).await.unwrap();
        ids.push(id);
        // It has the log and is live before anything begins.
        let mut picture = Picture::default();
        while picture.seqs.is_empty() {
            client.next().await.unwrap().unwrap().iter().for_each(|news| picture.take_in(news));
        }
        clients.push(tokio::spawn(async move {
            let mut most = 0;
            loop {
                let batch = client.next().await.unwrap().unwrap();
                for news in &batch {
                    picture.take_in(news);
                    most = most.max(picture.open().len());
                }
                if batch.iter().any(|news| matches!(news.envelope().event, Event::RunDone(_))) {
                    return (picture, most);
                }
            }
        }));
    }
    let begun = Instant::now();
    for id in &ids {
        bed.hub.send(id, message("go", Delivery::Queue)).await.unwrap();
    }
    let whole: String = (0..pieces).map(|n| format!("piece {n} ")).collect();
    let mut bytes = 0;
    for client in clients {
        let (picture, most) = client.await.unwrap();
        bytes = resident().saturating_sub(before).max(bytes);
        assert_eq!(picture.texts, std::slice::from_ref(&whole));
        assert_eq!(most, whole.len(), "every piece came while it streamed");
        assert!(picture.seqs.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
    (begun.elapsed().as_secs_f64(), bytes)
}

#[tokio::test]
async fn sessions_that_stream_together_lose_nothing() {
    stream(20, 100, None).await;
}

/// Run by hand: `cargo nextest run -p hames-server --release --run-ignored only two_hundred`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn two_hundred_sessions_at_fifty_pieces_a_second_need_less_than_a_second_for_each() {
    let (seconds, bytes) = stream(200, 500, None).await;
    let rate = 200.0 * 500.0 / seconds;
    let text = format!("200 sessions, 500 pieces each: {seconds:.2} s, {rate:.0} pieces/s, {} MB more", bytes >> 20);
    assert!(rate > 10_000.0 && bytes < 300 << 20, "{text}");
    std::fs::write(std::env::temp_dir().join("hames-server-load.txt"), text).unwrap();
}

/// Run by hand: `cargo nextest run -p hames-server --release --run-ignored only paced`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes more than a minute"]
async fn two_hundred_paced_sessions_lose_no_piece_in_a_minute() {
    let (seconds, bytes) = stream(200, 60 * 50, Some(20)).await;
    let text = format!("200 sessions, 50 pieces a second each for a minute: {seconds:.2} s, {} MB more", bytes >> 20);
    std::fs::write(std::env::temp_dir().join("hames-server-paced.txt"), &text).unwrap();
    assert!(seconds < 75.0 && bytes < 300 << 20, "{text}");
}

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

/// So many sessions stream so many pieces each, with a client on each; gives seconds and bytes.
async fn stream(sessions: usize, pieces: usize) -> (f64, u64) {
    let bed = Bed::new().await;
    let before = resident();
    let reply = || Reply::pieces((0..pieces).map(|n| format!("piece {n} ")));
    bed.model.will((0..sessions).map(|_| reply()));
    let mut clients = Vec::new();
    let mut ids = Vec::new();
    for n in 0..sessions {
        let folder = bed.folder.path().to_str().unwrap().to_owned();
        let new = CreateSession { folder, name: Some(format!("s{n}")), settings: Settings::default() };
        ids.push(bed.hub.create(new).await.unwrap().row.id);
    }
    let begun = Instant::now();
    for id in &ids {
        let mut client = bed.hub.attach(id, Some(0)).await.unwrap();
        clients.push(tokio::spawn(async move {
            let mut picture = Picture::default();
            loop {
                let batch = client.next().await.unwrap().unwrap();
                batch.iter().for_each(|news| picture.take_in(news));
                if batch.iter().any(|news| matches!(news.envelope().event, Event::RunDone(_))) {
                    return picture;
                }
            }
        }));
        bed.hub.send(id, message("go", Delivery::Queue)).await.unwrap();
    }
    let whole: String = (0..pieces).map(|n| format!("piece {n} ")).collect();
    for client in clients {
        let picture = client.await.unwrap();
        assert_eq!(picture.texts, std::slice::from_ref(&whole));
        // Who came late has the whole from the log, without the pieces.
        assert!(picture.open().is_empty() || picture.open() == whole);
        assert!(picture.seqs.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
    (begun.elapsed().as_secs_f64(), resident().saturating_sub(before))
}

#[tokio::test]
async fn sessions_that_stream_together_lose_nothing() {
    stream(20, 100).await;
}

/// Run by hand: `cargo nextest run -p hames-server --release --run-ignored only two_hundred`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn two_hundred_sessions_at_fifty_pieces_a_second_need_less_than_a_second_for_each() {
    let (seconds, bytes) = stream(200, 500).await;
    let rate = 200.0 * 500.0 / seconds;
    let text = format!("200 sessions, 500 pieces each: {seconds:.2} s, {rate:.0} pieces/s, {} MB more", bytes >> 20);
    assert!(rate > 10_000.0 && bytes < 300 << 20, "{text}");
    std::fs::write(std::env::temp_dir().join("hames-server-load.txt"), text).unwrap();
}

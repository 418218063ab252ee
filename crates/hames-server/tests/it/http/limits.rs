//! What a connection bears.

use std::time::{Duration, Instant};

use hames_server::http::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::kit::{PATIENCE, Served};

#[tokio::test]
async fn a_head_that_does_not_come_closes_the_connection_and_one_that_is_too_large_is_refused() {
    let served = Served::with(Limits { head: Duration::from_millis(200), ..Limits::default() }).await;
    for begun in ["", "GET /v1/health HTTP/1.1\r\nhost: x\r\n"] {
        let mut slow = TcpStream::connect(served.address).await.unwrap();
        slow.write_all(begun.as_bytes()).await.unwrap();
        let began = Instant::now();
        let ended = tokio::time::timeout(PATIENCE, slow.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "{begun:?} is waited for");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    assert_eq!(served.raw(format!("GET /v1/health HTTP/1.1\r\n{many}\r\n")).await.status, 431);
    let long = "x".repeat(64 * 1024);
    let refused = served.raw(format!("GET /v1/health HTTP/1.1\r\nx: {long}\r\n\r\n")).await.status;
    assert!([431, 0].contains(&refused), "{refused}");
    served.stop().await;
}

#[tokio::test]
async fn whoever_is_one_too_many_is_told_so_and_the_place_is_free_again_afterwards() {
    let served = Served::with(Limits { connections: 2, ..Limits::default() }).await;
    let (first, second) =
        (TcpStream::connect(served.address).await.unwrap(), TcpStream::connect(served.address).await.unwrap());
    // The listener takes connections in their order, so the third is the one too many.
    let refusal = served.raw("").await;
    assert_eq!((refusal.status, refusal.refusal().code.status()), (503, 503));
    drop((first, second));
    let free = async {
        while served.ask("GET", "/v1/health", "", b"").await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.expect("the places are free again");
    served.stop().await;
}

#[tokio::test]
async fn a_stop_lets_go_of_idle_connections() {
    let served = Served::start().await;
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    // It is taken by now, because the one behind it was answered.
    assert_eq!(served.ask("GET", "/v1/health", "", b"").await.status, 200);
    served.stop().await;
    assert_eq!(idle.read_to_end(&mut Vec::new()).await.unwrap_or(0), 0);
}

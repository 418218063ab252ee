//! Every fault, as a raw client sees it.

use std::{io, time::Duration};

use hames_testkit::trouble::{Trouble, stream};
use hames_testkit::{Provider, Script, Turn, blocking};
use serde_json::json;

use crate::client::{Client, End, LIMIT, request};

fn provider(turn: Turn) -> Provider {
    blocking(Script::new().turn(turn).respond(|_| Turn::text("again"))).unwrap()
}

/// The turn's whole stream; ids and times are of fixed length.
fn length(turn: Turn) -> usize {
    Client::to(&provider(turn)).chat(&request()).body().len()
}

#[test]
fn a_broken_stream_ends_after_exactly_its_bytes() {
    let turn = || Turn::text("hello there");
    let raw = || Turn::raw_sse("data: {\"é\":1}\n\ndata: [DONE]\n\n");
    let error = || Turn::error(500, json!({"error": "broken"}));
    for make in [&turn as &dyn Fn() -> Turn, &|| turn().plain_json(), &|| turn().split_bytes(5), &raw, &error] {
        let whole = length(make());
        for bytes in [0, 1, 7, 8, whole - 1, whole, whole + 10] {
            for (turn, end) in [(make().cut_after(bytes), End::Cut), (make().reset_after(bytes), End::Reset)] {
                let response = Client::to(&provider(turn)).chat(&request());
                let sized = response.head.contains("content-length");
                if sized && bytes >= whole {
                    assert_eq!(response.end, End::Complete, "the body was all there");
                } else {
                    assert_eq!(response.end, end, "after {bytes} of {whole}");
                }
                assert_eq!(response.body().len(), bytes.min(whole));
            }
        }
    }
}

#[test]
fn a_connection_can_end_before_the_head() {
    for (turn, expected) in [
        (Turn::text("x").cut_before_head(), io::ErrorKind::UnexpectedEof),
        (Turn::text("x").reset_before_head(), io::ErrorKind::ConnectionReset),
        (Turn::error(500, "x").reset_before_head(), io::ErrorKind::ConnectionReset),
    ] {
        let provider = provider(turn);
        let mut client = Client::to(&provider);
        client.post(&request().to_string());
        assert_eq!(client.response().unwrap_err().kind(), expected);
        assert_eq!(Client::to(&provider).chat(&request()).status, 200, "the next connection is served");
        assert_eq!((provider.connections(), provider.hangups(), provider.requests().len()), (2, 0, 2));
    }
}

#[test]
fn a_stalled_stream_waits_until_the_client_leaves() {
    for bytes in [0, 30] {
        let provider = provider(Turn::text("hello").chunk_chars(0).stall_after(bytes));
        let mut client = Client::to(&provider);
        client.post(&request().to_string());
        client.head().unwrap().unwrap();
        if bytes > 0 {
            assert_eq!(client.chunk().unwrap().unwrap().len(), bytes);
        }
        assert_eq!(Client::to(&provider).chat(&request()).end, End::Complete, "others are served meanwhile");
        assert!(!provider.is_idle_within(Duration::ZERO));
        drop(client);
        assert!(provider.is_idle_within(LIMIT));
        assert_eq!(provider.hangups(), 1);
    }
}

#[test]
fn a_stalled_stream_ends_when_the_provider_stops() {
    let provider = provider(Turn::text("hello").stall_after(0));
    let mut client = Client::to(&provider);
    client.post(&request().to_string());
    client.head().unwrap().unwrap();
    drop(provider);
    assert!(matches!(client.chunk(), Ok(None)));
}

#[test]
fn keepalives_are_all_there_is() {
    let never = || Turn::text("never").keepalive_only(Duration::from_millis(1));
    for (turn, kind, bytes) in
        [(never(), "text/event-stream", ": keep-alive\n\n"), (never().plain_json(), "application/json", "\n")]
    {
        let provider = provider(turn);
        let mut client = Client::to(&provider);
        client.post(&request().to_string());
        assert!(client.head().unwrap().unwrap().contains(kind));
        for _ in 0..5 {
            assert_eq!(client.chunk().unwrap().unwrap(), bytes.as_bytes());
        }
        drop(client);
        assert!(provider.is_idle_within(LIMIT));
        assert_eq!(provider.hangups(), 1);
    }
}

#[test]
fn a_client_that_leaves_during_a_delay_is_noticed() {
    let provider = provider(Turn::text("hello").delay_per_chunk(Duration::from_secs(3600)));
    let mut client = Client::to(&provider);
    client.post(&request().to_string());
    client.head().unwrap().unwrap();
    drop(client);
    assert!(provider.is_idle_within(LIMIT));
    assert_eq!(provider.hangups(), 1);
}

#[test]
fn an_endless_stream_goes_on_until_the_client_leaves() {
    let provider = provider(Turn::raw_sse("data: 1\n\ndata: 22\n\n").endless());
    let mut client = Client::to(&provider);
    client.post(&request().to_string());
    assert!(!client.head().unwrap().unwrap().contains("content-length"));
    assert_eq!(client.chunk().unwrap().unwrap(), b"data: 1\n\n");
    for _ in 0..1_000 {
        assert_eq!(client.chunk().unwrap().unwrap(), b"data: 22\n\n");
    }
    drop(client);
    assert!(provider.is_idle_within(LIMIT));
    assert_eq!(provider.hangups(), 1);
}

#[test]
fn every_trouble_comes_from_a_seed_and_the_same_one_again() {
    let seeds = 1..=64;
    let troubles: Vec<Trouble> = seeds.clone().map(|seed| stream(seed).0).collect();
    assert!(Trouble::ALL.iter().all(|trouble| troubles.contains(trouble)), "{troubles:?}");
    for (seed, trouble) in seeds.zip(troubles) {
        let [(first, one), (second, other)] = [stream(seed), stream(seed)];
        assert_eq!((first, second), (trouble, trouble));
        // The large ones are of megabytes, and written out of ten times as many.
        let is_large = [Trouble::GiantLine, Trouble::EndlessText, Trouble::EndlessReasoning].contains(&trouble);
        if !is_large {
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
        }
    }
}

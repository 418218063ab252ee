//! HTTP as clients of all kinds speak it, and as none should.

use hames_testkit::{Provider, Script, Turn, blocking};
use proptest::prelude::*;
use serde_json::json;

use crate::client::{Client, End, request};

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#;

fn provider() -> Provider {
    blocking(Script::new().respond(|_| Turn::text("fine"))).unwrap()
}

fn post(headers: &str, body: &str) -> String {
    format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{headers}\r\n{body}")
}

#[test]
fn bodies_come_sized_or_in_chunks() {
    let (first, second) = BODY.split_at(9);
    let chunked =
        format!("9\r\n{first}\r\n{:x};name=\"value\"\r\n{second}\r\n000\r\nx-trailer: 1\r\n\r\n", second.len());
    for (headers, body) in [
        (format!("content-length: {}\r\n", BODY.len()), BODY),
        (format!("Content-Length:{}\r\nContent-Length: {}\r\n", BODY.len(), BODY.len()), BODY),
        ("transfer-encoding: chunked\r\n".to_owned(), &*chunked),
        ("Transfer-Encoding: Chunked\r\n".to_owned(), &*chunked),
    ] {
        let provider = provider();
        let mut client = Client::to(&provider);
        for n in 1..=3 {
            client.send(post(&headers, body));
            assert_eq!(client.response().unwrap().status, 200, "{headers}");
            assert_eq!(provider.requests().last().unwrap().raw, BODY);
            assert_eq!((provider.requests().len(), provider.connections()), (n, 1));
        }
    }
}

#[test]
fn a_request_may_come_byte_by_byte_and_two_may_come_at_once() {
    let provider = provider();
    let mut client = Client::to(&provider);
    let whole = post(&format!("content-length: {}\r\n", BODY.len()), BODY);
    for byte in whole.bytes() {
        client.send([byte]);
    }
    assert_eq!(client.response().unwrap().status, 200);
    client.send(whole.repeat(2));
    assert_eq!([(); 2].map(|()| client.response().unwrap().status), [200, 200]);
    assert_eq!(provider.connections(), 1);
}

#[test]
fn a_client_that_waits_for_leave_gets_it() {
    let provider = provider();
    let mut client = Client::to(&provider);
    client.send(post(&format!("expect: 100-continue\r\ncontent-length: {}\r\n", BODY.len()), ""));
    assert!(client.head().unwrap().unwrap().starts_with("HTTP/1.1 100 "));
    client.send(BODY);
    assert_eq!(client.response().unwrap().status, 200);
}

#[test]
fn a_connection_is_closed_when_either_side_says_so() {
    let closing = Turn::text("x").header("connection", "close");
    let provider = blocking(Script::new().turns([closing, Turn::text("x"), Turn::text("x")])).unwrap();
    let length = BODY.len();
    for request in [
        post(&format!("content-length: {length}\r\n"), BODY),
        post(&format!("content-length: {length}\r\nConnection: Close\r\n"), BODY),
        format!("POST /chat/completions HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{BODY}"),
    ] {
        let mut client = Client::to(&provider);
        client.send(request);
        let response = client.response().unwrap();
        assert_eq!((response.status, &response.end), (200, &End::Complete));
        assert_eq!(response.head.matches("connection: close").count(), 1);
        assert_eq!(client.rest().unwrap(), b"");
    }
}

#[test]
fn an_old_client_reads_a_stream_to_its_end() {
    let provider = provider();
    let mut client = Client::to(&provider);
    let body = request().to_string();
    client.send(format!("POST /chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    let response = client.response().unwrap();
    assert!(!response.head.contains("transfer-encoding"));
    assert_eq!(response.events().last(), Some(&json!("[DONE]")));
}

#[test]
fn models_are_listed_and_other_paths_are_not_found() {
    let provider = blocking(Script::new().models(json!([{"id": "big"}]))).unwrap();
    let mut client = Client::to(&provider);
    for (line, status) in [
        ("GET /v1/models", 200),
        ("GET /models?limit=5", 200),
        ("DELETE /v1/models", 405),
        ("GET /v1/chat/completions", 405),
        ("POST /v1/responses", 404),
        ("GET /", 404),
    ] {
        client.send(format!("{line} HTTP/1.1\r\nhost: x\r\n\r\n"));
        let response = client.response().unwrap();
        assert_eq!(response.status, status, "{line}");
        if status == 200 {
            assert_eq!(response.json(), json!({"object": "list", "data": [{"id": "big"}]}));
        }
    }
    assert_eq!(provider.other_requests()[..2], ["GET /v1/models", "GET /models"]);
    client.send("HEAD /v1/models HTTP/1.1\r\n\r\n");
    assert!(client.head().unwrap().unwrap().starts_with("HTTP/1.1 200"));
    client.send("GET /v1/models HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 200, "a head has no body");
}

#[test]
fn what_is_no_request_is_refused_and_the_connection_closed() {
    let chunks = |body: &str| post("transfer-encoding: chunked\r\n", body);
    for (bytes, status) in [
        ("hello\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/3.0\r\n\r\n".to_owned(), 400),
        ("GET /a b HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(129)), 400),
        (format!("GET / HTTP/1.1\r\nlong: {}", "x".repeat(70_000)), 431),
        (post("content-length: -1\r\n", ""), 400),
        (post("content-length: 1e3\r\n", ""), 400),
        (post("content-length: 99999999999\r\n", ""), 413),
        (post("content-length: 999999999999999999999999\r\n", ""), 413),
        (post("content-length: 4\r\ncontent-length: 5\r\n", ""), 400),
        (post("content-length: 4\r\ntransfer-encoding: chunked\r\n", ""), 400),
        (post("transfer-encoding: gzip\r\n", ""), 400),
        (chunks("x\r\n"), 400),
        (chunks("\r\n"), 400),
        (chunks("2\r\nabc\r\n"), 400),
        (chunks("fffffffff\r\n"), 413),
        (chunks("ffffffffffffffffffffffff\r\n"), 413),
        (chunks(&"0".repeat(70_000)), 400),
        (chunks(&format!("0\r\n{}", "t: x\r\n".repeat(20_000))), 413),
    ] {
        let provider = provider();
        let mut client = Client::to(&provider);
        client.send(&bytes);
        let start = &bytes[..bytes.len().min(90)];
        assert_eq!(client.response().unwrap().status, status, "{start}");
        assert_eq!(client.rest().unwrap(), b"", "{start}");
        assert_eq!(provider.violations()[0].rule, "bad_http", "{start}");
        assert_eq!(provider.requests().len(), 0);
    }
}

fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_stop_the_server(start in "(POST /v1/chat/completions HTTP/1.1\r\n)?(transfer-encoding: chunked\r\n\r\n)?",
                                bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let provider = provider();
        let mut client = Client::to(&provider);
        client.send(&start);
        client.send(&bytes);
        drop(client);
        prop_assert_eq!(Client::to(&provider).chat(&request()).status, 200);
    }

    #[test]
    fn no_body_stops_the_server(body in ".{0,200}") {
        let provider = provider();
        let mut client = Client::to(&provider);
        client.post(&body);
        prop_assert!(client.response().unwrap().status >= 200);
        prop_assert_eq!(client.chat(&request()).status, 200);
    }
}

//! Nothing on loopback TCP answers without the token, or with a foreign host or origin, however the request is written.

use std::time::Duration;

use hames_server::http::Limits;

use super::kit::{Served, TOKEN};
use super::rows::filled;

/// What must not be in any refusal: what a stranger may not learn.
const PRIVATE: [&str; 3] = ["\"sessions\"", "\"pid\"", "access-control-"];

#[tokio::test]
async fn nothing_on_loopback_tcp_answers_a_stranger() {
    // What is no whole request is not waited for.
    let served = Served::with(Limits { head: Duration::from_millis(300), ..Limits::default() }).await;
    let port = served.address.port();
    let ours = format!("host: 127.0.0.1:{port}\r\n");
    let token = format!("authorization: Bearer {TOKEN}\r\n");
    let json = "content-type: application/json\r\ncontent-length: 17\r\n";
    let create = r#"{"folder":"/tmp"}"#;
    let get = |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
    let post = |headers: &str| format!("POST /v1/sessions HTTP/1.1\r\n{headers}connection: close\r\n\r\n{create}");

    let mut cases: Vec<(String, u16)> = Vec::new();
    // No token, or not this one: every kind of path and method.
    for target in ["/v1/health", "/v1/server", "/v1/sessions", "/v1/sessions/x/events?after=0", "/", "/nothing"] {
        cases.push((get(target, &ours), 401));
        cases.push((get(target, &format!("{ours}authorization: Bearer wrong\r\n")), 401));
        cases.push((get(target, &format!("{ours}authorization: Basic {TOKEN}\r\n")), 401));
        cases.push((get(target, &format!("{ours}{token}authorization: Bearer wrong\r\n")), 401));
        cases.push((get(&format!("{target}?token={TOKEN}"), &ours), 401));
        cases.push((get(target, &format!("{ours}cookie: token={TOKEN}\r\n")), 401));
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"] {
        cases.push((format!("{method} /v1/sessions HTTP/1.1\r\n{ours}connection: close\r\n\r\n"), 401));
    }
    // Hosts that are not ours, the token notwithstanding.
    for host in [
        "evil.test",
        &format!("evil.test:{port}"),
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        &format!("localhost.:{port}"),
        &format!("127.0.0.1.evil.test:{port}"),
        &format!("[::ffff:127.0.0.1]:{port}"),
        &format!("[::1%25lo]:{port}"),
        &format!("0x7f000001:{port}"),
        &format!("2130706433:{port}"),
        &format!("0.0.0.0:{port}"),
        &format!("a@127.0.0.1:{port}"),
        "",
    ] {
        cases.push((get("/v1/health", &format!("host: {host}\r\n{token}")), 403));
    }
    cases.push((get("/v1/health", &token), 403));
    cases.push((get("/v1/health", &format!("{ours}host: evil.test\r\n{token}")), 403));
    cases.push((get("/v1/health", &format!("{ours}{ours}{token}")), 403));
    cases.push((get("http://evil.test/v1/health", &format!("{ours}{token}")), 403));
    cases.push((get(&format!("http://evil.test:{port}/v1/health"), &format!("host: evil.test\r\n{token}")), 403));
    cases.push((get(&format!("http://127.0.0.1:{port}@evil.test/v1/health"), &format!("{ours}{token}")), 403));
    // Origins that are not ours.
    for origin in
        ["https://evil.test", "null", "http://localhost", "file://", &format!("http://localhost:{port}.evil.test")]
    {
        cases.push((get("/v1/health", &format!("{ours}{token}origin: {origin}\r\n")), 403));
        cases.push((post(&format!("{ours}{token}origin: {origin}\r\n{json}")), 403));
    }
    // What web pages can send without a preflight, and the preflight itself.
    cases.push((
        post(&format!("{ours}origin: https://evil.test\r\ncontent-type: text/plain\r\ncontent-length: 17\r\n")),
        403,
    ));
    cases.push((post(&format!("{ours}content-type: text/plain\r\ncontent-length: 17\r\n")), 401));
    cases.push((post(&format!("{ours}{token}content-type: text/plain\r\ncontent-length: 17\r\n")), 415));
    cases.push((
        format!(
            "OPTIONS /v1/sessions HTTP/1.1\r\n{ours}origin: https://evil.test\r\naccess-control-request-method: POST\r\n\
             access-control-request-headers: authorization\r\nconnection: close\r\n\r\n"
        ),
        403,
    ));
    let upgrade = "upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    let events = "/v1/sessions/x/events";
    cases.push((
        format!("GET {events} HTTP/1.1\r\n{ours}origin: https://evil.test\r\nconnection: upgrade\r\n{upgrade}\r\n"),
        403,
    ));
    cases.push((format!("GET {events} HTTP/1.1\r\n{ours}connection: upgrade, close\r\n{upgrade}\r\n"), 401));
    // HTTP/1.0, which needs no host and closes by itself.
    cases.push(("GET /v1/health HTTP/1.0\r\n\r\n".into(), 403));
    cases.push((format!("GET /v1/health HTTP/1.0\r\n{token}\r\n"), 403));
    cases.push((format!("GET /v1/health HTTP/1.0\r\n{ours}\r\n"), 401));
    cases.push((format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n{ours}connection: close\r\n\r\n"), 401));

    for (request, expected) in &cases {
        let answer = served.raw(request).await;
        assert_eq!(answer.status, *expected, "{request}\n{answer:?}");
        let text = format!("{}{}", answer.head, String::from_utf8_lossy(&answer.body));
        for private in PRIVATE {
            assert!(!text.contains(private), "{request}\n{text}");
        }
        if !request.starts_with("HEAD") {
            answer.refusal();
        }
    }
    // What is no HTTP gets no more than a bare refusal; nothing of it is answered.
    for garbage in [
        "GET /v1/health\r\n\r\n",
        "GET /v1/health HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}",
        "GET /v1/health HTTP/1.1\r\nhost : x\r\n\r\n",
        "GET /v1/health HTTP/1.1\r\n bad: fold\r\n\r\n",
        "POST /v1/sessions HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        "POST /v1/sessions HTTP/1.1\r\ntransfer-encoding: gzip\r\ncontent-length: 4\r\n\r\n",
    ] {
        let answer = served.raw(format!("{garbage}\r\n\r\n\r\n")).await;
        assert!([0, 400, 401, 403, 505].contains(&answer.status), "{garbage:?} {answer:?}");
    }
    // And whoever may, may: by each name of this machine.
    for host in ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"] {
        let headers = format!("host: {host}:{port}\r\n{token}");
        assert_eq!(served.raw(get("/v1/health", &headers)).await.json()["name"], "hames", "{host}");
        let origin = format!("{headers}origin: http://localhost:{port}\r\n");
        let answer = served.raw(get(&format!("http://127.0.0.1:{port}/v1/health"), &origin)).await;
        assert_eq!((answer.status, answer.head.contains("access-control")), (200, false));
    }
    let old = served.raw(format!("GET /v1/health HTTP/1.0\r\n{ours}{token}\r\n")).await;
    assert_eq!(old.json()["name"], "hames");
    served.stop().await;
}

#[tokio::test]
async fn no_operation_of_the_document_answers_a_stranger_or_does_anything_for_one() {
    let served = Served::start().await;
    let port = served.address.port();
    let (ours, token) = (format!("host: 127.0.0.1:{port}\r\n"), format!("authorization: Bearer {TOKEN}\r\n"));
    // A session that a delete, a cut, a message would show in.
    let folder = served.home.path().to_str().unwrap();
    let create = format!(r#"{{"folder":"{folder}","name":"mine"}}"#);
    let made = served.ask("POST", "/v1/sessions", "content-type: application/json\r\n", create.as_bytes()).await.json();
    let id = made["row"]["id"].as_str().unwrap();
    let sessions = async || served.ask("GET", "/v1/sessions", "", b"").await.json();
    let before = sessions().await;

    let document = hames_protocol::schema::openapi();
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let target = path.replace("{id}", id);
        let target = filled(&target);
        for (method, operation) in methods.as_object().unwrap() {
            operations += 1;
            let (media_type, body) = match operation["requestBody"]["content"].as_object() {
                Some(content) => (content.keys().next().unwrap().as_str(), "{}"),
                None => ("application/json", ""),
            };
            let request = |headers: &str| {
                let length = body.len();
                format!(
                    "{} {target} HTTP/1.1\r\n{headers}content-type: {media_type}\r\ncontent-length: {length}\r\n\
                     connection: close\r\n\r\n{body}",
                    method.to_uppercase()
                )
            };
            for (headers, status) in [
                (ours.clone(), 401),
                (format!("{ours}authorization: Bearer {}\r\n", TOKEN.replace('0', "1")), 401),
                (format!("{ours}authorization: Bearer\r\n"), 401),
                (format!("{ours}origin: http://127.0.0.1:{port}\r\n"), 401),
                (format!("host: evil.test:{port}\r\n{token}"), 403),
                (token.clone(), 403),
                (format!("{ours}{token}origin: https://evil.test\r\n"), 403),
                (format!("{ours}{token}origin: null\r\n"), 403),
            ] {
                let answer = served.raw(request(&headers)).await;
                assert_eq!(answer.status, status, "{}\n{answer:?}", request(&headers));
                answer.refusal();
                let text = format!("{}{}", answer.head, String::from_utf8_lossy(&answer.body));
                assert!(!PRIVATE.iter().any(|private| text.contains(private)), "{text}");
            }
        }
    }
    assert_eq!(operations, hames_protocol::api::endpoint::ENDPOINTS.len());
    assert_eq!(sessions().await, before, "a stranger did something");
    assert_eq!(served.ask("GET", "/v1/server", "", b"").await.json()["stopping"], false);
    served.stop().await;
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused_in_words() {
    for address in ["0.0.0.0:0", "[::]:0", "192.168.1.1:80", "[::ffff:10.0.0.1]:0"] {
        let refused = hames_server::http::Listener::tcp(address.parse().unwrap(), TOKEN).await.err().unwrap();
        assert!(refused.to_string().contains("is no loopback address"), "{refused}");
    }
}

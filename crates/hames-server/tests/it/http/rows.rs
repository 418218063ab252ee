//! Every row of the table has a route, and what does not fit a row is refused in the one shape.

use hames_protocol::api::ApiErrorCode;
use hames_protocol::api::endpoint::{Body, ENDPOINTS, MAX_JSON_BODY, Method};

use super::kit::Served;

/// A path of this row with its parameters filled in.
pub(super) fn filled(path: &str) -> String {
    path.split('/')
        .map(|segment| if segment.starts_with('{') { "nothing-here" } else { segment })
        .collect::<Vec<_>>()
        .join("/")
}

#[tokio::test]
async fn every_row_is_answered_and_other_methods_of_its_path_are_refused() {
    let served = Served::start().await;
    for row in ENDPOINTS {
        let target = filled(row.path);
        let (headers, body): (&str, &[u8]) = match row.body {
            Body::Nothing => ("", b""),
            Body::Json(_) => ("content-type: application/json\r\n", b"{"),
            Body::Bytes { .. } => ("content-type: application/octet-stream\r\n", b"x"),
            Body::Lines => ("content-type: application/x-ndjson\r\n", b"{}\n"),
        };
        let answer = served.ask(row.method.as_str(), &target, headers, body).await;
        assert_ne!(answer.status, 405, "{} {target}: {answer:?}", row.name);
        if answer.status == 404 {
            assert!(!answer.refusal().message.contains("in this API"), "{} {target}: {answer:?}", row.name);
        }
        if answer.status >= 400 {
            answer.refusal();
        }
        for method in [Method::Get, Method::Post, Method::Patch, Method::Delete] {
            if !ENDPOINTS.iter().any(|other| other.path == row.path && other.method == method) {
                let answer = served.ask(method.as_str(), &target, "", b"").await;
                assert_eq!(answer.refusal().code, ApiErrorCode::MethodNotAllowed, "{answer:?}");
                assert!(answer.head.contains("allow: "), "{answer:?}");
            }
        }
    }
    served.stop().await;
}

#[tokio::test]
async fn what_does_not_fit_is_named_with_its_place() {
    let served = Served::start().await;
    let json = "content-type: application/json\r\n";
    let long = format!("/v1/search?q={}", "x".repeat(5000));
    type Case<'a> = (&'a str, &'a str, &'a str, &'a [u8], u16, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("GET", "/v2/health", "", b"", 404, "There is no /v2/health in this API."),
        ("GET", "/v1/health/", "", b"", 404, "There is no /v1/health/"),
        ("GET", "/v1/search", "", b"", 400, "The parameter q is missing"),
        ("GET", "/v1/search?q=", "", b"", 400, "The parameter q is missing"),
        ("GET", "/v1/search?q=a&q=b", "", b"", 400, "The parameter q is there twice."),
        ("GET", "/v1/search?q=a&limit=0", "", b"", 400, "limit has to be a whole number from 1 to 200"),
        ("GET", "/v1/search?q=a&limit=%2B5", "", b"", 400, "limit has to be a whole number"),
        ("GET", &long, "", b"", 400, "q has more than 4096 bytes"),
        ("GET", "/v1/sessions/x/log?limit=1001", "", b"", 400, "from 1 to 1000"),
        ("GET", "/v1/sessions/x/events?after=-1", "", b"", 400, "after has to be a whole number"),
        ("GET", "/v1/sessions/x/events", "last-event-id: x\r\n", b"", 400, "Last-Event-ID has to be the seq"),
        ("GET", "/v1/sessions/%FF", "", b"", 400, "not written as UTF-8"),
        ("POST", "/v1/sessions", "", b"{}", 415, "takes application/json, not a body without a media type"),
        ("POST", "/v1/sessions", "content-type: text/plain\r\n", b"{}", 415, "not \"text/plain\""),
        ("POST", "/v1/sessions", json, b"", 400, "The body is no JSON object."),
        ("POST", "/v1/sessions", json, b"[\"/tmp\"]", 400, "The body is no JSON object."),
        ("POST", "/v1/sessions", json, b"{}", 400, "missing field `folder`"),
        ("POST", "/v1/sessions", json, b"{\"folder\":1}", 400, "at folder: invalid type"),
        (
            "POST",
            "/v1/sessions",
            json,
            b"{\"folder\":\"/tmp\",\"settings\":{\"max_steps\":-1}}",
            400,
            "at settings.max_steps: invalid value",
        ),
        ("POST", "/v1/sessions", json, b"{\"folder\":\"/tmp\"} x", 400, "goes on behind its JSON object"),
        ("POST", "/v1/sessions", json, b"{\"folder\":\"\xff\"}", 400, "The body does not fit"),
    ];
    for (method, target, headers, body, status, words) in cases {
        let answer = served.ask(method, target, headers, body).await;
        let refusal = answer.refusal();
        assert_eq!(answer.status, status, "{method} {target}: {refusal:?}");
        assert!(refusal.message.contains(words), "{method} {target}: {refusal:?}");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_announced_or_not() {
    let served = Served::start().await;
    let body = vec![b' '; MAX_JSON_BODY + 1];
    let json = "content-type: application/json\r\n";
    let announced = served.ask("POST", "/v1/sessions", json, &body).await;
    assert_eq!(announced.refusal().message, "The body is larger than 16 MB.");
    let mut chunked = format!("{:x}\r\n", body.len()).into_bytes();
    chunked.extend_from_slice(&body);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\n{json}transfer-encoding: chunked\r\n\r\n",
        served.address,
        super::kit::TOKEN
    );
    let chunked = served.raw([head.as_bytes(), &chunked].concat()).await;
    assert_eq!(chunked.refusal().code, ApiErrorCode::TooLarge);
    served.stop().await;
}

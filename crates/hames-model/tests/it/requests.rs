//! What is sent, and what a refusal becomes.

use hames_model::{Endpoint, ThinkingDialect};
use hames_protocol::{ErrorClass, ModelClient, RequestOptions, Sampler, Sampling, ThinkingLevel};

use crate::server::*;

#[tokio::test]
async fn a_request_carries_key_headers_session_and_an_exact_length() {
    let server = Server::start(vec![says("ok")]).await;
    let mut endpoint = server.endpoint();
    endpoint.headers = vec![("X-Title".into(), "hames".into())];
    endpoint.session_header = Some("x-session".into());
    endpoint.thinking = Some(ThinkingDialect::Effort);
    let options = RequestOptions {
        max_output_tokens: Some(77),
        thinking: Some(ThinkingLevel::High),
        session: Some("s-1".into()),
        sampling: Sampling { sampler: Some(Sampler::TopP("0.5".parse().unwrap())), ..Sampling::default() },
    };
    ask_with(&mut model(endpoint), &[user("hi")], &options).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Bearer sk-test-secret"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-title"), Some("hames"));
    assert_eq!(request.header("x-session"), Some("s-1"));
    assert_eq!(request.header("transfer-encoding"), None);
    assert_eq!(request.header("content-length"), Some(request.body.len().to_string().as_str()));
    let body = request.json();
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "messages", "stream", "stream_options", "reasoning_effort", "top_p", "max_tokens"]);
    assert_eq!(body["model"], "large/v1");
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(body["max_tokens"], 77);
}

#[tokio::test]
async fn a_header_of_the_configuration_replaces_the_bearer_token() {
    let server = Server::start(vec![says("ok"), says("ok")]).await;
    let mut endpoint = server.endpoint();
    endpoint.headers = vec![("Authorization".into(), "Basic abc".into())];
    ask(&mut model(endpoint)).await.unwrap();
    ask(&mut model(Endpoint::new("keyless", &server.base_url))).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Basic abc"));
    assert_eq!(requests[1].header("authorization"), None);
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_a_matter_of_configuration() {
    let server = Server::start(vec![]).await;
    let mut endpoint = server.endpoint();
    endpoint.headers = vec![("bad name".into(), "x".into())];
    for endpoint in [endpoint, server.endpoint().with_key("line\nbreak")] {
        let failure = ask(&mut model(endpoint)).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Configuration, "{failure}");
        assert!(!failure.message.contains("break"));
    }
}

#[tokio::test]
async fn a_refusal_is_named_and_shows_no_key() {
    let replies = vec![
        response(
            401,
            "x-request-id: r-1\r\n",
            r#"{"error":{"message":"Bad key sk-test-secret","code":"invalid_api_key"}}"#,
        ),
        response(429, "retry-after: 2\r\n", r#"{"error":{"message":"slow"}}"#),
        response(404, "", "not here"),
        response(500, "", ""),
        vec![send("HTTP/1.1 503 X\r\ncontent-length: 100\r\n\r\n{\"error\":\"half"), Act::Close],
    ];
    let server = Server::start(replies).await;
    let mut failures = Vec::new();
    for _ in 0..5 {
        failures.push(ask(&mut server.model()).await.unwrap_err());
    }
    let classes: Vec<ErrorClass> = failures.iter().map(|f| f.class).collect();
    use ErrorClass::*;
    assert_eq!(classes, [Auth, RateLimit, WrongBaseUrl, ServerError, Overloaded]);
    assert_eq!(failures[0].provider_message.as_deref(), Some("Bad key ****"));
    assert_eq!(failures[0].request_id.as_deref(), Some("r-1"));
    assert_eq!(failures[1].retry_after_ms, Some(2000));
}

#[tokio::test]
async fn an_error_with_status_200_is_still_an_error() {
    let bodies = [
        r#"{"error":{"message":"no","code":401}}"#.to_owned(),
        "{\n \"error\": {\n  \"message\": \"no\",\n  \"code\": 401\n }\n}".to_owned(),
        "data: {\"error\":{\"message\":\"no\",\"code\":401}}\n\n".to_owned(),
        "event: error\ndata: {\"message\":\"no\",\"code\":401}\n\n".to_owned(),
    ];
    let server = Server::start(bodies.iter().map(|body| response(200, "", body)).collect()).await;
    for body in &bodies {
        let failure = ask(&mut server.model()).await.unwrap().failure.unwrap();
        assert_eq!((failure.class, failure.provider_message.as_deref()), (ErrorClass::Auth, Some("no")), "{body}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let elsewhere = Server::start(vec![says("stolen")]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.base_url);
    let server = Server::start(vec![response(307, &location, ""), response(301, &location, "")]).await;
    for _ in 0..2 {
        let failure = ask(&mut server.model()).await.unwrap_err();
        assert_eq!((failure.class, failure.retryable), (ErrorClass::WrongBaseUrl, false));
        assert!(failure.message.contains(&elsewhere.base_url), "{}", failure.message);
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_prepared_request_can_be_sent_again_byte_for_byte() {
    let server = Server::start(vec![response(500, "", ""), says("ok")]).await;
    let mut model = server.model();
    let info = model.prepare(&head(), &[user("hi")], &RequestOptions::default()).await.unwrap();
    model.send().await.err().unwrap();
    let mut answer = model.send().await.unwrap();
    while answer.next().await.is_some() {}
    let requests = server.requests();
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[0].body.len() as u64, info.bytes);
    assert_eq!(requests[0].connection, requests[1].connection);
}

#[tokio::test]
async fn sending_without_preparing_is_an_error_and_no_panic() {
    let server = Server::start(vec![]).await;
    assert_eq!(server.model().send().await.err().map(|f| f.class), Some(ErrorClass::Internal));
}

/// Keeps what is logged at debug level.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "hames::request"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields<'a>(&'a mut String);
        impl tracing::field::Visit for Fields<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{field}={value:?}\n"));
            }
        }
        event.record(&mut Fields(&mut self.0.lock().unwrap()));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn the_request_log_holds_the_body_and_no_key() {
    let server = Server::start(vec![says("ok")]).await;
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let items = [user("my key is sk-test-secret")];
    ask_with(&mut server.model(), &items, &RequestOptions::default()).await.unwrap();
    drop(guard);
    let text = log.0.lock().unwrap().clone();
    assert!(text.contains("my key is ****") && !text.contains("sk-test-secret"), "{text}");
}

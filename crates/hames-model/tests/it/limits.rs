//! When it gives up, and how it lets go of a connection.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hames_model::Timeouts;
use hames_protocol::{ErrorClass, ModelClient, RequestOptions};

use crate::server::*;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(60);

fn timeouts(first_byte: Duration, idle: Duration) -> Timeouts {
    Timeouts { connect: LONG, first_byte, idle }
}

#[tokio::test]
async fn keep_alives_of_no_kind_hide_a_dead_upstream() {
    let kinds = [
        ": ping\n\n",
        ":\n",
        "\n",
        "event: keepalive\ndata: {\"type\":\"keepalive\",\"n\":3}\n\n",
        "data: {\"type\":\"ping\"}\n\n",
        "data:\n\n",
        "data: {\"choices\":[]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "id: 1\n\n",
    ];
    join_all(kinds.map(|kind| async move {
        let ping = Act::Repeat(Duration::from_millis(10), chunk(kind));
        let server = Server::start(vec![vec![send(SSE), send(chunk(text_event("one"))), ping]]).await;
        let mut endpoint = server.endpoint();
        endpoint.timeouts = timeouts(LONG, SHORT);
        let completion = ask(&mut model(endpoint)).await.unwrap();
        let failure = completion.failure.unwrap();
        assert_eq!((failure.class, failure.retryable), (ErrorClass::Timeout, true), "{kind:?}");
        assert_eq!(completion.text, "one", "{kind:?}");
        assert!(failure.message.contains("0.2 s"), "{}", failure.message);
    }))
    .await;
}

#[tokio::test]
async fn a_slow_answer_that_goes_on_is_not_a_dead_one() {
    let mut reply = vec![send(SSE)];
    for n in 0..6 {
        reply.push(send(chunk(text_event(&n.to_string()))));
        reply.push(Act::Wait(later(Duration::from_millis(300) * (n + 1))));
    }
    reply.extend([send(chunk(STOP.to_owned() + DONE)), send(END)]);
    let server = Server::start(vec![reply]).await;
    let mut endpoint = server.endpoint();
    endpoint.timeouts = timeouts(LONG, Duration::from_millis(1_200));
    let completion = ask(&mut model(endpoint)).await.unwrap();
    assert_eq!((completion.text.as_str(), completion.failure), ("012345", None));
}

fn later(after: Duration) -> std::sync::Arc<tokio::sync::Notify> {
    let notify = std::sync::Arc::new(tokio::sync::Notify::new());
    let other = std::sync::Arc::clone(&notify);
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        other.notify_one();
    });
    notify
}

#[tokio::test]
async fn an_answer_that_never_begins_is_given_up_at_its_own_limit() {
    let silences: Vec<(&str, Reply)> = vec![
        ("no headers", vec![Act::Hang]),
        ("half a head", vec![send("HTTP/1.1 200 OK\r\n"), Act::Hang]),
        ("headers only", vec![send(SSE), Act::Hang]),
        ("comments", vec![send(SSE), Act::Repeat(Duration::from_millis(10), chunk(": wait\n\n"))]),
        (
            "keep-alives",
            vec![send(SSE), Act::Repeat(Duration::from_millis(10), chunk("data: {\"type\":\"ping\"}\n\n"))],
        ),
    ];
    join_all(silences.into_iter().map(|(name, reply)| async move {
        let server = Server::start(vec![reply]).await;
        let mut endpoint = server.endpoint();
        endpoint.timeouts = timeouts(SHORT, LONG);
        let failure = match ask(&mut model(endpoint)).await {
            Ok(completion) => completion.failure.unwrap(),
            Err(failure) => failure,
        };
        assert_eq!((failure.class, failure.retryable), (ErrorClass::Timeout, true), "{name}");
    }))
    .await;
}

#[tokio::test]
async fn a_port_of_this_machine_where_nobody_listens_is_told_and_not_tried_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for host in ["127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0"] {
        let endpoint = hames_model::Endpoint::new("acme", format!("http://{host}:{port}/v1"));
        let failure = ask(&mut model(endpoint.clone())).await.unwrap_err();
        assert_eq!((failure.class, failure.retryable), (ErrorClass::Connection, false), "{failure}");
        for words in ["refused", &port.to_string(), "Start the model server"] {
            assert!(failure.message.contains(words), "{words}: {failure}");
        }
        let failure = hames_model::list_models(&endpoint).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Connection);
    }
}

#[tokio::test]
async fn an_answer_without_an_end_marker_does_not_wait_for_one_for_ever() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n";
    let reply = vec![send(SSE), send(chunk(text_event("all") + STOP)), send(chunk(usage)), Act::Hang];
    let server = Server::start(vec![reply]).await;
    let mut endpoint = server.endpoint();
    endpoint.timeouts = timeouts(LONG, SHORT);
    let completion = ask(&mut model(endpoint)).await.unwrap();
    assert!(completion.is_whole());
    assert_eq!(completion.usage.and_then(|u| u.input), Some(3));
}

#[tokio::test]
async fn steps_of_a_run_share_one_connection() {
    let body = text_event("ok") + STOP + DONE;
    let late = |after| vec![send(SSE), send(chunk(&body)), Act::Wait(after), send(END)];
    let mut replies: Vec<Reply> = (0..4).map(|_| says("ok")).collect();
    replies.push(late(later(Duration::from_millis(5))));
    replies.push(response(200, "", &body));
    replies.push(response(429, "", "{\"error\":{\"message\":\"slow down\"}}"));
    replies.push(says("ok"));
    let count = replies.len();
    let server = Server::start(replies).await;
    let mut model = server.model();
    for n in 0..count {
        assert_eq!(ask(&mut model).await.is_ok(), n != 6);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_that_stays_open_after_its_marker_delays_nobody() {
    let open = vec![send(SSE), send(chunk(text_event("ok") + STOP + DONE)), Act::Hang];
    let server = Server::start(vec![open, says("again")]).await;
    let mut model = server.model();
    let started = Instant::now();
    assert_eq!(ask(&mut model).await.unwrap().text, "ok");
    assert_eq!(ask(&mut model).await.unwrap().text, "again");
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_connection_the_server_closed_meanwhile_costs_no_failure() {
    let mut closing = says("one");
    closing.push(Act::Close);
    let mut closing_late = says("two");
    closing_late.push(Act::Wait(later(Duration::from_millis(30))));
    closing_late.push(Act::Close);
    let server = Server::start(vec![closing, closing_late, says("three")]).await;
    let mut model = server.model();
    for text in ["one", "two", "three"] {
        assert_eq!(ask(&mut model).await.unwrap().text, text);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_address_that_speaks_no_tls_is_told() {
    let server = Server::start(vec![]).await;
    let endpoint = hames_model::Endpoint::new("acme", server.base_url.replace("http://", "https://"));
    // The server waits for a request line that never comes; an alert or the limit ends it.
    let endpoint = hames_model::Endpoint { timeouts: timeouts(SHORT, SHORT), ..endpoint };
    let failure = ask(&mut model(endpoint)).await.unwrap_err();
    // Without certificates on the machine, that is what is told.
    let told = [ErrorClass::Connection, ErrorClass::Timeout, ErrorClass::Configuration];
    assert!(told.contains(&failure.class), "{failure}");
}

#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_may_be_tried_again() {
    for reply in [vec![Act::Close], vec![send("HTTP/1.1 200"), Act::Close], vec![send("junk\r\n\r\n"), Act::Close]] {
        let server = Server::start(vec![reply]).await;
        let failure = ask(&mut server.model()).await.unwrap_err();
        assert_eq!((failure.class, failure.retryable), (ErrorClass::Connection, true), "{failure}");
    }
}

#[tokio::test]
async fn an_event_past_every_bound_ends_the_answer() {
    let filler = chunk("x".repeat(1 << 20));
    let mut reply = vec![send(SSE), send(chunk(text_event("so far"))), send(chunk("data: "))];
    reply.extend((0..17).map(|_| send(&filler)));
    reply.push(Act::Hang);
    let server = Server::start(vec![reply]).await;
    let mut model = server.model();
    model.prepare(&head(), &[user("hi")], &RequestOptions::default()).await.unwrap();
    let mut answer = model.send().await.unwrap();
    while answer.next().await.is_some() {}
    let completion = answer.finish();
    assert_eq!(completion.text, "so far");
    assert_eq!(completion.failure.map(|f| f.class), Some(ErrorClass::StreamIncomplete));
}

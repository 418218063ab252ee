//! Answers over a real socket.

use std::sync::Arc;

use hames_protocol::{AssistantItem, CallItem, Delta, ErrorClass, Item, Label, ModelClient, RequestOptions, ToolItem};
use tokio::sync::Notify;

use crate::server::*;

#[tokio::test]
async fn a_piece_is_handed_on_before_the_next_one_is_sent() {
    let go = Arc::new(Notify::new());
    let reply = vec![
        send(SSE),
        send(chunk(text_event("first"))),
        Act::Wait(Arc::clone(&go)),
        send(chunk(text_event(" second") + STOP + DONE)),
        send(END),
    ];
    let server = Server::start(vec![reply]).await;
    let mut model = server.model();
    model.prepare(&head(), &[user("hi")], &RequestOptions::default()).await.unwrap();
    let mut answer = model.send().await.unwrap();
    assert_eq!(answer.next().await, Some(vec![Delta::Text("first".into())]));
    go.notify_one();
    assert_eq!(answer.next().await, Some(vec![Delta::Text(" second".into())]));
    assert_eq!(answer.next().await, None);
    let completion = answer.finish();
    assert_eq!(completion.text, "first second");
    assert!(completion.is_whole() && completion.timings.first_token_ms.is_some());
}

#[tokio::test]
async fn a_character_cut_by_the_network_stays_whole_at_every_cut() {
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"台🙂\"}}]}\n\n".as_bytes();
    let from = event.iter().position(|b| !b.is_ascii()).unwrap();
    let replies: Vec<Reply> = (from..from + 7)
        .map(|at| {
            let (a, b) = event.split_at(at);
            vec![send(SSE), send(chunk(a)), send(chunk(b)), send(chunk(STOP.to_owned() + DONE)), send(END)]
        })
        .collect();
    let cuts = replies.len();
    let server = Server::start(replies).await;
    let mut model = server.model();
    for _ in 0..cuts {
        assert_eq!(ask(&mut model).await.unwrap().text, "台🙂");
    }
}

#[tokio::test]
async fn a_compressed_answer_is_told_and_not_tried_again() {
    let body = text_event("ok") + STOP + DONE;
    let answers = |coding: &str| response(200, &format!("content-encoding: {coding}\r\n"), &body);
    let server = Server::start(["gzip", "br", "identity", "Identity"].map(answers).into()).await;
    let mut model = server.model();
    for coding in ["gzip", "br"] {
        let failure = ask(&mut model).await.unwrap_err();
        assert_eq!((failure.class, failure.retryable), (ErrorClass::StreamIncomplete, false));
        assert!(failure.message.contains(coding), "{failure}");
    }
    for _ in 0..2 {
        assert_eq!(ask(&mut model).await.unwrap().text, "ok");
    }
}

#[tokio::test]
async fn a_server_that_ignores_stream_is_read_whatever_type_it_claims() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":"plain"},"finish_reason":"stop"}]}"#;
    let pretty = body.replace(',', ",\n  ").replace('{', "{\n ");
    let types = ["application/json", "application/octet-stream", "text/event-stream", "text/plain; charset=utf-8"];
    let mut replies: Vec<Reply> = types.map(|t| response(200, &format!("content-type: {t}\r\n"), body)).into();
    replies.extend([
        response(200, "", body),
        response(200, "", &pretty),
        response(200, "", &(pretty.clone() + "\n\n")),
    ]);
    let sse = text_event("plain") + STOP + DONE;
    replies.push(response(200, "content-type: application/json\r\n", &sse));
    let count = replies.len();
    let server = Server::start(replies).await;
    let mut model = server.model();
    for n in 0..count {
        let completion = ask(&mut model).await.unwrap();
        assert_eq!((completion.text.as_str(), completion.is_whole()), ("plain", true), "reply {n}");
    }
}

#[tokio::test]
async fn a_cut_stream_keeps_what_came_and_may_be_tried_again() {
    let call = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#;
    let begun = format!("{}{call}\n\n", text_event("so far"));
    let replies: Vec<Reply> = vec![
        vec![send(SSE), send(chunk(&begun)), Act::Close],
        vec![send(SSE), send(chunk(&begun)), send(END)],
        vec![send(SSE), send(chunk(&begun)), send("ffff\r\ndata: {\"choi"), Act::Close],
        vec![send(format!("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n{begun}")), Act::Close],
        vec![send(format!("HTTP/1.1 200 OK\r\n\r\n{begun}")), Act::Close],
        vec![send(SSE), send(chunk(&begun)), send("not a chunk\r\n"), Act::Close],
    ];
    let count = replies.len();
    let server = Server::start(replies).await;
    for n in 0..count {
        let completion = ask(&mut server.model()).await.unwrap();
        let failure = completion.failure.clone().unwrap_or_else(|| panic!("reply {n}"));
        assert_eq!((failure.class, failure.retryable), (ErrorClass::StreamIncomplete, true), "reply {n}: {failure}");
        assert_eq!((completion.text.as_str(), completion.calls.len()), ("so far", 1), "reply {n}");
        assert!(!completion.is_whole());
    }
}

#[tokio::test]
async fn an_answer_that_said_why_it_stopped_is_whole_though_the_connection_breaks() {
    let server = Server::start(vec![vec![send(SSE), send(chunk(text_event("all") + STOP)), Act::Close]]).await;
    let completion = ask(&mut server.model()).await.unwrap();
    assert!(completion.is_whole(), "{:?}", completion.failure);
}

/// A whole answer that comes in these pieces.
fn in_pieces(text: &[String]) -> Vec<Act> {
    let mut reply = vec![send(SSE)];
    reply.extend(text.iter().map(|t| send(chunk(text_event(t)))));
    reply.extend([send(chunk(STOP.to_owned() + DONE)), send(END)]);
    reply
}

#[tokio::test]
async fn a_fast_stream_comes_whole_and_in_order() {
    let text: Vec<String> = (0..2_000).map(|n| format!("{n} ")).collect();
    let server = Server::start(vec![in_pieces(&text)]).await;
    let mut model = server.model();
    model.prepare(&head(), &[user("hi")], &RequestOptions::default()).await.unwrap();
    let mut answer = model.send().await.unwrap();
    let mut shown = String::new();
    while let Some(deltas) = answer.next().await {
        for delta in deltas {
            let Delta::Text(text) = delta else { panic!("{delta:?}") };
            shown.push_str(&text);
        }
    }
    assert_eq!(shown, text.concat());
    let completion = answer.finish();
    assert!(completion.is_whole() && completion.text == shown);
}

#[tokio::test]
async fn dropping_a_wait_for_the_next_piece_loses_nothing() {
    // Enough of them that the stream is a fast one, which is read in breaths.
    let text: Vec<String> = (0..100).map(|n| format!("{n} ")).collect();
    let server = Server::start(vec![in_pieces(&text)]).await;
    let mut model = server.model();
    model.prepare(&head(), &[user("hi")], &RequestOptions::default()).await.unwrap();
    let mut answer = model.send().await.unwrap();
    let mut shown = String::new();
    loop {
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            more = answer.next() => match more {
                Some(deltas) => deltas.into_iter().for_each(|delta| match delta {
                    Delta::Text(text) => shown.push_str(&text),
                    other => panic!("{other:?}"),
                }),
                None => break,
            },
        }
    }
    assert_eq!(shown, text.concat());
    assert_eq!(answer.finish().text, shown);
}

#[tokio::test]
async fn an_answer_the_caller_cuts_is_given_as_far_as_it_came() {
    let server = Server::start(vec![vec![send(SSE), send(chunk(text_event("so far"))), Act::Hang]]).await;
    let mut model = server.model();
    model.prepare(&head(), &[user("hi")], &RequestOptions::default()).await.unwrap();
    let mut answer = model.send().await.unwrap();
    answer.next().await.unwrap();
    let completion = answer.finish();
    assert_eq!((completion.text.as_str(), completion.failure.clone()), ("so far", None));
    assert!(!completion.is_whole());
}

#[tokio::test]
async fn reasoning_goes_back_with_the_calls_it_came_with() {
    let first = stream(concat!(
        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"think\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":",
        "{\"name\":\"Read\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    ));
    for (replay, expected) in [(None, Some("think")), (Some(true), Some("think")), (Some(false), None)] {
        let server = Server::start(vec![first.clone(), says("ok")]).await;
        let mut endpoint = server.endpoint();
        endpoint.replay_reasoning = replay;
        let mut model = model(endpoint);
        let (answer, _) = ask_with(&mut model, &[user("hi")], &RequestOptions::default()).await.unwrap();
        let call = &answer.calls[0];
        let item = AssistantItem {
            text: answer.text,
            reasoning: answer.reasoning,
            calls: vec![CallItem {
                call_id: "own".into(),
                provider_id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                input: None,
                label: Label::default(),
                extra: call.extra.clone(),
            }],
            cut: None,
            model: None,
        };
        let result = ToolItem {
            call_id: "own".into(),
            name: "Read".into(),
            text: "x".into(),
            error: None,
            blob: None,
            attachments: Vec::new(),
            capability: false,
        };
        let items = [user("hi"), Arc::new(Item::Assistant(item)), Arc::new(Item::Tool(result))];
        ask_with(&mut model, &items, &RequestOptions::default()).await.unwrap();
        let sent = server.requests()[1].json();
        assert_eq!(sent["messages"][2]["reasoning_content"].as_str(), expected, "{replay:?}");
        assert_eq!(sent["messages"][2]["tool_calls"][0]["id"], "c1");
        assert_eq!(sent["messages"][3]["tool_call_id"], "c1");
    }
}

//! What is answered, in which shape, and in which pieces.

use std::time::{Duration, Instant};

use hames_testkit::{Gate, Provider, Script, Turn, blocking};
use serde_json::{Value, json};

use crate::client::{Client, End, LIMIT, Response, request};

fn answer(turn: Turn) -> Response {
    answer_to(&request(), turn)
}

fn answer_to(request: &Value, turn: Turn) -> Response {
    let provider = blocking(Script::new().turn(turn)).unwrap();
    let response = Client::to(&provider).chat(request);
    assert_eq!(response.end, End::Complete);
    response
}

#[test]
fn text_is_streamed_in_small_pieces_between_role_and_done() {
    let response = answer(Turn::text("hello you"));
    assert!(response.head.contains("content-type: text/event-stream"), "{}", response.head);
    let deltas = response.deltas();
    let expected = [
        json!({"role": "assistant", "content": ""}),
        json!({"content": "hell"}),
        json!({"content": "o yo"}),
        json!({"content": "u"}),
        json!({}),
    ];
    assert_eq!(deltas[..5], expected);
    let events = response.events();
    assert_eq!(events[4]["choices"][0]["finish_reason"], "stop");
    assert_eq!((&events[5]["choices"], events[5]["usage"]["completion_tokens"].as_u64()), (&json!([]), Some(3)));
    assert_eq!(events[6..], [json!("[DONE]")]);
    assert_eq!(events[0]["model"], "mock-1");
}

#[test]
fn what_is_said_is_cut_at_characters_and_comes_in_the_order_it_was_added() {
    let turn = Turn::new().reasoning("äöü").then_text("😀é").chunk_chars(2).then_call("Read", json!({"a": 1}));
    let deltas = answer(turn).deltas();
    let id = deltas[4]["tool_calls"][0]["id"].as_str().unwrap().to_owned();
    assert!(id.len() > 8, "{id}");
    let call = |function: Value| json!({"tool_calls": [{"index": 0, "function": function}]});
    let expected = [
        json!({"reasoning_content": "äö"}),
        json!({"reasoning_content": "ü"}),
        json!({"content": "😀é"}),
        json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": "Read", "arguments": ""}}]}),
        call(json!({"arguments": "{\""})),
        call(json!({"arguments": "a\""})),
        call(json!({"arguments": ":1"})),
        call(json!({"arguments": "}"})),
    ];
    assert_eq!(deltas[1..9], expected);
}

#[test]
fn calls_are_numbered_and_fresh_ids_never_repeat() {
    let turn = || Turn::call("Read", json!({})).call_with_id("mine", "Read", json!({})).raw_call("", "Shell", "{\"co");
    let provider = blocking(Script::new().turn(turn()).respond(move |_| turn())).unwrap();
    let mut client = Client::to(&provider);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let response = client.chat(&request());
        let heads: Vec<_> = response.deltas().into_iter().map(|delta| delta["tool_calls"][0].clone()).collect();
        let heads: Vec<_> = heads.into_iter().filter(|call| call["type"] == "function").collect();
        assert_eq!(heads.iter().map(|call| call["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((&heads[1]["id"], &heads[2]["id"]), (&json!("mine"), &json!("")));
        ids.push(heads[0]["id"].clone());
        assert_eq!(response.events().iter().rev().nth(2).unwrap()["choices"][0]["finish_reason"], "tool_calls");
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn the_style_of_a_turn_shows_on_the_wire() {
    let mut quiet = request();
    quiet.as_object_mut().unwrap().shift_remove("stream_options");
    let has = |response: &Response, text: &str| response.text().contains(text);
    let cases: Vec<(&str, Response, &str, bool)> = vec![
        ("usage is not sent unasked", answer_to(&quiet, Turn::text("x")), "usage", false),
        (
            "usage can be given",
            answer(Turn::text("x").usage(json!({"prompt_tokens": 77}))),
            "{\"prompt_tokens\":77}",
            true,
        ),
        ("usage can be left out", answer(Turn::text("x").usage(None)), "prompt_tokens", false),
        (
            "a finish reason can be given",
            answer(Turn::text("x").finish("length")),
            "\"finish_reason\":\"length\"",
            true,
        ),
        ("a finish reason can be left out", answer(Turn::text("x").finish(None)), "\"finish_reason\":\"", false),
        ("the end marker can be left out", answer(Turn::text("x").no_done()), "[DONE]", false),
        ("lines can end with CR LF", answer(Turn::text("x").crlf()), "data: [DONE]\r\n\r\n", true),
        ("comments can come between", answer(Turn::text("x").comments_every(2)), ": ping\n\ndata: {", true),
        (
            "reasoning has other names",
            answer(Turn::new().reasoning("why").reasoning_field("reasoning")),
            "{\"reasoning\":\"why\"}",
            true,
        ),
        (
            "and another shape",
            answer(Turn::new().reasoning("why").reasoning_field("reasoning_details")),
            "\"text\":\"why\"",
            true,
        ),
        (
            "reasoning can be signed",
            answer(Turn::new().signed_reasoning("why", "c2ln")),
            "\"signature\":\"c2ln\"",
            true,
        ),
        (
            "all can come in one piece",
            answer(Turn::text("all of it").chunk_chars(0)),
            "\"content\":\"all of it\"",
            true,
        ),
    ];
    for (name, response, text, expected) in cases {
        assert_eq!(has(&response, text), expected, "{name}: {}", response.text());
    }
}

#[test]
fn an_answer_without_a_stream_is_one_object() {
    let mut whole = request();
    whole["stream"] = json!(false);
    whole.as_object_mut().unwrap().shift_remove("stream_options");
    let turn = || Turn::new().signed_reasoning("hm", "c2ln").then_text("a").then_text("b").then_call("Read", json!({}));
    for response in [answer_to(&whole, turn()), answer(turn().plain_json())] {
        assert!(response.head.contains("content-type: application/json"), "{}", response.head);
        let body = response.json();
        let choice = &body["choices"][0];
        assert_eq!((&body["object"], &choice["finish_reason"]), (&json!("chat.completion"), &json!("tool_calls")));
        assert_eq!(choice["message"]["content"], "ab");
        assert_eq!(choice["message"]["reasoning_details"][0]["signature"], "c2ln");
        assert_eq!(choice["message"]["tool_calls"][0]["function"], json!({"name": "Read", "arguments": "{}"}));
        assert!(body["usage"]["total_tokens"].is_u64(), "{body}");
    }
}

#[test]
fn raw_streams_come_byte_for_byte_however_they_are_split() {
    let raw = "data: {\"x\":\"é😀\"}\r\n\r\n: note\n\ndata: [DONE]\n\nleft over";
    let sizes = |response: &Response| response.chunks.iter().map(Vec::len).collect::<Vec<_>>();
    let whole = answer(Turn::raw_sse(raw));
    assert_eq!((whole.text(), sizes(&whole)), (raw.to_owned(), vec![24, 8, 14, 9]));
    let bytes = answer(Turn::raw_sse(raw).split_bytes(1));
    assert_eq!((bytes.text(), sizes(&bytes)), (raw.to_owned(), vec![1; 55]));
    let sevens = answer(Turn::raw_sse(raw).split_bytes(7));
    assert_eq!((sevens.text(), sizes(&sevens)), (raw.to_owned(), vec![7, 7, 7, 7, 7, 7, 7, 6]));
    let places = answer(Turn::raw_sse(raw).split_at(vec![15, 13, 0, 54, 900]));
    assert_eq!((places.text(), sizes(&places)), (raw.to_owned(), vec![13, 2, 39, 1]));
}

#[test]
fn a_gate_holds_the_stream_after_its_event_until_it_is_opened() {
    let (first, last) = (Gate::new(), Gate::new());
    let turn = Turn::text("abcdefgh").split_bytes(100_000).gate(1, first.clone()).gate(99, last.clone());
    let provider = blocking(Script::new().turn(turn)).unwrap();
    let mut client = Client::to(&provider);
    client.post(&request().to_string());
    client.head().unwrap().unwrap();
    let before = String::from_utf8(client.chunk().unwrap().unwrap()).unwrap();
    assert!(before.contains("abcd") && !before.contains("efgh"), "a gate is no place to join pieces: {before}");
    assert!(first.reached_within(LIMIT) && !last.is_reached());
    first.open();
    assert!(last.reached_within(LIMIT));
    let after = String::from_utf8(client.chunk().unwrap().unwrap()).unwrap();
    assert!(after.contains("efgh") && after.contains("[DONE]"), "{after}");
    assert!(!provider.is_idle_within(Duration::ZERO));
    last.open();
    assert_eq!(client.chunk().unwrap(), Some(Vec::new()));
    assert!(provider.is_idle_within(LIMIT));
}

#[test]
fn a_gate_holds_an_answer_without_a_stream_after_its_body() {
    let gate = Gate::new();
    let provider = blocking(Script::new().turn(Turn::error(500, "x").gate(3, gate.clone()))).unwrap();
    let mut client = Client::to(&provider);
    assert_eq!(client.chat(&request()).status, 500);
    assert!(gate.reached_within(LIMIT) && !provider.is_idle_within(Duration::ZERO));
    gate.open();
    assert!(provider.is_idle_within(LIMIT));
}

#[test]
fn a_gate_before_the_head_holds_everything() {
    let gate = Gate::new();
    let provider = blocking(Script::new().turn(Turn::text("x").gate_head(gate.clone()))).unwrap();
    let mut client = Client::to(&provider);
    client.post(&request().to_string());
    assert!(gate.reached_within(LIMIT));
    assert!(provider.has_requests_within(1, LIMIT));
    gate.open();
    assert_eq!(client.response().unwrap().status, 200);
}

#[test]
fn a_gate_can_be_awaited_by_the_task_that_runs_the_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let gate = Gate::new();
        let provider = Provider::start(Script::new().turn(Turn::text("x").gate(0, gate.clone()))).await.unwrap();
        let address = crate::client::address(&provider);
        let client = tokio::task::spawn_blocking(move || Client::to_address(&address).chat(&request()));
        gate.reached().await;
        provider.wait_for_requests(1).await;
        gate.open();
        assert_eq!(client.await.unwrap().end, End::Complete);
        provider.wait_idle().await;
        assert_eq!(provider.hangups(), 0);
    });
}

#[test]
fn a_delay_lies_between_any_two_events() {
    let start = Instant::now();
    let response = answer(Turn::text("x").delay_per_chunk(Duration::from_millis(5)));
    assert_eq!(response.chunks.len(), 5);
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn errors_carry_their_status_headers_and_body() {
    let response = answer(Turn::error(429, json!({"error": {"message": "slow"}})).header("Retry-After", "7"));
    assert_eq!((response.status, response.json()["error"]["message"].as_str()), (429, Some("slow")));
    assert!(response.head.contains("retry-after: 7"), "{}", response.head);
    let response = answer(Turn::error(502, "<html>bad gateway</html>").header("x", "a\r\nb: c"));
    assert_eq!((response.status, response.text()), (502, "<html>bad gateway</html>".to_owned()));
    assert!(response.head.contains("content-type: text/plain") && response.head.contains("x: a  b: c"));
}

#[test]
fn fixed_turns_come_first_then_the_responder_and_without_one_the_script_is_exhausted() {
    let script = Script::new().turns([Turn::text("one"), Turn::text("two")]);
    let provider = blocking(script.clone().respond(|request| Turn::text(format!("n{}", request.n)))).unwrap();
    let mut client = Client::to(&provider);
    let said = |response: Response| response.deltas()[1]["content"].as_str().unwrap_or_default().to_owned();
    assert_eq!([(); 4].map(|()| said(client.chat(&request()))), ["one", "two", "n3", "n4"]);
    let provider = blocking(script).unwrap();
    let mut client = Client::to(&provider);
    assert_eq!([(); 3].map(|()| client.chat(&request()).status), [200, 200, 500]);
    assert_eq!(provider.violations()[0].rule, "scenario_exhausted");
}

#[test]
fn a_rule_of_the_script_refuses_and_uses_up_no_turn() {
    let script = Script::new()
        .turn(Turn::text("taken"))
        .refuse(|request| request.body["top_p"].is_number().then(|| Turn::error(400, "no top_p")))
        .refuse(|request| request.body["top_p"].is_number().then(|| Turn::error(500, "never asked")));
    let provider = blocking(script).unwrap();
    let mut with_top_p = request();
    with_top_p["top_p"] = json!(0.5);
    let mut client = Client::to(&provider);
    let refused = client.chat(&with_top_p);
    assert_eq!((refused.status, refused.text().as_str()), (400, "no top_p"));
    assert_eq!(client.chat(&request()).deltas()[1]["content"], "take");
    assert_eq!((provider.requests().len(), provider.unused_turns()), (2, 0));
}

#[test]
fn a_request_larger_than_the_window_overflows() {
    let provider = blocking(Script::new().turn(Turn::text("fine")).window(60)).unwrap();
    let mut client = Client::to(&provider);
    let mut sized = |count: usize, limit: Value| {
        let content = "x".repeat(count);
        client.chat(&json!({"model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": limit}))
    };
    for (count, limit) in [(300, json!(null)), (100, json!(40)), (0, json!(u64::MAX)), (204, json!(2))] {
        let count = count.max(1);
        let response = sized(count, limit);
        assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!("context_length_exceeded")));
    }
    assert_eq!(sized(204, json!(null)).status, 200);
    assert_eq!(provider.violations(), []);
    assert_eq!(provider.requests().len(), 5);
}

#[test]
fn the_request_is_kept_as_it_was_sent_and_can_be_asked_about() {
    let provider = blocking(Script::new().respond(|_| Turn::text("fine"))).unwrap();
    let body = json!({"model": "m",
    "tools": [{"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
    ]});
    Client::to(&provider).chat(&body);
    let requests = provider.requests();
    let kept = &requests[0];
    assert_eq!(kept.raw, body.to_string());
    assert_eq!((kept.n, kept.messages().len(), kept.last_role(), kept.last_text().as_str()), (1, 3, "tool", "x\ny"));
    assert_eq!((kept.tool_results(), kept.tools()), (vec![("a".to_owned(), "x\ny".to_owned())], vec!["Read"]));
    assert_eq!(kept.header("content-type"), Some("application/json"));
}

#[test]
fn a_prefix_is_compared_within_its_conversation() {
    let provider = blocking(Script::new().respond(|_| Turn::text("fine"))).unwrap();
    let mut client = Client::to(&provider);
    let user = |text: &str| json!({"role": "user", "content": text});
    let mut send = |model: &str, messages: &[Value]| {
        client.chat(&json!({"model": model, "messages": messages, "stream": true}));
        provider.requests().last().unwrap().prefix
    };
    let reply = json!({"role": "assistant", "content": "ok"});
    assert_eq!(send("m", &[user("one")]), None, "the first");
    assert!(!send("m", &[user("two")]).unwrap().is_kept(), "another conversation");
    assert!(send("m", &[user("one"), reply.clone(), user("more")]).unwrap().is_kept(), "appended");
    assert!(send("m", &[user("two"), reply.clone(), user("more")]).unwrap().is_kept(), "appended to the other");
    assert!(!send("m", &[user("one"), reply.clone(), user("less")]).unwrap().is_kept(), "the last message changed");
    let prefix = send("n", &[user("one"), reply, user("less"), user("x")]).unwrap();
    assert!(!prefix.is_kept(), "the head changed");
    assert_eq!(prefix.shared, "{\"model\":\"".len());
}

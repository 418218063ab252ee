use super::*;
use crate::Endpoint;
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;

fn place() -> Arc<Place> {
    Arc::new(Place::new(&Endpoint::new("acme", "http://h"), "h", "m"))
}

/// An answer and the pieces it came in.
fn decoded(pieces: &[&[u8]]) -> (Completion, Vec<Delta>) {
    let mut decoder = Decoder::new(place(), Reading::default());
    let mut deltas = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        deltas.extend(decoder.take_deltas().into_iter().flatten());
        if decoder.is_over() {
            break;
        }
    }
    decoder.end(None);
    deltas.extend(decoder.take_deltas().into_iter().flatten());
    (decoder.into_completion(), deltas)
}

fn answer(stream: &str) -> Completion {
    decoded(&[stream.as_bytes()]).0
}

fn events(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// What the index of recorded streams says of an answer, as far as it is of one.
fn summary(completion: &Completion) -> Value {
    let reasoning: String = completion.reasoning.iter().map(|b| b.text.as_str()).collect();
    let calls: Vec<Value> = completion
        .calls
        .iter()
        .map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}))
        .collect();
    let usage = completion.usage_raw.as_ref().map(|raw| serde_json::from_str::<Value>(raw).unwrap());
    json!({
        "text": completion.text, "reasoning": reasoning, "tool_calls": calls,
        "finish_reason": completion.finish_reason, "usage": usage,
        "native_finish_reason": completion.native_finish_reason, "refusal": completion.refusal,
    })
}

fn expected(row: &Value) -> Value {
    let mut out = json!({});
    for key in ["text", "reasoning", "tool_calls", "finish_reason", "usage", "native_finish_reason", "refusal"] {
        out[key] = row.get(key).cloned().unwrap_or(Value::Null);
    }
    out
}

/// The pieces a face is shown must add up to the answer.
fn shown(deltas: &[Delta]) -> (String, String, Vec<String>) {
    let mut shown = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text(text) => shown.0.push_str(text),
            Delta::Reasoning(text) => shown.1.push_str(text),
            Delta::ToolInput { call, text, .. } => {
                let call = *call as usize;
                if shown.2.len() <= call {
                    shown.2.resize(call + 1, String::new());
                }
                shown.2[call].push_str(text);
            }
        }
    }
    shown
}

fn check(name: &str, stream: &[u8], row: &Value, cuts: &[usize]) {
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    let mut splits = vec![vec![stream], bytes];
    splits.extend(cuts.iter().map(|at| vec![&stream[..*at], &stream[*at..]]));
    for pieces in splits {
        let (completion, deltas) = decoded(&pieces);
        assert_eq!(summary(&completion), expected(row), "{name} in {} pieces", pieces.len());
        let error = row.get("error").filter(|e| !e.is_null());
        let failure = completion.failure.as_ref();
        match error.and_then(|error| error.get("message")) {
            Some(message) => {
                assert_eq!(failure.and_then(|f| f.provider_message.as_deref()), message.as_str(), "{name}")
            }
            None => assert_eq!(failure.is_some(), error.is_some(), "{name}: {failure:?}"),
        }
        if let Some(class) = row.get("failure").and_then(Value::as_str) {
            assert_eq!(failure.map(|f| f.class.as_str()), Some(class), "{name}");
        }
        if let Some(micros) = row.get("cost_micros") {
            assert_eq!(completion.cost.as_ref().map(|c| c.micros), micros.as_u64(), "{name}");
        }
        if let Some(blocks) = row.get("blocks") {
            let found: Vec<&String> = completion.reasoning.iter().flat_map(|b| &b.blocks).collect();
            assert_eq!(json!(found), *blocks, "{name}");
        }
        let (text, reasoning, inputs) = shown(&deltas);
        let all: String = completion.reasoning.iter().map(|b| b.text.as_str()).collect();
        assert_eq!((text, reasoning), (completion.text.clone(), all), "{name}");
        let arguments: Vec<&str> = completion.calls.iter().map(|c| c.arguments.as_str()).collect();
        assert_eq!(inputs, arguments, "{name}");
    }
}

/// Every folder of streams has one runner: a stream beside what it must give.
#[test]
fn our_own_streams_give_what_stands_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "sse") {
            let stream = std::fs::read(&path).unwrap();
            let row = std::fs::read_to_string(path.with_extension("json")).unwrap();
            let every_cut: Vec<usize> = (0..stream.len()).collect();
            check(&path.display().to_string(), &stream, &serde_json::from_str(&row).unwrap(), &every_cut);
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}

#[test]
fn recorded_streams_give_exactly_what_they_must() {
    let Some(folder) = std::env::var_os("HAMES_TEST_DATA") else {
        println!("skipped: HAMES_TEST_DATA is not set");
        return;
    };
    let folder = Path::new(&folder).join("chat-streams");
    let mut count = 0;
    for line in std::fs::read_to_string(folder.join("index.jsonl")).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let name = row["file"].as_str().unwrap();
        let stream = std::fs::read(folder.join(name)).unwrap();
        let cuts: Vec<usize> =
            row["mid_codepoint_offsets"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        check(name, &stream, &row["expected"], &cuts);
        count += 1;
    }
    assert!(count > 0);
    println!("{count} streams");
}

#[test]
fn unknown_events_and_keep_alives_are_skipped_and_are_no_life() {
    let dead = [
        ": ping\n\n",
        "event: keepalive\ndata: {\"type\":\"keepalive\",\"n\":3}\n\n",
        "event: ping\ndata: {}\n\n",
        "data:\n\n",
        "data: ping\n\n",
        "data: {\"type\":\"ping\",\"message\":\"still here\"}\n\n",
        "data: {\"object\":\"heartbeat\"}\n\n",
        "data: {\"choices\":[]}\n\n",
        "data: {\"choices\":null,\"usage\":null}\n\n",
        "data: 7\n\n",
        "data: null\n\n",
        "data: []\n\n",
        "retry: 1000\nid: 5\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
    ];
    let begin = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for keep_alive in dead {
        let mut decoder = Decoder::new(place(), Reading::default());
        assert!(decoder.feed(begin.as_bytes()));
        assert!(!decoder.feed(keep_alive.as_bytes()), "{keep_alive}");
        assert!(!decoder.feed(keep_alive.as_bytes()), "{keep_alive}");
        assert!(decoder.feed(begin.as_bytes()), "after {keep_alive}");
        decoder.feed(b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        decoder.end(None);
        let completion = decoder.into_completion();
        assert_eq!((completion.text.as_str(), completion.is_whole()), ("aa", true), "{keep_alive}");
    }
}

#[test]
fn what_carries_something_is_life() {
    let alive = [
        json!({"choices": [{"delta": {"content": "x"}}]}),
        json!({"choices": [{"delta": {"reasoning_content": "x"}}]}),
        json!({"choices": [{"delta": {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}}]}),
        json!({"choices": [{"delta": {"refusal": "x"}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 1}}),
        json!({"error": {"message": "x"}}),
        json!({"choices": [{"delta": {"role": "assistant", "content": ""}}]}),
    ];
    for chunk in alive {
        assert!(
            Decoder::new(place(), Reading::default()).feed(events(std::slice::from_ref(&chunk)).as_bytes()),
            "{chunk}"
        );
    }
}

#[test]
fn an_end_without_a_reason_is_whole_only_with_marker_and_usage() {
    let text = json!({"choices": [{"delta": {"content": "hi"}, "finish_reason": null}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
    let stop = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let empty_reason = json!({"choices": [{"delta": {}, "finish_reason": ""}]});
    let one = std::slice::from_ref;
    let done = "data: [DONE]\n\n";
    let cases = [
        (events(one(&text)) + done, false),
        (events(one(&text)), false),
        (events(&[text.clone(), usage.clone()]), false),
        (events(&[text.clone(), usage.clone()]) + done, true),
        (events(&[text.clone(), empty_reason.clone()]) + done, false),
        (events(&[text.clone(), stop.clone()]), true),
        (events(&[text.clone(), stop]) + done, true),
        (String::new(), false),
        (done.to_owned(), false),
        (": hi\n\n".to_owned() + done, false),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"hi".to_owned(), false),
    ];
    for (stream, whole) in cases {
        let completion = answer(&stream);
        assert_eq!(completion.is_whole(), whole, "{stream}");
        match completion.failure {
            None => assert!(whole, "{stream}"),
            Some(failure) => {
                assert_eq!((failure.class, failure.retryable), (ErrorClass::StreamIncomplete, true), "{stream}");
            }
        }
    }
}

#[test]
fn an_error_within_the_stream_is_found_in_every_shape_and_keeps_what_came() {
    let begin = "data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n";
    let cases = [
        ("event: error\ndata: {\"error\":{\"message\":\"M\",\"type\":\"server_error\"}}\n\n", "server_error", true),
        ("event: error\ndata: {\"message\":\"M\"}\n\n", "server_error", true),
        ("event: error\ndata: M\n\n", "server_error", true),
        ("data: {\"error\":{\"message\":\"M\",\"code\":429}}\n\n", "rate_limit", true),
        ("data: {\"error\":\"M\"}\n\n", "server_error", true),
        (
            "data: {\"error\":{\"code\":400,\"message\":\"M\"},\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
            "invalid_request",
            false,
        ),
        ("data: {\"choices\":[],\"error\":{\"message\":\"M\",\"code\":\"server_error\"}}\n\n", "server_error", true),
        (
            "data: {\"choices\":[{\"delta\":{},\"error\":{\"code\":502,\"message\":\"M\"},\"finish_reason\":\"error\"}]}\n\n",
            "server_error",
            true,
        ),
        (
            "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"M\"}}\n\n",
            "overloaded",
            true,
        ),
        ("data: {\"object\":\"error\",\"message\":\"M\",\"code\":50001}\n\n", "server_error", true),
        ("{\"error\":\"M\"}\n", "server_error", true),
        ("{\"error\":\"M\"}", "server_error", true),
        ("data: [{\"error\":{\"message\":\"M\",\"code\":503}}]\n\n", "overloaded", true),
        (
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"M\"}}}\n\n",
            "quota_exhausted",
            false,
        ),
    ];
    for (error, class, retryable) in cases {
        let ends: &[&str] = if error.ends_with('\n') { &["", "data: [DONE]\n\n"] } else { &[""] };
        for end in ends {
            let completion = answer(&format!("{begin}{error}{end}"));
            let failure = completion.failure.as_ref().unwrap_or_else(|| panic!("{error}"));
            assert_eq!((failure.class.as_str(), failure.retryable), (class, retryable), "{error}");
            assert_eq!(failure.provider_message.as_deref(), Some("M"), "{error}");
            assert_eq!(completion.text, "so far");
            assert!(!completion.is_whole());
        }
    }
    // Blocked before it began, and said beside no choices at all.
    let cases = [
        ("data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", "content_filter"),
        ("data: {\"message\":\"Requests rate limit exceeded\"}\n\n", "rate_limit"),
        ("data: {\"detail\":\"Invalid API key\"}\n\ndata: [DONE]\n\n", "auth"),
        (
            "{\"choices\":null,\"base_resp\":{\"status_code\":1008,\"status_msg\":\"insufficient balance\"}}",
            "quota_exhausted",
        ),
    ];
    for (stream, class) in cases {
        assert_eq!(answer(stream).failure.map(|f| f.class.as_str()), Some(class), "{stream}");
    }
    let fine = "data: {\"base_resp\":{\"status_code\":0,\"status_msg\":\"\"},\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(answer(fine).failure, None);
    for nothing in ["null", "\"\"", "{}", "false"] {
        let chunk =
            format!("data: {{\"error\":{nothing},\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n");
        assert_eq!(answer(&chunk).failure, None, "{nothing}");
    }
}

#[test]
fn a_plain_json_answer_is_an_answer_however_it_is_laid_out() {
    let value = json!({
        "id": "x", "object": "chat.completion", "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "hi", "reasoning_content": "hm",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        }}],
    });
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    for body in [
        value.to_string(),
        format!("{value}\n"),
        pretty.clone(),
        pretty.replace('\n', "\r\n"),
        format!("\u{feff}\n{pretty}"),
    ] {
        let completion = answer(&body);
        assert_eq!(completion.text, "hi", "{body}");
        assert_eq!(completion.reasoning[0].text, "hm");
        assert_eq!(completion.calls[0].name, "f");
        assert_eq!(completion.usage.as_ref().and_then(|u| u.input), Some(3));
        assert!(completion.is_whole());
    }
    let cut = &pretty[..pretty.len() - 20];
    assert_eq!(answer(cut).failure.map(|f| f.class), Some(ErrorClass::StreamIncomplete));
    let no_reason = r#"{"choices":[{"message":{"content":"hi"}}]}"#;
    assert!(answer(no_reason).is_whole());
}

#[test]
fn a_body_that_is_no_answer_says_what_it_is() {
    let cases = [
        (r#"{"error":{"message":"M","code":401}}"#, "auth", Some("M")),
        ("{\n  \"error\": {\n    \"message\": \"M\",\n    \"code\": 429\n  }\n}", "rate_limit", Some("M")),
        (r#"{"message":"M","code":400}"#, "invalid_request", Some("M")),
        (r#"{"detail":"M"}"#, "server_error", Some("M")),
        ("[{\"error\":{\"message\":\"M\",\"code\":503}}]", "overloaded", Some("M")),
        ("<!doctype html>\n<html><title>Login</title></html>", "wrong_base_url", None),
        ("data: The model has crashed.\n\n", "server_error", Some("The model has crashed.")),
        (
            "Upstream error: insufficient balance (1008)",
            "quota_exhausted",
            Some("Upstream error: insufficient balance (1008)"),
        ),
        ("no idea", "stream_incomplete", Some("no idea")),
        ("{}", "stream_incomplete", None),
    ];
    for (body, class, words) in cases {
        let failure = answer(body).failure.unwrap();
        assert_eq!((failure.class.as_str(), failure.provider_message.as_deref()), (class, words), "{body}");
    }
}

#[test]
fn what_can_be_mended_is_read_and_what_cannot_marks_the_answer() {
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let good = [
        ("data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\n", "a\u{fffd}"),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"a\tb\"}}]}\n\n", "a\tb"),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"logprobs\":NaN}]}\n\n", "a"),
        ("data: {\"id\":1,\"id\":2,\"choices\":[{\"index\":0,\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n", "a"),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}{\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
            "ab",
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
            "ab",
        ),
        ("data: data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", "a"),
        ("data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\n", "a"),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"\\u0000\"}}]}\n\n", "\0"),
    ];
    for (stream, text) in good {
        let completion = answer(&format!("{stream}{end}"));
        assert_eq!(completion.text, text, "{stream}");
        assert!(completion.is_whole(), "{stream}: {:?}", completion.failure);
    }
    for lost in ["data: {\"choices\":[{\"delta\":{\"content\":\"a\n\n", "data: {broken}\n\n"] {
        let completion = answer(&format!("{lost}{end}"));
        assert_eq!(completion.failure.map(|f| (f.class, f.retryable)), Some((ErrorClass::StreamIncomplete, true)));
    }
}

#[test]
fn pieces_of_one_kind_in_one_read_are_one_delta() {
    let text = |t: &str| json!({"choices": [{"delta": {"content": t}}]});
    let call = |a: &str| json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": a}}]}}]});
    let thought = |t: &str| json!({"choices": [{"delta": {"reasoning": t}}]});
    let stream = events(&[thought("1"), thought("2"), text("a"), text("b"), call("{"), call("}"), text("c")]);
    let (_, deltas) = decoded(&[stream.as_bytes()]);
    assert_eq!(
        deltas,
        [
            Delta::Reasoning("12".into()),
            Delta::Text("ab".into()),
            Delta::ToolInput { call: 0, name: Some("f".into()), text: "{}".into() },
            Delta::Text("c".into()),
        ]
    );
}

#[test]
fn finish_reasons_of_other_houses_mean_what_ours_do() {
    let with =
        |reason: &str| answer(&events(&[json!({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]})]));
    for reason in ["content_filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT"] {
        assert_eq!(with(reason).failure.map(|f| f.class), Some(ErrorClass::ContentFilter), "{reason}");
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let failure = with(reason).failure.map(|f| (f.class, f.retryable));
        assert_eq!(failure, Some((ErrorClass::ToolUseFailed, true)), "{reason}");
    }
    let overflow = with("model_context_window_exceeded").failure.map(|f| f.class);
    assert_eq!(overflow, Some(ErrorClass::ContextOverflow));
    let cut = with("MAX_TOKENS");
    assert_eq!(
        (cut.finish_reason.as_deref(), cut.native_finish_reason.as_deref()),
        (Some("length"), Some("MAX_TOKENS"))
    );
    assert!(!cut.is_whole() && cut.failure.is_none());
    assert!(with("tool_calls").is_whole() && with("eos").is_whole());
}

#[test]
fn an_endless_answer_meets_its_limit() {
    let mut decoder = Decoder::new(place(), Reading::default());
    let chunk = events(&[json!({"choices": [{"delta": {"content": "x".repeat(1 << 20)}}]})]);
    for _ in 0..70 {
        decoder.feed(chunk.as_bytes());
        decoder.take_deltas();
    }
    assert!(decoder.is_over());
    decoder.end(None);
    let completion = decoder.into_completion();
    assert!(completion.text.len() < 66 << 20);
    assert_eq!(completion.failure.map(|f| f.class), Some(ErrorClass::StreamIncomplete));
}

#[test]
fn what_an_answer_holds_besides_text_meets_the_limit_too() {
    let details = json!({"choices": [{"delta": {"reasoning_details": vec![json!({"type": "x", "data": "y"}); 100]}}]});
    let extra = json!({"g": {"s": "x".repeat(1 << 20)}});
    let calls = |n: usize| {
        json!({"choices": [{"delta": {"tool_calls": [
            {"index": n, "id": "c", "extra_content": extra, "function": {"name": "f", "arguments": ""}},
        ]}}]})
    };
    for chunk in [&(|_| details.clone()) as &dyn Fn(usize) -> Value, &calls] {
        let mut decoder = Decoder::new(place(), Reading::default());
        let mut count = 0;
        while !decoder.is_over() {
            decoder.feed(events(&[chunk(count)]).as_bytes());
            decoder.take_deltas();
            count += 1;
            assert!(count < 1_000);
        }
    }
    let long = json!({"choices": [{"delta": {}, "finish_reason": "x".repeat(10_000)}]});
    assert_eq!(answer(&events(&[long])).finish_reason.map(|reason| reason.len()), Some(200));
}

#[test]
fn an_answer_of_endless_calls_meets_its_limit() {
    let mut decoder = Decoder::new(place(), Reading::default());
    let calls: Vec<_> =
        (0..40_000).map(|n| json!({"index": n, "id": format!("c{n}"), "function": {"name": "Read"}})).collect();
    let chunk = events(&[json!({"choices": [{"delta": {"tool_calls": calls}}]})]);
    decoder.feed(chunk.as_bytes());
    assert!(decoder.is_over());
    decoder.end(None);
    let completion = decoder.into_completion();
    assert_eq!(completion.calls.len(), 1024);
    assert_eq!(completion.failure.map(|f| f.class), Some(ErrorClass::StreamIncomplete));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::proptest_cases(), ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        decoded(&[&bytes]);
    }

    #[test]
    fn almost_streams_split_anywhere_give_the_same_answer(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "data: ", "{\"choices\":[", "{\"delta\":", "{\"content\":\"é🙂\"}", "{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}",
                "}", "]", "\n\n", "\r\n\r\n", "\r", "[DONE]", "\"finish_reason\":\"stop\"", ",", "{\"error\":\"x\"}", "event: error\n", ": c\n", "\\ud83d", "<html>", "null",
                "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\n", "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n",
            ]),
            0..24,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let bytes = parts.concat().into_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        prop_assert_eq!(decoded(&pieces).0, decoded(&[&bytes]).0);
    }
}

//! What comes out on the wire: reasoning that goes back, ids that stay apart.

use std::collections::HashSet;

use std::sync::Arc;

use hames_protocol::{BlobSource, BlobStore, Delivery, Effect, Event, MemoryBlobs, Part, RunResult, SessionId};
use hames_testkit::{ChatRequest, Gate, Provider, Script, Turn};
use serde_json::{Value, json};

use crate::support::http::{file_tools, over_http, over_http_with};
use crate::support::{Hames, TestTool, ended, pending};

fn assistants(request: &ChatRequest) -> Vec<&Value> {
    request.messages().iter().filter(|message| message["role"] == "assistant").collect()
}

fn read() -> Value {
    json!({"path": "chaos-0.txt"})
}

/// Runs to the end against a strict provider.
async fn completed(turns: Vec<Turn>, replay: Option<bool>) -> (Hames, Provider) {
    let script = Script::new().turns(turns);
    let (mut hames, provider) = over_http(script, file_tools(), |endpoint| endpoint.replay_reasoning = replay).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(provider.violations(), []);
    assert_eq!(provider.unused_turns(), 0);
    (hames, provider)
}

#[tokio::test]
async fn reasoning_goes_back_with_the_calls_it_came_with() {
    let think = || Turn::new().reasoning("think");
    let turns = [
        think().then_call("Read", read()),
        think().then_text("I look.").then_call("Read", read()),
        think().then_call("Read", read()).then_call("Read", read()),
        think().then_call("Read", read()).finish("stop"),
        think().chunk_chars(1).then_call("Read", read()),
        think().then_call("Nothing", json!({})),
        think().raw_call("c1", "Read", "{\"path\":"),
        think().then_call("Read", read()).finish("length"),
        think().then_call("Read", read()).finish(None).usage(json!({"prompt_tokens": 1, "completion_tokens": 1})),
        think().raw_call("", "Read", "").finish("length"),
    ];
    for turn in turns {
        for (replay, expected) in [(None, true), (Some(true), true), (Some(false), false)] {
            let (_, provider) = completed(vec![turn.clone(), Turn::text("Done.")], replay).await;
            let requests = provider.requests();
            let answer = assistants(&requests[1])[0];
            assert_eq!(answer.get("reasoning_content"), expected.then(|| json!("think")).as_ref(), "{answer}");
        }
    }
}

#[tokio::test]
async fn signed_reasoning_goes_back_as_it_came() {
    let turn = Turn::new().signed_reasoning("think", "c2lnbmVk").then_call("Read", read());
    let (_, provider) = completed(vec![turn.clone(), turn, Turn::text("Done.")], None).await;
    let requests = provider.requests();
    for answer in assistants(&requests[2]) {
        assert!(answer["reasoning_details"].to_string().contains("c2lnbmVk"), "{answer}");
    }
}

#[tokio::test]
async fn complete_reasoning_goes_back_though_a_message_cut_the_calls_after_it() {
    let gate = Gate::new();
    // Cut within the arguments: the reasoning before them was complete.
    let cut = Turn::new().reasoning("think").then_call("Read", read()).gate(5, gate.clone());
    let script = Script::new().turn(cut).turn(Turn::text("Heard."));
    let (mut hames, provider) = over_http(script, file_tools(), |_| {}).await;
    let (inbox, seen) = (hames.inbox.clone(), hames.trace.clone());
    let says = async {
        gate.reached().await;
        seen.until("see tool.input.delta").await;
        inbox.push(pending("1", Delivery::Interrupt)).unwrap();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(provider.violations(), []);
    let requests = provider.requests();
    let answer = assistants(&requests[1])[0];
    assert_eq!(answer["reasoning_content"], "think", "{answer}");
    assert!(requests[1].tool_results()[0].1.contains("the user added a message"));
}

#[tokio::test]
async fn reasoning_that_was_cut_is_never_sent() {
    let gate = Gate::new();
    let cut = Turn::new().signed_reasoning("think and think", "c2lnbmVk").gate(2, gate.clone());
    let script = Script::new().turn(cut).turn(Turn::text("Heard."));
    let (mut hames, provider) = over_http(script, file_tools(), |_| {}).await;
    let (inbox, seen) = (hames.inbox.clone(), hames.trace.clone());
    let says = async {
        gate.reached().await;
        seen.until("see reasoning.delta").await;
        inbox.push(pending("1", Delivery::Interrupt)).unwrap();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(provider.violations(), []);
    assert!(assistants(&provider.requests()[1]).is_empty());
}

/// Every call runs once, has an id of its own on the wire, and stands right before its own result.
fn check_ids(hames: &Hames, provider: &Provider, calls: usize) {
    assert_eq!(hames.trace.count("body Read"), calls);
    let requests = provider.requests();
    let last = requests.last().unwrap();
    let ids: Vec<&str> = assistants(last)
        .iter()
        .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
        .filter_map(|call| call["id"].as_str())
        .collect();
    assert_eq!(ids.len(), calls);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), calls, "{ids:?}");
    let mut asked: Vec<(String, String)> = Vec::new();
    for message in last.messages() {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            asked.push((call["id"].as_str().unwrap().into(), arguments["path"].as_str().unwrap().into()));
        }
        if message["role"] == "tool" {
            let (id, path) = asked.remove(0);
            assert_eq!(message["tool_call_id"], id.as_str());
            assert_eq!(message["content"], format!("content of {path}"));
        }
    }
    // Once given, an id stays.
    for (earlier, later) in requests.iter().zip(&requests[1..]) {
        let (earlier, later) = (earlier.messages(), later.messages());
        assert_eq!(earlier, &later[..earlier.len()]);
    }
}

#[tokio::test]
async fn ids_that_repeat_or_lack_never_pair_a_result_with_another_call() {
    let call = |id: &str, path: &str| (id.to_owned(), path.to_owned());
    let turns: Vec<Vec<Vec<(String, String)>>> = vec![
        vec![vec![call("call_0", "a")], vec![call("call_0", "b")], vec![call("", "c"), call("", "d")]],
        vec![vec![call("x", "a"), call("x", "b")]],
        vec![vec![call("x", "a"), call("x", "b"), call("x", "c")], vec![call("x", "d")]],
        vec![vec![call("", "a")], vec![call("", "b")], vec![call("", "c")]],
        vec![vec![call(" ", "a"), call("\t", "b")]],
        vec![vec![call("call_0", "a"), call("", "b"), call("call_0", "c")]],
        vec![vec![call("1", "a"), call("2", "b")], vec![call("2", "c"), call("1", "d")]],
        vec![vec![call("Ünïcode", "a")], vec![call("Ünïcode", "b")]],
        vec![vec![call(&"long".repeat(50), "a")], vec![call(&"long".repeat(50), "b")]],
        vec![vec![call("toolu_01", "a"), call("toolu_02", "b")]],
    ];
    for script in turns {
        let count = script.iter().map(Vec::len).sum();
        let turns = script.iter().map(|calls| {
            calls.iter().fold(Turn::new(), |turn, (id, path)| turn.call_with_id(id, "Read", json!({ "path": path })))
        });
        let script = Script::new().turns(turns).turn(Turn::text("Done."));
        let reads = TestTool::new("Read", Effect::Read).does(|input, _| async move {
            Ok(hames_tools::ToolOutput::text(format!("content of {}", input["path"].as_str().unwrap())))
        });
        let (mut hames, provider) = over_http(script, vec![reads], |_| {}).await;
        ended(&hames.run("go").await, RunResult::Complete, 0);
        assert_eq!(provider.violations(), []);
        check_ids(&hames, &provider, count);
    }
}

/// A tool whose results are images of the path's name; `-` waits until it is cut, `+` has none.
async fn looks(blobs: &Arc<MemoryBlobs>) -> TestTool {
    let source = BlobSource::Bytes(b"PNG".to_vec());
    let blob = blobs.put(&SessionId::from("s"), "", source).await.unwrap();
    TestTool::new("Look", Effect::Read).does(move |input, cx| {
        let path = input["path"].as_str().unwrap().to_owned();
        let image = Part::Image { blob: blob.clone(), media_type: "image/png".into(), name: Some(path.clone()) };
        async move {
            if path == "-" {
                cx.cancel.cancelled().await;
                return Err(hames_tools::ToolFailure::cancelled());
            }
            let attachments = if path == "+" { vec![] } else { vec![image] };
            Ok(hames_tools::ToolOutput { attachments, ..hames_tools::ToolOutput::text(format!("this is {path}")) })
        }
    })
}

/// The roles of a request, an image as `*`, what a user says in brackets.
fn outline(request: &ChatRequest) -> String {
    let words = |text: &Value| text.as_str().unwrap().lines().next().unwrap().to_owned();
    let part = |part: &Value| match part["type"] == "image_url" {
        true => "*".to_owned(),
        false => words(&part["text"]),
    };
    let message = |message: &Value| match (&message["role"], &message["content"]) {
        (role, Value::Array(parts)) if role == "user" => {
            format!("user({})", parts.iter().map(part).collect::<Vec<_>>().join(" "))
        }
        (role, text) if role == "user" => format!("user({})", words(text)),
        (role, _) => role.as_str().unwrap().to_owned(),
    };
    let conversation = request.messages().iter().filter(|message| message["role"] != "system");
    conversation.map(message).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn images_of_results_reach_a_model_that_sees_behind_the_results_and_no_other() {
    let call = |path: &str| json!({ "path": path });
    for (images, second, third) in [
        (
            None,
            "user(go) assistant tool tool tool user([image in the result of Look: a] * [image in the result of Look: b] *)",
            " assistant tool user([image in the result of Look: c] *)",
        ),
        (Some(false), "user(go) assistant tool tool tool", " assistant tool"),
    ] {
        let blobs = Arc::new(MemoryBlobs::default());
        let first = Turn::call("Look", call("a")).then_call("Look", call("+")).then_call("Look", call("b"));
        let script = Script::new().turn(first).turn(Turn::call("Look", call("c"))).turn(Turn::text("Seen."));
        let tools = vec![looks(&blobs).await];
        let (mut hames, provider) = over_http_with(script, tools, |_| {}, images, blobs).await;
        ended(&hames.run("go").await, RunResult::Complete, 0);
        assert_eq!(provider.violations(), []);
        let requests = provider.requests();
        assert_eq!(outline(&requests[1]), second);
        assert_eq!(outline(&requests[2]), format!("{second}{third}"));
        for (earlier, later) in requests.iter().zip(&requests[1..]) {
            let (earlier, later) = (earlier.messages(), later.messages());
            assert_eq!(earlier, &later[..earlier.len()]);
        }
    }
}

#[tokio::test]
async fn a_session_that_looks_at_many_images_stays_sendable() {
    let blobs = Arc::new(MemoryBlobs::default());
    let looks_at = |n: usize| Turn::call("Look", json!({"path": format!("p{n}")}));
    let script = Script::new().turns((0..25).map(looks_at)).turn(Turn::text("Seen."));
    let tools = vec![looks(&blobs).await];
    let (mut hames, provider) = over_http_with(script, tools, |_| {}, None, blobs).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(provider.violations(), []);
    let images: Vec<usize> = provider.requests().iter().map(|request| outline(request).matches('*').count()).collect();
    // Up to the high mark, then from the low one on; between two marks nothing that was sent changes.
    assert_eq!(images, (0..=20).chain(10..15).collect::<Vec<_>>());
    let requests = provider.requests();
    for (at, (earlier, later)) in requests.iter().zip(&requests[1..]).enumerate() {
        let (earlier, later) = (earlier.messages(), later.messages());
        assert_eq!(later.starts_with(earlier), at != 20, "{at}");
    }
    // The report names what changed it, and counts it once.
    let whys: Vec<String> = hames
        .log
        .events()
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::StepStart(start) => Some(start.changed_why.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(whys.iter().filter(|why| *why == "images").count(), 1, "{whys:?}");
    assert_eq!(whys[21], "images");
    let sent = hames.session.window().sent.clone();
    assert_eq!(sent.breaks, [("images", 1)].into());
    let last = body_of(requests.last().unwrap());
    assert!(last.contains("this is p0\\n[it was shown here; it is no longer sent."), "{last}");
}

fn body_of(request: &ChatRequest) -> String {
    String::from_utf8_lossy(&request.raw).into_owned()
}

#[tokio::test]
async fn a_message_that_interrupts_joins_the_images_that_were_there_already() {
    let blobs = Arc::new(MemoryBlobs::default());
    let first = Turn::call("Look", json!({"path": "a"})).then_call("Look", json!({"path": "-"}));
    let script = Script::new().turn(first).turn(Turn::text("Heard."));
    let tools = vec![looks(&blobs).await];
    let (mut hames, provider) = over_http_with(script, tools, |_| {}, None, blobs).await;
    let (inbox, seen) = (hames.inbox.clone(), hames.trace.clone());
    let says = async {
        seen.until("see tool.done").await;
        inbox.push(pending("1", Delivery::Interrupt)).unwrap();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(provider.violations(), []);
    let sent = outline(&provider.requests()[1]);
    assert!(sent.starts_with("user(go) assistant tool tool user([image in the result of Look: a] * "), "{sent}");
}

#[tokio::test]
async fn one_connection_serves_a_whole_run() {
    for steps in [1, 2, 10, 40] {
        let turns = (0..steps).map(|_| Turn::call("Read", read())).chain([Turn::text("Done.")]).collect();
        let (_, provider) = completed(turns, None).await;
        assert_eq!(provider.connections(), 1);
        assert_eq!(provider.requests().len(), steps + 1);
        assert_eq!(provider.hangups(), 0);
        assert_eq!(provider.other_requests(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_call_spoken_as_text_goes_through_the_door_and_back_as_a_call() {
    let spoken = "<think>\nI look.\n</think>\n\n<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"chaos-0.txt\"}}\n</tool_call>";
    for chunk in [1, 7, 1_000] {
        let turns = vec![Turn::text(spoken).chunk_chars(chunk), Turn::text("Done.")];
        let (hames, provider) = completed(turns, None).await;
        let requests = provider.requests();
        let answer = assistants(&requests[1])[0];
        // Thoughts between tags stay where they are, and the id is ours.
        assert_eq!(answer["content"], Value::Null, "{answer}");
        assert_eq!(answer["tool_calls"][0]["function"]["name"], "Read");
        assert!(!answer["tool_calls"][0]["id"].as_str().unwrap().is_empty());
        assert_eq!(requests[1].tool_results()[0].1, "mark 0\n");
        let types = hames.types().join(" ");
        assert!(types.contains("reasoning.done tool.call step.done tool.start tool.done"), "{types}");
    }
    // Switched off, it is what the model said.
    let script = Script::new().turns([Turn::text(spoken)]);
    let (mut hames, provider) = over_http(script, file_tools(), |endpoint| {
        endpoint.text_tool_calls = false;
        endpoint.thinking_tags = false;
    })
    .await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(provider.requests().len(), 1);
    let said = hames
        .find(|event| if let hames_protocol::Event::TextDone(done) = event { Some(done.text.clone()) } else { None });
    assert_eq!(said, [spoken]);
}

#[tokio::test]
async fn thoughts_between_tags_go_back_as_the_template_wrote_them_where_that_is_wanted() {
    let turns = || vec![Turn::text("<think>Hm.</think>Yes.").then_call("Read", read()), Turn::text("Done.")];
    for (replay, expected) in [(None, "Yes."), (Some(false), "Yes."), (Some(true), "<think>\nHm.\n</think>\n\nYes.")] {
        let (_, provider) = completed(turns(), replay).await;
        let requests = provider.requests();
        let answer = assistants(&requests[1])[0];
        assert_eq!(answer["content"], expected, "{answer}");
        assert!(answer.get("reasoning").is_none() && answer.get("reasoning_content").is_none(), "{answer}");
    }
}

#[tokio::test]
async fn answers_that_begin_inside_their_reasoning_are_read_so_from_the_second_on() {
    let thought = "Hm.\n</think>\n\nI look.";
    let turns = vec![
        Turn::text(thought).then_call("Read", read()),
        Turn::text(thought).then_call("Read", read()),
        Turn::text("Hm.\n</think>\n\nDone."),
    ];
    let (hames, provider) = completed(turns, None).await;
    for answer in assistants(&provider.requests()[2]) {
        assert_eq!(answer["content"], "I look.", "{answer}");
    }
    let said = hames
        .find(|event| if let hames_protocol::Event::TextDone(done) = event { Some(done.text.clone()) } else { None });
    assert_eq!(said, ["I look.", "I look.", "Done."]);
    let thoughts = hames.find(|event| {
        if let hames_protocol::Event::ReasoningDone(done) = event {
            Some(done.block.text.trim().to_owned())
        } else {
            None
        }
    });
    assert_eq!(thoughts, ["Hm."; 3]);
}

use super::super::decode::Decoder;
use super::*;
use crate::Endpoint;
use crate::error::Place;
use hames_protocol::{Completion, ToolSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

fn head() -> Arc<Head> {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    Arc::new(Head {
        tools: vec![ToolSpec { name: "Read".into(), description: String::new(), parameters }],
        system: String::new(),
    })
}

fn all() -> Reading {
    Reading { thinking_tags: true, begins_inside: false, tools: Some(head()) }
}

/// An answer of these chunks, and what was told while they came.
fn answer(reading: Reading, chunks: &[Value]) -> (Completion, Vec<Delta>, Option<bool>) {
    let mut decoder = Decoder::new(Arc::new(Place::new(&Endpoint::new("acme", "http://h"), "h", "m")), reading);
    let mut deltas = Vec::new();
    for chunk in chunks {
        decoder.feed(format!("data: {chunk}\n\n").as_bytes());
        deltas.extend(decoder.take_deltas().into_iter().flatten());
    }
    decoder.end(None);
    deltas.extend(decoder.take_deltas().into_iter().flatten());
    let inside = decoder.began_inside();
    (decoder.into_completion(), deltas, inside)
}

fn said(text: &str) -> Value {
    json!({"choices": [{"delta": {"content": text}}]})
}

fn stop(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

/// The chunks of a text, a character each.
fn streamed(text: &str) -> Vec<Value> {
    text.chars().map(|c| said(&c.to_string())).chain([stop("stop")]).collect()
}

fn reasoning(completion: &Completion) -> (&str, &str) {
    completion.reasoning.first().map_or(("", ""), |block| (block.text.as_str(), block.field.as_str()))
}

fn shown(deltas: &[Delta]) -> (String, String, String) {
    let (mut text, mut thought, mut input) = (String::new(), String::new(), String::new());
    for delta in deltas {
        match delta {
            Delta::Text(t) => text.push_str(t),
            Delta::Reasoning(t) => thought.push_str(t),
            Delta::ToolInput { text, .. } => input.push_str(text),
        }
    }
    (text, thought, input)
}

const CALL: &str = "<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";

#[test]
fn thoughts_between_tags_stream_as_reasoning() {
    for chunks in
        [streamed("<think>\nHm.\n</think>\n\nYes."), vec![said("<think>\nHm.\n</think>\n\nYes."), stop("stop")]]
    {
        let (completion, deltas, inside) = answer(all(), &chunks);
        assert_eq!((completion.text.as_str(), reasoning(&completion)), ("Yes.", ("Hm.", "<think>")));
        assert_eq!(shown(&deltas), ("Yes.".into(), "Hm.".into(), String::new()));
        assert!(completion.is_whole() && inside == Some(false));
    }
    let (completion, ..) = answer(all(), &streamed("[THINK]Hm.[/THINK]Yes."));
    assert_eq!(reasoning(&completion), ("Hm.", "[THINK]"));
    // Switched off, tags are text.
    let (completion, deltas, inside) = answer(Reading::default(), &streamed("<think>Hm.</think>Yes."));
    assert_eq!((completion.text.as_str(), completion.reasoning.len()), ("<think>Hm.</think>Yes.", 0));
    assert_eq!((shown(&deltas).0.as_str(), inside), ("<think>Hm.</think>Yes.", None));
}

#[test]
fn a_call_spoken_as_text_is_a_call_and_no_text() {
    for text in [CALL.to_owned(), format!("<think>Hm.</think>\n\n{CALL}\n"), format!("Hm.\n</think>\n\n{CALL}")] {
        let (completion, deltas, _) = answer(all(), &streamed(&text));
        let calls: Vec<_> =
            completion.calls.iter().map(|c| (c.name.as_str(), c.arguments.as_str(), c.id.as_str())).collect();
        assert_eq!(calls, [("Read", "{\"path\": \"a\"}", "")], "{text}");
        assert_eq!((completion.text.as_str(), shown(&deltas).2.as_str()), ("", "{\"path\": \"a\"}"));
        assert!(!shown(&deltas).0.contains("tool_call") && completion.is_whole());
    }
    // Cut by the output limit behind its end it is one too, though it will not run.
    let mut chunks = streamed(CALL);
    chunks.pop();
    chunks.push(stop("length"));
    let (completion, ..) = answer(all(), &chunks);
    assert_eq!((completion.calls.len(), completion.is_whole()), (1, false));
}

#[test]
fn it_is_text_where_no_tool_was_offered_or_the_answer_did_not_end_well() {
    let no_tools = Reading { tools: None, ..all() };
    let mut other = head();
    Arc::make_mut(&mut other).tools[0].name = "Write".into();
    let cases = [
        (no_tools, streamed(CALL)),
        (Reading { tools: Some(other), ..all() }, streamed(CALL)),
        (all(), streamed(CALL)[..CALL.len()].to_vec()),
        (all(), [&streamed(CALL)[..CALL.len()], &[stop("content_filter")]].concat()),
        (all(), [&streamed(CALL)[..CALL.len()], &[json!({"error": {"message": "no"}}), stop("stop")]].concat()),
        (all(), {
            let real = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Read", "arguments": "{}"}}]}}]});
            [&[real], streamed(CALL).as_slice()].concat()
        }),
    ];
    for (reading, chunks) in cases {
        let (completion, deltas, _) = answer(reading, &chunks);
        assert_eq!((completion.text.as_str(), shown(&deltas).0.as_str()), (CALL, CALL), "{chunks:?}");
        assert!(completion.calls.iter().all(|call| call.id == "a"));
    }
    // Left in the middle, what there was of it stays.
    let mut decoder = Decoder::new(Arc::new(Place::new(&Endpoint::new("acme", "http://h"), "h", "m")), all());
    decoder.feed(format!("data: {}\n\n", said("<think>Hm.</think><tool_call>{\"na")).as_bytes());
    let completion = decoder.into_completion();
    assert_eq!((completion.text.as_str(), reasoning(&completion).0), ("<tool_call>{\"na", "Hm."));
}

#[test]
fn prose_is_told_as_it_comes() {
    let mut decoder = Decoder::new(Arc::new(Place::new(&Endpoint::new("acme", "http://h"), "h", "m")), all());
    for word in ["I", " look", " at", " it", ": {", "\"a\"", "}"] {
        decoder.feed(format!("data: {}\n\n", said(word)).as_bytes());
        assert_eq!(decoder.take_deltas(), Some(vec![Delta::Text(word.into())]));
    }
}

#[test]
fn thoughts_told_in_a_field_and_between_tags_count_once() {
    let apart = |text: &str| json!({"choices": [{"delta": {"reasoning_content": text}}]});
    for thought in ["Hm, so.", "Hm, so.\n", "\nHm, so."] {
        let chunks: Vec<Value> =
            [apart(thought)].into_iter().chain(streamed("<think>\nHm, so.\n</think>\n\nYes.")).collect();
        let (completion, deltas, _) = answer(all(), &chunks);
        assert_eq!((completion.text.as_str(), reasoning(&completion)), ("Yes.", (thought, "reasoning_content")));
        assert_eq!(shown(&deltas).1, thought);
    }
    let chunks: Vec<Value> = [apart("Hm.")].into_iter().chain(streamed("<think>Hm, more.</think>Yes.")).collect();
    let (completion, deltas, _) = answer(all(), &chunks);
    assert_eq!(reasoning(&completion), ("Hm.\n\nHm, more.", "reasoning_content"));
    assert_eq!(shown(&deltas).1, "Hm.\n\nHm, more.");
    // A tag a template left over, and one that is spoken of.
    for (text, left) in [("\n</think>\n\nYes.", "Yes."), ("So.\n</think>\nYes.", "So.\n</think>\nYes.")] {
        let chunks: Vec<Value> = [apart("Hm.")].into_iter().chain(streamed(text)).collect();
        let (completion, ..) = answer(all(), &chunks);
        assert_eq!((completion.text.as_str(), reasoning(&completion).0), (left, "Hm."));
    }
}

#[test]
fn an_answer_that_began_inside_its_reasoning_is_told_so_the_next_time() {
    let text = "Hm.\n</think>\n\nYes.";
    let (completion, deltas, inside) = answer(all(), &streamed(text));
    assert_eq!((completion.text.as_str(), reasoning(&completion)), ("Yes.", ("Hm.\n", "<think>")));
    // What was shown cannot be taken back, and nothing is shown twice.
    assert_eq!((shown(&deltas).0.as_str(), shown(&deltas).1.as_str(), inside), ("Hm.\nYes.", "", Some(true)));

    let known = || Reading { begins_inside: true, ..all() };
    let (completion, deltas, inside) = answer(known(), &streamed(text));
    assert_eq!((completion.text.as_str(), reasoning(&completion)), ("Yes.", ("Hm.", "<think>")));
    assert_eq!((shown(&deltas), inside), (("Yes.".into(), "Hm.".into(), String::new()), Some(true)));

    // One that does not is all text, or the calls it speaks.
    let (completion, _, inside) = answer(known(), &streamed("Yes, at once."));
    assert_eq!((completion.text.as_str(), completion.reasoning.len(), inside), ("Yes, at once.", 0, Some(false)));
    let (completion, ..) = answer(known(), &streamed(CALL));
    assert_eq!((completion.text.as_str(), completion.calls.len()), ("", 1));
}

#[test]
fn a_server_that_tells_all_of_it_each_time_is_heard_once() {
    let text = "<think>Hm.</think>Yes, <b>so</b>.";
    let chunks: Vec<Value> = (1..=text.len())
        .map(|end| json!({"choices": [{"message": {"content": text[..end]}}]}))
        .chain([stop("stop")])
        .collect();
    let (completion, deltas, _) = answer(all(), &chunks);
    assert_eq!((completion.text.as_str(), reasoning(&completion).0), ("Yes, <b>so</b>.", "Hm."));
    assert_eq!(shown(&deltas), ("Yes, <b>so</b>.".into(), "Hm.".into(), String::new()));
}

#[test]
fn a_refusal_or_an_empty_answer_is_what_it_was() {
    for chunks in [vec![stop("stop")], vec![said(""), stop("stop")], vec![said("\n"), stop("stop")]] {
        let (completion, ..) = answer(all(), &chunks);
        assert!(completion.is_whole() && completion.text.trim().is_empty() && completion.calls.is_empty());
    }
}

/// Recorded answers hold tags or none; split or not, they come to the same words.
#[test]
fn recorded_streams_keep_their_words() {
    let Some(folder) = std::env::var_os("HAMES_TEST_DATA") else {
        println!("skipped: HAMES_TEST_DATA is not set");
        return;
    };
    let folder = std::path::Path::new(&folder).join("chat-streams");
    let index = std::fs::read_to_string(folder.join("index.jsonl")).unwrap();
    let mut tagged = 0;
    for line in index.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let bytes = std::fs::read(folder.join(row["file"].as_str().unwrap())).unwrap();
        let place = Arc::new(Place::new(&Endpoint::new("acme", "http://h"), "h", "m"));
        for size in [1, 3, 64, usize::MAX] {
            let mut decoder = Decoder::new(Arc::clone(&place), all());
            let mut deltas = Vec::new();
            for piece in bytes.chunks(size.min(bytes.len())) {
                decoder.feed(piece);
                deltas.extend(decoder.take_deltas().into_iter().flatten());
            }
            decoder.end(None);
            deltas.extend(decoder.take_deltas().into_iter().flatten());
            let completion = decoder.into_completion();
            let whole = row["expected"]["text"].as_str().unwrap();
            match whole.strip_prefix("<think>\n").and_then(|rest| rest.split_once("\n</think>\n")) {
                Some((thought, text)) => {
                    tagged += 1;
                    assert_eq!((reasoning(&completion).0.trim(), completion.text.as_str()), (thought.trim(), text));
                }
                None => assert_eq!(completion.text, whole, "{}", row["file"]),
            }
            assert_eq!(shown(&deltas).0, completion.text, "{}", row["file"]);
        }
    }
    assert!(tagged > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::proptest_cases(), ..ProptestConfig::default() })]

    #[test]
    fn however_an_answer_is_cut_it_comes_to_the_same(
        parts in prop::collection::vec(prop::sample::select(vec![
            "<think>", "</think>", "\n", "\n\n", CALL, "<tool_call>", "{\"name\": \"Read\", ", "\"arguments\": {}}", "Hm. ",
            "Yes", "`", "```json\n", "```", " ", "[THINK]", "[/THINK]", "[TOOL_CALLS]", "<", "é🙂",
        ]), 0..9),
        begins_inside in any::<bool>(),
        ends_well in any::<bool>(),
    ) {
        let text = parts.concat();
        let end = if ends_well { vec![stop("stop")] } else { vec![] };
        let reading = || Reading { begins_inside, ..all() };
        let (whole, _, inside) = answer(reading(), &[vec![said(&text)], end.clone()].concat());
        let chunks: Vec<Value> = text.chars().map(|c| said(&c.to_string())).chain(end).collect();
        let (mut cut, deltas, again) = answer(reading(), &chunks);
        cut.timings = whole.timings;
        prop_assert_eq!(inside, again);
        prop_assert_eq!((&whole.text, &whole.reasoning, &whole.calls), (&cut.text, &cut.reasoning, &cut.calls));
        // Unless it turned out otherwise, what was shown is what there is.
        let (text, thought, input) = shown(&deltas);
        let turned = inside == Some(true) && !begins_inside || begins_inside && inside == Some(false);
        if !turned {
            prop_assert_eq!((text.as_str(), thought.as_str()), (cut.text.as_str(), reasoning(&cut).0));
            prop_assert_eq!(input, cut.calls.iter().map(|call| call.arguments.as_str()).collect::<String>());
        }
    }
}

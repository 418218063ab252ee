//! What becomes of an output: secrets, caps, blobs and names.

use std::io::Write;

use hames_protocol::{
    BlobSource, BlobStore, Declaration, Diff, Effect, Event, FileHash, Part, ToolErrorClass, ToolOutputDelta,
};
use hames_tools::tempfile_path::TempFile;
use hames_tools::{ToolFailure, ToolOutput, Whole};
use serde_json::json;

use crate::kit::{Gate, Setup, TestDoor, TestTool, door, touching};

const KEY: &str = "sk-live-0123\"456789";

fn gives(text: impl Into<String>) -> TestTool {
    let text = text.into();
    TestTool::new("T").does(move |_, _| {
        let text = text.clone();
        async move { Ok(ToolOutput::text(text)) }
    })
}

fn secretive(tool: TestTool) -> TestDoor {
    let mut setup = Setup::new(vec![tool]);
    setup.secrets = vec![KEY.into()];
    setup.build()
}

async fn blob(test: &TestDoor, hash: &str) -> String {
    String::from_utf8(test.blobs.get(hash, 0, u64::MAX).await.unwrap()).unwrap()
}

fn done(event: &Event) -> hames_protocol::ToolDone {
    match event {
        Event::ToolDone(done) => done.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_result_is_passed_on_as_it_is() {
    let tool = TestTool::new("T").does(|_, _| async {
        let diffs = vec![Diff { path: "a".into(), text: "+x".into(), added: 1, removed: 0 }];
        let files = vec![FileHash { path: "/w/a".into(), hash: "h".into() }];
        Ok(ToolOutput { diffs, files, exit_code: Some(3), ..ToolOutput::text("héllo\n") })
    });
    let test = door(vec![tool]);
    let done = done(&test.run(&[("T", json!({}))]).await[0].end);
    assert_eq!((done.output.as_str(), done.exit_code, done.blob), ("héllo\n", Some(3), None));
    assert_eq!((done.diffs[0].text.as_str(), done.files[0].hash.as_str()), ("+x", "h"));
}

#[tokio::test]
async fn a_blank_output_says_so() {
    for text in ["", " ", "\n\n", "\t\r\n"] {
        assert_eq!(door(vec![gives(text)]).run(&[("T", json!({}))]).await[0].output(), "(no output)");
        let fails = TestTool::new("T").does(move |_, _| async move { Err(ToolFailure::failed(text)) });
        assert_eq!(door(vec![fails]).run(&[("T", json!({}))]).await[0].error().error, "It failed and did not say why.");
    }
}

#[tokio::test]
async fn a_result_is_capped_by_declaration_window_and_ceiling_and_kept_whole() {
    for (window, declared, cap) in [
        (200_000, None, 50 << 10),
        (2_000_000, Some(30 << 10), 30 << 10),
        (2_000_000, Some(1 << 30), 50 << 10),
        (32_000, None, 12_800),
        (8_000, Some(50 << 10), 3_200),
        (2_000, None, 1 << 10),
        (0, None, 1 << 10),
        (200_000, Some(1), 1 << 10),
    ] {
        for size in [cap - 100, cap, cap + 1, cap * 3] {
            let text: String = "é漢x\n"
                .chars()
                .cycle()
                .scan(0, |len, c| {
                    *len += c.len_utf8();
                    (*len <= size).then_some(c)
                })
                .collect();
            let tool =
                gives(text.clone()).declares(move |i| Declaration { cap_bytes: declared, ..touching(Effect::Read, i) });
            let mut setup = Setup::new(vec![tool]);
            setup.window = window;
            let test = setup.build();
            let done = done(&test.run(&[("T", json!({}))]).await[0].end);
            assert!(done.output.len() <= cap, "{window} {declared:?} {size}: {}", done.output.len());
            if text.len() <= cap {
                assert_eq!((done.output, done.blob), (text, None));
                continue;
            }
            let kept = done.blob.unwrap();
            assert_eq!(kept.name.as_deref(), Some("out-1"));
            assert_eq!(blob(&test, &kept.hash).await, text);
            let (head, rest) = done.output.split_once("\n[").unwrap();
            let (left_out, rest) =
                rest.split_once(" bytes left out here; the whole output is kept as out-1]\n").unwrap();
            assert!(text.starts_with(head) && text.ends_with(rest));
            assert_eq!(head.len() + rest.len() + left_out.parse::<usize>().unwrap(), text.len());
        }
    }
}

#[tokio::test]
async fn a_tool_is_told_its_cap_with_room_for_notes() {
    let tool = TestTool::new("T").does(|_, cx| async move {
        Ok(ToolOutput { whole: Whole::Bytes(vec![b'w'; 99_999]), ..ToolOutput::text("x".repeat(cx.cap_bytes)) })
    });
    let mut setup = Setup::new(vec![tool]);
    setup.window = 8_000;
    let test = setup.build();
    for arguments in [json!({}), json!({"unknown": 1}), json!({"a_rather_long_unknown_name": 1, "another_one": 2})] {
        let output = test.run(&[("T", arguments)]).await[0].output().to_owned();
        assert!(output.len() <= 3_200 && output.len() > 2_900, "{}", output.len());
        assert!(output.contains("the whole output is kept as out-") && !output.contains("left out"), "{output}");
    }
}

#[tokio::test]
async fn a_whole_is_kept_under_a_name_that_is_shown() {
    for kind in ["bytes", "file"] {
        let tool = TestTool::new("T").does(move |_, _| async move {
            let whole = match kind {
                "bytes" => Whole::Bytes(b"all of it".to_vec()),
                _ => spooled(b"all of it"),
            };
            Ok(ToolOutput { whole, ..ToolOutput::text("part\n") })
        });
        let test = door(vec![tool]);
        let done = done(&test.run(&[("T", json!({}))]).await[0].end);
        assert_eq!(done.output, "part\n[the whole output is kept as out-1 (9 bytes)]");
        assert_eq!(blob(&test, &done.blob.unwrap().hash).await, "all of it");
    }
}

#[tokio::test]
async fn where_the_whole_is_kept_the_tool_that_shows_it_is_named() {
    let part = TestTool::new("T").does(|_, _| async {
        Ok(ToolOutput { whole: Whole::Bytes(b"all of it".to_vec()), ..ToolOutput::text("part") })
    });
    let long = gives("x".repeat(60_000));
    let recalls = || TestTool::new("Look_back").recalling();
    let ends = |test: TestDoor| async move { test.run(&[("T", json!({}))]).await[0].output().to_owned() };
    let said = ends(door(vec![part, recalls()])).await;
    assert_eq!(said, "part\n[the whole output is kept as out-1 (9 bytes); Look_back shows it]");
    let said = ends(door(vec![long, recalls()])).await;
    assert!(said.contains(" bytes left out here; the whole output is kept as out-1; Look_back shows it]\n"));
    assert!(said.len() <= 50 << 10);
}

#[tokio::test]
async fn images_go_along_with_a_result_unless_a_secret_is_in_them() {
    let tool = TestTool::new("T").does(|_, cx| async move {
        let mut attachments = vec![Part::text(format!("text with {KEY}"))];
        for (name, bytes) in
            [("plain.png", "PNG".to_owned()), (KEY, "other".to_owned()), ("c.png", format!("PNG{KEY}"))]
        {
            let blob = cx.blobs.put(&cx.session, "", BlobSource::Bytes(bytes.into_bytes())).await.unwrap();
            attachments.push(Part::Image { blob, media_type: "image/png".into(), name: Some(name.into()) });
        }
        Ok(ToolOutput { attachments, ..ToolOutput::text("three images") })
    });
    let names = |parts: &[Part]| -> Vec<String> {
        let name = |part: &Part| match part {
            Part::Text { text } => text.clone(),
            Part::Image { name, .. } => name.clone().unwrap(),
        };
        parts.iter().map(name).collect()
    };
    let done_by = |test: TestDoor| async move { done(&test.run(&[("T", json!({}))]).await[0].end) };
    let open = done_by(door(vec![tool.clone()])).await;
    assert_eq!(names(&open.attachments), [&format!("text with {KEY}"), "plain.png", KEY, "c.png"]);
    assert_eq!(open.output, "three images");
    let masked = done_by(secretive(tool)).await;
    assert_eq!(names(&masked.attachments), ["text with [masked secret]", "plain.png", "[masked secret]"]);
    assert_eq!(masked.output, "three images\n[The image is not shown: a known key is written in it.]");
    assert_eq!(masked.blob, None);
}

fn spooled(bytes: &[u8]) -> Whole {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    Whole::File { path: TempFile::adopt(file.into_temp_path().keep().unwrap()), dropped: 0 }
}

#[tokio::test]
async fn an_error_has_its_whole_too() {
    let tool = TestTool::new("T").does(|_, _| async {
        Err(ToolFailure { class: ToolErrorClass::Timeout, text: "so far".into(), whole: Whole::Bytes(b"all".to_vec()) })
    });
    let test = door(vec![tool]);
    let outcome = &test.run(&[("T", json!({}))]).await[0];
    let error = outcome.error();
    assert_eq!(error.error, "so far\n[the whole output is kept as out-1 (3 bytes)]");
    assert_eq!(blob(&test, &error.blob.clone().unwrap().hash).await, "all");
}

#[tokio::test]
async fn kept_outputs_are_numbered_without_gap_or_double() {
    let gate = Gate::new();
    let tool = {
        let gate = gate.clone();
        TestTool::new("T").does(move |input, _| {
            let gate = gate.clone();
            async move {
                gate.pass(input["path"].as_str().unwrap()).await;
                Ok(ToolOutput::text(input["path"].as_str().unwrap().repeat(60_000)))
            }
        })
    };
    let test = door(vec![tool]);
    for round in 0..3 {
        let names: Vec<String> = (0..9).map(|n| format!("{round}{n}")).collect();
        let running = test.start(&names.iter().map(|path| ("T", json!({"path": path}))).collect::<Vec<_>>());
        names.iter().rev().for_each(|name| gate.open(name));
        running.await.unwrap();
    }
    let mut numbers: Vec<u32> = test
        .log
        .events()
        .iter()
        .filter(|event| event.type_name() == "tool.done")
        .map(|event| done(event).blob.unwrap().name.unwrap()[4..].parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=27).collect::<Vec<_>>());
}

#[tokio::test]
async fn names_stay_apart_where_the_fold_of_the_session_lags() {
    let test = door(vec![gives("x".repeat(60_000))]);
    test.log.lag();
    let outcomes = test.run(&vec![("T", json!({})); 8]).await;
    let names: Vec<_> = outcomes.iter().map(|outcome| done(&outcome.end).blob.unwrap().name).collect();
    assert!(crate::kit::unique(&names), "{names:?}");
}

#[tokio::test]
async fn no_secret_leaves_a_call_in_any_form() {
    let tool = TestTool::new("T").does(|input, cx| async move {
        let whole = match input["n"].as_i64() {
            Some(1) => Whole::Bytes(format!("head {KEY} tail").into_bytes()),
            Some(2) => spooled(format!("{}{KEY} tail", "x".repeat(100_000)).as_bytes()),
            Some(3) => spooled(b"nothing in it"),
            _ => Whole::None,
        };
        let todo = json!({"type": "todo.updated", "todos": [{"id": "1", "content": KEY, "status": "pending"}]});
        cx.emit.record(vec![serde_json::from_value(todo).unwrap()]).await?;
        for (offset, text) in [(0, "key: sk-live-01"), (15, "23\"4567"), (22, "89 end s")] {
            cx.emit.show(Event::ToolOutputDelta(ToolOutputDelta {
                call_id: cx.call_id.clone(),
                offset,
                text: text.into(),
            }));
        }
        let quoted = serde_json::to_string(KEY).unwrap();
        if input["n"] == 4 {
            return Err(ToolFailure { whole, ..ToolFailure::failed(format!("{KEY} and {quoted}")) });
        }
        let diffs = vec![Diff { path: "a".into(), text: format!("+{KEY}"), added: 1, removed: 0 }];
        let text = if input["n"] == 5 { format!("{KEY}\n").repeat(9_000) } else { format!("{KEY} and {quoted}") };
        Ok(ToolOutput { whole, diffs, ..ToolOutput::text(text) })
    });
    for n in 0..6 {
        let test = secretive(tool.clone());
        let outcome = test.run(&[("T", json!({"n": n}))]).await.remove(0);
        let events = serde_json::to_string(&(test.log.events(), test.log.shown())).unwrap();
        assert!(!events.contains("456789") && events.contains("[masked secret]"), "{n}: {events}");
        let live: String = test
            .log
            .shown()
            .iter()
            .map(|event| match event {
                Event::ToolOutputDelta(delta) => delta.text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(live, "key: [masked secret] end s");
        let kept = match &outcome.end {
            Event::ToolDone(done) => done.blob.clone(),
            _ => None,
        };
        if let Some(kept) = kept {
            let content = blob(&test, &kept.hash).await;
            assert!(!content.contains(KEY), "{n}");
            let wanted = match n {
                1 => "head [masked secret] tail".to_owned(),
                2 => format!("{}[masked secret] tail", "x".repeat(100_000)),
                3 => "nothing in it".to_owned(),
                _ => "[masked secret]\n".repeat(9_000),
            };
            assert_eq!(content, wanted, "{n}");
        }
    }
}

#[tokio::test]
async fn live_output_keeps_its_place_when_a_secret_is_masked() {
    let tool = TestTool::new("T").does(|_, cx| async move {
        let mut offset = 0;
        for text in ["a ", KEY, " b ", "sk-li", "ke", "sk-live-0123"] {
            cx.emit.show(Event::ToolOutputDelta(ToolOutputDelta {
                call_id: cx.call_id.clone(),
                offset,
                text: text.into(),
            }));
            offset += text.len() as u64;
        }
        // A gap: what was held cannot be completed any more.
        let text = "after".to_owned();
        cx.emit.show(Event::ToolOutputDelta(ToolOutputDelta { call_id: cx.call_id.clone(), offset: 500, text }));
        Ok(ToolOutput::default())
    });
    let test = secretive(tool);
    test.run(&[("T", json!({}))]).await;
    let shown: Vec<(u64, String)> = test
        .log
        .shown()
        .into_iter()
        .map(|event| match event {
            Event::ToolOutputDelta(delta) => (delta.offset, delta.text),
            other => panic!("{other:?}"),
        })
        .collect();
    let (joined, gap) = shown.split_at(shown.len() - 1);
    let mut at = 0;
    for (offset, text) in joined {
        assert_eq!(*offset, at);
        at += text.len() as u64;
    }
    assert_eq!(joined.iter().map(|(_, text)| text.as_str()).collect::<String>(), "a [masked secret] b sk-like");
    assert_eq!(gap[0].1, "after");
}

#[tokio::test]
async fn a_huge_diff_is_cut_in_the_event() {
    let tool = TestTool::new("T").does(|_, _| async {
        let diff = Diff { path: "a".into(), text: "+line\n".repeat(500_000), added: 500_000, removed: 0 };
        Ok(ToolOutput { diffs: vec![diff], ..ToolOutput::text("ok") })
    });
    let done = done(&door(vec![tool]).run(&[("T", json!({}))]).await[0].end);
    assert!(done.diffs[0].text.len() <= 256 << 10);
    assert_eq!(done.diffs[0].added, 500_000);
}

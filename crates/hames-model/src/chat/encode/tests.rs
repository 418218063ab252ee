use std::collections::HashSet;

use super::*;
use hames_protocol::{
    AssistantItem, BlobSource, CallItem, Label, MemoryBlobs, ReasoningBlock, SessionId, ToolItem, UserItem,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::Endpoint;

fn encoder() -> Encoder {
    encoder_for(true)
}

fn encoder_for(images: bool) -> Encoder {
    Encoder::new(Style {
        model: "p/m".parse().unwrap(),
        thinking: None,
        replay_reasoning: None,
        limit_name: "max_tokens",
        images,
    })
}

/// What stands behind the messages where nothing is set.
const END: &str = r#"],"stream":true,"stream_options":{"include_usage":true}}"#;

fn place() -> Place {
    Place::new(&Endpoint::new("p", "http://h"), "h", "m")
}

fn head(system: &str) -> Arc<Head> {
    Arc::new(Head { tools: Vec::new(), system: system.into() })
}

fn user(text: &str) -> Arc<Item> {
    Arc::new(Item::User(UserItem { parts: vec![Part::text(text)], ..UserItem::default() }))
}

fn answer(text: &str, calls: &[(&str, &str)]) -> Arc<Item> {
    let calls = calls.iter().map(|(own, provider)| CallItem {
        call_id: (*own).into(),
        provider_id: (*provider).into(),
        name: "Read".into(),
        arguments: "{}".into(),
        input: None,
        label: Label::default(),
        extra: None,
    });
    Arc::new(Item::Assistant(AssistantItem { text: text.into(), calls: calls.collect(), ..AssistantItem::default() }))
}

fn result(own: &str) -> Arc<Item> {
    seeing(own, Vec::new())
}

/// A result with images.
fn seeing(own: &str, attachments: Vec<Part>) -> Arc<Item> {
    let (call_id, name) = (own.into(), "Read".into());
    Arc::new(Item::Tool(ToolItem {
        call_id,
        name,
        text: "ok".into(),
        error: None,
        blob: None,
        attachments,
        capability: false,
    }))
}

fn prepare(encoder: &mut Encoder, head: &Arc<Head>, items: &[Arc<Item>]) -> (String, PreparedInfo) {
    prepare_with(encoder, head, items, &RequestOptions::default(), &MemoryBlobs::default()).unwrap()
}

fn prepare_with(
    encoder: &mut Encoder,
    head: &Arc<Head>,
    items: &[Arc<Item>],
    options: &RequestOptions,
    blobs: &MemoryBlobs,
) -> Result<(String, PreparedInfo), Failure> {
    let place = place();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let wanted = Wanted { head, items, options, lessons: &[] };
    let (body, info) = runtime.block_on(encoder.prepare(wanted, blobs, &place))?;
    let text: Vec<u8> = body.frames.concat();
    assert_eq!(text.len() as u64, body.len);
    assert_eq!(info.bytes, body.len);
    Ok((String::from_utf8(text).unwrap(), info))
}

fn messages(text: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    body["messages"].as_array().unwrap().clone()
}

fn wire_ids(text: &str) -> (Vec<String>, Vec<String>) {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for message in messages(text) {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            calls.push(call["id"].as_str().unwrap().to_owned());
        }
        results.extend(message["tool_call_id"].as_str().map(str::to_owned));
    }
    (calls, results)
}

#[test]
fn a_request_that_grows_keeps_every_byte_it_had() {
    let mut encoder = encoder();
    for head in [head("be brief"), head("")] {
        let mut items = Vec::new();
        let mut before: Option<String> = None;
        let mut prints = Vec::new();
        for n in 0..20 {
            let call = format!("own{n}");
            items.extend([user(&format!("q{n} 台")), answer("", &[(&call, "c")]), result(&call)]);
            let (text, info) = prepare(&mut encoder, &head, &items);
            if let Some(before) = before {
                let kept = before.strip_suffix(END).unwrap();
                assert!(text.starts_with(kept), "{before}\n{text}");
                assert_eq!(info.changed_at, Some(kept.len() as u64));
                assert_eq!(info.changed_why, "appended");
            }
            messages(&text);
            assert!(!prints.contains(&info.fingerprint));
            prints.push(info.fingerprint);
            before = Some(text);
        }
    }
}

#[test]
fn where_a_request_parts_from_the_one_before_is_told() {
    let (a, b, c) = (user("a"), answer("b", &[]), user("c"));
    for system in ["s", ""] {
        let head_one = head(system);
        let mut encoder = encoder();
        let (first, info) = prepare(&mut encoder, &head_one, &[a.clone(), b.clone(), c.clone()]);
        assert_eq!((info.changed_at, info.changed_why), (None, "first"));

        let other = answer("B", &[]);
        let (text, info) = prepare(&mut encoder, &head_one, &[a.clone(), other, c.clone()]);
        assert_eq!((info.changed_at, info.changed_why), (Some(first_difference(&first, &text)), "item"));

        let (fewer, info) = prepare(&mut encoder, &head_one, std::slice::from_ref(&c));
        assert_eq!((info.changed_at, info.changed_why), (Some(first_difference(&text, &fewer)), "item"));

        let (more, info) = prepare(&mut encoder, &head_one, &[c.clone(), user("d")]);
        assert_eq!((info.changed_at, info.changed_why), (Some(first_difference(&fewer, &more)), "appended"));

        let (text, info) = prepare(&mut encoder, &head("other"), &[c.clone(), b.clone()]);
        assert_eq!(info.changed_why, "head");
        assert!(info.changed_at.unwrap() <= first_difference(&more, &text));

        let (again, info) = prepare(&mut encoder, &head("other"), &[c.clone(), b.clone()]);
        assert_eq!(again, text);
        assert_eq!((info.changed_at, info.changed_why), (Some(text.len() as u64), "appended"));
    }
}

fn first_difference(a: &str, b: &str) -> u64 {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count() as u64
}

#[test]
fn another_output_limit_changes_only_the_end() {
    let mut encoder = encoder();
    let (head, items) = (head("s"), [user("a")]);
    let limit = |n| RequestOptions { max_output_tokens: Some(n), ..RequestOptions::default() };
    let blobs = MemoryBlobs::default();
    let (one, _) = prepare_with(&mut encoder, &head, &items, &limit(10), &blobs).unwrap();
    let (two, info) = prepare_with(&mut encoder, &head, &items, &limit(20), &blobs).unwrap();
    assert!(two.ends_with(",\"max_tokens\":20}"));
    assert_eq!(info.changed_at, Some(first_difference(&one, &two)));
    assert!(info.changed_at.unwrap() > one.find("messages").unwrap() as u64 + 20);
}

#[test]
fn a_provider_id_is_kept_where_it_can_be_told_apart_and_replaced_where_not() {
    let long_own = "x".repeat(50);
    // own id and provider id of each call, a step each unless joined; the wire ids that must come out
    type Step<'a> = Vec<(&'a str, &'a str)>;
    let cases: Vec<(Vec<Step<'_>>, Vec<&str>)> = vec![
        (vec![vec![("a", "call_0")], vec![("b", "call_1")]], vec!["call_0", "call_1"]),
        (vec![vec![("a", "call_0")], vec![("b", "call_0")]], vec!["call_0", "b"]),
        (vec![vec![("a", ""), ("b", "")]], vec!["a", "b"]),
        (vec![vec![("a", "same"), ("b", "same")]], vec!["same", "b"]),
        (vec![vec![("a", " ")]], vec!["a"]),
        (vec![vec![("a", "functions.add:0")]], vec!["functions.add:0"]),
        (vec![vec![("a", "call_0")], vec![("b", "call_0")], vec![("c", ""), ("d", "")]], vec!["call_0", "b", "c", "d"]),
        (vec![vec![("a", "b")], vec![("b", "")]], vec!["b", ""]),
        (vec![vec![(&long_own, "")]], vec![""]),
        (vec![vec![("ü w", "")]], vec![""]),
    ];
    for (steps, expected) in cases {
        let mut items = vec![user("go")];
        for step in &steps {
            items.push(answer("", step));
            items.extend(step.iter().map(|(own, _)| result(own)));
        }
        let (text, _) = prepare(&mut encoder(), &head("s"), &items);
        let (calls, results) = wire_ids(&text);
        assert_eq!(calls, results, "every result stands next to its own call: {steps:?}");
        let distinct: HashSet<&String> = calls.iter().collect();
        assert_eq!(distinct.len(), calls.len(), "{steps:?}");
        for (found, expected) in calls.iter().zip(expected) {
            if expected.is_empty() {
                assert!(found.len() <= 40 && found.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
            } else {
                assert_eq!(found, expected, "{steps:?}");
            }
        }
    }
}

#[test]
fn an_id_stays_what_it_was_when_the_front_of_the_window_goes() {
    let steps: Vec<Arc<Item>> =
        ["a", "b", "c"].iter().flat_map(|own| [user("q"), answer("", &[(own, "call_0")]), result(own)]).collect();
    let mut encoder = encoder();
    let (whole, _) = prepare(&mut encoder, &head("s"), &steps);
    let (rest, _) = prepare(&mut encoder, &head("s"), &steps[3..]);
    assert_eq!(wire_ids(&whole).0[1..], wire_ids(&rest).0);
    let more = [&steps[3..], &[user("q"), answer("", &[("d", "call_0")]), result("d")]].concat();
    let (more, _) = prepare(&mut encoder, &head("s"), &more);
    assert_eq!(wire_ids(&more).0, ["b", "c", "call_0"]);
}

#[test]
fn a_result_without_its_call_is_refused_before_it_is_sent() {
    let place_failure = prepare_with(
        &mut encoder(),
        &head("s"),
        &[user("a"), result("ghost")],
        &RequestOptions::default(),
        &MemoryBlobs::default(),
    );
    assert_eq!(place_failure.unwrap_err().class, ErrorClass::WireRule);
}

#[test]
fn neighbouring_user_items_are_one_message_also_across_an_empty_answer() {
    let empty = answer(" ", &[]);
    let (text, _) =
        prepare(&mut encoder(), &head(""), &[empty.clone(), user("a"), user("b"), empty, user("c"), answer("d", &[])]);
    let messages = messages(&text);
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["content"], "a\n\nb\n\nc");
}

#[test]
fn an_image_is_sent_as_long_as_it_is_kept() {
    let blobs = MemoryBlobs::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let session = SessionId::from("s");
    let kept = runtime.block_on(blobs.put(&session, "", BlobSource::Bytes(b"PNG".to_vec()))).unwrap();
    let lost = hames_protocol::BlobRef { hash: "0".repeat(64), ..kept.clone() };
    let image = |blob| Part::Image { blob, media_type: "image/png".into(), name: None };
    let item = Item::User(UserItem { parts: vec![image(kept), image(lost)], ..UserItem::default() });
    let (text, _) =
        prepare_with(&mut encoder(), &head(""), &[Arc::new(item)], &RequestOptions::default(), &blobs).unwrap();
    let content = &messages(&text)[0]["content"];
    assert_eq!(content[0]["image_url"]["url"], "data:image/png;base64,UE5H");
    assert_eq!(content[1]["text"], "[an image was attached here and is no longer kept]");
}

/// Blobs with an image in them, and parts that lead to it under these names.
fn kept_images(names: &[&str]) -> (MemoryBlobs, Vec<Part>) {
    let blobs = MemoryBlobs::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let put = |name: &&str| {
        let source = BlobSource::Bytes(name.as_bytes().to_vec());
        let blob = runtime.block_on(blobs.put(&SessionId::from("s"), "", source)).unwrap();
        Part::Image { blob, media_type: "image/png".into(), name: Some((*name).into()) }
    };
    let parts = names.iter().map(put).collect();
    (blobs, parts)
}

/// A request in short: roles, with `*` for an image and the names that stand in front of them.
fn outline(text: &str) -> String {
    let part = |part: &Value| match part["type"].as_str() {
        Some("image_url") => "*".to_owned(),
        _ => part["text"].as_str().unwrap().rsplit(": ").next().unwrap().trim_end_matches(']').to_owned(),
    };
    let message = |message: &Value| {
        let content = match &message["content"] {
            Value::Array(parts) => format!("({})", parts.iter().map(part).collect::<Vec<_>>().join(" ")),
            Value::String(text) if message["role"] == "user" => format!("({text})"),
            _ => String::new(),
        };
        format!("{}{content}", &message["role"].as_str().unwrap()[..1])
    };
    messages(text).iter().map(message).collect::<Vec<_>>().join(" ")
}

#[test]
fn images_of_results_are_one_user_message_behind_the_last_result_of_the_step() {
    let (blobs, images) = kept_images(&["p1", "p2", "p3"]);
    let [p1, p2, p3] = [0, 1, 2].map(|at| vec![images[at].clone()]);
    let asks = || answer("", &[("a", "a"), ("b", "b"), ("c", "c")]);
    type Case = (Vec<Arc<Item>>, &'static str, &'static str);
    let cases: Vec<Case> = vec![
        (vec![seeing("a", p1.clone()), result("b"), result("c")], "u(q) a t t t u(p1 *)", "u(q) a t t t"),
        (
            vec![seeing("a", p1.clone()), result("b"), seeing("c", [p2.clone(), p3.clone()].concat())],
            "u(q) a t t t u(p1 * p2 * p3 *)",
            "u(q) a t t t",
        ),
        (
            vec![result("a"), seeing("b", p1.clone()), result("c"), user("more"), user("and")],
            "u(q) a t t t u(p1 * more and)",
            "u(q) a t t t u(more\n\nand)",
        ),
        (
            vec![result("a"), result("b"), seeing("c", p1.clone()), answer(" ", &[]), user("go on")],
            "u(q) a t t t u(p1 * go on)",
            "u(q) a t t t u(go on)",
        ),
        (
            vec![seeing("a", p1.clone()), result("b"), result("c"), answer("I see", &[]), user("ok")],
            "u(q) a t t t u(p1 *) a u(ok)",
            "u(q) a t t t a u(ok)",
        ),
        (
            vec![
                seeing("a", p1),
                result("b"),
                result("c"),
                answer("", &[("d", "d")]),
                seeing("d", p2),
                answer("", &[("e", "e")]),
                result("e"),
            ],
            "u(q) a t t t u(p1 *) a t u(p2 *) a t",
            "u(q) a t t t a t a t",
        ),
    ];
    for (results, with, without) in cases {
        let items = [vec![user("q"), asks()], results].concat();
        let options = RequestOptions::default();
        for (takes, expected) in [(true, with), (false, without)] {
            let (text, _) = prepare_with(&mut encoder_for(takes), &head(""), &items, &options, &blobs).unwrap();
            assert_eq!(outline(&text), expected);
            // The same, grown item by item: no byte that was sent changes but behind the last answer.
            let mut grown = encoder_for(takes);
            for n in 1..items.len() {
                prepare_with(&mut grown, &head(""), &items[..n], &options, &blobs).unwrap();
            }
            assert_eq!(prepare_with(&mut grown, &head(""), &items, &options, &blobs).unwrap().0, text);
        }
    }
}

#[test]
fn a_request_with_images_grows_without_changing_a_byte() {
    let (blobs, images) = kept_images(&["p1"]);
    let (mut encoder, head, options) = (encoder(), head("s"), RequestOptions::default());
    let mut items = vec![user("q")];
    let mut before = String::new();
    for n in 0..40 {
        let own = format!("own{n}");
        items.extend([answer("", &[(&own, "c")]), seeing(&own, images.clone())]);
        let (text, info) = prepare_with(&mut encoder, &head, &items, &options, &blobs).unwrap();
        assert!(text.starts_with(before.strip_suffix("]}").unwrap_or_default()));
        assert_ne!(info.changed_why, "item");
        before = text;
    }
    assert_eq!(prepare_with(&mut self::encoder(), &head, &items, &options, &blobs).unwrap().0, before);
}

#[test]
fn a_user_is_told_of_an_image_that_the_model_does_not_take() {
    let (blobs, images) = kept_images(&["p1.png"]);
    let item = Item::User(UserItem { parts: [vec![Part::text("look")], images].concat(), ..UserItem::default() });
    let options = RequestOptions::default();
    let (text, _) = prepare_with(&mut encoder_for(false), &head(""), &[Arc::new(item)], &options, &blobs).unwrap();
    assert_eq!(messages(&text)[0]["content"], "look\n\n[p1.png is an image, which this model does not take]");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::proptest_cases(), ..ProptestConfig::default() })]

    #[test]
    fn whatever_items_say_a_body_is_valid_and_rendering_anew_gives_the_same(
        texts in prop::collection::vec(any::<String>(), 1..8),
        arguments in ".*",
        name in ".*",
        extra in ".*",
    ) {
        let items: Vec<Arc<Item>> = texts.iter().enumerate().flat_map(|(n, text)| {
            let own = format!("own{n}");
            let call = CallItem {
                call_id: own.as_str().into(),
                provider_id: text.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
                input: None,
                label: Label::default(),
                extra: Some(extra.clone()),
            };
            let answer = AssistantItem { text: text.clone(), calls: vec![call], ..AssistantItem::default() };
            [user(text), Arc::new(Item::Assistant(answer)), result(&own)]
        }).collect();
        let head = head(&texts[0]);
        let mut grown = encoder();
        for n in 0..=items.len() {
            // A result may be cut off; its call then stands alone, which is not this crate's to judge.
            prepare(&mut grown, &head, &items[..n]);
        }
        let (one, _) = prepare(&mut grown, &head, &items);
        let (fresh, _) = prepare(&mut encoder(), &head, &items);
        prop_assert_eq!(&one, &fresh);
        let (calls, results) = wire_ids(&one);
        prop_assert_eq!(calls, results);
    }
}

#[test]
fn reasoning_goes_back_to_the_model_that_gave_it_and_to_no_other() {
    let item = |model: Option<&str>| {
        let Item::Assistant(mut answer) = answer("", &[("c1", "c1")]).as_ref().clone() else { unreachable!() };
        answer.reasoning =
            vec![ReasoningBlock { text: "think".into(), field: "reasoning_content".into(), blocks: Vec::new() }];
        answer.model = model.map(|model| Arc::new(model.parse().unwrap()));
        Arc::new(Item::Assistant(answer))
    };
    for (model, goes) in [
        (Some("p/m"), true),
        (Some("p/another"), false),
        (Some("p/m/b"), false),
        (None, true),
        (Some("q/m"), false),
        (Some("P/m"), false),
        (Some("pp/m"), false),
        (Some("q/p/m"), false),
    ] {
        let (body, _) = prepare(&mut encoder(), &head(""), &[user("hi"), item(model), result("c1")]);
        assert_eq!(body.contains("think"), goes, "{model:?}: {body}");
    }
}

/// A request under lessons; its text parsed, and where it parts from the one before.
fn taught(encoder: &mut Encoder, head: &Arc<Head>, items: &[Arc<Item>], lessons: &[Lesson]) -> (String, PreparedInfo) {
    let (place, blobs) = (place(), MemoryBlobs::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let wanted = Wanted { head, items, options: &RequestOptions::default(), lessons };
    let (body, info) = runtime.block_on(encoder.prepare(wanted, &blobs, &place)).unwrap();
    (String::from_utf8(body.frames.concat()).unwrap(), info)
}

#[test]
fn the_system_text_moves_into_the_first_message_where_it_has_no_role() {
    let user_role = [Lesson::new("system", Remedy::Rename("user".into()))];
    let developer = [Lesson::new("system", Remedy::Rename("developer".into()))];
    let (one, other) = (head("be brief"), head("be long"));
    let items = [user("a"), answer("b", &[("c1", "c1")]), result("c1"), user("d"), answer("e", &[])];
    let mut encoder = encoder();
    let roles =
        |text: &str| -> Vec<String> { messages(text).iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect() };
    let (plain, _) = taught(&mut encoder, &one, &items, &[]);
    assert_eq!(roles(&plain), ["system", "user", "assistant", "tool", "user", "assistant"]);
    let (renamed, info) = taught(&mut encoder, &one, &items, &developer);
    assert_eq!(roles(&renamed)[0], "developer");
    assert_eq!((info.changed_why, info.changed_at), ("head", Some(first_difference(&plain, &renamed))));
    let (merged, _) = taught(&mut encoder, &one, &items, &user_role);
    assert_eq!(roles(&merged), ["user", "assistant", "tool", "user", "assistant"]);
    assert_eq!(messages(&merged)[0]["content"], "be brief\n\na");
    assert_eq!(encoder.sent().system_role.as_deref(), Some("user"));

    // It grows without a change, and follows another system text and another first message.
    let more = [&items[..], &[user("f")]].concat();
    let (grown, info) = taught(&mut encoder, &one, &more, &user_role);
    assert!(grown.starts_with(merged.strip_suffix(END).unwrap()));
    assert_eq!((info.changed_why, info.changed_at), ("appended", Some((merged.len() - END.len()) as u64)));
    let (text, _) = taught(&mut encoder, &other, &more, &user_role);
    assert_eq!(messages(&text)[0]["content"], "be long\n\na");
    let (text, info) = taught(&mut encoder, &other, &more[3..], &user_role);
    assert_eq!(messages(&text)[0]["content"], "be long\n\nd");
    assert_eq!(info.changed_why, "item");
    let (text, _) = taught(&mut encoder, &other, &more, &[]);
    assert_eq!(roles(&text)[..2], ["system", "user"]);
    assert_eq!(messages(&text)[1]["content"], "a");
}

#[test]
fn an_empty_system_text_leaves_the_first_message_alone() {
    let lessons = [Lesson::new("system", Remedy::Rename("user".into()))];
    let mut encoder = encoder();
    let (text, _) = taught(&mut encoder, &head(" "), &[user("a")], &lessons);
    assert_eq!(messages(&text), [serde_json::json!({"role": "user", "content": "a"})]);
    assert_eq!(encoder.sent().system_role, None);
}

#[test]
fn the_items_of_a_request_render_to_the_same_request() {
    let with_image = || {
        let blob = hames_protocol::BlobRef { hash: "h".into(), bytes: 3, dropped: 0, name: None };
        let image = Part::Image { blob, media_type: "image/png".into(), name: None };
        let Item::Tool(mut seen) = result("c1").as_ref().clone() else { unreachable!() };
        seen.attachments = vec![image];
        Arc::new(Item::Tool(seen))
    };
    let head = head("s");
    for items in [
        vec![user("a")],
        vec![user("a"), user("b"), answer(" ", &[]), user("c")],
        vec![
            user("a"),
            answer("", &[("c1", "x"), ("c2", "x")]),
            with_image(),
            result("c2"),
            user("b"),
            answer("c", &[]),
        ],
        vec![user("a"), answer("", &[("c1", "")]), with_image()],
    ] {
        let mut encoder = encoder();
        let (text, _) = taught(&mut encoder, &head, &items, &[]);
        let again = encoder.items();
        let (same, _) = taught(&mut encoder, &head, &again, &[]);
        assert_eq!(text, same);
        let lesson = [Lesson::new("reasoning_content", Remedy::Set(true.into()))];
        let again = encoder.items();
        let (anew, _) = taught(&mut encoder, &head, &again, &lesson);
        let (fresh, _) = taught(&mut self::encoder(), &head, &items, &lesson);
        assert_eq!(anew, fresh);
    }
}

#[test]
fn what_a_request_carries_is_known_of_it() {
    let thinking = |cut| {
        let Item::Assistant(mut item) = answer("said \"reasoning_content\":", &[("c1", "c1")]).as_ref().clone() else {
            unreachable!()
        };
        item.reasoning = vec![ReasoningBlock { text: "t".into(), field: "reasoning_content".into(), blocks: vec![] }];
        item.cut = cut;
        Arc::new(Item::Assistant(item))
    };
    let no = answer("\",\"reasoning_content\":\"", &[]);
    for (items, answers, reasoning) in [
        (vec![user(",\"reasoning\":")], false, false),
        (vec![user("a"), no, user("b")], true, false),
        (vec![user("a"), thinking(None), result("c1")], true, true),
        (vec![user("a"), thinking(Some(hames_protocol::Cut::Abort)), result("c1")], true, false),
    ] {
        let mut encoder = encoder();
        taught(&mut encoder, &head("s"), &items, &[]);
        assert_eq!((encoder.sent().has_answers, encoder.sent().has_reasoning), (answers, reasoning), "{items:?}");
        assert!(!encoder.sent().has_tools);
    }
}

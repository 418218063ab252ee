//! The wire form of each item.
//!
//! Pure functions from items to the JSON text of one message. What comes out is valid JSON whatever goes in: text is
//! escaped, verbatim parts are checked, arguments that are no object become `{}`, names keep the wire's alphabet.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hames_protocol::{AssistantItem, CallItem, Head, Item, Part, ReasoningBlock, ToolItem, UserItem};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::mend::mend;
use super::reasoning::{FIELD_CONTENT, FIELD_REASONING_CONTENT};
use super::tags::{is_tag, joined};

/// Characters a tool's name may have on the wire.
const MAX_NAME_CHARS: usize = 64;

/// A JSON string.
pub(crate) fn quoted(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a string is always JSON"));
}

/// Where the system text stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum SystemPlace {
    /// In a message of its own.
    Role(String),
    /// At the beginning of the user's first message, for templates that take neither the role nor two messages of a user.
    #[default]
    FirstMessage,
}

/// Everything before the first message that is not the system's: model, tools, system text.
pub(crate) fn head(model: &str, head: &Head, system: &SystemPlace) -> String {
    let mut out = String::from("{\"model\":");
    quoted(model, &mut out);
    if !head.tools.is_empty() {
        let tools: Vec<Value> = head
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": name(&tool.name), "description": tool.description, "parameters": tool.parameters,
                }})
            })
            .collect();
        out.push_str(",\"tools\":");
        out.push_str(&Value::Array(tools).to_string());
    }
    out.push_str(",\"messages\":[");
    if let SystemPlace::Role(role) = system
        && !head.system.trim().is_empty()
    {
        out.push_str("{\"role\":");
        quoted(role, &mut out);
        out.push_str(",\"content\":");
        quoted(&head.system, &mut out);
        out.push('}');
    }
    out
}

/// An image of a user message, as loaded.
pub(crate) enum Loaded {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// It cannot be had.
    Missing,
    /// The model takes none.
    NotTaken,
}

/// What an item brings into a user message: what the user says, or the images of a result.
pub(crate) fn user_parts(item: &Item) -> &[Part] {
    match item {
        Item::User(user) => &user.parts,
        Item::Tool(result) => &result.attachments,
        Item::Assistant(_) => &[],
    }
}

/// One user message out of consecutive items; `None` where they say nothing. `images` are theirs, in order. An image of
/// a result has a line in front of it that says where it comes from: the user did not send it. `before` is said first.
pub(crate) fn user(items: &[Arc<Item>], images: &[Loaded], before: Option<&str>) -> Option<String> {
    let mut parts: Vec<(bool, Cow<'_, str>)> = Vec::new();
    parts.extend(before.map(|text| (false, text.into())));
    let mut images = images.iter();
    for item in items {
        for part in user_parts(item) {
            match part {
                Part::Text { text } => parts.push((false, text.as_str().into())),
                Part::Image { media_type, name, .. } => {
                    let name = name.as_deref().unwrap_or("an image");
                    if let Item::Tool(result) = item.as_ref() {
                        parts.push((false, format!("[image in the result of {}: {name}]", result.name).into()));
                    }
                    parts.push(match images.next() {
                        Some(Loaded::Bytes(bytes)) => {
                            let media = if media_type.starts_with("image/") { media_type } else { "image/png" };
                            (true, format!("data:{media};base64,{}", STANDARD.encode(bytes)).into())
                        }
                        Some(Loaded::NotTaken) => {
                            (false, format!("[{name} is an image, which this model does not take]").into())
                        }
                        Some(Loaded::Missing) | None => {
                            (false, format!("[{name} was attached here and is no longer kept]").into())
                        }
                    });
                }
            }
        }
        if let Item::User(UserItem { note: Some(note), .. }) = item.as_ref() {
            parts.push((false, note.as_str().into()));
        }
    }
    parts.retain(|(is_image, text)| *is_image || !text.trim().is_empty());
    if parts.is_empty() {
        return None;
    }
    let mut out = String::from("{\"role\":\"user\",\"content\":");
    if parts.iter().any(|(is_image, _)| *is_image) {
        let parts: Vec<Value> = parts
            .iter()
            .map(|(is_image, text)| match is_image {
                true => json!({"type": "image_url", "image_url": {"url": text}}),
                false => json!({"type": "text", "text": text}),
            })
            .collect();
        out.push_str(&Value::Array(parts).to_string());
    } else {
        let text: Vec<&str> = parts.iter().map(|(_, text)| text.as_ref()).collect();
        quoted(&text.join("\n\n"), &mut out);
    }
    out.push('}');
    Some(out)
}

/// Whether an answer has anything to send; reasoning alone is nothing.
pub(crate) fn has_substance(item: &AssistantItem) -> bool {
    !item.calls.is_empty() || !item.text.trim().is_empty()
}

/// What of an answer goes back besides its text and calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// Whether the answer is of the model it goes to. The signatures of another mean nothing to it, and strict ones refuse
    /// fields they do not know.
    pub(crate) own: bool,
    /// What the endpoint's settings say: all reasoning, none, or what providers insist on.
    pub(crate) setting: Option<bool>,
    /// Whether every answer must have `reasoning_content`, be it blank.
    pub(crate) insisted: bool,
}

/// One answer. `ids` are the wire ids of its calls, in order.
pub(crate) fn assistant(item: &AssistantItem, ids: &[&str], replay: Replay) -> String {
    let withheld = item.cut.is_some() || !replay.own || replay.setting == Some(false);
    let replayed: &[ReasoningBlock] = if withheld { &[] } else { item.reasoning.as_slice() };
    let text = if item.text.trim().is_empty() { "" } else { item.text.as_str() };
    let mut out = String::from("{\"role\":\"assistant\",\"content\":");
    push_content(text, replayed, replay.setting == Some(true), &mut out);
    push_reasoning(replayed, replay, !item.calls.is_empty(), &mut out);
    for (at, (call, id)) in item.calls.iter().zip(ids).enumerate() {
        out.push_str(if at == 0 { ",\"tool_calls\":[" } else { "," });
        push_call(call, id, replay.own, &mut out);
    }
    out.push_str(if item.calls.is_empty() { "}" } else { "]}" });
    out
}

/// Text, or `null` beside calls; with the thoughts in front for providers that gave them as parts of the content, or
/// between tags in it.
fn push_content(text: &str, reasoning: &[ReasoningBlock], forced: bool, out: &mut String) {
    let thoughts: String =
        reasoning.iter().filter(|b| forced && b.field == FIELD_CONTENT).map(|b| b.text.as_str()).collect();
    let tagged = reasoning.iter().filter(|_| forced).find_map(|b| joined(&b.field, &b.text, text));
    if let Some(whole) = tagged {
        quoted(&whole, out);
    } else if !thoughts.is_empty() {
        let mut parts = vec![json!({"type": "thinking", "thinking": [{"type": "text", "text": thoughts}]})];
        if !text.is_empty() {
            parts.push(json!({"type": "text", "text": text}));
        }
        out.push_str(&Value::Array(parts).to_string());
    } else if text.is_empty() {
        out.push_str("null");
    } else {
        quoted(text, out);
    }
}

fn push_reasoning(reasoning: &[ReasoningBlock], replay: Replay, has_calls: bool, out: &mut String) {
    let forced = replay.setting == Some(true);
    let details: Vec<&str> = reasoning
        .iter()
        .flat_map(|block| &block.blocks)
        .filter(|raw| serde_json::from_str::<&RawValue>(raw).is_ok())
        .map(|raw| raw.trim())
        .collect();
    let text_of = |is_content: bool| -> String {
        let in_content = |field: &str| field == FIELD_CONTENT || is_tag(field);
        let fits = |field: &str| !in_content(field) && (field == FIELD_REASONING_CONTENT) == is_content;
        reasoning.iter().filter(|b| fits(&b.field)).map(|b| b.text.as_str()).collect()
    };
    let (content, plain) = (text_of(true), text_of(false));
    if replay.insisted || !content.is_empty() && (forced || has_calls) {
        let text = if content.is_empty() { &plain } else { &content };
        out.push_str(",\"reasoning_content\":");
        // Where there is none, a blank: some take an empty text for a missing one.
        quoted(if text.is_empty() { " " } else { text }, out);
    }
    if !plain.is_empty() && forced && details.is_empty() {
        out.push_str(",\"reasoning\":");
        quoted(&plain, out);
    }
    if !details.is_empty() {
        out.push_str(&format!(",\"reasoning_details\":[{}]", details.join(",")));
    }
}

fn push_call(call: &CallItem, id: &str, own: bool, out: &mut String) {
    out.push_str("{\"id\":");
    quoted(id, out);
    out.push_str(",\"type\":\"function\",\"function\":{\"name\":");
    quoted(&name(&call.name), out);
    out.push_str(",\"arguments\":");
    quoted(&arguments(call), out);
    out.push('}');
    let extra = call.extra.as_deref().filter(|_| own);
    let extra = extra.and_then(|extra| serde_json::from_str::<Map<String, Value>>(extra).ok());
    for (member, value) in extra.into_iter().flatten() {
        if !matches!(member.as_str(), "id" | "type" | "function" | "index") {
            out.push(',');
            quoted(&member, out);
            out.push(':');
            out.push_str(&value.to_string());
        }
    }
    out.push('}');
}

/// One result.
pub(crate) fn tool(item: &ToolItem, id: &str) -> String {
    let mut out = String::from("{\"role\":\"tool\",\"tool_call_id\":");
    quoted(id, &mut out);
    out.push_str(",\"content\":");
    quoted(if item.text.trim().is_empty() { "(no output)" } else { &item.text }, &mut out);
    out.push('}');
    out
}

/// Arguments as the wire takes them: the text of a JSON object. As sent where that is one, else as mended, else empty:
/// the result of the call tells the model what was wrong.
fn arguments(call: &CallItem) -> Cow<'_, str> {
    if is_object(&call.arguments) {
        return Cow::Borrowed(&call.arguments);
    }
    let mended = mend(call.arguments.as_bytes());
    if is_object(&mended) {
        return Cow::Owned(mended);
    }
    match &call.input {
        Some(input @ Value::Object(_)) => Cow::Owned(input.to_string()),
        _ => Cow::Borrowed("{}"),
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// A name in the wire's alphabet.
fn name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mended: String = name.trim().chars().take(MAX_NAME_CHARS).map(|c| if fits(c) { c } else { '_' }).collect();
    if mended.is_empty() { Cow::Borrowed("unnamed_tool") } else { Cow::Owned(mended) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hames_protocol::{Cut, ToolSpec};

    fn call(name: &str, arguments: &str, input: Option<Value>) -> CallItem {
        CallItem {
            call_id: "own".into(),
            provider_id: "c1".into(),
            name: name.into(),
            arguments: arguments.into(),
            input,
            label: hames_protocol::Label::default(),
            extra: None,
        }
    }

    fn sent(item: &AssistantItem, replay: Option<bool>) -> Value {
        let ids: Vec<&str> = item.calls.iter().map(|_| "c1").collect();
        serde_json::from_str(&assistant(item, &ids, Replay { own: true, setting: replay, insisted: false })).unwrap()
    }

    #[test]
    fn arguments_on_the_wire_are_always_the_text_of_an_object() {
        let cases = [
            (r#"{"path":"a"}"#, None, r#"{"path":"a"}"#),
            (r#" {"path" : "a"} "#, None, r#" {"path" : "a"} "#),
            ("", None, "{}"),
            (" ", None, "{}"),
            ("null", None, "{}"),
            ("null", Some(json!({})), "{}"),
            ("[1]", None, "{}"),
            (r#""{\"path\":\"a\"}""#, Some(json!({"path": "a"})), r#"{"path":"a"}"#),
            (r#"{"path":"a"#, None, "{}"),
            (r#"{"path":"\ud83d"}"#, None, r#"{"path":"\ufffd"}"#),
            ("{\"text\":\"a\nb\u{0}\"}", None, r#"{"text":"a\u000ab\u0000"}"#),
            ("{\"n\":NaN}", None, r#"{"n":null}"#),
        ];
        for (arguments, input, expected) in cases {
            let item = AssistantItem { calls: vec![call("f", arguments, input)], ..AssistantItem::default() };
            let function = &sent(&item, None)["tool_calls"][0]["function"];
            assert_eq!(function["arguments"], expected, "{arguments:?}");
        }
    }

    #[test]
    fn names_keep_the_alphabet_of_the_wire() {
        let long = "x".repeat(100);
        let cases = [
            ("Read", "Read"),
            ("mcp__a__b-c", "mcp__a__b-c"),
            ("a.b/c d", "a_b_c_d"),
            ("", "unnamed_tool"),
            ("  ", "unnamed_tool"),
            ("déjà", "d_j_"),
            ("\u{0}", "_"),
            (&long, &long[..64]),
        ];
        for (given, expected) in cases {
            assert_eq!(name(given), expected);
        }
    }

    #[test]
    fn reasoning_goes_back_as_it_came_and_only_where_it_may() {
        let block = |field: &str, blocks: &[&str]| ReasoningBlock {
            text: "think".into(),
            field: field.into(),
            blocks: blocks.iter().map(|b| (*b).to_owned()).collect(),
        };
        let signed = r#"{"type":"reasoning.text","text":"think","signature":"S="}"#;
        // field, blocks, with calls, cut, setting → reasoning_content, reasoning, reasoning_details
        type Case<'a> = (&'a str, &'a [&'a str], bool, bool, Option<bool>, Option<&'a str>, Option<&'a str>, bool);
        let cases: &[Case<'_>] = &[
            ("reasoning_content", &[], true, false, None, Some("think"), None, false),
            ("reasoning_content", &[], false, false, None, None, None, false),
            ("reasoning_content", &[], false, false, Some(true), Some("think"), None, false),
            ("reasoning_content", &[], true, false, Some(true), Some("think"), None, false),
            ("reasoning_content", &[], true, false, Some(false), None, None, false),
            ("reasoning_content", &[], true, true, Some(true), None, None, false),
            ("reasoning_content", &[], true, true, None, None, None, false),
            ("reasoning", &[], true, false, None, None, None, false),
            ("reasoning", &[], true, false, Some(true), None, Some("think"), false),
            ("reasoning", &[signed], true, false, None, None, None, true),
            ("reasoning", &[signed], false, false, None, None, None, true),
            ("reasoning_details", &[signed], false, false, Some(true), None, None, true),
            ("reasoning_details", &[signed], true, false, Some(false), None, None, false),
            ("reasoning_details", &[signed], true, true, None, None, None, false),
            ("reasoning_content", &[signed], true, false, None, Some("think"), None, true),
            ("reasoning_details", &["{broken"], true, false, None, None, None, false),
        ];
        for (field, blocks, with_calls, cut, replay, content, plain, details) in cases {
            let item = AssistantItem {
                text: "said".into(),
                reasoning: vec![block(field, blocks)],
                calls: if *with_calls { vec![call("f", "{}", None)] } else { Vec::new() },
                cut: cut.then_some(Cut::Abort),
                model: None,
            };
            let sent = sent(&item, *replay);
            let case = format!("{field} {blocks:?} {with_calls} {cut} {replay:?}: {sent}");
            assert_eq!(sent.get("reasoning_content").and_then(Value::as_str), *content, "{case}");
            assert_eq!(sent.get("reasoning").and_then(Value::as_str), *plain, "{case}");
            let expected = details.then(|| serde_json::from_str::<Value>(&format!("[{signed}]")).unwrap());
            assert_eq!(sent.get("reasoning_details"), expected.as_ref(), "{case}");
        }
    }

    #[test]
    fn nothing_opaque_goes_to_another_provider() {
        let signed = r#"{"type":"reasoning.text","text":"think","signature":"S="}"#;
        for (field, blocks) in [
            (FIELD_REASONING_CONTENT, &[][..]),
            (FIELD_REASONING_CONTENT, &[signed]),
            ("reasoning", &[]),
            ("reasoning", &[signed]),
            ("reasoning_details", &[signed]),
            (FIELD_CONTENT, &[]),
        ] {
            let blocks = blocks.iter().map(|b| (*b).to_owned()).collect();
            let mut with_extra = call("f", "{}", None);
            with_extra.extra = Some(r#"{"extra_content":{"google":{"thought_signature":"A="}}}"#.into());
            let item = AssistantItem {
                text: "said".into(),
                reasoning: vec![ReasoningBlock { text: "think".into(), field: field.into(), blocks }],
                calls: vec![with_extra],
                ..AssistantItem::default()
            };
            let sent: Value = serde_json::from_str(&assistant(&item, &["c1"], Replay::default())).unwrap();
            let function = json!({"name": "f", "arguments": "{}"});
            let calls = json!([{"id": "c1", "type": "function", "function": function}]);
            assert_eq!(sent, json!({"role": "assistant", "content": "said", "tool_calls": calls}), "{field}");
        }
    }

    #[test]
    fn an_answer_has_text_or_null_beside_its_calls() {
        let with = |text: &str, calls| AssistantItem { text: text.into(), calls, ..AssistantItem::default() };
        assert_eq!(sent(&with("hi", vec![]), None), json!({"role": "assistant", "content": "hi"}));
        let blank = sent(&with(" \n", vec![call("f", "{}", None)]), None);
        assert_eq!(blank["content"], Value::Null);
        assert!(!has_substance(&with(" \n", vec![])));
        let mut signed = call("f", "{}", None);
        signed.extra = Some(r#"{"extra_content":{"google":{"thought_signature":"A="}},"id":"no"}"#.into());
        let sent = sent(&with("", vec![signed]), None);
        assert_eq!(sent["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "A=");
        assert_eq!(sent["tool_calls"][0]["id"], "c1");
    }

    #[test]
    fn user_items_become_one_message_and_images_parts_of_it() {
        let said = |parts: Vec<Part>, note: Option<&str>| {
            Arc::new(Item::User(UserItem { parts, note: note.map(str::to_owned), nudge: None }))
        };
        let text = |t: &str| said(vec![Part::text(t)], None);
        let parsed = |items: &[Arc<Item>], images: &[Loaded]| -> Value {
            serde_json::from_str::<Value>(&user(items, images, None).unwrap()).unwrap()["content"].clone()
        };
        let one = said(vec![Part::text("do it")], Some("mode: build"));
        assert_eq!(parsed(&[one, text("now")], &[]), "do it\n\nmode: build\n\nnow");
        assert_eq!(user(&[text("  ")], &[], None), None);
        let blob = hames_protocol::BlobRef { hash: "h".into(), bytes: 3, dropped: 0, name: None };
        let image = Part::Image { blob, media_type: "image/gif".into(), name: Some("a.gif".into()) };
        let seen = said(vec![image.clone(), Part::text("look")], None);
        let data = json!({"type": "image_url", "image_url": {"url": "data:image/gif;base64,AQID"}});
        assert_eq!(
            parsed(std::slice::from_ref(&seen), &[Loaded::Bytes(vec![1, 2, 3])]),
            json!([data, {"type": "text", "text": "look"}])
        );
        for (loaded, words) in [
            (Loaded::Missing, "[a.gif was attached here and is no longer kept]\n\nlook"),
            (Loaded::NotTaken, "[a.gif is an image, which this model does not take]\n\nlook"),
        ] {
            assert_eq!(parsed(std::slice::from_ref(&seen), &[loaded]), words);
        }
        let result = |attachments: Vec<Part>| {
            let (call_id, name, text) = ("c".into(), "Read".into(), "shown below".into());
            Arc::new(Item::Tool(ToolItem {
                call_id,
                name,
                text,
                error: None,
                blob: None,
                attachments,
                capability: false,
            }))
        };
        let of_results = [result(vec![image]), result(vec![]), text("and?")];
        assert_eq!(
            parsed(&of_results, &[Loaded::Bytes(vec![1, 2, 3])]),
            json!([
                {"type": "text", "text": "[image in the result of Read: a.gif]"},
                data,
                {"type": "text", "text": "and?"},
            ])
        );
        assert_eq!(
            parsed(&of_results, &[Loaded::Missing]),
            "[image in the result of Read: a.gif]\n\n[a.gif was attached here and is no longer kept]\n\nand?"
        );
    }

    #[test]
    fn a_body_begins_with_model_tools_and_messages() {
        let tool = ToolSpec { name: "Read".into(), description: "d".into(), parameters: json!({"type": "object"}) };
        let full = Head { tools: vec![tool], system: "s\u{0}".into() };
        for (place, messages) in [
            (SystemPlace::Role("system".into()), json!([{"role": "system", "content": "s\u{0}"}])),
            (SystemPlace::Role("developer".into()), json!([{"role": "developer", "content": "s\u{0}"}])),
            (SystemPlace::FirstMessage, json!([])),
        ] {
            let text = head("a/\"b", &full, &place) + "]}";
            let body: Map<String, Value> = serde_json::from_str(&text).unwrap();
            let keys: Vec<&str> = body.keys().map(String::as_str).collect();
            assert_eq!(keys, ["model", "tools", "messages"]);
            assert_eq!(body["messages"], messages);
        }
    }

    #[test]
    fn an_endpoint_that_insists_gets_reasoning_content_with_every_answer() {
        let insisted = |own| Replay { own, setting: None, insisted: true };
        let block = |field: &str| ReasoningBlock { text: "think".into(), field: field.into(), blocks: vec![] };
        let cases = [
            (vec![block("reasoning_content")], insisted(true), None, "think"),
            (vec![block("reasoning")], insisted(true), None, "think"),
            (vec![], insisted(true), None, " "),
            (vec![block("reasoning_content")], insisted(false), None, " "),
            (vec![block("reasoning_content")], insisted(true), Some(Cut::Abort), " "),
        ];
        for (reasoning, replay, cut, expected) in cases {
            let item = AssistantItem { text: "said".into(), reasoning, cut, ..AssistantItem::default() };
            let sent: Value = serde_json::from_str(&assistant(&item, &[], replay)).unwrap();
            assert_eq!(sent["reasoning_content"], expected, "{item:?}");
        }
    }
}

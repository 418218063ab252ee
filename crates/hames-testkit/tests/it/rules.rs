//! Each rule refuses a request that breaks just it, here and in the reference provider of the kit.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use hames_testkit::{Script, Turn, blocking, wire};
use serde_json::{Value, json};

use crate::client::Client;

/// A request that breaks no rule: all kinds of messages, parts and schemas are in it.
fn sound() -> Value {
    json!({
        "model": "mock-1",
        "max_tokens": 100,
        "temperature": 0.5,
        "n": 1,
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [
            {"type": "function", "function": {"name": "Read", "description": "Reads.", "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": ["string", "null"]},
                    "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
                    "any": true,
                },
                "required": ["path"],
                "$defs": {"line": {"anyOf": [{"type": "integer"}, {"not": {"type": "null"}}]}},
            }}},
            {"type": "function", "function": {"name": "Shell", "parameters": {"type": "object", "properties": {}}}},
        ],
        "tool_choice": "auto",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "Read", "arguments": "{\"path\":\"x\"}"}},
                {"id": "b", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": "Done \u{1f600}"},
            {"role": "user", "content": "thanks"},
        ],
    })
}

/// What to change in the sound request: a pointer and the value to put there; null removes the member.
type Change = (&'static str, Value);

/// The rules broken, in order, and how.
#[rustfmt::skip]
fn table() -> Vec<(&'static [&'static str], Vec<Change>)> {
    let call = "/messages/2/tool_calls/0";
    let parameters = "/tools/0/function/parameters";
    let at = |base: &str, rest: &str| -> &'static str { Box::leak(format!("{base}{rest}").into_boxed_str()) };
    let user = |content: Value| json!({"role": "user", "content": content});
    vec![
        (&["model_missing"], vec![("/model", Value::Null)]),
        (&["model_missing"], vec![("/model", json!(""))]),
        (&["model_missing"], vec![("/model", json!(7))]),
        (&["private_key"], vec![("/_session", json!("x"))]),
        (&["stream_options_without_stream"], vec![("/stream", json!(false))]),
        (&["stream_options_without_stream"], vec![("/stream", Value::Null)]),
        (&["max_tokens_both"], vec![("/max_completion_tokens", json!(100))]),
        (&["max_tokens_value"], vec![("/max_tokens", json!(0))]),
        (&["max_tokens_value"], vec![("/max_tokens", json!(1.5))]),
        (&["max_tokens_value"], vec![("/max_tokens", json!(true))]),
        (&["temperature"], vec![("/temperature", json!(2.5))]),
        (&["temperature"], vec![("/temperature", json!("1"))]),
        (&["n"], vec![("/n", json!(2))]),
        (&["n"], vec![("/n", json!(1.0))]),
        (&["messages_empty"], vec![("/messages", json!([]))]),
        (&["messages_empty"], vec![("/messages", Value::Null)]),
        (&["message_type"], vec![("/messages/6", json!("hello"))]),
        (&["unknown_role"], vec![("/messages/6/role", json!("function"))]),
        (&["unknown_role"], vec![("/messages/6/role", Value::Null)]),
        (&["system_not_first"], vec![("/messages/6/role", json!("system"))]),
        (&["system_not_first"], vec![("/messages/5/role", json!("developer"))]),
        (&["first_not_user"], vec![("/messages", json!([{"role": "assistant", "content": "hi"}]))]),
        (&["first_not_user"], vec![("/messages", json!([{"role": "system", "content": "hi"}]))]),
        (&["tool_call_unanswered"], vec![("/messages/4", user(json!("go on")))]),
        (&["tool_call_unanswered"], vec![("/messages/6/role", json!("assistant")), ("/messages/6/tool_calls", json!([
            {"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]))]),
        (&["tool_message_orphan"], vec![("/messages/6", json!({"role": "tool", "tool_call_id": "z", "content": "x"}))]),
        (&["tool_message_orphan"], vec![("/messages/6", json!({"role": "tool", "content": "x"}))]),
        (&["tool_message_duplicate"], vec![("/messages/5", json!({"role": "tool", "tool_call_id": "a", "content": "x"}))]),
        (&["assistant_empty"], vec![("/messages/5/content", Value::Null)]),
        (&["assistant_empty"], vec![("/messages/5/content", json!(" \n\u{a0}"))]),
        (&["assistant_empty", "content_type"], vec![("/messages/5/content", json!([]))]),
        (&["tool_calls_empty"], vec![("/messages/5/tool_calls", json!([]))]),
        (&["tool_calls_empty"], vec![("/messages/5/tool_calls", json!({}))]),
        (&["tool_calls_role"], vec![("/messages/6/tool_calls", json!([]))]),
        (&["tool_call_id", "tool_message_orphan"], vec![(at(call, "/id"), json!(""))]),
        (&["tool_call_id", "tool_message_orphan"], vec![(at(call, "/id"), Value::Null)]),
        (&["tool_call_id_duplicate", "tool_message_duplicate"],
            vec![(at(call, "/id"), json!("b")), ("/messages/4/tool_call_id", json!("b"))]),
        (&["tool_call_type"], vec![(at(call, "/type"), Value::Null)]),
        (&["tool_call_name"], vec![(at(call, "/function/name"), json!("read file"))]),
        (&["tool_call_name"], vec![(at(call, "/function/name"), json!("n".repeat(65)))]),
        (&["tool_call_name"], vec![(at(call, "/function/name"), json!(""))]),
        (&["tool_call_arguments"], vec![(at(call, "/function/arguments"), json!("{\"path\":\"x"))]),
        (&["tool_call_arguments"], vec![(at(call, "/function/arguments"), json!(""))]),
        (&["tool_call_arguments"], vec![(at(call, "/function/arguments"), json!("[]"))]),
        (&["tool_call_arguments"], vec![(at(call, "/function/arguments"), json!("{}{}"))]),
        (&["tool_call_arguments"], vec![(at(call, "/function/arguments"), json!("{\"a\":NaN}"))]),
        (&["tool_call_arguments"], vec![(at(call, "/function/arguments"), json!({"path": "x"}))]),
        (&["tool_call_arguments"], vec![(at(call, "/function/arguments"), Value::Null)]),
        (&["user_content_empty"], vec![("/messages/6/content", json!("  "))]),
        (&["user_content_empty"], vec![("/messages/6/content", Value::Null)]),
        (&["user_content_empty"], vec![("/messages/6/content", json!([]))]),
        (&["tool_content_empty"], vec![("/messages/3/content", json!(""))]),
        (&["tool_content_empty"], vec![("/messages/3/content", Value::Null)]),
        (&["content_type"], vec![("/messages/0/content", Value::Null)]),
        (&["content_type"], vec![("/messages/5/content", json!(5))]),
        (&["content_part"], vec![("/messages/1/content/0/type", json!("poem"))]),
        (&["content_part"], vec![("/messages/1/content/0", json!("look"))]),
        (&["content_part"], vec![("/messages/1/content/0/type", json!("refusal"))]),
        (&["content_part_empty"], vec![("/messages/1/content/0/text", json!("\t"))]),
        (&["content_part_empty"], vec![("/messages/4/content/0/text", Value::Null)]),
        (&["image_not_user"], vec![("/messages/4/content/0", json!({"type": "image_url", "image_url": {"url": "https://x.invalid/a.png"}}))]),
        (&["image_not_user"], vec![("/messages/0/content", json!([{"type": "file", "file": {}}]))]),
        (&["image_url"], vec![("/messages/1/content/1/image_url/url", json!("file:///a.png"))]),
        (&["image_url"], vec![("/messages/1/content/1/image_url/url", json!("data:image/png;base64,"))]),
        (&["image_url"], vec![("/messages/1/content/1/image_url", json!("https://x.invalid/a.png"))]),
        (&["tool_choice_without_tools"], vec![("/tools", Value::Null)]),
        (&["tool_choice_without_tools"],
            vec![("/tools", Value::Null), ("/tool_choice", Value::Null), ("/parallel_tool_calls", json!(true))]),
        (&["tools_empty"], vec![("/tools", json!([]))]),
        (&["tools_empty"], vec![("/tools", json!({}))]),
        (&["tool_type"], vec![("/tools/1/type", json!("web_search"))]),
        (&["tool_type"], vec![("/tools/1/function", Value::Null)]),
        (&["tool_name"], vec![("/tools/1/function/name", json!("mcp.server/tool"))]),
        (&["tool_name"], vec![("/tools/1/function/name", Value::Null)]),
        (&["tool_name_duplicate"], vec![("/tools/1/function/name", json!("Read"))]),
        (&["tool_parameters"], vec![("/tools/1/function/parameters", Value::Null)]),
        (&["tool_parameters"], vec![("/tools/1/function/parameters", json!({}))]),
        (&["tool_parameters"], vec![("/tools/1/function/parameters", json!({"type": "string"}))]),
        (&["tool_schema"], vec![(at(parameters, "/properties/path/type"), json!("text"))]),
        (&["tool_schema"], vec![(at(parameters, "/properties/any"), json!("string"))]),
        (&["tool_schema"], vec![(at(parameters, "/required"), json!("path"))]),
        (&["tool_schema"], vec![(at(parameters, "/anyOf"), json!({}))]),
        (&["tool_schema"], vec![(at(parameters, "/patternProperties"), json!([]))]),
        (&["tool_schema_items"], vec![(at(parameters, "/properties/lines/items"), Value::Null)]),
        (&["tool_schema_items"], vec![(at(parameters, "/additionalProperties"), json!({"type": ["array"]}))]),
        (&["tool_schema_ref"], vec![(at(parameters, "/properties/lines/items/$ref"), json!("#/$defs/word"))]),
        (&["tool_schema_ref"], vec![(at(parameters, "/properties/lines/items/$ref"), json!("other.json"))]),
        (&["tool_schema_ref"], vec![(at(parameters, "/oneOf"), json!([{"$ref": 5}]))]),
    ]
}

/// The body with its changes made.
fn changed(changes: &[Change]) -> String {
    let mut body = sound();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match body.pointer_mut(parent).unwrap() {
            Value::Object(members) if value.is_null() => drop(members.shift_remove(key)),
            Value::Object(members) => drop(members.insert(key.to_owned(), value.clone())),
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
            other => panic!("{pointer} leads to {other}"),
        }
    }
    body.to_string()
}

/// Every request of the table, with the rules it breaks, and the two that JSON values cannot hold.
fn broken_requests() -> Vec<(Vec<&'static str>, String)> {
    let mut all: Vec<_> = table().into_iter().map(|(rules, changes)| (rules.to_vec(), changed(&changes))).collect();
    let lone = sound().to_string().replace("thanks", "than\\ud83dks");
    all.push((vec!["lone_surrogate"], lone));
    for text in ["", "{", "[]", "\"x\"", "{\"model\": NaN}", "{} {}"] {
        all.push((vec!["invalid_json"], text.to_owned()));
    }
    all
}

#[test]
fn a_sound_request_breaks_no_rule() {
    let text = sound().to_string();
    assert_eq!(wire::check(&sound(), &text), []);
    let provider = blocking(Script::new().turn(Turn::text("fine"))).unwrap();
    assert_eq!(Client::to(&provider).chat(&sound()).status, 200);
    assert_eq!(provider.violations(), []);
}

#[test]
fn every_rule_refuses_a_request_that_breaks_it() {
    let provider = blocking(Script::new().turn(Turn::text("fine"))).unwrap();
    let mut client = Client::to(&provider);
    for (index, (rules, body)) in broken_requests().into_iter().enumerate() {
        client.post(&body);
        let response = client.response().unwrap();
        let kept = provider.requests()[index].clone();
        let found: Vec<_> = kept.violations.iter().map(|violation| violation.rule).collect();
        assert_eq!(found, rules, "{body}");
        assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!(rules[0])), "{body}");
    }
    assert_eq!(provider.unused_turns(), 1, "a refused request uses up no turn");
    assert_eq!(client.chat(&sound()).status, 200);
}

#[test]
fn the_table_breaks_every_rule_of_the_documentation() {
    let documentation = include_str!("../../src/wire/mod.rs");
    let rows =
        documentation.lines().filter_map(|line| line.strip_prefix("//! | `")).filter_map(|row| row.split_once(" |"));
    let named = rows.flat_map(|(names, _)| names.split("`, `").map(|name| name.trim_end_matches('`')));
    let shown: Vec<_> = broken_requests().into_iter().flat_map(|(rules, _)| rules).collect();
    let mut count = 0;
    for name in named {
        assert!(shown.contains(&name), "no request breaks {name}");
        count += 1;
    }
    assert!(count > 30, "only {count} rules found in the documentation");
}

#[test]
fn a_lenient_provider_answers_what_a_strict_one_refuses() {
    let turns = table().into_iter().map(|_| Turn::text("fine"));
    let provider = blocking(Script::new().turns(turns).strict(false)).unwrap();
    let mut client = Client::to(&provider);
    for (rules, changes) in table() {
        client.post(&changed(&changes));
        assert_eq!(client.response().unwrap().status, 200, "{rules:?}");
    }
    assert_eq!(provider.violations(), []);
}

/// The kit's own provider, stopped when dropped.
struct Reference(Child);

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_reference_provider_refuses_the_same_requests_by_the_same_rules() {
    let Some(kit) = std::env::var_os("HAMES_TEST_KIT") else {
        return println!("skipped: HAMES_TEST_KIT does not name the kit's folder");
    };
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        return println!("skipped: there is no python3");
    }
    let folder = tempfile::tempdir().unwrap();
    let (scenario, log) = (folder.path().join("scenario.json"), folder.path().join("log.jsonl"));
    fs::write(&scenario, json!({"default": {"text": "fine"}}).to_string()).unwrap();
    let mut child = Command::new("python3")
        .arg(Path::new(&kit).join("mock_provider.py"))
        .arg("--strict")
        .arg("--scenario")
        .arg(&scenario)
        .arg("--log")
        .arg(&log)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let reference = Reference(child);
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("listening http://").trim_end_matches("/v1").to_owned();
    let mut client = Client::to_address(&address);
    assert_eq!(client.chat(&sound()).status, 200);
    let requests = broken_requests();
    for (rules, body) in &requests {
        client.post(body);
        assert_eq!(client.response().unwrap().status, 400, "{rules:?}: {body}");
    }
    drop(reference);
    // The log repeats the lone surrogate, which cannot be read back.
    let lines = fs::read_to_string(&log).unwrap().replace("than\\ud83dks", "thanks");
    let lines: Vec<Value> = lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), requests.len());
    for (line, (rules, body)) in lines.iter().zip(&requests) {
        let found: Vec<_> = line["violations"].as_array().unwrap().iter().map(|found| &found["rule"]).collect();
        assert_eq!(found, rules.iter().collect::<Vec<_>>(), "{body}");
    }
}

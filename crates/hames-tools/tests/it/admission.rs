//! What is recorded of a call, and what keeps it from running.

use std::sync::Arc;

use hames_protocol::{Effect, Mode, RawCall, ToolErrorClass};
use hames_tools::{Tool, ToolOutput, ToolSet, ToolSetError};
use serde_json::{Value, json};

use crate::kit::{Setup, TestTool, door, raw, unique};

fn echo(name: &str) -> TestTool {
    TestTool::new(name).does(|input, _| async move { Ok(ToolOutput::text(input.to_string())) })
}

#[tokio::test]
async fn a_call_is_recorded_as_asked_and_as_it_will_be_used() {
    let test = door(vec![echo("Read")]);
    let sent = RawCall {
        id: "call_9".into(),
        name: "Read".into(),
        arguments: r#"{"file_path":"a.txt","n":"5"}"#.into(),
        extra: Some(r#"{"signature":"x"}"#.into()),
    };
    let call = test.door.admit(sent.clone());
    assert_eq!((&call.event.provider_id, &call.event.name), (&sent.id, &sent.name));
    assert_eq!((&call.event.arguments, &call.event.extra), (&sent.arguments, &sent.extra));
    assert_eq!(call.event.input, Some(json!({"path": "a.txt", "n": 5})));
    assert_eq!(call.event.declaration.as_ref().map(|d| d.effect), Some(Effect::Read));
    assert_eq!(test.run_admitted(vec![call]).await[0].output(), r#"{"path":"a.txt","n":5}"#);
}

#[tokio::test]
async fn nothing_runs_while_calls_are_admitted() {
    let test = door(vec![echo("Read")]);
    test.door.admit(raw("Read", "{}"));
    test.door.admit(raw("Nope", "{"));
    assert!(test.log.events().is_empty());
}

#[tokio::test]
async fn calls_with_one_provider_id_all_run_once_under_ids_of_their_own() {
    let test = door(vec![echo("Read"), echo("Grep")]);
    let mut ids = Vec::new();
    let mut outputs = Vec::new();
    for step in [
        vec![("call_0", "Read", "a"), ("call_0", "Read", "b")],
        vec![("call_0", "Read", "c")],
        vec![("", "Grep", "d"), ("", "Read", "e"), ("call_0", "Grep", "f")],
        vec![("", "Read", "g"), ("é\0", "Read", "h")],
    ] {
        let calls: Vec<_> = step
            .iter()
            .map(|(id, name, path)| {
                let arguments = json!({"path": path}).to_string();
                test.door.admit(RawCall { id: (*id).into(), name: (*name).into(), arguments, extra: None })
            })
            .collect();
        ids.extend(calls.iter().map(|call| call.event.call_id.to_string()));
        outputs.extend(test.run_admitted(calls).await.iter().map(|o| o.output().to_owned()));
    }
    assert!(unique(&ids));
    let wanted: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|p| json!({"path": p}).to_string()).to_vec();
    assert_eq!(outputs, wanted);
}

#[tokio::test]
async fn a_tool_is_found_under_the_names_models_give_it() {
    let test =
        door(vec![echo("Read"), echo("StrReplace"), echo("mcp__db__query"), echo("todo_write"), echo("TodoRead")]);
    for (written, meant) in [
        ("Read", "Read"),
        ("read", "Read"),
        ("READ", "Read"),
        ("functions.Read", "Read"),
        ("functions/read", "Read"),
        ("default_api:Read", "Read"),
        (" Read ", "Read"),
        ("Read<|channel|>commentary", "Read"),
        ("functions.Read:0", "Read"),
        ("Read:12", "Read"),
        ("str_replace", "StrReplace"),
        ("tools.str-replace", "StrReplace"),
        ("mcp__db__query", "mcp__db__query"),
        ("MCP__DB__Query", "mcp__db__query"),
        ("TodoWrite", "todo_write"),
    ] {
        let outcome = &test.run(&[(written, json!({"path": "a"}))]).await[0];
        assert_eq!(outcome.output(), r#"{"path":"a"}"#, "{written}");
        let started = test.log.events().into_iter().rev().find_map(|event| match event {
            hames_protocol::Event::ToolStart(start) => Some(start.name),
            _ => None,
        });
        assert_eq!(started.as_deref(), Some(meant), "{written}");
    }
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_answered_with_those_that_are() {
    let test = door(vec![echo("Read"), echo("StrReplace")]);
    for (written, hint) in [
        ("StrReplce", " Did you mean StrReplace?"),
        ("reed", " Did you mean Read?"),
        ("browser", ""),
        ("", ""),
        ("\u{0}\n", ""),
        ("functions.", ""),
        (&"x".repeat(10_000), ""),
        ("<|x|>", ""),
    ] {
        let outcome = &test.run(&[(written, json!({}))]).await[0];
        let error = outcome.failed_as(ToolErrorClass::Invalid);
        assert!(error.starts_with("There is no tool named"), "{error}");
        assert!(error.ends_with(&format!("{hint} The tools are: Read, StrReplace.")), "{error}");
        assert!(error.len() < 200 && !outcome.started, "{error}");
    }
    let many = (0..200).map(|n| echo(&format!("tool_{n}"))).collect();
    let error = door(many).run(&[("browser", json!({}))]).await[0].error().error.clone();
    assert!(error.ends_with("and 176 more.") && error.len() < 400, "{error}");
}

#[tokio::test]
async fn two_tools_alike_are_not_guessed_between() {
    let test = door(vec![echo("str_replace"), echo("StrReplace")]);
    assert_eq!(test.run(&[("str_replace", json!({}))]).await[0].output(), "{}");
    test.run(&[("STRREPLACE", json!({}))]).await[0].failed_as(ToolErrorClass::Invalid);
}

#[tokio::test]
async fn nothing_at_all_is_enough_for_a_tool_without_parameters() {
    let health = echo("health").parameters(json!({"type": "object"})).effect(Effect::External);
    let strict = echo("Read")
        .parameters(json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}));
    let test = door(vec![health, strict]);
    for arguments in ["", " ", "null", "{}", "\n\t", "\"\"", "\"{}\"", "```json\n{}\n```"] {
        let calls = vec![test.door.admit(raw("health", arguments)), test.door.admit(raw("Read", arguments))];
        let outcomes = test.run_admitted(calls).await;
        assert_eq!(outcomes[0].output(), "{}", "{arguments:?}");
        assert_eq!(outcomes[1].failed_as(ToolErrorClass::Invalid), "Read: path is missing. Expected {path: string}");
        assert!(!outcomes[1].started);
    }
}

#[tokio::test]
async fn a_call_cut_in_the_middle_is_not_run() {
    let write = echo("Write").effect(Effect::Edit).parameters(json!({"type": "object", "properties": {
        "path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"]}));
    let test = door(vec![write]);
    for arguments in [
        r#"{"path":"big.md","content":"line1\nli"#,
        r#"{"path":"big.md","content":"line1\nli\"#,
        r#"{"path":"big.md","content":"#,
        r#"{"path":"big.md","content""#,
        r#"{"path":"big.md","#,
        r#"{"path":"big.md""#,
        r#"{"path":"big.md"}"#,
        r#"{"path":"big.md","content":"x""#,
        r#""{\"path\":\"big.md\",\"content\":\"li"#,
        "{",
    ] {
        let outcome = &test.run_admitted(vec![test.door.admit(raw("Write", arguments))]).await[0];
        let error = outcome.failed_as(ToolErrorClass::Invalid);
        assert!(error.contains("cut off") || error.contains("is missing"), "{arguments}: {error}");
        assert!(!outcome.started);
    }
}

#[tokio::test]
async fn refusing_answers_every_call_alike_and_runs_none() {
    let test = door(vec![echo("Write")]);
    let calls = test.admit(&[("Write", json!({"path": "a"})), ("Nope", json!({})), ("write", Value::Null)]);
    let ids: Vec<_> = calls.iter().map(|call| call.event.call_id.clone()).collect();
    test.door.refuse(calls, ToolErrorClass::NotRun, "the output limit was hit", &test.log).await.unwrap();
    let errors: Vec<_> = test
        .log
        .events()
        .into_iter()
        .map(|event| match event {
            hames_protocol::Event::ToolError(error) => (error.call_id, error.name, error.class, error.error),
            other => panic!("{other:?}"),
        })
        .collect();
    let text = "the output limit was hit".to_owned();
    let wanted: Vec<_> = ids
        .into_iter()
        .zip(["Write", "Nope", "Write"])
        .map(|(id, name)| (id, name.to_owned(), ToolErrorClass::NotRun, text.clone()))
        .collect();
    assert_eq!(errors, wanted);
    test.door.refuse(vec![], ToolErrorClass::NotRun, "x", &test.log).await.unwrap();
    assert_eq!(test.log.events().len(), 3);
}

#[tokio::test]
async fn analyze_runs_what_looks_and_refuses_the_rest_plainly() {
    let tools = [Effect::Read, Effect::Session, Effect::Edit, Effect::Run, Effect::External];
    let mut setup = Setup::new(tools.map(|effect| echo(&format!("{effect:?}")).effect(effect)).to_vec());
    setup.mode = Mode::Analyze;
    let test = setup.build();
    for name in ["Read", "Session"] {
        test.run(&[(name, json!({"path": "a"}))]).await[0].output();
    }
    for name in ["Edit", "Run", "External"] {
        for input in [json!({"path": "a"}), json!({}), json!({"path": "/etc/x"})] {
            let outcome = &test.run(&[(name, input)]).await[0];
            let error = outcome.failed_as(ToolErrorClass::Refused);
            assert!(error.starts_with("Analyze mode: nothing is modified. "), "{error}");
            assert!(!outcome.started);
        }
    }
}

#[tokio::test]
async fn an_unknown_argument_is_noted_in_result_and_error() {
    let fails = TestTool::new("Fails").does(|_, _| async { Err(hames_tools::ToolFailure::failed("no")) });
    let test = door(vec![echo("Read"), fails]);
    let sent = json!({"path": "a", "encoding": "x"});
    let outcomes = test.run(&[("Read", sent.clone()), ("Fails", sent)]).await;
    assert_eq!(outcomes[0].output(), "{\"path\":\"a\"}\n[Note: unknown argument encoding was ignored.]");
    assert_eq!(outcomes[1].error().error, "no\n[Note: unknown argument encoding was ignored.]");
}

#[test]
fn a_set_keeps_order_and_unique_valid_names() {
    let tools = |names: &[&str]| names.iter().map(|n| Arc::new(echo(n)) as Arc<dyn Tool>).collect::<Vec<_>>();
    let set = ToolSet::new(tools(&["Read", "Write", "Grep"])).unwrap();
    let names = |set: &ToolSet| set.names().map(String::from).collect::<Vec<_>>();
    assert_eq!(names(&set.select(&["Grep", "Read"]).unwrap()), ["Grep", "Read"]);
    let renamed = set.clone().rename("Write", "writeFile").unwrap();
    assert_eq!(names(&renamed), ["Read", "writeFile", "Grep"]);
    assert_eq!(renamed.get("writeFile").unwrap().label(&json!({})).tool, "writeFile");
    assert_eq!((set.len(), set.is_empty(), set.get("write").is_none()), (3, false, true));
    assert_eq!(renamed.rename("Read", "Grep").unwrap_err(), ToolSetError::Duplicate("Grep".into()));
    assert_eq!(ToolSet::new(tools(&["Read", "Read"])).unwrap_err(), ToolSetError::Duplicate("Read".into()));
    assert!(matches!(set.select(&["Nope"]), Err(ToolSetError::NoSuchTool(..))));
    assert!(matches!(set.select(&["Read", "Read"]), Err(ToolSetError::Duplicate(_))));
    for bad in ["", "a b", "é", "x.y", &"x".repeat(65)] {
        assert_eq!(ToolSet::new(tools(&[bad])).unwrap_err(), ToolSetError::BadName(bad.into()));
    }
    let no_object = Arc::new(echo("T").parameters(json!({"type": "string"}))) as Arc<dyn Tool>;
    assert!(matches!(ToolSet::new(vec![no_object]), Err(ToolSetError::BadParameters(_))));
}

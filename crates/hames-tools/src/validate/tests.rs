//! Arguments as models send them, and what becomes of them: reading, mending and validating together.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const ALIASES: Aliases =
    &[("file_path", "path"), ("filename", "path"), ("oldText", "old_string"), ("contents", "content")];

fn read() -> Value {
    json!({"type": "object", "properties": {
        "path": {"type": "string"},
        "offset": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "no_ignore": {"type": "boolean"}
    }, "required": ["path"], "additionalProperties": false})
}

fn todo_write() -> Value {
    json!({"type": "object", "$defs": {"todo": {"type": "object", "properties": {
        "id": {"type": "string"},
        "content": {"type": "string"},
        "status": {"enum": ["pending", "in_progress", "completed", "cancelled"]},
        "rank": {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    }, "required": ["content", "status"]}}, "properties": {
        "todos": {"type": "array", "items": {"$ref": "#/$defs/todo"}}
    }, "required": ["todos"]})
}

fn edit() -> Value {
    json!({"type": "object", "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {"max_depth": {"type": "integer"}}},
        "edits": {"type": "array", "items": {"type": "object", "properties": {
            "old_string": {"type": "string"}, "new_string": {"type": "string"}, "replace_all": {"type": "boolean"}
        }, "required": ["old_string", "new_string"]}}
    }, "required": ["path"]})
}

fn check(schema: &Value, text: &str) -> Checked {
    Checker::new(schema).check(text, ALIASES)
}

#[track_caller]
fn becomes(schema: Value, sent: Value, wanted: Value) {
    let checked = check(&schema, &sent.to_string());
    assert_eq!(checked.fault, None, "{sent}");
    assert_eq!(checked.input, Some(wanted), "{sent}");
    assert_eq!(checked.notes, Vec::<String>::new(), "{sent}");
}

#[track_caller]
fn fault(schema: Value, sent: Value) -> String {
    let fault = check(&schema, &sent.to_string()).fault.unwrap_or_else(|| panic!("{sent} was accepted"));
    assert!(fault.chars().count() <= MAX_MESSAGE, "{fault}");
    fault
}

#[test]
fn a_number_may_come_as_text_or_with_an_empty_fraction() {
    for (sent, wanted) in [
        (json!("130"), json!(130)),
        (json!(" 80 "), json!(80)),
        (json!("80\n"), json!(80)),
        (json!(14380.0), json!(14380)),
        (json!("14380.0"), json!(14380)),
        (json!(1e3), json!(1000)),
        (json!("2e2"), json!(200)),
        (json!(9_007_199_254_740_992.0), json!(9_007_199_254_740_992u64)),
        (json!(130), json!(130)),
    ] {
        becomes(read(), json!({"path": "a", "offset": sent}), json!({"path": "a", "offset": wanted}));
    }
    for (sent, wanted) in
        [(json!("0.5"), json!(0.5)), (json!("-3"), json!(-3)), (json!(2), json!(2)), (json!(2.0), json!(2.0))]
    {
        becomes(read(), json!({"path": "a", "ratio": sent}), json!({"path": "a", "ratio": wanted}));
    }
    for (sent, wanted) in [(json!("true"), true), (json!("False"), false), (json!(true), true)] {
        becomes(read(), json!({"path": "a", "no_ignore": sent}), json!({"path": "a", "no_ignore": wanted}));
    }
}

#[test]
fn null_is_an_argument_left_out() {
    becomes(read(), json!({"path": "a", "offset": null, "limit": null}), json!({"path": "a"}));
    let todo = json!({"id": null, "content": "a", "status": "pending", "rank": null});
    becomes(
        todo_write(),
        json!({"todos": [todo]}),
        json!({"todos": [{"content": "a", "status": "pending", "rank": null}]}),
    );
    assert!(fault(read(), json!({"path": null})).starts_with("path is missing"));
}

#[test]
fn what_is_no_integer_gives_one_short_error_that_names_the_field() {
    for sent in [
        json!(""),
        json!(true),
        json!("ten"),
        json!(1.5),
        json!("1.5"),
        json!([]),
        json!({}),
        json!("0x10"),
        json!("1,000"),
        json!(1e20),
        json!("1e20"),
        json!("99999999999999999999"),
        json!(["5"]),
    ] {
        let fault = fault(read(), json!({"path": "a", "limit": sent}));
        assert!(fault.starts_with("limit must be an integer, not "), "{fault}");
        assert!(fault.len() < 80, "{fault}");
    }
    assert!(fault(read(), json!({"path": "a", "limit": 0})).starts_with("limit: 0 is less than"));
}

#[test]
fn a_list_or_object_in_a_string_is_decoded_once() {
    let items = json!([{"content": "a", "status": "pending"}]);
    let wanted = json!({"todos": items});
    for sent in [
        json!(items.to_string()),
        json!(format!("\n {} ", items)),
        json!(items[0]),
        json!(items[0].to_string()),
        json!([items[0].to_string()]),
        items.clone(),
    ] {
        becomes(todo_write(), json!({"todos": sent}), wanted.clone());
    }
    becomes(todo_write(), json!({"todos": "[]"}), json!({"todos": []}));
    becomes(
        edit(),
        json!({"path": "p", "options": "{\"max_depth\":\"3\"}"}),
        json!({"path": "p", "options": {"max_depth": 3}}),
    );
    becomes(edit(), json!({"path": "p", "tags": "[\"a\",\"b\"]"}), json!({"path": "p", "tags": ["a", "b"]}));
    becomes(edit(), json!({"path": "p", "tags": "a"}), json!({"path": "p", "tags": ["a"]}));
    becomes(
        edit(),
        json!({"path": "p", "edits": "[{\"old_string\":\"[1]\",\"new_string\":\"{}\"}]"}),
        json!({"path": "p", "edits": [{"old_string": "[1]", "new_string": "{}"}]}),
    );
    for sent in
        [json!("[{\"content\":\"a\""), json!("a"), json!(""), json!(5), json!(json!(items.to_string()).to_string())]
    {
        fault(todo_write(), json!({"todos": sent}));
    }
    fault(edit(), json!({"path": "p", "tags": "[\"a\",\"b"}));
    fault(edit(), json!({"path": "p", "tags": ""}));
}

#[test]
fn text_stays_as_it_is_where_text_is_wanted() {
    for content in [
        "<p>&lt;b&gt; &amp;amp;</p>",
        "&#38;",
        "[1,2]",
        "{\"a\":1}",
        "130",
        "true",
        "null",
        "",
        "  \n",
        "\\u0041\\n",
        "$&\\1",
        "\u{feff}x",
        "a\r\nb\u{0}",
        "\"quoted\"",
    ] {
        let sent = json!({"path": "p", "content": content});
        becomes(edit(), sent.clone(), sent);
    }
}

#[test]
fn other_spellings_of_names_are_understood_at_every_level() {
    for name in ["file_path", "filePath", "Path", "filename", "PATH", "FileName", "file-path", "pa_th"] {
        becomes(read(), json!({name: "a"}), json!({"path": "a"}));
    }
    becomes(read(), json!({"path": "a", "noIgnore": "true"}), json!({"path": "a", "no_ignore": true}));
    becomes(read(), json!({"path": "a", "no-ignore": true}), json!({"path": "a", "no_ignore": true}));
    becomes(
        edit(),
        json!({"path": "p", "edits": [{"oldText": "a", "newString": "b", "replaceAll": "false"}]}),
        json!({"path": "p", "edits": [{"old_string": "a", "new_string": "b", "replace_all": false}]}),
    );
}

#[test]
fn our_own_spelling_wins_and_the_other_is_named() {
    for sent in [r#"{"path":"ours","file_path":"theirs"}"#, r#"{"file_path":"theirs","path":"ours"}"#] {
        let checked = check(&read(), sent);
        assert_eq!((checked.fault, checked.input), (None, Some(json!({"path": "ours"}))));
        assert_eq!(checked.notes, ["unknown argument file_path was ignored"]);
    }
    let checked = check(&read(), r#"{"filename":"first","file_path":"second"}"#);
    assert_eq!(checked.input, Some(json!({"path": "first"})));
}

#[test]
fn an_unknown_argument_is_ignored_and_named() {
    let checked = check(&read(), r#"{"path":"a","encoding":"utf8"}"#);
    assert_eq!((checked.fault, checked.input), (None, Some(json!({"path": "a"}))));
    assert_eq!(checked.notes, ["unknown argument encoding was ignored"]);
    let many: Map<String, Value> = (0..9).map(|n| (format!("x{n}{}", "y".repeat(90)), json!(n))).collect();
    let mut sent = json!({"path": "a"});
    sent.as_object_mut().unwrap().extend(many);
    let notes = check(&read(), &sent.to_string()).notes;
    assert!(notes[0].ends_with("5 more were ignored") && notes[0].len() < 260, "{notes:?}");
}

#[test]
fn a_schema_that_takes_anything_gets_everything() {
    let sent = json!({"any": [1, "2"], "Thing": null});
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": true, "properties": {}}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": {}}),
        json!({"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}}),
    ] {
        becomes(schema, sent.clone(), sent.clone());
    }
}

#[test]
fn a_tool_without_parameters_takes_nothing_in_every_spelling() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
    ] {
        for sent in ["", " ", "null", "{}", "\n", "\"\"", "\"{}\"", " null "] {
            let checked = check(&schema, sent);
            assert_eq!((checked.fault, checked.input), (None, Some(json!({}))), "{sent:?}");
        }
    }
}

#[test]
fn what_is_missing_is_named_with_the_expected_shape() {
    for sent in ["", " ", "null", "{}", "{\"offset\":3}", "\"{}\"", "{\"path\":null}", "{\"pth\":1}"] {
        let fault = check(&read(), sent).fault.unwrap();
        assert_eq!(
            fault,
            "path is missing. Expected {path: string, offset?: integer, limit?: integer, ratio?: number, no_ignore?: boolean}",
            "{sent:?}"
        );
    }
    let fault = fault(edit(), json!({"path": "p", "edits": [{"old_string": "a"}]}));
    assert_eq!(fault, "new_string is missing in edits.0.");
}

#[test]
fn faults_are_named_where_they_are_and_in_few_words() {
    let long = "x".repeat(100_000);
    for (schema, sent, wanted) in [
        (
            todo_write(),
            json!({"todos": [{"content": "a", "status": "doing"}]}),
            "todos.0.status must be one of \"pending\", \"in_progress\", \"completed\", \"cancelled\", not \"doing\".",
        ),
        (todo_write(), json!({"todos": {"a": 1}}), "content is missing in todos.0; status is missing in todos.0."),
        (read(), json!({"path": ["a"]}), "path must be a string, not an array of 1."),
        (read(), json!({"path": 1.5}), "path must be a string, not 1.5."),
        (read(), json!({"path": {"a": long}}), "path must be a string, not an object."),
    ] {
        assert_eq!(fault(schema, sent), wanted);
    }
    let fault = fault(read(), json!({"path": "a", "limit": long}));
    assert!(fault.len() < 120, "{fault}");
}

#[test]
fn an_id_that_is_a_number_becomes_text() {
    let sent = json!({"todos": [{"id": 7, "content": "a", "status": "pending"}]});
    becomes(todo_write(), sent, json!({"todos": [{"id": "7", "content": "a", "status": "pending"}]}));
}

#[test]
fn a_schema_that_cannot_be_compiled_or_refers_to_itself_stops_nothing() {
    let broken = json!({"type": "object", "properties": {"a": {"type": "no-such-type"}}, "required": ["a"]});
    assert_eq!(check(&broken, r#"{"a":1}"#).fault, None);
    assert!(check(&broken, "{}").fault.unwrap().starts_with("a is missing"));
    let circle = json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}, "n": {"$ref": "#"}}});
    let mut deep = json!({"a": "1"});
    for _ in 0..100 {
        deep = json!({"n": deep});
    }
    for sent in [json!({"a": "1", "n": {"a": 2, "n": {}}}), deep] {
        check(&circle, &sent.to_string());
    }
    let remote = json!({"type": "object", "properties": {"a": {"$ref": "https://example.invalid/x.json"}}});
    assert_eq!(check(&remote, r#"{"a":1}"#).fault, None);
}

#[test]
fn arguments_too_deep_to_be_recorded_are_refused() {
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    for (levels, fits) in [(1, true), (63, true), (64, false), (100, false), (126, false), (127, false), (5000, false)]
    {
        let checked = check(&json!({"type": "object"}), &nested(levels));
        assert_eq!(checked.fault.is_none(), fits, "{levels}");
        assert_eq!(checked.input.is_some(), fits, "{levels}");
    }
    // Text that is decoded counts as what it becomes.
    let schema = json!({"type": "object", "properties": {"a": {"type": "array"}}});
    assert!(check(&schema, &json!({"a": "[".repeat(90) + &"]".repeat(90)}).to_string()).fault.is_some());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[\\[\\]{}\":,a-c0-9. ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let keys =
            prop::sample::select(vec!["path", "filePath", "todos", "edits", "old_string", "oldText", "id", "limit"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|fields| fields
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

proptest! {
    #![proptest_config(crate::testing::cases())]
    /// Mended arguments fit, and mending them again changes nothing.
    #[test]
    fn mending_is_safe_and_done_once(sent in any_json()) {
        for schema in [read(), todo_write(), edit()] {
            let checker = Checker::new(&schema);
            let once = checker.check(&sent.to_string(), ALIASES);
            if let (Some(input), None) = (&once.input, &once.fault) {
                prop_assert!(checker.validator.as_ref().unwrap().is_valid(input));
                let twice = checker.check(&input.to_string(), ALIASES);
                prop_assert_eq!(twice.input.as_ref(), Some(input));
            }
        }
    }
}

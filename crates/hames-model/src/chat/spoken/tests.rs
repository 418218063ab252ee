use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn head() -> Arc<Head> {
    let tool = |name: &str, properties: Value| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": properties}),
    };
    let read = json!({"path": {"type": "string"}, "limit": {"type": "integer"}, "all": {"type": "boolean"}});
    let write = json!({"path": {"type": "string"}, "content": {"type": "string"}});
    let todo = json!({"todos": {"type": "array"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}});
    Arc::new(Head {
        tools: vec![tool("Read", read), tool("Write", write), tool("Todo_Write", todo), tool("Ls", json!({}))],
        system: String::new(),
    })
}

/// What an answer in pieces comes to: what was let through while it came, and its calls or the rest of its text.
fn heard(pieces: &[&str], is_whole: bool) -> (String, Result<Vec<(String, Value)>, String>) {
    let mut gate = Gate::new(head());
    let mut text = String::new();
    for piece in pieces {
        gate.push(piece, &mut |t| text.push_str(t));
    }
    let calls = gate.finish(is_whole).map(|calls| {
        let parsed = |call: Spoken| (call.name, serde_json::from_str(&call.arguments).unwrap_or(Value::Null));
        calls.into_iter().map(parsed).collect()
    });
    (text, calls)
}

fn chars(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
}

fn read_a() -> (String, Value) {
    ("Read".into(), json!({"path": "a.rs"}))
}

#[test]
fn calls_are_heard_in_the_forms_of_every_house() {
    let limited = ("Read".to_owned(), json!({"path": "a.rs", "limit": 5}));
    let ls = ("Ls".to_owned(), json!({}));
    let one = vec![read_a()];
    let two = vec![read_a(), limited.clone()];
    let cases: &[(&str, &Vec<(String, Value)>)] = &[
        // Hermes, Qwen, and with the members the other way round.
        ("<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}\n</tool_call>", &one),
        ("<tool_call>{\"arguments\": {\"path\": \"a.rs\"}, \"name\": \"Read\"}</tool_call>", &one),
        (
            "<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\", \"limit\": 5}}\n</tool_call>\n",
            &two,
        ),
        ("<tool_call>[{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}]</tool_call>", &one),
        ("<tool_call>\n{\"name\": \"Read\", \"arguments\": \"{\\\"path\\\": \\\"a.rs\\\"}\"}\n</tool_call>", &one),
        ("<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}\n", &one),
        ("<tool_call>{\"name\": \"Ls\"}</tool_call>", &vec![ls.clone()]),
        ("<tools>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}\n</tools>", &one),
        ("<function_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}</function_call><|im_end|>", &one),
        // With a parameter in a tag each.
        ("<tool_call>\n<function=Read>\n<parameter=path>\na.rs\n</parameter>\n</function>\n</tool_call>", &one),
        (
            "<function=Read>\n<parameter=path>a.rs</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>",
            &vec![limited.clone()],
        ),
        ("<function=Read>{\"path\": \"a.rs\"}</function>", &one),
        ("<seed:tool_call><function=Read><parameter=path>a.rs</parameter></function></seed:tool_call>", &one),
        (
            "<minimax:tool_call>\n<invoke name=\"Read\">\n<parameter name=\"path\">a.rs</parameter>\n</invoke>\n</minimax:tool_call>",
            &one,
        ),
        (
            "<function_calls>\n<invoke name=\"Read\">\n<parameter name=\"path\">a.rs</parameter>\n</invoke>\n<invoke name=\"Read\"><parameter name=\"path\">a.rs</parameter><parameter name=\"limit\">5</parameter></invoke>\n</function_calls>",
            &two,
        ),
        (
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"Read\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a.rs</｜DSML｜parameter>\n<｜DSML｜parameter name=\"limit\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            &vec![limited.clone()],
        ),
        (
            "<tool_call>Read\n<arg_key>path</arg_key>\n<arg_value>a.rs</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
            &vec![limited.clone()],
        ),
        (
            "<tool_calls><tool_call>Read<tool_sep><arg_key>path</arg_key><arg_value>a.rs</arg_value></tool_call></tool_calls>",
            &one,
        ),
        // Llama.
        ("<|python_tag|>{\"name\": \"Read\", \"parameters\": {\"path\": \"a.rs\"}}<|eom_id|>", &one),
        ("{\"name\": \"Read\", \"parameters\": {\"path\": \"a.rs\"}}", &one),
        ("{\"type\": \"function\", \"name\": \"Read\", \"parameters\": {\"path\": \"a.rs\"}}", &one),
        (
            "{\"name\": \"Read\", \"parameters\": {\"path\": \"a.rs\"}}; {\"name\": \"Read\", \"parameters\": {\"path\": \"a.rs\", \"limit\": 5}}",
            &two,
        ),
        ("{\"type\": \"function\", \"function\": {\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}}", &one),
        (
            "[{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}, {\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\", \"limit\": 5}}]",
            &two,
        ),
        // Mistral.
        ("[TOOL_CALLS][{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}, \"id\": \"abc123def\"}]", &one),
        ("[TOOL_CALLS]Read[ARGS]{\"path\": \"a.rs\"}[TOOL_CALLS]Read[ARGS]{\"path\": \"a.rs\", \"limit\": 5}", &two),
        ("[TOOL_CALLS]Read[CALL_ID]abc123def[ARGS]{\"path\": \"a.rs\"}</s>", &one),
        ("[TOOL_CALLS]Read{\"path\": \"a.rs\"}", &one),
        // In a fence.
        ("```json\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}\n```", &one),
        ("```\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}\n```\n", &one),
        ("```tool_call\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}\n```", &one),
        ("```xml\n<tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}</tool_call>\n```", &one),
        // DeepSeek, Kimi.
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>Read\n```json\n{\"path\": \"a.rs\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            &one,
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>Read<｜tool▁sep｜>{\"path\": \"a.rs\"}<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>Read<｜tool▁sep｜>{\"path\": \"a.rs\", \"limit\": 5}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
            &two,
        ),
        (
            "<|tool▁calls▁begin|><|tool▁call▁begin|>Read<|tool▁sep|>{\"path\": \"a.rs\"}<|tool▁call▁end|><|tool▁calls▁end|>",
            &one,
        ),
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.Read:0<|tool_call_argument_begin|>{\"path\": \"a.rs\"}<|tool_call_end|><|tool_calls_section_end|>",
            &one,
        ),
        ("<|tool_call_begin|>functions.Read:12<|tool_call_argument_begin|>{\"path\": \"a.rs\"}<|tool_call_end|>", &one),
        // Others.
        ("<|tool_call|>[{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}]<|/tool_call|>", &one),
        ("<TOOLCALL>[{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}]</TOOLCALL>", &one),
        ("[TOOL_REQUEST]{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}[END_TOOL_REQUEST]", &one),
        (
            "<|START_ACTION|>[\n{\"tool_call_id\": \"0\", \"tool_name\": \"Read\", \"parameters\": {\"path\": \"a.rs\"}}\n]<|END_ACTION|>",
            &one,
        ),
        ("<|channel|>commentary to=functions.Read <|constrain|>json<|message|>{\"path\": \"a.rs\"}<|call|>", &one),
        ("<|start|>assistant<|channel|>commentary to=functions.Read json<|message|>{\"path\": \"a.rs\"}", &one),
        ("<|tool_call>call:Read{path:<|\"|>a.rs<|\"|>,limit:5}<tool_call|>", &vec![limited]),
        ("<start_function_call>call:Read{path:<escape>a.rs<escape>}<end_function_call>", &one),
        ("<|tool_call>call:Ls{}<tool_call|>", &vec![ls]),
        ("\n\n  <tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}</tool_call>  \n", &one),
    ];
    for (text, calls) in cases {
        let expected = (String::new(), Ok((*calls).clone()));
        assert_eq!(heard(&[text], true), expected, "{text}");
        assert_eq!(heard(&chars(text), true), expected, "{text} char by char");
        // A stream that broke did not end its call.
        assert_eq!(heard(&[text], false), (String::new(), Err((*text).to_owned())), "{text}");
    }
}

#[test]
fn what_is_not_calls_alone_stays_text_to_the_byte() {
    let call = "<tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"a.rs\"}}</tool_call>";
    let texts = [
        format!("I look. {call}"),
        format!("{call} That is all."),
        format!("{call}\n\nor\n\n{call}"),
        format!("`{call}`"),
        format!("```rust\n{call}\n```"),
        format!("```json\n{call}\n```\nis how it looks."),
        "<tool_call>{\"name\": \"Delete\", \"arguments\": {}}</tool_call>".into(),
        "<tool_call>{\"name\": \"Rea\", \"arguments\": {}}</tool_call>".into(),
        "<tool_call>{\"name\": \"Reader\", \"arguments\": {}}</tool_call>".into(),
        "<tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"a".into(),
        "<tool_call>{\"name\": \"Read\", \"arguments\": [1]}</tool_call>".into(),
        "<tool_call>{\"name\": \"Read\", \"because\": 1}</tool_call>".into(),
        "<tool_call></tool_call>".into(),
        "<function=Delete><parameter=path>a</parameter></function>".into(),
        "{\"name\": \"Alice\", \"age\": 7}".into(),
        "{\"name\": \"Read\"}".into(),
        "{\"name\": \"Read\", \"age\": 7}".into(),
        "{\"arguments\": {}, \"name\": \"Read\"}".into(),
        "{\"path\": \"a.rs\"}".into(),
        "[]".into(),
        "[1, 2]".into(),
        "[a](b)".into(),
        "[TOOL_CALLS]".into(),
        "[TOOL_CALLS]Delete{}".into(),
        "```json\n{\"name\": \"x\"}\n```".into(),
        "```json\n[1]\n```".into(),
        "```".into(),
        "<".into(),
        "<html>".into(),
        "Hello".into(),
        "  ".into(),
        "to=functions.Read".into(),
        "to be or not".into(),
        String::new(),
        format!("{}{call}", " ".repeat(300)),
    ];
    for text in &texts {
        for pieces in [vec![text.as_str()], chars(text)] {
            let (shown, rest) = heard(&pieces, true);
            assert_eq!(format!("{shown}{}", rest.expect_err(text)), *text);
        }
    }
}

#[test]
fn a_text_is_let_go_of_as_soon_as_it_can_be_no_call() {
    // How much of each is held at most.
    let cases = [
        ("Hello <tool_call>", 0),
        ("<b>bold</b>", 1),
        ("<tool_call>{\"name\": \"Rx", 22),
        ("<tool_call>Delete", 11),
        ("{\"name\": \"Alice", 10),
        ("{\"age\": 7}", 3),
        ("[1, 2]", 1),
        ("```rust\nfn", 3),
        ("```json\n{\"x\"", 10),
        ("1. First", 0),
    ];
    for (text, most) in cases {
        let mut gate = Gate::new(head());
        let held = chars(text).into_iter().map(|c| {
            gate.push(c, &mut |_| {});
            gate.held().len()
        });
        assert_eq!(held.max(), Some(most), "{text}");
        assert!(gate.held().is_empty(), "{text}");
    }
    // Without tools nothing ever is.
    let mut gate = Gate::new(Arc::new(Head { tools: vec![], system: String::new() }));
    gate.push("<tool_call>", &mut |_| {});
    assert!(gate.held().is_empty());
}

#[test]
fn values_become_what_the_tool_wants() {
    let call = |key: &str, value: &str| {
        let text = format!("<function=Read>\n<parameter={key}>\n{value}\n</parameter>\n</function>");
        heard(&[&text], true).1.map(|calls| calls[0].1[key].clone())
    };
    let cases = [
        ("path", "5", json!("5")),
        ("path", "  indented\n", json!("  indented\n")),
        ("path", "{\"a\": 1}", json!("{\"a\": 1}")),
        ("path", "a </parameter> b", json!("a </parameter> b")),
        ("path", "<parameter=path>", json!("<parameter=path>")),
        ("path", "", json!("")),
        ("limit", "5", json!(5)),
        ("limit", " 5 ", json!(5)),
        ("limit", "five", json!("five")),
        ("all", "true", json!(true)),
        ("all", "True", json!(true)),
        ("other", "[1]", json!([1])),
        ("other", "a b", json!("a b")),
    ];
    for (key, value, expected) in cases {
        assert_eq!(call(key, value), Ok(expected), "{key} {value:?}");
    }
}

#[test]
fn a_file_within_a_call_is_kept_to_the_byte_and_costs_little_time() {
    let file = "fn main() {\n\tprintln!(\"</parameter> <tool_call>\");\n}\n\n".repeat(2_000);
    let text = format!(
        "<tool_call>\n<function=Write>\n<parameter=path>\na.rs\n</parameter>\n<parameter=content>\n{file}\n</parameter>\n</function>\n</tool_call>"
    );
    let pieces: Vec<&str> = text.as_bytes().chunks(7).map(|c| std::str::from_utf8(c).unwrap()).collect();
    let (shown, calls) = heard(&pieces, true);
    assert_eq!((shown.as_str(), calls.unwrap()[0].1["content"].as_str()), ("", Some(file.as_str())));
}

#[test]
fn what_is_held_has_a_bound() {
    let mut gate = Gate::new(head());
    let mut let_through = 0;
    for piece in ["<tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \""]
        .into_iter()
        .chain(std::iter::repeat_n("xxxxxxxx", 200_000))
    {
        gate.push(piece, &mut |text| let_through += text.len());
        assert!(gate.held().len() <= MAX_HELD_BYTES * 9 / 8);
    }
    assert!(let_through > 1_500_000);
    let many = "<tool_call>{\"name\": \"Ls\", \"arguments\": {}}</tool_call>".repeat(65);
    assert!(heard(&[&many], true).1.is_err());
    let deep = format!("<tool_call>{{\"name\": \"Ls\", \"arguments\": {}", "[".repeat(100_000));
    assert!(heard(&[&deep], true).1.is_err());
    let nested = "<tool_calls>".repeat(10_000);
    assert!(heard(&[&nested], true).1.is_err());
}

fn parts() -> impl Strategy<Value = Vec<String>> {
    let words = vec![
        "<tool_call>",
        "</tool_call>",
        "<tool_calls>",
        "<function=Read>",
        "<function=",
        "</function>",
        "<parameter=path>",
        "</parameter>",
        "{\"name\": \"Read\", ",
        "\"arguments\": {\"path\": \"a\"}",
        "}",
        "{",
        "[",
        "]",
        ",",
        "\"",
        ":",
        "{\"name\": \"Read\", \"arguments\": {}}",
        "{\"name\": \"Nope\"",
        "```json\n",
        "```",
        "\n",
        " ",
        "[TOOL_CALLS]",
        "Read",
        "[ARGS]",
        "<|tool_call_begin|>",
        "<|tool_call_end|>",
        "<｜tool▁sep｜>",
        "functions.Read:0",
        "a",
        "é🙂",
        "<invoke name=\"Read\">",
        "</invoke>",
        "<|python_tag|>",
        "<|im_end|>",
        "<|tool_call>call:Read{",
        "<|\"|>",
        "<tool_call|>",
        "to=functions.Read",
        "<|message|>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "<tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}}</tool_call>",
        "null",
        "\\",
    ];
    prop::collection::vec(prop::sample::select(words).prop_map(str::to_owned), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::proptest_cases() * 4, ..ProptestConfig::default() })]

    #[test]
    fn every_cut_of_every_text_comes_to_the_same(
        parts in parts(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        is_whole in any::<bool>(),
    ) {
        let text = parts.concat();
        let came_to = |pieces: &[&str]| {
            let (shown, rest) = heard(pieces, is_whole);
            rest.map_err(|rest| format!("{shown}{rest}")).map(|calls| (shown, calls))
        };
        let whole = came_to(&[&text]);
        // Text comes out as it went in, and beside calls there is none.
        match &whole {
            Ok((shown, calls)) => prop_assert!(shown.is_empty() && !calls.is_empty()),
            Err(said) => prop_assert_eq!(said, &text),
        }
        prop_assert_eq!(came_to(&chars(&text)), whole.clone());
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(text.len() + 1)).filter(|at| text.is_char_boundary(*at)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let pieces: Vec<&str> = at.windows(2).map(|w| &text[w[0]..w[1]]).collect();
        prop_assert_eq!(came_to(&pieces), whole);
    }

    #[test]
    fn prose_passes_at_once_and_unchanged(text in "[A-Za-z][a-z <>{}\\[\\]`\n\"=:é]{0,80}", tail in parts()) {
        let text = format!("{text}{}", tail.concat());
        prop_assume!(!text.starts_with('t'));
        prop_assert_eq!(heard(&[&text], true), (text.clone(), Err(String::new())));
        prop_assert_eq!(heard(&chars(&text), true), (text.clone(), Err(String::new())));
    }
}

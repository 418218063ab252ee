//! From the text a model sent as arguments to a JSON object.
//!
//! Mends only what has one meaning. Text that ends in the middle is never completed: a call whose end is missing is a
//! call whose content is missing.

use serde_json::error::Category;
use serde_json::{Map, Value};

/// Bytes of arguments that are read. A call larger than this is a fault somewhere, and would be held several times.
const MAX_ARGUMENT_BYTES: usize = 32 << 20;

/// The arguments as an object, or what the model is told.
pub(crate) fn parse_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > MAX_ARGUMENT_BYTES {
        return Err(format!(
            "the arguments have {} bytes; at most {} are accepted. Work in smaller pieces.",
            text.len(),
            MAX_ARGUMENT_BYTES
        ));
    }
    match parse_value(unfenced(text))? {
        Value::String(inner) => match parse_value(unfenced(&inner))? {
            Value::Object(object) => Ok(object),
            other => Err(not_an_object(&other)),
        },
        Value::Object(object) => Ok(object),
        other => Err(not_an_object(&other)),
    }
}

/// Nothing at all means no arguments; so does `null`.
fn parse_value(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value = match first_value(text) {
        Ok(value) => value,
        Err(error) if is_raw_control(&error) => {
            first_value(&escape_controls(text)).map_err(|error| explain(&error, text))?
        }
        Err(error) => return Err(explain(&error, text)),
    };
    Ok(if value.is_null() { Value::Object(Map::new()) } else { value })
}

/// The first JSON value, provided that nothing but stray closing marks follows it.
fn first_value(text: &str) -> Result<Value, ParseError> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next().unwrap_or(Ok(Value::Null))?;
    let rest = text.get(values.byte_offset()..).unwrap_or("").trim();
    if rest.chars().all(|c| matches!(c, '}' | ']' | '`') || c.is_whitespace()) {
        return Ok(value);
    }
    Err(ParseError::Trailing(rest.chars().take(40).collect()))
}

enum ParseError {
    Json(serde_json::Error),
    /// A value, and then something else.
    Trailing(String),
}

impl From<serde_json::Error> for ParseError {
    fn from(error: serde_json::Error) -> Self {
        ParseError::Json(error)
    }
}

fn is_raw_control(error: &ParseError) -> bool {
    matches!(error, ParseError::Json(e) if e.to_string().starts_with("control character"))
}

fn explain(error: &ParseError, text: &str) -> String {
    match error {
        ParseError::Trailing(rest) => format!(
            "the arguments hold more than one JSON object (after the first comes {rest:?}). Send one object per call."
        ),
        ParseError::Json(error) if error.classify() == Category::Eof => format!(
            "the arguments end in the middle ({} bytes came), so the call was cut off and was not run. Send it again \
             whole; if it is long, split it into smaller calls.",
            text.len()
        ),
        ParseError::Json(error) => {
            format!("the arguments are not valid JSON: {error}. Send one JSON object.")
        }
    }
}

fn not_an_object(value: &Value) -> String {
    let found = match value {
        Value::Array(_) => "an array",
        Value::String(_) => "text",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Null => "null",
        Value::Object(_) => "an object",
    };
    format!("the arguments must be a JSON object, not {found}.")
}

/// The text without blanks around it and without a Markdown fence.
fn unfenced(text: &str) -> &str {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let Some(inner) = text.strip_prefix("```") else { return text };
    let Some(inner) = inner.strip_suffix("```") else { return text };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}

/// The text with raw control characters inside strings written as escapes. JSON forbids them raw, models send them,
/// and they can only mean themselves.
fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string && c < ' ' && !escaped {
            out.push_str(&format!("\\u{:04x}", c as u32));
            continue;
        }
        match c {
            '"' if !escaped => in_string = !in_string,
            '\\' if in_string && !escaped => {
                escaped = true;
                out.push(c);
                continue;
            }
            _ => {}
        }
        escaped = false;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Result<Value, String> {
        parse_arguments(text).map(Value::Object)
    }

    #[test]
    fn nothing_means_no_arguments() {
        for text in
            ["", " ", "\n\t ", "null", " null\n", "{}", "\"\"", "\"null\"", "\"{}\"", "\u{feff}{}", "```json\n{}\n```"]
        {
            assert_eq!(parsed(text), Ok(json!({})), "{text:?}");
        }
    }

    #[test]
    fn an_object_is_found_in_its_wrapping() {
        let wanted = json!({"path": "a\nb", "n": 1});
        for text in [
            r#"{"path":"a\nb","n":1}"#,
            "  {\"path\":\"a\\nb\",\"n\":1}\n",
            r#""{\"path\":\"a\\nb\",\"n\":1}""#,
            "```json\n{\"path\":\"a\\nb\",\"n\":1}\n```",
            "```\n{\"path\":\"a\\nb\",\"n\":1}```",
            r#"{"path":"a\nb","n":1}}"#,
            "{\"path\":\"a\\nb\",\"n\":1}\n```",
            "{\"path\":\"a\nb\",\"n\":1}",
            r#"{"n":0,"path":"a\nb","n":1}"#,
        ] {
            assert_eq!(parsed(text), Ok(wanted.clone()), "{text:?}");
        }
    }

    #[test]
    fn a_cut_call_is_never_completed() {
        let whole = r#"{"path":"big.md","content":"line1\nline \"2\" \u00e9","deep":[{"a":1}]}"#;
        for end in 1..whole.len() {
            let error = parsed(&whole[..end]).unwrap_err();
            assert!(error.contains("cut off"), "{end}: {error}");
        }
        let as_text = serde_json::to_string(whole).unwrap();
        for end in 1..as_text.len() {
            assert!(parsed(&as_text[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn what_has_no_single_meaning_is_refused_in_few_words() {
        let deep = "[".repeat(100_000);
        let deep_object = format!("{{\"a\":{}", "{\"a\":".repeat(100_000));
        for text in [
            "[]",
            "[{\"path\":\"a\"}]",
            "5",
            "true",
            "\"path\"",
            "\"\\\"{}\\\"\"",
            r#"{"path":"a"}{"path":"b"}"#,
            r#"{"path":"a"},"limit":5}"#,
            "{'path': 'a'}",
            r#"{"path":"\ud800"}"#,
            r#"{"n":1e999}"#,
            "path=a",
            "<path>a</path>",
            &deep,
            &deep_object,
            r#"{"a":"\x41"}"#,
            "{\"a\":1}\0",
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.len() <= 260, "{error}");
        }
        assert!(parsed(&" ".repeat(MAX_ARGUMENT_BYTES + 1)).unwrap_err().contains("smaller pieces"));
    }

    #[test]
    fn escaping_controls_changes_nothing_else() {
        let raw = "{\"a\":\"x\ty\\\"\r\n\\\\\",\n\t\"b\" : \"&lt; \u{7f}\u{1}\"}";
        assert_eq!(parsed(raw), Ok(json!({"a": "x\ty\"\r\n\\", "b": "&lt; \u{7f}\u{1}"})));
    }

    proptest! {
        #![proptest_config(crate::testing::cases())]
        #[test]
        fn any_text_gives_an_object_or_an_error(text in "\\PC*|[\\[\\]{}\":,\\\\u0-9a-f \n`]{0,60}") {
            if let Err(error) = parse_arguments(&text) {
                prop_assert!(error.chars().count() <= 300);
            }
        }

        #[test]
        fn text_survives_byte_for_byte(content in any::<String>()) {
            let sent = json!({"content": content}).to_string();
            let read = parsed(&sent).unwrap();
            prop_assert_eq!(read["content"].as_str().unwrap(), content);
        }
    }
}

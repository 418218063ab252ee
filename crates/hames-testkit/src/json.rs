//! JSON as it was sent: the value, and where its parts lie in the text.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use serde::de::IgnoredAny;
use serde_json::{Value, value::RawValue};

/// A request body that is a JSON object.
#[derive(Default)]
pub(crate) struct Parsed {
    pub(crate) body: Value,
    /// The bytes of the `messages` array, brackets included.
    pub(crate) messages: Range<usize>,
    /// The bytes of the `tools` array.
    pub(crate) tools: Range<usize>,
}

/// Reads a request body. An unpaired surrogate escape, which `serde_json` cannot keep, is read as U+FFFD: the rule
/// check looks at the text itself.
pub(crate) fn parse(text: &str) -> Result<Parsed, String> {
    let text = replace_lone_surrogates(text);
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(&text).map_err(|error| format!("the body is not a JSON object: {error}"))?;
    let body = serde_json::from_str(&text).map_err(|error| format!("the body is not JSON: {error}"))?;
    let span = |key: &str| {
        members.get(key).map_or(0..0, |value| {
            let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
            start..start + value.get().len()
        })
    };
    Ok(Parsed { body, messages: span("messages"), tools: span("tools") })
}

/// Whether a text is one JSON object, whatever its depth and the size of its numbers.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether a JSON text escapes half of a surrogate pair.
pub(crate) fn has_lone_surrogate(text: &str) -> bool {
    !lone_surrogates(text).is_empty()
}

/// The same text with each unpaired surrogate escape replaced; the length stays, so offsets hold for both.
fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let found = lone_surrogates(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut mended = text.to_owned();
    for at in found {
        mended.replace_range(at..at + ESCAPE, "\\ufffd");
    }
    Cow::Owned(mended)
}

/// Bytes of `\uXXXX`.
const ESCAPE: usize = 6;

fn lone_surrogates(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'\\')) {
        at += step;
        match escaped_unit(bytes, at) {
            None => at += 2, // a short escape, of which `\\` must not be taken for the start of the next
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(bytes, at + ESCAPE), Some(0xDC00..=0xDFFF)) => {
                at += 2 * ESCAPE;
            }
            Some(unit) => {
                if (0xD800..=0xDFFF).contains(&unit) {
                    found.push(at);
                }
                at += ESCAPE;
            }
        }
    }
    found
}

/// The UTF-16 unit that `\uXXXX` at this offset stands for.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_told_from_pairs_and_from_escaped_backslashes() {
        for (text, expected) in [
            (r#""plain""#, 0),
            (r#""\ud83d\ude00""#, 0),
            (r#""\\ud83d""#, 0),
            (r#""\u00e9\n""#, 0),
            (r#""\ud83d""#, 1),
            (r#""\ude00""#, 1),
            (r#""\ud83d x \ude00""#, 2),
            (r#""\ud83d\ud83d\ude00""#, 1),
            (r#""\\\ud83d""#, 1),
            (r#""\uD83D\n\uDE00""#, 2),
            (r#""\ud8"#, 0),
            ("\"\\", 0),
        ] {
            assert_eq!(lone_surrogates(text).len(), expected, "{text}");
        }
    }

    #[test]
    fn a_body_with_a_lone_surrogate_is_read_and_its_spans_hold() {
        let text = r#" {"tools": [1], "x": "\ud83d", "messages": [ "é", 2 ] } "#;
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.body["x"], "\u{fffd}");
        assert_eq!(&text[parsed.messages], r#"[ "é", 2 ]"#);
        assert_eq!(&text[parsed.tools], "[1]");
    }

    #[test]
    fn only_one_whole_object_is_an_object() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
        for text in ["{}", " \n{\"a\":1}\t", r#"{"a":1e999}"#, r#"{"a":"\ud800"}"#, &deep] {
            assert!(is_object(text), "{}", &text[..text.len().min(40)]);
        }
        for text in ["", "[]", "1", "null", "{", "{}{}", "{\"a\":1,}", "{'a':1}", "{\"a\":NaN}", "{a:1}", "\u{a0}{}"] {
            assert!(!is_object(text), "{text}");
        }
    }
}

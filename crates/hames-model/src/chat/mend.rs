//! Makes almost-JSON into JSON: what real servers and models write that a strict parser refuses.
//!
//! Half a surrogate pair as an escape, raw control characters inside strings, bytes that are not UTF-8, `NaN` and
//! `Infinity`. It changes nothing else: text that is broken otherwise stays broken, and the caller hears of it from the
//! parser.

/// The text with those ills mended. Called only where parsing has failed.
pub(crate) fn mend(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(quote) = rest.find('"') {
        push_outside(&rest[..quote], &mut out);
        rest = push_string(&rest[quote + 1..], &mut out);
    }
    push_outside(rest, &mut out);
    out
}

/// Copies what stands between strings, with `null` for the numbers JSON does not have.
fn push_outside(text: &str, out: &mut String) {
    if !text.contains(['N', 'I']) {
        return out.push_str(text);
    }
    let text = text.replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null");
    out.push_str(&text);
}

/// Copies a string whose opening quote has been read; gives what follows its closing quote.
fn push_string<'a>(text: &'a str, out: &mut String) -> &'a str {
    out.push('"');
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '\\' => push_escape(rest, out),
            c if c.is_ascii_control() => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                1
            }
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[len..];
        if c == '"' {
            break;
        }
    }
    rest
}

/// Copies one escape, or U+FFFD's where it is half a surrogate pair; gives its length.
fn push_escape(text: &str, out: &mut String) -> usize {
    let copied = match unit(text) {
        Some(0xd800..=0xdbff) if matches!(text.get(6..).and_then(unit), Some(0xdc00..=0xdfff)) => 12,
        Some(0xd800..=0xdfff) => {
            out.push_str("\\ufffd");
            return 6;
        }
        Some(_) => 6,
        // A backslash and whatever it escapes.
        None => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
    };
    out.push_str(&text[..copied]);
    copied
}

/// The UTF-16 unit of a `\uXXXX` at the start of the text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if digits.starts_with('+') { None } else { u16::from_str_radix(digits, 16).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn almost_json_becomes_json_and_json_stays_as_it_is() {
        let cases: &[(&[u8], &str)] = &[
            (br#"{"a":"\ud83d"}"#, "{\"a\":\"\u{fffd}\"}"),
            (br#"{"a":"\ude42\ud83dx"}"#, "{\"a\":\"\u{fffd}\u{fffd}x\"}"),
            (br#"{"a":"\ud83d\ude42"}"#, "{\"a\":\"\u{1f642}\"}"),
            (br#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (b"{\"a\":\"x\ty\nz\"}", r#"{"a":"x\ty\nz"}"#),
            (b"{\"a\":\"\xff\"}", "{\"a\":\"\u{fffd}\"}"),
            (br#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN"}"#, r#"{"a":null,"b":[null,null],"c":"NaN"}"#),
            (br#"{"a":"q\"u\\","b":1}"#, r#"{"a":"q\"u\\","b":1}"#),
            ("{\"a\":\"台🙂\"}".as_bytes(), "{\"a\":\"台🙂\"}"),
        ];
        for (input, expected) in cases {
            let mended: serde_json::Value = serde_json::from_str(&mend(input)).unwrap();
            assert_eq!(mended, serde_json::from_str::<serde_json::Value>(expected).unwrap(), "{:?}", mend(input));
        }
    }

    #[test]
    fn what_is_not_json_at_all_is_given_back_without_a_panic() {
        for input in ["", "\"", "\\", "\"\\", "\"\\u", "\"\\u12", "\"\\ud83d\\u", "{\"a\":\"\\é", "\"\\u+123\""] {
            assert!(serde_json::from_str::<serde_json::Value>(&mend(input.as_bytes())).is_err(), "{input:?}");
        }
    }
}

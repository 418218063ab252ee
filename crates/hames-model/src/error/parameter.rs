//! Which parameter of the request a refusal is about, and which one it wants instead.
//!
//! A `param` member says so; so does the place a validator names; otherwise the words do: `Unsupported parameter: 'x'`,
//! `property 'x' is unsupported`, `x: Extra inputs are not permitted`. A name is believed where it stands in quotes right
//! beside such words, or where it looks like one by itself. Spellings are brought to snake case. Nothing here knows what
//! a parameter means or what to do about it.

use serde_json::Value;

/// A name longer than this is none.
const MAX_NAME_BYTES: usize = 100;

/// How far behind its lead a name may begin, in bytes: past a colon, an article, a quote.
const REACH: usize = 12;

/// Words that a parameter's name follows.
const LEADS: &[&str] = &[
    "unsupported parameter(s)",
    "unsupported parameters",
    "unsupported parameter",
    "unknown parameter",
    "unrecognized parameter",
    "unexpected parameter",
    "invalid parameter",
    "unrecognized request argument supplied",
    "unrecognized request arguments supplied",
    "unrecognized key(s) in object",
    "unexpected keyword argument",
    "argument not supported on this model",
    "argument not supported",
    "unsupported argument",
    "unknown argument",
    "does not support parameters",
    "does not support the parameter",
    "does not support parameter",
    "does not support this",
    "unsupported value",
    "invalid value for",
    "unknown field",
    "unknown name",
    "invalid",
];

/// Words that a parameter's name stands right before.
const TRAILS: &[&str] = &[
    "is not supported",
    "are not supported",
    "is unsupported",
    "is not permitted",
    "is not allowed",
    "is deprecated",
    "is not a valid parameter",
    "was unexpected",
    "were unexpected",
    "does not support",
    "must be",
    "should be",
    "cannot be",
    "is too large",
    ": extra inputs are not permitted",
    "parameter is not",
];

/// Parameters that are single plain words: believed without quotes only where a lead or a trail is their neighbour.
const PLAIN: &[&str] = &[
    "temperature",
    "thinking",
    "reasoning",
    "tools",
    "stream",
    "store",
    "seed",
    "stop",
    "user",
    "metadata",
    "verbosity",
    "modalities",
    "functions",
    "logprobs",
    "messages",
    "mirostat",
    "grammar",
];

/// The parameter a message is about, in snake case.
pub(crate) fn named(message: &str) -> Option<String> {
    // ASCII only, so that offsets are those of the message.
    let lower = message.to_ascii_lowercase();
    LEADS
        .iter()
        .find_map(|lead| {
            let from = lower.find(lead)? + lead.len();
            after(message, from)
        })
        .or_else(|| TRAILS.iter().find_map(|trail| before(message, lower.find(trail)?)))
}

/// The parameter a message wants instead: `Use 'max_completion_tokens' instead`.
pub(crate) fn instead(message: &str) -> Option<String> {
    let lower = message.to_ascii_lowercase();
    let at = ["use ", "try ", "did you mean "].iter().find_map(|lead| {
        let from = lower.find(lead)? + lead.len();
        let name = after(message, from)?;
        let rest = &lower[from..];
        (rest.contains("instead") || lead.starts_with("did")).then_some(name)
    })?;
    // An address or a sentence is no parameter.
    (at.contains('_') || PLAIN.contains(&at.as_str())).then_some(at)
}

/// The place a validator names, as one name: `["body", "messages", 0, "role"]` is `messages[0].role`.
pub(crate) fn of_place(place: &Value) -> Option<String> {
    let mut name = String::new();
    for part in place.as_array()? {
        match part {
            Value::String(part) if name.is_empty() && part == "body" => {}
            Value::String(part) => {
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(part);
            }
            Value::Number(index) if !name.is_empty() => name.push_str(&format!("[{index}]")),
            _ => return None,
        }
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
    }
    (!name.is_empty()).then(|| snake(&name))
}

/// A name in snake case: `reasoningEffort` is `reasoning_effort`. Paths keep their dots and brackets.
pub(crate) fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut follows_small = false;
    for c in name.trim_matches('/').chars() {
        if c.is_ascii_uppercase() && follows_small {
            out.push('_');
        }
        follows_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(if c == '/' { '.' } else { c.to_ascii_lowercase() });
    }
    out
}

/// The name that begins within reach of `from`.
fn after(message: &str, from: usize) -> Option<String> {
    let rest = message.get(from..)?;
    let start = rest.find(is_name_start)?;
    if start > REACH || rest[..start].contains(['.', '\n']) {
        return None;
    }
    let is_quoted = rest[..start].ends_with(QUOTES);
    let end = rest[start..].find(|c: char| !is_name(c)).map_or(rest.len(), |len| start + len);
    let closes = rest[end..].starts_with(QUOTES);
    let name = rest[start..end].trim_end_matches(['.', ':']);
    if ["the", "this", "a", "an", "parameter", "argument", "value", "for"].contains(&name) {
        return after(message, from + end);
    }
    believed(name, is_quoted && closes)
}

/// The name that ends right before `to`.
fn before(message: &str, to: usize) -> Option<String> {
    let text = message.get(..to)?.trim_end().trim_end_matches([')', ':']);
    let text = text.strip_suffix(" parameter").unwrap_or(text);
    let bare = text.strip_suffix(QUOTES).unwrap_or(text);
    let is_quoted = bare.len() < text.len();
    let start =
        bare.rfind(|c: char| !is_name(c)).map_or(0, |at| at + bare[at..].chars().next().map_or(1, char::len_utf8));
    let opens = bare[..start].ends_with(QUOTES);
    believed(&bare[start..], is_quoted && opens)
}

const QUOTES: [char; 5] = ['\'', '"', '`', '\u{2018}', '\u{2019}'];

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']')
}

fn believed(name: &str, is_quoted: bool) -> Option<String> {
    let name = name.trim_matches('.');
    let is_sane = !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.starts_with(is_name_start);
    let name = snake(name);
    let looks_like_one = name.contains('_') || PLAIN.contains(&name.as_str());
    (is_sane && (is_quoted || looks_like_one)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_is_found_in_words_of_every_house() {
        let cases = [
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some("max_tokens"),
            ),
            ("Unsupported value: 'temperature' does not support 0.2 with this model.", Some("temperature")),
            ("Unrecognized request argument supplied: parallel_tool_calls", Some("parallel_tool_calls")),
            ("Unknown parameter: 'stream_options.include_usage'.", Some("stream_options.include_usage")),
            (
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 99.0 instead.",
                Some("temperature"),
            ),
            ("Argument not supported on this model: presencePenalty", Some("presence_penalty")),
            ("Model grok-4 does not support parameter reasoningEffort.", Some("reasoning_effort")),
            ("property 'messages.0.reasoning_content' is unsupported", Some("messages.0.reasoning_content")),
            ("max_completion_tokens: Extra inputs are not permitted", Some("max_completion_tokens")),
            ("`temperature` is deprecated for this model.", Some("temperature")),
            (
                "Additional properties are not allowed ('chat_template_kwargs' was unexpected)",
                Some("chat_template_kwargs"),
            ),
            ("json: unknown field \"min_p\"", Some("min_p")),
            (
                "Invalid JSON payload received. Unknown name \"frequency_penalty\": Cannot find field.",
                Some("frequency_penalty"),
            ),
            ("Completions.create() got an unexpected keyword argument 'reasoning_effort'", Some("reasoning_effort")),
            ("The parameter `top_k` is not supported by this endpoint", Some("top_k")),
            ("Thinking mode does not support this tool_choice", Some("tool_choice")),
            ("Unrecognized key(s) in object: 'thinking'", Some("thinking")),
            ("Validation: Temperature must be between 0 and 2, got 100", Some("temperature")),
            ("The 'seed' parameter is not supported", Some("seed")),
            // Nothing is named.
            ("Image input is not supported", None),
            ("This model does not support images.", None),
            ("Invalid API Key", None),
            ("invalid x-api-key", None),
            ("Bad request", None),
            ("", None),
            ("ünsupported pärameter: 'x", None),
        ];
        for (message, expected) in cases {
            assert_eq!(named(message).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn what_to_use_instead_is_a_parameter_or_nothing() {
        let cases = [
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some("max_completion_tokens"),
            ),
            ("'functions' is deprecated, please use 'tools' instead", Some("tools")),
            ("Unknown parameter 'max_token'. Did you mean 'max_tokens'?", Some("max_tokens")),
            ("Function tools with reasoning_effort are not supported. Please use /v1/responses instead.", None),
            ("Use another model instead", None),
            ("To use this, upgrade", None),
        ];
        for (message, expected) in cases {
            assert_eq!(instead(message).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn a_validators_place_is_one_name() {
        let cases = [
            (r#"["body","messages",0,"role"]"#, Some("messages[0].role")),
            (r#"["body","maxTokens"]"#, Some("max_tokens")),
            (r#"["body"]"#, None),
            (r#"[0]"#, None),
            (r#""x""#, None),
        ];
        for (place, expected) in cases {
            assert_eq!(of_place(&serde_json::from_str(place).unwrap()).as_deref(), expected, "{place}");
        }
    }
}

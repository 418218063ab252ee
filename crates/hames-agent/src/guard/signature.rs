//! When two calls are the same call.

use std::path::{Component, Path, PathBuf};

use hames_protocol::{Resource, ToolCall};
use serde_json::Value;

/// What makes a call what it is: the tool and its input, however they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Signature([u8; 16]);

impl Signature {
    /// The signature of a call: members sorted, numbers by their value, paths without detours. Where the arguments cannot
    /// be read they are taken as text.
    pub(super) fn of(call: &ToolCall) -> Self {
        let paths: Vec<&str> = call
            .declaration
            .iter()
            .flat_map(|declaration| &declaration.resources)
            .filter_map(|resource| match resource {
                Resource::Path { path, .. } => Some(path.as_str()),
                _ => None,
            })
            .collect();
        let read = || serde_json::from_str(&call.arguments).ok();
        let tool = if call.label.tool.is_empty() { &call.name } else { &call.label.tool };
        let mut hasher = blake3::Hasher::new();
        hasher.update(tool.as_bytes());
        hasher.update(&[0]);
        match call.input.clone().or_else(read) {
            Some(input) => write(&input, &paths, &mut hasher),
            None => drop(hasher.update(call.arguments.trim().as_bytes())),
        }
        Self(first_half(hasher.finalize()))
    }
}

/// The hash of a text.
pub(super) fn digest(text: &[u8]) -> [u8; 16] {
    first_half(blake3::hash(text))
}

fn first_half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

/// Writes a value so that equal ones are written alike and different ones are not.
fn write(value: &Value, paths: &[&str], to: &mut blake3::Hasher) {
    match value {
        Value::Null | Value::Bool(_) => drop(to.update(value.to_string().as_bytes())),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15);
            let text = whole.map_or_else(|| number.to_string(), |whole| format!("{}", whole as i64));
            to.update(text.as_bytes());
        }
        Value::String(text) if paths.contains(&text.as_str()) => {
            to.update(b"p");
            text_of(&plain(text), to);
        }
        Value::String(text) => text_of(text, to),
        Value::Array(items) => {
            to.update(b"[");
            items.iter().for_each(|item| {
                write(item, paths, to);
                to.update(b",");
            });
        }
        Value::Object(members) => {
            to.update(b"{");
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            for name in names {
                text_of(name, to);
                write(&members[name], paths, to);
                to.update(b",");
            }
        }
    }
}

fn text_of(text: &str, to: &mut blake3::Hasher) {
    to.update(&(text.len() as u64).to_le_bytes());
    to.update(text.as_bytes());
}

/// A path without `.`, `..` and doubled slashes, by its text alone.
fn plain(path: &str) -> String {
    let mut out = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use hames_protocol::{Declaration, Effect, Label};
    use serde_json::json;

    use super::*;

    fn call(tool: &str, input: Option<Value>, arguments: &str) -> ToolCall {
        let path = input.as_ref().and_then(|input| input["path"].as_str()).map(|path| Resource::path(path, false));
        ToolCall {
            call_id: "c".into(),
            provider_id: String::new(),
            name: tool.into(),
            arguments: arguments.into(),
            input,
            label: Label::new(tool, ""),
            declaration: path.map(|path| Declaration::new(Effect::Read, vec![path])),
            extra: None,
        }
    }

    fn of(input: Value) -> Signature {
        Signature::of(&call("Read", Some(input), ""))
    }

    #[test]
    fn how_a_call_is_written_makes_no_difference() {
        for (one, other) in [
            (json!({"a": 1, "b": [1, "x"]}), json!({"b": [1.0, "x"], "a": 1.0})),
            (json!({"path": "src/a.rs"}), json!({"path": "./src//x/../a.rs"})),
            (json!({"path": "/w/a"}), json!({"path": "/w/./a/"})),
            (json!({"deep": {"y": null, "x": true}}), json!({"deep": {"x": true, "y": null}})),
        ] {
            assert_eq!(of(one.clone()), of(other.clone()), "{one} {other}");
        }
    }

    #[test]
    fn what_a_call_says_does() {
        let all = [
            json!({}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": 1.5}),
            json!({"a": true}),
            json!({"a": "true"}),
            json!({"a": null}),
            json!({"a": [1, 2]}),
            json!({"a": [12]}),
            json!({"a": [[1], 2]}),
            json!({"a": "x ", "b": "y"}),
            json!({"a": "x", "b": " y"}),
            json!({"text": "./a"}),
            json!({"text": "a"}),
            json!({"path": "a"}),
            json!({"path": "../a"}),
            json!({"path": "A"}),
        ];
        let different: std::collections::HashSet<Signature> = all.iter().cloned().map(of).collect();
        assert_eq!(different.len(), all.len());
        assert_ne!(of(json!({})), Signature::of(&call("Write", Some(json!({})), "")));
    }

    #[test]
    fn arguments_that_cannot_be_read_are_text() {
        let text = |arguments: &str| Signature::of(&call("Read", None, arguments));
        assert_eq!(text("{\"a\": 1"), text(" {\"a\": 1 "));
        assert_ne!(text("{\"a\": 1"), text("{\"a\": 2"));
        assert_eq!(text("{\"a\": 1}"), of(json!({"a": 1})));
    }
}

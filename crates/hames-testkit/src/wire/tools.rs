//! The rules of the tools offered: names, and schemas a provider can compile.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Findings, is_name, name_message};

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// Keywords that hold a schema.
const HOLD_ONE: [&str; 11] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that hold a list of schemas.
const HOLD_LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords that hold schemas by name.
const HOLD_MAP: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

pub(super) fn check(members: &Map<String, Value>, found: &mut Findings) {
    let given = |key: &str| members.get(key).filter(|value| !value.is_null());
    let Some(tools) = given("tools") else {
        for key in ["tool_choice", "parallel_tool_calls"] {
            if given(key).is_some() {
                found.add("tool_choice_without_tools", key, "needs tools");
            }
        }
        return;
    };
    let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
    if tools.is_empty() {
        found.add("tools_empty", "tools", "must be a list of at least one tool");
    }
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        match &tool["function"] {
            Value::Object(function) if tool["type"] == "function" => self::function(function, &at, &mut names, found),
            _ => found.add("tool_type", at, "must have the type \"function\" and a function object"),
        }
    }
}

fn function<'a>(function: &'a Map<String, Value>, at: &str, names: &mut BTreeSet<&'a str>, found: &mut Findings) {
    let name = function.get("name");
    if !is_name(name) {
        found.add("tool_name", format!("{at}.function.name"), name_message(name));
    } else if let Some(name) = name.and_then(Value::as_str)
        && !names.insert(name)
    {
        found.add("tool_name_duplicate", format!("{at}.function.name"), format!("{name:?} is offered twice"));
    }
    let at = format!("{at}.function.parameters");
    let parameters = function.get("parameters").unwrap_or(&Value::Null);
    if parameters["type"] != "object" {
        found.add("tool_parameters", &at, "must be a schema of type \"object\"");
    }
    if parameters.is_object() {
        schema(parameters, parameters, &at, found);
    }
}

fn schema(node: &Value, root: &Value, at: &str, found: &mut Findings) {
    let node = match node {
        Value::Bool(_) => return,
        Value::Object(node) => node,
        _ => return found.add("tool_schema", at, "a schema is an object or a boolean"),
    };
    let types = match node.get("type") {
        None => &[][..],
        Some(Value::Array(types)) => types.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    if !types.iter().all(|kind| kind.as_str().is_some_and(|kind| TYPES.contains(&kind))) {
        found.add("tool_schema", format!("{at}.type"), format!("{} is no type", node["type"]));
    }
    if types.iter().any(|kind| kind == "array") && !node.contains_key("items") {
        found.add("tool_schema_items", at, "an array needs items");
    }
    if let Some(reference) = node.get("$ref")
        && !resolves(reference, root)
    {
        found.add("tool_schema_ref", at, format!("{reference} points at nothing in this schema"));
    }
    if node.get("required").is_some_and(|required| !required.is_array()) {
        found.add("tool_schema", format!("{at}.required"), "must be a list");
    }
    held_schemas(node, root, at, found);
}

fn held_schemas(node: &Map<String, Value>, root: &Value, at: &str, found: &mut Findings) {
    for key in HOLD_ONE {
        if let Some(held) = node.get(key) {
            schema(held, root, &format!("{at}.{key}"), found);
        }
    }
    for key in HOLD_LIST {
        match node.get(key) {
            None => {}
            Some(Value::Array(held)) => {
                for (index, held) in held.iter().enumerate() {
                    schema(held, root, &format!("{at}.{key}[{index}]"), found);
                }
            }
            Some(_) => found.add("tool_schema", format!("{at}.{key}"), "must be a list"),
        }
    }
    for key in HOLD_MAP {
        match node.get(key) {
            None => {}
            Some(Value::Object(held)) => {
                for (name, held) in held {
                    schema(held, root, &format!("{at}.{key}.{name}"), found);
                }
            }
            Some(_) => found.add("tool_schema", format!("{at}.{key}"), "must be an object"),
        }
    }
}

/// Whether a `$ref` leads to a schema within the same document.
fn resolves(reference: &Value, root: &Value) -> bool {
    let Some(fragment) = reference.as_str().and_then(|reference| reference.strip_prefix('#')) else { return false };
    (fragment.is_empty() || fragment.starts_with('/'))
        && root.pointer(&percent_decoded(fragment)).is_some_and(|target| target.is_object() || target.is_boolean())
}

/// A URL fragment with its `%XX` escapes read.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

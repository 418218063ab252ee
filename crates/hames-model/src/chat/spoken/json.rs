//! Calls as JSON objects, also of a text that is not all there yet.

use serde_json::Value;

use super::super::mend::mend;
use super::{MAX_DEPTH, MAX_SPOKEN, Read, Reader, Spoken, Stop};

/// Members of a call: what they hold.
const NAME: [&str; 4] = ["name", "tool_name", "tool", "function_name"];
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "args", "input", "params"];
const ASIDE: [&str; 4] = ["type", "id", "tool_call_id", "index"];
const FUNCTION: &str = "function";

/// What a `type` may say.
const TYPES: [&str; 3] = ["function", "tool_call", "function_call"];

/// Objects in objects that a value may have.
const MAX_NESTING: usize = 128;

impl<'t> Reader<'t> {
    /// A call or an array of them, with nothing around that says so: then they must look like calls from the beginning.
    pub(super) fn bare_calls(&mut self) -> Read<()> {
        self.calls_in_json(true)
    }

    /// A call or an array of them, within something that says so.
    pub(super) fn marked_calls(&mut self) -> Read<()> {
        self.calls_in_json(false)
    }

    fn calls_in_json(&mut self, bare: bool) -> Read<()> {
        if self.word(&["{", "["])? == "{" {
            return self.call_object(bare);
        }
        loop {
            self.blanks();
            self.word(&["{"])?;
            self.call_object(bare)?;
            self.blanks();
            if self.word(&[",", "]"])? == "]" {
                return Ok(());
            }
        }
    }

    /// A call whose `{` has been read.
    fn call_object(&mut self, bare: bool) -> Read<()> {
        let mut name = None;
        let mut arguments = None;
        let mut is_first = true;
        loop {
            self.blanks();
            if self.word(&["}", "\""])? == "}" {
                break;
            }
            let key = self.key()?;
            self.blanks();
            self.word(&[":"])?;
            self.blanks();
            match key {
                _ if NAME.contains(&key) => name = Some(self.quoted_tool()?),
                _ if ARGUMENTS.contains(&key) && !(bare && is_first) => arguments = Some(self.arguments()?),
                "type" => {
                    let kind = self.value()?;
                    if !TYPES.iter().any(|known| kind.trim_matches('"') == *known) {
                        return Err(Stop::No);
                    }
                }
                FUNCTION => match self.rest().chars().next() {
                    Some('"') => name = Some(self.quoted_tool()?),
                    // The call itself, one level in.
                    _ => {
                        self.word(&["{"])?;
                        let before = self.calls.len();
                        self.nested(|reader| reader.call_object(false))?;
                        let inner = self.calls.pop().filter(|_| self.calls.len() == before).ok_or(Stop::No)?;
                        name = Some(inner.name);
                        arguments = Some(inner.arguments);
                    }
                },
                _ if ASIDE.contains(&key) => drop(self.value()?),
                _ => return Err(Stop::No),
            }
            is_first = false;
            self.blanks();
            if self.word(&[",", "}"])? == "}" {
                break;
            }
        }
        let name = name.ok_or(Stop::No)?;
        // An object that only has a name may be about something else.
        let arguments = if bare { arguments.ok_or(Stop::No)? } else { arguments.unwrap_or_else(|| "{}".into()) };
        self.found(&name, arguments)
    }

    /// A known member's name whose opening quote has been read.
    fn key(&mut self) -> Read<&'t str> {
        let rest = self.rest();
        let mut known = NAME.iter().chain(&ARGUMENTS).chain(&ASIDE).copied().chain([FUNCTION]);
        match rest.find('"') {
            Some(end) if known.any(|key| key == &rest[..end]) => {
                self.at += end + 1;
                Ok(&rest[..end])
            }
            None if known.any(|key| key.starts_with(rest)) => Err(Stop::More),
            _ => Err(Stop::No),
        }
    }

    /// The name of a tool in quotes.
    fn quoted_tool(&mut self) -> Read<String> {
        self.word(&["\""])?;
        self.maybe(&["functions."])?;
        let name = self.tool()?;
        self.word(&["\""])?;
        Ok(name.to_owned())
    }

    /// Arguments: an object, an object as a string, or nothing.
    pub(super) fn arguments(&mut self) -> Read<String> {
        let first = self.rest().chars().next().ok_or(Stop::More)?;
        if !matches!(first, '{' | '"' | 'n') {
            return Err(Stop::No);
        }
        let raw = self.value()?;
        match first {
            '{' => Ok(raw.to_owned()),
            '"' => {
                let text = serde_json::from_str::<String>(raw).or_else(|_| serde_json::from_str(&mend(raw.as_bytes())));
                let text = text.map_err(|_| Stop::No)?;
                let is_object = text.trim_start().starts_with('{');
                if text.trim().is_empty() { Ok("{}".into()) } else { is_object.then_some(text).ok_or(Stop::No) }
            }
            _ if raw == "null" => Ok("{}".into()),
            _ => Err(Stop::No),
        }
    }

    /// One JSON value as it is written: balanced, and otherwise as the model made it.
    pub(super) fn value(&mut self) -> Read<&'t str> {
        let rest = self.rest();
        let mut open: Vec<u8> = Vec::new();
        let mut in_string = false;
        let mut escaped = false;
        for (at, byte) in rest.bytes().enumerate() {
            let mut ends = false;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => {
                    in_string = !in_string;
                    ends = !in_string && open.is_empty();
                }
                _ if in_string => {}
                b'{' | b'[' if open.len() >= MAX_NESTING => return Err(Stop::No),
                b'{' => open.push(b'}'),
                b'[' => open.push(b']'),
                b'}' | b']' if open.last() == Some(&byte) => {
                    open.pop();
                    ends = open.is_empty();
                }
                b'}' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' | b'<' if open.is_empty() => {
                    // A number or a word ends before what follows it.
                    if at == 0 {
                        return Err(Stop::No);
                    }
                    self.at += at;
                    return Ok(&rest[..at]);
                }
                b'}' | b']' => return Err(Stop::No),
                _ => {}
            }
            if ends {
                self.at += at + 1;
                return Ok(&rest[..=at]);
            }
        }
        Err(Stop::More)
    }

    /// Reads something one level further in.
    pub(super) fn nested(&mut self, read: impl FnOnce(&mut Self) -> Read<()>) -> Read<()> {
        if self.depth >= MAX_DEPTH {
            return Err(Stop::No);
        }
        self.depth += 1;
        let outcome = read(self);
        self.depth -= 1;
        outcome
    }

    /// A call is complete.
    pub(super) fn found(&mut self, name: &str, arguments: String) -> Read<()> {
        self.offered_as(name)?;
        if self.calls.len() >= MAX_SPOKEN {
            return Err(Stop::No);
        }
        self.calls.push(Spoken { name: name.to_owned(), arguments });
        Ok(())
    }

    /// A parameter's text as the value its tool wants: text where a text may be, else what it says as JSON.
    pub(super) fn typed(&self, tool: &str, key: &str, text: &str) -> Value {
        let schema = self.offered.iter().find(|offered| offered.name == tool).map(|offered| &offered.parameters);
        let property = schema.and_then(|schema| schema.get("properties")?.get(key));
        let kinds = |kind: &str| {
            let of = |schema: &Value| match schema.get("type") {
                Some(Value::String(one)) => one == kind,
                Some(Value::Array(many)) => many.iter().any(|one| one == kind),
                _ => false,
            };
            property.is_some_and(|property| {
                let any = property.get("anyOf").or_else(|| property.get("oneOf")).and_then(Value::as_array);
                of(property) || any.is_some_and(|any| any.iter().any(of))
            })
        };
        let as_json = || serde_json::from_str::<Value>(text.trim()).ok();
        if kinds("string") || property.is_some_and(|p| p.get("enum").is_some() && p.get("type").is_none()) {
            return Value::String(text.to_owned());
        }
        match as_json() {
            Some(value) => value,
            // Python's spelling.
            None if kinds("boolean") && text.trim() == "True" => Value::Bool(true),
            None if kinds("boolean") && text.trim() == "False" => Value::Bool(false),
            None if text.trim() == "None" && !kinds("object") => Value::Null,
            None => Value::String(text.to_owned()),
        }
    }
}

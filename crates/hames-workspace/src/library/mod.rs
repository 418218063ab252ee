//! The tools under the names and output shapes of the agent library: `readFile`, `writeFile`, `editFile`, `listFiles`,
//! `grep`, `deleteFile`, `bash`, `todowrite`, `todoread`. For embedders whose prompts and screens know those.
//!
//! What they do is what the built-in tools do; here are only names, arguments and answers. An answer is a JSON object on
//! one line. What the model can mend is an answer too, with an `error` in it; only a call that was cancelled fails.

mod bash;
mod files;
mod grep;
mod todo;

use std::sync::Arc;

use hames_protocol::{ToolErrorClass, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput};
use serde_json::{Map, Value, json};

/// The nine tools, in the order they are advertised.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    let mut all = files::tools();
    all.push(Arc::new(grep::LibraryGrep));
    all.push(Arc::new(bash::Bash));
    all.extend(todo::tools());
    all
}

type Outcome = Result<ToolOutput, ToolFailure>;

/// Bytes of an answer besides the content in it.
const FRAME: usize = 1024;

/// Bytes that the variable part of an answer may have as JSON: of the call's own limit and the window's share the
/// smaller, so that the object is never cut.
fn room(cx: &ToolCx, limit: usize) -> usize {
    limit.min(cx.cap_bytes.saturating_sub(FRAME))
}

/// Bytes of a text inside a JSON answer.
fn json_bytes(text: &str) -> usize {
    let escaped: usize = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            0..0x20 => 5,
            _ => 0,
        })
        .sum();
    text.len() + escaped + 2
}

fn spec(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    let parameters = json!({"type": "object", "properties": properties, "required": required});
    ToolSpec { name: name.into(), description: description.into(), parameters }
}

fn text_of<'v>(input: &'v Value, name: &str) -> &'v str {
    input.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A count from 1, where one is given.
fn count_of(input: &Value, name: &str) -> Option<usize> {
    let count = input.get(name).and_then(Value::as_u64).filter(|count| *count > 0)?;
    Some(usize::try_from(count).unwrap_or(usize::MAX))
}

/// A folder to look at; the workspace where none is named.
fn folder_of(input: &Value) -> &str {
    match text_of(input, "dirPath") {
        "" => ".",
        folder => folder,
    }
}

/// An answer with an error in it, beside the arguments that say what it is about.
fn told(failure: ToolFailure, about: &[(&str, &str)]) -> Outcome {
    if matches!(failure.class, ToolErrorClass::Cancelled | ToolErrorClass::Timeout) {
        return Err(failure);
    }
    let mut answer = Map::new();
    answer.insert("error".into(), failure.text.into());
    answer.extend(about.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    let output = ToolOutput::text(Value::Object(answer).to_string());
    Ok(ToolOutput { whole: failure.whole, ..output })
}

/// A part of a list, counted from 1: what is shown of it, and the sentence about it.
struct Part {
    from: usize,
    to: usize,
    status: String,
}

impl Part {
    /// `shown` items from the one numbered `from` of `total`. `what` names them in the plural.
    fn of(what: &str, from: usize, shown: usize, total: usize) -> Self {
        let to = from + shown - usize::from(shown > 0);
        let (from, to) = if shown == 0 { (0, 0) } else { (from, to) };
        let status = match (shown, to < total) {
            (0, _) if total == 0 => format!("No {what}."),
            (0, _) => format!("The offset is past the end: {total} {what} total."),
            (_, true) => format!("Showing {what} {from}-{to} of {total}. Use offset={} to continue.", to + 1),
            (_, false) if from > 1 => format!("Showing {what} {from}-{to}. Total {what}: {total}."),
            (_, false) => format!("Total {what}: {total}."),
        };
        Self { from, to, status }
    }
}

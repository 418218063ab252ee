//! The tools that read and change files.

mod delete;
mod edit;
mod list;
mod read;
mod str_replace;
mod write;

use hames_protocol::{Declaration, Diff, Effect, Resource, ToolSpec};
use hames_tools::{ToolFailure, ToolOutput};
use serde::Deserialize;
use serde_json::Value;

use super::change::{self, NewContent};
use super::edit::{Refusal, Replacement, apply};
use super::text::{self, Text, not_text};

pub use delete::Delete;
pub use edit::Edit;
pub use list::List;
pub use read::Read;
pub use str_replace::StrReplace;
pub use write::Write;

/// Bytes of a result that shows a change: a sentence and a short diff.
const EDIT_CAP: u64 = 8 * 1024;

fn spec(name: &str, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.into(), description: description.trim().into(), parameters }
}

/// The arguments, which have passed the schema.
fn arguments<'v, T: Deserialize<'v>>(input: &'v Value) -> Result<T, ToolFailure> {
    T::deserialize(input).map_err(|error| {
        let negative = input.as_object().into_iter().flatten().find(|(_, value)| value.as_i64().is_some_and(|n| n < 0));
        ToolFailure::invalid(match negative {
            Some((name, value)) => format!("{name} must not be negative, but is {value}"),
            None => format!("the arguments cannot be used: {error}"),
        })
    })
}

/// A text argument, for labels and declarations; empty where it is missing.
fn text_of<'v>(input: &'v Value, name: &str) -> &'v str {
    input.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn changes_file(input: &Value) -> Declaration {
    let path = Resource::path(text_of(input, "path"), true);
    Declaration { cap_bytes: Some(EDIT_CAP), preview: true, ..Declaration::new(Effect::Edit, vec![path]) }
}

/// Other spellings of the arguments of both editing tools.
const EDIT_ALIASES: &[(&str, &str)] = &[
    ("file_path", "path"),
    ("filePath", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("oldString", "old_string"),
    ("old_str", "old_string"),
    ("old_text", "old_string"),
    ("oldText", "old_string"),
    ("newString", "new_string"),
    ("new_str", "new_string"),
    ("new_text", "new_string"),
    ("newText", "new_string"),
    ("replaceAll", "replace_all"),
];

/// One replacement as a model writes it.
#[derive(Debug, Deserialize)]
struct ReplacementArgs {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// Works out the content after replacements. `named`: errors say which replacement failed.
fn replaced(
    path: &str,
    old: Option<&[u8]>,
    edits: &[ReplacementArgs],
    failed: impl Fn(usize, &Refusal) -> String,
) -> Result<NewContent, ToolFailure> {
    let Some(old) = old else {
        return Err(ToolFailure::failed(format!("{path} does not exist; use Write for a new file")));
    };
    let Text { body, encoding, exact } = Text::decode(old).map_err(|kind| not_text(path, kind))?;
    if !exact {
        return Err(ToolFailure::failed(format!(
            "{path} is not valid {}, so an edit would change bytes it does not mean; rewrite the file or use a command",
            encoding.name()
        )));
    }
    let edits: Vec<Replacement<'_>> = edits
        .iter()
        .map(|edit| Replacement {
            old: text::without_mark(&edit.old_string, encoding),
            new: text::without_mark(&edit.new_string, encoding),
            all: edit.replace_all,
        })
        .collect();
    let new_body =
        apply(path, &body, &edits).map_err(|(index, refusal)| ToolFailure::failed(failed(index, &refusal)))?;
    let bytes = encoding.encode(&new_body).map_err(|lost| {
        ToolFailure::failed(format!(
            "{path} is {} text, which has no {:?} (U+{:04X}); use other characters or convert the file first",
            encoding.name(),
            lost.character,
            u32::from(lost.character)
        ))
    })?;
    Ok(NewContent { bytes, old_body: Some(body), new_body, note: String::new() })
}

/// What a change would look like, with nothing done.
fn previewed(change: Result<change::Change, ToolFailure>) -> Result<Vec<Diff>, ToolFailure> {
    change.map(|change| vec![change.diff])
}

/// Counts lines for a label.
fn lines_of(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".into(),
        lines => format!("{lines} lines"),
    }
}

/// An offset or a limit that a model may also give as 0, meaning none.
fn or_default(number: Option<u64>, default: u64) -> u64 {
    number.filter(|number| *number > 0).unwrap_or(default)
}

type Outcome = Result<ToolOutput, ToolFailure>;

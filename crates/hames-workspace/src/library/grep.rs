//! `grep`.

use std::sync::LazyLock;

use async_trait::async_trait;
use hames_protocol::{Declaration, Effect, Label, Resource, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolOutput};
use serde_json::{Value, json};

use super::{Outcome, Part, count_of, folder_of, room, spec, text_of, told};
use crate::search::{Line, Lines, lines};

/// Matches of a page where the call names no limit.
const DEFAULT_MATCHES: usize = 100;
/// Bytes of an answer.
const MAX_BYTES: usize = 30 * 1024;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let properties = json!({
        "pattern": {"type": "string", "description": "regular expression"},
        "dirPath": {"type": "string"},
        "glob": {"type": "string", "description": "only these files: *.ts, or an ending: .ts"},
        "ignoreCase": {"type": "boolean"},
        "offset": {"type": "integer", "minimum": 1, "description": "first match"},
        "limit": {"type": "integer", "minimum": 1, "description": "matches"},
    });
    spec("grep", "Search files by content. Ignored files are left out.", properties, &["pattern"])
});

pub(super) struct LibraryGrep;

#[async_trait]
impl Tool for LibraryGrep {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }
    fn declare(&self, input: &Value) -> Declaration {
        let path = Resource::path(folder_of(input), false);
        let cap_bytes = Some(MAX_BYTES as u64);
        Declaration { cacheable: true, cap_bytes, ..Declaration::new(Effect::Read, vec![path]) }
    }
    fn label(&self, input: &Value) -> Label {
        Label::new("grep", text_of(input, "pattern"))
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let wanted = Lines {
            pattern: text_of(input, "pattern").to_owned(),
            path: folder_of(input).to_owned(),
            glob: glob(text_of(input, "glob")),
            ignore_case: input.get("ignoreCase").and_then(Value::as_bool).unwrap_or_default(),
            offset: count_of(input, "offset").unwrap_or(1),
            limit: count_of(input, "limit").unwrap_or(DEFAULT_MATCHES),
        };
        let from = wanted.offset;
        match cx.blocking(move |cx| lines(&cx, &wanted)).await {
            Ok((found, total)) => Ok(answer(input, cx, found, from, total)),
            Err(failure) => told(failure, &[("dirPath", folder_of(input)), ("pattern", text_of(input, "pattern"))]),
        }
    }
}

/// An ending without a wildcard means files that end so.
fn glob(text: &str) -> String {
    let is_ending = text.starts_with('.') && !text.contains(['*', '?', '[', '{', '/', ',']);
    if is_ending { format!("*{text}") } else { text.to_owned() }
}

fn answer(input: &Value, cx: &ToolCx, found: Vec<Line>, from: usize, total: usize) -> ToolOutput {
    let mut used = 0;
    let matches: Vec<Value> = found
        .into_iter()
        .map(|line| json!({"file": line.file, "line": line.line, "content": line.content}))
        .take_while(|line| {
            used += line.to_string().len() + 1;
            used <= room(cx, MAX_BYTES)
        })
        .collect();
    let part = Part::of("matches", from, matches.len(), total);
    let answer = json!({
        "dirPath": folder_of(input), "pattern": text_of(input, "pattern"), "matchCount": total, "fromMatch": part.from,
        "toMatch": part.to, "status": part.status, "matches": matches,
    });
    ToolOutput::text(answer.to_string())
}

//! Write: a whole file.

use std::sync::LazyLock;

use async_trait::async_trait;
use hames_protocol::{Declaration, Diff, Label, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::change::{self, Change, NewContent};
use super::super::text::{self, Encoding, LineEnds, Text};
use super::{Outcome, arguments, changes_file, lines_of, previewed, text_of};

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    super::spec(
        "Write",
        include_str!("write.md"),
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        }),
    )
});

/// Creates a file or replaces its content.
///
/// The content is written as given, with two exceptions for a file that exists: it keeps its encoding and byte order
/// mark, and a file whose lines all end in CRLF keeps CRLF where the content has only LF.
#[derive(Clone, Copy, Debug, Default)]
pub struct Write;

#[derive(Deserialize)]
struct Args {
    path: String,
    content: String,
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("file_path", "path"),
            ("filePath", "path"),
            ("filename", "path"),
            ("file", "path"),
            ("contents", "content"),
            ("text", "content"),
        ]
    }

    fn declare(&self, input: &Value) -> Declaration {
        changes_file(input)
    }

    fn label(&self, input: &Value) -> Label {
        Label::new("Write", text_of(input, "path")).sized(lines_of(text_of(input, "content")))
    }

    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        let args: Args = arguments(input)?;
        previewed(cx.blocking(move |cx| plan(&cx, &args)).await)
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let args: Args = arguments(input)?;
        cx.blocking(move |cx| {
            let change = plan(&cx, &args)?;
            if change.is_none() {
                return Ok(ToolOutput::text("The file has exactly this content already."));
            }
            change.commit(&cx)
        })
        .await
    }
}

fn plan(cx: &ToolCx, args: &Args) -> Result<Change, ToolFailure> {
    change::plan(cx, &args.path, |_, old| Ok(content(&args.content, old)))
}

/// The content as it goes to disk.
fn content(given: &str, old: Option<&[u8]>) -> NewContent {
    let as_given = |old_body| NewContent { bytes: given.into(), old_body, new_body: given.into(), note: String::new() };
    let Some(old) = old else { return as_given(None) };
    let Ok(Text { body, encoding, .. }) = Text::decode(old) else { return as_given(Some(Vec::new())) };
    let mut new = text::without_mark(given, encoding).to_owned();
    let mut notes = Vec::new();
    if LineEnds::of(&body).only_crlf() && !new.contains('\r') && new.contains('\n') {
        new = new.replace('\n', "\r\n");
        notes.push("Its CRLF line ends were kept".to_owned());
    }
    let bytes = match encoding.encode(new.as_bytes()) {
        Ok(bytes) => bytes,
        Err(_) => {
            notes.push(format!("It was {} and is UTF-8 now", encoding.name()));
            new.clone().into_bytes()
        }
    };
    match encoding {
        Encoding::Utf16Le | Encoding::Utf16Be => notes.push("It is still UTF-16".into()),
        Encoding::Utf8 { bom: true } => notes.push("Its byte order mark was kept".into()),
        _ => {}
    }
    NewContent { bytes, old_body: Some(body), new_body: new.into_bytes(), note: notes.join(". ") }
}

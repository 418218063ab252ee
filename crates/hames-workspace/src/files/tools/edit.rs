//! Edit: several replacements in one file, all or nothing.

use std::sync::LazyLock;

use async_trait::async_trait;
use hames_protocol::{Declaration, Diff, Label, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolFailure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::change::{self, Change};
use super::{EDIT_ALIASES, Outcome, ReplacementArgs, arguments, changes_file, previewed, replaced, text_of};

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    super::spec(
        "Edit",
        include_str!("edit.md"),
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "old_string": {"type": "string"},
                            "new_string": {"type": "string"},
                            "replace_all": {"type": "boolean"},
                        },
                        "required": ["old_string", "new_string"],
                    },
                },
            },
            "required": ["path", "edits"],
        }),
    )
});

/// Makes several replacements in one file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edit;

#[derive(Deserialize)]
struct Args {
    path: String,
    edits: Vec<ReplacementArgs>,
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        EDIT_ALIASES
    }

    fn declare(&self, input: &Value) -> Declaration {
        changes_file(input)
    }

    fn label(&self, input: &Value) -> Label {
        let label = Label::new("Edit", text_of(input, "path"));
        match input.get("edits").and_then(Value::as_array).map_or(0, Vec::len) {
            1 => label.sized("1 edit"),
            edits => label.sized(format!("{edits} edits")),
        }
    }

    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        let args: Args = arguments(input)?;
        previewed(cx.blocking(move |cx| plan(&cx, &args)).await)
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let args: Args = arguments(input)?;
        cx.blocking(move |cx| plan(&cx, &args)?.commit(&cx)).await
    }
}

fn plan(cx: &ToolCx, args: &Args) -> Result<Change, ToolFailure> {
    let count = args.edits.len();
    if count == 0 {
        return Err(ToolFailure::invalid("edits is empty; name at least one replacement"));
    }
    change::plan(cx, &args.path, |path, old| {
        replaced(path, old, &args.edits, |index, refusal| {
            format!("edit {} of {count} cannot be made, so nothing was changed: {refusal}", index + 1)
        })
    })
}

//! StrReplace: one replacement in a file.

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
        "StrReplace",
        include_str!("str_replace.md"),
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "old_string": {"type": "string"},
                "new_string": {"type": "string"},
                "replace_all": {"type": "boolean"},
            },
            "required": ["path", "old_string", "new_string"],
        }),
    )
});

/// Replaces text in a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct StrReplace;

#[derive(Deserialize)]
struct Args {
    path: String,
    #[serde(flatten)]
    replacement: ReplacementArgs,
}

#[async_trait]
impl Tool for StrReplace {
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
        Label::new("StrReplace", text_of(input, "path"))
    }

    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        let args: Args = arguments(input)?;
        previewed(cx.blocking(move |cx| plan(&cx, args)).await)
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let args: Args = arguments(input)?;
        cx.blocking(move |cx| plan(&cx, args)?.commit(&cx)).await
    }
}

fn plan(cx: &ToolCx, args: Args) -> Result<Change, ToolFailure> {
    let edits = [args.replacement];
    change::plan(cx, &args.path, |path, old| replaced(path, old, &edits, |_, refusal| refusal.to_string()))
}

//! Recall: parts of outputs that were kept whole because the window got only a piece of them.
//!
//! The door keeps such an output as a blob under a name of the session (`out-17`) and says so in the result. This tool
//! reads it back by lines, like Read, or by a pattern, like Grep. A name means what its own session kept and nothing
//! else: the store resolves it so, and no path or hash can be asked for.
//!
//! It keeps nothing itself: its results stay within the cap, so the door never has a reason to keep them again.

mod kept;

use std::sync::LazyLock;

use async_trait::async_trait;
use hames_protocol::{BlobRef, Declaration, Effect, Label, Resource, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use self::kept::Kept;
use crate::files::page::Wanted;
use crate::files::stream::{self, NoPage};
use crate::search::StreamSearch;

/// Lines of a page unless another number is asked for; as many as Read gives.
const DEFAULT_LINES: u64 = 2_000;

/// Bytes of a result at most; as many as Read gives.
const CAP: u64 = 50 * 1024;

/// Lines shown on each side of a match: enough to see what a line of a log or a build belongs to.
const CONTEXT: usize = 2;

/// Bytes up to which an output is read to its end, so that the number of its lines is told with the page.
const COUNTED: u64 = 10 * 1024 * 1024;

/// Names told where one is unknown.
const NAMES_TOLD: u32 = 5;

/// Characters of a name that are looked at; no name of ours is so long.
const MAX_NAME: usize = 64;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "Recall".into(),
    description: include_str!("recall.md").trim_end().into(),
    parameters: json!({
        "type": "object",
        "properties": {
            "artifact": {"type": "string"},
            "offset": {"type": "integer", "description": "first line, from 1"},
            "limit": {"type": "integer"},
            "pattern": {"type": "string"},
        },
        "required": ["artifact"],
    }),
});

/// Shows parts of kept outputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recall;

#[derive(Deserialize)]
struct Args {
    offset: Option<u64>,
    limit: Option<u64>,
    pattern: Option<String>,
}

#[async_trait]
impl Tool for Recall {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("name", "artifact"),
            ("id", "artifact"),
            ("output", "artifact"),
            ("blob", "artifact"),
            ("artifact_id", "artifact"),
            ("path", "artifact"),
            ("regex", "pattern"),
            ("query", "pattern"),
            ("search", "pattern"),
            ("lines", "limit"),
            ("start_line", "offset"),
        ]
    }

    fn declare(&self, input: &Value) -> Declaration {
        let name = format!("kept output {}", name_of(input));
        let kept = Resource::Named { name, write: false };
        Declaration { cacheable: true, cap_bytes: Some(CAP), ..Declaration::new(Effect::Read, vec![kept]) }
    }

    fn label(&self, input: &Value) -> Label {
        match input.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty()) {
            Some(pattern) => Label::new("Recall", &format!("{} for {pattern}", name_of(input))),
            None => Label::new("Recall", &name_of(input)),
        }
    }

    fn recalls(&self) -> bool {
        true
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let args = Args::deserialize(input).map_err(|error| ToolFailure::invalid(unusable(input, &error)))?;
        let kept = find(&name_of(input), cx).await?;
        cx.blocking(move |cx| show(&args, &kept, &cx).map(ToolOutput::text)).await
    }
}

/// What is wrong with arguments that passed the schema: a count below zero, mostly.
fn unusable(input: &Value, error: &serde_json::Error) -> String {
    let negative = input.as_object().into_iter().flatten().find(|(_, value)| value.as_i64().is_some_and(|n| n < 0));
    match negative {
        Some((name, value)) => format!("{name} must not be negative, but is {value}"),
        None => format!("the arguments cannot be used: {error}"),
    }
}

/// The name that is asked for, as the door writes names: models copy brackets and quotes along, or write the number
/// alone.
fn name_of(input: &Value) -> String {
    let written = input.get("artifact").and_then(Value::as_str).unwrap_or_default();
    let bare = written.trim_matches(|c: char| c.is_whitespace() || "[](){}<>\"'`.,;:".contains(c));
    let name: String = bare.chars().take(MAX_NAME).flat_map(char::to_lowercase).collect();
    let number = name.trim_start_matches("out").trim_start_matches(['-', '_', ' ', '#']);
    match number.parse::<u32>() {
        Ok(number) => format!("out-{number}"),
        Err(_) => name,
    }
}

async fn find(name: &str, cx: &ToolCx) -> Result<BlobRef, ToolFailure> {
    let lost = |error: hames_protocol::LogError| ToolFailure::failed(format!("{name} cannot be looked up: {error}"));
    if let Some(kept) = cx.blobs.named(&cx.session, name).await.map_err(lost)? {
        return Ok(kept);
    }
    // Names are given in order, so the ones there are follow from how many there are.
    let last = cx.state().blobs;
    let mut names = Vec::new();
    for number in (1..=last).rev().take(NAMES_TOLD as usize) {
        let name = format!("out-{number}");
        if cx.blobs.named(&cx.session, &name).await.is_ok_and(|kept| kept.is_some()) {
            names.push(name);
        }
    }
    let shown: String = name.chars().filter(|c| !hames_protocol::is_unprintable(*c)).collect();
    let known = match names.as_slice() {
        [] => "nothing was kept so far; results that are shown whole are not kept".to_owned(),
        [one] => format!("only {one} was kept so far"),
        names => {
            let earlier = if last > NAMES_TOLD { ", and earlier ones" } else { "" };
            format!("kept were, the latest first: {}{earlier}", names.join(", "))
        }
    };
    Err(ToolFailure::failed(format!("this session has no kept output \"{shown}\"; {known}")))
}

fn show(args: &Args, blob: &BlobRef, cx: &ToolCx) -> Result<String, ToolFailure> {
    let name = blob.name.as_deref().unwrap_or(&blob.hash);
    let mut kept = Kept::new(blob, cx);
    let cap_bytes = cx.cap_bytes.saturating_sub(kept.gap_note().len());
    let text = match args.pattern.as_deref().filter(|pattern| !pattern.is_empty()) {
        Some(pattern) => {
            let count = |n: Option<u64>| n.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            let (offset, limit) = (count(args.offset), count(args.limit));
            let search = StreamSearch { name, pattern, context: CONTEXT, offset, limit, cap_bytes };
            search.run(&mut kept, &cx.cancel)?
        }
        None => {
            let or_default = |n: Option<u64>, default| n.filter(|n| *n > 0).unwrap_or(default);
            let wanted = Wanted {
                offset: or_default(args.offset, 1),
                limit: or_default(args.limit, DEFAULT_LINES),
                cap_bytes,
                line_end: b'\n',
            };
            stream::page(&mut kept, name, wanted, blob.bytes <= COUNTED, &cx.cancel).map_err(|why| {
                if cx.cancel.is_cancelled() { ToolFailure::cancelled() } else { no_page(name, blob, why) }
            })?
        }
    };
    Ok(text + &kept.gap_note())
}

fn no_page(name: &str, blob: &BlobRef, why: NoPage) -> ToolFailure {
    let bytes = blob.bytes;
    match why {
        NoPage::Cancelled => ToolFailure::cancelled(),
        NoPage::Io(error) => ToolFailure::failed(format!("{name} cannot be read: {error}")),
        NoPage::Image(kind) => ToolFailure::failed(format!(
            "{name} is a {} image of {bytes} bytes, not text; it cannot be shown by lines",
            kind.name()
        )),
        NoPage::NotText(kind) => {
            ToolFailure::failed(format!("{name} is {kind} of {bytes} bytes, not text; it cannot be shown by lines"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_understood_as_models_write_it() {
        for (written, name) in [
            ("out-17", "out-17"),
            (" out-17 ", "out-17"),
            ("[out-17]", "out-17"),
            ("`out-17`", "out-17"),
            ("OUT-17", "out-17"),
            ("out_17", "out-17"),
            ("out17", "out-17"),
            ("17", "out-17"),
            ("#17", "out-17"),
            ("out-017", "out-17"),
            ("out-17.", "out-17"),
            ("out-99999999999999", "out-99999999999999"),
            ("out-", "out-"),
            ("", ""),
            ("../out-1", "/out-1"),
            ("notes.txt", "notes.txt"),
        ] {
            assert_eq!(name_of(&json!({"artifact": written})), name, "{written:?}");
        }
        assert_eq!(name_of(&json!({"artifact": "x".repeat(1000)})).len(), MAX_NAME);
    }
}

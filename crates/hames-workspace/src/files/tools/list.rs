//! List: what is in a folder.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use async_trait::async_trait;
use hames_protocol::{Declaration, Effect, Label, Resource, ToolSpec};
use hames_tools::{FileKind, FsPath, Tool, ToolCx, ToolFailure, ToolOutput, WalkOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Outcome, arguments, or_default, text_of};

/// Entries of a page unless another number is asked for.
const DEFAULT_ENTRIES: u64 = 500;

/// Bytes of a page at most.
const CAP: u64 = 30 * 1024;

/// Bytes kept for the words below the page.
const FOOTER: usize = 100;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    super::spec(
        "List",
        include_str!("list.md"),
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "recursive": {"type": "boolean"},
                "offset": {"type": "integer", "description": "first entry, from 1"},
                "limit": {"type": "integer", "description": "entries, 500 by default"},
            },
        }),
    )
});

/// Lists a folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct List;

#[derive(Deserialize)]
struct Args {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[async_trait]
impl Tool for List {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("dir", "path"), ("dirPath", "path"), ("dir_path", "path"), ("directory", "path"), ("folder", "path")]
    }

    fn declare(&self, input: &Value) -> Declaration {
        let path = Resource::path(folder(text_of(input, "path")), false);
        Declaration { cacheable: true, cap_bytes: Some(CAP), ..Declaration::new(Effect::Read, vec![path]) }
    }

    fn label(&self, input: &Value) -> Label {
        Label::new("List", folder(text_of(input, "path")))
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let args: Args = arguments(input)?;
        cx.blocking(move |cx| list(&cx, &args)).await
    }
}

/// The workspace itself where no folder is named.
fn folder(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

fn list(cx: &ToolCx, args: &Args) -> Outcome {
    let path = cx.resolve(folder(args.path.as_deref().unwrap_or_default()))?;
    let stat = cx.fs.stat(&path)?;
    if stat.kind == FileKind::File {
        let size = size(stat.size);
        return Err(ToolFailure::failed(format!("{} is a file ({size}); use Read to see it", path.shown)));
    }
    let mut page = Page {
        text: String::new(),
        seen: 0,
        shown: 0,
        full: false,
        offset: or_default(args.offset, 1),
        limit: or_default(args.limit, DEFAULT_ENTRIES),
        room: cx.cap_bytes.saturating_sub(FOOTER),
    };
    let counted = if args.recursive {
        walk(cx, &path, &mut page)?
    } else {
        for entry in cx.fs.list(&path)? {
            page.add(&entry.name, entry.kind, entry.size);
        }
        true
    };
    Ok(ToolOutput::text(page.finish(&path.shown, counted)))
}

/// Fills the page from everything below the folder. Says whether all of it was seen.
fn walk(cx: &ToolCx, path: &FsPath, page: &mut Page) -> Result<bool, ToolFailure> {
    let prefix = if path.shown == "." { String::new() } else { format!("{}/", path.shown.trim_end_matches('/')) };
    let mut whole = true;
    cx.fs.walk(path, &WalkOptions::default(), &mut |entry| {
        let name = entry.path.shown.strip_prefix(&prefix).unwrap_or(&entry.path.shown);
        page.add(name, entry.kind, entry.size);
        whole = !page.full && !cx.cancel.is_cancelled();
        if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if cx.cancel.is_cancelled() { Err(ToolFailure::cancelled()) } else { Ok(whole) }
}

/// A page of entries.
struct Page {
    text: String,
    seen: u64,
    shown: u64,
    full: bool,
    offset: u64,
    limit: u64,
    room: usize,
}

impl Page {
    fn add(&mut self, name: &str, kind: FileKind, bytes: u64) {
        self.seen += 1;
        if self.full || self.seen < self.offset {
            return;
        }
        let name: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let line = match kind {
            FileKind::Dir => format!("{name}/\n"),
            FileKind::File => format!("{name} ({})\n", size(bytes)),
            FileKind::Link => format!("{name} (link)\n"),
            FileKind::Other => format!("{name} (pipe, socket or device)\n"),
        };
        if self.shown == self.limit || (self.shown > 0 && self.text.len() + line.len() > self.room) {
            self.full = true;
            return;
        }
        self.text.push_str(&line);
        self.shown += 1;
    }

    fn finish(mut self, shown: &str, counted: bool) -> String {
        if self.shown == 0 {
            return match self.seen {
                0 => format!("{shown} is empty."),
                seen => format!("{shown} has only {seen} entries."),
            };
        }
        let next = self.offset + self.shown;
        let range = format!("{}-{}", self.offset, next - 1);
        match (self.full, counted) {
            (false, _) => self.text.truncate(self.text.trim_end_matches('\n').len()),
            (true, true) => drop(write!(self.text, "(entries {range} of {}; next offset: {next})", self.seen)),
            (true, false) => drop(write!(self.text, "(entries {range}, more follow; next offset: {next})")),
        }
        self.text
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    /// Each unit and how many bytes it has.
    const UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

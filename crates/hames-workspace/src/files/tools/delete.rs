//! Delete: a file, a link, an empty folder, or with `recursive` a folder with everything in it.
//!
//! Everything that will go is looked at and staged before the first entry goes, so what can be refused is refused as a
//! whole. Entries then go one by one, deepest first, each recorded before it does. A link is an entry of its own: what
//! it leads to is neither entered nor touched.

use std::sync::LazyLock;

use async_trait::async_trait;
use hames_protocol::{Declaration, Diff, Effect, Label, Resource, ToolErrorClass, ToolSpec};
use hames_tools::{Expect, FileKind, FsError, FsPath, Staged, Tool, ToolCx, ToolFailure, ToolOutput, Whole};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::local::wrong_kind;
use super::super::text::Text;
use super::super::write::hash_of;
use super::super::{change, diff};
use super::{EDIT_CAP, Outcome, arguments, text_of};

/// Entries of a folder that one call deletes: each of them is a record in the log and looked at by whoever approves.
const MAX_ENTRIES: usize = 2_000;

/// Bytes of content that one call deletes: all of it is kept, so that it can come back.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of names in the answer of a call that failed half-way; the whole list is kept beside it.
const NAMES: usize = 4 * 1024;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    super::spec(
        "Delete",
        include_str!("delete.md"),
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "recursive": {"type": "boolean"}},
            "required": ["path"],
        }),
    )
});

/// Deletes a file, a link or a folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delete;

#[derive(Deserialize)]
struct Args {
    path: String,
    #[serde(default)]
    recursive: bool,
}

#[async_trait]
impl Tool for Delete {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("file_path", "path"),
            ("filePath", "path"),
            ("filename", "path"),
            ("file", "path"),
            ("dirPath", "path"),
            ("dir_path", "path"),
            ("dir", "path"),
            ("directory", "path"),
            ("folder", "path"),
        ]
    }

    fn declare(&self, input: &Value) -> Declaration {
        let path = Resource::Path { path: text_of(input, "path").into(), write: true, no_follow: true };
        let ask = is_recursive(input).then(|| "it deletes a folder with everything in it".to_owned());
        Declaration { cap_bytes: Some(EDIT_CAP), preview: true, ask, ..Declaration::new(Effect::Edit, vec![path]) }
    }

    fn label(&self, input: &Value) -> Label {
        let label = Label::new("Delete", text_of(input, "path"));
        if is_recursive(input) { label.sized("with everything in it") } else { label }
    }

    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        let args: Args = arguments(input)?;
        cx.blocking(move |cx| Ok(plan(&cx, &args)?.into_iter().map(|doomed| doomed.diff).collect())).await
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let args: Args = arguments(input)?;
        cx.blocking(move |cx| delete(&cx, plan(&cx, &args)?)).await
    }
}

fn is_recursive(input: &Value) -> bool {
    input.get("recursive").and_then(Value::as_bool).unwrap_or_default()
}

/// An entry that will go.
struct Doomed {
    path: FsPath,
    kind: FileKind,
    expect: Expect,
    diff: Diff,
}

/// Everything that will go, a folder before what it holds.
fn plan(cx: &ToolCx, args: &Args) -> Result<Vec<Doomed>, ToolFailure> {
    let top = cx.resolve_entry(&args.path)?;
    if cx.fs.root().starts_with(&top.abs) {
        let shown = &top.shown;
        return Err(ToolFailure::refused(format!("{shown} is the workspace itself or holds it; name what is in it")));
    }
    let kind = cx.fs.stat(&top)?.kind;
    if args.path.ends_with('/') && kind == FileKind::File {
        return Err(wrong_kind(&top.shown, kind, "a folder").into());
    }
    let mut found = Found { cx, folder: top.shown.clone(), doomed: Vec::new(), bytes: 0, diffs: 0 };
    // Still to be looked at, the next one last.
    let mut waiting = vec![top];
    while let Some(path) = waiting.pop() {
        if cx.cancel.is_cancelled() {
            return Err(ToolFailure::cancelled());
        }
        if found.add(&path)? == FileKind::Dir {
            let below = found.below(&path)?;
            if !args.recursive && !below.is_empty() {
                let count = counted(below.len(), "entry", "entries");
                return Err(ToolFailure::failed(format!(
                    "{} is a folder that holds {count}; use recursive to delete it with everything in it",
                    path.shown
                )));
            }
            waiting.extend(below.into_iter().rev());
        }
    }
    Ok(found.doomed)
}

/// What was found so far.
struct Found<'a> {
    cx: &'a ToolCx,
    /// What the call names.
    folder: String,
    doomed: Vec<Doomed>,
    /// Bytes of content.
    bytes: u64,
    /// Bytes of diffs.
    diffs: usize,
}

impl Found<'_> {
    /// Looks at an entry and adds it.
    fn add(&mut self, path: &FsPath) -> Result<FileKind, ToolFailure> {
        if self.cx.fs.hides(path) {
            return Err(FsError::Denied { path: path.shown.clone() }.into());
        }
        if self.doomed.len() == MAX_ENTRIES {
            return Err(self.too_much(&format!("{MAX_ENTRIES} entries")));
        }
        let stat = self.cx.fs.stat(path).map_err(|error| match error {
            FsError::NotFound { .. } if path.shown.contains('\u{fffd}') => FsError::Io {
                path: path.shown.clone(),
                reason: "its name is not UTF-8, so it cannot be named here; delete it with a command".into(),
            },
            other => other,
        })?;
        let (expect, diff) = match stat.kind {
            FileKind::File => self.file(path)?,
            FileKind::Link => {
                let target = self.cx.fs.read_link(path)?;
                (Expect::Hash(hash_of(&target)), diff::unified(&path.shown, Some(&target), None))
            }
            FileKind::Dir => (Expect::Dir, diff::unified(&format!("{}/", path.shown), Some(b""), None)),
            FileKind::Other => {
                return Err(ToolFailure::failed(format!(
                    "{} is a pipe, socket or device; only files, links and folders can be deleted, use a command for \
                     it. Nothing was deleted",
                    path.shown
                )));
            }
        };
        let diff = diff::shortened(diff, diff::MAX_DIFF.saturating_sub(self.diffs));
        self.diffs += diff.text.len();
        self.doomed.push(Doomed { path: path.clone(), kind: stat.kind, expect, diff });
        Ok(stat.kind)
    }

    fn file(&mut self, path: &FsPath) -> Result<(Expect, Diff), ToolFailure> {
        let room = MAX_BYTES - self.bytes;
        let content = match self.cx.fs.read(path, room) {
            Err(FsError::TooLarge { .. }) => {
                return Err(self.too_much(&format!("{} MB of content", MAX_BYTES / 1024 / 1024)));
            }
            read => read?,
        };
        self.bytes += content.len() as u64;
        let hash = hash_of(&content);
        change::as_known(self.cx, path, &hash)?;
        let diff = match Text::decode(&content) {
            Ok(text) => diff::unified(&path.shown, Some(&text.body), None),
            Err(_) => {
                let mut diff = diff::unified(&path.shown, Some(b""), None);
                diff.text.push_str(&format!("(binary, {} bytes)\n", content.len()));
                diff
            }
        };
        Ok((Expect::Hash(hash), diff))
    }

    fn too_much(&self, limit: &str) -> ToolFailure {
        ToolFailure::failed(format!(
            "{} is more than {limit}, which is as much as one call deletes, because all of it is kept to come back; \
             nothing was deleted. Delete parts of it, or use a command in Build mode",
            self.folder
        ))
    }

    /// The entries of a folder.
    fn below(&self, folder: &FsPath) -> Result<Vec<FsPath>, FsError> {
        let entries = self.cx.fs.list(folder)?;
        let entry = |name: &str| FsPath {
            abs: folder.abs.join(name),
            shown: format!("{}/{name}", folder.shown),
            inside: folder.inside,
            identity: None,
        };
        Ok(entries.iter().map(|found| entry(&found.name)).collect())
    }
}

/// Lets it all happen.
fn delete(cx: &ToolCx, doomed: Vec<Doomed>) -> Outcome {
    // The deepest come last in a plan and go first.
    let stage = |doomed: &Doomed| cx.fs.stage_remove(&doomed.path, &doomed.expect);
    let staged = doomed.iter().rev().map(stage).collect::<Result<Vec<_>, _>>()?;
    let mut proposed = false;
    for (gone, change) in staged.into_iter().enumerate() {
        proposed |= change.change().proposed.is_some();
        let happened = match cx.cancel.is_cancelled() {
            true => Err(ToolFailure::cancelled()),
            false => happen(cx, change).map_err(ToolFailure::from),
        };
        if let Err(failure) = happened {
            return Err(if gone == 0 { failure } else { half_way(cx, failure, &doomed, gone) });
        }
    }
    let text = told(&doomed, proposed);
    let diffs = doomed.into_iter().filter(|doomed| doomed.kind != FileKind::Dir).map(|doomed| doomed.diff).collect();
    Ok(ToolOutput { text, diffs, ..ToolOutput::default() })
}

fn happen(cx: &ToolCx, change: Box<dyn Staged>) -> Result<(), FsError> {
    change::record(cx, change.change())?;
    change.commit()
}

/// What is said of a call that was done.
fn told(doomed: &[Doomed], proposed: bool) -> String {
    let Some(top) = doomed.first() else { return String::new() };
    let shown = &top.path.shown;
    let what = match top.kind {
        FileKind::Link => format!("the link {shown}"),
        FileKind::Dir if doomed.len() == 1 => format!("the empty folder {shown}"),
        FileKind::Dir => format!("{shown} with everything in it ({})", kinds(&doomed[1..])),
        FileKind::File | FileKind::Other if top.diff.removed > 0 => format!("{shown}: -{}", top.diff.removed),
        FileKind::File | FileKind::Other => shown.clone(),
    };
    if proposed { format!("Proposed to delete {what}, still on disk") } else { format!("Deleted {what}") }
}

/// How many there are of each kind.
fn kinds(doomed: &[Doomed]) -> String {
    let of = |kind, one, many| {
        let count = doomed.iter().filter(|doomed| doomed.kind == kind).count();
        (count > 0).then(|| counted(count, one, many))
    };
    let all = [
        of(FileKind::File, "file", "files"),
        of(FileKind::Dir, "folder", "folders"),
        of(FileKind::Link, "link", "links"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The answer where some entries are gone and then it failed.
fn half_way(cx: &ToolCx, failure: ToolFailure, doomed: &[Doomed], gone: usize) -> ToolFailure {
    let names: Vec<&str> = doomed.iter().rev().map(|doomed| doomed.path.shown.as_str()).collect();
    let (deleted, left) = names.split_at(gone);
    let text = |room| {
        format!(
            "{}. It was deleted in part. Deleted: {}. Not deleted: {}.",
            failure.text.trim_end_matches('.'),
            listed(deleted, room),
            listed(left, room)
        )
    };
    let whole = text(usize::MAX);
    let short = text(NAMES.min(cx.cap_bytes) / 2);
    let whole = if short == whole { Whole::None } else { Whole::Bytes(whole.into_bytes()) };
    let class = if failure.class == ToolErrorClass::Cancelled { failure.class } else { ToolErrorClass::Failed };
    ToolFailure { class, text: short, whole }
}

/// Names in about so many bytes, and how many more there are.
fn listed(names: &[&str], room: usize) -> String {
    let mut used = 0;
    let fits = names.iter().take_while(|name| {
        used += name.len() + 2;
        used <= room
    });
    let fits = fits.count().max(1).min(names.len());
    let more = names.len() - fits;
    let shown = names[..fits].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

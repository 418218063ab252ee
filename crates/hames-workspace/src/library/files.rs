//! The five file tools.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hames_protocol::{Declaration, Diff, Label, ToolSpec};
use hames_tools::{FileKind, FsError, Tool, ToolCx, ToolFailure, ToolOutput, WalkOptions};
use serde_json::{Value, json};

use super::{Outcome, Part, count_of, folder_of, json_bytes, room, spec, text_of, told};
use crate::files::{Delete, List, Read, StrReplace, Text, Write, not_text};

/// Lines of a page, characters of a line and bytes of a page at most.
const MAX_LINES: usize = 2_000;
const MAX_LINE_CHARS: usize = 2_000;
const MAX_READ: usize = 32 * 1024;
/// Bytes of a file that is read at all.
const MAX_FILE: u64 = 10 * 1024 * 1024;
/// Entries of a page where the call names no limit.
const DEFAULT_ENTRIES: usize = 500;
/// Entries one listing looks at.
const MAX_ENTRIES: usize = 100_000;
/// Bytes of a listing.
const MAX_LIST: usize = 32 * 1024;

pub(super) fn tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(ReadFile), Arc::new(WriteFile), Arc::new(EditFile), Arc::new(ListFiles), Arc::new(DeleteFile)]
}

/// The arguments of a call in the words of the tool that does it.
fn in_words_of(input: &Value, names: &[(&str, &str)]) -> Value {
    let pairs = names.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), input.get(*theirs)?.clone())));
    Value::Object(pairs.collect())
}

const PATH: &[(&str, &str)] = &[("filePath", "path")];

struct ReadFile;

static READ_FILE: LazyLock<ToolSpec> = LazyLock::new(|| {
    let properties = json!({
        "filePath": {"type": "string"},
        "offset": {"type": "integer", "minimum": 1, "description": "first line"},
        "limit": {"type": "integer", "minimum": 1, "description": "lines"},
    });
    spec("readFile", "Read a text file, with numbered lines. Long files come in parts.", properties, &["filePath"])
});

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &READ_FILE
    }
    fn declare(&self, input: &Value) -> Declaration {
        Read.declare(&in_words_of(input, PATH))
    }
    fn label(&self, input: &Value) -> Label {
        Label::new("readFile", text_of(input, "filePath"))
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let (path, offset, limit) =
            (text_of(input, "filePath").to_owned(), count_of(input, "offset"), count_of(input, "limit"));
        let read = cx.blocking(move |cx| read(&cx, &path, offset, limit)).await;
        read.or_else(|failure| told(failure, &[("filePath", text_of(input, "filePath"))]))
    }
}

fn read(cx: &ToolCx, name: &str, offset: Option<usize>, limit: Option<usize>) -> Outcome {
    let path = cx.resolve(name)?;
    if cx.fs.stat(&path)?.kind == FileKind::Dir {
        return Err(ToolFailure::failed(format!("{} is a folder; use listFiles to see what is in it", path.shown)));
    }
    let bytes = cx.fs.read(&path, MAX_FILE)?;
    let text = Text::decode(&bytes).map_err(|kind| not_text(&path.shown, kind))?;
    let text = String::from_utf8_lossy(&text.body);
    let total = text.lines().count();
    let (from, wanted) = (offset.unwrap_or(1), limit.unwrap_or(MAX_LINES).min(MAX_LINES));
    let (mut content, mut shown, mut used, mut capped) = (String::new(), 0, 0, false);
    for (number, line) in (1..).zip(text.lines()).skip(from - 1).take(wanted) {
        let line = numbered(number, line);
        used += json_bytes(&line);
        // The first line is always shown, so that reading on gets on.
        if shown > 0 && used > room(cx, MAX_READ) {
            capped = true;
            break;
        }
        if shown > 0 {
            content.push('\n');
        }
        content.push_str(&line);
        shown += 1;
    }
    let to = if shown == 0 { 0 } else { from + shown - 1 };
    let status = match (shown, capped) {
        (0, _) if total > 0 => format!("The offset is past the end: {total} lines total."),
        (_, true) => format!(
            "Output capped at {:.1} KB. Showing lines {from}-{to} of {total}. Use offset={} to continue.",
            room(cx, MAX_READ) as f64 / 1024.0,
            to + 1
        ),
        _ if to < total => format!("Showing lines {from}-{to} of {total}. Use offset={} to continue.", to + 1),
        _ => format!("End of file — {total} lines total."),
    };
    let from = if shown == 0 { 0 } else { from };
    let answer = json!({
        "filePath": name, "totalLines": total, "fromLine": from, "toLine": to, "status": status, "content": content,
    });
    let files = vec![hames_protocol::FileHash {
        path: path.abs.to_string_lossy().into_owned(),
        hash: blake3::hash(&bytes).to_hex().to_string(),
    }];
    Ok(ToolOutput { files, ..ToolOutput::text(answer.to_string()) })
}

fn numbered(number: usize, line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{number}: {}... (line truncated at {MAX_LINE_CHARS} chars)", &line[..end]),
        None => format!("{number}: {line}"),
    }
}

struct WriteFile;

static WRITE_FILE: LazyLock<ToolSpec> = LazyLock::new(|| {
    let properties = json!({"filePath": {"type": "string"}, "content": {"type": "string"}});
    spec("writeFile", "Create a file or replace its whole content.", properties, &["filePath", "content"])
});

const WRITE: &[(&str, &str)] = &[("filePath", "path"), ("content", "content")];

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &WRITE_FILE
    }
    fn declare(&self, input: &Value) -> Declaration {
        Write.declare(&in_words_of(input, WRITE))
    }
    fn label(&self, input: &Value) -> Label {
        Label { tool: "writeFile".into(), ..Write.label(&in_words_of(input, WRITE)) }
    }
    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        Write.preview(&in_words_of(input, WRITE), cx).await
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let path = text_of(input, "filePath");
        match Write.run(&in_words_of(input, WRITE), cx).await {
            Ok(done) => {
                // The file may keep its encoding or its line ends: what was written is what is there.
                let (name, cx) = (path.to_owned(), cx.clone());
                let size = cx.blocking(move |cx| Ok(cx.fs.stat(&cx.resolve(&name)?)?.size)).await?;
                Ok(ToolOutput { text: json!({"filePath": path, "bytesWritten": size}).to_string(), ..done })
            }
            Err(failure) => told(failure, &[("filePath", path)]),
        }
    }
}

struct EditFile;

static EDIT_FILE: LazyLock<ToolSpec> = LazyLock::new(|| {
    let properties = json!({
        "filePath": {"type": "string"},
        "oldString": {"type": "string", "description": "exact text, only once in the file"},
        "newString": {"type": "string"},
        "replaceAll": {"type": "boolean"},
    });
    let required = ["filePath", "oldString", "newString"];
    spec("editFile", "Replace text in a file, literally.", properties, &required)
});

const EDIT: &[(&str, &str)] =
    &[("filePath", "path"), ("oldString", "old_string"), ("newString", "new_string"), ("replaceAll", "replace_all")];

#[async_trait]
impl Tool for EditFile {
    fn spec(&self) -> &ToolSpec {
        &EDIT_FILE
    }
    fn declare(&self, input: &Value) -> Declaration {
        StrReplace.declare(&in_words_of(input, EDIT))
    }
    fn label(&self, input: &Value) -> Label {
        Label { tool: "editFile".into(), ..StrReplace.label(&in_words_of(input, EDIT)) }
    }
    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        StrReplace.preview(&in_words_of(input, EDIT), cx).await
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let path = text_of(input, "filePath");
        let (name, old) = (path.to_owned(), text_of(input, "oldString").to_owned());
        let found = cx.blocking(move |cx| Ok(occurrences(&cx, &name, &old))).await?;
        let all = input.get("replaceAll").and_then(Value::as_bool).unwrap_or_default();
        match StrReplace.run(&in_words_of(input, EDIT), cx).await {
            Ok(done) => {
                let answer = json!({"filePath": path, "replacements": if all { found.unwrap_or(1) } else { 1 }});
                Ok(ToolOutput { text: answer.to_string(), ..done })
            }
            Err(failure) if found == Some(0) && !text_of(input, "oldString").is_empty() => {
                // The near miss that the editor found stays with the sentence everybody knows.
                let near = failure.text.split_once('\n').map_or(String::new(), |(_, near)| format!("\n{near}"));
                told(
                    ToolFailure { text: format!("oldString not found in file{near}"), ..failure },
                    &[("filePath", path)],
                )
            }
            Err(failure) => {
                let text = failure.text.replace("old_string", "oldString").replace("replace_all", "replaceAll");
                let text = text.replace("new_string", "newString");
                told(ToolFailure { text, ..failure }, &[("filePath", path)])
            }
        }
    }
}

/// How often a text stands in a file, whatever its line ends; nothing where it cannot be read.
fn occurrences(cx: &ToolCx, name: &str, old: &str) -> Option<usize> {
    let bytes = cx.fs.read(&cx.resolve(name).ok()?, MAX_FILE).ok()?;
    let body = Text::decode(&bytes).ok()?.body;
    let plain = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    let old = plain(old);
    (!old.is_empty()).then(|| plain(&String::from_utf8_lossy(&body)).matches(&old).count())
}

struct ListFiles;

static LIST_FILES: LazyLock<ToolSpec> = LazyLock::new(|| {
    let properties = json!({
        "dirPath": {"type": "string"},
        "recursive": {"type": "boolean"},
        "offset": {"type": "integer", "minimum": 1, "description": "first entry"},
        "limit": {"type": "integer", "minimum": 1, "description": "entries"},
    });
    spec("listFiles", "List what is in a folder.", properties, &[])
});

#[async_trait]
impl Tool for ListFiles {
    fn spec(&self) -> &ToolSpec {
        &LIST_FILES
    }
    fn declare(&self, input: &Value) -> Declaration {
        List.declare(&in_words_of(input, &[("dirPath", "path")]))
    }
    fn label(&self, input: &Value) -> Label {
        Label::new("listFiles", folder_of(input))
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let (folder, offset) = (folder_of(input).to_owned(), count_of(input, "offset").unwrap_or(1));
        let limit = count_of(input, "limit").unwrap_or(DEFAULT_ENTRIES);
        let recursive = input.get("recursive").and_then(Value::as_bool).unwrap_or_default();
        let listed = cx.blocking(move |cx| list(&cx, &folder, recursive, offset, limit)).await;
        listed.or_else(|failure| told(failure, &[("dirPath", folder_of(input))]))
    }
}

fn list(cx: &ToolCx, name: &str, recursive: bool, offset: usize, limit: usize) -> Outcome {
    let folder = cx.resolve(name)?;
    if cx.fs.stat(&folder)?.kind == FileKind::File {
        return Err(ToolFailure::failed(format!("{} is a file; use readFile to see it", folder.shown)));
    }
    let found: Vec<(String, FileKind)> = if recursive {
        below(cx, &folder)?
    } else {
        cx.fs.list(&folder)?.into_iter().map(|entry| (entry.name, entry.kind)).collect()
    };
    if cx.cancel.is_cancelled() {
        return Err(ToolFailure::cancelled());
    }
    let mut used = 0;
    let fits = |entry: &Value, used: &mut usize| {
        *used += entry.to_string().len() + 1;
        *used <= room(cx, MAX_LIST)
    };
    let entry = |(name, kind): &(String, FileKind)| json!({"name": name, "type": kind_name(*kind)});
    let wanted = found.iter().skip(offset - 1).take(limit).map(entry);
    let entries: Vec<Value> = wanted.take_while(|entry| fits(entry, &mut used)).collect();
    let mut part = Part::of("entries", offset, entries.len(), found.len());
    if recursive && found.len() >= MAX_ENTRIES {
        part.status.push_str(&format!(" Only the first {MAX_ENTRIES} were counted; list a folder below."));
    }
    let answer = json!({
        "dirPath": name, "count": entries.len(), "totalCount": found.len(), "fromEntry": part.from,
        "toEntry": part.to, "status": part.status, "entries": entries,
    });
    Ok(ToolOutput::text(answer.to_string()))
}

/// Everything below a folder, by its path from there.
fn below(cx: &ToolCx, folder: &hames_tools::FsPath) -> Result<Vec<(String, FileKind)>, FsError> {
    let prefix = if folder.shown == "." { String::new() } else { format!("{}/", folder.shown.trim_end_matches('/')) };
    let mut found = Vec::new();
    cx.fs.walk(folder, &WalkOptions::default(), &mut |entry| {
        let name = entry.path.shown.strip_prefix(&prefix).unwrap_or(&entry.path.shown);
        found.push((name.to_owned(), entry.kind));
        let goes_on = found.len() < MAX_ENTRIES && !cx.cancel.is_cancelled();
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Dir => "directory",
        FileKind::Link => "symlink",
        FileKind::Other => "other",
    }
}

struct DeleteFile;

static DELETE_FILE: LazyLock<ToolSpec> = LazyLock::new(|| {
    let properties = json!({
        "filePath": {"type": "string"},
        "recursive": {"type": "boolean", "description": "a folder with everything in it"},
    });
    spec("deleteFile", "Delete a file or a folder.", properties, &["filePath"])
});

const DELETE: &[(&str, &str)] = &[("filePath", "path"), ("recursive", "recursive")];

#[async_trait]
impl Tool for DeleteFile {
    fn spec(&self) -> &ToolSpec {
        &DELETE_FILE
    }
    fn declare(&self, input: &Value) -> Declaration {
        Delete.declare(&in_words_of(input, DELETE))
    }
    fn label(&self, input: &Value) -> Label {
        Label { tool: "deleteFile".into(), ..Delete.label(&in_words_of(input, DELETE)) }
    }
    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        Delete.preview(&in_words_of(input, DELETE), cx).await
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let path = text_of(input, "filePath");
        match Delete.run(&in_words_of(input, DELETE), cx).await {
            Ok(done) => Ok(ToolOutput { text: json!({"deleted": path}).to_string(), ..done }),
            Err(failure) => told(failure, &[("filePath", path)]),
        }
    }
}

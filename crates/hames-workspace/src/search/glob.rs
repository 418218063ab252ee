//! The Glob tool: files by name.

use async_trait::async_trait;
use hames_protocol::{Declaration, Effect, Label, Resource, ToolSpec};
use hames_tools::{FileKind, FsError, FsPath, Tool, ToolCx, ToolFailure, ToolOutput};
use serde_json::{Value, json};

use super::args::Args;
use super::find::{Search, Want, find, slashed, start};
use super::page::{Page, Window};
use super::pattern::{PathPattern, Written, escape, is_literal, unescape};

/// Finds files by name.
pub struct Glob {
    spec: ToolSpec,
}

impl Glob {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "Glob".into(),
                description: include_str!("glob.md").trim_end().into(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "pattern": {"type": "string"},
                        "path": {"type": "string", "description": "folder"},
                        "offset": {"type": "integer"},
                        "limit": {"type": "integer"},
                        "no_ignore": {"type": "boolean"},
                    },
                    "required": ["pattern"],
                }),
            },
        }
    }
}

impl Default for Glob {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("query", "pattern"),
            ("glob", "pattern"),
            ("glob_pattern", "pattern"),
            ("globPattern", "pattern"),
            ("dir", "path"),
            ("directory", "path"),
            ("dirPath", "path"),
            ("folder", "path"),
            ("target_directory", "path"),
            ("head_limit", "limit"),
            ("noIgnore", "no_ignore"),
        ]
    }

    fn declare(&self, input: &Value) -> Declaration {
        let args = Args(input);
        let written = Written::parse(args.text("pattern"));
        let path = if written.absolute { literal_prefix(&written) } else { args.path().to_owned() };
        Declaration {
            // What ignore files hide is not looked at where it is decided whether anything has changed.
            cacheable: !args.flag("no_ignore"),
            cap_bytes: Some(super::RESULT_CAP as u64),
            ..Declaration::new(Effect::Read, vec![Resource::path(path, false)])
        }
    }

    fn label(&self, input: &Value) -> Label {
        let args = Args(input);
        match args.path() {
            "." => Label::new("Glob", args.text("pattern")),
            path => Label::new("Glob", &format!("{} in {path}", args.text("pattern"))),
        }
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let input = input.clone();
        cx.blocking(move |cx| search(&Args(&input), &cx).map(ToolOutput::text)).await
    }
}

fn search(args: &Args<'_>, cx: &ToolCx) -> Result<String, ToolFailure> {
    let pattern = args.text("pattern");
    if pattern.trim().is_empty() {
        return Err(ToolFailure::invalid("pattern is empty; ** finds every file"));
    }
    let (base, kind, _) = start(cx, args.path())?;
    if kind != FileKind::Dir {
        let error = FsError::WrongKind { path: base.shown, found: "a file", wanted: "a folder" };
        return Err(ToolFailure { text: format!("{error}; Grep searches in files"), ..error.into() });
    }
    let written = Written::parse(pattern);
    if let Some(line) = named(cx, &base, pattern, &written)? {
        return Ok(line);
    }
    let Place { from, components, floating } = place(cx, base, &written)?;
    let compiled = PathPattern::new(&components, floating).map_err(|e| not_a_glob(pattern, &e))?;
    let want = if written.dirs_only { Want::Dirs } else { Want::Names };
    let no_ignore = args.flag("no_ignore");
    let max_depth = compiled.levels().map(|levels| levels.saturating_sub(1));
    let reading_of = |path: &str| compiled.reading_of(path);
    let finding = find(cx, &from, &Search { want, no_ignore, max_depth, reading_of: &reading_of })?;
    if finding.found.is_empty() {
        if let Some(problem) = compiled.problem() {
            return Err(not_a_glob(pattern, problem));
        }
        return Ok(nothing(pattern, args.path(), want, finding.others, no_ignore));
    }
    let mut page = Page::new(Window::new(args.count("offset"), args.count("limit"), cx.cap_bytes));
    for found in &finding.found {
        match want {
            Want::Dirs => page.push(&format!("{}/", found.path.shown)),
            _ => page.push(&found.path.shown),
        }
    }
    let mut text = page.finish(if want == Want::Dirs { "folders" } else { "files" });
    if finding.ignored_start {
        text.push_str(&format!("\n({} is ignored; searched because it was named)", from.shown));
    }
    if finding.cut {
        text.push_str("\n(too many files: not all were looked at; name a folder in path)");
    }
    Ok(text)
}

fn not_a_glob(pattern: &str, reason: &str) -> ToolFailure {
    ToolFailure::invalid(format!(
        "\"{pattern}\" is no valid glob: {reason}; write \\ before a character meant literally"
    ))
}

fn nothing(pattern: &str, path: &str, want: Want, others: usize, no_ignore: bool) -> String {
    let what = if want == Want::Dirs { "folder" } else { "file" };
    let mut text = format!("No {what} matches {pattern}");
    if path != "." {
        text.push_str(&format!(" in {path}"));
    }
    text.push('.');
    match (others, want) {
        (0, _) => {}
        (n, Want::Dirs) => text.push_str(&format!(" Files do ({n}); leave the last / out to see them.")),
        (n, _) => text.push_str(&format!(" Folders do ({n}); add / to see them.")),
    }
    if !no_ignore {
        text.push_str(" Ignored files were left out; no_ignore includes them.");
    }
    text
}

/// A pattern that names something as it stands: the one line of its result.
fn named(cx: &ToolCx, base: &FsPath, pattern: &str, written: &Written) -> Result<Option<String>, ToolFailure> {
    let plain: Option<Vec<String>> = written.components.iter().map(|part| unescape(part)).collect();
    let spellings =
        [Some(pattern.to_owned()), plain.map(|parts| parts.join("/")).filter(|p| !written.absolute && p != pattern)];
    for spelling in spellings.into_iter().flatten() {
        let full = if written.absolute || base.shown == "." || base.abs == cx.fs.root() {
            spelling.clone()
        } else {
            format!("{}/{spelling}", base.shown)
        };
        let path = match cx.resolve(&full) {
            Ok(path) => path,
            Err(error @ FsError::Denied { .. }) => return Err(error.into()),
            Err(_) => continue,
        };
        let Ok(stat) = cx.fs.stat(&path) else { continue };
        if written.dirs_only && stat.kind != FileKind::Dir {
            continue;
        }
        let slash = if stat.kind == FileKind::Dir && path.shown != "/" { "/" } else { "" };
        // A link is shown under the name that was asked for, not under its target's.
        let asked = Written::parse(&full);
        let straight = !asked.absolute && !asked.components.is_empty() && !asked.components.iter().any(|c| c == "..");
        let shown = if straight { asked.components.join("/") } else { path.shown };
        return Ok(Some(format!("{shown}{slash}")));
    }
    Ok(None)
}

/// Where to walk and what fits there.
struct Place {
    from: FsPath,
    components: Vec<String>,
    floating: bool,
}

/// Brings a pattern into terms of the folder the walk starts at: absolute patterns and those with `..` included.
fn place(cx: &ToolCx, base: FsPath, written: &Written) -> Result<Place, ToolFailure> {
    if written.absolute {
        return place_absolute(cx, base, written);
    }
    let mut components: Vec<String> = Vec::new();
    let mut up = 0;
    for part in &written.components {
        match (part.as_str(), components.last()) {
            ("..", None) => up += 1,
            ("..", Some(last)) if is_literal(last) => {
                components.pop();
            }
            ("..", Some(_)) => {
                return Err(ToolFailure::invalid(".. cannot follow a wildcard; write the path without it"));
            }
            _ => components.push(part.clone()),
        }
    }
    if components.is_empty() {
        components.push("*".into());
    }
    if up == 0 {
        return Ok(Place { from: base, components, floating: written.floating });
    }
    let mut above = base.abs.as_path();
    for _ in 0..up {
        above = above.parent().filter(|p| p.starts_with(cx.fs.root())).ok_or_else(|| {
            ToolFailure::refused("the pattern leads out of the workspace with ..; only files inside it can be found")
        })?;
    }
    Ok(Place { from: cx.resolve(&above.to_string_lossy())?, components, floating: false })
}

fn place_absolute(cx: &ToolCx, base: FsPath, written: &Written) -> Result<Place, ToolFailure> {
    if written.components.iter().any(|part| part == "..") {
        return Err(ToolFailure::invalid(".. cannot be part of an absolute pattern; write the path without it"));
    }
    let prefix = cx.resolve(&literal_prefix(written))?;
    let rest = &written.components[literal_len(written)..];
    // The walk starts where a relative pattern's would, so that an absolute one switches no ignore file off.
    let from = match cx.resolve(".") {
        _ if prefix.abs.starts_with(&base.abs) => base,
        Ok(root) if prefix.abs.starts_with(&root.abs) => root,
        _ => prefix.clone(),
    };
    let below = prefix.abs.strip_prefix(&from.abs).map(slashed).unwrap_or_default();
    let mut components: Vec<String> = below.split('/').filter(|part| !part.is_empty()).map(escape).collect();
    components.extend(rest.iter().cloned());
    if components.is_empty() {
        components.push("*".into());
    }
    Ok(Place { from, components, floating: false })
}

/// How many components in front of the last one fit only themselves.
fn literal_len(written: &Written) -> usize {
    let leading = written.components.iter().take_while(|part| is_literal(part)).count();
    leading.min(written.components.len().saturating_sub(1))
}

/// The folder an absolute pattern starts from.
fn literal_prefix(written: &Written) -> String {
    format!("/{}", written.components[..literal_len(written)].join("/"))
}

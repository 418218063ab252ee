//! The Grep tool: files by content.

use std::io::{self, Read};
use std::ops::ControlFlow;

use async_trait::async_trait;
use grep_searcher::Searcher;
use hames_protocol::{Declaration, Effect, Label, Resource, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::ahead::{self, Count, End};
use super::args::Args;
use super::find::{Found, searched};
use super::hits::{FileHits, Hits, MAX_MATCHES};
use super::needle::Needle;
use super::page::{Page, Window, tail};
use super::pattern::Filter;

/// Files larger than this are skipped and counted: dumps and archives, not something to read.
pub(super) const MAX_FILE: u64 = 50 << 20;

/// Bytes one search reads at most, so that it ends within a minute even where everything is searched.
const MAX_READ: u64 = 2 << 30;

/// Context lines on each side of a match.
const MAX_CONTEXT: usize = 50;

/// Finds files by content.
pub struct Grep {
    spec: ToolSpec,
    /// Threads of a search; `None` for what suits the machine.
    threads: Option<usize>,
}

impl Grep {
    /// The tool, searching large trees on a few threads.
    pub fn new() -> Self {
        Self {
            threads: None,
            spec: ToolSpec {
                name: "Grep".into(),
                description: include_str!("grep.md").trim_end().into(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "pattern": {"type": "string"},
                        "path": {"type": "string", "description": "file or folder"},
                        "glob": {"type": "string", "description": "only these files: *.{js,ts}"},
                        "ignore_case": {"type": "boolean"},
                        "context": {"type": "integer", "description": "lines around"},
                        "mode": {"type": "string", "description": "content (default), files or count"},
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

impl Grep {
    /// The tool on this many threads at most: for a machine that has other things to do. The answers are the same.
    pub fn with_threads(threads: usize) -> Self {
        Self { threads: Some(threads.max(1)), ..Self::new() }
    }
}

impl Default for Grep {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("query", "pattern"),
            ("regex", "pattern"),
            ("search", "pattern"),
            ("dir", "path"),
            ("directory", "path"),
            ("dirPath", "path"),
            ("folder", "path"),
            ("file", "path"),
            ("file_path", "path"),
            ("include", "glob"),
            ("include_pattern", "glob"),
            ("filePattern", "glob"),
            ("file_pattern", "glob"),
            ("ignoreCase", "ignore_case"),
            ("case_insensitive", "ignore_case"),
            ("-i", "ignore_case"),
            ("-C", "context"),
            ("output_mode", "mode"),
            ("head_limit", "limit"),
            ("noIgnore", "no_ignore"),
        ]
    }

    fn declare(&self, input: &Value) -> Declaration {
        Declaration {
            // What ignore files hide is not looked at where it is decided whether anything has changed.
            cacheable: !Args(input).flag("no_ignore"),
            cap_bytes: Some(super::RESULT_CAP as u64),
            ..Declaration::new(Effect::Read, vec![Resource::path(Args(input).path().to_owned(), false)])
        }
    }

    fn label(&self, input: &Value) -> Label {
        let args = Args(input);
        match args.path() {
            "." => Label::new("Grep", args.text("pattern")),
            path => Label::new("Grep", &format!("{} in {path}", args.text("pattern"))),
        }
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let request = Request::read(&Args(input), cx)?;
        let threads = self.threads;
        cx.blocking(move |cx| request.answer(&cx, threads.unwrap_or_else(ahead::usual_threads)).map(ToolOutput::text))
            .await
    }
}

/// What the answer lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Matching lines.
    Content,
    /// Paths of files with a match.
    Files,
    /// The same, with the number of matches.
    Count,
}

impl Mode {
    fn read(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "content" | "contents" | "lines" | "matches" => Some(Mode::Content),
            "files" | "file" | "paths" | "files_with_matches" | "files-with-matches" => Some(Mode::Files),
            "count" | "counts" => Some(Mode::Count),
            _ => None,
        }
    }
}

/// A search, its arguments understood.
struct Request {
    needle: Needle,
    pattern: String,
    path: String,
    glob: String,
    filter: Filter,
    mode: Mode,
    context: usize,
    window: Window,
    no_ignore: bool,
}

/// What the search went through besides matches.
#[derive(Default)]
struct Tally {
    searched: usize,
    read: u64,
    binary: usize,
    large: usize,
    failed: usize,
    first_failure: String,
    stopped: Option<String>,
}

impl Request {
    fn read(args: &Args<'_>, cx: &ToolCx) -> Result<Self, ToolFailure> {
        let glob = args.text("glob").to_owned();
        let filter = Filter::parse(&glob)
            .map_err(|e| ToolFailure::invalid(format!("glob \"{glob}\" is no valid glob: {e}; a plain one is *.rs")))?;
        let mode = Mode::read(args.text("mode")).ok_or_else(|| {
            ToolFailure::invalid(format!("mode \"{}\" is unknown; use content, files or count", args.text("mode")))
        })?;
        let context = if mode == Mode::Content { args.count("context").unwrap_or(0).min(MAX_CONTEXT) } else { 0 };
        Ok(Self {
            needle: Needle::compile(args.text("pattern"), args.flag("ignore_case")).map_err(ToolFailure::invalid)?,
            pattern: args.text("pattern").to_owned(),
            path: args.path().to_owned(),
            glob,
            filter,
            mode,
            context,
            window: Window::new(args.count("offset"), args.count("limit"), cx.cap_bytes),
            no_ignore: args.flag("no_ignore"),
        })
    }

    fn answer(&self, cx: &ToolCx, threads: usize) -> Result<String, ToolFailure> {
        let (from, finding) = searched(cx, &self.path, &self.filter, self.no_ignore)?;
        let mut tally = Tally::default();
        let mut hits = Hits::new(self.window, self.context, self.mode == Mode::Content);
        let mut list = Page::new(self.window);
        let mut searcher =
            if self.mode == Mode::Content { self.needle.searcher(self.context) } else { self.needle.counter() };
        ahead::in_order(cx, &self.needle, &finding.found, threads, |file, counted| {
            if cx.cancel.is_cancelled() {
                return ControlFlow::Break(());
            }
            let count = match counted.filter(|counted| !hits.needs_to_see(counted.matches)) {
                Some(counted) => tally.take(counted, &mut hits),
                None => self.search(cx, file, &mut searcher, &mut hits, &mut tally),
            };
            match self.mode {
                Mode::Files if count > 0 => list.push(&file.path.shown),
                Mode::Count if count > 0 => list.push(&format!("{}: {count}", file.path.shown)),
                _ => {}
            }
            if hits.at_limit() {
                tally.stopped = Some(format!("{MAX_MATCHES} matches"));
            } else if tally.read >= MAX_READ {
                tally.stopped = Some(format!("{} GB of files", MAX_READ >> 30));
            }
            if tally.stopped.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if cx.cancel.is_cancelled() {
            return Err(ToolFailure::cancelled());
        }
        if finding.cut && tally.stopped.is_none() {
            tally.stopped = Some("too many files".into());
        }
        let ignored_start = finding.ignored_start.then_some(from.shown.as_str());
        Ok(self.render(hits, list, &tally, ignored_start))
    }

    /// Searches one file and says how many matches it has.
    fn search(&self, cx: &ToolCx, file: &Found, searcher: &mut Searcher, hits: &mut Hits, tally: &mut Tally) -> usize {
        if file.size > MAX_FILE {
            tally.large += 1;
            return 0;
        }
        let reader = match cx.fs.open(&file.path) {
            Ok(reader) => reader,
            Err(error) => {
                tally.fail(error.to_string());
                return 0;
            }
        };
        let mut reader = Watched::new(reader, &cx.cancel);
        let mut file_hits = FileHits::new(hits, &self.needle.matcher, &cx.cancel, &file.path.shown);
        let searched = searcher.search_reader(&self.needle.matcher, &mut reader, &mut file_hits);
        tally.read += reader.read;
        match searched {
            Err(error) => tally.fail(format!("{}: {error}", file.path.shown)),
            Ok(()) if file_hits.binary => tally.binary += 1,
            Ok(()) => {
                tally.searched += 1;
                return file_hits.keep();
            }
        }
        0
    }

    fn render(&self, hits: Hits, list: Page, tally: &Tally, ignored_start: Option<&str>) -> String {
        let mut text = String::new();
        if let Some(note) = &self.needle.note {
            text.push_str(note);
            text.push('\n');
        }
        if hits.total == 0 {
            text.push_str(&self.nothing(tally));
        } else if self.mode == Mode::Content {
            text.push_str(&hits.text);
            text.push_str(&tail(self.window.offset, hits.shown, hits.total, "matches"));
        } else {
            text.push_str(&list.finish("files"));
        }
        text.truncate(text.trim_end_matches('\n').len());
        if let Some(what) = &tally.stopped {
            text.push_str(&format!("\n(stopped after {what}; narrow the search with path, glob or pattern)"));
        }
        if let Some(folder) = ignored_start {
            text.push_str(&format!("\n({folder} is ignored; searched because it was named)"));
        }
        if tally.large > 0 {
            text.push_str(&format!("\n(skipped for being over {} MB: {})", MAX_FILE >> 20, files(tally.large)));
        }
        if tally.failed > 0 {
            text.push_str(&format!("\n(could not be read: {}; {})", files(tally.failed), tally.first_failure));
        }
        text
    }

    /// Why there is no match, as far as that can be known.
    fn nothing(&self, tally: &Tally) -> String {
        let mut text = String::from("No matches");
        match (tally.searched, tally.binary) {
            (0, 0) if !self.glob.is_empty() => {
                text.push_str(&format!(": no file in {} fits the glob {}", self.path, self.glob));
            }
            (searched, 0) => text.push_str(&format!(" in {}", files(searched))),
            (0, 1) => text.push_str(": the file is binary"),
            (searched, binary) => text.push_str(&format!(" in {} ({binary} binary skipped)", files(searched))),
        }
        text.push('.');
        if self.needle.note.is_none() && self.pattern.contains(r"\|") {
            text.push_str(r" \| is a literal bar here; alternatives are written a|b.");
        }
        text
    }
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

impl Tally {
    fn fail(&mut self, reason: String) {
        self.failed += 1;
        if self.failed == 1 {
            self.first_failure = reason;
        }
    }

    /// Takes a file that was counted ahead, and says how many matches it has.
    fn take(&mut self, counted: Count, hits: &mut Hits) -> usize {
        self.read += counted.read;
        match counted.end {
            End::Failed(reason) => self.fail(reason),
            End::Binary => self.binary += 1,
            End::Text => {
                self.searched += 1;
                hits.count(counted.matches);
                return counted.matches;
            }
        }
        0
    }
}

/// A reader that counts, ends at [`MAX_FILE`], and fails once the search is cancelled.
pub(super) struct Watched<'a, R> {
    inner: io::Take<R>,
    cancel: &'a CancellationToken,
    /// Bytes so far.
    pub(super) read: u64,
}

impl<'a, R: Read> Watched<'a, R> {
    pub(super) fn new(inner: R, cancel: &'a CancellationToken) -> Self {
        Self::limited(inner, MAX_FILE, cancel)
    }

    /// One that ends after this many bytes.
    pub(super) fn limited(inner: R, bytes: u64, cancel: &'a CancellationToken) -> Self {
        Self { inner: inner.take(bytes), cancel, read: 0 }
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let n = self.inner.read(buffer)?;
        self.read += n as u64;
        Ok(n)
    }
}

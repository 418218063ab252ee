//! Matching lines one by one, for answers that are not pages of text.

use std::io;
use std::ops::ControlFlow;

use grep_searcher::{Searcher, Sink, SinkFinish, SinkMatch};
use hames_tools::{ToolCx, ToolFailure};

use super::ahead::{self, Count, End};
use super::find::{Found, searched};
use super::grep::{MAX_FILE, Watched};
use super::hits::{MAX_LINE, MAX_MATCHES, excerpt};
use super::needle::Needle;
use super::pattern::Filter;

/// What is searched for.
pub(crate) struct Lines {
    pub(crate) pattern: String,
    /// A folder or a file.
    pub(crate) path: String,
    /// Only these files; empty for all.
    pub(crate) glob: String,
    pub(crate) ignore_case: bool,
    /// The first match wanted, from 1.
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

/// A line that matches.
pub(crate) struct Line {
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: u64,
    pub(crate) content: String,
}

/// The wanted lines, and how many match in all. The order is that of the paths.
pub(crate) fn lines(cx: &ToolCx, wanted: &Lines) -> Result<(Vec<Line>, usize), ToolFailure> {
    let filter = Filter::parse(&wanted.glob)
        .map_err(|e| ToolFailure::invalid(format!("glob {:?} is no valid glob: {e}", wanted.glob)))?;
    let needle = Needle::compile(&wanted.pattern, wanted.ignore_case).map_err(ToolFailure::invalid)?;
    let (_, finding) = searched(cx, &wanted.path, &filter, false)?;
    let mut searcher = needle.searcher(0);
    let (mut page, mut total) = (Vec::new(), 0);
    let threads = ahead::usual_threads();
    ahead::in_order(cx, &needle, &finding.found, threads, |file, counted| {
        if cx.cancel.is_cancelled() {
            return ControlFlow::Break(());
        }
        if file.size > MAX_FILE {
            return ControlFlow::Continue(());
        }
        match counted.filter(|counted| !wanted.needs_to_see(total, counted.lines)) {
            Some(Count { lines, end: End::Text, .. }) => total += lines,
            Some(_) => {}
            None => total += search(cx, &needle, &mut searcher, wanted, file, total, &mut page),
        }
        if total >= MAX_MATCHES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if cx.cancel.is_cancelled() {
        return Err(ToolFailure::cancelled());
    }
    Ok((page, total))
}

impl Lines {
    /// Whether a file with this many lines after so many others has some for the page, or counting ends in it.
    fn needs_to_see(&self, before: usize, lines: usize) -> bool {
        let after = before + lines;
        let is_shown = lines > 0 && after >= self.offset && before + 1 < self.offset.saturating_add(self.limit);
        is_shown || after >= MAX_MATCHES
    }
}

/// Searches one file: what of it is wanted goes onto the page. Says how many lines match; of what is no text, none.
fn search(
    cx: &ToolCx,
    needle: &Needle,
    searcher: &mut Searcher,
    wanted: &Lines,
    file: &Found,
    before: usize,
    page: &mut Vec<Line>,
) -> usize {
    // What cannot be read holds nothing that could be shown.
    let Ok(reader) = cx.fs.open(&file.path) else { return 0 };
    let mut reader = Watched::new(reader, &cx.cancel);
    let mut sink = FileLines { wanted, file: &file.path.shown, before, found: Vec::new(), count: 0, binary: false };
    let searched = searcher.search_reader(&needle.matcher, &mut reader, &mut sink);
    if searched.is_err() || sink.binary {
        return 0;
    }
    page.append(&mut sink.found);
    sink.count
}

/// The matches of one file; they count only if it turns out to be text.
struct FileLines<'a> {
    wanted: &'a Lines,
    file: &'a str,
    /// Matches in the files before.
    before: usize,
    found: Vec<Line>,
    count: usize,
    binary: bool,
}

impl Sink for &mut FileLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let first = matched.line_number().unwrap_or(0);
        for (line, bytes) in (first..).zip(matched.lines()) {
            self.count += 1;
            let ordinal = self.before + self.count;
            if ordinal >= self.wanted.offset && ordinal - self.wanted.offset < self.wanted.limit {
                let content = excerpt(bytes, 0..0, MAX_LINE);
                self.found.push(Line { file: self.file.to_owned(), line, content });
            }
        }
        Ok(self.before + self.count < MAX_MATCHES)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

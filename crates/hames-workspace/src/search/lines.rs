//! Matching lines one by one, for answers that are not pages of text.

use std::io;

use grep_searcher::{Searcher, Sink, SinkFinish, SinkMatch};
use hames_tools::{ToolCx, ToolFailure};

use super::find::searched;
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
    for file in finding.found.iter().filter(|file| file.size <= MAX_FILE) {
        if cx.cancel.is_cancelled() {
            return Err(ToolFailure::cancelled());
        }
        // What cannot be read holds nothing that could be shown.
        let Ok(reader) = cx.fs.open(&file.path) else { continue };
        let mut reader = Watched::new(reader, &cx.cancel);
        let mut sink =
            FileLines { wanted, file: &file.path.shown, before: total, found: Vec::new(), count: 0, binary: false };
        let searched = searcher.search_reader(&needle.matcher, &mut reader, &mut sink);
        if searched.is_ok() && !sink.binary {
            total += sink.count;
            page.append(&mut sink.found);
        }
        if total >= MAX_MATCHES {
            break;
        }
    }
    Ok((page, total))
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

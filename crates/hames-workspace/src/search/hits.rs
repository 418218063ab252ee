//! Matches as they come from the searcher, gathered into one page of text.
//!
//! A match is a line, or the lines that a match over several of them touches. The page groups them by file:
//!
//! ```text
//! src/a.rs
//! 11- a line of context
//! 12: a matching line
//! ```

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use tokio_util::sync::CancellationToken;

use super::page::Window;

/// Bytes of a line that are shown: minified files have lines of megabytes.
pub(super) const MAX_LINE: usize = 500;

/// Bytes shown in front of a match in a line that is cut.
const BEFORE_MATCH: usize = 120;

/// Lines shown of one match that goes over many.
const MAX_MATCH_LINES: usize = 50;

/// Matches after which counting stops: more is no answer to any question.
pub(super) const MAX_MATCHES: usize = 100_000;

/// The matches of a search that fall into its window, and how many there are in all.
pub(super) struct Hits {
    window: Window,
    /// Context lines around each match.
    context: usize,
    /// Whether lines are kept, or only counted.
    keep: bool,
    pub(super) text: String,
    pub(super) total: usize,
    pub(super) shown: usize,
    pub(super) files: usize,
    full: bool,
}

impl Hits {
    pub(super) fn new(window: Window, context: usize, keep: bool) -> Self {
        Self { window, context, keep, text: String::new(), total: 0, shown: 0, files: 0, full: false }
    }

    /// Whether counting has ended.
    pub(super) fn at_limit(&self) -> bool {
        self.total >= MAX_MATCHES
    }

    /// Whether a file with this many matches has to be searched here: it has some for the page, or counting ends in it.
    pub(super) fn needs_to_see(&self, matches: usize) -> bool {
        let after = self.total.saturating_add(matches);
        let has_room = self.keep && !self.full && self.shown < self.window.limit;
        after >= MAX_MATCHES || (matches > 0 && has_room && after > self.window.offset)
    }

    /// Takes matches of a file that were counted elsewhere.
    pub(super) fn count(&mut self, matches: usize) {
        self.total += matches;
        self.files += usize::from(matches > 0);
    }

    fn max_line(&self) -> usize {
        MAX_LINE.min(self.window.room / 4).max(40)
    }
}

/// The hits of one file. Dropping it without [`keep`](Self::keep) takes them back: a file may turn out to be binary
/// after its first match.
pub(super) struct FileHits<'a> {
    hits: &'a mut Hits,
    matcher: &'a RegexMatcher,
    cancel: &'a CancellationToken,
    path: &'a str,
    /// Matches in this file.
    pub(super) count: usize,
    /// The searcher met a NUL.
    pub(super) binary: bool,
    before: (usize, usize, usize, bool),
    headed: bool,
    /// The last lines, in case the next one is a match that wants them as context.
    recent: VecDeque<(u64, String)>,
    /// Lines up to this one follow a shown match as its context.
    context_until: u64,
    kept: bool,
}

impl<'a> FileHits<'a> {
    pub(super) fn new(
        hits: &'a mut Hits,
        matcher: &'a RegexMatcher,
        cancel: &'a CancellationToken,
        path: &'a str,
    ) -> Self {
        let before = (hits.text.len(), hits.total, hits.shown, hits.full);
        Self {
            hits,
            matcher,
            cancel,
            path,
            count: 0,
            binary: false,
            before,
            headed: false,
            recent: VecDeque::new(),
            context_until: 0,
            kept: false,
        }
    }

    /// Makes the file's hits part of the page and says how many there are.
    pub(super) fn keep(mut self) -> usize {
        self.kept = true;
        self.hits.files += usize::from(self.count > 0);
        self.count
    }

    /// A match for the window: its lines, with the context in front of it.
    fn show(&mut self, matched: &SinkMatch<'_>, first: u64) {
        let mut block = String::new();
        if !self.headed {
            block.push_str(self.path);
            block.push('\n');
        }
        let header = block.len();
        let from = first.saturating_sub(self.hits.context as u64);
        for (number, line) in self.recent.iter().filter(|(number, _)| *number >= from) {
            block.push_str(&format!("{number}- {line}\n"));
        }
        let lead = header..block.len();
        self.push_match(&mut block, matched, first);
        // The first match of a page is always shown, if need be without its context, so that paging gets on.
        if self.hits.shown == 0 && block.len() > self.hits.window.room {
            block.replace_range(lead, "");
        } else if self.hits.text.len() + block.len() > self.hits.window.room {
            self.hits.full = true;
            return;
        }
        self.hits.text.push_str(&block);
        self.hits.shown += 1;
        self.headed = true;
        self.recent.clear();
        self.context_until = first + matched.lines().count() as u64 - 1 + self.hits.context as u64;
    }

    fn push_match(&self, block: &mut String, matched: &SinkMatch<'_>, first: u64) {
        let max = self.hits.max_line();
        let found = self.matcher.find(matched.bytes()).ok().flatten();
        let mut at = 0;
        for (ordinal, line) in matched.lines().enumerate() {
            if ordinal == MAX_MATCH_LINES || (ordinal > 0 && block.len() > self.hits.window.room / 2) {
                let left = matched.lines().count() - ordinal;
                block.push_str(&format!("… {left} more lines of this match\n"));
                break;
            }
            let around = found.map_or(0..0, |m| m.start().saturating_sub(at)..m.end().saturating_sub(at));
            at += line.len();
            block.push_str(&format!("{}: {}\n", first + ordinal as u64, excerpt(line, around, max)));
        }
    }

    /// A line that is no match of this page: context of the match above, or kept for the one below.
    fn pass(&mut self, number: u64, bytes: &[u8]) {
        if self.hits.context == 0 || !self.hits.keep || self.hits.full {
            return;
        }
        let line = excerpt(bytes, 0..0, self.hits.max_line());
        if number > self.context_until {
            self.recent.push_back((number, line));
            if self.recent.len() > self.hits.context {
                self.recent.pop_front();
            }
            return;
        }
        let line = format!("{number}- {line}\n");
        if self.hits.text.len() + line.len() > self.hits.window.room {
            self.hits.full = true;
        } else {
            self.hits.text.push_str(&line);
        }
    }
}

impl Drop for FileHits<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let (text, total, shown, full) = self.before;
            self.hits.text.truncate(text);
            (self.hits.total, self.hits.shown, self.hits.full) = (total, shown, full);
        }
    }
}

impl Sink for &mut FileHits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.cancel.is_cancelled() {
            return Ok(false);
        }
        let window = self.hits.window;
        let wanted = self.hits.total >= window.offset && self.hits.shown < window.limit;
        self.hits.total += 1;
        self.count += 1;
        if self.hits.keep && !self.hits.full {
            let first = matched.line_number().unwrap_or(0);
            if wanted {
                self.show(matched, first);
            } else {
                (first..).zip(matched.lines()).for_each(|(number, line)| self.pass(number, line));
            }
        }
        Ok(!self.hits.at_limit())
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.pass(context.line_number().unwrap_or(0), context.bytes());
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A line without its end, cut to `max` bytes around what was found in it.
pub(super) fn excerpt(line: &[u8], around: Range<usize>, max: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= max {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = around.start.min(line.len());
    let lead = BEFORE_MATCH.min(max / 4);
    let from = boundary(line, start.saturating_sub(lead).min(line.len() - max));
    let to = boundary(line, from + max);
    let head = if from > 0 { "…" } else { "" };
    let tail = if to < line.len() { "…" } else { "" };
    format!("{head}{}{tail}", String::from_utf8_lossy(&line[from..to]))
}

/// The last place at or before `at` where a character begins.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let continues = |at: usize| bytes.get(at).is_some_and(|b| b & 0xC0 == 0x80);
    // A character has at most four bytes; what looks longer is no UTF-8 and may be cut anywhere.
    (at.saturating_sub(3)..=at).rev().find(|at| !continues(*at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_the_match_between_characters() {
        let line = format!("{}needle{}\r\n", "é".repeat(1000), "ü".repeat(1000));
        let at = line.find("needle").unwrap();
        let cut = excerpt(line.as_bytes(), at..at + 6, 500);
        assert!(cut.contains("needle") && cut.starts_with('…') && cut.ends_with('…'));
        assert!(cut.len() <= 500 + 6 && !cut.contains('\u{fffd}'));
        assert_eq!(excerpt(b"short\r\n", 0..0, 500), "short");
        let end = excerpt(line.as_bytes(), line.len()..line.len(), 500);
        assert!(end.starts_with('…') && end.ends_with('ü'));
        assert_eq!(excerpt(&[0x80; 1000], 0..0, 500).chars().filter(|c| *c == '\u{fffd}').count(), 500);
    }
}

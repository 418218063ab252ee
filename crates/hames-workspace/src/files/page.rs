//! A page of numbered lines out of a stream of text. Holds the page and one line, however large the stream is.

use std::fmt::Write as _;

/// Characters of one line that are shown.
const MAX_LINE: usize = 2_000;

/// Bytes kept for the words below the page.
const FOOTER: usize = 160;

/// Which lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The first line, from 1.
    pub(crate) offset: u64,
    /// Lines at most.
    pub(crate) limit: u64,
    /// Bytes the whole text may have.
    pub(crate) cap_bytes: usize,
    /// What ends a line.
    pub(crate) line_end: u8,
}

/// Collects a page.
#[derive(Debug)]
pub(crate) struct Pager {
    wanted: Wanted,
    page: String,
    /// The beginning of the line that is being collected.
    line: Vec<u8>,
    /// All its bytes.
    line_bytes: u64,
    /// Lines that have ended.
    lines: u64,
    /// Lines on the page.
    shown: u64,
    cut_lines: bool,
    full: bool,
}

impl Pager {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Pager {
            wanted,
            page: String::new(),
            line: Vec::new(),
            line_bytes: 0,
            lines: 0,
            shown: 0,
            cut_lines: false,
            full: false,
        }
    }

    /// Whether the page is complete; what comes after it only counts lines.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Takes the next piece of the stream.
    pub(crate) fn feed(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let end = memchr::memchr(self.wanted.line_end, piece);
            let line = &piece[..end.unwrap_or(piece.len())];
            self.line_bytes += line.len() as u64;
            if !self.full && self.lines + 1 >= self.wanted.offset {
                // A character has at most four bytes; one byte more tells that there is more.
                let room = (MAX_LINE * 4 + 1).saturating_sub(self.line.len());
                self.line.extend_from_slice(&line[..line.len().min(room)]);
            }
            let Some(end) = end else { return };
            self.end_line(true);
            piece = &piece[end + 1..];
        }
    }

    fn end_line(&mut self, ended: bool) {
        let number = self.lines + 1;
        if !self.full && number >= self.wanted.offset {
            self.show(number, ended);
        }
        self.lines = number;
        self.line.clear();
        self.line_bytes = 0;
    }

    fn show(&mut self, number: u64, ended: bool) {
        if self.shown == self.wanted.limit {
            self.full = true;
            return;
        }
        let mut bytes = self.line.as_slice();
        if ended && let [rest @ .., b'\r'] = bytes {
            bytes = rest;
        }
        let text = String::from_utf8_lossy(bytes);
        let end = text.char_indices().nth(MAX_LINE).map_or(text.len(), |(at, _)| at);
        let mut line = format!("{number}\t{}", &text[..end]);
        if end < text.len() || self.line_bytes > self.line.len() as u64 {
            self.cut_lines = true;
            let _ = write!(line, "… (+{} bytes)", self.line_bytes.saturating_sub(end as u64));
        }
        line.push('\n');
        let room = self.wanted.cap_bytes.saturating_sub(FOOTER + self.page.len());
        if line.len() > room {
            self.full = true;
            if self.shown > 0 {
                return;
            }
            // One line larger than the page: as much of it as fits, so that a reader gets on.
            let mut at = room.saturating_sub(8);
            while !line.is_char_boundary(at) {
                at -= 1;
            }
            line.truncate(at);
            line.push_str("…\n");
            self.cut_lines = true;
        }
        self.page.push_str(&line);
        self.shown += 1;
    }

    /// The page with a word about what is not on it. `to_end`: the stream was fed to its end.
    pub(crate) fn finish(mut self, shown_path: &str, to_end: bool) -> String {
        if to_end && self.line_bytes > 0 {
            self.end_line(false);
        }
        let first = self.wanted.offset;
        let next = first + self.shown;
        if self.shown == 0 && to_end {
            return match self.lines {
                0 => format!("{shown_path} is empty."),
                lines => format!("{shown_path} has only {lines} lines."),
            };
        }
        let more = !to_end || next <= self.lines;
        if more && to_end {
            let _ = write!(self.page, "(lines {first}-{} of {}; next offset: {next})", next - 1, self.lines);
        } else if more {
            let _ = write!(self.page, "(lines {first}-{}, more follow; next offset: {next})", next - 1);
        } else {
            self.page.truncate(self.page.trim_end_matches('\n').len());
        }
        if self.cut_lines {
            self.page.push_str("\n(long lines are cut)");
        }
        self.page
    }
}

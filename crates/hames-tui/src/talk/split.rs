//! Long text in pieces that are laid out one by one.
//!
//! Only whole lines decide where a piece ends, so a text that comes in drops is split exactly as the same text at once, and
//! what lies before the last boundary never changes again: while an answer streams, only its last piece is laid out anew.

use std::ops::Range;

use super::text::floor;

/// Bytes of a piece, about: laying one out takes well under a millisecond.
const PIECE_BYTES: usize = 8 * 1024;
/// Lines of a piece of code, output or diff.
const PIECE_LINES: usize = 64;

/// What a piece is to be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reading {
    Markdown,
    /// Lines of a fenced block that begins at `fence`; `line` is the ordinal of the first of them in it.
    Code {
        fence: u32,
        line: u32,
    },
}

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stretch {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) reading: Reading,
    /// Whether an empty row sets it apart from the one before.
    pub(super) gap: bool,
}

impl Stretch {
    pub(super) fn range(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Fence {
    mark: u8,
    len: usize,
    /// Where the line with the mark begins.
    at: usize,
    lines: u32,
    /// A fence inside a list stays a part of the list's piece.
    is_inner: bool,
}

/// Splits Markdown at the boundaries of its outermost blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Splitter {
    done: Vec<Stretch>,
    /// Where the piece that is being read begins.
    start: usize,
    /// Everything before is read; a line begins here.
    read: usize,
    fence: Option<Fence>,
    is_list: bool,
    after_blank: bool,
    gap: bool,
    /// Lines of code in the present piece.
    lines: usize,
    /// What is read next is the rest of a line that was too long.
    is_inside: bool,
}

impl Splitter {
    /// Reads on. `text` has to begin with what was read before.
    pub(super) fn read(&mut self, text: &str) {
        while let Some(len) = text.as_bytes()[self.read..].iter().position(|b| *b == b'\n') {
            let (before, end) = (self.read, self.read + len);
            self.bound(text, end);
            if self.read > before {
                continue;
            }
            if std::mem::take(&mut self.is_inside) {
                self.code_line();
            } else {
                self.line(text, &text[before..end]);
            }
            self.read = end + 1;
            let line = &text[before..end];
            self.after_blank = line.trim().is_empty();
            self.bound(text, self.read);
        }
        self.bound(text, text.len());
    }

    /// The pieces, with the one that may still change last.
    pub(super) fn stretches(&self, text: &str) -> Vec<Stretch> {
        let mut all = self.done.clone();
        if text[self.start.min(text.len())..].trim().is_empty() && !all.is_empty() {
            return all;
        }
        all.push(self.stretch(text.len()));
        all
    }

    /// How many of the pieces never change again.
    pub(super) fn stable(&self) -> usize {
        self.done.len()
    }

    fn stretch(&self, to: usize) -> Stretch {
        let reading = match &self.fence {
            Some(fence) if !fence.is_inner => {
                Reading::Code { fence: fence.at as u32, line: fence.lines - self.lines as u32 }
            }
            _ => Reading::Markdown,
        };
        Stretch { from: self.start as u32, to: to as u32, reading, gap: self.gap }
    }

    fn close(&mut self, text: &str, to: usize, next: usize) {
        let is_code = self.fence.as_ref().is_some_and(|fence| !fence.is_inner);
        if to > self.start && (is_code || !text[self.start..to].trim().is_empty()) {
            let stretch = self.stretch(to);
            self.done.push(stretch);
            self.gap = true;
        }
        self.start = next;
        self.lines = 0;
    }

    fn code_line(&mut self) {
        if let Some(fence) = self.fence.as_mut().filter(|fence| !fence.is_inner) {
            fence.lines += 1;
            self.lines += 1;
        }
    }

    fn line(&mut self, text: &str, line: &str) {
        let (at, next) = (self.read, self.read + line.len() + 1);
        let indent = line.len() - line.trim_start_matches(' ').len();
        let mark = fence_mark(line);
        if let Some(fence) = &self.fence {
            let closes =
                mark.is_some_and(|(mark, len, rest)| mark == fence.mark && len >= fence.len && rest.is_empty());
            if closes && !fence.is_inner {
                self.close(text, at, next);
            }
            if closes {
                self.fence = None;
                return;
            }
            self.code_line();
            if self.lines >= PIECE_LINES {
                self.close(text, next, next);
                self.gap = false;
            }
            return;
        }
        if let Some((mark, len, rest)) = mark
            && !(mark == b'`' && rest.contains('`'))
        {
            let is_inner = indent > 3 || (self.is_list && indent > 0);
            if !is_inner {
                self.close(text, at, next);
                self.is_list = false;
            }
            self.fence = Some(Fence { mark, len, at, lines: 0, is_inner });
            return;
        }
        let is_item = is_item(line);
        let begins = !line.trim().is_empty() && indent <= 1 && self.after_blank && !(self.is_list && is_item);
        if begins || (line.starts_with('#') && self.start < at) {
            self.close(text, at, at);
            self.is_list = false;
        }
        if self.start == at {
            self.is_list = is_item;
        }
    }

    /// A piece that grew too long ends at a line, or inside of one that is too long by itself.
    fn bound(&mut self, text: &str, read: usize) {
        while read - self.start > 2 * PIECE_BYTES {
            let window = &text[self.start..floor(text, self.start + PIECE_BYTES)];
            // Never past what was read: a shorter line that is not whole yet belongs to the rest.
            let cut = window.rfind('\n').map_or(window.len(), |at| at + 1);
            let to = self.start + cut.max(1);
            self.close(text, to, to);
            self.gap = false;
            if to > self.read {
                self.read = to;
                self.is_inside = true;
            } else if self.fence.as_ref().is_some_and(|fence| !fence.is_inner) {
                self.lines = text[to..self.read].bytes().filter(|b| *b == b'\n').count();
            }
        }
    }
}

/// The character, the length and what follows it, of a line that opens or closes a fence.
fn fence_mark(line: &str) -> Option<(u8, usize, &str)> {
    let line = line.trim();
    let mark = *line.as_bytes().first()?;
    let rest = line.trim_start_matches(char::from(mark));
    let len = line.len() - rest.len();
    (matches!(mark, b'`' | b'~') && len >= 3).then_some((mark, len, rest.trim()))
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &line[digits..];
    let mark = if digits > 0 { rest.starts_with(['.', ')']) } else { rest.starts_with(['-', '*', '+']) };
    mark && rest[1..].starts_with([' ', '\t'])
}

/// Plain text in pieces: at most so many lines and about so many bytes each.
pub(crate) fn chunks(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut from = 0;
    while from < text.len() {
        let window = &text[from..floor(text, from + PIECE_BYTES)];
        let ends = window.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        let lines = ends.take(PIECE_LINES).last();
        let len = if window.len() + from == text.len() && lines.is_none_or(|at| count(&window[..at]) < PIECE_LINES) {
            window.len()
        } else {
            lines.unwrap_or(window.len())
        };
        all.push(from..from + len.max(1));
        from += len.max(1);
    }
    all
}

/// Lines of a text; a last one without an end counts.
pub(crate) fn count(text: &str) -> usize {
    let ends = text.bytes().filter(|b| *b == b'\n').count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<(&str, bool)> {
        let mut splitter = Splitter::default();
        splitter.read(text);
        let all = splitter.stretches(text);
        all.iter().map(|s| (text[s.range()].trim_end(), s.reading != Reading::Markdown)).collect()
    }

    #[test]
    fn markdown_is_split_where_its_outermost_blocks_end() {
        for (text, expected) in [
            ("", vec![("", false)]),
            ("one", vec![("one", false)]),
            ("one\ntwo\n\nthree\n", vec![("one\ntwo", false), ("three", false)]),
            // A line that may still grow decides nothing.
            ("one\n\nthree", vec![("one\n\nthree", false)]),
            ("- a\n\n- b\n\n  c\n\nd\n", vec![("- a\n\n- b\n\n  c", false), ("d", false)]),
            ("1. a\n\n2. b\n", vec![("1. a\n\n2. b", false)]),
            ("x\n# h\ny\n", vec![("x", false), ("# h\ny", false)]),
            (
                "a\n```rust\nfn x() {}\n\nlet y;\n```\nb",
                vec![("a", false), ("fn x() {}\n\nlet y;", true), ("b", false)],
            ),
            ("```\nopen", vec![("open", true)]),
            ("- a\n\n  ```\n  x\n\n  y\n  ```\n", vec![("- a\n\n  ```\n  x\n\n  y\n  ```", false)]),
            ("````\n```\n````\nz", vec![("```", true), ("z", false)]),
        ] {
            assert_eq!(pieces(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_in_drops_is_split_as_the_text_at_once() {
        let mut text = "# Head\n\ntext\n\n- a\n- b\n\n```sh\n".to_owned();
        text.push_str(&"echo ✓\n".repeat(150));
        text.push_str("```\n\n| a |\n|---|\n| b |\n\n");
        text.push_str(&"wörd ".repeat(9_000));
        let mut whole = Splitter::default();
        whole.read(&text);
        let mut drops = Splitter::default();
        for (at, c) in text.char_indices() {
            drops.read(&text[..at + c.len_utf8()]);
        }
        assert_eq!(drops.stretches(&text), whole.stretches(&text));
        assert!(whole.stretches(&text).iter().all(|s| s.range().len() <= 2 * PIECE_BYTES));
        assert!(whole.stable() > 8);
    }

    #[test]
    fn chunks_hold_the_whole_text() {
        for text in ["".to_owned(), "a".into(), "a\nb\n".repeat(500), "ü".repeat(20_000), "\n".repeat(129)] {
            let chunks = chunks(&text);
            assert_eq!(chunks.iter().map(|r| &text[r.clone()]).collect::<String>(), text);
            assert!(chunks.iter().all(|r| r.len() <= PIECE_BYTES && count(&text[r.clone()]) <= PIECE_LINES));
        }
    }
}

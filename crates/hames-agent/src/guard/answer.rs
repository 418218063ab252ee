//! The visible answer, as far as it may be called a loop: without fenced code and without lines that hardly have a letter.
//! Code, tables of numbers and rules repeat by nature.

use super::repetition::Repetition;

/// Letters from which on a line counts.
const LETTERS: usize = 3;

/// How the present line is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// It has not shown what it is.
    #[default]
    Open,
    /// It counts.
    Text,
    /// It begins or ends code.
    Fence,
}

/// An answer that streams.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) counted: Repetition,
    /// The beginning of the line, while it has not shown what it is.
    head: String,
    letters: usize,
    line: Line,
    in_code: bool,
    /// Bytes so far, and where `head` begins.
    at: u64,
    head_at: u64,
}

impl Answer {
    /// Reads a piece that follows the last one.
    pub(super) fn feed(&mut self, piece: &str) {
        for part in piece.split_inclusive('\n') {
            self.part(part);
        }
    }

    /// A part of one line, perhaps with its end.
    fn part(&mut self, part: &str) {
        if self.line == Line::Text && !self.in_code {
            self.counted.feed_at(part, self.at);
        } else if self.line == Line::Open {
            if self.head.is_empty() {
                self.head_at = self.at;
            }
            self.head.push_str(part);
            self.letters += part.chars().filter(|c| c.is_alphabetic()).count();
            self.look();
        }
        self.at += part.len() as u64;
        if part.ends_with('\n') {
            (self.line, self.letters) = (Line::Open, 0);
            self.head.clear();
        }
    }

    fn look(&mut self) {
        let shown = self.head.trim_start();
        if shown.starts_with("```") || shown.starts_with("~~~") {
            (self.in_code, self.line) = (!self.in_code, Line::Fence);
            self.head.clear();
        } else if self.letters >= LETTERS || self.head.len() > 4_096 {
            // A line without end and without letters would otherwise never be seen, nor its beginning be let go.
            self.line = Line::Text;
            let head = std::mem::take(&mut self.head);
            if !self.in_code {
                self.counted.feed_at(&head, self.head_at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, cut: usize) -> u64 {
        let mut answer = Answer::default();
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(cut).for_each(|piece| answer.feed(&piece.iter().collect::<String>()));
        answer.counted.tokens()
    }

    #[test]
    fn code_and_lines_of_signs_do_not_count() {
        for (text, counted) in [
            ("one two three\n", 4),
            ("| 1 | 2 |\n|---|---|\n", 0),
            ("```rust\nlet x = 1;\n```\n", 0),
            ("~~~\nlet x = 1;\n~~~\nafter it\n", 3),
            ("  ```\ncode\n  ```\n", 0),
            ("12 34\nab\nabc\n", 1),
            ("漢字です\n", 5),
        ] {
            for cut in 1..8 {
                assert_eq!(tokens(text, cut), counted, "{text} {cut}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_seen() {
        assert!(tokens(&"1 2 ".repeat(5_000), 7) > 3_000);
    }
}

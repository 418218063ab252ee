//! Output as a person would read it: no terminal codes, progress bars at their last state, valid UTF-8.
//!
//! Works on a stream, in pieces of any size, in bounded memory, and gives the same text however the stream is cut. What
//! it has given is final: a line is given when it is complete (or so long that it cannot be a progress bar).
//!
//! A parser of our own rather than a terminal library's: those call back for every character and, like a real terminal,
//! let an escape string that is never ended swallow everything after it. Here plain text is copied by whole runs, and
//! such a string ends with its line.

/// A line longer than this is given in pieces: nothing redraws so much.
const LINE_LIMIT: usize = 64 * 1024;

/// A control sequence longer than this is none.
const SEQUENCE_LIMIT: usize = 256;

/// A device control string (an image, usually) longer than this is none: what follows is text again.
const STRING_LIMIT: usize = 1024 * 1024;

const BACKSPACE: u8 = 0x08;
const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;

/// The first byte of the UTF-8 form of U+0080 to U+00BF; the control characters among them end at U+009F.
const C1_LEAD: u8 = 0xc2;

/// Where the stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After the first byte of a two-byte control character, at a piece's end.
    Lead,
    /// After ESC, and perhaps intermediate bytes.
    Escape,
    /// In a control sequence: its length, and whether it could still be "erase in line".
    Sequence { len: usize, erase: Erase },
    /// In a string that its line's end ends at the latest (titles, links).
    Line { escaped: bool },
    /// In a string that may have lines.
    Lines { len: usize, escaped: bool },
}

/// What "erase in line" would erase, by its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Erase {
    /// From where the next character goes.
    Rest,
    /// What is there.
    Line,
    /// It is another sequence.
    Nothing,
}

/// Cleans a stream.
#[derive(Debug, Default)]
pub struct Cleaner {
    state: State,
    /// The line so far.
    line: String,
    /// A carriage return came: what comes next, unless it is the line's end, replaces the line.
    returned: bool,
    /// The beginning of a character whose rest has not come.
    partial: Vec<u8>,
}

/// Cleans a whole text.
///
/// ```
/// use hames_workspace::shell::clean;
/// assert_eq!(clean(b"\x1b[1m 10%\r 99%\rdone\x1b[0m\r\n"), "done\n");
/// ```
pub fn clean(bytes: &[u8]) -> String {
    let mut cleaner = Cleaner::default();
    let mut out = String::new();
    cleaner.push(bytes, &mut out);
    cleaner.finish(&mut out);
    out
}

impl Cleaner {
    /// Takes the next bytes and appends what they complete.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        while let Some(&byte) = bytes.first() {
            if self.state == State::Text {
                let run = plain_len(bytes);
                if run > 0 {
                    self.text(&bytes[..run], run == bytes.len(), out);
                    bytes = &bytes[run..];
                    continue;
                }
            }
            if self.step(byte, out) {
                bytes = &bytes[1..];
            }
        }
    }

    /// The stream has ended: appends what is left.
    pub fn finish(&mut self, out: &mut String) {
        if self.state == State::Lead {
            self.partial.push(C1_LEAD);
        }
        self.end_partial(out);
        out.push_str(&self.line);
        *self = Self::default();
    }

    /// Takes one byte; `false` where it has to be looked at again in the new state.
    fn step(&mut self, byte: u8, out: &mut String) -> bool {
        match self.state {
            State::Text => {
                self.special(byte, out);
                true
            }
            State::Lead => {
                self.state = State::Text;
                match byte {
                    0x80..=0x9f => self.control(byte),
                    _ => {
                        self.partial.push(C1_LEAD);
                        return false;
                    }
                }
                true
            }
            State::Escape => self.escape(byte),
            State::Sequence { len, erase } => self.sequence(byte, len, erase),
            State::Line { escaped } => self.line_string(byte, escaped),
            State::Lines { len, escaped } => self.lines_string(byte, len, escaped),
        }
    }

    /// A byte that is no plain text.
    fn special(&mut self, byte: u8, out: &mut String) {
        if byte == C1_LEAD {
            self.end_partial(out);
            self.state = State::Lead;
            return;
        }
        self.end_partial(out);
        match byte {
            b'\r' => self.returned = true,
            BACKSPACE if !self.returned => {
                self.line.pop();
            }
            ESCAPE => self.state = State::Escape,
            // Other control characters show nothing.
            _ => {}
        }
    }

    /// A control character beyond ASCII.
    fn control(&mut self, code: u8) {
        self.state = match code {
            0x9b => State::Sequence { len: 0, erase: Erase::Rest },
            0x90 => State::Lines { len: 0, escaped: false },
            0x98 | 0x9d..=0x9f => State::Line { escaped: false },
            _ => State::Text,
        };
    }

    fn escape(&mut self, byte: u8) -> bool {
        self.state = match byte {
            b'[' => State::Sequence { len: 0, erase: Erase::Rest },
            b'P' => State::Lines { len: 0, escaped: false },
            // Titles and links, private strings, and the title of older multiplexers.
            b']' | b'X' | b'^' | b'_' | b'k' => State::Line { escaped: false },
            // Intermediate bytes (character sets) and a second ESC: the sequence goes on.
            0x20..=0x2f | ESCAPE => State::Escape,
            0x30..=0x7e => State::Text,
            // It was none.
            _ => {
                self.state = State::Text;
                return false;
            }
        };
        true
    }

    fn sequence(&mut self, byte: u8, len: usize, erase: Erase) -> bool {
        self.state = match byte {
            0x20..=0x3f if len < SEQUENCE_LIMIT => {
                let erase = match (len, byte) {
                    (0, b'0') => Erase::Rest,
                    (0, b'1' | b'2') => Erase::Line,
                    _ => Erase::Nothing,
                };
                State::Sequence { len: len + 1, erase }
            }
            0x40..=0x7e => {
                if byte == b'K' {
                    self.erase(erase);
                }
                State::Text
            }
            _ => {
                self.state = State::Text;
                return false;
            }
        };
        true
    }

    fn erase(&mut self, erase: Erase) {
        // Without a carriage return the next character goes to the line's end, where there is no rest.
        if erase == Erase::Line || (erase == Erase::Rest && self.returned) {
            self.line.clear();
        }
    }

    fn line_string(&mut self, byte: u8, escaped: bool) -> bool {
        match byte {
            BELL | CANCEL | SUBSTITUTE => self.state = State::Text,
            b'\n' | b'\r' => {
                self.state = State::Text;
                return false;
            }
            b'\\' if escaped => self.state = State::Text,
            _ if escaped => {
                self.state = State::Escape;
                return false;
            }
            _ => self.state = State::Line { escaped: byte == ESCAPE },
        }
        true
    }

    fn lines_string(&mut self, byte: u8, len: usize, escaped: bool) -> bool {
        match byte {
            CANCEL | SUBSTITUTE => self.state = State::Text,
            b'\\' if escaped => self.state = State::Text,
            _ if escaped => {
                self.state = State::Escape;
                return false;
            }
            _ if len >= STRING_LIMIT => self.state = State::Text,
            _ => self.state = State::Lines { len: len + 1, escaped: byte == ESCAPE },
        }
        true
    }

    /// A run of plain text; `open` where its last character may go on in the next piece.
    fn text(&mut self, run: &[u8], open: bool, out: &mut String) {
        let joined;
        let mut rest = if self.partial.is_empty() {
            run
        } else {
            let mut bytes = std::mem::take(&mut self.partial);
            bytes.extend_from_slice(run);
            joined = bytes;
            &joined
        };
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.print(text, out);
                    return;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    if let Ok(good) = std::str::from_utf8(good) {
                        self.print(good, out);
                    }
                    match error.error_len() {
                        None if open => {
                            self.partial = bad.to_vec();
                            return;
                        }
                        len => {
                            self.print("\u{fffd}", out);
                            rest = &bad[len.unwrap_or(bad.len())..];
                        }
                    }
                }
            }
        }
    }

    /// The character that has begun does not go on.
    fn end_partial(&mut self, out: &mut String) {
        if !self.partial.is_empty() {
            self.partial.clear();
            self.print("\u{fffd}", out);
        }
    }

    fn print(&mut self, text: &str, out: &mut String) {
        let Some(first) = text.chars().next() else {
            return;
        };
        if std::mem::take(&mut self.returned) && first != '\n' {
            self.line.clear();
        }
        let open = match text.rfind('\n') {
            Some(end) => {
                let (complete, open) = text.split_at(end + 1);
                out.push_str(&self.line);
                out.push_str(complete);
                self.line.clear();
                open
            }
            None => text,
        };
        self.extend_line(open, out);
    }

    /// Appends to the line and gives what passes its limit, at the same places however the stream is cut.
    fn extend_line(&mut self, mut text: &str, out: &mut String) {
        while self.line.len() + text.len() > LINE_LIMIT {
            let (fits, rest) = split_within(text, LINE_LIMIT - self.line.len());
            out.push_str(&self.line);
            out.push_str(fits);
            self.line.clear();
            text = rest;
        }
        self.line.push_str(text);
    }
}

/// Splits after at most `limit` bytes, between two characters.
fn split_within(text: &str, limit: usize) -> (&str, &str) {
    let at = (0..=limit.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
    text.split_at(at)
}

/// How many bytes from here are text that needs no thought but decoding.
fn plain_len(bytes: &[u8]) -> usize {
    // A loop over whole slices of a table look-up: this is where gigabytes go through.
    bytes.iter().position(|&b| SPECIAL[usize::from(b)]).unwrap_or(bytes.len())
}

/// Bytes that are, or may begin, a control character; line feed and tab are text.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = byte != b'\n' as usize && byte != b'\t' as usize;
        byte += 1;
    }
    table[0x7f] = true;
    table[C1_LEAD as usize] = true;
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shell::testing;

    fn clean_in_pieces(bytes: &[u8], piece: usize) -> String {
        let mut cleaner = Cleaner::default();
        let mut out = String::new();
        for piece in bytes.chunks(piece) {
            cleaner.push(piece, &mut out);
        }
        cleaner.finish(&mut out);
        out
    }

    #[track_caller]
    fn check(input: &[u8], expected: &str) {
        for piece in [usize::MAX, 1, 2, 3, 7] {
            assert_eq!(clean_in_pieces(input, piece), expected, "{} in pieces of {piece}", input.escape_ascii());
        }
    }

    #[test]
    fn progress_bars_end_at_their_last_state() {
        check(b"\x1b[32mP 10%\rP 50%\rP 100%\x1b[0m\nDone\x1b]0;title\x07\x1b[2J\n", "P 100%\nDone\n");
        check(b"\r 1/3\r 2/3\r 3/3\n", " 3/3\n");
        check(b"downloading everything\rdone\n", "done\n");
        check(b"working |\x08/\x08-\x08\\\x08done\n", "working done\n");
        check(b"12 %\x1b[2K\r13 %\x1b[K\r\x1b[K", "");
        check(b"fetch\r\x1b[Kunpack\r\x1b[Kready\n", "ready\n");
        check(b"a\r\r\r\nb", "a\nb");
        check("\r⠋ wait\r⠙ wait\r✔ ready\n".as_bytes(), "✔ ready\n");
        check(b"50%\r", "50%");
        check(b"1\r2\n3\r4\n", "2\n4\n");
    }

    #[test]
    fn terminal_codes_show_nothing() {
        check(b"\x1b[38;5;196mred\x1b[0m", "red");
        check(b"\x1b[01;31m\x1b[Kmatch\x1b[m\x1b[K rest", "match rest");
        check(b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\!", "link!");
        check(b"\x1b]0;title\x07text", "text");
        check(b"\x1bP1$r0m\x1b\\text", "text");
        check(b"\x1bPq#0;1\n#1\n\x1b\\text", "text");
        check(b"\x1b_Gf=100;AAAA\x1b\\\x1b^private\x1b\\text", "text");
        check(b"\x1bktitle\x1b\\text", "text");
        check(b"\x1b(B\x1b)0\x1b=\x1b>\x1b7\x1b8\x1bMtext", "text");
        check(b"\x1b[?25l\x1b[?1049htext\x1b[?25h", "text");
        check(b"\x1b[1;2\x1b[3mtext", "text");
        check("\u{9b}31mred\u{9d}title\x07\u{85}\u{90}x\x1b\\!".as_bytes(), "red!");
        check(b"\x1b\x1b[1mtext", "text");
    }

    #[test]
    fn other_control_characters_are_dropped() {
        check(b"a\x00b\x01c\x07d\x0be\x0cf\x7fg", "abcdefg");
        check(b"tab\tstays\nand lines\n", "tab\tstays\nand lines\n");
        check(b"one\r\ntwo\r\n", "one\ntwo\n");
        check(b"ab\x08c\n", "ac\n");
        check(b"\x08\x08a\n\x08b", "a\nb");
        check(b"N\x08NA\x08AM\x08ME\x08E", "NAME");
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        check(b"\xff\xfe\x00", "\u{fffd}\u{fffd}");
        check(b"caf\xe9\n", "caf\u{fffd}\n");
        check(b"\xe2\x82", "\u{fffd}");
        check(b"\xe2\x82\x1b[0mx", "\u{fffd}x");
        check(b"\xc2", "\u{fffd}");
        check(b"\xc2x\xc2\n", "\u{fffd}x\u{fffd}\n");
        check(b"\xf0\x9f\x98", "\u{fffd}");
        check("é ° 日本 😀\n".as_bytes(), "é ° 日本 😀\n");
    }

    #[test]
    fn what_never_ends_swallows_at_most_its_line_or_limit() {
        check(b"\x1b]0;never ended\nnext\n", "\nnext\n");
        check(b"\x1b", "");
        check(b"text\x1b[12", "text");
        check(b"\x1b]0;cut\x18text", "text");
        let digits = [&b"\x1b["[..], &b"1".repeat(SEQUENCE_LIMIT + 10)[..], b"\n"].concat();
        assert_eq!(clean(&digits), format!("{}\n", "1".repeat(10)));
        let image = [&b"\x1bP"[..], &b"x".repeat(STRING_LIMIT + 6)[..]].concat();
        assert_eq!(clean(&image), "xxxxx");
    }

    #[test]
    fn a_line_without_end_is_given_in_pieces() {
        let mut cleaner = Cleaner::default();
        let mut out = String::new();
        for _ in 0..100 {
            cleaner.push(&[b'x'; 10_000], &mut out);
            assert!(cleaner.line.len() <= LINE_LIMIT && cleaner.line.capacity() <= 4 * LINE_LIMIT);
        }
        cleaner.finish(&mut out);
        assert_eq!(out.len(), 1_000_000);
    }

    /// Pieces that terminals care about, and noise.
    fn noise() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => any::<Vec<u8>>(),
            4 => "[ -~]{0,8}".prop_map(String::into_bytes),
            4 => prop::sample::select(vec![
                &b"\x1b["[..], b"\x1b]", b"\x1bP", b"\x1b\\", b"\x07", b"\r", b"\n", b"\r\n", b"\x08", b"31m", b"2K", b"K",
                b"\xc2", b"\x9b", b"\xe2\x82\xac", b"\xe2", b"\x1b", b"\x18",
            ]).prop_map(<[u8]>::to_vec),
            1 => (60_000usize..70_000).prop_map(|n| vec![b'l'; n]),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(testing::cases())]

        #[test]
        fn no_terminal_code_is_left_whatever_comes(bytes in noise()) {
            let text = clean(&bytes);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
        }

        #[test]
        fn pieces_give_the_same_as_the_whole(bytes in noise(), piece in 1usize..40) {
            prop_assert_eq!(clean_in_pieces(&bytes, piece), clean(&bytes));
        }

        #[test]
        fn clean_text_stays_as_it_is(text in "([^\\p{Cc}]|[\n\t]){0,200}") {
            prop_assert_eq!(clean(text.as_bytes()), text);
        }
    }
}

//! Makes text from models, tools and files harmless for a terminal.
//!
//! Characters that could move the cursor, recolour, hide or reorder what is shown come out as visible escapes
//! (`\x1b`, `\u{202e}`). Letters of every script stay, joiners included, so no language is damaged. `--json` carries
//! the exact text.

use std::fmt::Write;

use hames_protocol::is_unprintable;

/// Whether a character can make a terminal show something other than the text. Line ends and tabs are the layout of it.
pub(crate) fn is_harmful(c: char) -> bool {
    is_unprintable(c) && c != '\n' && c != '\t'
}

/// Text over several lines, in pieces. A line end of CR LF becomes LF, also across two pieces.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    /// The piece before ended in CR: whether it belongs to a line end is not known yet.
    return_waits: bool,
}

impl Cleaner {
    /// Adds the harmless form of `piece` to `out`.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        for c in piece.chars() {
            if std::mem::take(&mut self.return_waits) && c != '\n' {
                escape('\r', out);
            }
            match c {
                '\r' => self.return_waits = true,
                c if is_harmful(c) => escape(c, out),
                c => out.push(c),
            }
        }
    }

    /// Adds what was held back at the end of the text.
    pub(crate) fn end(&mut self, out: &mut String) {
        if std::mem::take(&mut self.return_waits) {
            escape('\r', out);
        }
    }
}

/// Text over several lines, whole.
pub(crate) fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut cleaner = Cleaner::default();
    cleaner.push(text, &mut out);
    cleaner.end(&mut out);
    out
}

/// Text that has to stay on one line: line ends and tabs are shown as escapes too.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) || c == '\n' || c == '\t' { escape(c, &mut out) } else { out.push(c) }
    }
    out
}

fn escape(c: char, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
        c => write!(out, "\\u{{{:x}}}", c as u32),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_rule_the_terminal_is_shown_and_everything_else_stays() {
        for (text, shown) in [
            ("echo ok && touch evil \u{1b}[24D\u{1b}[K && echo ok", r"echo ok && touch evil \x1b[24D\x1b[K && echo ok"),
            ("rm -rf x\rls", r"rm -rf x\rls"),
            ("ab\u{8}\u{8}cd", r"ab\x08\x08cd"),
            ("a\u{202e}cod.exe", r"a\u{202e}cod.exe"),
            ("\u{9b}31m", r"\x9b31m"),
            ("\u{1b}]0;title\u{7}", r"\x1b]0;title\x07"),
            ("\u{1b}]8;;http://evil\u{1b}\\link", "\\x1b]8;;http://evil\\x1b\\link"),
            ("nul\0del\u{7f}", r"nul\x00del\x7f"),
            ("a\u{2066}b\u{2069}", r"a\u{2066}b\u{2069}"),
            ("bom\u{feff}zwsp\u{200b}", r"bom\u{feff}zwsp\u{200b}"),
            ("tag\u{e0041}", r"tag\u{e0041}"),
            ("line\u{2028}sep", r"line\u{2028}sep"),
            ("tab\tand\nline\r\nend", "tab\tand\nline\nend"),
            (
                "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم ünïcode 漢字",
                "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم ünïcode 漢字",
            ),
            ("ends in return\r", r"ends in return\r"),
        ] {
            assert_eq!(block(text), shown);
        }
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let text = "a\r\nb\rc\r\r\nd\u{1b}[0m\r";
        for at in text.char_indices().map(|(at, _)| at) {
            let (mut out, mut cleaner) = (String::new(), Cleaner::default());
            cleaner.push(&text[..at], &mut out);
            cleaner.push(&text[at..], &mut out);
            cleaner.end(&mut out);
            assert_eq!(out, block(text), "split at {at}");
        }
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(line("a\nb\tc\r\u{1b}"), r"a\nb\tc\r\x1b");
    }
}

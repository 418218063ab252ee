//! A question as it is shown: exactly what will run, why it is asked, what would change, what an answer allows.
//!
//! Every line of what comes from outside stands behind a bar and is wrapped at the width of the terminal, so that blanks
//! cannot push anything out of sight. Characters that would not show, or would move others, are written as escapes, and
//! it is said that there are such. Where something is too long it is cut in the middle with the number of lines left
//! out, and can be asked for as a whole.

use std::fmt::Write as _;

use hames_protocol::{ApprovalAsked, Grant, QuestionAsked, is_unprintable};
use serde_json::Value;

use crate::output::{Style, clean};

/// Lines of one text that are shown without being asked for: what fits a usual terminal beside the rest.
const SHORT_LINES: usize = 30;
/// Of those, how many are its last ones: a command's end does as much as its beginning.
const LAST_LINES: usize = 10;
/// Columns of a text at least, however narrow the terminal says it is.
const LEAST_WIDTH: usize = 20;
/// Columns from one tab stop to the next.
const TAB: usize = 4;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Short,
    Whole,
}

/// A question laid out.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) text: String,
    /// Lines that are not shown.
    pub(super) left_out: usize,
}

/// Lays a question out for a terminal of so many columns.
pub(super) fn sheet(asked: &ApprovalAsked, width: usize, style: Style, extent: Extent) -> Sheet {
    let mut writer = Writer { text: String::new(), width: width.max(LEAST_WIDTH), style, extent, left_out: 0 };
    writer.heading(&format!("{} needs a decision", clean::line(&asked.name)));
    writer.field("why", &asked.reason);
    match &asked.input {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| writer.field(name, &as_text(value))),
        other => writer.field("input", &as_text(other)),
    }
    writer.warn_of_escapes(asked);
    if let Some(diff) = &asked.diff {
        writer.field("changes", &format!("{}  +{} −{}", diff.path, diff.added, diff.removed));
        writer.block(&diff.text, |style, line| match line.as_bytes().first() {
            Some(b'+') => style.green(line),
            Some(b'-') => style.red(line),
            _ => style.dim(line),
        });
    }
    Sheet { text: writer.text, left_out: writer.left_out }
}

/// Lays a tool's question out: its text, and its choices by number.
pub(super) fn question(asked: &QuestionAsked, width: usize, style: Style) -> String {
    let width = width.max(LEAST_WIDTH);
    let mut writer = Writer { text: String::new(), width, style, extent: Extent::Whole, left_out: 0 };
    writer.heading("A question for you");
    writer.block(&asked.text, |_, line| line.to_owned());
    (1..).zip(&asked.choices).for_each(|(number, choice)| writer.field(&number.to_string(), choice));
    writer.text
}

/// What an answer for more than this once allows, one line each.
pub(crate) fn granted(grants: &[Grant]) -> Vec<String> {
    grants
        .iter()
        .map(|grant| match grant {
            Grant::Path { path, write: true } => {
                format!("reading and changing {} and what is below it", clean::line(path))
            }
            Grant::Path { path, write: false } => format!("reading {} and what is below it", clean::line(path)),
            Grant::Command { words } => format!("running exactly: {}", clean::line(&quoted(words))),
            Grant::Host { host } => format!("speaking to {}", clean::line(host)),
            Grant::Tool { name } => format!("every call of {}", clean::line(name)),
        })
        .collect()
}

/// Words so that it can be told where each begins and ends.
fn quoted(words: &[String]) -> String {
    let is_plain = |word: &&String| {
        !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "'\"\\$`&|;<>()*?[]{}!#~".contains(c))
    };
    let quote = |word: &String| {
        if is_plain(&word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

struct Writer {
    text: String,
    width: usize,
    style: Style,
    extent: Extent,
    left_out: usize,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, text: &str) {
        let bold = self.style.bold(text);
        self.line("");
        self.line(&bold);
    }

    /// A name with its value: beside it where that is one short line, else below it.
    fn field(&mut self, name: &str, value: &str) {
        let name = clean::line(name);
        let fits = !value.contains('\n') && value.trim() == value && columns(&shown(value)) + 12 <= self.width;
        if fits {
            let line = format!("  {} {}", self.style.dim(&format!("{name:<8}")), shown(value));
            return self.line(line.trim_end());
        }
        let line = format!("  {}", self.style.dim(&name));
        self.line(&line);
        self.block(value, |_, line| line.to_owned());
    }

    /// A text behind a bar, wrapped; a line that goes on is told from a new one by its bar.
    fn block(&mut self, text: &str, paint: impl Fn(Style, &str) -> String) {
        let room = self.width.saturating_sub(4).max(LEAST_WIDTH - 4);
        let mut lines = Vec::new();
        // `split` and not `lines`: a line end at the end is part of the text.
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let pieces = wrapped(&shown(line), room);
            let bar = |first| if first { "│" } else { "┊" };
            lines.extend(pieces.iter().enumerate().map(|(at, piece)| (bar(at == 0), piece.clone())));
        }
        let (head, cut, tail) = match self.extent {
            Extent::Short if lines.len() > SHORT_LINES => {
                (SHORT_LINES - LAST_LINES, lines.len() - SHORT_LINES, LAST_LINES)
            }
            _ => (lines.len(), 0, 0),
        };
        self.left_out += cut;
        for (at, (bar, piece)) in lines.iter().enumerate() {
            if at == head {
                let line = format!("  {}", self.style.yellow(&format!("⋮ {cut} lines are not shown here")));
                self.line(&line);
            }
            if at < head || at + tail >= lines.len() {
                let line = format!("  {} {}", self.style.dim(bar), paint(self.style, piece));
                self.line(&line);
            }
        }
    }

    /// Says which characters are written as escapes: without it `\x1b` could be four plain characters.
    fn warn_of_escapes(&mut self, asked: &ApprovalAsked) {
        let mut found: Vec<(char, usize)> = Vec::new();
        let mut see = |text: &str| {
            for c in text.chars().filter(|c| is_unprintable(*c) && *c != '\n' && *c != '\t') {
                match found.iter_mut().find(|(known, _)| *known == c) {
                    Some((_, count)) => *count += 1,
                    None => found.push((c, 1)),
                }
            }
        };
        strings(&asked.input, &mut see);
        if found.is_empty() {
            return;
        }
        let mut line = String::from("  careful: escaped here, because it would hide or move text:");
        for (c, count) in found {
            // Writing to a String cannot fail.
            let _ = write!(line, " {} ×{count}", shown(&c.to_string()));
        }
        for piece in wrapped(&line, self.width) {
            let piece = self.style.yellow(&piece);
            self.line(&piece);
        }
    }
}

fn strings(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, see)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            see(name);
            strings(value, see);
        }),
        _ => {}
    }
}

/// One line without its end, tabs laid out, everything that would not show escaped.
fn shown(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for (at, part) in line.split('\t').enumerate() {
        if at > 0 {
            let to_stop = TAB - columns(&out) % TAB;
            out.extend(std::iter::repeat_n(' ', to_stop));
        }
        out.push_str(&clean::line(part));
    }
    out
}

/// Columns a character takes at most: wide ones are not told from others, so that no line is ever too long.
fn width_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// The text in pieces of at most so many columns, nothing left out; one empty piece for the empty text.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let width = width_of(c);
        if used + width > room {
            pieces.push(String::new());
            used = 0;
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
        used += width;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use hames_protocol::{Diff, Label};
    use serde_json::json;

    use super::*;

    fn asked(input: Value) -> ApprovalAsked {
        ApprovalAsked {
            call_id: "c".into(),
            name: "Shell".into(),
            label: Label::default(),
            reason: "a rule asks".into(),
            input,
            diff: None,
            digest: "d".into(),
            grants: vec![],
        }
    }

    fn short(input: Value) -> Sheet {
        sheet(&asked(input), 80, Style::default(), Extent::Short)
    }

    /// What stands behind the bars below the last field, put together again.
    fn read_back(text: &str) -> String {
        let field = text.lines().rfind(|line| matches!(*line, "  command" | "  content")).unwrap();
        let below = text.split_once(&format!("{field}\n")).unwrap().1;
        let mut lines: Vec<String> = Vec::new();
        for line in below.lines() {
            match (line.strip_prefix("  │ "), line.strip_prefix("  ┊ "), lines.last_mut()) {
                (Some(piece), ..) => lines.push(piece.to_owned()),
                (_, Some(piece), Some(last)) => last.push_str(piece),
                _ => {}
            }
        }
        lines.join("\n")
    }

    #[test]
    fn a_short_question_is_a_few_lines() {
        let shown = short(json!({"command": "git push", "timeout_ms": 5000, "flags": {"a": [1, null]}}));
        let expected = "\nShell needs a decision\n  why      a rule asks\n  command  git push\n  timeout_ms 5000\n  \
                        flags    {\"a\":[1,null]}\n";
        assert_eq!((shown.text.as_str(), shown.left_out), (expected, 0));
    }

    #[test]
    fn nothing_in_a_command_can_hide_a_part_of_it() {
        let blanks = " ".repeat(400);
        for (command, visible) in [
            ("echo ok && touch evil \u{1b}[24D\u{1b}[K && echo ok", r"echo ok && touch evil \x1b[24D\x1b[K && echo ok"),
            ("rm -rf x\recho ok", r"rm -rf x\recho ok"),
            ("rm -rf x\u{8}\u{8}\u{8}", r"rm -rf x\x08\x08\x08"),
            ("echo \u{202e}txt.exe", r"echo \u{202e}txt.exe"),
            ("echo a\u{2066}b\u{2069}", r"echo a\u{2066}b\u{2069}"),
            ("echo \u{200b}\u{feff}x", r"echo \u{200b}\u{feff}x"),
            ("echo \u{9b}31m", r"echo \x9b31m"),
            ("echo \u{1b}]8;;http://x\u{7}y", r"echo \x1b]8;;http://x\x07y"),
            ("echo \u{2028}x", r"echo \u{2028}x"),
            ("echo \u{e0041}", r"echo \u{e0041}"),
            ("echo \0", r"echo \x00"),
        ] {
            let shown = short(json!({"command": command}));
            assert!(shown.text.contains(visible), "{visible}\n{}", shown.text);
            assert!(shown.text.chars().all(|c| c == '\n' || !is_unprintable(c)), "{visible}");
            assert!(shown.text.contains("careful: escaped here"), "{visible}");
            assert_eq!(shown.left_out, 0);
        }
        // The same characters as plain text are not warned of.
        assert!(!short(json!({"command": r"printf '\x1b'"})).text.contains("careful"));
        let command = format!("echo ok{blanks}; rm -rf x");
        let shown = short(json!({"command": command}));
        assert_eq!(read_back(&shown.text), command);
        assert!(shown.text.lines().all(|line| line.chars().count() <= 80));
        for command in
            ["echo ok\n\n\n\n; rm -rf x", "  echo ok", "echo ok  ", "a\n", "\n\n", "漢字".repeat(99).as_str()]
        {
            let shown = short(json!({"command": command}));
            assert_eq!(read_back(&shown.text), command.strip_suffix('\n').unwrap_or(command), "{command:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_cut_in_the_middle_and_said_and_shown_when_asked_for() {
        let lines: Vec<String> = (1..=100).map(|n| format!("line {n}")).collect();
        let asked = asked(json!({"content": lines.join("\n")}));
        let cut = sheet(&asked, 80, Style::default(), Extent::Short);
        assert_eq!(cut.left_out, 70);
        assert!(cut.text.contains("│ line 20\n  ⋮ 70 lines are not shown here\n  │ line 91\n"), "{}", cut.text);
        assert!(cut.text.contains("│ line 100\n"));
        let whole = sheet(&asked, 80, Style::default(), Extent::Whole);
        assert_eq!((read_back(&whole.text), whole.left_out), (lines.join("\n"), 0));
    }

    #[test]
    fn changes_are_shown_with_their_counts_and_their_text_cannot_move_the_cursor() {
        let mut asked = asked(json!({"path": "a\u{1b}[2J"}));
        let text = "@@ -1 +1 @@\n-old\u{1b}[1A\n+new\n";
        asked.diff = Some(Diff { path: "a\u{7}".into(), text: text.into(), added: 1, removed: 1 });
        let shown = sheet(&asked, 80, Style::default(), Extent::Short).text;
        assert!(shown.contains("  changes  a\\x07  +1 −1\n  │ @@ -1 +1 @@\n  │ -old\\x1b[1A\n  │ +new\n"), "{shown}");
        assert!(shown.contains("path     a\\x1b[2J\n"), "{shown}");
    }

    #[test]
    fn a_narrow_terminal_loses_nothing() {
        for width in [0, 1, 10, 21, 500] {
            let command = "0123456789".repeat(9);
            let shown = sheet(&asked(json!({"command": command})), width, Style::default(), Extent::Whole).text;
            assert!(shown.contains(&command) || read_back(&shown) == command, "{width}\n{shown}");
        }
    }

    #[test]
    fn a_tools_question_is_shown_whole_with_its_choices_and_cannot_move_the_cursor() {
        let asked = |text: &str, choices: &[&str]| QuestionAsked {
            call_id: "c".into(),
            text: text.into(),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            digest: "d".into(),
        };
        let shown = question(&asked("Which one?\u{1b}[2J", &["red", "dark\u{202e} blue"]), 80, Style::default());
        let expected = "\nA question for you\n  │ Which one?\\x1b[2J\n  1        red\n  2        dark\\u{202e} blue\n";
        assert_eq!(shown, expected);
        let lines: Vec<String> = (1..=100).map(|n| format!("line {n}")).collect();
        let shown = question(&asked(&lines.join("\n"), &[]), 80, Style::default());
        assert!(lines.iter().all(|line| shown.contains(&format!("│ {line}\n"))), "{shown}");
    }

    #[test]
    fn grants_are_said_in_words_that_show_where_each_ends() {
        let words = |words: &[&str]| Grant::Command { words: words.iter().map(|w| (*w).to_owned()).collect() };
        let lines = granted(&[
            Grant::Path { path: "/a\u{1b}".into(), write: true },
            Grant::Path { path: "/a".into(), write: false },
            words(&["git", "commit", "-m", "it's $x", ""]),
            Grant::Host { host: "example.com".into() },
            Grant::Tool { name: "Delete".into() },
        ]);
        let expected = [
            r"reading and changing /a\x1b and what is below it",
            "reading /a and what is below it",
            r"running exactly: git commit -m 'it'\''s $x' ''",
            "speaking to example.com",
            "every call of Delete",
        ];
        assert_eq!(lines, expected);
    }
}

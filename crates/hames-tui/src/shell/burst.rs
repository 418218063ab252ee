//! Keys that came faster than anybody types are a paste, in terminals that do not say so themselves.
//!
//! What came in one read is one burst. Line ends inside it are text, so that a pasted log is never sent line by line. A
//! line end that closes a burst of one short line is Enter: that is how a program types a line and sends it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::decode::Token;
use crate::Input;

/// Characters in one burst from which on they are given as one piece.
const PIECE: usize = 48;
/// Characters of a line that a program may have typed together with Enter.
const TYPED_LINE: usize = 1024;
/// Milliseconds after a paste of this kind in which more is still the same paste.
const GOES_ON: u64 = 60;

/// Puts bursts together.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// When the last burst that was a paste of several lines came.
    pasted_at: Option<u64>,
}

impl Bursts {
    /// What one burst means to the app. Tokens that are about the terminal alone are left out.
    pub(crate) fn take(&mut self, tokens: Vec<Token>, now: u64) -> Vec<Input> {
        let mut out = Vec::new();
        let mut run: Vec<KeyEvent> = Vec::new();
        for token in tokens {
            match token {
                Token::Key(event) if text_of(&event).is_some() => run.push(event),
                other => {
                    self.end(&mut run, now, &mut out);
                    match other {
                        Token::Key(event) => out.push(Input::Key(event)),
                        Token::Mouse(event) => out.push(Input::Mouse(event)),
                        Token::Paste(text) => out.push(Input::Paste(clean(&text))),
                        Token::Focus(on) => out.push(Input::Focus(on)),
                        Token::Ground(_) | Token::Attributes | Token::Keyboard => {}
                    }
                }
            }
        }
        self.end(&mut run, now, &mut out);
        out
    }

    fn end(&mut self, run: &mut Vec<KeyEvent>, now: u64, out: &mut Vec<Input>) {
        let keys = std::mem::take(run);
        if keys.is_empty() {
            return;
        }
        let text: String = keys.iter().filter_map(text_of).collect();
        let goes_on = self.pasted_at.is_some_and(|at| now.saturating_sub(at) <= GOES_ON);
        let is_line_end = |c: char| c == '\r' || c == '\n';
        let inner = text.trim_end_matches(is_line_end);
        let ends = text.len() - inner.len();
        let is_several = inner.contains(is_line_end) || ends > 1 && !inner.is_empty();
        let is_paste = is_several || goes_on || text.chars().nth(TYPED_LINE).is_some();
        // One key alone is one that was pressed.
        if is_paste && keys.len() > 1 {
            self.pasted_at = Some(now);
            out.push(Input::Paste(clean(&text)));
        } else if keys.len() >= PIECE && ends <= 1 {
            out.push(Input::Paste(clean(inner)));
            out.extend(keys.into_iter().skip_while(|key| !text_of(key).is_some_and(is_line_end)).map(Input::Key));
        } else {
            out.extend(keys.into_iter().map(Input::Key));
        }
    }
}

/// What a key would type, where it types.
fn text_of(event: &KeyEvent) -> Option<char> {
    let is_bare = (event.modifiers - KeyModifiers::SHIFT).is_empty();
    match event.code {
        KeyCode::Char(c) if is_bare => Some(c),
        // The line feed of a raw paste.
        KeyCode::Char('j') if event.modifiers == KeyModifiers::CONTROL => Some('\n'),
        KeyCode::Enter if event.modifiers.is_empty() => Some('\r'),
        KeyCode::Tab if event.modifiers.is_empty() => Some('\t'),
        _ => None,
    }
}

/// Text without what terminals would obey; line ends are `\n`.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                out.push('\n');
            }
            '\n' | '\t' => out.push(c),
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                // As far as such a sequence can go.
                while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
                chars.next_if(|c| ('@'..='~').contains(c));
            }
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::decode::Decoder;
    use super::*;

    fn burst(bursts: &mut Bursts, bytes: &str, now: u64) -> Vec<String> {
        let (mut decoder, mut tokens) = (Decoder::default(), Vec::new());
        decoder.feed(bytes.as_bytes(), &mut tokens);
        decoder.settle(&mut tokens);
        let say = |input: Input| match input {
            Input::Key(event) => crate::Chord::of(&event).map_or_else(|| "?".into(), |chord| chord.to_string()),
            Input::Paste(text) => format!("paste {text:?}"),
            other => format!("{other:?}"),
        };
        bursts.take(tokens, now).into_iter().map(say).collect()
    }

    #[test]
    fn line_ends_inside_a_burst_are_text_and_one_behind_a_line_is_enter() {
        let long = "x".repeat(60);
        let pasted_long = format!("paste {long:?}");
        for (bytes, expected) in [
            ("a\nb\r\nc", vec!["paste \"a\\nb\\nc\""]),
            ("a\nb\n", vec!["paste \"a\\nb\\n\""]),
            ("hi\r", vec!["H", "I", "Enter"]),
            ("\r", vec!["Enter"]),
            ("\n", vec!["Ctrl+J"]),
            ("\r\r", vec!["Enter", "Enter"]),
            ("\x1b[200~a\r\nb\x1b[31m\x1b]0;t\x07\x1b[201~\r", vec!["paste \"a\\nb]0;t\"", "Enter"]),
            (&format!("{long}\r"), vec![pasted_long.as_str(), "Enter"]),
            ("ab\x13", vec!["A", "B", "Ctrl+S"]),
        ] {
            let got = burst(&mut Bursts::default(), bytes, 0);
            let upper = |all: &[String]| all.join(" ").to_uppercase();
            assert_eq!(upper(&got), expected.join(" ").to_uppercase(), "{bytes:?}");
        }
    }

    #[test]
    fn a_paste_that_comes_in_several_reads_stays_one_paste() {
        let mut bursts = Bursts::default();
        assert_eq!(burst(&mut bursts, "a\nb", 0), ["paste \"a\\nb\""]);
        assert_eq!(burst(&mut bursts, "b\r", 10), ["paste \"b\\n\""]);
        assert_eq!(burst(&mut bursts, "c\r", 20), ["paste \"c\\n\""]);
        assert_eq!(burst(&mut bursts, "\r", 500), ["Enter"]);
    }
}

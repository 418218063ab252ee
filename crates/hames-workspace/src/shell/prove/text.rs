//! Which texts are looked at at all.

use hames_protocol::is_unprintable;

use super::Refusal;

/// Bytes of a line at most: longer ones are programs, and reading them should not cost more than running them.
pub(super) const LENGTH_LIMIT: usize = 16 * 1024;

/// Refuses what a shell, a grammar and a person could read in different ways before any of them begins.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    if text.len() > LENGTH_LIMIT {
        return Err(Refusal::new(
            "",
            format!("the line has {} bytes, and lines over {LENGTH_LIMIT} bytes are not looked at", text.len()),
            "Use several short commands.",
        ));
    }
    match text.chars().find(|&c| is_odd(c)) {
        None => Ok(()),
        Some(odd) => Err(Refusal::new(
            "",
            format!("the line holds the character U+{:04X}, which can hide or split what is written", u32::from(odd)),
            "Write it without that character; printf can make one where it is needed.",
        )),
    }
}

/// Control characters but for line feed and tab, marks nobody sees, and blanks that are no blanks to a shell.
fn is_odd(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => false,
        '\u{a0}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2800}' => true,
        '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' => true,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. | '\u{fffd}' => true,
        c => c.is_whitespace() || is_unprintable(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_of_any_script_is_looked_at() {
        for text in ["ls -la", "grep 'é ° 日本 😀' f", "a\n\tb", "", "echo ñandú", "grep 'نص' f", "ls ~", "x'\"`$"]
        {
            assert!(check(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn what_hides_or_splits_is_refused_by_its_number() {
        for odd in [
            '\0',
            '\r',
            '\x07',
            '\x08',
            '\x0b',
            '\x0c',
            '\x1b',
            '\x7f',
            '\u{85}',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{200b}',
            '\u{2003}',
            '\u{200d}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2066}',
            '\u{3000}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            let refusal = check(&format!("ls{odd}x")).unwrap_err();
            assert!(refusal.to_string().contains(&format!("U+{:04X}", u32::from(odd))), "{refusal}");
        }
        assert!(check(&"x".repeat(LENGTH_LIMIT)).is_ok());
        assert!(check(&"x".repeat(LENGTH_LIMIT + 1)).is_err());
    }
}

//! Names of sessions that nobody named.

use hames_protocol::{Part, is_unprintable};

/// What a session is called until something is said in it.
pub(crate) const UNNAMED: &str = "session";
/// Characters of a name that is made from a message.
const NAME_CHARS: usize = 48;
/// Numbers that are tried for a name that is taken.
const NUMBERS: u32 = 50;

/// A name made from the first line of a message.
pub(crate) fn after(parts: &[Part]) -> Option<String> {
    let line = parts.iter().find_map(|part| match part {
        Part::Text { text } => text.lines().map(str::trim).find(|line| !line.is_empty()),
        Part::Image { .. } => None,
    })?;
    named(line)
}

/// A line as a name: short, printable, on one line.
pub(crate) fn named(line: &str) -> Option<String> {
    let spaced = line.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let name: String = spaced.filter(|c| !is_unprintable(*c)).take(NAME_CHARS).collect();
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Whether a session was never named.
pub(crate) fn is_unnamed(name: &str) -> bool {
    let number = name.strip_prefix(UNNAMED).and_then(|rest| rest.strip_prefix(" (")?.strip_suffix(')'));
    name == UNNAMED || number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The name, then the name with numbers.
pub(crate) fn numbered(name: &str) -> impl Iterator<Item = String> + use<> {
    let name = name.to_owned();
    (1..=NUMBERS).map(move |n| if n == 1 { name.clone() } else { format!("{name} ({n})") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_first_line_that_says_something() {
        for (text, name) in [
            ("fix the parser\nand more", Some("fix the parser")),
            ("\n\n  \tx\u{202e}y\n", Some("xy")),
            ("a\tb", Some("a b")),
            (" \n ", None),
        ] {
            assert_eq!(after(&[Part::text(text)]).as_deref(), name, "{text:?}");
        }
        assert_eq!(after(&[Part::text("é".repeat(60))]).map(|name| name.chars().count()), Some(48));
    }

    #[test]
    fn only_names_nobody_gave_are_replaced() {
        for (name, unnamed) in
            [("session", true), ("session (2)", true), ("session (x)", false), ("session 2", false), ("mine", false)]
        {
            assert_eq!(is_unnamed(name), unnamed, "{name}");
        }
        assert_eq!(numbered("a").take(3).collect::<Vec<_>>(), ["a", "a (2)", "a (3)"]);
    }
}

//! Paths in what is pasted or dropped onto the terminal.
//!
//! Terminals give a dropped file as text: an address (`file://`), a path in quotes, one with escaped spaces, or bare. Only
//! what is nothing but such paths is taken for one, and even then it is only offered: whether there is such a file, the
//! one who reads it finds out.

use percent_encoding::percent_decode_str;

/// More at once are not offered.
const MAX_PATHS: usize = 10;
/// A longer text is no list of paths.
const MAX_BYTES: usize = 8 * 1024;

/// The paths that a text consists of; empty where it is anything else.
pub(super) fn paths(text: &str) -> Vec<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_BYTES {
        return Vec::new();
    }
    let words: Option<Vec<String>> = words(text).and_then(|words| words.into_iter().map(path).collect());
    match words {
        Some(paths) if paths.len() <= MAX_PATHS => paths,
        // A name with spaces that nobody escaped.
        _ if !text.contains('\n') && has_extension(text) => {
            path(Word { text: text.to_owned(), is_quoted: true }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

struct Word {
    text: String,
    is_quoted: bool,
}

/// Splits as a shell would: spaces, quotes, backslashes. `None` where a quote is not closed.
fn words(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let current = |word: &mut Option<Word>, c: Option<char>, is_quoted: bool| {
            let word = word.get_or_insert(Word { text: String::new(), is_quoted: false });
            word.text.extend(c);
            word.is_quoted |= is_quoted;
        };
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => current(&mut word, Some(c), true),
            (_, '\\') => current(&mut word, Some(chars.next()?), true),
            (Some(_), c) => current(&mut word, Some(c), true),
            (None, '\'' | '"') => {
                quote = Some(c);
                current(&mut word, None, true);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => current(&mut word, Some(c), false),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn path(word: Word) -> Option<String> {
    if let Some(rest) = word.text.strip_prefix("file://") {
        let rest = rest.strip_prefix("localhost").unwrap_or(rest);
        let decoded = percent_decode_str(rest).decode_utf8().ok()?;
        return (decoded.starts_with('/') && decoded.len() > 1 && !decoded.contains(char::is_control))
            .then(|| decoded.into_owned());
    }
    let inner = word.text.strip_prefix("~/").or_else(|| word.text.strip_prefix('/'))?;
    // `/help` is a command and `// note` is text; a bare path has a folder or an ending.
    let is_path =
        !inner.is_empty() && !inner.starts_with('/') && (inner.contains('/') || has_extension(inner) || word.is_quoted);
    is_path.then_some(word.text)
}

fn has_extension(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty() && (1..=8).contains(&end.len()) && end.chars().all(char::is_alphanumeric)
    })
}

/// The last part of a path, for a person.
pub(super) fn name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_make_of_a_dropped_file_is_a_path() {
        for (text, expected) in [
            ("/home/me/a.png", &["/home/me/a.png"][..]),
            ("file:///home/me/a%20b%C3%A4.png\n", &["/home/me/a bä.png"]),
            ("file://localhost/x/y", &["/x/y"]),
            ("'/home/me/it is.png' ", &["/home/me/it is.png"]),
            (r#""/home/me/a \"b\".png""#, &[r#"/home/me/a "b".png"#]),
            (r"/home/me/a\ b.png /tmp/c.txt", &["/home/me/a b.png", "/tmp/c.txt"]),
            ("/home/me/a b.png", &["/home/me/a b.png"]),
            ("~/notes.md", &["~/notes.md"]),
            ("/a.txt\n/b.txt", &["/a.txt", "/b.txt"]),
        ] {
            assert_eq!(paths(text), expected, "{text}");
        }
    }

    #[test]
    fn other_text_is_none() {
        for text in [
            "",
            "hello",
            "/help",
            "/usr",
            "// comment",
            "//x/y",
            "see /home/me/a.png please, and answer",
            "http://x/y.png",
            "file://host/x",
            "file:///",
            "file:///a%00b",
            "'/home/open",
            "/",
            "~",
            "a/b.txt",
            "\\",
        ] {
            assert_eq!(paths(text), Vec::<String>::new(), "{text:?}");
        }
        assert!(paths(&"/a/b ".repeat(4_000)).is_empty());
        assert!(paths(&"/a/b ".repeat(11)).is_empty());
    }
}

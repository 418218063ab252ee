//! Mentions of files: `@` and a name. The server knows the files; questions to it wait until typing pauses, and answers to
//! earlier questions are dropped.

use hames_protocol::SessionId;
use hames_protocol::api::Files;

use super::fuzzy;
use super::menu::Item;
use super::text::{CHIP, line_start};
use crate::{Cx, Effect, Request, Ticket};

/// Milliseconds without a key after which is asked.
const PAUSE_MS: u64 = 60;
/// Longer names are no mention.
const MAX_QUERY: usize = 256;

/// Asking for files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mention {
    due: Option<(u64, String)>,
    asked: Option<(Ticket, String)>,
    found: Option<(String, Files)>,
}

/// The mention that the cursor stands in: where it begins, and what is written of the name.
pub(crate) fn under(text: &str, cursor: usize) -> Option<(usize, String)> {
    let start = line_start(text, cursor);
    let line = &text[start..cursor];
    let at = line.match_indices('@').map(|(at, _)| at).rfind(|at| {
        let before = line[..*at].chars().next_back();
        let begins =
            before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '{' | '"' | '\'' | '`' | ',' | CHIP));
        begins && is_name(&line[at + 1..])
    })?;
    let name = &line[at + 1..];
    Some((start + at, name.strip_prefix('"').unwrap_or(name).replace("\\\"", "\"")))
}

/// Whether what stands behind the `@` is one name as yet: without spaces, or within quotes that are still open.
fn is_name(name: &str) -> bool {
    if name.len() > MAX_QUERY || name.contains(CHIP) {
        return false;
    }
    match name.strip_prefix('"') {
        Some(quoted) => !quoted.replace("\\\"", "").contains('"'),
        None => !name.contains(char::is_whitespace),
    }
}

/// How a path is written as a mention. A folder stays open, so that one can go on into it.
pub(crate) fn written(path: &str) -> String {
    let path = super::text::clean(path).replace('\n', " ");
    let is_folder = path.ends_with('/');
    let is_plain = !path.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    match (is_plain, is_folder) {
        (true, true) => format!("@{path}"),
        (true, false) => format!("@{path} "),
        (false, true) => format!("@\"{}", path.replace('"', "\\\"")),
        (false, false) => format!("@\"{}\" ", path.replace('"', "\\\"")),
    }
}

impl Mention {
    /// Wants the files of a name: at once for the first one, else when typing pauses.
    pub(crate) fn want(&mut self, query: &str, session: Option<&SessionId>, cx: &mut Cx<'_>) {
        let is_known = self.found.as_ref().is_some_and(|(known, _)| known == query)
            || self.asked.as_ref().is_some_and(|(_, asked)| asked == query);
        if is_known {
            self.due = None;
            return;
        }
        let is_first = self.asked.is_none() && self.found.is_none() && self.due.is_none();
        let due = if is_first { cx.now } else { cx.now.saturating_add(PAUSE_MS) };
        self.due = Some((due, query.to_owned()));
        if is_first {
            self.tend(session, cx);
        } else {
            cx.push(Effect::WakeAt(due));
        }
    }

    /// Asks what is due.
    pub(crate) fn tend(&mut self, session: Option<&SessionId>, cx: &mut Cx<'_>) {
        let Some(session) = session else { return };
        match self.due.take() {
            Some((due, query)) if due <= cx.now => {
                let ticket = cx.ask(Request::Files(session.clone(), query.clone()));
                self.asked = Some((ticket, query));
            }
            // An earlier moment may have been asked for by others; ours is still to come.
            Some((due, query)) => {
                self.due = Some((due, query));
                cx.push(Effect::WakeAt(due));
            }
            None => {}
        }
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_looking(&self) -> bool {
        self.asked.is_some() || self.due.is_some()
    }

    /// Takes the answer to the last question; says whether it was that.
    pub(crate) fn take(&mut self, ticket: Ticket, files: Option<&Files>) -> bool {
        match self.asked.take() {
            Some((asked, query)) if asked == ticket => {
                if let Some(files) = files {
                    self.found = Some((query, files.clone()));
                }
                true
            }
            other => {
                self.asked = other;
                false
            }
        }
    }

    /// What there is to choose from for a name: the answer to it, else what fits of the answer before.
    pub(crate) fn items(&self, query: &str) -> (Vec<Item>, bool) {
        let Some((known, files)) = &self.found else { return (Vec::new(), false) };
        let is_exact = known == query;
        let item = |path: &String| {
            let found = fuzzy::find(query, path);
            // The server's own idea of a match counts, ours shows it.
            (is_exact || found.is_some()).then(|| Item {
                value: path.clone(),
                matched: found.map(|m| m.at).unwrap_or_default(),
                about: String::new(),
            })
        };
        (files.files.iter().filter_map(item).collect(), is_exact && files.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_begins_a_word_and_ends_with_it() {
        for (text, expected) in [
            ("@", Some((0, ""))),
            ("see @src/ma", Some((4, "src/ma"))),
            ("(@a", Some((1, "a"))),
            ("@one @two", Some((5, "two"))),
            ("line\n@x", Some((5, "x"))),
            ("@\"my fi", Some((0, "my fi"))),
            ("@\"a \\\"b", Some((0, "a \"b"))),
            ("@\"done\" ", None),
            ("me@host", None),
            ("@a b", None),
            ("none", None),
            ("", None),
            ("漢 @字", Some((4, "字"))),
        ] {
            let found = under(text, text.len());
            assert_eq!(found, expected.map(|(at, name)| (at, name.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn names_with_spaces_are_quoted_and_folders_stay_open() {
        for (path, expected) in [
            ("src/main.rs", "@src/main.rs "),
            ("my notes.md", "@\"my notes.md\" "),
            ("a\"b", "@\"a\\\"b\" "),
            ("src/", "@src/"),
            ("my dir/", "@\"my dir/"),
            ("a\nb\u{1b}", "@\"a b\" "),
        ] {
            let text = written(path);
            assert_eq!(text, expected);
            if path.ends_with('/') {
                assert_eq!(under(&text, text.len()), Some((0, path.to_owned())));
            }
        }
    }
}

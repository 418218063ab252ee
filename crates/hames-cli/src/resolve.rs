//! Which session a command means, and what a new one is called.

use std::path::Path;

use hames_protocol::{SessionId, Settings};
use hames_store::{SessionInfo, Store};
use unicode_segmentation::UnicodeSegmentation;

use crate::exit::Stop;
use crate::output::clean;

/// Characters of a name taken from a prompt.
const NAME_CHARS: usize = 48;
/// Characters of a name somebody chose.
const MAX_NAME_CHARS: usize = 200;
/// Called so where the prompt gives no word.
const UNNAMED: &str = "session";

/// The session of that name or id that a command other than `run` means: in this folder first, else anywhere.
pub(crate) fn existing(store: &Store, folder: &Path, name_or_id: &str) -> Result<SessionInfo, Stop> {
    let mut found = store.find(Some(folder), name_or_id)?;
    if found.is_empty() {
        found = store.find(None, name_or_id)?;
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Stop::usage(format!(
            "there is no session \"{}\"; `hames sessions list --all` shows what there is",
            clean::line(name_or_id)
        ))),
        _ => Err(several(name_or_id, &found)),
    }
}

fn several(name_or_id: &str, found: &[SessionInfo]) -> Stop {
    let places: Vec<String> =
        found.iter().map(|info| format!("  {}  in {}", info.id, clean::line(&info.folder))).collect();
    Stop::usage(format!(
        "\"{}\" may be several sessions; say which by its id:\n{}",
        clean::line(name_or_id),
        places.join("\n")
    ))
}

/// What `run -s` means: an existing session of this folder, or the name of a new one.
pub(crate) enum Named {
    Existing(Box<SessionInfo>),
    New(String),
}

/// Finds what `-s NAME|ID` means in this folder.
pub(crate) fn named(store: &Store, folder: &Path, name_or_id: &str) -> Result<Named, Stop> {
    let wanted = name_or_id.trim();
    if is_id(wanted) {
        let id = SessionId::from(wanted.to_ascii_lowercase());
        let Some(info) = store.session(&id)? else {
            return Err(Stop::usage(format!(
                "there is no session with the id {id}; `hames sessions list --all --json` shows every id"
            )));
        };
        if Path::new(&info.folder) != folder {
            let theirs = clean::line(&info.folder);
            return Err(Stop::usage(format!(
                "session \"{}\" belongs to {theirs}, not to {}; add -C {theirs}",
                clean::line(&info.name),
                folder.display()
            )));
        }
        return Ok(Named::Existing(Box::new(info)));
    }
    check_name(wanted)?;
    // The beginning of an id finds sessions of every folder; a name belongs to this one.
    let mut found = store.find(Some(folder), wanted)?;
    found.retain(|info| Path::new(&info.folder) == folder);
    let by_name = found.iter().position(|info| info.name.to_lowercase() == wanted.to_lowercase());
    match (by_name, found.len()) {
        (Some(at), _) => Ok(Named::Existing(Box::new(found.swap_remove(at)))),
        (None, 0) => Ok(Named::New(wanted.to_owned())),
        (None, 1) => Ok(Named::Existing(Box::new(found.remove(0)))),
        (None, _) => Err(several(wanted, &found)),
    }
}

/// The settings a session is known to have without reading its log.
pub(crate) fn settings_of(info: &SessionInfo) -> Settings {
    let model = info.model.as_deref().and_then(|model| model.parse().ok());
    Settings { model, mode: info.mode, ..Settings::default() }
}

/// Whether text has the shape of an id, so that it is never taken for a name.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Refuses what cannot be a session's name.
pub(crate) fn check_name(name: &str) -> Result<(), Stop> {
    let refuse = |why: &str| Err(Stop::usage(format!("a session cannot be called \"{}\": {why}", clean::line(name))));
    if name.trim().is_empty() {
        return refuse("a name has at least one character");
    }
    if name.chars().count() > MAX_NAME_CHARS {
        return refuse("a name has at most 200 characters");
    }
    if name.chars().any(|c| clean::is_harmful(c) || c == '\n' || c == '\t') {
        return refuse("a name is one line of visible characters");
    }
    if is_id(name) {
        return refuse("that has the shape of an id");
    }
    Ok(())
}

/// A session's first name: the first line of its prompt that says something, cut between characters as people see them.
pub(crate) fn first_name(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let visible: String =
        line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !clean::is_harmful(*c)).collect();
    let mut name = String::new();
    let mut chars = 0;
    for grapheme in visible.trim().graphemes(true) {
        chars += grapheme.chars().count();
        if chars > NAME_CHARS {
            break;
        }
        name.push_str(grapheme);
    }
    let name = name.trim();
    if name.is_empty() || is_id(name) { UNNAMED.into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_is_the_prompts_first_line_of_at_most_48_characters() {
        let long = "x".repeat(60);
        let family = "👨\u{200d}👩\u{200d}👧";
        let flags = "🇩🇪".repeat(30);
        for (prompt, name) in [
            ("make the failing test pass", "make the failing test pass".to_owned()),
            ("\n\n  second line  \nthird", "second line".into()),
            ("a\r\nb", "a".into()),
            (&long, "x".repeat(48)),
            (&format!("{}{family}", "y".repeat(45)), "y".repeat(45)),
            (&format!("{}{family}", "y".repeat(43)), format!("{}{family}", "y".repeat(43))),
            (&flags, "🇩🇪".repeat(24)),
            ("tab\there \u{1b}[31mred\u{202e}", "tab here [31mred".into()),
            ("   ", "session".into()),
            ("\u{1b}\u{1b}", "session".into()),
            ("0198e0b6-0000-7000-8000-000000000000", "session".into()),
        ] {
            assert_eq!(first_name(prompt), name, "{prompt:?}");
        }
    }

    #[test]
    fn an_id_is_told_from_a_name_by_its_shape() {
        for (text, id) in [
            ("0198e0b6-1c2d-7000-8000-00000000000a", true),
            ("0198E0B6-1C2D-7000-8000-00000000000A", true),
            ("0198e0b6-1c2d-7000-8000-00000000000g", false),
            ("0198e0b61c2d70008000000000000000000a", false),
            ("fix-the-bug", false),
            ("", false),
        ] {
            assert_eq!(is_id(text), id, "{text}");
        }
    }

    #[test]
    fn names_that_would_mislead_are_refused() {
        for name in ["", "  ", "a\nb", "a\u{1b}[0m", "a\u{202e}b", "0198e0b6-1c2d-7000-8000-00000000000a"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name(&"x".repeat(201)).is_err());
        for name in ["refactor", "Größe (2)", "修复", "a/b", "-x"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}

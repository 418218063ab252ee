//! The words a model is given before anybody speaks. Short, because every request pays for them; fixed for the life of
//! a session, because every change re-reads the whole prefix. What varies stands in a note on the run's user message.

use hames_protocol::{Mode, SessionState, is_unprintable};

/// How the agent works, for any model. About 200 tokens.
const SYSTEM: &str = include_str!("system.md");

/// Bytes of names of changed files in a note: a few dozen names say enough, the rest can be looked up.
const NOTED_BYTES: usize = 1_000;

/// The system text: how to work, then the project's own instructions in the order given, outermost first.
pub fn system_text<'a>(instructions: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = SYSTEM.trim_end().to_owned();
    for (path, content) in instructions {
        text.push_str("\n\n<instructions file=\"");
        text.push_str(&path.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;"));
        text.push_str("\">\n");
        text.push_str(content.trim_end());
        text.push_str("\n</instructions>");
    }
    text
}

/// The note that goes with a run's first message: the mode, and what became of proposed changes since the last one.
pub fn run_note(mode: Mode, today: &str, state: &SessionState) -> String {
    let rule = match mode {
        Mode::Analyze => "Analyze: look and explain; edits become proposals for the user to apply, nothing is modified",
        Mode::Build => "Build: tools act for real",
    };
    let folder = &state.folder;
    let mut note = format!("[Mode: {rule}. Folder: {folder}. Date: {today}.");
    let open: Vec<&str> = state.open_changes().collect();
    let (applied, discarded) = (&state.settled.applied, &state.settled.discarded);
    let open_is = match mode {
        Mode::Analyze => "Proposals still open",
        Mode::Build => "Proposals still open, so not on disk",
    };
    for (what, paths) in [
        ("The user applied these proposals", applied.iter().map(String::as_str).collect()),
        ("The user discarded these proposals", discarded.iter().map(String::as_str).collect()),
        (open_is, open),
    ] {
        if !paths.is_empty() {
            note.push_str(&format!(" {what}: {}.", named(folder, &paths)));
        }
    }
    note.push(']');
    note
}

/// Paths from the folder, in bounds, and how many more there are.
fn named(folder: &str, paths: &[&str]) -> String {
    let mut text = String::new();
    for (number, path) in paths.iter().enumerate() {
        let below = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
        let name: String = below.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect();
        if number > 0 && text.len() + name.len() > NOTED_BYTES {
            text.push_str(&format!(" and {} more", paths.len() - number));
            break;
        }
        text.push_str(if number == 0 { "" } else { ", " });
        text.push_str(&name);
    }
    text
}

#[cfg(test)]
mod tests {
    use hames_protocol::{BlobRef, ChangeKind, Proposal, Settled};

    use super::*;

    fn state(open: &[&str], applied: &[&str], discarded: &[&str]) -> SessionState {
        let absolute = |path: &&str| format!("/w/{path}");
        let proposal = Proposal {
            call_id: "c".into(),
            at: 0,
            kind: ChangeKind::File,
            base: None,
            base_mode: None,
            content: Some(BlobRef { hash: "h".into(), bytes: 1, dropped: 0, name: None }),
            mode: None,
        };
        SessionState {
            folder: "/w".into(),
            proposals: open.iter().map(|path| (absolute(path), proposal.clone())).collect(),
            settled: Settled {
                applied: applied.iter().map(absolute).collect(),
                discarded: discarded.iter().map(absolute).collect(),
            },
            ..SessionState::default()
        }
    }

    #[test]
    fn the_note_says_the_mode_and_what_became_of_proposals() {
        let analyze = "[Mode: Analyze: look and explain; edits become proposals for the user to apply, nothing is \
                       modified. Folder: /w. Date: today.";
        let build = "[Mode: Build: tools act for real. Folder: /w. Date: today.";
        for (mode, state, note) in [
            (Mode::Analyze, state(&[], &[], &[]), format!("{analyze}]")),
            (Mode::Build, state(&[], &[], &[]), format!("{build}]")),
            (Mode::Analyze, state(&["b", "a/x"], &[], &[]), format!("{analyze} Proposals still open: a/x, b.]")),
            (Mode::Build, state(&["a"], &[], &[]), format!("{build} Proposals still open, so not on disk: a.]")),
            (
                Mode::Build,
                state(&["a"], &["b", "c"], &["d\ne]"]),
                format!(
                    "{build} The user applied these proposals: b, c. The user discarded these proposals: d\u{fffd}e]. \
                     Proposals still open, so not on disk: a.]"
                ),
            ),
        ] {
            assert_eq!(run_note(mode, "today", &state), note);
        }
    }

    #[test]
    fn the_note_stays_short_however_much_is_open() {
        let paths: Vec<String> = (0..5_000).map(|number| format!("folder/file {number:04}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let note = run_note(Mode::Build, "today", &state(&paths, &paths, &paths));
        assert!(note.len() < 3 * NOTED_BYTES + 600, "{}", note.len());
        assert!(note.contains("folder/file 0000, folder/file 0001") && note.contains(" more."), "{note}");
        let long = "x".repeat(2 * NOTED_BYTES);
        assert!(run_note(Mode::Build, "today", &state(&[&long, "y"], &[], &[])).contains(" and 1 more."));
    }
}

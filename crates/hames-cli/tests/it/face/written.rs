//! What is typed is not lost: by a kill, by another terminal, by leaving.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::Ends;
use super::screen::Screen;
use crate::kit::{User, signal, until};

/// Whether a draft with this text is in a file.
fn is_kept(user: &User, text: &str) -> bool {
    kept(user).iter().any(|path| std::fs::read_to_string(path).unwrap_or_default().contains(text))
}

fn kept(user: &User) -> Vec<PathBuf> {
    let folder = user.home().join("written/drafts");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn a_draft_outlives_a_kill_and_two_terminals_keep_their_own() {
    let user = User::new();
    let _ends = Ends(&user);
    let mut first = Screen::open(&user, &[]);
    first.until_shows("new session");
    first.types("a long thought");
    let mut second = Screen::open(&user, &[]);
    second.until_shows("new session");
    second.types("another one");
    until("both drafts", || is_kept(&user, "a long thought") && is_kept(&user, "another one"));
    assert!(!second.shown().contains("a long thought"), "it is the other terminal's as long as that lives");
    for path in kept(&user) {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    signal(&first.child, "KILL");
    first.end();
    let mut third = Screen::open(&user, &[]);
    third.until("the draft", |shown| shown.contains("a long thought") && !shown.contains("another one"));
    third.types(" and more");
    third.until_shows("a long thought and more");
    // Leaving keeps it at once; what is deleted by hand is gone.
    third.types("\x04");
    signal(&third.child, "TERM");
    third.end();
    assert!(is_kept(&user, "a long thought and more"));
    let mut fourth = Screen::open(&user, &[]);
    fourth.until_shows("a long thought and more");
    fourth.types("\x15");
    fourth.until("an empty prompt", |shown| !shown.contains("a long thought"));
    fourth.types("\x04");
    assert_eq!(fourth.end().0, 0);
    assert!(!is_kept(&user, "a long thought") && is_kept(&user, "another one"));
    signal(&second.child, "HUP");
    second.end();
    assert_eq!(kept(&user).len(), 1);
}

#[test]
fn what_was_sent_is_in_the_history_of_every_later_terminal_of_the_folder() {
    let (user, _provider) = User::saying("noted");
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("remember me");
    screen.types("\r");
    screen.until("the answer", |shown| shown.contains("noted") && !shown.contains("thinking"));
    screen.types("\x04");
    assert_eq!(screen.end().0, 0);
    let mut next = Screen::open(&user, &[]);
    next.until_shows("goes on with");
    next.types("\x1b[A");
    next.until_shows("› remember me");
    next.types("\x15\x04");
    assert_eq!(next.end().0, 0);
}

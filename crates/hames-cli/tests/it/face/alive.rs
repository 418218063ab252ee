//! While it is open: resizing, a second terminal, a server that dies.

use hames_testkit::{Gate, Script, Turn};

use super::Ends;
use super::screen::Screen;
use crate::kit::{PATIENCE, User};
use crate::server::{pid_of, send};

fn lines(count: usize) -> String {
    (0..count).map(|n| format!("row {n:03} of the answer\n\n")).collect()
}

#[test]
fn resizing_while_text_streams_ends_in_what_a_fresh_screen_shows() {
    let gate = Gate::new();
    let of_script = gate.clone();
    let (user, _provider) =
        User::with(Script::new().respond(move |_| Turn::text(lines(60)).chunk_chars(7).gate(20, of_script.clone())));
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("tell");
    screen.types("\r");
    assert!(gate.reached_within(PATIENCE));
    for turn in 0..20 {
        let (columns, rows) = [(120, 40), (40, 40), (120, 5), (1, 1), (0, 0)][turn % 5];
        screen.resize(columns, rows);
        if turn == 3 {
            gate.open();
        }
    }
    screen.resize(100, 30);
    screen.until("the end", |shown| shown.contains("row 059") && !shown.contains("answering"));
    let mut fresh = Screen::open(&user, &["-c"]);
    fresh.resize(100, 30);
    fresh.until("the same at a fresh terminal", |shown| shown.contains("row 059") && shown == screen.shown());
    for screen in [&mut screen, &mut fresh] {
        screen.types("\x04");
    }
    assert_eq!((screen.end().0, fresh.end().0), (0, 0));
}

#[test]
fn whoever_reads_further_up_stays_there_through_any_resizing() {
    let (user, _provider) = User::with(Script::new().respond(|_| Turn::text(lines(60))));
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.resize(120, 40);
    screen.until_shows("new session");
    screen.types("tell");
    screen.types("\r");
    screen.until("the end", |shown| shown.contains("row 059") && shown.contains("first token"));
    for _ in 0..2 {
        screen.types("\x1b[5~");
    }
    let before = screen.until("an earlier page", |shown| !shown.contains("row 059") && shown.contains("row 020"));
    for turn in 0..20 {
        let (columns, rows) = [(40, 40), (120, 5), (120, 40)][turn % 3];
        screen.resize(columns, rows);
    }
    screen.resize(120, 40);
    let after = screen.until("the same place", |shown| shown == before);
    assert_eq!(after.matches("what is to be done?").count(), 1, "one prompt: {after}");
    screen.types("\x04");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn a_server_that_dies_is_there_again_and_two_terminals_show_the_same() {
    let (user, _provider) =
        User::with(Script::new().respond(|request| Turn::text(format!("heard {}", request.last_text().len()))));
    let _ends = Ends(&user);
    let mut first = Screen::open(&user, &["-s", "shared"]);
    first.until_shows("new session");
    first.types("one");
    first.types("\r");
    first.until("the first answer", |shown| shown.contains("heard") && !shown.contains("thinking"));
    let mut second = Screen::open(&user, &["-s", "shared"]);
    second.until_shows("heard");
    let server = pid_of(&user);
    send(server, "KILL");
    // Typed while there may be no server: it is sent when there is one.
    second.types("two");
    second.types("\r");
    let both =
        |shown: &str| shown.matches("heard").count() == 2 && shown.contains("two") && !shown.contains("no server");
    second.until("the second answer", both);
    first.until("the second answer here", both);
    assert_ne!(pid_of(&user), server);
    for screen in [&mut first, &mut second] {
        screen.types("\x04");
    }
    assert_eq!((first.end().0, second.end().0), (0, 0));
}

#[test]
fn a_paste_without_brackets_is_not_sent_line_by_line() {
    let (user, provider) = User::saying("fine");
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("a\nb\r\nc");
    screen.until("three lines", |shown| {
        ["a", "b", "c"]
            .iter()
            .all(|line| shown.lines().any(|row| row.trim_start_matches(['›', ' ', '│']).trim() == *line))
    });
    assert!(!provider.has_requests_within(1, std::time::Duration::from_millis(1)));
    screen.types("\x1b[200~ and\nmore\x1b[201~\r");
    screen.until("the answer", |shown| shown.contains("fine"));
    let heard = provider.requests()[0].last_text();
    assert!(heard.contains("a\nb\nc and\nmore"), "{heard}");
    assert_eq!(provider.requests().len(), 1);
    screen.types("\x04");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn a_restart_in_mid_stream_is_told_in_the_conversation_and_heals() {
    let gate = Gate::new();
    let (of_script, first) = (gate.clone(), std::sync::atomic::AtomicBool::new(true));
    let (user, _provider) =
        User::with(Script::new().respond(
            move |request| match first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                true => Turn::text(lines(9)).chunk_chars(7).gate(20, of_script.clone()),
                false => Turn::text(format!("heard {}", request.last_text().len())),
            },
        ));
    let _ends = Ends(&user);
    let mut first = Screen::open(&user, &["-s", "shared"]);
    first.until_shows("new session");
    first.types("tell");
    first.types("\r");
    assert!(gate.reached_within(PATIENCE));
    let mut second = Screen::open(&user, &["-s", "shared"]);
    second.until_shows("row 003");
    user.ok(&["server", "restart", "--now"]);
    gate.open();
    for screen in [&first, &second] {
        let shown = screen.until("the end of the run", |shown| {
            shown.contains("cut:") && !shown.contains("answering") && !shown.contains("server stopped")
        });
        assert!(!shown.contains("cannot be read") && !shown.contains("no session"), "{shown}");
        assert_eq!(shown.matches("row 002").count(), 1, "{shown}");
    }
    second.types("go on");
    second.types("\r");
    for screen in [&first, &second] {
        screen.until("the next answer", |shown| shown.contains("heard") && !shown.contains("thinking"));
    }
    for screen in [&mut first, &mut second] {
        screen.types("\x04");
    }
    assert_eq!((first.end().0, second.end().0), (0, 0));
}

#[test]
fn a_server_that_was_stopped_is_started_by_the_next_message_and_a_restart_heals_by_itself() {
    let (user, _provider) =
        User::with(Script::new().respond(|request| Turn::text(format!("heard {}", request.last_text()))));
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("one");
    screen.types("\r");
    screen.until("the first answer", |shown| shown.contains("heard one") && !shown.contains("thinking"));
    let before = pid_of(&user);
    user.ok(&["server", "restart"]);
    assert_ne!(pid_of(&user), before);
    // Nobody touches a key.
    screen.until("the new server", |shown| !shown.contains("no server") && !shown.contains("server stopped"));
    screen.types("two");
    screen.types("\r");
    screen.until("the second answer", |shown| shown.contains("heard two") && !shown.contains("thinking"));
    user.ok(&["server", "stop", "--now"]);
    screen.until("what is said of it", |shown| {
        shown.contains("The server was stopped") && shown.contains("server stopped")
    });
    let status = user.run(&["server", "status"]);
    assert_ne!(status.code, 0, "it stays stopped: {status:?}");
    screen.types("three");
    screen.types("\r");
    screen.until("the third answer", |shown| {
        shown.matches("heard three").count() == 1 && !shown.contains("server stopped") && !shown.contains("cut in")
    });
    screen.types("\x04");
    assert_eq!(screen.end().0, 0);
}

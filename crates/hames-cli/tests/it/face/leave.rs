//! Every way out leaves the terminal as it was.

use hames_testkit::{Gate, Script, Turn};
use serde_json::json;

use super::Ends;
use super::screen::Screen;
use crate::kit::{User, signal, until};

/// Everything that is switched on is switched off once, on the same screen, and the cursor is shown.
pub(super) fn is_balanced(raw: &str) {
    for (on, off) in [
        ("\x1b[?1049h", "\x1b[?1049l"),
        ("\x1b[>1u", "\x1b[<1u"),
        ("\x1b[?2004h", "\x1b[?2004l"),
        ("\x1b[?1004h", "\x1b[?1004l"),
        ("\x1b[?1002h", "\x1b[?1002l"),
        ("\x1b[?1006h", "\x1b[?1006l"),
    ] {
        assert_eq!(raw.matches(on).count(), raw.matches(off).count(), "{on:?} and {off:?} in {raw:?}");
    }
    let at = |text: &str| raw.rfind(text).unwrap_or_else(|| panic!("no {text:?} in {raw:?}"));
    assert!(at("\x1b[?1049h") < at("\x1b[>1u") && at("\x1b[<1u") < at("\x1b[?1049l"), "{raw:?}");
    assert!(at("\x1b[?25h") > at("\x1b[?25l"), "{raw:?}");
}

#[test]
fn ctrl_c_twice_leaves_the_terminal_as_it_was_from_everywhere() {
    let gate = Gate::new();
    let of_script = gate.clone();
    let (user, _provider) =
        User::with(Script::new().respond(move |_| Turn::text("working on it").gate_head(of_script.clone())));
    let _ends = Ends(&user);
    // While it starts.
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("\x03");
    screen.until_shows("again leaves");
    screen.types("\x03");
    let (code, left, raw) = screen.end();
    assert_eq!((code, left.trim()), (0, ""));
    is_balanced(&raw);
    // From inside a layer.
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("\x1bOP");
    screen.until_shows("any other key closes");
    screen.types("\x1b[99;5u");
    screen.until_shows("again leaves");
    screen.types("\x1b[99;5u");
    is_balanced(&screen.end().2);
    // While a run goes on: the first one stops it.
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("begin");
    screen.types("\r");
    assert!(gate.reached_within(crate::kit::PATIENCE));
    screen.until("the run", |shown| shown.contains("thinking"));
    screen.types("\x03");
    screen.until("the end of the run", |shown| !shown.contains("thinking"));
    gate.open();
    screen.types("\x03\x03");
    let (code, _, raw) = screen.end();
    assert_eq!(code, 0);
    is_balanced(&raw);
    assert_eq!(user.sessions().len(), 1);
}

#[test]
fn ctrl_c_stops_a_command_that_runs_and_then_leaves() {
    let (user, _provider) = User::with(Script::new().respond(|_| Turn::call("Shell", json!({"command": "sleep 600"}))));
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("\x1b[Z");
    screen.until_shows("Build");
    screen.types("wait");
    screen.types("\r");
    screen.until_shows("running");
    screen.types("\x1b[99;5u");
    screen.until("the end of the run", |shown| shown.contains("Interrupted") && !shown.contains("running"));
    screen.types("\x03\x03");
    let (code, left, raw) = screen.end();
    assert_eq!((code, left.trim()), (0, ""));
    is_balanced(&raw);
}

#[test]
fn signals_give_the_terminal_back_and_say_which_they_were() {
    let user = User::new();
    let _ends = Ends(&user);
    for (name, number) in [("TERM", 15), ("HUP", 1), ("INT", 2)] {
        let screen = Screen::open(&user, &[]);
        screen.until_shows("new session");
        signal(&screen.child, name);
        let (code, left, raw) = screen.end();
        assert_eq!((code, left.trim()), (128 + number, ""), "{name}");
        is_balanced(&raw);
    }
}

#[test]
fn a_job_that_is_stopped_gives_the_terminal_back_and_takes_it_again() {
    let user = User::new();
    let _ends = Ends(&user);
    let mut screen = Screen::open_in_shell(&user, &[]);
    screen.until_shows("new session");
    screen.types("kept");
    screen.until_shows("kept");
    let before = screen.raw().len();
    screen.types("\x1a");
    screen.until_raw(before, "\x1b[?1049l");
    // The job is one process group with the shell in this test; it stands still until it is continued.
    let group = format!("-{}", screen.child.id());
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", screen.child.id())).unwrap_or_default();
    until("the stop", || state().rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')));
    is_balanced(&screen.raw());
    let stopped = screen.raw().len();
    assert!(std::process::Command::new("kill").args(["-CONT", "--", &group]).status().unwrap().success());
    screen.until_raw(stopped, "\x1b[?1049h");
    screen.until_shows("kept");
    screen.types("\x15\x03");
    screen.until_shows("again leaves");
    screen.types("\x03");
    let (_, left, raw) = screen.end();
    assert!(left.contains("back at the shell"), "{left}");
    is_balanced(&raw);
}

#[test]
fn a_terminal_that_goes_away_ends_the_face_and_not_the_run() {
    let gate = Gate::new();
    let of_script = gate.clone();
    let (user, _provider) = User::with(
        Script::new().respond(move |_| Turn::text("all done here").chunk_chars(4).gate(2, of_script.clone())),
    );
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("do it");
    screen.types("\r");
    assert!(gate.reached_within(crate::kit::PATIENCE));
    screen.close();
    gate.open();
    let mut screen = Screen::open(&user, &["-c"]);
    let shown = screen.until("the answer", |shown| shown.contains("all done here"));
    assert_eq!((shown.matches("do it").count() >= 1, shown.matches("all done here").count()), (true, 1), "{shown}");
    screen.types("\x04");
    assert_eq!(screen.end().0, 0);
}

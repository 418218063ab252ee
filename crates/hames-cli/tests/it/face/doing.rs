//! What a person does at it: says something while it works, decides, writes in an editor, opens it again somewhere else.

use std::sync::Arc;

use hames_testkit::{Gate, Script, Turn};
use serde_json::json;

use super::Ends;
use super::screen::Screen;
use crate::kit::{PATIENCE, User, signal, until};

/// What is said in these tests while the model works.
const SAID: [&str; 3] = ["half a thou", "afterwards this", "the other way"];

/// A model that stops at a gate in its first answer, and afterwards says what of that it heard last.
fn halting(gate: &Gate) -> Script {
    let (gate, first) = (gate.clone(), Arc::new(std::sync::atomic::AtomicBool::new(true)));
    Script::new().respond(move |request| match first.swap(false, std::sync::atomic::Ordering::SeqCst) {
        true => Turn::text("first part, and the second part of it").chunk_chars(11).gate(1, gate.clone()),
        false => {
            let text = request.last_text();
            let said = SAID.iter().find(|said| text.contains(**said)).unwrap_or(&"nothing");
            Turn::text(format!("heard {said}"))
        }
    })
}

/// A terminal in which a run stands at the gate.
fn begun(user: &User, gate: &Gate) -> Screen {
    let mut screen = Screen::open(user, &[]);
    screen.until_shows("new session");
    screen.types("begin");
    screen.types("\r");
    assert!(gate.reached_within(PATIENCE));
    screen.until_shows("first part");
    screen
}

/// Waits until the clock of the run in the status line has gone on for a whole second.
fn a_second_passes(screen: &Screen, doing: &str) {
    let seconds = |shown: &str| -> Option<u64> {
        let (_, rest) = shown.rsplit_once(doing)?;
        rest.trim_start().split('s').next()?.parse().ok()
    };
    let first = std::cell::Cell::new(None);
    screen.until("two ticks of the clock", |shown| match (seconds(shown), first.get()) {
        (Some(now), None) => {
            first.set(Some(now));
            false
        }
        (Some(now), Some(first)) => now >= first + 2,
        (None, _) => false,
    });
}

#[test]
fn keys_queue_steer_and_stop_and_nothing_that_was_typed_is_lost() {
    let gate = Gate::new();
    let (user, provider) = User::with(halting(&gate));
    let _ends = Ends(&user);
    let mut screen = begun(&user, &gate);
    screen.types("afterwards this");
    screen.until_shows("Enter interrupts now · Alt+Enter queues · Ctrl+S steers · Esc stops");
    screen.types("\x1b\r");
    screen.until_shows("Queued 1");
    screen.types("mind the bearing");
    screen.types("\x13");
    screen.until_shows("Steer 1 · Queued 1");
    screen.types("half a thou");
    screen.until_shows("half a thou");
    screen.types("\x1b");
    // The steer is back ahead of what was being written; the queue stands still.
    let shown = screen.until("the end of the run", |shown| {
        shown.contains("mind the bearing") && shown.contains("1 queued, paused") && shown.contains("half a thou")
    });
    assert!(shown.contains("cut: stopped") && shown.contains("› mind the bearing"), "{shown}");
    gate.open();
    // Sent by hand, then the queue is let go on.
    screen.types("\r");
    screen.until("the answer", |shown| shown.contains("heard half a thou"));
    screen.types("/queue");
    screen.types("\r");
    screen.until("the queued one", |shown| shown.contains("heard afterwards this") && !shown.contains("thinking"));
    let heard: Vec<String> = provider.requests().iter().map(|request| request.last_text()).collect();
    assert_eq!(heard.len(), 3, "{heard:?}");
    screen.types("\x04");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn enter_while_it_works_is_heard_at_once() {
    let gate = Gate::new();
    let (user, provider) = User::with(halting(&gate));
    let _ends = Ends(&user);
    let mut screen = begun(&user, &gate);
    screen.types("the other way");
    screen.types("\r");
    let shown = screen.until("the answer to it", |shown| shown.contains("heard the other way"));
    assert!(shown.contains("cut by your message") && shown.matches("the other way").count() == 2, "{shown}");
    assert_eq!(provider.requests().len(), 2);
    gate.open();
    screen.types("\x04");
    assert_eq!(screen.end().0, 0);
}

/// A user, a file outside of the project, and a model that writes it and then says that it did.
fn writer() -> (User, hames_testkit::Provider, std::path::PathBuf) {
    let place = Arc::new(std::sync::Mutex::new(std::path::PathBuf::new()));
    let of_model = Arc::clone(&place);
    let script = Script::new().respond(move |request| match request.last_role() {
        "tool" => Turn::text("that was it"),
        _ => Turn::call("Write", json!({"path": *of_model.lock().unwrap(), "content": "written\n"})),
    });
    let (user, provider) = User::with(script);
    let file = user.folder("outside").join("notes.txt");
    place.lock().unwrap().clone_from(&file);
    (user, provider, file)
}

#[test]
fn a_call_is_decided_about_in_one_terminal_and_goes_from_the_other() {
    let (user, _provider, file) = writer();
    let _ends = Ends(&user);
    let mut first = Screen::open(&user, &["-s", "shared"]);
    first.until_shows("new session");
    first.types("\x1b[Z");
    first.until_shows("Build");
    first.types("write it");
    first.types("\r");
    let shown = first.until_shows("May this run? Write");
    assert!(shown.contains("content: written") && shown.contains("notes.txt"), "{shown}");
    let mut second = Screen::open(&user, &["-s", "shared"]);
    second.until_shows("May this run? Write");
    a_second_passes(&second, "waiting for you");
    assert!(!file.exists());
    second.types("y");
    for screen in [&first, &second] {
        screen.until("the end", |shown| shown.contains("that was it") && !shown.contains("May this run?"));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "written\n");
    // Once more, put off, brought back and declined.
    first.types("again");
    first.types("\r");
    first.until_shows("May this run?");
    a_second_passes(&first, "waiting for you");
    first.types("\x1b");
    first.until("its leaving", |shown| shown.contains("F8 brings it back") && !shown.contains("May this run?"));
    first.types("\x1b[19~");
    first.until_shows("May this run?");
    a_second_passes(&first, "waiting for you");
    first.types("n");
    first.until("the end", |shown| shown.contains("declined by terminal") && !shown.contains("waiting for you"));
    for screen in [&mut first, &mut second] {
        screen.types("\x04");
    }
    assert_eq!((first.end().0, second.end().0), (0, 0));
}

#[test]
fn a_killed_terminal_is_opened_again_in_mid_stream_and_two_show_the_same() {
    let gate = Gate::new();
    let of_script = gate.clone();
    let lines: String = (0..12).map(|n| format!("row {n:02} of it\n\n")).collect();
    let (user, _provider) =
        User::with(Script::new().respond(move |_| Turn::text(lines.clone()).chunk_chars(9).gate(8, of_script.clone())));
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &["-s", "one"]);
    screen.until_shows("new session");
    screen.types("tell");
    screen.types("\r");
    assert!(gate.reached_within(PATIENCE));
    screen.until_shows("row 04");
    signal(&screen.child, "KILL");
    screen.end();
    // While it still streams: what came so far is there, once, and so it is in a second one.
    let mut again = Screen::open(&user, &["-s", "one"]);
    let mut beside = Screen::open(&user, &["-s", "one"]);
    for screen in [&again, &beside] {
        let shown = screen.until("what came so far", |shown| shown.contains("row 04") && shown.contains("answering"));
        assert_eq!(
            (0..=4).map(|n| shown.matches(&format!("row {n:02}")).count()).collect::<Vec<_>>(),
            [1; 5],
            "{shown}"
        );
    }
    gate.open();
    let end = |shown: &str| shown.contains("row 11") && shown.contains("first token");
    again.until("the end", end);
    let shown = beside.until("the same", |shown| end(shown) && shown == again.shown());
    for n in 3..12 {
        assert_eq!(shown.matches(&format!("row {n:02}")).count(), 1, "{shown}");
    }
    for screen in [&mut again, &mut beside] {
        screen.types("\x04");
    }
    assert_eq!((again.end().0, beside.end().0), (0, 0));
}

#[test]
fn a_message_is_written_in_the_users_editor() {
    let (user, provider) = User::saying("fine");
    let user = user.var("EDITOR", "sed -i s/one/two/");
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("number one");
    screen.until_shows("number one");
    screen.types("\x05");
    screen.until_shows("number two");
    screen.types("\r");
    screen.until_shows("fine");
    assert!(provider.requests()[0].last_text().contains("number two"));
    screen.types("\x04");
    let (code, _, raw) = screen.end();
    assert_eq!(code, 0);
    super::leave::is_balanced(&raw);
}

#[test]
fn what_was_opened_is_open_in_the_next_terminal() {
    let output: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    let (user, _provider) = User::with(Script::new().respond(|request| match request.last_role() {
        "tool" => Turn::text("seen"),
        _ => Turn::call("Read", json!({"path": "long.txt"})),
    }));
    std::fs::write(user.project().join("long.txt"), output).unwrap();
    let _ends = Ends(&user);
    let mut screen = Screen::open(&user, &[]);
    screen.until_shows("new session");
    screen.types("read it");
    screen.types("\r");
    screen.until("the folded card", |shown| shown.contains("lines more") && shown.contains("elapsed"));
    screen.types("\x02");
    screen.until("the open card", |shown| !shown.contains("lines more") && shown.contains("line 29"));
    until("it is kept", || user.home().join("written/folds").read_dir().is_ok_and(|mut all| all.next().is_some()));
    signal(&screen.child, "KILL");
    screen.end();
    let mut next = Screen::open(&user, &["-c"]);
    next.until("the open card", |shown| !shown.contains("lines more") && shown.contains("line 29"));
    next.types("\x04");
    assert_eq!(next.end().0, 0);
}

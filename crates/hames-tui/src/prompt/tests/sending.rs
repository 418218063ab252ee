//! The hint line: every situation, and what it says of Enter.

use hames_protocol::{Delivery, Mode};

use super::kit::*;
use crate::Link;

#[test]
fn the_hint_always_says_what_enter_does_now() {
    type Setup = fn(&mut Desk);
    let table: &[(&str, Setup, &str)] = &[
        (
            "idle in Analyze",
            |d| {
                d.write("x");
            },
            "Enter sends, in Analyze: nothing changes · Shift+Enter new line",
        ),
        (
            "idle in Build",
            |d| {
                d.view().effective.mode = Some(Mode::Build);
                d.write("x");
            },
            "Enter sends, in Build: files change",
        ),
        ("no session", |d| (d.face.session, d.face.view) = (None, None), "Enter begins a session"),
        (
            "busy",
            |d| {
                d.view().run = Some(run(Mode::Analyze, &[]));
                d.write("x");
            },
            "Enter interrupts now · Alt+Enter queues · Ctrl+S steers · Esc stops",
        ),
        (
            "busy with a command",
            |d| {
                d.view().run = Some(run(Mode::Analyze, &["Shell npm test"]));
                d.write("x");
            },
            "Enter interrupts after Shell npm test · Alt+Enter queues",
        ),
        (
            "busy with several",
            |d| {
                d.view().run = Some(run(Mode::Analyze, &["Shell make", "Edit a.rs", "Edit b.rs"]));
                d.write("x");
            },
            "Enter interrupts after Shell make and 2 more ·",
        ),
        (
            "busy, nothing written",
            |d| d.view().run = Some(run(Mode::Analyze, &[])),
            "Esc stops · a message interrupts now · Alt+Enter queues",
        ),
        (
            "the next run is another mode",
            |d| {
                d.view().run = Some(run(Mode::Analyze, &[]));
                d.view().effective.mode = Some(Mode::Build);
                d.write("x");
            },
            "Enter interrupts now · Alt+Enter queues, for Build",
        ),
        (
            "paused",
            |d| {
                d.view().paused = true;
                d.view().pending = vec![pending("p", Delivery::Queue, "later")];
            },
            "Enter sends, in Analyze: nothing changes · the queue is paused, 1 message is held: Ctrl+Q then p lets it go on",
        ),
        (
            "uploading",
            |d| {
                d.paste("/a/b.png").press("tab");
            },
            "Enter sends once b.png is uploaded",
        ),
        (
            "on an attachment",
            |d| {
                d.paste("/a/b.png").press("tab left");
            },
            "Del takes it off · ←→ choose · Enter sends once b.png is uploaded",
        ),
        (
            "a command",
            |d| {
                d.write("/rename new name");
            },
            "Enter runs /rename: another name for this session",
        ),
        (
            "a list of commands",
            |d| {
                d.write("/comp");
            },
            "Enter runs /compact · Tab writes it · Esc closes the list",
        ),
        (
            "a list, text needed",
            |d| {
                d.write("/stee");
            },
            "Enter writes /steer",
        ),
        (
            "a mistake",
            |d| {
                d.write("/mode loud");
            },
            "the modes are analyze and build · a space in front sends it as text",
        ),
        (
            "a list of files, none yet",
            |d| {
                d.write("@x");
            },
            "Enter sends, in Analyze: nothing changes · Esc closes the list",
        ),
        (
            "a list of files",
            |d| {
                d.write("@");
                let asked = d.requests();
                d.files(asked[0].0, &["src/main.rs"]);
            },
            "Enter or Tab names src/main.rs · Esc closes the list",
        ),
        (
            "no server",
            |d| {
                d.face.link = Link::Lost("gone".into());
                d.write("x");
            },
            "Enter sends once the server is there",
        ),
        (
            "the messages that wait",
            |d| {
                d.view().pending = vec![pending("p", Delivery::Queue, "later")];
                d.press("ctrl+q");
            },
            "Enter edits · Delete withdraws · s steers it · p pauses the queue",
        ),
        (
            "an edit of one",
            |d| {
                d.view().pending = vec![pending("p", Delivery::Queue, "later")];
                d.press("ctrl+q enter");
            },
            "Enter puts the change in its place · Esc leaves it as it was",
        ),
        (
            "an edit that came too late",
            |d| {
                d.view().pending = vec![pending("p", Delivery::Queue, "later")];
                d.press("ctrl+q enter");
                d.view().pending.clear();
            },
            "it was delivered meanwhile: Enter sends, in Analyze: nothing changes · Esc drops the change",
        ),
    ];
    for (situation, setup, says) in table {
        let mut desk = Desk::new();
        setup(&mut desk);
        let hint = desk.hint();
        assert!(hint.starts_with(says), "{situation}: {hint}");
    }
}

#[test]
fn the_hint_names_the_keys_that_are_bound() {
    let mut desk = Desk::new();
    desk.keys = crate::Keymap::with([("ctrl+s", ""), ("ctrl+enter", ""), ("f9", "steer"), ("alt+enter", "")]).unwrap();
    desk.view().run = Some(run(Mode::Analyze, &[]));
    desk.write("x");
    assert!(desk.hint().contains("F9 steers") && !desk.hint().contains("queues"), "{}", desk.hint());
}

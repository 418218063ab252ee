//! The todo list as models write and read it.

use hames_protocol::{Effect, Event, Pin, PinAdded, PinTarget, PinnedBy, Resource};
use hames_tools::{PinRoom, Tool};
use hames_workspace::todo::{TodoRead, TodoWrite};
use serde_json::{Value, json};

use crate::bench::Bench;

fn write(bench: &Bench, todos: Value) -> String {
    bench.text(&TodoWrite::new(), json!({"todos": todos}))
}

fn refused(bench: &Bench, todos: Value) -> String {
    bench.run(&TodoWrite::new(), json!({"todos": todos})).unwrap_err().text
}

#[test]
fn a_list_is_written_recorded_and_read_back() {
    let bench = Bench::new(&[]);
    assert_eq!(bench.text(&TodoRead::new(), json!({})), "The todo list is empty.");
    let text = write(
        &bench,
        json!([
            {"content": "Read the parser", "status": "completed"},
            {"content": "Mend it", "status": "in_progress", "priority": "high"},
            {"content": "Tell", "status": "pending", "priority": "low"},
            {"content": "Sing", "status": "cancelled"},
        ]),
    );
    assert_eq!(text, "1 [x] Read the parser\n2 [>] Mend it (high)\n3 [ ] Tell (low)\n4 [-] Sing");
    assert_eq!(bench.text(&TodoRead::new(), json!({})), text);
    let events = bench.events();
    assert!(matches!(&events[..], [Event::TodoUpdated(updated)] if updated.todos.len() == 4));
}

#[test]
fn ids_stay_what_they_are_and_new_ones_are_small_and_free() {
    let bench = Bench::new(&[]);
    write(&bench, json!([{"content": "a", "status": "todo"}, {"content": "b", "status": "todo"}]));
    // Reordered and grown without ids: the same content keeps its id, the new one gets a number of its own.
    let text = write(
        &bench,
        json!([
            {"content": "new", "status": "todo"},
            {"content": "b", "status": "done"},
            {"content": "a", "status": "todo"},
        ]),
    );
    assert_eq!(text, "3 [ ] new\n2 [x] b\n1 [ ] a");
    // Given ids are kept, numbers too; one claimed twice belongs to the first.
    let text = write(
        &bench,
        json!([
            {"id": "plan", "content": "x", "status": "todo"},
            {"id": 7, "content": "y", "status": "todo"},
            {"id": "plan", "content": "z", "status": "todo"},
            {"id": " ", "content": "a", "status": "todo"},
        ]),
    );
    assert_eq!(text, "plan [ ] x\n7 [ ] y\n4 [ ] z\n1 [ ] a");
    assert_eq!(write(&bench, json!([])), "The todo list is empty.");
    assert!(bench.cx.state().todos.is_empty());
}

#[test]
fn common_spellings_of_a_status_are_mended() {
    let spellings = [
        ("pending", ' '),
        ("todo", ' '),
        ("To-Do", ' '),
        ("not_started", ' '),
        ("in_progress", '>'),
        ("in-progress", '>'),
        ("In Progress", '>'),
        ("inProgress", '>'),
        ("completed", 'x'),
        ("done", 'x'),
        ("COMPLETE", 'x'),
        ("cancelled", '-'),
        ("canceled", '-'),
    ];
    for (status, mark) in spellings {
        let bench = Bench::new(&[]);
        assert_eq!(write(&bench, json!([{"content": "a", "status": status}])), format!("1 [{mark}] a"), "{status}");
    }
}

#[test]
fn a_list_that_cannot_be_kept_is_refused_whole_with_the_place_and_the_reason() {
    let bench = Bench::new(&[]);
    let before = write(&bench, json!([{"content": "stays", "status": "pending"}]));
    let bad = [
        (json!([{"content": "ok", "status": "pending"}, {"content": " \n", "status": "pending"}]), "todo 2: content"),
        (json!([{"status": "pending"}]), "todo 1: content is missing"),
        (json!([{"content": "a", "status": "later"}]), "status \"later\" is unknown; use pending"),
        (json!([{"content": "a", "status": "done", "priority": "p0"}]), "priority \"p0\" is unknown"),
        (json!([{"content": "a".repeat(2001), "status": "done"}]), "2001 characters; at most 2000"),
        (json!([{"id": "i".repeat(41), "content": "a", "status": "done"}]), "id is longer"),
        (json!(vec![json!({"content": "a", "status": "done"}); 201]), "201 todos are too many"),
        (json!({"content": "a"}), "must be a list"),
        (json!([null]), "todo 1: content is missing"),
    ];
    for (todos, reason) in bad {
        let text = refused(&bench, todos);
        assert!(text.contains(reason), "{text}");
    }
    assert_eq!(bench.text(&TodoRead::new(), json!({})), before);
    assert_eq!(bench.events().len(), 1);
}

#[test]
fn a_long_list_fits_its_share_of_the_window_and_loses_no_entry() {
    let mut bench = Bench::new(&[]);
    let todos: Vec<_> =
        (0..200).map(|n| json!({"content": format!("{n} {}", "wörd ".repeat(300)), "status": "pending"})).collect();
    let short = write(&bench, json!(todos));
    assert!(short.lines().all(|line| line.chars().count() < 80));
    bench.cx.cap_bytes = 10_000;
    let read = bench.text(&TodoRead::new(), json!({}));
    assert!(read.len() <= 10_000 && read.lines().count() == 200, "{} bytes", read.len());
    // What is kept is the whole.
    assert_eq!(bench.cx.state().todos[7].content.len(), format!("7 {}", "wörd ".repeat(300)).trim().len());
}

#[test]
fn line_ends_in_an_entry_do_not_look_like_entries() {
    let bench = Bench::new(&[]);
    assert_eq!(write(&bench, json!([{"content": "one\n2 [x] two\r\n", "status": "pending"}])), "1 [ ] one / 2 [x] two");
}

#[test]
fn the_tools_declare_that_they_touch_only_the_session() {
    for (tool, write) in [(&TodoWrite::new() as &dyn Tool, true), (&TodoRead::new(), false)] {
        let declared = tool.declare(&json!({"todos": []}));
        assert_eq!(declared.effect, Effect::Session);
        assert_eq!(declared.resources, [Resource::Named { name: "todos".into(), write }]);
    }
    assert_eq!(TodoWrite::new().label(&json!({"todos": [1, 2]})).to_string(), "TodoWrite (2 todos)");
}

#[test]
fn the_advertised_specs_are_small() {
    for (tool, limit) in [(&TodoWrite::new() as &dyn Tool, 620), (&TodoRead::new(), 160)] {
        let size = serde_json::to_string(tool.spec()).unwrap().len();
        assert!(size <= limit, "{}: {size}", tool.spec().name);
    }
}

/// Room for texts of so many bytes in all.
fn room(bytes: usize) -> PinRoom {
    PinRoom::new(move |texts| match texts.iter().map(String::len).sum::<usize>() {
        all if all > bytes => Err(format!("{all} bytes are more than the {bytes} that pins may have")),
        _ => Ok(()),
    })
}

fn pins_of(events: &[Event]) -> Vec<String> {
    let line = |event: &Event| match event {
        Event::PinAdded(PinAdded { target: PinTarget::Text { text }, by: PinnedBy::Model }) => Some(format!("+{text}")),
        Event::PinRemoved(removed) => Some(format!("-{}", removed.pin)),
        _ => None,
    };
    events.iter().filter_map(line).collect()
}

#[test]
fn pins_are_a_list_of_the_models_own_and_only_what_differs_is_recorded() {
    let mut bench = Bench::new(&[]);
    bench.cx.pins = room(40);
    let pin = |bench: &Bench, pins: Value| bench.run(&TodoWrite::new(), json!({"pins": pins}));
    assert_eq!(pin(&bench, json!(["port 8080", " ", "port 8080", "no force"])).unwrap(), "2 pinned.");
    assert_eq!(pins_of(&bench.events()), ["+port 8080", "+no force"]);
    // As they stand in the session then; what a person pinned is none of the model's.
    let text = |seq, text: &str, by| Pin { seq, target: PinTarget::Text { text: text.into() }, by };
    let known = [
        text(5, "port 8080", PinnedBy::Model),
        text(6, "no force", PinnedBy::Model),
        text(7, "said by hand", PinnedBy::User),
    ];
    bench.cx.state.lock().unwrap().pins = known.to_vec();
    pin(&bench, json!(["no force", "use tabs"])).unwrap();
    assert_eq!(pins_of(&bench.events())[2..], ["-5", "+use tabs"]);
    pin(&bench, json!([])).unwrap();
    assert_eq!(pins_of(&bench.events())[4..], ["-6", "-0"]);
    // Together with a list, or without one; neither is nothing.
    let both = json!({"todos": [{"content": "a", "status": "pending"}], "pins": "one"});
    assert_eq!(bench.text(&TodoWrite::new(), both), "1 [ ] a\n1 pinned.");
    assert!(bench.run(&TodoWrite::new(), json!({})).unwrap_err().text.contains("todos must be a list"));
}

#[test]
fn pins_beyond_their_room_are_refused_whole() {
    let mut bench = Bench::new(&[]);
    let pin = |bench: &Bench, pins: Value| bench.run(&TodoWrite::new(), json!({"todos": [], "pins": pins}));
    assert!(pin(&bench, json!(["a"])).unwrap_err().text.contains("nothing can be pinned here"));
    bench.cx.pins = room(4);
    let refused = pin(&bench, json!(["abcd", "e"])).unwrap_err();
    assert!(refused.text.contains("5 bytes are more than the 4"), "{}", refused.text);
    assert!(pin(&bench, json!([1])).unwrap_err().text.contains("list of texts"));
    assert!(pin(&bench, json!(vec!["x"; 41])).unwrap_err().text.contains("at most 40"));
    assert!(bench.events().is_empty());
}

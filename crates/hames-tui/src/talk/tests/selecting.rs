//! What is copied, marked and found.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::*;

fn mouse(talk: &mut Talk, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
    act(talk, &Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })).1
}

fn dragged(talk: &mut Talk, from: (u16, u16), to: (u16, u16)) -> Vec<Effect> {
    mouse(talk, MouseEventKind::Down(MouseButton::Left), from.0, from.1);
    mouse(talk, MouseEventKind::Drag(MouseButton::Left), to.0, to.1);
    mouse(talk, MouseEventKind::Up(MouseButton::Left), to.0, to.1)
}

fn said(answer: &str) -> Talk {
    let mut log = Log::default();
    log.run("analyze", "ask").step().says("text", 0, answer, 0);
    talk_of(&log)
}

#[test]
fn the_mouse_copies_text_without_how_it_was_wrapped() {
    let mut talk = said("one two three four five six seven\n\n```\nlet a = 1;\n    let b;\n```");
    let screen = text(&draw(&mut talk, 16, 20, theme()));
    assert_eq!(&screen[2..5], ["one two three", "four five six", "seven"]);
    assert_eq!(dragged(&mut talk, (4, 2), (4, 4)), [Effect::Copy("two three four five six seven".into())]);
    // Backwards, and over code: its indent by the frame is not text, its own is.
    assert_eq!(dragged(&mut talk, (15, 7), (0, 6)), [Effect::Copy("let a = 1;\n    let b;".into())]);
    // Until it is let go of, it is shown; the key copies it once more.
    let buf = draw(&mut talk, 16, 20, theme());
    assert!(buf[(2, 6)].modifier.contains(ratatui::style::Modifier::REVERSED));
    assert_eq!(act(&mut talk, &key_of(Action::Copy)).1, [Effect::Copy("let a = 1;\n    let b;".into())]);
    act(&mut talk, &plain(KeyCode::Esc));
    assert_eq!(dragged(&mut talk, (4, 2), (4, 2)), [Effect::Copy("t".into())]);
}

#[test]
fn a_wide_character_is_selected_whole() {
    let mut talk = said("漢字かな");
    draw(&mut talk, 20, 10, theme());
    assert_eq!(dragged(&mut talk, (2, 2), (5, 2)), [Effect::Copy("字か".into())]);
}

#[test]
fn keys_select_and_copy() {
    let mut talk = said("first line\nof text");
    draw(&mut talk, 40, 10, theme());
    assert!(act(&mut talk, &plain(KeyCode::F(4))).0);
    for _ in 0..5 {
        act(&mut talk, &key(KeyCode::Right, KeyModifiers::SHIFT));
    }
    draw(&mut talk, 40, 10, theme());
    assert_eq!(act(&mut talk, &plain(KeyCode::Enter)).1, [Effect::Copy("first".into())]);
    // It is over with that: the key is the prompt's again.
    assert!(!act(&mut talk, &plain(KeyCode::Enter)).0);
    assert!(!act(&mut talk, &plain(KeyCode::Esc)).0);
}

#[test]
fn the_last_answer_is_copied_as_it_was_written() {
    let mut talk = talk_of(&session());
    assert_eq!(talk.last_answer().as_deref(), Some("Fixed: the count is 22 now."));
    let copied = act(&mut talk, &key_of(Action::Copy)).1;
    assert_eq!(copied, [Effect::Copy("Fixed: the count is 22 now.".into())]);
    let mut empty = Talk::default();
    assert!(!act(&mut empty, &key_of(Action::Copy)).0);
}

#[test]
fn the_marker_walks_over_messages_and_answers() {
    let log = session();
    let mut talk = talk_of(&log);
    draw(&mut talk, 80, 24, theme());
    assert_eq!(talk.selected(), None);
    assert!(!act(&mut talk, &plain(KeyCode::Down)).0, "nothing is marked: the key is for somebody else");
    let seq_of = |want: &str| {
        let is = |e: &&Envelope| serde_json::to_string(&e.event).unwrap().contains(want) && e.seq.is_some();
        log.all.iter().find(is).unwrap().seq
    };
    for want in
        ["Fixed: the count", "use cargo nextest", "Fix it.", "What I found", "Why does the count", "Why does the count"]
    {
        assert!(act(&mut talk, &plain(KeyCode::Up)).0);
        assert_eq!(talk.selected(), seq_of(want), "{want}");
        let shown = text(&draw(&mut talk, 80, 24, theme())).join("\n");
        assert!(shown.contains(want), "{want} in\n{shown}");
    }
    for _ in 0..5 {
        act(&mut talk, &plain(KeyCode::Down));
    }
    assert_eq!(talk.selected(), None);
    assert!(talk.is_following());
}

#[test]
fn finding_opens_what_is_folded_and_reaches_older_pages() {
    let log = session();
    let durable: Vec<Envelope> = log.all.iter().filter(|e| e.seq.is_some()).cloned().collect();
    let mut talk = Talk::default();
    let half = durable.len() - 20;
    talk.prepend(&page(&durable[half..], true));
    draw(&mut talk, 80, 24, theme());
    act(&mut talk, &key(KeyCode::Char('f'), KeyModifiers::CONTROL));
    for c in "LINE 17 of".chars() {
        assert!(act(&mut talk, &plain(KeyCode::Char(c))).0);
    }
    draw(&mut talk, 80, 24, theme());
    assert!(talk.wants_older(), "it is not in what is loaded");
    talk.prepend(&page(&durable[..half], false));
    let shown = text(&draw(&mut talk, 80, 24, theme())).join("\n");
    assert!(shown.contains("line 17 of the file") && shown.contains("Find: LINE 17 of"), "{shown}");
    act(&mut talk, &plain(KeyCode::Esc));
    assert!(!text(&draw(&mut talk, 80, 24, theme())).join("\n").contains("Find:"));
}

#[test]
fn the_hit_before_the_oldest_loaded_one_is_looked_for_in_older_pages() {
    let mut log = Log::default();
    for n in 0..200 {
        let text = if [3, 150].contains(&n) { "the needle".to_owned() } else { format!("hay {n}") };
        log.json(json!({"type": "text.done", "index": 0, "text": text}));
    }
    let mut talk = Talk::default();
    talk.prepend(&page(&log.all[100..], true));
    draw(&mut talk, 80, 24, theme());
    act(&mut talk, &key(KeyCode::Char('f'), KeyModifiers::CONTROL));
    for c in "needle".chars() {
        act(&mut talk, &plain(KeyCode::Char(c)));
    }
    draw(&mut talk, 80, 24, theme());
    assert!(!talk.wants_older(), "there is one here");
    act(&mut talk, &plain(KeyCode::Enter));
    for (from, to) in [(50, 100), (0, 50)] {
        assert!(talk.wants_older());
        let shown = text(&draw(&mut talk, 80, 24, theme())).join("\n");
        assert!(shown.contains(&format!("looking further back, before event {}", to + 1)), "{shown}");
        talk.prepend(&page(&log.all[from..to], from > 0));
    }
    let shown = text(&draw(&mut talk, 80, 24, theme())).join("\n");
    assert!(shown.contains("hay 4") && shown.contains("needle") && shown.contains("the one before"), "{shown}");
    // Esc ends it, wherever it is.
    let mut talk = Talk::default();
    talk.prepend(&page(&log.all[100..], true));
    act(&mut talk, &key(KeyCode::Char('f'), KeyModifiers::CONTROL));
    act(&mut talk, &plain(KeyCode::Char('q')));
    draw(&mut talk, 80, 24, theme());
    act(&mut talk, &plain(KeyCode::Esc));
    talk.prepend(&page(&log.all[50..100], true));
    draw(&mut talk, 80, 24, theme());
    assert!(!talk.wants_older(), "nobody looks for anything any more");
}

#[test]
fn what_a_person_wrote_is_shown_and_copied_as_it_is() {
    let written = "look:\n```rust\nlet x;\n```\n\n# not a heading\n- **stars**";
    let mut log = Log::default();
    log.run("analyze", written);
    let mut talk = talk_of(&log);
    let shown = text(&draw(&mut talk, 40, 10, theme()));
    let bars: Vec<String> = written.lines().map(|line| format!("▌ {line}").trim_end().to_owned()).collect();
    assert_eq!(shown[..7], bars);
    assert_eq!(dragged(&mut talk, (0, 0), (39, 6)), [Effect::Copy(written.into())]);
}

#[test]
fn the_hint_says_what_keys_do_while_they_are_taken() {
    let mut talk = said("text");
    draw(&mut talk, 40, 10, theme());
    assert_eq!(talk.hint(), None);
    for (code, modifiers, word) in
        [(KeyCode::F(4), KeyModifiers::NONE, "select"), (KeyCode::Char('f'), KeyModifiers::CONTROL, "finds")]
    {
        act(&mut talk, &key(code, modifiers));
        assert!(talk.hint().unwrap().contains(word));
        act(&mut talk, &plain(KeyCode::Esc));
        assert_eq!(talk.hint(), None);
    }
}

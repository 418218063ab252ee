use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;

use super::super::kit::{Stand, alt, ctrl, key};
use super::super::{Edited, Field};
use crate::Input;
use crate::snapshot::rows;

fn give(field: &mut Field, input: &Input) -> Edited {
    let stand = Stand::default();
    let action = match input {
        Input::Key(key) => stand.keys.action(key),
        _ => None,
    };
    field.handle(input, action)
}

#[test]
fn keys_edit_whole_characters_and_words() {
    let family = "👨‍👩‍👧";
    for (text, keys, left) in [
        ("", vec![key(KeyCode::Backspace), key(KeyCode::Left), key(KeyCode::Delete), key(KeyCode::Char('a'))], "a"),
        ("안녕e\u{301}", vec![key(KeyCode::Backspace)], "안녕"),
        ("안녕", vec![key(KeyCode::Left), key(KeyCode::Backspace)], "녕"),
        (family, vec![key(KeyCode::Backspace)], ""),
        (family, vec![key(KeyCode::Left), key(KeyCode::Delete)], ""),
        ("one two", vec![ctrl('w')], "one "),
        ("one two", vec![ctrl('a'), alt('d')], " two"),
        ("one two", vec![alt('b'), ctrl('u')], "two"),
        ("one two", vec![ctrl('a'), alt('f'), ctrl('k')], "one"),
        ("one", vec![ctrl('a'), key(KeyCode::Char('0')), ctrl('e'), key(KeyCode::Char('!'))], "0one!"),
        ("one", vec![key(KeyCode::Home), ctrl('h'), key(KeyCode::End), ctrl('h')], "on"),
        ("e", vec![Input::Paste("\u{301}x".into()), key(KeyCode::Backspace)], "e\u{301}"),
    ] {
        let mut field = Field::new(text);
        for input in &keys {
            assert_ne!(give(&mut field, input), Edited::Passed, "{text}: {input:?}");
        }
        assert_eq!(field.text(), left, "{text}");
    }
}

#[test]
fn a_paste_becomes_one_line_without_control_characters_and_has_an_end() {
    let mut field = Field::default();
    assert_eq!(give(&mut field, &Input::Paste("a\nb\tc\u{1b}[31md\u{7}\u{202e}".into())), Edited::Changed);
    assert_eq!(field.text(), "a b cd");
    give(&mut field, &Input::Paste("長".repeat(100_000)));
    assert!(field.text().len() <= 4096);
    assert_eq!(give(&mut field, &key(KeyCode::Char('長'))), Edited::Moved, "it is full");
}

#[test]
fn what_is_not_for_a_line_is_passed_on() {
    let mut field = Field::new("x");
    for input in [key(KeyCode::Enter), key(KeyCode::Esc), key(KeyCode::Up), key(KeyCode::F(2)), ctrl('o'), alt('x')] {
        assert_eq!(give(&mut field, &input), Edited::Passed, "{input:?}");
    }
    assert_eq!(field.text(), "x");
}

#[test]
fn the_cursor_is_always_in_sight() {
    let stand = Stand::default();
    let mut shown = String::new();
    for (text, keys) in [
        ("short", 0),
        ("a name that is longer than the row", 0),
        ("漢字かな漢字かな漢字かな", 0),
        ("a name that is longer", 30),
    ] {
        let mut field = Field::new(text);
        for _ in 0..keys {
            give(&mut field, &key(KeyCode::Left));
        }
        let area = Rect::new(0, 0, 16, 1);
        let mut buf = Buffer::empty(area);
        let at = field.draw(area, &mut buf, "› ", stand.sight()).unwrap();
        shown.push_str(&format!("{}cursor {}\n", rows(&buf, area, false), at.x));
        for width in 0..16 {
            let area = Rect::new(0, 0, width, 1);
            let at = field.draw(area, &mut Buffer::empty(area), "› ", stand.sight());
            assert!(at.is_none_or(|at| at.x < width));
        }
    }
    assert_eq!(
        shown,
        "|› short\ncursor 7\n|› …than the row\ncursor 15\n|› …かな漢字かな\ncursor 15\n|› a name that is\ncursor 2\n"
    );
}

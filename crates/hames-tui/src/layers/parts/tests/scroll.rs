use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, MouseEventKind};
use ratatui::layout::Rect;

use super::super::kit::{Stand, key, mouse};
use super::super::{Look, Scroll};
use crate::Input;
use crate::snapshot::{compare, rows};

fn give(scroll: &mut Scroll, input: &Input) -> bool {
    let stand = Stand::default();
    let action = match input {
        Input::Key(key) => stand.keys.action(key),
        _ => None,
    };
    scroll.handle(input, action)
}

fn screen(scroll: &mut Scroll, width: u16, height: u16) -> String {
    let stand = Stand::default();
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    scroll.draw(area, &mut buf, &stand.theme);
    format!("{}{}\n", rows(&buf, area, false), scroll.place().unwrap_or_default())
}

fn text() -> Scroll {
    let mut lines = vec![vec![("A heading".to_owned(), Look::Name)]];
    lines.push(vec![("+ ".into(), Look::Good), ("words that are longer than one row of this".into(), Look::Text)]);
    lines.push(vec![("漢字かなと 👍🏽 and \u{1b}[2J\u{202e}\tx".into(), Look::Dim)]);
    lines.push(vec![("two\nlines".into(), Look::Text)]);
    lines.extend((1..=20).map(|n| vec![(format!("line {n}"), Look::Text)]));
    Scroll::new(lines)
}

#[test]
fn keys_and_the_wheel_move_through_it_and_never_past_its_ends() {
    let mut scroll = text();
    let mut shown = screen(&mut scroll, 24, 8);
    for (name, input) in [
        ("down", key(KeyCode::Down)),
        ("page down", key(KeyCode::PageDown)),
        ("end", key(KeyCode::End)),
        ("page down at the end", key(KeyCode::PageDown)),
        ("page up", key(KeyCode::PageUp)),
        ("wheel", mouse(MouseEventKind::ScrollUp, 1, 1)),
        ("home", key(KeyCode::Home)),
        ("up at the beginning", key(KeyCode::Up)),
    ] {
        assert!(give(&mut scroll, &input), "{name}");
        shown.push_str(&format!("{name}\n{}", screen(&mut scroll, 24, 8)));
    }
    assert!(!give(&mut scroll, &key(KeyCode::Char('x'))) && !give(&mut scroll, &key(KeyCode::Esc)));
    assert!(!give(&mut scroll, &mouse(MouseEventKind::ScrollUp, 40, 1)), "outside of it");
    compare("part-scroll", &shown);
}

#[test]
fn short_text_stays_and_other_text_keeps_the_place() {
    let mut scroll = Scroll::new([vec![("one".to_owned(), Look::Text)]]);
    screen(&mut scroll, 20, 5);
    give(&mut scroll, &key(KeyCode::PageDown));
    assert!(screen(&mut scroll, 20, 5).starts_with("|one\n"));
    assert_eq!(scroll.place(), None);

    let lines = |n: usize| (0..n).map(|at| vec![(format!("line {at}"), Look::Text)]);
    let mut scroll = Scroll::new(lines(100));
    screen(&mut scroll, 20, 5);
    scroll.go_to(50);
    assert!(screen(&mut scroll, 20, 5).starts_with("|line 50\n"));
    scroll.set(lines(120));
    assert!(screen(&mut scroll, 20, 5).starts_with("|line 50\n"));
    scroll.set(lines(10));
    assert!(screen(&mut scroll, 20, 5).starts_with("|line 5\n"));
    assert_eq!(scroll.place().as_deref(), Some("line 6 of 10"));
}

#[test]
fn a_long_line_and_many_lines_lay_out_only_what_is_shown() {
    let mut scroll = Scroll::new([vec![("漢".repeat(400_000), Look::Text)]]);
    assert!(scroll.len() > 290, "a line is taken apart");
    screen(&mut scroll, 20, 5);
    give(&mut scroll, &key(KeyCode::End));
    let end = screen(&mut scroll, 20, 5);
    assert_eq!(end.lines().filter(|row| row.contains('漢')).count(), 5, "{end}");
    assert_eq!(scroll.place().as_deref().map(|place| place.ends_with(&format!("of {}", scroll.len()))), Some(true));
}

#[test]
fn every_size_is_drawn() {
    let mut scroll = text();
    for width in 0..30 {
        for height in 0..12 {
            screen(&mut scroll, width, height);
            give(&mut scroll, &key(KeyCode::PageDown));
            give(&mut scroll, &key(KeyCode::Up));
        }
    }
}

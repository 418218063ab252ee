use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::layout::Rect;

use super::super::kit::{Stand, key, mouse};
use super::super::{Confirm, Decided, Look};
use crate::Input;
use crate::snapshot::{compare, rows};

fn question() -> Confirm {
    let body = vec![
        ("What goes: 12 messages, and 2 proposed changes that were never made.".into(), Look::Warn),
        ("It cannot be brought back. /export writes it into a file first. \u{1b}[2J\u{202e}".into(), Look::Text),
    ];
    Confirm::new("Delete \"mend the \u{7}lathe\"?", body, "Delete")
}

fn give(confirm: &mut Confirm, inputs: &[Input]) -> Decided {
    let stand = Stand::default();
    let mut decided = Decided::Passed;
    for input in inputs {
        let action = match input {
            Input::Key(key) => stand.keys.action(key),
            _ => None,
        };
        decided = confirm.handle(input, action);
    }
    decided
}

#[test]
fn only_its_own_key_or_the_other_answer_says_yes() {
    for (inputs, decided) in [
        (vec![key(KeyCode::Char('y'))], Decided::Yes),
        (vec![key(KeyCode::Char('n'))], Decided::No),
        (vec![key(KeyCode::Enter)], Decided::No),
        (vec![key(KeyCode::Esc)], Decided::No),
        (vec![key(KeyCode::Tab), key(KeyCode::Enter)], Decided::Yes),
        (vec![key(KeyCode::Right), key(KeyCode::Enter)], Decided::Yes),
        (vec![key(KeyCode::Right), key(KeyCode::Left), key(KeyCode::Enter)], Decided::No),
        (vec![key(KeyCode::Char('Y'))], Decided::Taken),
        (vec![Input::Paste("y".into())], Decided::Taken),
        (
            vec![Input::Key(ratatui::crossterm::event::KeyEvent::new(KeyCode::Char('y'), KeyModifiers::ALT))],
            Decided::Taken,
        ),
        (vec![Input::Wake], Decided::Passed),
    ] {
        assert_eq!(give(&mut question(), &inputs), decided, "{inputs:?}");
    }
}

#[test]
fn it_says_what_goes_at_every_size_and_its_answers_can_be_clicked() {
    let stand = Stand::default();
    let mut shown = String::new();
    let mut confirm = question();
    for (width, height) in [(80, 22), (40, 13), (30, 6)] {
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        confirm.draw(area, &mut buf, stand.sight());
        let text = rows(&buf, area, false);
        shown.push_str(&format!("{width}x{height}\n{}", text.trim_start_matches("|\n")));
        let row = text.lines().position(|line| line.contains("(y)")).unwrap() as u16;
        let column = text.lines().nth(row.into()).unwrap().find("Delete").unwrap() as u16 - 4;
        let up = MouseEventKind::Up(MouseButton::Left);
        assert_eq!(give(&mut confirm, &[mouse(up, column, row)]), Decided::Yes);
        assert_eq!(give(&mut confirm, &[mouse(up, 4 + area.width.saturating_sub(76) / 2, row)]), Decided::No);
        assert_eq!(give(&mut confirm, &[mouse(up, 0, 0)]), Decided::Taken);
    }
    for width in 0..40 {
        for height in 0..12 {
            let area = Rect::new(0, 0, width, height);
            confirm.draw(area, &mut Buffer::empty(area), stand.sight());
        }
    }
    compare("part-confirm", &shown);
}

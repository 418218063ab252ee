//! The mouse, as terminals report it.

use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::Token;

/// `BUTTON;COLUMN;ROW`, behind `ESC [ <`.
pub(super) fn new(parameters: &[u8], is_down: bool) -> Option<Token> {
    let mut numbers = std::str::from_utf8(parameters).ok()?.split(';').map(|n| n.parse::<u16>().ok());
    let (what, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    event(what, is_down, column.checked_sub(1)?, row.checked_sub(1)?)
}

/// Three bytes, each with 32 added: of terminals that know no better.
pub(super) fn old(bytes: &[u8]) -> Option<Token> {
    let what = u16::from(bytes[0].checked_sub(32)?);
    let at = |byte: u8| byte.checked_sub(33).map(u16::from);
    event(what, what & 3 != 3, at(bytes[1])?, at(bytes[2])?)
}

fn event(what: u16, is_down: bool, column: u16, row: u16) -> Option<Token> {
    let button = match what & 3 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (what & 0b1100_0000, what & 32 != 0, button) {
        (64, ..) => match what & 3 {
            0 => MouseEventKind::ScrollUp,
            1 => MouseEventKind::ScrollDown,
            2 => MouseEventKind::ScrollLeft,
            _ => MouseEventKind::ScrollRight,
        },
        (0, true, Some(button)) => MouseEventKind::Drag(button),
        (0, true, None) => MouseEventKind::Moved,
        (0, false, Some(button)) if is_down => MouseEventKind::Down(button),
        (0, false, button) => MouseEventKind::Up(button.unwrap_or(MouseButton::Left)),
        _ => return None,
    };
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)] {
        if what & bit != 0 {
            modifiers |= modifier;
        }
    }
    Some(Token::Mouse(MouseEvent { kind, column, row, modifiers }))
}

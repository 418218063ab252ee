//! Sequences that begin with `ESC [`: keys with modifiers, in the old way and in the keyboard protocol's, and reports.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Front, Token, key, mouse};

pub(super) fn read(bytes: &[u8]) -> Front {
    let body = &bytes[2..];
    // The old form of the mouse has three bytes of any kind behind it.
    if let [b'M', rest @ ..] = body {
        return if rest.len() < 3 { Front::Part } else { Front::Whole(6, mouse::old(rest)) };
    }
    // The console's function keys.
    if let [b'[', rest @ ..] = body {
        return match rest.first() {
            None => Front::Part,
            Some(c @ b'A'..=b'E') => Front::Whole(4, Some(key(KeyCode::F(c - b'A' + 1), KeyModifiers::NONE))),
            Some(_) => Front::Whole(4, None),
        };
    }
    let Some(end) = body.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else { return Front::Part };
    let last = body[end];
    if !(0x40..=0x7e).contains(&last) {
        // Cut by something else: what was begun is dropped, what cuts it is read.
        return Front::Whole(2 + end, None);
    }
    let parameters = &body[..end];
    if last == b'~' && parameters == b"200" {
        return Front::Paste(3 + end);
    }
    Front::Whole(3 + end, token(parameters, last))
}

fn token(parameters: &[u8], last: u8) -> Option<Token> {
    match (parameters.first(), last) {
        (Some(b'<'), b'M' | b'm') => return mouse::new(&parameters[1..], last == b'M'),
        (Some(b'?'), b'c') => return Some(Token::Attributes),
        (Some(b'?'), b'u') => return Some(Token::Keyboard),
        (Some(b'<' | b'=' | b'>' | b'?'), _) => return None,
        (None, b'I') => return Some(Token::Focus(true)),
        (None, b'O') => return Some(Token::Focus(false)),
        _ => {}
    }
    let text = std::str::from_utf8(parameters).ok()?;
    let mut fields = text.split(';');
    let mut first = fields.next().unwrap_or("").split(':');
    let number: Option<u32> = first.next().and_then(|n| n.parse().ok());
    let shifted: Option<u32> = first.next().and_then(|n| n.parse().ok());
    let mut held = fields.next().unwrap_or("").split(':');
    let modifiers = modifiers(held.next().and_then(|n| n.parse().ok()).unwrap_or(1));
    let kind = match held.next() {
        Some("2") => KeyEventKind::Repeat,
        Some("3") => return None,
        _ => KeyEventKind::Press,
    };
    let (code, modifiers) = match last {
        b'A' => (KeyCode::Up, modifiers),
        b'B' => (KeyCode::Down, modifiers),
        b'C' => (KeyCode::Right, modifiers),
        b'D' => (KeyCode::Left, modifiers),
        b'H' => (KeyCode::Home, modifiers),
        b'F' => (KeyCode::End, modifiers),
        b'P'..=b'S' => (KeyCode::F(last - b'P' + 1), modifiers),
        b'Z' => (KeyCode::BackTab, modifiers | KeyModifiers::SHIFT),
        b'u' => of_protocol(number?, shifted, modifiers)?,
        // The other form of modified keys, of xterm: `27;MODIFIERS;CODE~`.
        b'~' if number == Some(27) => of_protocol(fields.next()?.parse().ok()?, None, modifiers)?,
        b'~' => (of_tilde(number?)?, modifiers),
        _ => return None,
    };
    Some(Token::Key(KeyEvent::new_with_kind(code, modifiers, kind)))
}

fn modifiers(given: u32) -> KeyModifiers {
    let bits = given.saturating_sub(1);
    let mut out = KeyModifiers::NONE;
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
        (16, KeyModifiers::HYPER),
        (32, KeyModifiers::META),
    ] {
        if bits & bit != 0 {
            out |= modifier;
        }
    }
    out
}

fn of_tilde(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F((number - 10) as u8),
        17..=21 => KeyCode::F((number - 11) as u8),
        23..=26 => KeyCode::F((number - 12) as u8),
        28 | 29 => KeyCode::F((number - 13) as u8),
        31..=34 => KeyCode::F((number - 14) as u8),
        _ => return None,
    })
}

/// A key by its code point, or by a number of the protocol's own.
fn of_protocol(number: u32, shifted: Option<u32>, mut modifiers: KeyModifiers) -> Option<(KeyCode, KeyModifiers)> {
    let code = match number {
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        8 | 127 => KeyCode::Backspace,
        // The keypad.
        57399..=57408 => KeyCode::Char(char::from_digit(number - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        57376..=57398 => KeyCode::F((number - 57376 + 13) as u8),
        // Locks, media keys and modifiers alone.
        57344..=63743 => return None,
        _ => {
            let mut c = char::from_u32(number)?;
            if modifiers == KeyModifiers::SHIFT {
                c = shifted.and_then(char::from_u32).or_else(|| c.to_uppercase().next())?;
                if !c.is_alphabetic() {
                    modifiers = KeyModifiers::NONE;
                }
            }
            KeyCode::Char(c)
        }
    };
    Some((code, modifiers))
}

//! Bytes of a terminal into keys, pastes, the mouse and answers to what was asked of it.
//!
//! It is ours because three things have to hold that event libraries do not give: an answer to a question about the ground
//! may come at any time and is never typed into the prompt; a sequence that comes in two reads is one key; and reading stops
//! at once when the terminal is lent to an editor or hangs up. Pure: bytes in, tokens out.

mod csi;
mod mouse;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent};

/// Bytes of a sequence that is not a paste; longer ones are no sequence.
const MAX_SEQUENCE: usize = 4096;
/// Bytes of one paste; what comes behind them is left out.
pub(crate) const MAX_PASTE: usize = 64 * 1024 * 1024;
const PASTE_END: &[u8] = b"\x1b[201~";

/// What a terminal said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A key was pressed, or repeats.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// A paste, as it came.
    Paste(String),
    /// The terminal has the focus, or lost it.
    Focus(bool),
    /// The colour of its ground, each part from 0 to 1.
    Ground([f32; 3]),
    /// It said what it is: whatever was asked before has been answered by now.
    Attributes,
    /// It speaks the keyboard protocol, with these flags.
    Keyboard,
}

/// Holds what is not complete yet.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What the bytes at the front are.
enum Front {
    /// A whole sequence of so many bytes, and what it says.
    Whole(usize, Option<Token>),
    /// The beginning of a paste, so many bytes.
    Paste(usize),
    /// More has to come.
    Part,
}

impl Decoder {
    /// Takes bytes in.
    pub(crate) fn feed(&mut self, bytes: &[u8], tokens: &mut Vec<Token>) {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while at < self.bytes.len() {
            if self.paste.is_some() {
                at += self.pasted(at, tokens);
                if self.paste.is_some() {
                    break;
                }
                continue;
            }
            match front(&self.bytes[at..]) {
                Front::Whole(length, token) => {
                    tokens.extend(token);
                    at += length;
                }
                Front::Paste(length) => {
                    self.paste = Some(Vec::new());
                    at += length;
                }
                Front::Part if self.bytes.len() - at > MAX_SEQUENCE => at += 1,
                Front::Part => break,
            }
        }
        self.bytes.drain(..at);
    }

    /// Whether something is held that only time can decide: a lone escape may be a key or the beginning of one.
    pub(crate) fn is_waiting(&self) -> bool {
        self.paste.is_none() && !self.bytes.is_empty()
    }

    /// Nothing more came in time: what is held is what it looks like.
    pub(crate) fn settle(&mut self, tokens: &mut Vec<Token>) {
        if self.paste.is_some() {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        match bytes.as_slice() {
            [0x1b] => tokens.push(key(KeyCode::Esc, KeyModifiers::NONE)),
            [0x1b, b'['] => tokens.push(key(KeyCode::Char('['), KeyModifiers::ALT)),
            [0x1b, b']'] => tokens.push(key(KeyCode::Char(']'), KeyModifiers::ALT)),
            [0x1b, b'O'] => tokens.push(key(KeyCode::Char('O'), KeyModifiers::ALT)),
            [0x1b, b'P'] => tokens.push(key(KeyCode::Char('P'), KeyModifiers::ALT)),
            // Half of something that never came whole.
            _ => {}
        }
    }

    /// Takes what belongs to the open paste from `at` on; says how many bytes.
    fn pasted(&mut self, at: usize, tokens: &mut Vec<Token>) -> usize {
        let Some(paste) = &mut self.paste else { return 0 };
        let rest = &self.bytes[at..];
        let (kept, used, is_over) = match memchr::memmem::find(rest, PASTE_END) {
            Some(end) => (end, end + PASTE_END.len(), true),
            // The end may have come in part.
            None => {
                let held = (1..PASTE_END.len()).rev().find(|n| rest.ends_with(&PASTE_END[..*n])).unwrap_or(0);
                (rest.len() - held, rest.len() - held, false)
            }
        };
        let room = MAX_PASTE.saturating_sub(paste.len());
        paste.extend_from_slice(&rest[..kept.min(room)]);
        if is_over {
            let paste = self.paste.take().unwrap_or_default();
            tokens.push(Token::Paste(String::from_utf8_lossy(&paste).into_owned()));
        }
        used
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Token {
    Token::Key(KeyEvent::new(code, modifiers))
}

fn front(bytes: &[u8]) -> Front {
    match bytes {
        [0x1b] => Front::Part,
        [0x1b, b'[', ..] => csi::read(bytes),
        [0x1b, b'O', rest @ ..] => ss3(rest),
        [0x1b, b']' | b'P' | b'_' | b'^', ..] => string(bytes),
        [0x1b, 0x1b, ..] => Front::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [0x1b, rest @ ..] => match plain(rest) {
            Front::Whole(length, Some(Token::Key(event))) => {
                Front::Whole(length + 1, Some(key(event.code, event.modifiers | KeyModifiers::ALT)))
            }
            Front::Whole(length, _) => Front::Whole(length + 1, None),
            other => other,
        },
        _ => plain(bytes),
    }
}

/// The keys of the old keypad.
fn ss3(rest: &[u8]) -> Front {
    let Some(last) = rest.first() else { return Front::Part };
    let code = match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        _ => return Front::Whole(2, Some(key(KeyCode::Char('O'), KeyModifiers::ALT))),
    };
    Front::Whole(3, Some(key(code, KeyModifiers::NONE)))
}

/// An answer in words: it ends with BEL or ST.
fn string(bytes: &[u8]) -> Front {
    for (at, byte) in bytes.iter().enumerate().skip(2) {
        match byte {
            0x07 => return Front::Whole(at + 1, ground(&bytes[2..at])),
            b'\\' if bytes[at - 1] == 0x1b && at > 2 => return Front::Whole(at + 1, ground(&bytes[2..at - 1])),
            // Nothing but printable text stands in one: Alt and a bracket were typed.
            byte if byte.is_ascii_control() && *byte != 0x1b => {
                return Front::Whole(2, Some(key(KeyCode::Char(bytes[1].into()), KeyModifiers::ALT)));
            }
            _ => {}
        }
    }
    Front::Part
}

/// `11;rgb:1e1e/1e1e/2e2e` and its like.
fn ground(text: &[u8]) -> Option<Token> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix("11;rgb")?;
    let parts = text.strip_prefix("a:").or_else(|| text.strip_prefix(':'))?;
    let mut out = [0.0; 3];
    let mut given = parts.split('/');
    for part in &mut out {
        let hex = given.next().filter(|hex| (1..=4).contains(&hex.len()))?;
        let most = (1_u32 << (4 * hex.len())) - 1;
        *part = u32::from_str_radix(hex, 16).ok()? as f32 / most as f32;
    }
    Some(Token::Ground(out))
}

/// A character, or what Control makes of one.
fn plain(bytes: &[u8]) -> Front {
    let control = |c: char| Front::Whole(1, Some(key(KeyCode::Char(c), KeyModifiers::CONTROL)));
    let one = |code| Front::Whole(1, Some(key(code, KeyModifiers::NONE)));
    match bytes[0] {
        b'\r' => one(KeyCode::Enter),
        // What Ctrl+J and raw pasted line ends send.
        b'\n' => control('j'),
        b'\t' => one(KeyCode::Tab),
        0x7f => one(KeyCode::Backspace),
        0 => control(' '),
        byte @ 0x01..=0x1a => control(char::from(byte - 1 + b'a')),
        // Ctrl with the underscore, or with the slash.
        0x1f => control('_'),
        byte @ 0x1c..=0x1e => control(char::from(byte - 0x1c + b'4')),
        first => {
            let length = match first {
                0..=0x7f => 1,
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                // Not the beginning of any character.
                _ => return Front::Whole(1, None),
            };
            let Some(all) = bytes.get(..length) else {
                let is_broken = bytes[1..].iter().any(|byte| byte & 0xc0 != 0x80);
                return if is_broken { Front::Whole(1, None) } else { Front::Part };
            };
            match std::str::from_utf8(all).ok().and_then(|text| text.chars().next()) {
                Some(c) => {
                    let shift = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
                    Front::Whole(length, Some(key(KeyCode::Char(c), shift)))
                }
                None => Front::Whole(1, None),
            }
        }
    }
}

#[cfg(test)]
mod tests;

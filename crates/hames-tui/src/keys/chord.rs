//! A key with its modifiers, as it is written.

use std::fmt;
use std::str::FromStr;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::KeymapError;

/// A key with its modifiers: `ctrl+s`, `alt+enter`, `shift+tab`, `f2`, `esc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Ord for Chord {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Key codes only have a partial order, though no two of them are without one.
        let codes = self.code.partial_cmp(&other.code).unwrap_or(std::cmp::Ordering::Equal);
        codes.then(self.modifiers.bits().cmp(&other.modifiers.bits()))
    }
}

impl PartialOrd for Chord {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

const NAMES: [(&str, KeyCode); 18] = [
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("space", KeyCode::Char(' ')),
    ("plus", KeyCode::Char('+')),
    ("escape", KeyCode::Esc),
    ("return", KeyCode::Enter),
];

impl Chord {
    /// What was pressed, in one spelling: terminals report Shift+Tab and capitals in several.
    pub fn of(key: &KeyEvent) -> Option<Chord> {
        let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        let mut modifiers = key.modifiers & known;
        let code = match key.code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(c) if c.is_uppercase() && modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Char(c.to_lowercase().next().unwrap_or(c))
            }
            // Shift is in the letter already.
            KeyCode::Char(_) if !modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                modifiers -= KeyModifiers::SHIFT;
                key.code
            }
            KeyCode::Null | KeyCode::Modifier(_) | KeyCode::Media(_) => return None,
            code => code,
        };
        Some(Chord { code, modifiers })
    }

    /// The key as it would be pressed.
    pub(super) fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// Whether it is text that somebody types.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }
}

impl FromStr for Chord {
    type Err = KeymapError;
    fn from_str(text: &str) -> Result<Self, KeymapError> {
        let no_key = || KeymapError::NoKey(text.to_owned());
        // A letter alone is that letter, large or small.
        let mut alone = text.trim().chars();
        if let (Some(c), None) = (alone.next(), alone.next()) {
            return Ok(Chord { code: KeyCode::Char(c), modifiers: KeyModifiers::NONE });
        }
        let lower = text.trim().to_lowercase();
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = lower.as_str();
        while let Some((name, after)) = rest.split_once('+').filter(|(_, after)| !after.is_empty()) {
            modifiers |= match name {
                "ctrl" | "control" => KeyModifiers::CONTROL,
                "alt" | "option" | "meta" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return Err(no_key()),
            };
            rest = after;
        }
        let mut chars = rest.chars();
        let code = match (NAMES.iter().find(|(name, _)| *name == rest), chars.next(), chars.next()) {
            (Some((_, code)), ..) => *code,
            (None, Some(c), None) => KeyCode::Char(c),
            (None, Some('f'), Some(_)) => match rest[1..].parse() {
                Ok(number @ 1..=24) => KeyCode::F(number),
                _ => return Err(no_key()),
            },
            _ => return Err(no_key()),
        };
        Ok(Chord { code, modifiers })
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in
            [(KeyModifiers::CONTROL, "Ctrl+"), (KeyModifiers::ALT, "Alt+"), (KeyModifiers::SHIFT, "Shift+")]
        {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match (self.code, NAMES.iter().find(|(_, code)| *code == self.code)) {
            (KeyCode::PageUp, _) => f.write_str("PageUp"),
            (KeyCode::PageDown, _) => f.write_str("PageDown"),
            (_, Some((name, _))) => write!(f, "{}{}", name[..1].to_uppercase(), &name[1..]),
            (KeyCode::F(number), None) => write!(f, "F{number}"),
            (KeyCode::Char(c), None) if self.modifiers.is_empty() => write!(f, "{c}"),
            (KeyCode::Char(c), None) => write!(f, "{}", c.to_uppercase()),
            (code, None) => write!(f, "{code:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_as_it_is_shown() {
        for (text, shown) in [
            ("ctrl+s", "Ctrl+S"),
            ("Alt+Enter", "Alt+Enter"),
            ("shift+tab", "Shift+Tab"),
            ("f12", "F12"),
            ("pagedown", "PageDown"),
            ("esc", "Esc"),
            ("escape", "Esc"),
            ("?", "?"),
            ("ctrl++", "Ctrl+Plus"),
            ("control+alt+up", "Ctrl+Alt+Up"),
        ] {
            let chord: Chord = text.parse().unwrap();
            assert_eq!(chord.to_string(), shown);
            assert_eq!(shown.parse(), Ok(chord));
        }
        for text in ["", "ctrl+", "hyper+x", "f25", "f0", "xy", "ctrl+ab"] {
            assert!(text.parse::<Chord>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_terminals_report_in_several_ways_is_one_key() {
        let of = |code, modifiers| Chord::of(&KeyEvent::new(code, modifiers)).unwrap().to_string();
        assert_eq!(of(KeyCode::BackTab, KeyModifiers::NONE), "Shift+Tab");
        assert_eq!(of(KeyCode::BackTab, KeyModifiers::SHIFT), "Shift+Tab");
        assert_eq!(of(KeyCode::Char('S'), KeyModifiers::CONTROL), "Ctrl+Shift+S");
        assert_eq!(of(KeyCode::Char('s'), KeyModifiers::CONTROL | KeyModifiers::SHIFT), "Ctrl+Shift+S");
        assert_eq!(of(KeyCode::Char('S'), KeyModifiers::SHIFT), "S");
    }
}

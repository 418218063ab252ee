//! Which key means what: data, so that every key can be changed in the configuration and `?` lists what holds.

mod chord;
mod inner;
mod table;

use std::collections::BTreeMap;

use ratatui::crossterm::event::KeyEvent;

pub use chord::Chord;
pub(crate) use inner::INNER;
pub use table::Action;
use table::{ALL, DEFAULTS};

/// A key or an action of a configuration that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    /// No such key.
    #[error("\"{0}\" is no key; keys look like ctrl+s, alt+enter, shift+tab, f2, esc, x")]
    NoKey(String),
    /// No such action.
    #[error("\"{given}\" is no action{}", near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    NoAction {
        /// What was given.
        given: String,
        /// The nearest there is.
        near: Option<&'static str>,
    },
    /// A key that would make the program unusable: a bare letter as a global action.
    #[error("\"{0}\" is typed into prompts and cannot be bound; add ctrl or alt")]
    Typed(String),
    /// Two keys of one layer that are the same.
    #[error("\"{key}\" is both {first} and {second}; give one of them another key")]
    Clash {
        /// The key.
        key: String,
        /// What it means.
        first: &'static str,
        /// What it means too.
        second: &'static str,
    },
}

/// Keys and their actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    bound: BTreeMap<Chord, Action>,
    /// The keys inside of layers, by their places in the table.
    inner: Vec<Option<Chord>>,
}

impl Default for Keymap {
    fn default() -> Self {
        let bound = DEFAULTS.iter().map(|(chord, action)| (chord.parse().expect("a default key is a key"), *action));
        Self { bound: bound.collect(), inner: Self::inner_defaults() }
    }
}

impl Keymap {
    /// The defaults with changes: key to action, an empty action takes a key away. Keys inside of layers the other way
    /// round: their name to a key.
    pub fn with<'a>(changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, KeymapError> {
        let mut map = Self::default();
        for (key, action) in changes {
            if map.rebind(key, action)? {
                continue;
            }
            let chord: Chord = key.parse()?;
            if chord.is_typed() {
                return Err(KeymapError::Typed(key.to_owned()));
            }
            if action.is_empty() {
                map.bound.remove(&chord);
            } else {
                map.bound.insert(chord, action.parse()?);
            }
        }
        map.clash().map_or(Ok(map), Err)
    }

    /// What a key means.
    pub fn action(&self, key: &KeyEvent) -> Option<Action> {
        self.bound.get(&Chord::of(key)?).copied()
    }

    /// The keys of an action, the one to show first.
    pub fn keys_of(&self, action: Action) -> Vec<Chord> {
        let rank = |chord: &Chord| DEFAULTS.iter().position(|(key, _)| key.parse().as_ref() == Ok(chord));
        let mut keys: Vec<Chord> = self.bound.iter().filter(|(_, a)| **a == action).map(|(c, _)| *c).collect();
        keys.sort_by_key(|chord| rank(chord).unwrap_or(usize::MAX));
        keys
    }

    /// The key of an action as a hint names it; empty where it has none.
    pub fn hint(&self, action: Action) -> String {
        self.keys_of(action).first().map(Chord::to_string).unwrap_or_default()
    }

    /// Every action with its keys, for `?`.
    pub fn list(&self) -> impl Iterator<Item = (Action, Vec<Chord>)> {
        ALL.iter().map(|(action, ..)| (*action, self.keys_of(*action)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::{KeyCode, KeyModifiers};

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn every_action_has_a_name_of_its_own_and_is_found_by_it() {
        for (action, name, does) in ALL {
            assert_eq!(name.parse::<Action>(), Ok(*action));
            assert!(!does.is_empty());
        }
        assert_eq!(
            "sumbit".parse::<Action>(),
            Err(KeymapError::NoAction { given: "sumbit".into(), near: Some("submit") })
        );
    }

    #[test]
    fn keys_mean_what_the_table_says_and_what_the_user_changes() {
        let keys = Keymap::default();
        for (code, modifiers, action) in [
            (KeyCode::Enter, KeyModifiers::NONE, Some(Action::Submit)),
            (KeyCode::Enter, KeyModifiers::ALT, Some(Action::Queue)),
            (KeyCode::Enter, KeyModifiers::CONTROL, Some(Action::Steer)),
            (KeyCode::Char('s'), KeyModifiers::CONTROL, Some(Action::Steer)),
            (KeyCode::Esc, KeyModifiers::NONE, Some(Action::Abort)),
            (KeyCode::Char('x'), KeyModifiers::NONE, None),
            // Terminals say shift of letters in either way.
            (KeyCode::Char('S'), KeyModifiers::CONTROL | KeyModifiers::SHIFT, None),
        ] {
            assert_eq!(keys.action(&press(code, modifiers)), action, "{code:?} {modifiers:?}");
        }
        let changed = Keymap::with([("ctrl+s", ""), ("f9", "steer")]).unwrap();
        assert_eq!(changed.action(&press(KeyCode::Char('s'), KeyModifiers::CONTROL)), None);
        assert_eq!(changed.action(&press(KeyCode::F(9), KeyModifiers::NONE)), Some(Action::Steer));
        for (changes, says) in [
            (("ctrl+nothing", "steer"), "is no key"),
            (("ctrl+s", "stear"), "did you mean steer?"),
            (("a", "steer"), "cannot be bound"),
        ] {
            let said = Keymap::with([changes]).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}

//! Keys that mean something inside of one layer: data too, so that each can be changed and `?` lists it.
//!
//! Layers are written for the keys of this table. Where somebody has others, what they press is turned into those before
//! the layer sees it, unless it takes text just then.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Chord, Keymap, KeymapError};

/// A key of a layer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    /// The layer, a dot, and what it does there: `decide.once`.
    pub(crate) name: &'static str,
    /// What it does, for a person.
    pub(crate) does: &'static str,
    key: &'static str,
}

macro_rules! inner {
    ($( $name:literal, $does:literal, $key:literal; )*) => {
        /// Every key of a layer, in the order `?` shows them.
        pub(crate) const INNER: &[Inner] = &[ $( Inner { name: $name, does: $does, key: $key }, )* ];
    };
}

inner! {
    "decide.once", "let the call run, this once", "y";
    "decide.session", "let such calls run for the session", "s";
    "decide.folder", "let such calls run in this folder from now on", "f";
    "decide.no", "do not let it run", "n";
    "decide.apply", "apply what a run proposed", "a";
    "decide.build", "go on in Build", "b";
    "decide.keep", "keep the proposals for later", "k";
    "decide.discard", "discard them", "d";
    "pending.now", "let a message that waits be heard at once", "n";
    "pending.steer", "let it join the next step", "s";
    "pending.queue", "let it wait for the end", "q";
    "pending.pause", "pause the queue, or let it go on", "p";
    "pending.withdraw", "withdraw it", "delete";
    "sessions.all", "sessions of all folders, or of this one", "tab";
    "sessions.new", "a new session with a name", "alt+n";
    "sessions.rename", "another name", "f2";
    "sessions.delete", "delete a session", "delete";
    "search.here", "search this folder alone, or all", "tab";
    "changes.apply", "apply a proposed change", "a";
    "changes.apply-all", "apply all of them", "A";
    "changes.discard", "discard a proposed change", "d";
    "changes.discard-all", "discard all of them", "D";
    "changes.mark", "mark it", "space";
    "changes.reread", "read them again", "r";
    "context.compact", "compact the window", "c";
    "context.reread", "read the report again", "r";
    "output.retry", "read an output again", "r";
    "settings.unset", "give a setting back to the configuration", "delete";
    "providers.test", "test a provider again", "r";
    "providers.save", "save it as it is", "s";
    "database.vacuum", "give unused space back", "v";
    "confirm.yes", "do what is asked about", "y";
    "confirm.no", "leave it", "n";
}

/// Layers that ask before something is done.
const CONFIRMS: &[&str] = &["delete", "cut", "changes", "context"];

impl Inner {
    fn chord(&self) -> Chord {
        self.key.parse().expect("a default key is a key")
    }

    /// Whether it means something in a layer.
    fn is_of(&self, layer: &str) -> bool {
        let context = self.name.split_once('.').map_or("", |(context, _)| context);
        context == layer || context == "confirm" && CONFIRMS.contains(&layer)
    }
}

impl Keymap {
    /// The key of each of the table; none where it was taken away.
    pub(super) fn inner_defaults() -> Vec<Option<Chord>> {
        INNER.iter().map(|inner| Some(inner.chord())).collect()
    }

    /// Another key for one of the table; empty takes it away. `false` where the name is none of them.
    pub(super) fn rebind(&mut self, name: &str, key: &str) -> Result<bool, KeymapError> {
        let Some(at) = INNER.iter().position(|inner| inner.name == name) else { return Ok(false) };
        if key.is_empty() {
            self.inner[at] = None;
            return Ok(true);
        }
        let chord: Chord = key.parse()?;
        if chord.is_typed() && !INNER[at].chord().is_typed() {
            return Err(KeymapError::Typed(key.to_owned()));
        }
        self.inner[at] = Some(chord);
        Ok(true)
    }

    /// Two that a layer could not tell apart.
    pub(super) fn clash(&self) -> Option<KeymapError> {
        let context = |at: usize| INNER[at].name.split_once('.').map(|(context, _)| context);
        for (at, chord) in self.inner.iter().enumerate() {
            let Some(chord) = chord else { continue };
            let other = (0..at).find(|other| context(*other) == context(at) && self.inner[*other] == Some(*chord));
            if let Some(other) = other {
                let (first, second) = (INNER[other].name, INNER[at].name);
                return Some(KeymapError::Clash { key: chord.to_string(), first, second });
            }
        }
        None
    }

    /// The key of one of the table as a hint names it; empty where it has none.
    pub(crate) fn inner(&self, name: &str) -> String {
        let at = INNER.iter().position(|inner| inner.name == name);
        at.and_then(|at| self.inner[at]).map(|chord| chord.to_string()).unwrap_or_default()
    }

    /// The key that a layer is written for, where somebody pressed another one that means the same there.
    pub(crate) fn turned(&self, layer: &str, key: &KeyEvent) -> Option<KeyEvent> {
        let chord = Chord::of(key)?;
        let of_layer = || INNER.iter().zip(&self.inner).filter(|(inner, _)| inner.is_of(layer));
        if let Some((inner, _)) = of_layer().find(|(_, bound)| **bound == Some(chord)) {
            let wanted = inner.chord();
            return (wanted != chord).then(|| wanted.event());
        }
        // What it came with means nothing any more.
        let is_free = of_layer().any(|(inner, _)| inner.chord() == chord);
        is_free.then(|| KeyEvent::new(KeyCode::Null, KeyModifiers::NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(name: &str) -> KeyEvent {
        name.parse::<Chord>().unwrap().event()
    }

    #[test]
    fn every_key_of_a_layer_can_be_another_one() {
        let keys = Keymap::with([("decide.once", "f12"), ("changes.apply-all", "x"), ("database.vacuum", "")]).unwrap();
        for (layer, pressed, seen) in [
            ("decide", "f12", Some(press("y"))),
            ("decide", "y", Some(KeyEvent::new(KeyCode::Null, KeyModifiers::NONE))),
            ("decide", "n", None),
            ("changes", "x", Some(press("A"))),
            ("changes", "a", None),
            ("changes", "f12", None),
            ("database", "v", Some(KeyEvent::new(KeyCode::Null, KeyModifiers::NONE))),
            ("delete", "y", None),
        ] {
            assert_eq!(keys.turned(layer, &press(pressed)), seen, "{pressed} in {layer}");
        }
        assert_eq!((keys.inner("decide.once"), keys.inner("database.vacuum")), ("F12".into(), String::new()));
    }

    #[test]
    fn what_would_make_a_layer_unusable_is_refused() {
        for (changes, says) in [
            (vec![("decide.once", "n")], "\"n\" is both decide.once and decide.no"),
            (vec![("sessions.delete", "x")], "cannot be bound"),
            (vec![("decide.once", "hyper+x")], "is no key"),
            (vec![("decide.onec", "x")], "\"decide.onec\" is no key"),
        ] {
            let said = Keymap::with(changes).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
        // One that only means something in another layer is no clash.
        Keymap::with([("decide.once", "r"), ("context.compact", "v")]).unwrap();
    }

    #[test]
    fn without_changes_every_key_is_itself() {
        let keys = Keymap::default();
        for inner in INNER {
            let context = inner.name.split_once('.').unwrap().0;
            let layer = if context == "confirm" { "delete" } else { context };
            assert_eq!(keys.turned(layer, &inner.chord().event()), None, "{}", inner.name);
            assert!(!inner.does.is_empty());
        }
    }
}

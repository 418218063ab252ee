//! The section `keys`: which key of the face means what.

use hames_tui::{Keymap, KeymapError};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::read::Reader;
use crate::exit::Stop;

impl Reader<'_> {
    /// Keys and actions, each of which is one; an empty action takes a key away.
    pub(super) fn keymap(&mut self, value: &Value<'_>, key: &str) -> Result<Vec<(String, String)>, Stop> {
        let mut out = Vec::new();
        for property in &self.object(value, key)?.properties {
            let name = property.name.as_str();
            let at = format!("{key}.{name}");
            let Value::StringLit(action) = &property.value else {
                return Err(self.wrong(&property.value, &at, "the name of an action, or \"\" for none"));
            };
            let entry = (name.to_owned(), action.value.trim().to_owned());
            // Two that change places only clash one by one.
            match Keymap::with([(entry.0.as_str(), entry.1.as_str())]) {
                Ok(_) | Err(KeymapError::Clash { .. }) => out.push(entry),
                Err(why) => return Err(self.no_key(property.start(), key, &why)),
            }
        }
        let all = Keymap::with(out.iter().map(|(key, action)| (key.as_str(), action.as_str())));
        all.map_err(|why| self.no_key(value.start(), key, &why))?;
        Ok(out)
    }

    fn no_key(&self, at: usize, key: &str, why: &KeymapError) -> Stop {
        let line = self.line(at);
        Stop::configuration(format!("{}:{line}: {key}: {why}; ? in `hames` lists both", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::FileConfig;
    use crate::exit::Stop;

    #[test]
    fn keys_are_read_and_what_means_nothing_is_said_with_its_line() {
        let read = |text: &str| FileConfig::parse(Path::new("/h/config.jsonc"), text);
        let keys = read("{\"keys\": {\"f9\": \"steer\", \"ctrl+s\": \"\"}}").unwrap().keys;
        assert_eq!(keys, [("f9".into(), "steer".into()), ("ctrl+s".into(), String::new())]);
        read("{\"keys\": {\"decide.once\": \"n\", \"decide.no\": \"y\"}}").unwrap();
        for (text, says) in [
            ("{\n\"keys\": {\"hyper+q\": \"steer\"}}", ":2: keys: \"hyper+q\" is no key"),
            ("{\n\n\"keys\": {\"f9\": \"stear\"}}", ":3: keys: \"stear\" is no action; did you mean steer?"),
            ("{\"keys\": {\"x\": \"steer\"}}", "cannot be bound"),
            ("{\"keys\": {\"f9\": 1}}", "keys.f9 should be the name of an action"),
            ("{\"keys\": []}", "keys should be an object"),
            ("{\n\"keys\": {\"decide.once\": \"n\"}}", ":2: keys: \"n\" is both decide.once and decide.no"),
        ] {
            let Err(Stop::Failed(failure)) = read(text) else { panic!("accepted {text}") };
            assert!(failure.message.contains(says), "{}", failure.message);
        }
    }
}

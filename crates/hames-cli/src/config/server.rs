//! What the configuration says about the local server.
//!
//! Only the user's own file is read: a repository neither starts a server nor says where it is.

use std::time::Duration;

use jsonc_parser::ast::Value;

use super::keys;
use super::read::Reader;
use crate::exit::Stop;

/// How long a server that nobody uses stays, where nothing is configured: long enough for a pause, short enough that a
/// forgotten one is gone by the evening.
const USUAL_IDLE_EXIT: Duration = Duration::from_secs(30 * 60);
/// Seconds beyond this (a month) are a slip of the finger; `never` says what is meant.
const MAX_IDLE_S: u64 = 31 * 86_400;

/// When a server that has neither client nor run ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleExit {
    /// After so long.
    After(Duration),
    /// Not at all.
    Never,
}

impl Default for IdleExit {
    fn default() -> Self {
        IdleExit::After(USUAL_IDLE_EXIT)
    }
}

impl std::str::FromStr for IdleExit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u64>() {
            Ok(seconds) if seconds <= MAX_IDLE_S => Ok(IdleExit::After(Duration::from_secs(seconds))),
            _ if text == "never" => Ok(IdleExit::Never),
            _ => Err(format!("it is a number of seconds, {MAX_IDLE_S} at most, or never")),
        }
    }
}

impl std::fmt::Display for IdleExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IdleExit::After(time) => write!(f, "{}", time.as_secs()),
            IdleExit::Never => f.write_str("never"),
        }
    }
}

/// The section `server`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileServer {
    /// When it ends by itself.
    pub(crate) idle_exit: Option<IdleExit>,
}

impl Reader<'_> {
    pub(super) fn server(&mut self, value: &Value<'_>, key: &str) -> Result<FileServer, Stop> {
        let mut out = FileServer::default();
        for property in self.known(self.object(value, key)?, key, keys::SERVER) {
            let key = format!("{key}.{}", property.name.as_str());
            if property.name.as_str() == "idle_exit" {
                let text = match &property.value {
                    Value::NumberLit(number) => number.value,
                    Value::StringLit(text) => &text.value,
                    _ => "",
                };
                let read = text.parse().map_err(|_| self.wrong(&property.value, &key, "seconds, or \"never\""))?;
                out.idle_exit = Some(read);
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::FileConfig;

    #[test]
    fn a_server_stays_as_long_as_is_said() {
        let after = |s| Some(IdleExit::After(Duration::from_secs(s)));
        for (text, expected) in [
            ("{}", Some(None)),
            (r#"{"idle_exit": 60}"#, Some(after(60))),
            (r#"{"idle_exit": "60"}"#, Some(after(60))),
            (r#"{"idle_exit": 0}"#, Some(after(0))),
            (r#"{"idle_exit": "never"}"#, Some(Some(IdleExit::Never))),
            (r#"{"idle_exit": -1}"#, None),
            (r#"{"idle_exit": 1.5}"#, None),
            (r#"{"idle_exit": 99999999}"#, None),
            (r#"{"idle_exit": true}"#, None),
            (r#"{"idle_exit": "soon"}"#, None),
        ] {
            let read = FileConfig::parse(Path::new("/h/config.jsonc"), &format!("{{\"server\": {text}}}"));
            assert_eq!(read.ok().map(|file| file.server.idle_exit), expected, "{text}");
        }
    }
}

//! The one place that reads the environment.
//!
//! Everything else is given values, so tests can build an [`Env`] of their own and nothing depends on the process's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The environment as it was when the process began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    vars: BTreeMap<OsString, OsString>,
}

impl Env {
    /// Reads the process's environment.
    pub(crate) fn read() -> Self {
        Self { vars: std::env::vars_os().collect() }
    }

    /// The environment of these variables.
    pub(crate) fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { vars: vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }

    /// A variable as text; unset, empty and unreadable ones are `None`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(OsStr::new(name)).and_then(|value| value.to_str()).map(str::trim).filter(|v| !v.is_empty())
    }

    /// A variable as the system keeps it, for paths; empty ones are `None`.
    pub(crate) fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// Whether a switch such as `HAMES_DEBUG` is on: set, and neither empty nor `0`.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0")
    }

    /// What child processes are given: everything that is text, but the named variables.
    pub(crate) fn without(&self, names: &[String]) -> Vec<(String, String)> {
        self.vars
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .filter(|(name, _)| !names.contains(name))
            .collect()
    }

    /// The program of that name in `PATH`, by its absolute path.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        let folders = std::env::split_paths(self.get_os("PATH")?).collect::<Vec<_>>();
        let is_program = |path: &PathBuf| {
            path.is_absolute() && path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        };
        folders.into_iter().map(|folder| folder.join(name)).find(is_program)
    }

    /// The proxy for a URL, after `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` (either case). A server on
    /// this machine is always spoken to directly.
    pub(crate) fn proxy_for(&self, url: &str) -> Option<String> {
        let (scheme, rest) = url.split_once("://")?;
        let host = host_of(rest);
        if is_loopback(host) || self.is_excepted(host) {
            return None;
        }
        let names: &[&str] = match scheme {
            "https" => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
            _ => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
        };
        names.iter().find_map(|name| self.get(name)).map(str::to_owned)
    }

    fn is_excepted(&self, host: &str) -> bool {
        let Some(list) = self.get("no_proxy").or_else(|| self.get("NO_PROXY")) else { return false };
        list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
            let name = entry.trim_start_matches("*.").trim_start_matches('.');
            entry == "*"
                || host.eq_ignore_ascii_case(name)
                || host
                    .to_ascii_lowercase()
                    .strip_suffix(&name.to_ascii_lowercase())
                    .is_some_and(|before| before.ends_with('.'))
        })
    }
}

/// The host of what follows `scheme://`, without user, port and brackets.
pub(crate) fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host_port = authority.rsplit('@').next().unwrap_or("");
    match host_port.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host_port.split(':').next().unwrap_or(""),
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

#[cfg(test)]
impl Env {
    /// An environment for a test.
    pub(crate) fn of(vars: &[(&str, &str)]) -> Self {
        Self { vars: vars.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_an_unset_one() {
        let env = Env::of(&[("A", ""), ("B", "  "), ("C", " x ")]);
        assert_eq!(env.get("A"), None);
        assert_eq!(env.get("B"), None);
        assert_eq!(env.get("C"), Some("x"));
        assert_eq!(env.get("D"), None);
    }

    #[test]
    fn a_proxy_is_chosen_by_scheme_and_excepted_by_host() {
        let env = Env::of(&[
            ("HTTPS_PROXY", "http://secure:1"),
            ("http_proxy", "http://plain:2"),
            ("NO_PROXY", "example.org, .corp ,*.wild.net,10.0.0.7"),
        ]);
        for (url, proxy) in [
            ("https://api.openai.com/v1", Some("http://secure:1")),
            ("http://api.openai.com/v1", Some("http://plain:2")),
            ("https://user:pw@api.openai.com:8443/v1", Some("http://secure:1")),
            ("http://127.0.0.1:8080/v1", None),
            ("http://localhost:8080", None),
            ("http://LOCALHOST", None),
            ("http://[::1]:8080/v1", None),
            ("http://0.0.0.0:8080", None),
            ("https://example.org/v1", None),
            ("https://api.example.org/v1", None),
            ("https://notexample.org/v1", Some("http://secure:1")),
            ("https://llm.corp/v1", None),
            ("https://a.wild.net", None),
            ("http://10.0.0.7:9/v1", None),
            ("no url", None),
        ] {
            assert_eq!(env.proxy_for(url).as_deref(), proxy, "{url}");
        }
        assert_eq!(Env::of(&[("ALL_PROXY", "socks5://s"), ("no_proxy", "*")]).proxy_for("https://a.b"), None);
        assert_eq!(Env::of(&[("ALL_PROXY", "socks5://s")]).proxy_for("https://a.b").as_deref(), Some("socks5://s"));
    }

    #[test]
    fn children_do_not_get_the_named_variables() {
        let env = Env::of(&[("OPENAI_API_KEY", "k"), ("PATH", "/bin")]);
        assert_eq!(env.without(&["OPENAI_API_KEY".into()]), vec![("PATH".to_owned(), "/bin".to_owned())]);
    }
}

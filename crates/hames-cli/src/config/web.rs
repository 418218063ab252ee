//! What the configuration says about fetching pages: hosts beyond the public internet, and a proxy.
//!
//! Only the user's own file is read: a repository opens no doors. A host that is not understood is an error, because
//! whoever wrote it expects it to hold.

use hames_workspace::web::{Allowed, WebOptions};
use jsonc_parser::ast::Value;

use super::keys;
use super::read::Reader;
use crate::exit::Stop;

/// The section `web`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileWeb {
    /// Hosts and ranges of addresses that may be fetched from besides the public internet.
    pub(crate) allow: Vec<Allowed>,
    /// The proxy to go through.
    pub(crate) proxy: Option<String>,
}

impl FileWeb {
    /// The password in the proxy's URL, which no result and no log may carry.
    pub(crate) fn password(&self) -> Option<String> {
        let (_, rest) = self.proxy.as_deref()?.split_once("://")?;
        let (user, _) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
        user.split_once(':').map(|(_, password)| password.to_owned())
    }

    /// As the tool takes it.
    pub(crate) fn options(&self) -> WebOptions {
        WebOptions { allow: self.allow.clone(), proxy: self.proxy.clone(), ..WebOptions::default() }
    }
}

impl Reader<'_> {
    pub(super) fn web(&mut self, value: &Value<'_>, key: &str) -> Result<FileWeb, Stop> {
        let mut out = FileWeb::default();
        for property in self.known(self.object(value, key)?, key, keys::WEB) {
            let key = format!("{key}.{}", property.name.as_str());
            match property.name.as_str() {
                "allow" => out.allow = self.allowed(&property.value, &key)?,
                "proxy" => out.proxy = Some(self.url(&property.value, &key)?.value),
                _ => {}
            }
        }
        Ok(out)
    }

    fn allowed(&self, value: &Value<'_>, key: &str) -> Result<Vec<Allowed>, Stop> {
        const WANTED: &str = "a host or a range of addresses: localhost, *.corp.example, 10.1.0.0/16";
        let Value::Array(array) = value else {
            return Err(self.wrong(value, key, "an array of hosts and ranges: [\"localhost\", \"10.1.0.0/16\"]"));
        };
        let one = |(at, element): (usize, &Value<'_>)| {
            let key = format!("{key}[{at}]");
            let text = self.string(element, &key)?;
            text.value.parse().map_err(|_| self.wrong(element, &key, WANTED))
        };
        array.elements.iter().enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::file::FileConfig;

    #[test]
    fn hosts_ranges_and_a_proxy_are_read() {
        let text =
            r#"{"web": {"allow": ["LocalHost", "*.corp.example", "10.1.0.0/16", "[::1]",], "proxy": "http://p:3128"}}"#;
        let web = FileConfig::parse(Path::new("/h/config.jsonc"), text).unwrap().web;
        let allow = ["localhost", "*.corp.example", "10.1.0.0/16", "::1"].map(|text| text.parse().unwrap());
        assert_eq!(web, FileWeb { allow: allow.into(), proxy: Some("http://p:3128".into()) });
        for (proxy, password) in [
            ("http://p:3128", None),
            ("http://user@p:3128", None),
            ("http://user:pa:ss@p:3128/x", Some("pa:ss")),
            ("http://u:p@ss@p", Some("p@ss")),
        ] {
            let web = FileWeb { proxy: Some(proxy.into()), ..FileWeb::default() };
            assert_eq!(web.password().as_deref(), password, "{proxy}");
        }
        assert_eq!(FileConfig::parse(Path::new("/h/config.jsonc"), "{}").unwrap().web, FileWeb::default());
    }

    #[test]
    fn what_would_not_hold_is_an_error_with_its_place() {
        for (text, expected) in [
            (r#"{"web": []}"#, ":1: web should be an object; it is an array"),
            (r#"{"web": {"allow": "localhost"}}"#, ":1: web.allow should be an array of hosts and ranges"),
            (
                "{\"web\": {\"allow\": [\n\"localhost\",\n\"http://x\"]}}",
                ":3: web.allow[1] should be a host or a range",
            ),
            (r#"{"web": {"allow": ["localhost:80"]}}"#, "web.allow[0] should be a host or a range"),
            (r#"{"web": {"allow": ["10.0.0.0/99"]}}"#, "web.allow[0] should be a host or a range"),
            (r#"{"web": {"allow": ["*"]}}"#, "web.allow[0] should be a host or a range"),
            (r#"{"web": {"allow": [""]}}"#, "web.allow[0] should be a string that is not empty"),
            (r#"{"web": {"allow": [1]}}"#, "web.allow[0] should be a string that is not empty"),
            (r#"{"web": {"proxy": "proxy:3128"}}"#, "web.proxy should be a URL"),
        ] {
            let Err(Stop::Failed(failure)) = FileConfig::parse(Path::new("/h/config.jsonc"), text) else {
                panic!("{text}")
            };
            assert!(failure.message.contains(expected), "{text}: {}", failure.message);
        }
        let config = FileConfig::parse(Path::new("/h/config.jsonc"), r#"{"web": {"alow": []}}"#).unwrap();
        assert!(
            config.warnings[0].contains("web.alow") && config.warnings[0].contains("allow"),
            "{:?}",
            config.warnings
        );
    }
}

//! Providers that are ready: those of the file, and those the environment makes.

use hames_protocol::{Sampling, ThinkingLevel};

use super::file::{At, FileModel, FileProvider, Thinking, Timeouts};
use super::layers::Origin;
use super::presets::{Preset, preset};
use super::read::is_http_url;
use crate::env::Env;
use crate::exit::Stop;

/// A key and where it came from. Its `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    value: String,
    pub(crate) origin: Origin,
}

impl Key {
    /// The key itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.value
    }

    /// Enough of it to tell two keys apart, and no more: the last four characters of a long one.
    pub(crate) fn masked(&self) -> String {
        let count = self.value.chars().count();
        let tail: String = self.value.chars().skip(count.saturating_sub(4)).collect();
        if count >= 16 { format!("…{tail}") } else { "…".into() }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.masked())
    }
}

/// A provider with every layer applied.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    /// Empty where nobody said it.
    pub(crate) base_url: String,
    pub(crate) url_origin: Origin,
    pub(crate) key: Option<Key>,
    /// A variable that should hold the key and does not.
    pub(crate) missing_key_var: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) session_header: Option<String>,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) thinking_level: Option<ThinkingLevel>,
    pub(crate) sampling: Sampling,
    pub(crate) models: Vec<FileModel>,
    /// The provider in the catalog whose models these are, where the file says so.
    pub(crate) catalog: Option<String>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) replay_reasoning: Option<bool>,
    pub(crate) thinking_tags: Option<bool>,
    pub(crate) text_tool_calls: Option<bool>,
    pub(crate) timeouts: Timeouts,
    /// The model that is meant where nobody names one.
    pub(crate) default_model: Option<&'static str>,
    /// Whether it is known to answer nobody without a key.
    pub(crate) needs_key: bool,
    /// Variables that hold keys of it: not passed on to child processes.
    pub(crate) key_vars: Vec<String>,
}

impl Provider {
    /// The provider that the environment alone makes, if it does.
    pub(crate) fn of_preset(preset: &Preset, env: &Env) -> Result<Option<Provider>, Stop> {
        let url = preset.url_var.and_then(|var| env.get(var).map(|url| (var, url)));
        if preset.key_var.and_then(|var| env.get(var)).is_none() && url.is_none() {
            return Ok(None);
        }
        Ok(Some(Self::known(preset, env)?))
    }

    /// A well-known provider with what the environment adds, a key or none.
    pub(crate) fn known(preset: &Preset, env: &Env) -> Result<Provider, Stop> {
        let mut provider = Self::empty(preset.name);
        provider.base_url = preset.base_url.into();
        provider.thinking = preset.thinking;
        provider.session_header = preset.session_header.map(str::to_owned);
        provider.default_model = preset.default_model;
        if let Some(var) = preset.key_var {
            provider.key = env.get(var).map(|value| Key { value: value.into(), origin: Origin::Env(var.into()) });
            provider.key_vars.push(var.into());
        }
        provider.needs_key = preset.key_var.is_some();
        if let Some((var, url)) = preset.url_var.and_then(|var| env.get(var).map(|url| (var, url))) {
            if !is_http_url(url) {
                return Err(Stop::configuration(format!("{var} should be a URL that begins with http:// or https://")));
            }
            if secrets_in(url).next().is_some() {
                provider.key_vars.push(var.into());
            }
            provider.base_url = url.into();
            provider.url_origin = Origin::Env(var.into());
        }
        Ok(provider)
    }

    /// The provider the file describes; under a well-known name, what the file leaves out is what is known.
    pub(crate) fn of_file(name: &str, file: &FileProvider, env: &Env) -> Result<Provider, Stop> {
        let mut provider = match preset(name) {
            Some(preset) => Self::known(preset, env)?,
            None => Self::empty(name),
        };
        if let Some(url) = &file.base_url {
            provider.base_url.clone_from(&url.value);
            provider.url_origin = Origin::File(url.line);
        }
        if let Some(At { value, line }) = &file.api_key {
            provider.key = Some(Key { value: value.clone(), origin: Origin::File(*line) });
        }
        if let Some(At { value: var, .. }) = &file.api_key_env {
            provider.key = env.get(var).map(|key| Key { value: key.into(), origin: Origin::Env(var.clone()) });
            provider.missing_key_var = provider.key.is_none().then(|| var.clone());
            provider.key_vars.push(var.clone());
        }
        provider.models.clone_from(&file.models);
        provider.headers = file.headers.iter().map(|(name, text)| (name.clone(), text.value.clone())).collect();
        let session_header = file.session_header.as_ref().map(|at| at.value.clone());
        provider.session_header = session_header.or(provider.session_header);
        provider.thinking = file.thinking.as_ref().map(|at| at.value).or(provider.thinking);
        provider.thinking_level = file.thinking_level.as_ref().map(|at| at.value);
        provider.catalog = file.catalog.as_ref().map(|at| at.value.clone());
        provider.sampling = file.sampling;
        provider.max_tokens = file.max_tokens.as_ref().map(|at| at.value);
        provider.replay_reasoning = file.replay_reasoning.as_ref().map(|at| at.value);
        provider.thinking_tags = file.thinking_tags.as_ref().map(|at| at.value);
        provider.text_tool_calls = file.text_tool_calls.as_ref().map(|at| at.value);
        provider.timeouts = file.timeouts;
        Ok(provider)
    }

    /// A well-known server of one's own.
    pub(crate) fn local(preset: &Preset) -> Provider {
        Provider { thinking: preset.thinking, ..Self::at(preset.name, preset.base_url) }
    }

    /// A provider at a URL, without a key.
    pub(crate) fn at(name: &str, base_url: &str) -> Provider {
        Provider { base_url: base_url.into(), ..Self::empty(name) }
    }

    fn empty(name: &str) -> Provider {
        Provider {
            name: name.into(),
            base_url: String::new(),
            url_origin: Origin::Preset,
            key: None,
            missing_key_var: None,
            headers: Vec::new(),
            session_header: None,
            thinking: None,
            thinking_level: None,
            sampling: Sampling::default(),
            models: Vec::new(),
            catalog: None,
            max_tokens: None,
            replay_reasoning: None,
            thinking_tags: None,
            text_tool_calls: None,
            timeouts: Timeouts::default(),
            default_model: None,
            needs_key: false,
            key_vars: Vec::new(),
        }
    }

    /// Values that must never be seen in a log, an event or an output.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let mut out: Vec<String> = self.key.iter().map(|key| key.value.clone()).collect();
        for (name, value) in &self.headers {
            if is_secret_name(name) {
                out.push(value.clone());
                // `Bearer x` and the like: the second word alone gives it away too.
                out.extend(value.split_once(' ').map(|(_, rest)| rest.trim().to_owned()));
            }
        }
        out.extend(secrets_in(&self.base_url).map(str::to_owned));
        out
    }
}

/// Keys among the parameters of a URL.
fn secrets_in(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split(['&', '#']).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value)
}

/// Whether a parameter of a URL is a key.
pub(crate) fn has_secret_parameter(url: &str) -> bool {
    secrets_in(url).next().is_some()
}

/// A URL as it may be shown: without user and password, and without the query, where some servers want a key.
pub(crate) fn shown_url(url: &str) -> String {
    let (shown, tail) = match url.find(['?', '#']) {
        Some(at) => (&url[..at], "?…"),
        None => (url, ""),
    };
    let (scheme, rest) = shown.split_once("://").map_or(("", shown), |(scheme, rest)| (scheme, rest));
    let separator = if scheme.is_empty() { "" } else { "://" };
    // The last @ wherever it is: a password may hold slashes, and a path seldom an @.
    let (user, host) = rest.rsplit_once('@').map_or(("", rest), |(_, host)| ("…@", host));
    format!("{scheme}{separator}{user}{host}{tail}")
}

/// Whether the value of a header, or of a URL's parameter, is a secret by the look of its name.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie", "password", "credential"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_password_and_query() {
        for (url, shown) in [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
            ("https://me:pw@host/v1", "https://…@host/v1"),
            ("https://me:p/w@host", "https://…@host"),
            ("https://me:p@w@host", "https://…@host"),
            ("https://host/v1?key=pw", "https://host/v1?…"),
            ("https://host?key=a@pw", "https://host?…"),
            ("https://host/#pw", "https://host/?…"),
            ("me:pw@host", "…@host"),
            ("https://日本/ü", "https://日本/ü"),
            ("", ""),
        ] {
            assert_eq!(shown_url(url), shown, "{url}");
        }
    }

    #[test]
    fn a_key_shows_at_most_its_last_four_characters() {
        for (key, shown) in
            [("sk-0123456789abcdef", "…cdef"), ("short", "…"), ("", "…"), ("ключ-ключ-ключ-ключ", "…ключ")]
        {
            let key = Key { value: key.into(), origin: Origin::Preset };
            assert_eq!(key.masked(), shown);
            assert_eq!(format!("{key:?}"), shown);
        }
    }

    #[test]
    fn a_key_in_a_base_url_is_a_secret_and_other_parameters_are_none() {
        for (url, secrets) in [
            ("https://host/v1?key=k-1", &["k-1"][..]),
            ("https://host/v1?api-version=2024-10-21&api_key=k-2#part", &["k-2"]),
            ("https://host?Token=a=b&x=1&subscription-key=c", &["a=b", "c"]),
            ("https://host/key=no?plain", &[]),
            ("https://host/v1", &[]),
        ] {
            assert_eq!(Provider::at("p", url).secrets(), secrets, "{url}");
        }
    }

    #[test]
    fn secret_headers_are_known_by_their_names() {
        for (name, secret) in [
            ("Authorization", true),
            ("X-Api-Key", true),
            ("x-auth-token", true),
            ("Cookie", true),
            ("HTTP-Referer", false),
            ("X-Title", false),
        ] {
            assert_eq!(is_secret_name(name), secret, "{name}");
        }
    }
}

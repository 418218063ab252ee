//! What is told of an endpoint: plain values, given by whoever embeds this crate. Nothing here reads the environment.

use std::fmt;
use std::time::Duration;

/// A text that must not be seen: a key, a password. Prints as `****`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("****")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("****")
    }
}

/// How an endpoint wants to be told how much to think. Where none is set, nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThinkingDialect {
    /// `chat_template_kwargs.enable_thinking`, and `reasoning_effort` where thinking is on.
    Bool,
    /// `reasoning_effort`; off sends nothing, because some models refuse to be switched off.
    Effort,
    /// `reasoning: {effort}` or `reasoning: {enabled: false}`.
    Reasoning,
    /// `thinking: {type: "enabled" | "disabled"}`.
    Type,
}

/// How long to wait for what. There is no limit on a whole answer: a long one is not a dead one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// From sending the request to the first event that carries something.
    pub first_byte: Duration,
    /// Between two such events. Comments and keep-alives do not count.
    pub idle: Duration,
}

impl Default for Timeouts {
    /// 10 s, 10 min, 5 min: a local model may read a long prompt for minutes before its first word.
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: Duration::from_secs(600), idle: Duration::from_secs(300) }
    }
}

/// A proxy that requests go through. Whoever sets it has decided that this endpoint needs one; loopback never does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// `http://` or `https://` address, which may hold a password.
    pub url: Secret,
}

/// Where an endpoint's settings come from, so that a message to a person can name the place to change. Only ever shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedies {
    /// Where its key is read from, or would be: `the variable ACME_KEY`, `/home/me/.config/hames/config.jsonc:12`.
    pub key: Option<String>,
    /// Where its other settings are: `providers.acme in /home/me/.config/hames/config.jsonc`.
    pub settings: Option<String>,
}

/// An endpoint that speaks Chat Completions.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name in the configuration, used in messages to people.
    pub name: String,
    /// Base URL, with or without `/v1`; see [`chat_url`](crate::chat_url).
    pub base_url: String,
    /// Sent as a bearer token.
    pub api_key: Option<Secret>,
    /// Further headers; one of them may be `authorization`, which then replaces the bearer token. Their values are
    /// treated as secrets.
    pub headers: Vec<(String, String)>,
    /// The header that gets the session's id, for hosts that route or cache by it.
    pub session_header: Option<String>,
    /// How it is told to think.
    pub thinking: Option<ThinkingDialect>,
    /// Whether reasoning goes back with later requests: all of it, none of it, or (unset) what providers insist on:
    /// `reasoning_details` always, `reasoning_content` where it came together with tool calls.
    pub replay_reasoning: Option<bool>,
    /// Whether reasoning that stands in the text between thinking tags (`<think>` and its kin) is taken for reasoning.
    pub thinking_tags: bool,
    /// Whether an answer of nothing but calls, written as text in the way of local models, is taken for calls.
    pub text_tool_calls: bool,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// Where requests go through.
    pub proxy: Option<Proxy>,
    /// Where a person finds its settings.
    pub remedies: Remedies,
}

impl Endpoint {
    /// An endpoint with a name, a base URL and defaults.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: base_url.into(),
            api_key: None,
            headers: Vec::new(),
            session_header: None,
            thinking: None,
            replay_reasoning: None,
            thinking_tags: true,
            text_tool_calls: true,
            timeouts: Timeouts::default(),
            proxy: None,
            remedies: Remedies::default(),
        }
    }

    /// The same endpoint with a key.
    pub fn with_key(mut self, key: impl Into<Secret>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// What in the base URL may be a secret: a password before the host, and the values of its query but for a version.
    fn in_url(&self) -> impl Iterator<Item = &str> {
        let (front, query) = self.base_url.split_once('?').unwrap_or((&self.base_url, ""));
        let authority = front.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
        let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, word)| word);
        let values = query.split('#').next().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        password.into_iter().chain(values.filter(|(name, _)| !name.contains("version")).map(|(_, value)| value))
    }

    /// Every text that must not appear in a log or an error.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        /// A value shorter than this (`1`, `true`, the `ollama` that a local server is given for a key) is no secret,
        /// and masking it would blank out words.
        const SHORTEST: usize = 8;
        let keys = self.api_key.iter().map(|key| key.expose().trim());
        let headers = self.headers.iter().map(|(_, value)| {
            // The scheme of `Bearer …` is not the secret.
            value.rsplit_once(' ').map_or(value.as_str(), |(_, last)| last)
        });
        keys.chain(headers).chain(self.in_url()).filter(|value| value.len() >= SHORTEST).collect()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key)
            .field("headers", &headers)
            .field("session_header", &self.session_header)
            .field("thinking", &self.thinking)
            .field("replay_reasoning", &self.replay_reasoning)
            .field("thinking_tags", &self.thinking_tags)
            .field("text_tool_calls", &self.text_tool_calls)
            .field("timeouts", &self.timeouts)
            .field("proxy", &self.proxy)
            .field("remedies", &self.remedies)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_stand_for_a_key_are_not_masked() {
        for (key, secret) in
            [("", false), ("ollama", false), ("none", false), ("sk-1234", false), (" sk-12345\n", true)]
        {
            let endpoint = Endpoint::new("p", "http://127.0.0.1:1").with_key(key);
            assert_eq!(endpoint.secrets(), if secret { vec![key.trim()] } else { vec![] }, "{key:?}");
        }
    }

    #[test]
    fn what_a_url_carries_is_a_secret_too() {
        for (url, secrets) in [
            ("https://h/v1?key=abcdefgh1", vec!["abcdefgh1"]),
            ("https://u:passw0rd1@h/v1?api-version=2025-01-01&sig=zyxwvuts", vec!["passw0rd1", "zyxwvuts"]),
            ("https://h/v1?api-version=2025-01-01", vec![]),
            ("https://h/v1", vec![]),
            ("h/a@b:c?x", vec![]),
            ("https://h?k=abcdefgh#f=ijklmnop", vec!["abcdefgh"]),
            ("", vec![]),
            ("?=&&==", vec![]),
        ] {
            assert_eq!(Endpoint::new("p", url).secrets(), secrets, "{url}");
        }
    }

    #[test]
    fn no_form_of_printing_shows_a_secret() {
        let mut endpoint = Endpoint::new("p", "http://127.0.0.1:1").with_key("sk-very-secret");
        endpoint.headers.push(("x-api-key".into(), "hdr-very-secret".into()));
        endpoint.proxy = Some(Proxy { url: "http://u:very-secret@proxy:1".into() });
        let key = endpoint.api_key.clone().unwrap();
        let shown = format!("{endpoint:?} {endpoint:#?} {key} {key:?}");
        assert!(!shown.contains("very-secret"), "{shown}");
        assert!(shown.contains("****") && shown.contains("x-api-key"));
        assert_eq!(key.expose(), "sk-very-secret");
    }
}

//! From the base URL a person wrote to the addresses that are called.

use std::net::Ipv4Addr;

use hames_protocol::{ErrorClass, Failure};
use reqwest::Url;

/// Where Chat Completions are under a base URL.
pub(crate) const CHAT: &str = "/chat/completions";

/// Endpoints known to have no `/v1` in their path: host, and the path they are used under.
const UNVERSIONED: [(&str, &str); 4] = [
    ("api.perplexity.ai", ""),
    ("api.githubcopilot.com", ""),
    ("models.github.ai", "/inference"),
    ("models.inference.ai.azure.com", ""),
];

/// The address of Chat Completions under a base URL.
///
/// The base may end in `/v1` or not, in another version (`/v4`, `/v1beta/openai`, left alone) or in
/// `/chat/completions` itself. A query is kept. `http://localhost` becomes `127.0.0.1`, which saves a look-up and a try
/// over IPv6. Fails with class `configuration` on anything that is not an http address.
pub fn chat_url(base_url: &str) -> Result<String, Failure> {
    Ok(resolve(base_url, CHAT)?.into())
}

/// The address of the model list under a base URL.
pub(crate) fn models_url(base_url: &str) -> Result<Url, Failure> {
    resolve(base_url, "/models")
}

/// An address of the server itself, beside its `/v1`: `path` begins with a slash.
pub(crate) fn server_url(base_url: &str, path: &str) -> Result<Url, Failure> {
    let mut url = resolve(base_url, "")?;
    let kept = url.path().split('/').take_while(|segment| !is_version(segment)).collect::<Vec<_>>().join("/");
    url.set_path(&format!("{}{path}", kept.trim_end_matches('/')));
    Ok(url)
}

pub(crate) fn resolve(base_url: &str, leaf: &str) -> Result<Url, Failure> {
    let mut url = parse(base_url)?;
    if url.scheme() == "http" && url.host_str() == Some("localhost") {
        // An http address with a domain takes any IP.
        let _ = url.set_ip_host(Ipv4Addr::LOCALHOST.into());
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    let base = path.strip_suffix(CHAT).map(str::to_owned);
    let path = match base {
        Some(base) => base + leaf,
        None if is_complete(&url, &path) => path + leaf,
        None => path + "/v1" + leaf,
    };
    url.set_path(&path);
    Ok(url)
}

fn is_complete(url: &Url, path: &str) -> bool {
    path.split('/').any(is_version)
        || path.contains("/deployments/")
        || path.ends_with("/serving-endpoints")
        || url.query().is_some_and(|q| q.contains("api-version="))
        || UNVERSIONED.iter().any(|(host, under)| url.host_str() == Some(host) && path == *under)
}

/// `v1`, `v4`, `v1beta`, `v2alpha1`.
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let stage = digits.trim_end_matches(|c: char| c.is_ascii_digit());
    digits.len() < rest.len() && matches!(stage, "" | "alpha" | "beta")
}

fn parse(base_url: &str) -> Result<Url, Failure> {
    let text = base_url.trim();
    let bad = |why: &str| {
        Failure::new(
            ErrorClass::Configuration,
            format!("base_url \"{}\" {why}; write it like https://api.example.com/v1", shown(text)),
        )
    };
    if text.is_empty() {
        return Err(bad("is empty"));
    }
    let has_scheme = text.contains("://");
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && has_scheme => {
            if !url.username().is_empty() || url.password().is_some() {
                return Err(bad("holds a user or password, which belongs in api_key or headers"));
            }
            if url.host_str().is_none_or(str::is_empty) {
                return Err(bad("names no host"));
            }
            Ok(url)
        }
        Ok(url) if has_scheme => Err(bad(&format!("uses {}://, which is not http or https", url.scheme()))),
        _ if !has_scheme => Err(bad("does not begin with http:// or https://")),
        _ => Err(bad("is not a URL")),
    }
}

/// The text for a message: short, on one line, and without what stands before an `@`.
fn shown(text: &str) -> String {
    let tail = match text.rsplit_once('@') {
        Some((_, tail)) => format!("…@{tail}"),
        None => text.to_owned(),
    };
    tail.chars().filter(|c| !c.is_control()).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_leads_to_the_endpoint_with_or_without_its_version() {
        let cases = [
            ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
            (" https://api.openai.com/v1// ", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/chat/completions/", "https://api.openai.com/v1/chat/completions"),
            ("https://host/chat/completions", "https://host/chat/completions"),
            ("https://open.example/api/paas/v4", "https://open.example/api/paas/v4/chat/completions"),
            ("https://g.example/v1beta/openai/", "https://g.example/v1beta/openai/chat/completions"),
            ("https://g.example/v2alpha1", "https://g.example/v2alpha1/chat/completions"),
            ("https://openrouter.ai/api", "https://openrouter.ai/api/v1/chat/completions"),
            ("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions"),
            ("http://localhost:11434", "http://127.0.0.1:11434/v1/chat/completions"),
            ("http://LOCALHOST:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
            ("https://localhost:8443", "https://localhost:8443/v1/chat/completions"),
            ("https://api.perplexity.ai", "https://api.perplexity.ai/chat/completions"),
            ("https://x.example/llama/video", "https://x.example/llama/video/v1/chat/completions"),
            (
                "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
                "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
            ("https://h.example/v1#part", "https://h.example/v1/chat/completions"),
            ("http://localhost:8080/v1/chat/completions", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://localhost.example:1", "http://localhost.example:1/v1/chat/completions"),
            ("http://my-localhost:1", "http://my-localhost:1/v1/chat/completions"),
            ("http://localhost", "http://127.0.0.1/v1/chat/completions"),
            ("http://0.0.0.0:8080", "http://0.0.0.0:8080/v1/chat/completions"),
            ("http://192.168.0.7:1234/v1/", "http://192.168.0.7:1234/v1/chat/completions"),
            ("https://h.example/v1?key=k", "https://h.example/v1/chat/completions?key=k"),
            ("https://h.example?key=k", "https://h.example/v1/chat/completions?key=k"),
            ("https://h.example/chat/completions?key=k", "https://h.example/chat/completions?key=k"),
            (
                "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
                "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
            (
                "https://r.openai.azure.com/openai/v1/?api-version=preview",
                "https://r.openai.azure.com/openai/v1/chat/completions?api-version=preview",
            ),
            ("https://gateway.example/v1/acc/gw/openai", "https://gateway.example/v1/acc/gw/openai/chat/completions"),
        ];
        for (base, expected) in cases {
            assert_eq!(chat_url(base).as_deref(), Ok(expected), "{base}");
        }
        for (base, expected) in [
            ("http://localhost:11434/v1", "http://127.0.0.1:11434/api/ps"),
            ("http://localhost:11434", "http://127.0.0.1:11434/api/ps"),
            ("http://h:1/v1/chat/completions", "http://h:1/api/ps"),
            ("http://h:1/under/this/v1/", "http://h:1/under/this/api/ps"),
            ("http://h:1/under", "http://h:1/under/api/ps"),
        ] {
            assert_eq!(server_url(base, "/api/ps").unwrap().as_str(), expected, "{base}");
        }
        assert_eq!(
            models_url("http://localhost:1/v1/chat/completions").unwrap().as_str(),
            "http://127.0.0.1:1/v1/models"
        );
    }

    #[test]
    fn what_is_no_http_address_is_refused_with_a_way_out() {
        let cases = [
            ("", "is empty"),
            ("   ", "is empty"),
            ("api.openai.com/v1", "does not begin with"),
            ("localhost:11434", "does not begin with"),
            ("ftp://host/v1", "uses ftp://"),
            ("file:///etc/passwd", "uses file://"),
            ("unix:///run/x.sock", "uses unix://"),
            ("http://", "is not a URL"),
            ("https://user:hunter2@host/v1", "belongs in api_key"),
            ("http://host:99999", "is not a URL"),
            ("just words", "does not begin with"),
        ];
        for (base, expected) in cases {
            let failure = chat_url(base).unwrap_err();
            assert_eq!(failure.class, ErrorClass::Configuration);
            assert!(failure.message.contains(expected), "{base}: {}", failure.message);
            assert!(failure.message.contains("https://api.example.com/v1"));
            assert!(!failure.message.contains("hunter2"));
        }
    }
}

//! Who may talk to the server over loopback TCP.
//!
//! Whatever reaches a port of this machine may be a web page: a foreign `Host` is DNS rebinding, a foreign `Origin` a page of
//! somebody else's. Both are refused before anything else is looked at; then comes the token, for every path and method.
//! Nothing of an answer ever allows another origin to read it.

use std::net::SocketAddr;

use axum::http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use hames_protocol::api::{ApiError, ApiErrorCode};

/// What a request over TCP is held against.
#[derive(Clone)]
pub(super) struct Guard {
    /// `127.0.0.1:PORT`, `localhost:PORT`, `[::1]:PORT`.
    hosts: Vec<String>,
    /// Of the token; hashes are compared in constant time.
    token: blake3::Hash,
}

impl Guard {
    pub(super) fn new(address: SocketAddr, token: &str) -> Self {
        let port = address.port();
        let mut hosts: Vec<String> =
            ["127.0.0.1", "localhost", "[::1]"].iter().map(|h| format!("{h}:{port}")).collect();
        // Another address of the loopback network, where it listens on one.
        let own = address.to_string();
        if !hosts.contains(&own) {
            hosts.push(own);
        }
        if port == 80 {
            let bare: Vec<String> = hosts.iter().filter_map(|h| h.strip_suffix(":80").map(str::to_owned)).collect();
            hosts.extend(bare);
        }
        Self { hosts, token: blake3::hash(token.as_bytes()) }
    }

    /// Refuses what may not pass.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        self.check_host(parts)?;
        self.check_origin(&parts.headers)?;
        self.check_token(&parts.headers)
    }

    fn check_host(&self, parts: &Parts) -> Result<(), ApiError> {
        let header = match single(&parts.headers, HOST) {
            Single::One(value) => value,
            Single::None => return Err(forbidden("The request names no host.")),
            Single::Unclear => return Err(forbidden("The request names more than one host.")),
        };
        // A target in absolute form names a host of its own, which counts instead; both have to be ours.
        let target = parts.uri.authority().map(Authority::as_str);
        for host in [Some(header), target].into_iter().flatten() {
            if !self.is_ours(host) {
                return Err(forbidden(format!(
                    "This server answers as {} only, not as \"{}\".",
                    self.hosts.join(", "),
                    shown(host)
                )));
            }
        }
        Ok(())
    }

    fn is_ours(&self, host: &str) -> bool {
        self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        match single(headers, ORIGIN) {
            Single::None => Ok(()),
            Single::One(origin) if origin.strip_prefix("http://").is_some_and(|host| self.is_ours(host)) => Ok(()),
            Single::One(origin) => {
                Err(forbidden(format!("Pages of \"{}\" may not talk to this server.", shown(origin))))
            }
            Single::Unclear => Err(forbidden("The request has more than one origin.")),
        }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let given = match single(headers, AUTHORIZATION) {
            Single::One(value) => bearer(value),
            Single::None | Single::Unclear => None,
        };
        match given {
            Some(given) if blake3::hash(given.as_bytes()) == self.token => Ok(()),
            Some(_) => Err(unauthorized("The token is not this server's; it is in the file run/token of its home.")),
            None => Err(unauthorized("Every request needs the server's token: `Authorization: Bearer TOKEN`.")),
        }
    }
}

enum Single<'a> {
    None,
    One(&'a str),
    /// Several, or one that is no text: two readers could see two things in it.
    Unclear,
}

fn single(headers: &HeaderMap, name: HeaderName) -> Single<'_> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Single::None,
        (Some(value), None) => value.to_str().map_or(Single::Unclear, Single::One),
        (Some(_), Some(_)) => Single::Unclear,
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}

fn forbidden(message: impl Into<String>) -> ApiError {
    ApiError::new(ApiErrorCode::Forbidden, message)
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(ApiErrorCode::Unauthorized, message)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    /// The status a request gets: 200 where it passes.
    fn status(target: &str, headers: &[(&str, &str)]) -> u16 {
        let guard = Guard::new("127.0.0.1:7700".parse().unwrap(), "secret");
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        guard.check(&parts).map_or_else(|refusal| refusal.code.status(), |()| 200)
    }

    #[test]
    fn only_our_hosts_origins_and_the_token_pass() {
        let host = ("host", "127.0.0.1:7700");
        let token = ("authorization", "Bearer secret");
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);
        let cases: &[Case<'_>] = &[
            ("/v1/health", &[host, token], 200),
            ("/v1/health", &[("host", "LocalHost:7700"), token], 200),
            ("/v1/health", &[("host", "[::1]:7700"), ("authorization", "bearer  secret")], 200),
            ("/v1/health", &[host, token, ("origin", "http://localhost:7700")], 200),
            ("http://127.0.0.1:7700/v1/health", &[host, token], 200),
            // Hosts that are not ours.
            ("/v1/health", &[token], 403),
            ("/v1/health", &[("host", "evil.test"), token], 403),
            ("/v1/health", &[("host", "evil.test:7700"), token], 403),
            ("/v1/health", &[("host", "127.0.0.1"), token], 403),
            ("/v1/health", &[("host", "127.0.0.1:7701"), token], 403),
            ("/v1/health", &[("host", "localhost.:7700"), token], 403),
            ("/v1/health", &[("host", "localhost:7700.evil.test"), token], 403),
            ("/v1/health", &[("host", "[::ffff:127.0.0.1]:7700"), token], 403),
            ("/v1/health", &[("host", "user@127.0.0.1:7700"), token], 403),
            ("/v1/health", &[host, ("host", "evil.test"), token], 403),
            ("/v1/health", &[host, host, token], 403),
            ("http://evil.test/v1/health", &[host, token], 403),
            ("http://127.0.0.1:7700@evil.test/v1/health", &[host, token], 403),
            // Origins that are not ours.
            ("/v1/health", &[host, token, ("origin", "https://evil.test")], 403),
            ("/v1/health", &[host, token, ("origin", "null")], 403),
            ("/v1/health", &[host, token, ("origin", "")], 403),
            ("/v1/health", &[host, token, ("origin", "https://localhost:7700")], 403),
            ("/v1/health", &[host, token, ("origin", "http://localhost:7701")], 403),
            ("/v1/health", &[host, token, ("origin", "http://localhost:7700/")], 403),
            ("/v1/health", &[host, token, ("origin", "http://localhost:7700"), ("origin", "https://evil.test")], 403),
            // Tokens that are not ours.
            ("/v1/health", &[host], 401),
            ("/v1/health", &[host, ("authorization", "Bearer")], 401),
            ("/v1/health", &[host, ("authorization", "Bearer ")], 401),
            ("/v1/health", &[host, ("authorization", "secret")], 401),
            ("/v1/health", &[host, ("authorization", "Basic secret")], 401),
            ("/v1/health", &[host, ("authorization", "Bearer secret ")], 401),
            ("/v1/health", &[host, ("authorization", "Bearer secre")], 401),
            ("/v1/health", &[host, token, ("authorization", "Bearer wrong")], 401),
            ("/v1/nothing", &[host], 401),
        ];
        for (target, headers, expected) in cases {
            assert_eq!(status(target, headers), *expected, "{target} {headers:?}");
        }
    }
}

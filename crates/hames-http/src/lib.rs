//! HTTP clients that inherit nothing, and what their errors mean.
//!
//! Whoever speaks HTTP begins with [`client`]: no proxy from the environment, no process-wide crypto provider, no
//! redirect that is followed by itself (a key or a check would be left behind), no retry, no cookies, no referer. What
//! the platform trusts is read once per process and only when first needed, because starting must take a few
//! milliseconds.
//!
//! It knows neither models nor tools and makes no request.

use std::error::Error;
use std::sync::{Arc, OnceLock};

use reqwest::ClientBuilder;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

/// What requests say of who sends them.
pub const USER_AGENT: &str = concat!("hames/", env!("CARGO_PKG_VERSION"));

/// Whom a client trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whom the platform trusts.
    Platform,
    /// Nobody: for addresses without TLS. It costs nothing.
    Nobody,
}

/// Why there is no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoClient {
    /// The platform's certificates cannot be read.
    #[error("no certificates to trust ({0})")]
    NoCertificates(String),
    /// TLS itself cannot be set up.
    #[error("TLS cannot be set up ({0})")]
    NoTls(String),
}

impl NoClient {
    /// What to do, as a sentence without its full stop.
    pub fn next(&self) -> &'static str {
        match self {
            NoClient::NoCertificates(_) => "Install the system's CA certificates (package ca-certificates)",
            NoClient::NoTls(_) => "Please report this",
        }
    }
}

/// A client to be finished by the caller.
pub fn client(trust: Trust) -> Result<ClientBuilder, NoClient> {
    let tls = match trust {
        Trust::Platform => trusting_the_platform()?,
        Trust::Nobody => trusting_nobody()?,
    };
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(1)
        .user_agent(USER_AGENT))
}

fn trusting_the_platform() -> Result<ClientConfig, NoClient> {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let config = tls_builder()?
        .with_platform_verifier()
        .map_err(|error| NoClient::NoCertificates(error.to_string()))?
        .with_no_client_auth();
    Ok(CONFIG.get_or_init(|| config).clone())
}

fn trusting_nobody() -> Result<ClientConfig, NoClient> {
    Ok(tls_builder()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, NoClient> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| NoClient::NoTls(error.to_string()))
}

/// The innermost reason of a failed request: the outer ones only say that something failed, and name the address with
/// whatever its query holds.
pub fn root_cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else { return "no further reason given".to_owned() };
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The reason of a certain type inside a failed request, if there is one.
pub fn cause_of<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Whether nobody listened at the address.
pub fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether a reason, as [`root_cause`] gives it, is about a certificate.
pub fn is_certificate_trouble(cause: &str) -> bool {
    ["certificate", "UnknownIssuer", "CertNotValid"].iter().any(|word| cause.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_comes_about_without_a_process_wide_provider() {
        assert!(client(Trust::Nobody).is_ok_and(|builder| builder.build().is_ok()));
        assert!(rustls::crypto::CryptoProvider::get_default().is_none());
    }

    #[test]
    fn what_is_about_a_certificate_is_known_by_its_words() {
        for (cause, expected) in [
            ("invalid peer certificate: UnknownIssuer", true),
            ("invalid peer certificate: certificate expired", true),
            ("received corrupt message of type InvalidContentType", false),
            ("connection reset by peer", false),
            ("tls handshake eof", false),
        ] {
            assert_eq!(is_certificate_trouble(cause), expected, "{cause}");
        }
    }
}

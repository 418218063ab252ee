//! What is to be fetched: an address as a model wrote it, in the one form it is checked and connected in.

use std::net::IpAddr;

use reqwest::Url;

use super::address::{Border, Name};

/// Bytes of an address at most: more than any browser sends.
const MAX_URL: usize = 8 * 1024;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Normalised: odd spellings of addresses are plain ones, names are in ASCII and lower case, without a dot at the
    /// end, and there is neither user nor fragment.
    pub(super) url: Url,
    /// Its host, as rules and grants know hosts: without brackets.
    pub(super) host: String,
}

/// Why an address cannot be fetched. Reads behind the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadTarget {
    #[error("is too long; {MAX_URL} bytes are possible")]
    TooLong,
    #[error("is no URL ({0}); write it like https://example.com/page")]
    NotUrl(String),
    #[error("uses {0}:, which cannot be fetched; only http:// and https:// can")]
    Scheme(String),
    #[error("has no host; write it like https://example.com/page")]
    NoHost,
    #[error("holds a user name or a password; nothing is sent on anybody's behalf, so leave them out")]
    Credentials,
    #[error("is not fetched: {host} is {what}; only hosts of the public internet are")]
    Closed { host: String, what: &'static str },
}

impl Target {
    /// Reads an address. Says nothing of whether it may be fetched.
    pub(super) fn parse(written: &str) -> Result<Self, BadTarget> {
        if written.len() > MAX_URL {
            return Err(BadTarget::TooLong);
        }
        let written = written.trim();
        match Url::parse(written) {
            Ok(url) => Self::of(url),
            // `example.com:80` and `localhost:80/x` are not about a scheme.
            Err(error) if written.contains("://") => Err(BadTarget::NotUrl(error.to_string())),
            Err(_) => Err(BadTarget::NotUrl("it does not begin with http:// or https://".into())),
        }
    }

    /// Where a redirect leads.
    pub(super) fn redirected(&self, location: &str) -> Result<Self, BadTarget> {
        if location.len() > MAX_URL {
            return Err(BadTarget::TooLong);
        }
        Self::of(self.url.join(location.trim()).map_err(|error| BadTarget::NotUrl(error.to_string()))?)
    }

    fn of(mut url: Url) -> Result<Self, BadTarget> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadTarget::Scheme(url.scheme().chars().take(20).collect()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadTarget::Credentials);
        }
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_end_matches('.').to_owned();
        if bare.is_empty() {
            return Err(BadTarget::NoHost);
        }
        if bare != host {
            url.set_host(Some(&bare)).map_err(|error| BadTarget::NotUrl(error.to_string()))?;
        }
        url.set_fragment(None);
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_lowercase();
        Ok(Self { url, host })
    }

    /// The address, where the host is one.
    pub(super) fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Refuses what can be refused without a look-up.
    pub(super) fn check(&self, border: &Border) -> Result<(), BadTarget> {
        let what = match self.ip() {
            Some(ip) => border.literal(ip),
            None if border.name(&self.host) == Name::Inner && border.allows_no_address() => {
                Some("a name of the local network")
            }
            None => None,
        };
        match what {
            Some(what) => Err(BadTarget::Closed { host: self.host.clone(), what }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(written: &str) -> Result<(), BadTarget> {
        Target::parse(written)?.check(&Border::default())
    }

    #[test]
    fn an_inner_address_is_refused_in_every_spelling() {
        for written in [
            "http://127.0.0.1/",
            "http://127.0.0.1:8080/x",
            "http://127.1",
            "http://127.0.1",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://0x7F.0X0.0.01/",
            "http://127.0.0.1./",
            "http://127.0.0.1.:80/",
            "http://[::1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[64:ff9b::808:808]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/latest/meta-data/",
            "http://[::]/",
            "http://0/",
            "http://0.0.0.0/",
            "http://169.254.169.254/latest/meta-data/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0251.0376.0251.0376/",
            "http://169.254.43518/",
            "http://100.100.100.200/",
            "http://168.63.129.16/",
            "http://10.0.0.1/",
            "http://192.168.1.1/",
            "http://172.16.5.4/",
            "http://100.64.0.1/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://%31%32%37.0.0.1/",
            "http://%6c%6f%63%61%6c%68%6f%73%74/",
            "http://１２７.０.０.１/",
            "http://①②⑦.0.0.1/",
            "http://127。0。0。1/",
            "http://ｌｏｃａｌｈｏｓｔ/",
            "http://localhost/",
            "http://LOCALHOST:3000/",
            "http://localhost./",
            "http://localhost../",
            "http://app.localhost/",
            "http://metadata.google.internal/computeMetadata/v1/",
            "http://METADATA.google.internal./",
            "http://instance-data/",
            "http://metadata/",
            "http://printer.local/",
            "http://host.docker.internal:8080/",
            "https://kubernetes.default.svc.cluster.local/",
            "http:\\\\127.0.0.1\\",
            "http:127.0.0.1",
            "http:///127.0.0.1/",
            " http://127.0.0.1/ ",
            "http://12\t7.0.0\n.1/",
            "http://\u{ad}127.0.0.1/",
        ] {
            assert!(matches!(verdict(written), Err(BadTarget::Closed { .. })), "{written:?}: {:?}", verdict(written));
        }
    }

    #[test]
    fn what_is_no_address_of_a_page_is_refused_with_the_reason() {
        for (written, expected) in [
            ("", "does not begin with http"),
            ("example.com", "does not begin with http"),
            ("/etc/passwd", "does not begin with http"),
            ("//example.com/x", "does not begin with http"),
            ("http://", "is no URL (empty host)"),
            ("http://?q", "is no URL (empty host)"),
            ("http://.", "has no host"),
            ("http://...", "has no host"),
            ("http://a b/", "is no URL"),
            ("http://[::1", "is no URL"),
            ("http://999.999.999.999/", "is no URL"),
            ("http://1.2.3.4.5/", "is no URL"),
            ("http://example.com:99999/", "is no URL"),
            ("http://exa%00mple.com/", "is no URL"),
            ("file:///etc/passwd", "uses file:"),
            ("ftp://example.com/", "uses ftp:"),
            ("gopher://127.0.0.1:6379/_INFO", "uses gopher:"),
            ("data:text/html,<h1>x", "uses data:"),
            ("javascript:alert(1)", "uses javascript:"),
            ("unix:///var/run/docker.sock", "uses unix:"),
            ("localhost:8080/x", "uses localhost:"),
            ("ws://example.com/", "uses ws:"),
            ("http://user:hunter2@example.com/", "holds a user name or a password"),
            ("http://user@example.com/", "holds a user name or a password"),
            ("http://:secret@example.com/", "holds a user name or a password"),
            ("http://example.com@127.0.0.1/", "holds a user name or a password"),
            ("http://127.0.0.1%40example.com@example.com/", "holds a user name or a password"),
        ] {
            let error = verdict(written).expect_err(written).to_string();
            assert!(error.contains(expected), "{written}: {error}");
            assert!(!error.contains("hunter2"));
        }
        assert_eq!(verdict(&format!("http://example.com/{}", "x".repeat(MAX_URL))), Err(BadTarget::TooLong));
    }

    #[test]
    fn a_public_address_is_brought_to_one_form() {
        for (written, url, host) in [
            ("https://Example.COM", "https://example.com/", "example.com"),
            ("http://example.com.:80/a?b#c", "http://example.com/a?b", "example.com"),
            ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4", "xn--bcher-kva.example"),
            ("http://134744072/", "http://8.8.8.8/", "8.8.8.8"),
            (
                "http://[2606:4700:4700:0:0:0:0:1111]:8080/",
                "http://[2606:4700:4700::1111]:8080/",
                "2606:4700:4700::1111",
            ),
            ("https://example.com/a/../b", "https://example.com/b", "example.com"),
        ] {
            let target = Target::parse(written).unwrap();
            assert_eq!((target.url.as_str(), target.host.as_str()), (url, host));
            assert_eq!(target.check(&Border::default()), Ok(()));
        }
    }

    #[test]
    fn a_redirect_is_read_like_an_address() {
        let from = Target::parse("https://example.com/a/b?c").unwrap();
        for (location, expected) in [
            ("/x", Ok("https://example.com/x")),
            ("y#z", Ok("https://example.com/a/y")),
            ("//other.example/", Ok("https://other.example/")),
            ("http://other.example", Ok("http://other.example/")),
            ("http://127.0.0.1/", Err("127.0.0.1 is a loopback address")),
            ("//localhost/", Err("localhost is a name of the local network")),
            ("//0x7f.1/", Err("127.0.0.1 is a loopback address")),
            ("file:///etc/passwd", Err("uses file:")),
            ("http://u:p@other.example/", Err("holds a user name")),
            ("http://[", Err("is no URL")),
        ] {
            let target = from.redirected(location).and_then(|to| to.check(&Border::default()).map(|()| to));
            match (target, expected) {
                (Ok(target), Ok(url)) => assert_eq!(target.url.as_str(), url),
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{location}: {error}"),
                (target, _) => panic!("{location}: {target:?}"),
            }
        }
    }

    proptest! {
        #![proptest_config(crate::files::properties::cases())]
        #[test]
        fn no_text_gets_past_as_an_inner_address(text in "(http://)?[0-9a-fxX.:\\[\\]@%/]{0,30}") {
            if let Ok(target) = Target::parse(&text)
                && target.check(&Border::default()).is_ok()
            {
                prop_assert!(target.ip().is_none_or(|ip| !ip.is_loopback() && !ip.is_unspecified()));
                prop_assert!(target.host.contains(['.', ':']));
            }
        }
    }
}

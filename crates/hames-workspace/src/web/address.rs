//! Which hosts and addresses may be spoken to.
//!
//! A page asked for by a model must not become a way into the machine or the network it runs in: its own services, the
//! router, the instance's credentials. So only addresses of the public internet are connected to, whatever name, spelling
//! or redirect leads there, and names that mean the inside are refused before they are looked up. An embedder may allow
//! what it needs, by name or by range.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::IpNet;

/// Ranges that are no part of the public internet, and what they are. Source: the special-purpose registries of IANA,
/// and the addresses under which clouds serve their instances' credentials.
const CLOSED: &[(&str, &str)] = &[
    ("0.0.0.0/8", "an address of this machine"),
    ("10.0.0.0/8", "a private address"),
    ("100.64.0.0/10", "an address behind a carrier's NAT"),
    ("127.0.0.0/8", "a loopback address"),
    ("168.63.129.16/32", "a cloud's metadata address"),
    ("169.254.0.0/16", "a link-local address, where clouds keep their metadata"),
    ("172.16.0.0/12", "a private address"),
    ("192.0.0.0/24", "a reserved address"),
    ("192.0.2.0/24", "an address for documentation"),
    ("192.88.99.0/24", "a reserved address"),
    ("192.168.0.0/16", "a private address"),
    ("198.18.0.0/15", "an address for benchmarks"),
    ("198.51.100.0/24", "an address for documentation"),
    ("203.0.113.0/24", "an address for documentation"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved address"),
    ("::/128", "an address of this machine"),
    ("::1/128", "a loopback address"),
    ("::ffff:0:0/96", "an IPv4 address inside an IPv6 address"),
    ("::/96", "an IPv4 address inside an IPv6 address"),
    ("64:ff9b::/96", "an IPv4 address inside an IPv6 address"),
    ("64:ff9b:1::/48", "an IPv4 address inside an IPv6 address"),
    ("2001::/23", "a reserved address"),
    ("2001:db8::/32", "an address for documentation"),
    ("2002::/16", "an IPv4 address inside an IPv6 address"),
    ("3fff::/20", "an address for documentation"),
    ("fc00::/7", "a private address"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a private address"),
    ("ff00::/8", "a multicast address"),
];

/// The only part of IPv6 that is handed out.
const GLOBAL_V6: &str = "2000::/3";

/// Names, with everything below them, that mean the inside of a machine or a network.
const INNER_NAMES: &[&str] =
    &["localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa"];

static CLOSED_NETS: LazyLock<Vec<(IpNet, &str)>> =
    LazyLock::new(|| CLOSED.iter().map(|(net, what)| (net.parse().expect("the table holds ranges"), *what)).collect());

/// What an embedder allows beyond the public internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// A host by its name, whatever address it has. In lower case.
    Host(String),
    /// Every host below a name, but not the name itself.
    Below(String),
    /// A range of addresses, or one.
    Net(IpNet),
}

/// Text that is neither a host nor a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no host and no range of addresses; write it like localhost, *.corp.example, 10.1.0.0/16 or 127.0.0.1"
)]
pub struct NotAllowable(pub String);

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Allowed::Host(host) => f.write_str(host),
            Allowed::Below(name) => write!(f, "*.{name}"),
            Allowed::Net(net) => net.fmt(f),
        }
    }
}

impl std::str::FromStr for Allowed {
    type Err = NotAllowable;

    fn from_str(text: &str) -> Result<Self, NotAllowable> {
        let bare = text.trim().trim_end_matches('.').to_lowercase();
        let unbracketed = bare.strip_prefix('[').and_then(|b| b.strip_suffix(']')).unwrap_or(&bare);
        if let Ok(ip) = unbracketed.parse::<IpAddr>() {
            return Ok(Allowed::Net(ip.into()));
        }
        if let Ok(net) = unbracketed.parse::<IpNet>() {
            return Ok(Allowed::Net(net.trunc()));
        }
        let (name, below) = match bare.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (bare.as_str(), false),
        };
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(fits) || name.split('.').any(str::is_empty) {
            return Err(NotAllowable(text.to_owned()));
        }
        Ok(if below { Allowed::Below(name.to_owned()) } else { Allowed::Host(name.to_owned()) })
    }
}

/// Decides on hosts and addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Border {
    allowed: Vec<Allowed>,
}

/// What a name is worth before it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Whatever address it has.
    Allowed,
    /// Its addresses decide.
    Open,
    /// It means the inside: only addresses that are allowed themselves will do.
    Inner,
}

impl Border {
    pub(super) fn new(allowed: Vec<Allowed>) -> Self {
        Self { allowed }
    }

    /// What a name is worth; it is in lower case and has no dot at its end.
    pub(super) fn name(&self, name: &str) -> Name {
        let is_below = |name: &str, of: &str| name.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
        let allowed = self.allowed.iter().any(|allowed| match allowed {
            Allowed::Host(host) => host == name,
            Allowed::Below(of) => is_below(name, of),
            Allowed::Net(_) => false,
        });
        let is_inner = !name.contains('.') || INNER_NAMES.iter().any(|inner| name == *inner || is_below(name, inner));
        match (allowed, is_inner) {
            (true, _) => Name::Allowed,
            (false, true) => Name::Inner,
            (false, false) => Name::Open,
        }
    }

    /// Whether a name that means the inside has no way to be allowed, so that it need not be looked up.
    pub(super) fn allows_no_address(&self) -> bool {
        !self.allowed.iter().any(|allowed| matches!(allowed, Allowed::Net(_)))
    }

    /// Why an address written into a URL may not be spoken to; `None` where it may.
    pub(super) fn literal(&self, ip: IpAddr) -> Option<&'static str> {
        if self.is_allowed(ip) { None } else { closed(ip) }
    }

    /// Why an address that a name has may not be spoken to. A network without IPv4 gives every host an address that
    /// holds its IPv4 address, and then that one decides.
    pub(super) fn resolved(&self, name: Name, ip: IpAddr) -> Option<&'static str> {
        match name {
            Name::Allowed => None,
            _ if self.is_allowed(ip) => None,
            Name::Inner => Some("a name of the local network"),
            Name::Open => closed(translated(ip).map_or(ip, IpAddr::V4)),
        }
    }

    fn is_allowed(&self, ip: IpAddr) -> bool {
        self.allowed.iter().any(|allowed| matches!(allowed, Allowed::Net(net) if net.contains(&ip)))
    }
}

/// What an address is that is no part of the public internet.
fn closed(ip: IpAddr) -> Option<&'static str> {
    if let Some((_, what)) = CLOSED_NETS.iter().find(|(net, _)| net.contains(&ip)) {
        return Some(what);
    }
    static GLOBAL: LazyLock<IpNet> = LazyLock::new(|| GLOBAL_V6.parse().expect("a range"));
    (ip.is_ipv6() && !GLOBAL.contains(&ip)).then_some("a reserved address")
}

/// The IPv4 address inside a NAT64 address of the well-known prefix.
fn translated(ip: IpAddr) -> Option<Ipv4Addr> {
    static PREFIX: LazyLock<IpNet> = LazyLock::new(|| "64:ff9b::/96".parse().expect("a range"));
    match ip {
        IpAddr::V6(v6) if PREFIX.contains(&ip) => Some(last_four(v6)),
        _ => None,
    }
}

fn last_four(ip: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = ip.octets();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn border(allowed: &[&str]) -> Border {
        Border::new(allowed.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn only_addresses_of_the_public_internet_are_open() {
        for closed in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.1.2.3",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::8.8.8.8",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "4000::1",
            "5f00::1",
            "8000::1",
        ] {
            let ip: IpAddr = closed.parse().unwrap();
            assert!(border(&[]).literal(ip).is_some(), "{closed}");
        }
        for open in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "128.0.0.1",
            "168.63.129.17",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2003::1",
            "2a00:1450:4001::1",
            "3ffe::1",
        ] {
            assert_eq!(border(&[]).literal(open.parse().unwrap()), None, "{open}");
        }
    }

    #[test]
    fn names_that_mean_the_inside_are_known() {
        for (name, expected) in [
            ("localhost", Name::Inner),
            ("app.localhost", Name::Inner),
            ("metadata.google.internal", Name::Inner),
            ("instance-data.ec2.internal", Name::Inner),
            ("printer.local", Name::Inner),
            ("router.lan", Name::Inner),
            ("nas.home.arpa", Name::Inner),
            ("wiki.corp", Name::Inner),
            ("intranet", Name::Inner),
            ("metadata", Name::Inner),
            ("host.docker.internal", Name::Inner),
            ("localhost.localdomain", Name::Inner),
            ("example.com", Name::Open),
            ("localhost.example.com", Name::Open),
            ("notlocalhost.org", Name::Open),
            ("mylocal.dev", Name::Open),
            ("internal.example.org", Name::Open),
            ("xn--bcher-kva.example", Name::Open),
        ] {
            assert_eq!(border(&[]).name(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_allowed_is_open_and_nothing_beside_it() {
        let border = border(&["localhost", "*.dev.corp", "10.1.0.0/16", "[fd00::1]", "192.168.1.7/32"]);
        for (name, expected) in [
            ("localhost", Name::Allowed),
            ("a.localhost", Name::Inner),
            ("x.dev.corp", Name::Allowed),
            ("dev.corp", Name::Inner),
            ("xdev.corp", Name::Inner),
        ] {
            assert_eq!(border.name(name), expected, "{name}");
        }
        for (ip, open) in [
            ("10.1.2.3", true),
            ("10.2.0.1", false),
            ("fd00::1", true),
            ("fd00::2", false),
            ("192.168.1.7", true),
            ("192.168.1.8", false),
            ("127.0.0.1", false),
        ] {
            let ip = ip.parse().unwrap();
            assert_eq!(border.literal(ip).is_none(), open, "{ip}");
            assert_eq!(border.resolved(Name::Open, ip).is_none(), open, "{ip}");
            assert_eq!(border.resolved(Name::Inner, ip).is_none(), open, "{ip}");
            assert_eq!(border.resolved(Name::Allowed, ip), None);
        }
        assert!(
            border.resolved(Name::Inner, "1.1.1.1".parse().unwrap()).is_some(),
            "it may lead inside by another way"
        );
    }

    #[test]
    fn behind_nat64_the_address_inside_decides_for_a_name_and_never_for_a_literal() {
        let border = border(&[]);
        for (ip, open) in [
            ("64:ff9b::8.8.8.8", true),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::10.0.0.1", false),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b:1::8.8.8.8", false),
            ("::ffff:8.8.8.8", false),
        ] {
            let ip = ip.parse().unwrap();
            assert_eq!(border.resolved(Name::Open, ip).is_none(), open, "{ip}");
            assert!(border.literal(ip).is_some(), "{ip}");
        }
    }

    #[test]
    fn what_can_be_allowed_is_a_host_or_a_range() {
        for (text, expected) in [
            ("LocalHost", Some(Allowed::Host("localhost".into()))),
            ("git.corp.", Some(Allowed::Host("git.corp".into()))),
            ("*.Corp.example", Some(Allowed::Below("corp.example".into()))),
            ("127.0.0.1", Some(Allowed::Net("127.0.0.1/32".parse().unwrap()))),
            ("10.1.2.3/16", Some(Allowed::Net("10.1.0.0/16".parse().unwrap()))),
            ("::1", Some(Allowed::Net("::1/128".parse().unwrap()))),
            ("[::1]", Some(Allowed::Net("::1/128".parse().unwrap()))),
            ("fd00::/8", Some(Allowed::Net("fd00::/8".parse().unwrap()))),
            ("", None),
            ("*", None),
            ("*.", None),
            ("a..b", None),
            ("http://localhost", None),
            ("localhost:8080", None),
            ("10.0.0.0/40", None),
            ("a b", None),
            ("user@host", None),
        ] {
            assert_eq!(text.parse::<Allowed>().ok(), expected, "{text}");
        }
    }
}

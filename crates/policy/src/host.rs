//! Hosts and host patterns.
//!
//! A host has many spellings. It is normalized before it is compared, and anything that is not clearly
//! a name or an address is invalid, so that no spelling bypasses a rule.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::pattern::InvalidPattern;

const NAME_BYTES_MAX: usize = 253;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Lower case, without a trailing dot.
    Name(String),
    Address(IpAddr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Exact(Host),
    /// `*.example.org`: the hosts below this name, not the name itself.
    Subdomains(String),
    /// `10.0.*`: addresses with these first octets. Names never match: anyone can register
    /// `10.0.example.org`.
    AddressPrefix(Vec<u8>),
    Any,
}

impl Host {
    /// `None` unless the text is clearly a name or an address. Ports, alternative spellings of an
    /// address such as `127.1` or `0x7f000001`, and non-ASCII letters are refused.
    pub(crate) fn parse(text: &str) -> Option<Host> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(address) = bare.or_else(|| text.contains(':').then_some(text)) {
            let address: Ipv6Addr = address.parse().ok()?;
            return Some(Host::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_label = |label: &str| !label.is_empty() && label.chars().all(plain);
        if NAME_BYTES_MAX < name.len() || !name.split('.').all(is_label) {
            return None;
        }
        match is_numeric_address(&name) {
            true => Some(Host::Address(name.parse::<Ipv4Addr>().ok()?.into())),
            false => Some(Host::Name(name)),
        }
    }
}

/// Whether network libraries would parse a name as an IPv4 address.
fn is_numeric_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_hexadecimal = |digits: &str| digits.chars().all(|c| c.is_ascii_hexdigit());
    last.chars().all(|c| c.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(is_hexadecimal)
}

impl Pattern {
    pub(crate) fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Pattern::Any, _) => true,
            (Pattern::Exact(exact), host) => exact == host,
            (Pattern::Subdomains(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Pattern::AddressPrefix(octets), Host::Address(IpAddr::V4(address))) => {
                address.octets().starts_with(octets)
            }
            (Pattern::Subdomains(_), Host::Address(_)) | (Pattern::AddressPrefix(_), _) => false,
        }
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Pattern, InvalidPattern> {
        if text == "*" {
            return Ok(Pattern::Any);
        }
        let pattern = match (text.strip_prefix("*."), text.strip_suffix(".*")) {
            (Some(parent), _) => match Host::parse(parent) {
                Some(Host::Name(name)) => Some(Pattern::Subdomains(name)),
                Some(Host::Address(_)) | None => None,
            },
            (None, Some(prefix)) => octets(prefix).map(Pattern::AddressPrefix),
            (None, None) => Host::parse(text).map(Pattern::Exact),
        };
        pattern.ok_or_else(|| {
            InvalidPattern(format!(
                "`{text}` is not a host pattern: write a name such as `example.org` without scheme and \
                 port, `*.example.org` for its subdomains, an address, or the start of one such as \
                 `10.0.*`"
            ))
        })
    }
}

/// The first one to three octets of an address.
fn octets(prefix: &str) -> Option<Vec<u8>> {
    let plain = |text: &str| text.parse().ok().filter(|octet: &u8| octet.to_string() == text);
    let octets: Option<Vec<u8>> = prefix.split('.').map(plain).collect();
    octets.filter(|octets| octets.len() <= 3)
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Exact(Host::Name(name)) => out.write_str(name),
            Pattern::Exact(Host::Address(address)) => write!(out, "{address}"),
            Pattern::Subdomains(parent) => write!(out, "*.{parent}"),
            Pattern::AddressPrefix(octets) => {
                octets.iter().try_for_each(|octet| write!(out, "{octet}."))?;
                out.write_str("*")
            }
            Pattern::Any => out.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let compiled: Pattern = pattern.parse().unwrap();
        assert_eq!(compiled.to_string(), pattern);
        let matches = |text: &str| compiled.matches(&Host::parse(text).unwrap());
        matching.iter().for_each(|text| assert!(matches(text), "{pattern} {text}"));
        others.iter().for_each(|text| assert!(!matches(text), "{pattern} {text}"));
    }

    #[test]
    fn spellings_of_a_host_are_equal() {
        check("example.org", &["example.org", "EXAMPLE.org."], &["www.example.org", "example.com"]);
        check("127.0.0.1", &["127.0.0.1", "::ffff:127.0.0.1", "[::ffff:7f00:1]"], &["127.0.0.2"]);
        check("::1", &["::1", "[::1]", "0:0:0:0:0:0:0:1"], &["::2", "localhost"]);
    }

    #[test]
    fn star_matches_subdomains_and_address_prefixes() {
        check(
            "*.example.org",
            &["a.example.org", "b.a.Example.org"],
            &["example.org", "aexample.org"],
        );
        check("10.0.*", &["10.0.0.1", "::ffff:10.0.9.9"], &["10.1.0.1", "10.0.example.org"]);
        check("*", &["localhost", "::1"], &[]);
    }

    #[test]
    fn ambiguous_hosts_are_refused() {
        for text in [
            "",
            ".",
            "a..b",
            "example.org:443",
            "user@example.org",
            "http://a",
            "127.1",
            "0x7f.1",
            "2130706433",
            "127.0.0.01",
            "0177.0.0.1",
            "exämple.org",
            "a b",
            "a\0b",
            "[::1",
            "a/b",
            "*",
        ] {
            assert_eq!(Host::parse(text), None, "{text}");
        }
    }

    #[test]
    fn star_in_other_positions_is_refused() {
        for text in [
            "",
            "api.*",
            "a*",
            "*a",
            "*.*",
            "*.10.0.0.1",
            "10.*.1",
            "1.2.3.4.*",
            "256.*",
            "010.*",
            ".*",
        ] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}

//! Hosts, and patterns over them.
//!
//! A host has many spellings. It is brought to one before it is compared, and what is not plainly a
//! name or an address is no host at all, so that no spelling slips past a rule.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::pattern::Invalid;

const NAME_BYTES_MAX: usize = 253;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Lower case, without the dot at the end.
    Name(String),
    Address(IpAddr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Whole(Host),
    /// `*.example.org`: the hosts below this name, not the name itself.
    Below(String),
    /// `10.0.*`: the addresses that begin so. Names never match: `10.0.example.org` is anybody's.
    Beginning(Vec<u8>),
    Every,
}

impl Host {
    /// Nothing, unless the text is plainly a name or an address: a port, a second spelling of an
    /// address such as `127.1` or `0x7f000001`, and letters beyond ASCII are refused.
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
        match ends_in_a_number(&name) {
            true => Some(Host::Address(name.parse::<Ipv4Addr>().ok()?.into())),
            false => Some(Host::Name(name)),
        }
    }
}

/// Then it is taken for an address by everybody who connects to it.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_hexadecimal = |digits: &str| digits.chars().all(|c| c.is_ascii_hexdigit());
    last.chars().all(|c| c.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(is_hexadecimal)
}

impl Pattern {
    pub(crate) fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Pattern::Every, _) => true,
            (Pattern::Whole(whole), host) => whole == host,
            (Pattern::Below(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Pattern::Beginning(octets), Host::Address(IpAddr::V4(address))) => {
                address.octets().starts_with(octets)
            }
            (Pattern::Below(_), Host::Address(_)) | (Pattern::Beginning(_), _) => false,
        }
    }
}

impl FromStr for Pattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Pattern, Invalid> {
        if text == "*" {
            return Ok(Pattern::Every);
        }
        let pattern = match (text.strip_prefix("*."), text.strip_suffix(".*")) {
            (Some(parent), _) => match Host::parse(parent) {
                Some(Host::Name(name)) => Some(Pattern::Below(name)),
                Some(Host::Address(_)) | None => None,
            },
            (None, Some(beginning)) => octets(beginning).map(Pattern::Beginning),
            (None, None) => Host::parse(text).map(Pattern::Whole),
        };
        pattern.ok_or_else(|| {
            Invalid(format!(
                "`{text}` is not a pattern for hosts: write a name such as `example.org` without \
                 scheme and port, `*.example.org` for the hosts below it, an address, or the \
                 beginning of one such as `10.0.*`"
            ))
        })
    }
}

/// One to three numbers of an address.
fn octets(beginning: &str) -> Option<Vec<u8>> {
    let plain = |text: &str| text.parse().ok().filter(|octet: &u8| octet.to_string() == text);
    let octets: Option<Vec<u8>> = beginning.split('.').map(plain).collect();
    octets.filter(|octets| octets.len() <= 3)
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Whole(Host::Name(name)) => out.write_str(name),
            Pattern::Whole(Host::Address(address)) => write!(out, "{address}"),
            Pattern::Below(parent) => write!(out, "*.{parent}"),
            Pattern::Beginning(octets) => {
                octets.iter().try_for_each(|octet| write!(out, "{octet}."))?;
                out.write_str("*")
            }
            Pattern::Every => out.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, covered: &[&str], others: &[&str]) {
        let compiled: Pattern = pattern.parse().unwrap();
        assert_eq!(compiled.to_string(), pattern);
        let covers = |text: &str| compiled.covers(&Host::parse(text).unwrap());
        covered.iter().for_each(|text| assert!(covers(text), "{pattern} {text}"));
        others.iter().for_each(|text| assert!(!covers(text), "{pattern} {text}"));
    }

    #[test]
    fn every_spelling_of_a_host_is_the_same_host() {
        check("example.org", &["example.org", "EXAMPLE.org."], &["www.example.org", "example.com"]);
        check("127.0.0.1", &["127.0.0.1", "::ffff:127.0.0.1", "[::ffff:7f00:1]"], &["127.0.0.2"]);
        check("::1", &["::1", "[::1]", "0:0:0:0:0:0:0:1"], &["::2", "localhost"]);
    }

    #[test]
    fn a_pattern_covers_what_is_below_a_name_or_begins_an_address() {
        check(
            "*.example.org",
            &["a.example.org", "b.a.Example.org"],
            &["example.org", "aexample.org"],
        );
        check("10.0.*", &["10.0.0.1", "::ffff:10.0.9.9"], &["10.1.0.1", "10.0.example.org"]);
        check("*", &["localhost", "::1"], &[]);
    }

    #[test]
    fn what_is_not_plainly_a_host_is_none() {
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
    fn a_star_elsewhere_is_refused() {
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

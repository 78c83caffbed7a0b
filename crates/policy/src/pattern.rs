//! Patterns for names and capabilities: a whole name, or a prefix and `*`.
//!
//! Nothing else is supported, so that a comparison takes linear time.

use std::fmt;
use std::str::FromStr;

use crate::capability;

/// Why a pattern in a rule is invalid, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidPattern(pub(crate) String);

/// Matches one name, or all names with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamePattern {
    Exact(String),
    Prefix(String),
}

/// Matches one capability, a family, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CapabilityPattern {
    Exact(&'static str),
    /// Includes capabilities that the table does not contain.
    Family(String),
    Any,
}

impl NamePattern {
    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            NamePattern::Exact(exact) => exact == name,
            NamePattern::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

impl CapabilityPattern {
    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            CapabilityPattern::Exact(exact) => *exact == name,
            CapabilityPattern::Family(family) => {
                name.strip_prefix(family.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
            CapabilityPattern::Any => true,
        }
    }

    /// Whether it may match capabilities that the table does not contain.
    pub(crate) fn covers_unknown(&self) -> bool {
        match self {
            CapabilityPattern::Exact(_) => false,
            CapabilityPattern::Family(_) | CapabilityPattern::Any => true,
        }
    }
}

impl FromStr for NamePattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<NamePattern, InvalidPattern> {
        let (name, pattern): (&str, fn(String) -> NamePattern) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, NamePattern::Prefix),
            None => (text, NamePattern::Exact),
        };
        match (text, name) {
            ("", _) => {
                Err(InvalidPattern("an empty pattern matches nothing: remove it".to_owned()))
            }
            (_, name) if name.contains('*') => Err(misplaced_star(text)),
            (_, name) => Ok(pattern(name.to_owned())),
        }
    }
}

impl FromStr for CapabilityPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<CapabilityPattern, InvalidPattern> {
        if text == "*" {
            return Ok(CapabilityPattern::Any);
        }
        let (family, action) = text.split_once('.').unwrap_or((text, ""));
        let members = capability::members(family);
        match (capability::find(text), action) {
            (Some(capability), _) => Ok(CapabilityPattern::Exact(capability.name)),
            (None, _) if members.is_empty() => Err(InvalidPattern(format!(
                "`{text}` is not in a known family of capabilities: the families are {}",
                quote_names(capability::families())
            ))),
            (None, "*") => Ok(CapabilityPattern::Family(family.to_owned())),
            (None, action) if action.contains('*') => Err(misplaced_star(text)),
            (None, _) => Err(InvalidPattern(format!(
                "unknown capability `{text}`: write {} or `{family}.*`",
                quote_names(members)
            ))),
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamePattern::Exact(name) => out.write_str(name),
            NamePattern::Prefix(prefix) => write!(out, "{prefix}*"),
        }
    }
}

impl fmt::Display for CapabilityPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapabilityPattern::Exact(name) => out.write_str(name),
            CapabilityPattern::Family(family) => write!(out, "{family}.*"),
            CapabilityPattern::Any => out.write_str("*"),
        }
    }
}

/// Names in backticks, separated by commas.
pub(crate) fn quote_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn misplaced_star(text: &str) -> InvalidPattern {
    InvalidPattern(format!("`{text}` has a `*` before its end: write `*` only at the end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let name: NamePattern = pattern.parse().unwrap();
        assert_eq!(name.to_string(), pattern);
        assert!(matching.iter().all(|text| name.matches(text)), "{pattern} {matching:?}");
        assert!(!others.iter().any(|text| name.matches(text)), "{pattern} {others:?}");
    }

    #[test]
    fn name_pattern_matches_a_whole_name_or_a_prefix() {
        check("ada", &["ada"], &["", "ad", "ada2", "Ada"]);
        check("team-*", &["team-", "team-a"], &["team", "a-team-a"]);
        check("*", &["", "anything"], &[]);
    }

    #[test]
    fn star_is_allowed_only_at_the_end() {
        for text in ["", "*a", "a*b", "**", "a**"] {
            assert!(text.parse::<NamePattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn family_matches_capabilities_outside_the_table() {
        let family: CapabilityPattern = "net.*".parse().unwrap();
        assert!(["net.read", "net.", "net.listen"].iter().all(|name| family.matches(name)));
        assert!(!["net", "network.read", "shell.run"].iter().any(|name| family.matches(name)));
    }

    #[test]
    fn misspelt_capability_lists_the_valid_ones() {
        let error = |text: &str| text.parse::<CapabilityPattern>().unwrap_err().to_string();
        assert_eq!(
            error("net.raed"),
            "unknown capability `net.raed`: write `net.read`, `net.write` or `net.*`"
        );
        assert!(error("nett.*").starts_with("`nett.*` is not in a known family of capabilities"));
        assert!(error("net.r*").contains("before its end"));
        for text in ["", "net", "net.", ".", "*.*", "*.read", "Net.read"] {
            assert!(text.parse::<CapabilityPattern>().is_err(), "{text}");
        }
    }
}

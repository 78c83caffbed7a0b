//! Patterns over names: a whole name, or its beginning with `*` at the end.
//!
//! There is nothing else to them, so that a comparison takes one pass and cannot run away.

use std::fmt;
use std::str::FromStr;

use crate::capability;

/// What is wrong with a text in a rule, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Invalid(pub(crate) String);

/// A name as it is, or the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Whole(String),
    Beginning(String),
}

/// Which classes of the table a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    One(&'static str),
    /// Also the members that the table does not know.
    Family(String),
    Every,
}

impl Name {
    pub(crate) fn covers(&self, name: &str) -> bool {
        match self {
            Name::Whole(whole) => whole == name,
            Name::Beginning(beginning) => name.starts_with(beginning.as_str()),
        }
    }
}

impl Class {
    pub(crate) fn covers(&self, name: &str) -> bool {
        match self {
            Class::One(one) => *one == name,
            Class::Family(family) => {
                name.strip_prefix(family.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
            Class::Every => true,
        }
    }

    /// It reaches beyond the table.
    pub(crate) fn is_wide(&self) -> bool {
        match self {
            Class::One(_) => false,
            Class::Family(_) | Class::Every => true,
        }
    }
}

impl FromStr for Name {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Name, Invalid> {
        let (name, pattern): (&str, fn(String) -> Name) = match text.strip_suffix('*') {
            Some(beginning) => (beginning, Name::Beginning),
            None => (text, Name::Whole),
        };
        match (text, name) {
            ("", _) => Err(Invalid("an empty pattern matches nothing: remove it".to_owned())),
            (_, name) if name.contains('*') => Err(misplaced(text)),
            (_, name) => Ok(pattern(name.to_owned())),
        }
    }
}

impl FromStr for Class {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Class, Invalid> {
        if text == "*" {
            return Ok(Class::Every);
        }
        let (family, action) = text.split_once('.').unwrap_or((text, ""));
        let members = capability::members(family);
        match (capability::find(text), action) {
            (Some(capability), _) => Ok(Class::One(capability.name)),
            (None, _) if members.is_empty() => Err(Invalid(format!(
                "`{text}` is in no family of capabilities: the families are {}",
                listed(capability::families())
            ))),
            (None, "*") => Ok(Class::Family(family.to_owned())),
            (None, action) if action.contains('*') => Err(misplaced(text)),
            (None, _) => Err(Invalid(format!(
                "no capability is called `{text}`: write {} or `{family}.*`",
                listed(members)
            ))),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Whole(name) => out.write_str(name),
            Name::Beginning(beginning) => write!(out, "{beginning}*"),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::One(name) => out.write_str(name),
            Class::Family(family) => write!(out, "{family}.*"),
            Class::Every => out.write_str("*"),
        }
    }
}

/// Names as they are shown in a sentence.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn misplaced(text: &str) -> Invalid {
    Invalid(format!("`{text}` has a `*` that is not its end: write out what stands before the `*`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, covered: &[&str], others: &[&str]) {
        let name: Name = pattern.parse().unwrap();
        assert_eq!(name.to_string(), pattern);
        assert!(covered.iter().all(|text| name.covers(text)), "{pattern} {covered:?}");
        assert!(!others.iter().any(|text| name.covers(text)), "{pattern} {others:?}");
    }

    #[test]
    fn a_name_is_compared_as_a_whole_or_by_its_beginning() {
        check("ada", &["ada"], &["", "ad", "ada2", "Ada"]);
        check("team-*", &["team-", "team-a"], &["team", "a-team-a"]);
        check("*", &["", "anything"], &[]);
    }

    #[test]
    fn a_star_stands_only_at_the_end() {
        for text in ["", "*a", "a*b", "**", "a**"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_family_covers_the_members_that_the_table_does_not_know() {
        let family: Class = "net.*".parse().unwrap();
        assert!(["net.read", "net.", "net.listen"].iter().all(|name| family.covers(name)));
        assert!(!["net", "network.read", "shell.run"].iter().any(|name| family.covers(name)));
    }

    #[test]
    fn a_class_that_is_misspelt_is_answered_with_what_there_is() {
        let refused = |text: &str| text.parse::<Class>().unwrap_err().to_string();
        assert_eq!(
            refused("net.raed"),
            "no capability is called `net.raed`: write `net.read`, `net.write` or `net.*`"
        );
        assert!(refused("nett.*").starts_with("`nett.*` is in no family of capabilities"));
        assert!(refused("net.r*").contains("not its end"));
        for text in ["", "net", "net.", ".", "*.*", "*.read", "Net.read"] {
            assert!(text.parse::<Class>().is_err(), "{text}");
        }
    }
}

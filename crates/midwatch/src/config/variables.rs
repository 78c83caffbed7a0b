//! The environment: variables that override keys, and those that only look as if they did.

use std::collections::BTreeMap;
use std::fmt;

use super::keys::{KEYS, Key};
use super::nearest::nearest;

const PREFIX: &str = "MIDWATCH_";

/// Variables that mean something else than a key: the data directory, the configuration file, the
/// token of a client, and what the program of a run is told.
pub const RESERVED: [&str; 7] = [
    "MIDWATCH_CONFIG",
    "MIDWATCH_DATA",
    "MIDWATCH_TOKEN",
    "MIDWATCH_RUN_ID",
    "MIDWATCH_SCHEDULE_ID",
    "MIDWATCH_SLOT",
    "MIDWATCH_ATTEMPT",
];

/// A variable that looks like ours and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub variable: String,
    /// The name that was perhaps meant.
    pub nearest: Option<String>,
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "`{}` matches no key and is ignored", self.variable)?;
        match &self.nearest {
            Some(name) => write!(out, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

pub(super) fn unknown(environment: &BTreeMap<String, String>) -> Vec<Warning> {
    let mut known: Vec<String> = KEYS.iter().map(Key::variable).collect();
    known.extend(RESERVED.map(str::to_owned));
    let ours = environment.keys().filter(|name| name.starts_with(PREFIX));
    let strangers = ours.filter(|name| !known.contains(name));
    let warning = |name: &String| {
        // All names share the prefix; it must not make them look alike.
        let rest = name.strip_prefix(PREFIX).unwrap_or(name);
        let rests = known.iter().filter_map(|name| name.strip_prefix(PREFIX));
        let nearest = nearest(rest, rests).map(|near| format!("{PREFIX}{near}"));
        Warning { variable: name.clone(), nearest }
    };
    strangers.map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_named_with_what_was_meant() {
        let names = [
            "MIDWATCH_CONFIG",
            "MIDWATCH_DATA",
            "MIDWATCH_LOGLEVEL",
            "MIDWATCH_POSTURE",
            "MIDWATCH_POSTUER",
            "MIDWATCH_TOKEN",
            "MIDWATCH_XYZZY",
            "PATH",
        ];
        let environment = names.map(|name| (name.to_owned(), "x".to_owned())).into();
        let found: Vec<String> = unknown(&environment).iter().map(Warning::to_string).collect();
        let expected = [
            "`MIDWATCH_LOGLEVEL` matches no key and is ignored; did you mean `MIDWATCH_LOG_LEVEL`?",
            "`MIDWATCH_POSTUER` matches no key and is ignored; did you mean `MIDWATCH_POSTURE`?",
            "`MIDWATCH_XYZZY` matches no key and is ignored",
        ];
        assert_eq!(found, expected);
    }
}

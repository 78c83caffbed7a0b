//! Environment variables: those that are not keys, and those that match none.

use std::collections::BTreeMap;
use std::fmt;

use api::nearest;
use kernel::backend::SecretRef;

use super::Config;
use super::keys::{KEYS, Key};

const PREFIX: &str = "MIDWATCH_";

/// Variables that are not keys: the configuration file, the data directory, a client's token, and those
/// that the program of a run gets.
pub const RESERVED: [&str; 7] = [
    "MIDWATCH_CONFIG",
    "MIDWATCH_DATA",
    "MIDWATCH_TOKEN",
    "MIDWATCH_RUN_ID",
    "MIDWATCH_SCHEDULE_ID",
    "MIDWATCH_SLOT",
    "MIDWATCH_ATTEMPT",
];

/// A variable that starts with `MIDWATCH_` and matches no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub variable: String,
    /// The most similar name.
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

/// Variables that match no key, and that the configuration does not name as the place of a secret either.
pub(super) fn unknown_variables(
    environment: &BTreeMap<String, String>,
    config: &Config,
) -> Vec<Warning> {
    let mut known: Vec<String> = KEYS.iter().map(Key::variable).collect();
    known.extend(RESERVED.map(str::to_owned));
    let secrets = [&config.store.password, &config.notice.token];
    known.extend(secrets.into_iter().flatten().filter_map(|secret| match secret {
        SecretRef::Env(name) => Some(name.clone()),
        SecretRef::File(_) => None,
    }));
    let ours = environment.keys().filter(|name| name.starts_with(PREFIX));
    let unknown = ours.filter(|name| !known.contains(name));
    let warning = |name: &String| {
        // The common prefix must not make all names look similar.
        let rest = name.strip_prefix(PREFIX).unwrap_or(name);
        let rests = known.iter().filter_map(|name| name.strip_prefix(PREFIX));
        let nearest = nearest(rest, rests).map(|near| format!("{PREFIX}{near}"));
        Warning { variable: name.clone(), nearest }
    };
    unknown.map(warning).collect()
}

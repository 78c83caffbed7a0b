//! The execution fingerprint of a plan: the program file, working directory and environment variables that
//! its effect depends on.
//!
//! It is taken when approval is requested and again before the run starts, so a change between the two is
//! detected. It holds hashes of variables, never their values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::run::Cause;

/// The result of the check before a start: the fingerprint, `None` if the run starts no program on this
/// machine, or why the program cannot be started.
pub type Preflight = Result<Option<ExecutionFingerprint>, Cause>;

const PROGRAM: &str = "program";
const DIRECTORY: &str = "directory";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionFingerprint {
    pub program: Executable,
    /// The working directory, if the agent has one configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Directory>,
    /// The hash of each variable that is set, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// With all symbolic links resolved.
    pub path: String,
    pub sha256: String,
}

/// The numbers are text because JSON numbers do not hold 64 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    pub device: String,
    pub inode: String,
}

impl ExecutionFingerprint {
    /// The names of its parts: the program, the directory, and each variable.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let directory = self.directory.as_ref().map(|_| DIRECTORY);
        let variables = self.variables.keys().map(String::as_str);
        [PROGRAM].into_iter().chain(directory).chain(variables)
    }

    /// The names of the parts that differ from an earlier fingerprint; all of them if there was none.
    pub(super) fn changed_parts(&self, before: Option<&ExecutionFingerprint>) -> Vec<String> {
        let Some(before) = before else { return self.parts().map(str::to_owned).collect() };
        let mut changed = Vec::new();
        if self.program != before.program {
            changed.push(PROGRAM.to_owned());
        }
        if self.directory != before.directory {
            changed.push(DIRECTORY.to_owned());
        }
        let names = before.variables.keys().chain(self.variables.keys());
        for name in names.filter(|name| self.variables.get(*name) != before.variables.get(*name)) {
            if !changed.contains(name) {
                changed.push(name.clone());
            }
        }
        changed
    }
}

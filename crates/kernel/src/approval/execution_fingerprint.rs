//! The execution fingerprint of a plan: the program file, the files that its arguments name, the working directory and
//! the environment variables that its effect depends on.
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
    /// The SHA-256 of each file that an argument names, such as the script in `sh job.sh`, by its name there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
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
    /// The names of its parts: the program, each file, the directory, and each variable.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let directory = self.directory.as_ref().map(|_| DIRECTORY);
        let (files, variables) = (self.arguments.keys(), self.variables.keys());
        let files = files.map(String::as_str);
        [PROGRAM].into_iter().chain(files).chain(directory).chain(variables.map(String::as_str))
    }

    /// The names of the parts that differ from an earlier fingerprint; all of them if there was none.
    pub(super) fn changed_parts(&self, before: Option<&ExecutionFingerprint>) -> Vec<String> {
        let Some(before) = before else { return self.parts().map(str::to_owned).collect() };
        let mut changed = Vec::new();
        if self.program != before.program {
            changed.push(PROGRAM.to_owned());
        }
        add_changed(&mut changed, &before.arguments, &self.arguments);
        if self.directory != before.directory {
            changed.push(DIRECTORY.to_owned());
        }
        add_changed(&mut changed, &before.variables, &self.variables);
        changed
    }
}

/// Adds the names whose hashes differ.
fn add_changed(
    changed: &mut Vec<String>,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) {
    let names = before.keys().chain(after.keys());
    for name in names.filter(|name| before.get(*name) != after.get(*name)) {
        if !changed.contains(name) {
            changed.push(name.clone());
        }
    }
}

//! What the effect of a plan stands on, as far as the machine that asks can tell: which file its program
//! is, where it is started, and what it is given of the environment.
//!
//! It is looked at when a human is asked and again when the run is to begin. Only hashes of values are
//! here, and no plan holds a value itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::run::Cause;

/// What a look has found: nothing, where a plan stands on nothing of this machine, or why there is nothing
/// to stand on.
pub type Looked = Result<Option<Footing>, Cause>;

const PROGRAM: &str = "program";
const DIRECTORY: &str = "directory";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Footing {
    pub program: Executable,
    /// Where the program is started, if its agent says where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Directory>,
    /// The hash of each value by its name, of those that are set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// Where it really is, with every link resolved.
    pub path: String,
    pub sha256: String,
}

/// Numbers of 64 bits, which JSON does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    pub device: String,
    pub inode: String,
}

impl Footing {
    /// What can change: the program, the directory, and each variable by its name.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let directory = self.directory.as_ref().map(|_| DIRECTORY);
        let variables = self.variables.keys().map(String::as_str);
        [PROGRAM].into_iter().chain(directory).chain(variables)
    }

    /// What of it is not as it was.
    pub(super) fn changed(&self, before: Option<&Footing>) -> Vec<String> {
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

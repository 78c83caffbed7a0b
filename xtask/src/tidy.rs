//! Rules of the tree that no compiler checks. Each says what to do instead.
//!
//! A rule is a function from the [`Workspace`] to the places that break it; it reads nothing else
//! and changes nothing. Only what matters to the architecture is a rule. Taste is left to review.

mod crates;
mod lock;
mod sources;
mod words;

use std::fmt::{self, Display};

use crate::layers::{self, LAYERS};
use crate::workspace::Workspace;

#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub name: &'static str,
    pub instead: &'static str,
    find: fn(&Workspace) -> Vec<String>,
}

/// A place that breaks a rule.
#[derive(Clone, Debug)]
pub struct Fault {
    pub rule: Rule,
    pub found: String,
}

impl Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let Fault { rule, found } = self;
        write!(out, "{}: {found}\n  instead: {}", rule.name, rule.instead)
    }
}

pub const RULES: &[Rule] = &[
    Rule {
        name: "layers",
        instead: "move the code to a crate that may do it, or argue for a new edge: a row of \
                  `LAYERS` in xtask/src/layers.rs and ARCHITECTURE.md, changed together",
        find: |workspace| layers::faults(LAYERS, &workspace.packages),
    },
    Rule {
        name: "lints",
        instead: "add `[lints]` and below it `workspace = true` to the manifest",
        find: crates::without_lints,
    },
    Rule {
        name: "one clippy.toml",
        instead: "put the setting into the clippy.toml of the root: one in a member would replace \
                  it whole, with all its bans",
        find: crates::second_clippy_toml,
    },
    Rule {
        name: "crate names",
        instead: "name the crate after the one thing it knows; a vague name collects everything",
        find: crates::vague_names,
    },
    Rule {
        name: "crate list",
        instead: "add the crate and what it is for to the tree in ARCHITECTURE.md",
        find: crates::absent_from_architecture,
    },
    Rule {
        name: "module docs",
        instead: "open the file with `//!`: what it is, what it does not do, its invariants",
        find: sources::without_module_doc,
    },
    Rule {
        name: "dead files",
        instead: "declare the file with `mod` in its parent, or delete it",
        find: sources::dead,
    },
    Rule {
        name: "home paths",
        instead: "write `~`, a relative path, or make a temporary folder in the test",
        find: words::home_paths,
    },
    Rule {
        name: "open ends",
        instead: "do it now, delete the remark, or name the issue in brackets: `(#12)`",
        find: words::open_ends,
    },
    Rule {
        name: "lock file",
        instead: "find who brings it with `cargo tree --invert NAME`, then choose a feature or a \
                  version that does not; TLS uses `ring`, SQLite is linked once",
        find: lock::unwanted,
    },
];

/// All places that break a rule, in the order of [`RULES`].
pub fn check(workspace: &Workspace) -> Vec<Fault> {
    let broken = |rule: &'static Rule| {
        let found = (rule.find)(workspace);
        found.into_iter().map(|found| Fault { rule: *rule, found })
    };
    RULES.iter().flat_map(broken).collect()
}

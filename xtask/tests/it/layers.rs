//! Dependencies point inward: in this workspace, and in small ones that try otherwise.

use anyhow::Result;
use xtask::layers::{self, Inside, LAYERS, Layer, Side};
use xtask::workspace::{Dependency, Kind, Package, Workspace};

#[test]
fn dependencies_of_this_workspace_point_inward() -> Result<()> {
    let workspace = Workspace::read(xtask::root())?;
    let faults = layers::faults(LAYERS, &workspace.packages);
    assert!(!workspace.packages.is_empty());
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    Ok(())
}

const SMALL: &[Layer] = &[
    Layer {
        krate: "rules",
        side: Side::Core { outside: &["serde", "tokio"] },
        inside: Inside::Only(&[]),
    },
    Layer { krate: "port", side: Side::Core { outside: &[] }, inside: Inside::Only(&["rules"]) },
    Layer { krate: "disk", side: Side::Edge, inside: Inside::Only(&["port"]) },
    Layer { krate: "lab", side: Side::Edge, inside: Inside::Any },
];

/// One package of the small workspace with one dependency, and the answer to it. A dependency is
/// `name`, or `name/feature`; it is inside when the small workspace has a layer of that name.
fn check(package: &str, kind: Kind, dependency: &str, expected: Option<&str>) {
    let (name, features) = match dependency.split_once('/') {
        Some((name, feature)) => (name, vec![feature.to_owned()]),
        None => (dependency, vec![]),
    };
    let inside = SMALL.iter().any(|layer| layer.krate == name);
    let dependencies = vec![Dependency { name: name.to_owned(), kind, inside, features }];
    let (dir, roots) = (String::new(), vec![]);
    let package = Package { name: package.to_owned(), dir, roots, dependencies };
    let faults = layers::faults(SMALL, &[package]);
    assert_eq!(faults, Vec::from_iter(expected), "{kind:?} {dependency}");
}

#[test]
fn what_is_listed_is_allowed() {
    check("rules", Kind::Normal, "serde", None);
    check("rules", Kind::Normal, "tokio/sync", None);
    check("port", Kind::Normal, "rules", None);
    check("disk", Kind::Normal, "port", None);
    check("disk", Kind::Normal, "rusqlite", None);
    check("disk", Kind::Normal, "tokio/fs", None);
    check("lab", Kind::Normal, "disk", None);
}

#[test]
fn what_is_not_listed_is_refused() {
    let cases = [
        ("rules", "port", "`rules` must not depend on `port`"),
        ("rules", "anyhow", "`rules` must not depend on `anyhow`"),
        ("rules", "tokio/fs", "`rules` must not use the feature `fs` of `tokio`"),
        ("port", "serde", "`port` must not depend on `serde`"),
        ("port", "disk", "`port` must not depend on `disk`"),
        ("disk", "rules", "`disk` must not depend on `rules`"),
        ("stranger", "serde", "`stranger` has no layer"),
    ];
    for (package, dependency, expected) in cases {
        check(package, Kind::Normal, dependency, Some(expected));
        check(package, Kind::Build, dependency, Some(expected));
    }
}

#[test]
fn tests_are_free_except_that_the_core_does_not_lean_on_the_edge() {
    check("rules", Kind::Dev, "proptest", None);
    check("rules", Kind::Dev, "tokio/rt", None);
    check("rules", Kind::Dev, "port", None);
    check("disk", Kind::Dev, "lab", None);
    let refused = "the tests of `rules` must not depend on `disk`, an edge crate";
    check("rules", Kind::Dev, "disk", Some(refused));
}

#[test]
fn the_real_layers_have_no_circle_and_no_unknown_name() {
    for (place, layer) in LAYERS.iter().enumerate() {
        let Inside::Only(names) = layer.inside else { continue };
        for name in names {
            let known = LAYERS.iter().position(|it| it.krate == *name);
            let lower = known.is_some_and(|at| at < place);
            assert!(lower, "`{}` lists `{name}`, which has no row above it", layer.krate);
        }
    }
}

//! Dependencies of crates and imports of rooms point inward: in this workspace, and in small ones that break the rule.

use anyhow::Result;
use xtask::layers::{self, Inside, LAYERS, Layer, ROOMS, ROOMS_FOLDER, Room, Side};
use xtask::workspace::{Dependency, Kind, Package, Workspace};

#[test]
fn dependencies_of_this_workspace_point_inward() -> Result<()> {
    let workspace = Workspace::read(xtask::root())?;
    let violations = layers::crate_violations(LAYERS, &workspace.packages);
    assert!(!workspace.packages.is_empty());
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
    Ok(())
}

#[test]
fn rooms_of_the_runtime_import_only_lower_rooms() -> Result<()> {
    let workspace = Workspace::read(xtask::root())?;
    for Room { name, .. } in ROOMS {
        let folder = format!("{ROOMS_FOLDER}{name}/");
        let exists = workspace.files.keys().any(|path| path.starts_with(&folder));
        assert!(exists, "`ROOMS` lists `{name}`, and {folder} does not exist");
    }
    let violations = layers::room_violations(ROOMS, &workspace);
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
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

/// Checks one package of the small workspace with one dependency, `name` or `name/feature`. The dependency is inside if
/// [`SMALL`] has a layer of that name.
fn check(package: &str, kind: Kind, dependency: &str, expected: Option<&str>) {
    let (name, features) = match dependency.split_once('/') {
        Some((name, feature)) => (name, vec![feature.to_owned()]),
        None => (dependency, vec![]),
    };
    let inside = SMALL.iter().any(|layer| layer.krate == name);
    let dependencies = vec![Dependency { name: name.to_owned(), kind, inside, features }];
    let (dir, roots) = (String::new(), vec![]);
    let package = Package { name: package.to_owned(), dir, roots, dependencies };
    let violations = layers::crate_violations(SMALL, &[package]);
    assert_eq!(violations, Vec::from_iter(expected), "{kind:?} {dependency}");
}

#[test]
fn listed_dependencies_are_allowed() {
    check("rules", Kind::Normal, "serde", None);
    check("rules", Kind::Normal, "tokio/sync", None);
    check("port", Kind::Normal, "rules", None);
    check("disk", Kind::Normal, "port", None);
    check("disk", Kind::Normal, "rusqlite", None);
    check("disk", Kind::Normal, "tokio/fs", None);
    check("lab", Kind::Normal, "disk", None);
}

#[test]
fn unlisted_dependencies_are_refused() {
    let cases = [
        ("rules", "port", "`rules` must not depend on `port`"),
        ("rules", "anyhow", "`rules` must not depend on `anyhow`"),
        ("rules", "tokio/fs", "`rules` must not use the feature `fs` of `tokio`"),
        ("port", "serde", "`port` must not depend on `serde`"),
        ("port", "disk", "`port` must not depend on `disk`"),
        ("disk", "rules", "`disk` must not depend on `rules`"),
        ("unlisted", "serde", "`unlisted` has no layer"),
    ];
    for (package, dependency, expected) in cases {
        check(package, Kind::Normal, dependency, Some(expected));
        check(package, Kind::Build, dependency, Some(expected));
    }
}

#[test]
fn tests_may_depend_on_anything_except_core_on_edge() {
    check("rules", Kind::Dev, "proptest", None);
    check("rules", Kind::Dev, "tokio/rt", None);
    check("rules", Kind::Dev, "port", None);
    check("disk", Kind::Dev, "lab", None);
    let refused = "the tests of `rules` must not depend on `disk`, an edge crate";
    check("rules", Kind::Dev, "disk", Some(refused));
}

#[test]
fn every_layer_lists_only_crates_of_earlier_rows() {
    check_order(LAYERS.iter().map(|layer| match layer.inside {
        Inside::Only(names) => (layer.krate, names),
        Inside::Any => (layer.krate, &[][..]),
    }));
}

#[test]
fn every_room_lists_only_rooms_of_earlier_rows() {
    check_order(ROOMS.iter().map(|room| (room.name, room.imports)));
}

/// A table in this order cannot have a cycle.
fn check_order<'a>(rows: impl Iterator<Item = (&'a str, &'a [&'a str])>) {
    let mut earlier = Vec::new();
    for (name, listed) in rows {
        for other in listed {
            assert!(earlier.contains(other), "`{name}` lists `{other}`, which has no row above it");
        }
        earlier.push(name);
    }
}

const SMALL_ROOMS: &[Room] = &[
    Room { name: "commit", imports: &[] },
    Room { name: "execute", imports: &["commit"] },
    Room { name: "engine", imports: &["commit", "execute"] },
];

/// Checks the small rooms with these files, given by their path below the folder of the rooms. Each `{src}` of an expected
/// violation stands for that folder.
fn check_rooms(files: &[(&str, &str)], expected: &[&str]) {
    let base = [
        ("lib.rs", "pub use engine::Engine;"),
        ("clock.rs", ""),
        ("commit/mod.rs", "use crate::clock::Clock;"),
        ("execute/mod.rs", "use crate::commit::Row;"),
        ("engine/mod.rs", "use crate::{commit::Row, execute};"),
    ];
    let path = |name: &str| format!("{ROOMS_FOLDER}{name}");
    let files = base.iter().chain(files).map(|(name, text)| (path(name), (*text).to_owned()));
    let workspace = Workspace { packages: vec![], files: files.collect() };
    let expected: Vec<String> =
        expected.iter().map(|text| text.replace("{src}/", ROOMS_FOLDER)).collect();
    assert_eq!(layers::room_violations(SMALL_ROOMS, &workspace), expected);
}

#[test]
fn a_room_may_import_listed_rooms_and_the_files_below_all_rooms() {
    check_rooms(&[], &[]);
    check_rooms(
        &[("execute/start.rs", "fn start() { crate::commit::write(crate::clock::now()) }")],
        &[],
    );
    check_rooms(
        &[("commit/rows.rs", "#[cfg(test)]\nmod tests { use crate::engine::Engine; }")],
        &[],
    );
}

#[test]
fn an_import_that_closes_a_cycle_is_refused_with_both_files() {
    check_rooms(
        &[("commit/rows.rs", "use crate::execute::Attempt;")],
        &[
            "cycle: {src}/commit/rows.rs imports `execute`, and {src}/execute/mod.rs leads from there \
           back to `commit`",
        ],
    );
    check_rooms(
        &[
            ("execute/mod.rs", ""),
            ("engine/mod.rs", "use crate::execute;"),
            ("execute/start.rs", "use crate::engine::Engine;"),
        ],
        &[
            "cycle: {src}/execute/start.rs imports `engine`, and {src}/engine/mod.rs leads from there \
           back to `execute`",
        ],
    );
}

#[test]
fn an_unlisted_import_is_refused() {
    check_rooms(
        &[("engine/mod.rs", ""), ("commit/rows.rs", "use crate::engine::Engine;")],
        &["{src}/commit/rows.rs: `commit` must not import `engine`"],
    );
    check_rooms(
        &[("clock.rs", "use crate::commit::Row;")],
        &["{src}/clock.rs is below all rooms and must not import `commit`"],
    );
    check_rooms(
        &[("commit/rows.rs", "use crate::Engine;")],
        &["{src}/commit/rows.rs imports `crate::Engine`: import it from its own module"],
    );
    check_rooms(&[("attic/mod.rs", "")], &["the room `attic` has no row in `ROOMS`"]);
}

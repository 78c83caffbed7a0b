//! Where the data is kept: in a file or in a database, and on the way from one to the other.

use std::fs;

use serde_json::Value;

use crate::world::{CLUSTER, World, wait_for};

/// What there is to see of an installation.
fn seen(world: &World) -> [Value; 3] {
    [
        world.json(&["agent", "list"])["agents"].clone(),
        world.json(&["ledger", "tail", "--limit", "1000"])["events"].clone(),
        world.json(&["ledger", "verify"])["head"].clone(),
    ]
}

fn begun() -> World {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let daemon = world.up();
    for number in 0..8 {
        world.ok(&["agent", "add", &format!("agent-{number}"), "--backend", "builtin"]);
    }
    world.ok(&["agent", "remove", "agent-3"]);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    world
}

#[test]
fn an_installation_moves_to_a_database_and_back() {
    let world = begun();
    let before = seen(&world);
    let (data, url) = (world.data().to_str().unwrap().to_owned(), CLUSTER.database().unwrap());
    let copied = world.json(&["store", "copy", "--from", &data, "--to", &url]);
    assert_eq!(copied["copied"]["head"], before[2], "{copied}");

    // The same directory, with its key, goes on in the database.
    let mut there = world.copy();
    std::fs::remove_file(there.data().join("midwatch.db")).unwrap();
    there.set("MIDWATCH_STORE_URL", &url);
    assert_eq!(seen(&there), before);
    let daemon = there.up();
    there.ok(&["agent", "add", "later", "--backend", "builtin"]);
    assert!(there.checked().starts_with("sound"), "{}", there.checked());
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(there.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0);
    there.ok(&["ledger", "export"]);
    let after = seen(&there);

    // And back into a file.
    let home = World::new();
    let data = home.data().to_str().unwrap();
    home.ok(&["store", "copy", "--from", &url, "--to", data]);
    std::fs::copy(there.data().join("signing.key"), home.data().join("signing.key")).unwrap();
    assert_eq!(seen(&home), after);
    home.ok(&["agent", "add", "last", "--backend", "builtin"]);
    home.verified();

    let said = world.refused(&["store", "copy", "--from", data, "--to", &url], "exists", 4);
    assert!(said.contains("empty"), "{said}");
}

/// What another directory has begun is at work there, and not left behind.
#[test]
fn a_watch_that_joins_others_on_a_database_leaves_their_runs_alone() {
    let world = World::on_postgres();
    let [begun, go] = ["begun", "go"].map(|name| world.root().join(name).display().to_string());
    let script = format!("touch '{begun}'; until [ -e '{go}' ]; do sleep 0.02; done");
    world.ok(&["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", &script]);
    let what = ["schedule", "add", "--name", "work", "--every", "30d", "--agent", "smith"];
    let added = world.json(&[&what[..], &["--prompt", "hello"]].concat());
    // Before it has a name of its own among those on the database.
    let other = world.copy();
    let daemon = world.up();
    let id = added["schedule"]["id"].as_str().unwrap();
    let run = world.json(&["run", "start", id])["run"]["id"].as_str().unwrap().to_owned();
    wait_for(|| fs::exists(&begun).unwrap().then_some(()));

    let second = other.up();
    let state = || other.json(&["run", "show", &run])["run"]["state"].clone();
    // It checks the log after it has looked for what was left behind.
    assert!(other.checked().starts_with("sound"), "{}", other.checked());
    assert_eq!(state(), "running");
    fs::write(&go, "").unwrap();
    wait_for(|| (state() != "running").then_some(()));
    assert_eq!(state(), "done");
    drop((daemon, second));
    world.verified();
}

#[test]
fn a_database_is_recreated_from_an_export() {
    let world = begun();
    world.ok(&["ledger", "export"]);
    let exports = world.data().join("exports");
    let other = World::on_postgres();
    std::fs::create_dir_all(other.data()).unwrap();
    std::fs::copy(world.data().join("signing.key"), other.data().join("signing.key")).unwrap();
    other.ok(&["ledger", "rebuild", "--from-export", exports.to_str().unwrap()]);
    assert_eq!(other.json(&["agent", "list"]), world.json(&["agent", "list"]));
    other.verified();
}

/// A log of its own stays behind in the directory: beginning another one would be a surprise.
#[test]
fn a_directory_with_a_log_does_not_begin_another_in_a_database() {
    let mut world = begun();
    world.set("MIDWATCH_STORE_URL", CLUSTER.database().unwrap());
    let said = world.refused(&["agent", "list"], "exists", 4);
    assert!(said.contains("store copy"), "{said}");
}

#[test]
fn databases_that_cannot_be_used_are_told() {
    let mut world = World::new();
    let add = ["agent", "add", "ada", "--backend", "builtin"];
    for (url, code, exit, hint) in [
        ("postgres://ada:hunter2@localhost/watch", "config_invalid", 2, "store.password"),
        ("mysql://localhost/watch", "config_invalid", 2, "postgres://"),
        ("postgres://ada@%2Fnowhere%2Fat-all/watch", "database_away", 1, "store.url"),
    ] {
        world.set("MIDWATCH_STORE_URL", url);
        let said = world.refused(&add, code, exit);
        assert!(said.contains(hint), "{url}: {said}");
        assert!(!said.contains("hunter2"), "{url}: {said}");
    }
    world.set("MIDWATCH_STORE_URL", CLUSTER.database().unwrap());
    for password in ["hunter2", "env:MISSING", "file:/nowhere/at/all"] {
        world.set("MIDWATCH_STORE_PASSWORD", password);
        let said = world.refused(&add, "config_invalid", 2);
        assert!(!said.contains("hunter2"), "{said}");
    }
}

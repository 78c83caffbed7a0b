//! `checkpoint_copy`: a file elsewhere that knows how long the log was.

use std::fs;
use std::path::{Path, PathBuf};

use super::{add, log};
use crate::world::{Daemon, World, copy_dir};

const VARIABLE: &str = "MIDWATCH_LEDGER_CHECKPOINT_COPY";

fn with_copy() -> (World, PathBuf) {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let copy = world.root().join("elsewhere.txt");
    world.set(VARIABLE, copy.to_str().unwrap());
    (world, copy)
}

/// Replaces the data directory by a copy of it.
fn put_back(world: &World, older: &Path) {
    fs::remove_dir_all(world.data()).unwrap();
    copy_dir(older, world.data());
}

#[test]
fn every_checkpoint_is_copied() {
    let (world, copy) = with_copy();
    let daemon = world.up();
    world.ok(&add("ada"));
    let first = world.ok(&["ledger", "checkpoint"]);
    world.ok(&add("bob"));
    let second = world.ok(&["ledger", "checkpoint"]);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(&copy).unwrap();
    assert!(text.starts_with(&format!("{first}{second}")), "{text}");
    assert_eq!(text, fs::read_to_string(world.data().join("checkpoints.log")).unwrap());
    let expect = ["ledger", "verify", "--expect-checkpoint", copy.to_str().unwrap()];
    assert_eq!(world.json(&expect)["verdict"], "ok");
    drop(world.up());
}

#[test]
fn an_older_copy_of_the_directory_is_refused() {
    let (world, copy) = with_copy();
    world.ok(&add("ada"));
    let older = world.root().join("older");
    copy_dir(world.data(), &older);
    world.ok(&add("bob"));
    world.ok(&["ledger", "checkpoint"]);

    put_back(&world, &older);
    let before = log(&world);
    let (code, said) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("[log_rewound]"), "{said}");
    for command in [&["up"][..], &add("eve"), &["ledger", "checkpoint"], &["ledger", "rebuild"]] {
        let said = world.refused(command, "log_rewound", 4);
        assert!(said.contains(copy.to_str().unwrap()), "{said}");
    }
    assert_eq!(log(&world), before);

    fs::rename(&copy, world.root().join("moved-away.txt")).unwrap();
    let daemon = world.up();
    world.ok(&add("eve"));
    drop(daemon);
    assert_eq!(world.agents(), ["ada", "eve"]);
}

/// Longer than the checkpoint elsewhere, and still not the log that it vouches for.
#[test]
fn another_history_of_the_same_log_is_noticed() {
    let (world, copy) = with_copy();
    world.ok(&add("ada"));
    let older = world.root().join("older");
    copy_dir(world.data(), &older);
    world.ok(&add("bob"));
    world.ok(&["ledger", "checkpoint"]);

    put_back(&world, &older);
    let away = world.root().join("away.txt");
    fs::rename(&copy, &away).unwrap();
    for name in ["eve", "mallory", "trudy"] {
        world.ok(&add(name));
    }
    fs::rename(&away, &copy).unwrap();
    let daemon = world.up();
    let found = world.checked();
    assert!(found.contains("rewritten or replaced"), "{found}");
    world.refused(&add("new"), "log_damaged", 4);
    assert_eq!(world.agents(), ["ada", "eve", "mallory", "trudy"]);
    drop(daemon);
}

#[test]
fn a_copy_that_cannot_be_written_is_a_warning() {
    let mut world = World::new();
    let nowhere = world.root().join("no-such-folder/checkpoints.txt");
    world.set(VARIABLE, nowhere.to_str().unwrap());
    let daemon = world.up();
    world.ok(&["ledger", "checkpoint"]);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(nowhere.to_str().unwrap()), "{said}");
    world.verified();
}

#[test]
fn a_copy_that_cannot_be_read_is_named() {
    let (world, copy) = with_copy();
    fs::create_dir(&copy).unwrap();
    let outcome = world.run(&["--json", "status"]);
    assert_eq!(outcome.code, Some(3), "no watch yet: {outcome:?}");
    let outcome = world.run(&[&["--json"], &add("ada")[..]].concat());
    let (_, said) = outcome.error();
    assert!(said.contains(copy.to_str().unwrap()), "{said}");
}

#[test]
fn a_note_cut_short_in_the_copy_does_not_matter() {
    let (world, copy) = with_copy();
    world.ok(&add("ada"));
    world.ok(&["ledger", "checkpoint"]);
    let text = fs::read_to_string(&copy).unwrap();
    fs::write(&copy, format!("{text}{}", &text[..text.len() / 2])).unwrap();
    let daemon = world.up();
    world.ok(&["ledger", "checkpoint"]);
    drop(daemon);
    let expect = ["ledger", "verify", "--expect-checkpoint", copy.to_str().unwrap()];
    assert_eq!(world.json(&expect)["verdict"], "ok");
}

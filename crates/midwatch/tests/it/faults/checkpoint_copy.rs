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

/// A directory as it was before the entry whose checkpoint is in the copy.
fn put_back_behind_its_copy() -> (World, PathBuf) {
    let (world, copy) = with_copy();
    world.ok(&add("ada"));
    let older = world.root().join("older");
    copy_dir(world.data(), &older);
    world.ok(&add("bob"));
    world.ok(&["ledger", "checkpoint"]);

    put_back(&world, &older);
    (world, copy)
}

#[test]
fn an_older_copy_of_the_directory_is_refused() {
    let (world, copy) = put_back_behind_its_copy();
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

/// A log that goes on differently after the second entry than the one whose checkpoint of three
/// entries is in the copy. It is signed `at` these sizes; those notes are returned.
fn another_history(names: &[&str], at: &[usize]) -> (World, PathBuf, String) {
    let (world, copy) = put_back_behind_its_copy();
    let away = world.root().join("away.txt");
    fs::rename(&copy, &away).unwrap();
    let mut notes = String::new();
    for (size, name) in (3..).zip(names) {
        world.ok(&add(name));
        if at.contains(&size) {
            notes.push_str(&world.ok(&["ledger", "checkpoint"]));
        }
    }
    fs::rename(&away, &copy).unwrap();
    (world, copy, notes)
}

/// Longer than the checkpoint elsewhere, and still not the log that it vouches for.
#[test]
fn another_history_of_the_same_log_is_noticed() {
    let (world, _, _) = another_history(&["eve", "mallory", "trudy"], &[]);
    let daemon = world.up();
    let found = world.checked();
    assert!(found.contains("rewritten or replaced"), "{found}");
    world.refused(&add("new"), "log_damaged", 4);
    assert_eq!(world.agents(), ["ada", "eve", "mallory", "trudy"]);
    drop(daemon);
}

/// The copy is the evidence: nothing is put behind the note that contradicts the log.
#[test]
fn a_copy_that_contradicts_the_log_is_left_as_it_is() {
    for at in [&[][..], &[4]] {
        let (world, copy, _) = another_history(&["eve", "mallory", "trudy"], at);
        let before = fs::read(&copy).unwrap();
        let said = world.refused(&["ledger", "checkpoint"], "log_damaged", 4);
        assert!(said.contains("rewritten or replaced"), "{said}");
        let daemon = world.up();
        let found = world.checked();
        assert!(found.contains("rewritten or replaced"), "{found}");
        drop(daemon);
        assert_eq!(fs::read(&copy).unwrap(), before);
    }
}

#[test]
fn a_stored_checkpoint_of_the_same_size_shows_another_history_at_once() {
    let (world, copy, _) = another_history(&["eve", "mallory"], &[3]);
    let before = fs::read(&copy).unwrap();
    for command in [&add("new")[..], &["ledger", "checkpoint"], &["ledger", "rebuild"]] {
        let said = world.refused(command, "log_damaged", 4);
        assert!(said.contains(copy.to_str().unwrap()), "{said}");
    }
    assert_eq!(world.agents(), ["ada", "eve", "mallory"]);
    assert_eq!(fs::read(&copy).unwrap(), before);
}

/// An earlier note is evidence too, whatever was put behind it.
#[test]
fn every_note_of_the_copy_is_compared() {
    let (world, copy, notes) = another_history(&["eve", "mallory", "trudy"], &[5]);
    let text = fs::read_to_string(&copy).unwrap();
    fs::write(&copy, format!("{text}{notes}")).unwrap();
    let expect = ["ledger", "verify", "--expect-checkpoint", copy.to_str().unwrap()];
    let report = world.json(&expect);
    assert_eq!(report["verdict"], "truncated", "{report}");
    let daemon = world.up();
    let found = world.checked();
    assert!(found.contains("rewritten or replaced"), "{found}");
    drop(daemon);

    let export = world.root().join("export");
    world.run(&["ledger", "export", "--dir", export.to_str().unwrap()]);
    let report = world.json(&[&expect[..], &["--export", export.to_str().unwrap()]].concat());
    assert_eq!(report["verdict"], "truncated", "{report}");

    fs::write(&copy, notes).unwrap();
    assert_eq!(world.json(&expect)["verdict"], "ok");
}

/// A restored log has no stored checkpoints, and goes on in the copy that vouches for it.
#[test]
fn a_restored_log_goes_on_in_its_copy() {
    let (world, copy) = with_copy();
    world.ok(&add("ada"));
    world.ok(&["ledger", "checkpoint"]);
    let export = world.root().join("export");
    world.ok(&["ledger", "export", "--dir", export.to_str().unwrap()]);
    fs::remove_dir_all(world.data()).unwrap();
    world.ok(&["ledger", "rebuild", "--from-export", export.to_str().unwrap()]);
    let note = world.ok(&["ledger", "checkpoint"]);
    assert!(fs::read_to_string(&copy).unwrap().ends_with(&note));
    let expect = ["ledger", "verify", "--expect-checkpoint", copy.to_str().unwrap()];
    let report = world.json(&expect);
    assert_eq!((&report["verdict"], &report["checkpoints"]), (&"ok".into(), &3.into()), "{report}");
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

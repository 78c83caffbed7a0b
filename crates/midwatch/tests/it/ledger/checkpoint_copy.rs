//! `ledger.checkpoint_copy`: a file elsewhere that proves how long the ledger was.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::world::{Daemon, World, agent_add, copy_dir};

const VARIABLE: &str = "MIDWATCH_LEDGER_CHECKPOINT_COPY";

fn with_copy() -> (World, PathBuf) {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let copy = world.root().join("elsewhere.txt");
    world.set(VARIABLE, copy.to_str().unwrap());
    (world, copy)
}

/// Replaces the data directory by an older copy.
fn replace_data(world: &World, older: &Path) {
    fs::remove_dir_all(world.data()).unwrap();
    copy_dir(older, world.data());
}

#[test]
fn every_checkpoint_is_appended_to_the_copy() {
    let (world, copy) = with_copy();
    let daemon = world.up();
    world.add_agent("ada");
    let first = world.ok(&["ledger", "checkpoint"]);
    world.add_agent("bob");
    let second = world.ok(&["ledger", "checkpoint"]);
    daemon.stop();
    let text = fs::read_to_string(&copy).unwrap();
    assert!(text.starts_with(&format!("{first}{second}")), "{text}");
    assert_eq!(text, fs::read_to_string(world.data().join("checkpoints.log")).unwrap());
    let expect = ["ledger", "verify", "--expect-checkpoint", copy.to_str().unwrap()];
    assert_eq!(world.json(&expect)["verdict"], "ok");
    drop(world.up());
}

/// A world whose data directory is older than the checkpoint in the copy.
fn rewound_world() -> (World, PathBuf) {
    let (world, copy) = with_copy();
    world.add_agent("ada");
    let older = world.root().join("older");
    copy_dir(world.data(), &older);
    world.add_agent("bob");
    world.ok(&["ledger", "checkpoint"]);

    replace_data(&world, &older);
    (world, copy)
}

#[test]
fn data_directory_older_than_the_copy_is_refused() {
    let (world, copy) = rewound_world();
    let before = world.stored_entries();
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("[log_rewound]"), "{stderr}");
    for command in
        [&["up"][..], &agent_add("eve"), &["ledger", "checkpoint"], &["ledger", "rebuild"]]
    {
        let message = world.refused(command, "log_rewound", 4);
        assert!(message.contains(copy.to_str().unwrap()), "{message}");
    }
    assert_eq!(world.stored_entries(), before);

    fs::rename(&copy, world.root().join("moved-away.txt")).unwrap();
    let daemon = world.up();
    world.add_agent("eve");
    drop(daemon);
    assert_eq!(world.agents(), ["ada", "eve"]);
}

/// A world whose ledger differs from the third entry on from the one whose checkpoint at three entries is in the
/// copy. Checkpoints are made `at` these sizes; returns their notes.
fn diverged_world(names: &[&str], at: &[usize]) -> (World, PathBuf, String) {
    let (world, copy) = rewound_world();
    let moved = world.root().join("moved.txt");
    fs::rename(&copy, &moved).unwrap();
    let mut notes = String::new();
    for (size, name) in (3..).zip(names) {
        world.add_agent(name);
        if at.contains(&size) {
            notes.push_str(&world.ok(&["ledger", "checkpoint"]));
        }
    }
    fs::rename(&moved, &copy).unwrap();
    (world, copy, notes)
}

/// The ledger is longer than the copied checkpoint, but not the one that it proves.
#[test]
fn diverged_ledger_is_found_in_the_background() {
    let (world, _, _) = diverged_world(&["eve", "mallory", "trudy"], &[]);
    let daemon = world.up();
    let found = world.checked();
    assert!(found.contains("rewritten or replaced"), "{found}");
    world.refused(&agent_add("new"), "log_damaged", 4);
    assert_eq!(world.agents(), ["ada", "eve", "mallory", "trudy"]);
    drop(daemon);
}

/// The copy is evidence: no note is appended after one that contradicts the ledger.
#[test]
fn copy_that_contradicts_the_ledger_is_not_appended_to() {
    for at in [&[][..], &[4]] {
        let (world, copy, _) = diverged_world(&["eve", "mallory", "trudy"], at);
        let before = fs::read(&copy).unwrap();
        let message = world.refused(&["ledger", "checkpoint"], "log_damaged", 4);
        assert!(message.contains("rewritten or replaced"), "{message}");
        let daemon = world.up();
        let found = world.checked();
        assert!(found.contains("rewritten or replaced"), "{found}");
        drop(daemon);
        assert_eq!(fs::read(&copy).unwrap(), before);
    }
}

#[test]
fn diverged_ledger_is_refused_at_once_by_a_stored_checkpoint_of_the_same_size() {
    let (world, copy, _) = diverged_world(&["eve", "mallory"], &[3]);
    let before = fs::read(&copy).unwrap();
    for command in [&agent_add("new")[..], &["ledger", "checkpoint"], &["ledger", "rebuild"]] {
        let message = world.refused(command, "log_damaged", 4);
        assert!(message.contains(copy.to_str().unwrap()), "{message}");
    }
    assert_eq!(world.agents(), ["ada", "eve", "mallory"]);
    assert_eq!(fs::read(&copy).unwrap(), before);
}

/// Earlier notes count too, whatever follows them.
#[test]
fn every_note_of_the_copy_is_compared_with_the_ledger() {
    let (world, copy, notes) = diverged_world(&["eve", "mallory", "trudy"], &[5]);
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

/// A restored ledger has no stored checkpoints and continues the copy.
#[test]
fn restored_ledger_continues_its_copy() {
    let (world, copy) = with_copy();
    world.add_agent("ada");
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
fn unwritable_copy_is_a_warning() {
    let mut world = World::new();
    let missing = world.root().join("no-such-folder/checkpoints.txt");
    world.set(VARIABLE, missing.to_str().unwrap());
    let daemon = world.up();
    world.ok(&["ledger", "checkpoint"]);
    let stderr = daemon.stop();
    assert!(stderr.contains(missing.to_str().unwrap()), "{stderr}");
    world.verified();
}

#[test]
fn unreadable_copy_is_named() {
    let (world, copy) = with_copy();
    fs::create_dir(&copy).unwrap();
    let outcome = world.run(&["--json", "status"]);
    assert_eq!(outcome.code, Some(3), "no installation yet: {outcome:?}");
    let outcome = world.run(&[&["--json"], &agent_add("ada")[..]].concat());
    let (_, message) = outcome.error();
    assert!(message.contains(copy.to_str().unwrap()), "{message}");
}

#[test]
fn truncated_note_in_the_copy_is_ignored() {
    let (world, copy) = with_copy();
    world.add_agent("ada");
    world.ok(&["ledger", "checkpoint"]);
    let text = fs::read_to_string(&copy).unwrap();
    fs::write(&copy, format!("{text}{}", &text[..text.len() / 2])).unwrap();
    let daemon = world.up();
    world.ok(&["ledger", "checkpoint"]);
    drop(daemon);
    let expect = ["ledger", "verify", "--expect-checkpoint", copy.to_str().unwrap()];
    assert_eq!(world.json(&expect)["verdict"], "ok");
}

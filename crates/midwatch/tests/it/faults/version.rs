//! Data of another version, or of another program.

use std::fs;

use super::add;
use crate::world::World;

fn check(sql: &str, code: &str, exit: i32, words: &str) {
    let world = World::new();
    world.ok(&add("ada"));
    world.database().execute_batch(sql).unwrap();
    let file = || fs::read(world.data().join("midwatch.db")).unwrap();
    let before = file();
    for command in
        [&["up"][..], &add("bob"), &["agent", "list"], &["status"], &["ledger", "verify"]]
    {
        let said = world.refused(command, code, exit);
        assert!(said.contains(words), "{command:?}: {said}");
    }
    assert_eq!(file(), before, "{sql}: the file was touched");
}

#[test]
fn data_of_a_newer_version_is_left_as_it_is() {
    let words = "newer program";
    check("INSERT INTO migration VALUES (3, 'later')", "data_newer", 4, words);
}

#[test]
fn data_of_another_program_is_left_as_it_is() {
    check("PRAGMA application_id = 7", "failed", 1, "another program");
    check("UPDATE migration SET sha256 = 'x'", "failed", 1, "step 1 of the schema");
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let world = World::new();
    world.ok(&add("ada"));
    let path = world.data().join("midwatch.db");
    fs::write(&path, "this is no database, and somebody may still want it".repeat(100)).unwrap();
    let before = fs::read(&path).unwrap();
    for command in [&["up"][..], &add("bob"), &["agent", "list"]] {
        let said = world.refused(command, "log_damaged", 4);
        assert!(said.contains("not a database"), "{said}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

//! Data of another version, or of another program.

use std::fs;

use crate::support::world::{World, agent_add};

fn check(sql: &str, code: &str, exit: i32, reason: &str) {
    let world = World::new();
    world.add_agent("ada");
    world.database().execute_batch(sql).unwrap();
    let file = || fs::read(world.data().join("midwatch.db")).unwrap();
    let before = file();
    for command in
        [&["up"][..], &agent_add("bob"), &["agent", "list"], &["status"], &["ledger", "verify"]]
    {
        let message = world.refused(command, code, exit);
        assert!(message.contains(reason), "{command:?}: {message}");
    }
    assert_eq!(file(), before, "{sql}: the file was changed");
}

#[test]
fn data_of_a_newer_version_is_not_changed() {
    let sql = "INSERT INTO migration VALUES (3, 'later')";
    check(sql, "data_newer", 4, "newer version");
}

#[test]
fn data_of_another_program_is_not_changed() {
    check("PRAGMA application_id = 7", "failed", 1, "another program");
    check("UPDATE migration SET sha256 = 'x'", "failed", 1, "migration 1 of the database differs");
}

#[test]
fn file_that_is_not_a_database_is_not_changed() {
    let world = World::new();
    world.add_agent("ada");
    let path = world.data().join("midwatch.db");
    fs::write(&path, "this is not a database, and may still be needed".repeat(100)).unwrap();
    let before = fs::read(&path).unwrap();
    for command in [&["up"][..], &agent_add("bob"), &["agent", "list"]] {
        let message = world.refused(command, "log_damaged", 4);
        assert!(message.contains("not a database"), "{message}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

//! Derived tables that were altered: noticed, and made anew from the log.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use super::{LAST, alter, altered, history};
use crate::world::World;

/// Alterations of the derived tables, and in how many rows they differ then.
const ALTERATIONS: [(&str, u64); 11] = [
    ("UPDATE item SET version = 9 WHERE id = 'agent-11'", 1),
    ("UPDATE item SET body = CAST(replace(CAST(body AS TEXT), '\"tier\":0', '\"tier\":1') AS BLOB)
      WHERE id = 'agent-11'", 1),
    ("UPDATE item SET body = x'00' WHERE id = 'agent-11'", 1),
    ("DELETE FROM item WHERE id = 'agent-11'", 1),
    ("DELETE FROM item WHERE noun = 'agent'", 27),
    ("INSERT INTO item (noun, id, version, body)
      SELECT noun, 'nobody', version, body FROM item WHERE id = 'agent-11'", 1),
    ("UPDATE item SET due_us = 0 WHERE id = 'agent-11'", 1),
    ("UPDATE item SET under = '' WHERE id = 'agent-11'", 1),
    ("UPDATE counter SET value = 3", 1),
    ("DELETE FROM counter", 1),
    ("INSERT INTO counter VALUES ('ghosts', 1)", 1),
];

/// What the program says of all agents, and how many it counts.
fn agents(world: &World) -> (serde_json::Value, serde_json::Value) {
    let agents = world.json(&["agent", "list", "--limit", "1000"]);
    (agents["agents"].clone(), world.json(&["status"])["agents"].clone())
}

fn rebuilt(world: &World) -> Vec<serde_json::Value> {
    let tail = world.json(&["ledger", "tail", "--limit", "1000"]);
    let events = tail["events"].as_array().unwrap();
    let rebuilt = events.iter().filter(|event| event["kind"] == "ledger.rebuilt");
    rebuilt.map(|event| event["body"].clone()).collect()
}

#[test]
fn a_daemon_makes_altered_tables_anew_and_says_so() {
    let history = history();
    let expected = agents(&history);
    for (sql, differences) in ALTERATIONS {
        let world = altered(&history, sql);
        let daemon = world.up();
        let found = world.checked();
        assert!(
            found.contains(&format!("differed from the log in {differences}")),
            "{sql}: {found}"
        );
        assert_eq!(agents(&world), expected, "{sql}");
        let told = rebuilt(&world);
        assert_eq!(told.len(), 1, "{sql}: {told:?}");
        assert_eq!(told[0]["differences"], differences, "{sql}: {told:?}");
        world.ok(&["agent", "add", "new", "--backend", "builtin"]);
        let (code, said) = daemon.stop();
        assert_eq!(code, Some(0), "{sql}: {said}");
        world.verified();
        assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0, "{sql}");
    }
}

#[test]
fn tables_that_are_right_are_left_alone() {
    let world = history();
    let daemon = world.up();
    assert_eq!(world.checked(), format!("sound: {} entries", LAST + 1));
    drop(daemon);
    assert_eq!(rebuilt(&world), Vec::<serde_json::Value>::new());
}

/// The row that says who signs the log is needed before anything else.
#[test]
fn tables_without_an_identity_are_made_anew_at_once() {
    let history = history();
    let expected = agents(&history);
    for sql in ["DELETE FROM item", "UPDATE item SET body = x'00' WHERE noun = 'watch'"] {
        let world = altered(&history, sql);
        assert_eq!(agents(&world), expected, "{sql}");
        assert_eq!(rebuilt(&world).len(), 1, "{sql}");
        world.verified();
    }
}

#[test]
fn a_rebuild_by_hand_mends_with_and_without_a_daemon() {
    let history = history();
    let expected = agents(&history);
    for (sql, differences) in ALTERATIONS {
        let world = altered(&history, sql);
        let answer = world.json(&["ledger", "rebuild"])["rebuilt"].clone();
        assert_eq!(answer["differences"], differences, "{sql}: {answer}");
        assert_eq!(answer["entries"], LAST, "{sql}: {answer}");
        assert_eq!(agents(&world), expected, "{sql}");
        assert_eq!(rebuilt(&world)[0]["differences"], differences, "{sql}");
    }

    let world = history.copy();
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"));
    let sql = "DELETE FROM item WHERE id = 'agent-11'; UPDATE counter SET value = 3";
    world.database().execute_batch(sql).unwrap();
    assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 2);
    assert_eq!(agents(&world), expected);
    drop(daemon);
    world.verified();
}

/// Overwrites the page that a table begins with.
fn spoil(world: &World, table: &str) {
    spoil_page(world, &format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'"));
}

fn spoil_page(world: &World, number: &str) {
    let database = world.database();
    let page: u64 = database.query_row(number, (), |row| row.get(0)).unwrap();
    let size: u64 = database.query_row("PRAGMA page_size", (), |row| row.get(0)).unwrap();
    drop(database);
    assert!(!world.data().join("midwatch.db-wal").exists(), "all is in the file");
    let file = OpenOptions::new().write(true).open(world.data().join("midwatch.db")).unwrap();
    file.write_all_at(&[0xa5; 200], (page - 1) * size).unwrap();
}

/// Not a wrong row but a page that SQLite cannot make sense of.
#[test]
fn a_table_that_cannot_be_read_is_made_anew() {
    let history = history();
    let expected = agents(&history);
    for table in ["item", "counter"] {
        let world = history.copy();
        spoil(&world, table);
        let daemon = world.up();
        let found = world.checked();
        assert!(found.contains("anew") || found.starts_with("sound"), "{table}: {found}");
        assert_eq!(agents(&world), expected, "{table}");
        assert_eq!(rebuilt(&world).len(), 1, "{table}");
        world.ok(&["agent", "add", "new", "--backend", "builtin"]);
        drop(daemon);
        world.verified();
        assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0, "{table}");

        let world = history.copy();
        spoil(&world, table);
        world.ok(&["ledger", "rebuild"]);
        assert_eq!(agents(&world), expected, "{table}");
    }
}

/// A page that is not needed at the start: whoever needs it is told that it is not the log.
#[test]
fn a_part_of_a_table_that_cannot_be_read_is_told_apart_from_the_log() {
    let world = history();
    let expected = agents(&world);
    let leaf = "SELECT pageno FROM dbstat WHERE name = 'item' AND pagetype = 'leaf' ORDER BY path";
    spoil_page(&world, leaf);
    let said = world.refused(&["agent", "list"], "tables_damaged", 4);
    assert!(said.contains("midwatch ledger rebuild"), "{said}");
    world.ok(&["ledger", "rebuild"]);
    assert_eq!(agents(&world), expected);
    world.verified();
}

/// Where a start begins to read is not needed, only useful.
#[test]
fn a_place_to_begin_that_cannot_be_read_is_left_aside() {
    let world = history();
    spoil(&world, "resume");
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"), "{}", world.checked());
    drop(daemon);
    world.verified();
}

#[test]
fn a_rebuild_of_a_log_that_lost_its_end_says_so() {
    let world = history();
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"));
    alter(&world, "DELETE FROM entry WHERE seq = (SELECT max(seq) FROM entry)");
    let said = world.refused(&["ledger", "rebuild"], "log_damaged", 4);
    assert!(said.contains("is missing"), "{said}");
    drop(daemon);
}

//! Derived tables that were altered are found and rebuilt from the ledger.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use super::{LAST, altered, history};
use crate::support::world::World;

/// Alterations of the derived tables, and the number of rows that differ.
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

/// All agents as the program lists them, and their number in `status`.
fn agents(world: &World) -> (serde_json::Value, serde_json::Value) {
    let agents = world.json(&["agent", "list", "--limit", "1000"]);
    (agents["agents"].clone(), world.json(&["status"])["agents"].clone())
}

fn rebuilt(world: &World) -> Vec<serde_json::Value> {
    world.events_of("ledger.rebuilt").iter().map(|event| event["body"].clone()).collect()
}

#[test]
fn daemon_rebuilds_altered_tables_and_records_it() {
    let history = history();
    let expected = agents(&history);
    for (sql, differences) in ALTERATIONS {
        let world = altered(&history, sql);
        let daemon = world.up();
        let found = world.checked();
        assert!(
            found.contains(&format!("differed from the ledger in {differences}")),
            "{sql}: {found}"
        );
        assert_eq!(agents(&world), expected, "{sql}");
        let rebuilt = rebuilt(&world);
        assert_eq!(rebuilt.len(), 1, "{sql}: {rebuilt:?}");
        assert_eq!(rebuilt[0]["differences"], differences, "{sql}: {rebuilt:?}");
        world.add_agent("new");
        daemon.stop();
        world.verified();
        assert_eq!(world.rebuild_differences(), 0, "{sql}");
    }
}

#[test]
fn correct_tables_are_not_rebuilt() {
    let world = history();
    let daemon = world.up();
    assert_eq!(world.checked(), format!("sound: {} entries", LAST + 1));
    drop(daemon);
    assert_eq!(rebuilt(&world), Vec::<serde_json::Value>::new());
}

/// The row with the identity and key of the installation is needed before anything else.
#[test]
fn tables_without_an_identity_are_rebuilt_at_once() {
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
fn ledger_rebuild_repairs_tables_with_and_without_a_daemon() {
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
    assert_eq!(world.rebuild_differences(), 2);
    assert_eq!(agents(&world), expected);
    drop(daemon);
    world.verified();
}

/// Overwrites the first page of a table.
fn corrupt_table(world: &World, table: &str) {
    corrupt_page(world, &format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'"));
}

fn corrupt_page(world: &World, number: &str) {
    let database = world.database();
    let page: u64 = database.query_row(number, (), |row| row.get(0)).unwrap();
    let size: u64 = database.query_row("PRAGMA page_size", (), |row| row.get(0)).unwrap();
    drop(database);
    assert!(!world.data().join("midwatch.db-wal").exists(), "the write-ahead log is not empty");
    let file = OpenOptions::new().write(true).open(world.data().join("midwatch.db")).unwrap();
    file.write_all_at(&[0xa5; 200], (page - 1) * size).unwrap();
}

/// A page that SQLite cannot read, not a wrong row.
#[test]
fn unreadable_table_is_rebuilt() {
    let history = history();
    let expected = agents(&history);
    for table in ["item", "counter"] {
        let world = history.copy();
        corrupt_table(&world, table);
        let daemon = world.up();
        let found = world.checked();
        assert!(found.contains("rebuilt") || found.starts_with("sound"), "{table}: {found}");
        assert_eq!(agents(&world), expected, "{table}");
        assert_eq!(rebuilt(&world).len(), 1, "{table}");
        world.add_agent("new");
        drop(daemon);
        world.verified();
        assert_eq!(world.rebuild_differences(), 0, "{table}");

        let world = history.copy();
        corrupt_table(&world, table);
        world.ok(&["ledger", "rebuild"]);
        assert_eq!(agents(&world), expected, "{table}");
    }
}

/// The damaged page is not read at the start; a command that reads it reports damaged tables, not a damaged ledger.
#[test]
fn unreadable_page_of_a_table_is_not_reported_as_a_damaged_ledger() {
    let world = history();
    let expected = agents(&world);
    let leaf = "SELECT pageno FROM dbstat WHERE name = 'item' AND pagetype = 'leaf' ORDER BY path";
    corrupt_page(&world, leaf);
    let message = world.refused(&["agent", "list"], "tables_damaged", 4);
    assert!(message.contains("midwatch ledger rebuild"), "{message}");
    world.ok(&["ledger", "rebuild"]);
    assert_eq!(agents(&world), expected);
    world.verified();
}

/// The resume point only saves time.
#[test]
fn unreadable_resume_point_is_ignored() {
    let world = history();
    corrupt_table(&world, "resume");
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"), "{}", world.checked());
    drop(daemon);
    world.verified();
}

#[test]
fn rebuild_of_a_truncated_ledger_is_refused() {
    let world = history();
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"));
    world.alter_database("DELETE FROM entry WHERE seq = (SELECT max(seq) FROM entry)");
    let message = world.refused(&["ledger", "rebuild"], "log_damaged", 4);
    assert!(message.contains("is missing"), "{message}");
    drop(daemon);
}

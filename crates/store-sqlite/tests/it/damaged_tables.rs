//! Replacing the derived tables repairs a damaged table.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use rusqlite::Connection;
use store::{Commit, DerivedTables, Item, Outcome, Store};
use store_sqlite::Sqlite;

/// The definitions of the table and its indexes.
fn schema(connection: &Connection) -> Vec<String> {
    let sql =
        "SELECT sql FROM sqlite_schema WHERE tbl_name = 'item' AND sql IS NOT NULL ORDER BY 1";
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn replacing_a_damaged_table_restores_its_indexes() {
    for damaged in ["item", "item_by_due", "item_by_under"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("midwatch.db");
        Sqlite::open(&path).unwrap().close().unwrap();
        let connection = Connection::open(&path).unwrap();
        let before = schema(&connection);
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        let page: u64 = connection.query_row(sql, [damaged], |row| row.get(0)).unwrap();
        let size: u64 = connection.query_row("PRAGMA page_size", (), |row| row.get(0)).unwrap();
        drop(connection);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0xa5; 200], (page - 1) * size).unwrap();

        let store = Sqlite::open(&path).unwrap();
        let body = Some(b"{}".as_slice().into());
        let (due_us, index_key) = (Some(1), Some("group".into()));
        let item = Item { noun: "n".into(), id: "a".into(), version: 1, body, due_us, index_key };
        let derived = DerivedTables { items: vec![item], ..DerivedTables::default() };
        let replace = Commit { replace_derived: Some(derived.clone()), ..Commit::default() };
        let outcome = store.commit(replace).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)), "{damaged}: {outcome:?}");
        assert_eq!(store.load_derived().await.unwrap(), derived, "{damaged}");
        store.close().unwrap();
        let connection = Connection::open(&path).unwrap();
        assert_eq!(schema(&connection), before, "{damaged}");
        let check = "PRAGMA integrity_check(item)";
        let found: String = connection.query_row(check, (), |row| row.get(0)).unwrap();
        assert_eq!(found, "ok", "{damaged}");
    }
}

//! Reading the generic table.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow};
use store::{Error, Item, Row};

use crate::error::of_tables;

pub(crate) fn load(connection: &Connection, noun: &str, id: &str) -> Result<Row, Error> {
    let sql = "SELECT version, body FROM item WHERE noun = ?1 AND id = ?2";
    let row = |row: &SqlRow<'_>| Ok(Row { version: row.get(0)?, body: row.get(1)? });
    let mut statement = connection.prepare_cached(sql).map_err(of_tables)?;
    let found = statement.query_row((noun, id), row).optional().map_err(of_tables)?;
    Ok(found.unwrap_or_default())
}

pub(crate) fn list(
    connection: &Connection,
    noun: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let sql = "SELECT noun, id, version, body, due_us, under FROM item
               WHERE noun = ?1 AND ?2 < id AND body IS NOT NULL ORDER BY id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(of_tables)?;
    let items = statement.query_map((noun, after, limit), item).map_err(of_tables)?;
    items.collect::<Result<_, _>>().map_err(of_tables)
}

/// Every row, by noun and id.
pub(crate) fn all(connection: &Connection) -> Result<Vec<Item>, Error> {
    let sql = "SELECT noun, id, version, body, due_us, under FROM item ORDER BY noun, id";
    let mut statement = connection.prepare(sql).map_err(of_tables)?;
    let items = statement.query_map((), item).map_err(of_tables)?;
    items.collect::<Result<_, _>>().map_err(of_tables)
}

fn item(row: &SqlRow<'_>) -> Result<Item, rusqlite::Error> {
    Ok(Item {
        noun: row.get(0)?,
        id: row.get(1)?,
        version: row.get(2)?,
        body: row.get(3)?,
        due_us: row.get(4)?,
        under: row.get(5)?,
    })
}

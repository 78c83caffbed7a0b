//! Reading the generic table.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow};
use store::{Due, Error, Item, Newest, Row};

use crate::error::{classify, classify_tables};

const DUE: &str = "SELECT noun, id, version, body, due_us, under FROM item
                   WHERE noun = ?1 AND (?2, ?3) < (due_us, id) AND due_us <= ?4
                   ORDER BY due_us, id LIMIT ?5";

pub(crate) fn load(connection: &Connection, noun: &str, id: &str) -> Result<Row, Error> {
    let sql = "SELECT version, body FROM item WHERE noun = ?1 AND id = ?2";
    let row = |row: &SqlRow<'_>| Ok(Row { version: row.get(0)?, body: row.get(1)? });
    let mut statement = connection.prepare_cached(sql).map_err(classify_tables)?;
    let found = statement.query_row((noun, id), row).optional().map_err(classify_tables)?;
    Ok(found.unwrap_or_default())
}

pub(crate) fn load_all(
    connection: &Connection,
    noun: &str,
    ids: &[&str],
) -> Result<Vec<Row>, Error> {
    let snapshot = connection.unchecked_transaction().map_err(classify)?;
    ids.iter().map(|id| load(&snapshot, noun, id)).collect()
}

pub(crate) fn list(
    connection: &Connection,
    noun: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let sql = "SELECT noun, id, version, body, due_us, under FROM item
               WHERE noun = ?1 AND ?2 < id AND body IS NOT NULL ORDER BY id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(classify_tables)?;
    let items = statement.query_map((noun, after, limit), item).map_err(classify_tables)?;
    items.collect::<Result<_, _>>().map_err(classify_tables)
}

pub(crate) fn list_newest(connection: &Connection, rows: Newest<'_>) -> Result<Vec<Item>, Error> {
    let Newest { noun, index_key, before, limit } = rows;
    let sql = newest_sql(index_key, before);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql).map_err(classify_tables)?;
    let items =
        statement.query_map((noun, index_key, before, limit), item).map_err(classify_tables)?;
    items.collect::<Result<_, _>>().map_err(classify_tables)
}

/// Names the index, because SQLite would otherwise scan all rows of the noun.
fn newest_sql(index_key: Option<&str>, before: &str) -> String {
    let (index, has_key) = match index_key {
        Some(_) => ("INDEXED BY item_by_under", "under = ?2"),
        None => ("", "?2 IS NULL"),
    };
    let is_below = if before.is_empty() { "?3 = ''" } else { "id < ?3" };
    format!(
        "SELECT noun, id, version, body, due_us, under FROM item {index}
         WHERE noun = ?1 AND {has_key} AND {is_below} AND body IS NOT NULL
         ORDER BY id DESC LIMIT ?4"
    )
}

pub(crate) fn list_due(connection: &Connection, rows: Due<'_>) -> Result<Vec<Item>, Error> {
    let Due { noun, after: (after_us, after), until_us, limit } = rows;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(DUE).map_err(classify_tables)?;
    let values = (noun, after_us, after, until_us, limit);
    let items = statement.query_map(values, item).map_err(classify_tables)?;
    items.collect::<Result<_, _>>().map_err(classify_tables)
}

/// Every row, sorted by noun and id.
pub(crate) fn load_everything(connection: &Connection) -> Result<Vec<Item>, Error> {
    let sql = "SELECT noun, id, version, body, due_us, under FROM item ORDER BY noun, id";
    let mut statement = connection.prepare(sql).map_err(classify_tables)?;
    let items = statement.query_map((), item).map_err(classify_tables)?;
    items.collect::<Result<_, _>>().map_err(classify_tables)
}

fn item(row: &SqlRow<'_>) -> Result<Item, rusqlite::Error> {
    Ok(Item {
        noun: row.get(0)?,
        id: row.get(1)?,
        version: row.get(2)?,
        body: row.get(3)?,
        due_us: row.get(4)?,
        index_key: row.get(5)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::migrate;

    /// The plan does not depend on statistics or the number of rows.
    fn check(sql: &str, plan: &str) {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.raw_query().mapped(|row| row.get(3));
        assert_eq!(steps.collect::<Result<Vec<String>, _>>().unwrap(), [plan], "{sql}");
    }

    #[test]
    fn queries_use_an_index_and_never_sort() {
        check(
            DUE,
            "SEARCH item USING INDEX item_by_due (noun=? AND (due_us,id)>(?,?) AND due_us<?)",
        );
        for (index_key, before, plan) in [
            (None, "", "SEARCH item USING PRIMARY KEY (noun=?)"),
            (None, "m", "SEARCH item USING PRIMARY KEY (noun=? AND id<?)"),
            (Some("k"), "", "SEARCH item USING INDEX item_by_under (noun=? AND under=?)"),
            (Some("k"), "m", "SEARCH item USING INDEX item_by_under (noun=? AND under=? AND id<?)"),
        ] {
            check(&newest_sql(index_key, before), plan);
        }
    }
}

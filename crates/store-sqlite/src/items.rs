//! Reading the generic table.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow};
use store::{Error, Item, Row};

use crate::error::{meaning, of_tables};

const DUE: &str = "SELECT noun, id, version, body, due_us, under FROM item
                   WHERE noun = ?1 AND (?2, ?3) < (due_us, id) AND due_us <= ?4
                   ORDER BY due_us, id LIMIT ?5";

pub(crate) fn load(connection: &Connection, noun: &str, id: &str) -> Result<Row, Error> {
    let sql = "SELECT version, body FROM item WHERE noun = ?1 AND id = ?2";
    let row = |row: &SqlRow<'_>| Ok(Row { version: row.get(0)?, body: row.get(1)? });
    let mut statement = connection.prepare_cached(sql).map_err(of_tables)?;
    let found = statement.query_row((noun, id), row).optional().map_err(of_tables)?;
    Ok(found.unwrap_or_default())
}

pub(crate) fn load_all(
    connection: &Connection,
    noun: &str,
    ids: &[&str],
) -> Result<Vec<Row>, Error> {
    let moment = connection.unchecked_transaction().map_err(meaning)?;
    ids.iter().map(|id| load(&moment, noun, id)).collect()
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

pub(crate) fn newest(
    connection: &Connection,
    noun: &str,
    under: Option<&str>,
    before: &str,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let sql = newest_sql(under, before);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql).map_err(of_tables)?;
    let items = statement.query_map((noun, under, before, limit), item).map_err(of_tables)?;
    items.collect::<Result<_, _>>().map_err(of_tables)
}

/// The index is named, because SQLite would rather go through all rows of the noun.
fn newest_sql(under: Option<&str>, before: &str) -> String {
    let (index, is_under) = match under {
        Some(_) => ("INDEXED BY item_by_under", "under = ?2"),
        None => ("", "?2 IS NULL"),
    };
    let is_below = if before.is_empty() { "?3 = ''" } else { "id < ?3" };
    format!(
        "SELECT noun, id, version, body, due_us, under FROM item {index}
         WHERE noun = ?1 AND {is_under} AND {is_below} AND body IS NOT NULL
         ORDER BY id DESC LIMIT ?4"
    )
}

pub(crate) fn due(
    connection: &Connection,
    noun: &str,
    (after_us, after): (i64, &str),
    until_us: i64,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(DUE).map_err(of_tables)?;
    let values = (noun, after_us, after, until_us, limit);
    let items = statement.query_map(values, item).map_err(of_tables)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::migrate;

    /// No statistics, many rows or few: the plan is the same.
    fn check(sql: &str, plan: &str) {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.raw_query().mapped(|row| row.get(3));
        assert_eq!(steps.collect::<Result<Vec<String>, _>>().unwrap(), [plan], "{sql}");
    }

    #[test]
    fn rows_are_found_by_an_index_and_never_sorted() {
        check(
            DUE,
            "SEARCH item USING INDEX item_by_due (noun=? AND (due_us,id)>(?,?) AND due_us<?)",
        );
        for (under, before, plan) in [
            (None, "", "SEARCH item USING PRIMARY KEY (noun=?)"),
            (None, "m", "SEARCH item USING PRIMARY KEY (noun=? AND id<?)"),
            (Some("k"), "", "SEARCH item USING INDEX item_by_under (noun=? AND under=?)"),
            (Some("k"), "m", "SEARCH item USING INDEX item_by_under (noun=? AND under=? AND id<?)"),
        ] {
            check(&newest_sql(under, before), plan);
        }
    }
}

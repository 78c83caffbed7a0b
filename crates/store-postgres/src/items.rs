//! Reading the generic table.

use std::sync::Arc;

use deadpool_postgres::{Pool, Transaction};
use store::{Error, Item, Row};
use tokio_postgres::Row as SqlRow;

use crate::error::meaning;
use crate::reads::{row, rows};
use crate::session::unsigned;

pub(crate) async fn load(pool: &Pool, noun: &str, id: &str) -> Result<Row, Error> {
    let sql = "SELECT version, body FROM item WHERE noun = $1 AND id = $2";
    let found = row(pool, sql, &[&noun, &id]).await?;
    Ok(found.map_or_else(Row::default, |row| Row {
        version: unsigned(row.get(0)),
        body: body(&row, 1),
    }))
}

pub(crate) async fn list(
    pool: &Pool,
    noun: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let sql = "SELECT noun, id, version, body, due_us, under FROM item
               WHERE noun = $1 AND $2 < id AND body IS NOT NULL ORDER BY id LIMIT $3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(rows(pool, sql, &[&noun, &after, &limit]).await?.iter().map(item).collect())
}

/// Every row, by noun and id.
pub(crate) async fn all(moment: &Transaction<'_>) -> Result<Vec<Item>, Error> {
    let sql = "SELECT noun, id, version, body, due_us, under FROM item ORDER BY noun, id";
    let rows = moment.query(sql, &[]).await.map_err(meaning)?;
    Ok(rows.iter().map(item).collect())
}

fn item(row: &SqlRow) -> Item {
    Item {
        noun: row.get(0),
        id: row.get(1),
        version: unsigned(row.get(2)),
        body: body(row, 3),
        due_us: row.get(4),
        under: row.get(5),
    }
}

fn body(row: &SqlRow, column: usize) -> Option<Arc<[u8]>> {
    row.get::<_, Option<&[u8]>>(column).map(Arc::from)
}

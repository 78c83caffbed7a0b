//! Reading the generic table.

use std::sync::Arc;

use deadpool_postgres::Transaction;
use store::{Due, Error, Item, Newest, Row};
use tokio_postgres::Row as SqlRow;

use crate::error::classify;
use crate::pool::Pool;
use crate::reads::{row, rows};
use crate::session::unsigned;

const DUE: &str = "SELECT noun, id, version, body, due_us, under FROM item
                   WHERE noun = $1 AND ($2, $3) < (due_us, id) AND due_us <= $4
                   ORDER BY due_us, id LIMIT $5";

pub(crate) async fn load(pool: &Pool, noun: &str, id: &str) -> Result<Row, Error> {
    let sql = "SELECT version, body FROM item WHERE noun = $1 AND id = $2";
    let found = row(pool, sql, &[&noun, &id]).await?;
    Ok(found.as_ref().map(row_in).unwrap_or_default())
}

pub(crate) async fn load_all(pool: &Pool, noun: &str, ids: &[&str]) -> Result<Vec<Row>, Error> {
    let sql = "SELECT version, body
               FROM unnest($2::text[]) WITH ORDINALITY AS asked (id, place)
               LEFT JOIN item ON item.noun = $1 AND item.id = asked.id ORDER BY place";
    Ok(rows(pool, sql, &[&noun, &ids]).await?.iter().map(row_in).collect())
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

pub(crate) async fn list_newest(pool: &Pool, listed: Newest<'_>) -> Result<Vec<Item>, Error> {
    let Newest { noun, index_key, before, limit } = listed;
    let sql = newest_sql(index_key, before);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(rows(pool, &sql, &[&noun, &index_key, &before, &limit]).await?.iter().map(item).collect())
}

fn newest_sql(index_key: Option<&str>, before: &str) -> String {
    let has_key = if index_key.is_some() { "under = $2" } else { "$2::text IS NULL" };
    let is_below = if before.is_empty() { "$3::text = ''" } else { "id < $3" };
    format!(
        "SELECT noun, id, version, body, due_us, under FROM item
         WHERE noun = $1 AND {has_key} AND {is_below} AND body IS NOT NULL
         ORDER BY id DESC LIMIT $4"
    )
}

pub(crate) async fn list_due(pool: &Pool, listed: Due<'_>) -> Result<Vec<Item>, Error> {
    let Due { noun, after: (after_us, after), until_us, limit } = listed;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = rows(pool, DUE, &[&noun, &after_us, &after, &until_us, &limit]).await?;
    Ok(found.iter().map(item).collect())
}

/// Every row, sorted by noun and id.
pub(crate) async fn load_everything(snapshot: &Transaction<'_>) -> Result<Vec<Item>, Error> {
    let sql = "SELECT noun, id, version, body, due_us, under FROM item ORDER BY noun, id";
    let rows = snapshot.query(sql, &[]).await.map_err(classify)?;
    Ok(rows.iter().map(item).collect())
}

/// Version and body; a row that does not exist has NULL for both.
fn row_in(row: &SqlRow) -> Row {
    Row { version: row.get::<_, Option<i64>>(0).map_or(0, unsigned), body: body(row, 1) }
}

fn item(row: &SqlRow) -> Item {
    Item {
        noun: row.get(0),
        id: row.get(1),
        version: unsigned(row.get(2)),
        body: body(row, 3),
        due_us: row.get(4),
        index_key: row.get(5),
    }
}

fn body(row: &SqlRow, column: usize) -> Option<Arc<[u8]>> {
    row.get::<_, Option<&[u8]>>(column).map(Arc::from)
}

#[cfg(test)]
mod tests {
    use test_postgres::PostgresServer;

    use super::*;
    use crate::{Postgres, Target};

    /// A noun with many rows, of which one in a hundred has keys.
    const ROWS: &str = "INSERT INTO item
        SELECT 'n', n, 1, '', CASE n % 100 WHEN 0 THEN n END, CASE n % 100 WHEN 0 THEN 'k' END
        FROM generate_series(1, 50000) AS n; ANALYZE item";

    #[tokio::test]
    async fn queries_use_an_index_and_never_sort() {
        let postgres = PostgresServer::start().unwrap();
        let url = postgres.create_database().unwrap();
        Postgres::open(&Target::new(&url, None, None).unwrap()).await.unwrap();
        postgres.query(&url, ROWS).unwrap();
        let check = |sql: &str, values: &str, index: &str| {
            // The generic plan, which PostgreSQL uses for frequent queries.
            let explain = format!(
                "SET plan_cache_mode = force_generic_plan; PREPARE asked AS {sql};
                 EXPLAIN (COSTS off) EXECUTE asked ({values})"
            );
            let plan = postgres.query(&url, &explain).unwrap();
            assert!(plan.contains(&format!("using {index} on item")), "{sql}: {plan}");
            assert!(!plan.contains("Sort"), "{sql}: {plan}");
        };
        check(DUE, "'n', 100, 'm', 9000, 10", "item_by_due");
        for (index_key, before, values, index) in [
            (None, "", "'n', NULL, '', 10", "item_pkey"),
            (None, "m", "'n', NULL, 'm', 10", "item_pkey"),
            (Some("k"), "", "'n', 'k', '', 10", "item_by_under"),
            (Some("k"), "m", "'n', 'k', 'm', 10", "item_by_under"),
        ] {
            check(&newest_sql(index_key, before), values, index);
        }
    }
}

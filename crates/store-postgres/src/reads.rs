//! Queries on pooled connections.

use ledger::{Chain, EntryRef, PrivateRef};
use store::{Checkpoint, DerivedTables, Error, PAGE_ENTRIES_MAX, Page, StoredResponse};
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row as SqlRow};

use crate::backoff::Backoff;
use crate::error::{classify, classify_pool};
use crate::items;
use crate::pool::{Pool, PooledClient};
use crate::session::{decode_chain, hash, signed, unsigned};

type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

async fn client(pool: &Pool) -> Result<PooledClient, Error> {
    pool.get().await.map_err(classify_pool)
}

/// Runs a query, and retries it on another connection while the database is unreachable.
pub(crate) async fn rows(pool: &Pool, sql: &str, values: Values<'_>) -> Result<Vec<SqlRow>, Error> {
    let mut backoff = Backoff::new();
    loop {
        match rows_once(pool, sql, values).await {
            Err(error @ Error::Unreachable(_)) => backoff.wait(error).await?,
            done => return done,
        }
    }
}

async fn rows_once(pool: &Pool, sql: &str, values: Values<'_>) -> Result<Vec<SqlRow>, Error> {
    let client = client(pool).await?;
    let statement = client.prepare_cached(sql).await.map_err(classify)?;
    client.query(&statement, values).await.map_err(classify)
}

pub(crate) async fn row(
    pool: &Pool,
    sql: &str,
    values: Values<'_>,
) -> Result<Option<SqlRow>, Error> {
    Ok(rows(pool, sql, values).await?.into_iter().next())
}

pub(crate) async fn counter(pool: &Pool, name: &str) -> Result<i64, Error> {
    let found = row(pool, "SELECT value FROM counter WHERE name = $1", &[&name]).await?;
    Ok(found.map_or(0, |row| row.get(0)))
}

pub(crate) async fn response(pool: &Pool, key: &str) -> Result<Option<StoredResponse>, Error> {
    let sql = "SELECT key, request_hash, body, at_us FROM answer WHERE key = $1";
    row(pool, sql, &[&key]).await?.as_ref().map(response_in).transpose()
}

pub(crate) async fn responses(
    pool: &Pool,
    after: &str,
    limit: usize,
) -> Result<Vec<StoredResponse>, Error> {
    let sql =
        "SELECT key, request_hash, body, at_us FROM answer WHERE $1 < key ORDER BY key LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    rows(pool, sql, &[&after, &limit]).await?.iter().map(response_in).collect()
}

fn response_in(row: &SqlRow) -> Result<StoredResponse, Error> {
    let request_hash = hash(row.get(1))?;
    Ok(StoredResponse { key: row.get(0), request_hash, body: row.get(2), at_us: row.get(3) })
}

pub(crate) async fn entries(pool: &Pool, after: u64, limit: usize) -> Result<Page, Error> {
    let sql = "SELECT seq, ts_us, kind, entry.version, actor, role, cause, noun, noun_id, facts,
                      entry.hash, salt, body, entry_private.hash
               FROM entry LEFT JOIN entry_private USING (seq)
               WHERE $1 < seq ORDER BY seq LIMIT $2";
    let limit = i64::try_from(limit.min(PAGE_ENTRIES_MAX)).unwrap_or(i64::MAX);
    let mut page = Page::default();
    for row in rows(pool, sql, &[&signed(after), &limit]).await? {
        match entry_ref(&row) {
            Ok(entry) => page.push(&entry),
            // The entries before the damaged one are returned; the next page starts with it.
            Err(_) if !page.is_empty() => break,
            Err(error) => return Err(error),
        }
        if page.is_full() {
            break;
        }
    }
    Ok(page)
}

fn entry_ref(row: &SqlRow) -> Result<EntryRef<'_>, Error> {
    let out_of_range = |_| Error::Damaged("the version of an entry is out of range".into());
    Ok(EntryRef {
        seq: unsigned(row.get(0)),
        ts_us: row.get(1),
        kind: row.get(2),
        version: u16::try_from(row.get::<_, i32>(3)).map_err(out_of_range)?,
        actor: row.get(4),
        role: row.get(5),
        cause: row.get(6),
        noun: row.get(7),
        noun_id: row.get(8),
        facts: row.get(9),
        hash: hash(row.get(10))?,
        private: private(row)?,
    })
}

fn private(row: &SqlRow) -> Result<PrivateRef<'_>, Error> {
    if let Some(redacted) = row.get::<_, Option<&[u8]>>(13) {
        return Ok(PrivateRef::Redacted { hash: hash(redacted)? });
    }
    let parts = row.get::<_, Option<&[u8]>>(11).zip(row.get::<_, Option<&[u8]>>(12));
    let Some((salt, bytes)) = parts else { return Ok(PrivateRef::None) };
    let wrong_length = |_| Error::Damaged("the salt of an entry does not have 16 bytes".into());
    Ok(PrivateRef::Present { salt: salt.try_into().map_err(wrong_length)?, bytes })
}

pub(crate) async fn head(pool: &Pool) -> Result<Chain, Error> {
    let found = row(pool, "SELECT chain FROM head", &[]).await?;
    found.map_or_else(|| Ok(Chain::empty()), |row| decode_chain(row.get(0)))
}

pub(crate) async fn last_checkpoint(pool: &Pool) -> Result<Option<Checkpoint>, Error> {
    let sql = "SELECT chain, note FROM resume, checkpoint ORDER BY size DESC LIMIT 1";
    let Some(row) = row(pool, sql, &[]).await? else { return Ok(None) };
    // Without a readable chain there is no checkpoint to resume from, until the next one is saved.
    Ok(Chain::decode(row.get(0)).ok().map(|chain| Checkpoint { chain, note: row.get(1) }))
}

pub(crate) async fn checkpoint_notes(
    pool: &Pool,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>, Error> {
    let sql = "SELECT size, note FROM checkpoint WHERE $1 < size ORDER BY size LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let notes = rows(pool, sql, &[&signed(after), &limit]).await?;
    Ok(notes.iter().map(|row| (unsigned(row.get(0)), row.get(1))).collect())
}

/// All derived tables, from one snapshot.
pub(crate) async fn load_derived(pool: &Pool) -> Result<DerivedTables, Error> {
    let mut backoff = Backoff::new();
    loop {
        match load_derived_once(pool).await {
            Err(error @ Error::Unreachable(_)) => backoff.wait(error).await?,
            done => return done,
        }
    }
}

async fn load_derived_once(pool: &Pool) -> Result<DerivedTables, Error> {
    let mut client = client(pool).await?;
    let snapshot = client.build_transaction().read_only(true);
    let snapshot = snapshot.isolation_level(IsolationLevel::RepeatableRead).start().await;
    let snapshot = snapshot.map_err(classify)?;
    // Locks before the snapshot is taken: tables that are being replaced would be empty in it.
    let lock = "LOCK TABLE item, counter IN ACCESS SHARE MODE";
    snapshot.batch_execute(lock).await.map_err(classify)?;
    let size = snapshot.query_one("SELECT size FROM head", &[]).await.map_err(classify)?;
    let items = items::load_everything(&snapshot).await?;
    let counters = "SELECT name, value FROM counter WHERE value <> 0 ORDER BY name";
    let counters = snapshot.query(counters, &[]).await.map_err(classify)?;
    snapshot.commit().await.map_err(classify)?;
    Ok(DerivedTables {
        through: unsigned(size.get(0)),
        items,
        counters: counters.iter().map(|row| (row.get(0), row.get(1))).collect(),
    })
}

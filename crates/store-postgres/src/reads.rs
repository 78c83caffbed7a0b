//! Reading: queries on pooled connections.

use deadpool_postgres::{Client, Pool};
use ledger::{Chain, Fields, PrivateRef};
use store::{Answer, Checkpoint, Derived, Error, PAGE_ENTRIES_MAX, Page};
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row as SqlRow};

use crate::error::{meaning, of_pool};
use crate::items;
use crate::patience::Patience;
use crate::session::{chain, hash, signed, unsigned};

type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

async fn client(pool: &Pool) -> Result<Client, Error> {
    pool.get().await.map_err(of_pool)
}

/// On another connection if the first is found broken, until the database stays away too long.
pub(crate) async fn rows(pool: &Pool, sql: &str, values: Values<'_>) -> Result<Vec<SqlRow>, Error> {
    let mut patience = Patience::new();
    loop {
        match rows_once(pool, sql, values).await {
            Err(error @ Error::Unreachable(_)) => patience.pause(error).await?,
            done => return done,
        }
    }
}

async fn rows_once(pool: &Pool, sql: &str, values: Values<'_>) -> Result<Vec<SqlRow>, Error> {
    let client = client(pool).await?;
    let statement = client.prepare_cached(sql).await.map_err(meaning)?;
    client.query(&statement, values).await.map_err(meaning)
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

pub(crate) async fn answer(pool: &Pool, key: &str) -> Result<Option<Answer>, Error> {
    let sql = "SELECT key, request_hash, body, at_us FROM answer WHERE key = $1";
    row(pool, sql, &[&key]).await?.as_ref().map(answer_in).transpose()
}

pub(crate) async fn answers(pool: &Pool, after: &str, limit: usize) -> Result<Vec<Answer>, Error> {
    let sql =
        "SELECT key, request_hash, body, at_us FROM answer WHERE $1 < key ORDER BY key LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    rows(pool, sql, &[&after, &limit]).await?.iter().map(answer_in).collect()
}

fn answer_in(row: &SqlRow) -> Result<Answer, Error> {
    let request_hash = hash(row.get(1))?;
    Ok(Answer { key: row.get(0), request_hash, body: row.get(2), at_us: row.get(3) })
}

pub(crate) async fn entries(pool: &Pool, after: u64, limit: usize) -> Result<Page, Error> {
    let sql = "SELECT seq, ts_us, kind, entry.version, actor, role, cause, noun, noun_id, facts,
                      entry.hash, salt, body, entry_private.hash
               FROM entry LEFT JOIN entry_private USING (seq)
               WHERE $1 < seq ORDER BY seq LIMIT $2";
    let limit = i64::try_from(limit.min(PAGE_ENTRIES_MAX)).unwrap_or(i64::MAX);
    let mut page = Page::default();
    for row in rows(pool, sql, &[&signed(after), &limit]).await? {
        match fields(&row) {
            Ok(fields) => page.push(&fields),
            // What is good comes first; the next page begins with what is not.
            Err(_) if !page.is_empty() => break,
            Err(error) => return Err(error),
        }
        if page.is_full() {
            break;
        }
    }
    Ok(page)
}

fn fields(row: &SqlRow) -> Result<Fields<'_>, Error> {
    let out_of_range = |_| Error::Damaged("an entry has a version out of range".into());
    Ok(Fields {
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
    if let Some(removed) = row.get::<_, Option<&[u8]>>(13) {
        return Ok(PrivateRef::Redacted { hash: hash(removed)? });
    }
    let parts = row.get::<_, Option<&[u8]>>(11).zip(row.get::<_, Option<&[u8]>>(12));
    let Some((salt, bytes)) = parts else { return Ok(PrivateRef::None) };
    let wrong = |_| Error::Damaged("the salt of an entry does not have 16 bytes".into());
    Ok(PrivateRef::Present { salt: salt.try_into().map_err(wrong)?, bytes })
}

pub(crate) async fn head(pool: &Pool) -> Result<Chain, Error> {
    let found = row(pool, "SELECT chain FROM head", &[]).await?;
    found.map_or_else(|| Ok(Chain::empty()), |row| chain(row.get(0)))
}

pub(crate) async fn last_checkpoint(pool: &Pool) -> Result<Option<Checkpoint>, Error> {
    let sql = "SELECT chain, note FROM resume, checkpoint ORDER BY size DESC LIMIT 1";
    let Some(row) = row(pool, sql, &[]).await? else { return Ok(None) };
    // Without the place there is nothing to resume from, and the next checkpoint brings a new one.
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

/// All tables at one moment.
pub(crate) async fn derived(pool: &Pool) -> Result<Derived, Error> {
    let mut patience = Patience::new();
    loop {
        match derived_once(pool).await {
            Err(error @ Error::Unreachable(_)) => patience.pause(error).await?,
            done => return done,
        }
    }
}

async fn derived_once(pool: &Pool) -> Result<Derived, Error> {
    let mut client = client(pool).await?;
    let moment = client.build_transaction().read_only(true);
    let moment = moment.isolation_level(IsolationLevel::RepeatableRead).start().await;
    let moment = moment.map_err(meaning)?;
    // Before the first look: tables that are being replaced would seem empty afterwards.
    let wait = "LOCK TABLE item, counter IN ACCESS SHARE MODE";
    moment.batch_execute(wait).await.map_err(meaning)?;
    let size = moment.query_one("SELECT size FROM head", &[]).await.map_err(meaning)?;
    let items = items::all(&moment).await?;
    let counters = "SELECT name, value FROM counter WHERE value <> 0 ORDER BY name";
    let counters = moment.query(counters, &[]).await.map_err(meaning)?;
    moment.commit().await.map_err(meaning)?;
    Ok(Derived {
        through: unsigned(size.get(0)),
        items,
        counters: counters.iter().map(|row| (row.get(0), row.get(1))).collect(),
    })
}

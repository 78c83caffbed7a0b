//! The raw database on PostgreSQL: batched statements on one connection, in one pipeline.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::future::try_join5;
use ledger::Entry;
use store_postgres::{Postgres, Target};
use tokio_postgres::{Client, NoTls, Statement};

use crate::machine;
use crate::raw::{BODY, RESPONSE};
use crate::store::Measured;

const INSERT_ITEMS: &str =
    "INSERT INTO item SELECT 'agent', id, 1, $2 FROM unnest($1::text[]) AS t (id)";
const INSERT_RESPONSES: &str = "INSERT INTO answer
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[]) ON CONFLICT DO NOTHING";
const UPDATE_ITEMS: &str = "UPDATE item SET version = new.version, body = $3
    FROM unnest($1::text[], $2::bigint[]) AS new (id, version)
    WHERE item.noun = 'agent' AND item.id = new.id";
const INSERT_ENTRIES: &str = "INSERT INTO entry SELECT * FROM unnest($1::bigint[], $2::bigint[],
    $3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::bytea[], $11::bytea[])";

pub(crate) async fn replay(url: &str, rows: &[Entry], batch: f64) -> anyhow::Result<Measured> {
    drop(Postgres::open(&Target::new(url, None, None)?).await?);
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let driver = tokio::task::spawn(connection);
    let mut versions: BTreeMap<&str, i64> = BTreeMap::new();
    for row in rows {
        versions.insert(&row.noun_id, 1);
    }
    let ids: Vec<&str> = versions.keys().copied().collect();
    client.execute(INSERT_ITEMS, &[&ids, &BODY]).await?;
    let raw = Raw {
        insert_responses: client.prepare(INSERT_RESPONSES).await?,
        update_items: client.prepare(UPDATE_ITEMS).await?,
        insert_entries: client.prepare(INSERT_ENTRIES).await?,
        client,
    };

    let (started, cpu) = (Instant::now(), machine::cpu_seconds());
    let (mut written, mut due) = (0, 0.0);
    while written < rows.len() {
        due += batch;
        let end = (due as usize).clamp(written + 1, rows.len());
        let part = rows.get(written..end).unwrap_or_default();
        raw.write(part, written, &mut versions).await?;
        written = end;
    }
    let measured = Measured {
        rate: written as f64 / started.elapsed().as_secs_f64(),
        batch,
        cpu_us: (machine::cpu_seconds() - cpu) * 1e6 / written as f64,
    };
    drop(raw);
    driver.await??;
    Ok(measured)
}

struct Raw {
    client: Client,
    insert_responses: Statement,
    update_items: Statement,
    insert_entries: Statement,
}

impl Raw {
    async fn write<'a>(
        &self,
        rows: &'a [Entry],
        before: usize,
        versions: &mut BTreeMap<&'a str, i64>,
    ) -> anyhow::Result<()> {
        let keyed = || rows.iter().filter_map(|row| Some((row, row.cause.strip_prefix("key:")?)));
        let keys: Vec<&str> = keyed().map(|(_, key)| key).collect();
        let requests: Vec<&[u8]> = keyed().map(|(row, _)| row.hash.as_bytes().as_slice()).collect();
        let responses: Vec<&[u8]> = keys.iter().map(|_| RESPONSE).collect();
        let stored_at: Vec<i64> = keyed().map(|(row, _)| row.ts_us).collect();

        let mut changed: BTreeMap<&str, i64> = BTreeMap::new();
        for row in rows {
            let version = versions.entry(&row.noun_id).or_default();
            *version += 1;
            changed.insert(&row.noun_id, *version);
        }
        let (ids, new): (Vec<&str>, Vec<i64>) = changed.into_iter().unzip();

        let texts = |text: fn(&Entry) -> &str| rows.iter().map(text).collect::<Vec<&str>>();
        let seqs: Vec<i64> = (1..).skip(before).take(rows.len()).collect();
        let times: Vec<i64> = rows.iter().map(|row| row.ts_us).collect();
        let kinds = texts(|row| &row.kind);
        let kind_versions: Vec<i32> = rows.iter().map(|row| row.version.into()).collect();
        let actors = texts(|row| &row.actor);
        let roles = texts(|row| &row.role);
        let causes = texts(|row| &row.cause);
        let nouns = texts(|row| &row.noun);
        let noun_ids = texts(|row| &row.noun_id);
        let facts: Vec<&[u8]> = rows.iter().map(|row| row.facts.as_slice()).collect();
        let hashes: Vec<&[u8]> = rows.iter().map(|row| row.hash.as_bytes().as_slice()).collect();

        try_join5(
            async { self.client.batch_execute("BEGIN").await },
            self.client
                .execute(&self.insert_responses, &[&keys, &requests, &responses, &stored_at]),
            self.client.execute(&self.update_items, &[&ids, &new, &BODY]),
            self.client.execute(
                &self.insert_entries,
                &[
                    &seqs,
                    &times,
                    &kinds,
                    &kind_versions,
                    &actors,
                    &roles,
                    &causes,
                    &nouns,
                    &noun_ids,
                    &facts,
                    &hashes,
                ],
            ),
            self.client.batch_execute("COMMIT"),
        )
        .await?;
        Ok(())
    }
}

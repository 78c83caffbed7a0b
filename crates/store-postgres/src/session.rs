//! The writer's connection: its statements, and the parts of a transaction in order.
//!
//! Every process locks in the same order, each kind sorted: existing rows, existing counters, new rows,
//! new counters, responses, and finally the head of the ledger. So processes may wait for each other
//! but never deadlock.

use std::collections::BTreeMap;

use futures::future::{join3, join4, join5, try_join5};
use ledger::{Appended, Chain, Draft, Hash, PrivateRef};
use store::{Checkpoint, Commit, DerivedTables, Error, Page};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use tracing::warn;

use crate::connect::connect_client;
use crate::error::classify;
use crate::group::{GroupPlan, LoadedRows, Rows, Versions};
use crate::target::Target;

#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    lock_items: Statement,
    find_versions: Statement,
    lock_counters: Statement,
    find_responses: Statement,
    insert_items: Statement,
    update_items: Statement,
    insert_counters: Statement,
    update_counters: Statement,
    insert_responses: Statement,
    lock_head: Statement,
    insert_entries: Statement,
    insert_private: Statement,
    set_head: Statement,
}

/// Why a transaction failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was committed.
    NotCommitted(Error),
    /// The connection was lost during `COMMIT`.
    InDoubt(Error),
}

impl Session {
    pub(crate) async fn open(target: &Target) -> Result<Session, Error> {
        let (client, _) = connect_client(target).await?;
        // A reply means that the change is durable; stricter settings are kept.
        let settings = "SELECT set_config('synchronous_commit', 'on', false)
                        WHERE current_setting('synchronous_commit') = 'off'";
        client.batch_execute(settings).await.map_err(classify)?;
        let fsync = client.query_one("SELECT current_setting('fsync')", &[]).await;
        if fsync.map_err(classify)?.get::<_, &str>(0) == "off" {
            warn!(
                "the database runs with `fsync = off`: it may lose changes if its machine crashes"
            );
        }
        let sql = async |text| client.prepare(text).await.map_err(classify);
        Ok(Session {
            lock_items: sql("SELECT noun, id, version FROM item
                 JOIN unnest($1::text[], $2::text[]) AS asked (noun, id) USING (noun, id)
                 ORDER BY noun, id FOR UPDATE OF item")
            .await?,
            find_versions: sql("SELECT noun, id, version FROM item
                 JOIN unnest($1::text[], $2::text[]) AS asked (noun, id) USING (noun, id)")
            .await?,
            lock_counters: sql("SELECT name, value FROM counter WHERE name = ANY($1::text[])
                 ORDER BY name FOR UPDATE")
            .await?,
            find_responses: sql(
                "SELECT key, request_hash, body FROM answer WHERE key = ANY($1::text[])",
            )
            .await?,
            insert_items: sql("INSERT INTO item
                 SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[],
                                      $5::bigint[], $6::text[])
                 ON CONFLICT DO NOTHING")
            .await?,
            update_items: sql("UPDATE item SET version = new.version, body = new.body,
                                 due_us = new.due_us, under = new.under
                 FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[],
                             $5::bigint[], $6::text[])
                      AS new (noun, id, version, body, due_us, under)
                 WHERE item.noun = new.noun AND item.id = new.id")
            .await?,
            insert_counters: sql("INSERT INTO counter
                 SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING")
            .await?,
            update_counters: sql("UPDATE counter SET value = new.value
                 FROM unnest($1::text[], $2::bigint[]) AS new (name, value)
                 WHERE counter.name = new.name")
            .await?,
            insert_responses: sql("INSERT INTO answer
                 SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[])
                 ON CONFLICT DO NOTHING")
            .await?,
            lock_head: sql("SELECT chain FROM head FOR UPDATE").await?,
            insert_entries: sql(
                "INSERT INTO entry SELECT * FROM unnest($1::bigint[], $2::bigint[],
                 $3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[],
                 $9::text[], $10::bytea[], $11::bytea[])",
            )
            .await?,
            insert_private: sql("INSERT INTO entry_private
                 SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[])")
            .await?,
            set_head: sql("UPDATE head SET size = $1, chain = $2").await?,
            client,
        })
    }

    /// Whether the ledger has this entry, checked while the head is locked. If so, commits an update of
    /// the head, because the lost commit may not have reached its synchronous standbys yet.
    pub(crate) async fn has_entry(&self, seq: u64, hash: Hash) -> Result<bool, Error> {
        self.begin().await?;
        self.lock_head().await?;
        let exists = find_hash(&self.client, seq).await? == Some(hash);
        let end = match exists {
            true => "UPDATE head SET size = size; COMMIT",
            false => "ROLLBACK",
        };
        self.client.batch_execute(end).await.map_err(classify)?;
        Ok(exists)
    }

    pub(crate) async fn begin(&self) -> Result<(), Error> {
        self.client.batch_execute("BEGIN").await.map_err(classify)
    }

    /// Ignores a failure: the database rolls back when the connection is lost.
    pub(crate) async fn rollback(&self) {
        let _ = self.client.batch_execute("ROLLBACK").await;
    }

    /// Begins a transaction, locks the rows that these commits write, reads those that they only read, and
    /// finds the stored responses to their idempotency keys.
    pub(crate) async fn load(&self, commits: &[&Commit]) -> Result<LoadedRows, Error> {
        let (mut loaded, mut names, mut keys) = (LoadedRows::default(), Vec::new(), Vec::new());
        for commit in commits {
            for write in &commit.writes {
                loaded.versions.entry(write.noun).or_default().insert(write.id.clone(), 0);
            }
            for expect in &commit.expects {
                loaded.read.entry(expect.noun).or_default().insert(expect.id.clone(), 0);
            }
            for delta in &commit.deltas {
                loaded.counters.insert(delta.counter.to_string(), None);
            }
            keys.extend(commit.response.as_ref().map(|response| response.key.as_str()));
        }
        let (nouns, ids) = keys_of(&loaded.versions);
        let (read_nouns, read_ids) = keys_of(&loaded.read);
        names.extend(loaded.counters.keys().cloned());
        let ((), items, read, counters, responses) = try_join5(
            async { self.client.batch_execute("BEGIN").await },
            self.query_many(&self.lock_items, nouns.len(), &[&nouns, &ids]),
            self.query_many(&self.find_versions, read_nouns.len(), &[&read_nouns, &read_ids]),
            self.query_many(&self.lock_counters, names.len(), &[&names]),
            self.query_many(&self.find_responses, keys.len(), &[&keys]),
        )
        .await
        .map_err(classify)?;
        set_versions(&mut loaded.versions, &items);
        set_versions(&mut loaded.read, &read);
        for row in counters {
            if let Some(value) = loaded.counters.get_mut(row.get::<_, &str>(0)) {
                *value = Some(row.get(1));
            }
        }
        for row in responses {
            loaded.responses.insert(row.get(0), (hash(row.get(1))?, row.get(2)));
        }
        Ok(loaded)
    }

    /// Begins a transaction and writes a plan that was made from the expected rows, in one round trip.
    /// `None` if a row was not as expected.
    pub(crate) async fn write_optimistically(
        &self,
        expected: &LoadedRows,
        plan: &GroupPlan<'_>,
    ) -> Result<Option<Chain>, Error> {
        let (nouns, ids) = keys_of(&expected.versions);
        let (started, items, head) = join3(
            async { self.client.batch_execute("BEGIN").await },
            self.query_many(&self.lock_items, nouns.len(), &[&nouns, &ids]),
            self.write(plan),
        )
        .await;
        started.map_err(classify)?;
        let (items, head) = (items.map_err(classify)?, head?);
        let mut matching = 0;
        for row in &items {
            let version = expected.versions.get(row.get::<_, &str>(0));
            let version = version.and_then(|ids| ids.get(row.get::<_, &str>(1)));
            matching += usize::from(version == Some(&unsigned(row.get(2))));
        }
        let existing = expected.versions.values().flat_map(BTreeMap::values).filter(|it| 0 < **it);
        let is_as_expected = matching == items.len() && matching == existing.count();
        Ok(head.filter(|_| is_as_expected))
    }

    /// Writes the rows of a plan, then locks the head. `None` if another process changed a row or used an
    /// idempotency key first: then the group must be decided again.
    pub(crate) async fn write(&self, plan: &GroupPlan<'_>) -> Result<Option<Chain>, Error> {
        let responses = &plan.responses;
        let keys: Vec<&str> = responses.iter().map(|response| response.key.as_str()).collect();
        let hashes: Vec<&[u8]> =
            responses.iter().map(|response| response.request_hash.as_bytes().as_slice()).collect();
        let bodies: Vec<&[u8]> =
            responses.iter().map(|response| response.body.as_slice()).collect();
        let times: Vec<i64> = responses.iter().map(|response| response.at_us).collect();
        let responses: [&(dyn ToSql + Sync); 4] = [&keys, &hashes, &bodies, &times];
        let rows = join5(
            self.write_items(&self.insert_items, &plan.inserts),
            self.write_items(&self.update_items, &plan.updates),
            self.write_counters(&self.insert_counters, &plan.new_counters),
            self.write_counters(&self.update_counters, &plan.counters),
            self.execute_many(&self.insert_responses, keys.len(), &responses),
        );
        // A process that changes one of these rows holds the lock on the head when it commits.
        let (nouns, ids): (Vec<&str>, Vec<&str>) = plan.expects.keys().copied().unzip();
        let ((inserted, updated, created, counted, saved), head, read) = join3(
            rows,
            self.lock_head(),
            self.query_many(&self.find_versions, nouns.len(), &[&nouns, &ids]),
        )
        .await;
        let wrote_all = inserted.map_err(classify)? == plan.inserts.len()
            && updated.map_err(classify)? == plan.updates.len()
            && created.map_err(classify)? == plan.new_counters.len()
            && counted.map_err(classify)? == plan.counters.len()
            && saved.map_err(classify)? == keys.len();
        let head = head?;
        let mut expected = plan.expects.clone();
        expected.retain(|_, version| 0 < *version);
        let read = read.map_err(classify)?;
        let is_as_expected = read
            .iter()
            .all(|row| expected.remove(&(row.get(0), row.get(1))) == Some(unsigned(row.get(2))));
        Ok((wrote_all && is_as_expected && expected.is_empty()).then_some(head))
    }

    pub(crate) async fn lock_head(&self) -> Result<Chain, Error> {
        let row = self.client.query_one(&self.lock_head, &[]).await.map_err(classify)?;
        decode_chain(row.get(0))
    }

    /// Appends the entries and commits.
    pub(crate) async fn commit(
        &self,
        entries: &[(&Draft, Appended)],
        chain: &Chain,
    ) -> Result<(), Failure> {
        let mut page = Page::default();
        for (draft, appended) in entries {
            page.push(&draft.appended_as(*appended));
        }
        self.commit_page(&page, chain).await
    }

    pub(crate) async fn commit_page(&self, page: &Page, chain: &Chain) -> Result<(), Failure> {
        let appended: Vec<_> = page.iter().collect();
        let seqs: Vec<i64> = appended.iter().map(|it| signed(it.seq)).collect();
        let times: Vec<i64> = appended.iter().map(|it| it.ts_us).collect();
        let kinds: Vec<&str> = appended.iter().map(|it| it.kind).collect();
        let versions: Vec<i32> = appended.iter().map(|it| i32::from(it.version)).collect();
        let actors: Vec<&str> = appended.iter().map(|it| it.actor).collect();
        let roles: Vec<&str> = appended.iter().map(|it| it.role).collect();
        let causes: Vec<&str> = appended.iter().map(|it| it.cause).collect();
        let nouns: Vec<&str> = appended.iter().map(|it| it.noun).collect();
        let ids: Vec<&str> = appended.iter().map(|it| it.noun_id).collect();
        let facts: Vec<&[u8]> = appended.iter().map(|it| it.facts).collect();
        let hashes: Vec<&[u8]> = appended.iter().map(|it| it.hash.as_bytes().as_slice()).collect();
        let (mut private, mut salts, mut bodies, mut redacted) = (vec![], vec![], vec![], vec![]);
        for it in &appended {
            let (salt, body, hash) = match it.private {
                PrivateRef::None => continue,
                PrivateRef::Present { salt, bytes } => (Some(salt.to_vec()), Some(bytes), None),
                PrivateRef::Redacted { hash } => (None, None, Some(hash.as_bytes().to_vec())),
            };
            private.push(signed(it.seq));
            salts.push(salt);
            bodies.push(body);
            redacted.push(hash);
        }
        let (size, encoded) = (signed(chain.size()), chain.encode());
        let entries: [&(dyn ToSql + Sync); 11] = [
            &seqs, &times, &kinds, &versions, &actors, &roles, &causes, &nouns, &ids, &facts,
            &hashes,
        ];
        let (entries, parts, head, commit) = join4(
            self.execute_many(&self.insert_entries, seqs.len(), &entries),
            self.execute_many(
                &self.insert_private,
                private.len(),
                &[&private, &salts, &bodies, &redacted],
            ),
            async {
                match page.is_empty() {
                    true => Ok(0),
                    false => self.client.execute(&self.set_head, &[&size, &encoded]).await,
                }
            },
            self.client.batch_execute("COMMIT"),
        )
        .await;
        // After a failed statement `COMMIT` rolls back, so the statements are checked first.
        entries.map_err(commit_failure)?;
        parts.map_err(commit_failure)?;
        head.map_err(commit_failure)?;
        commit.map_err(commit_failure)
    }

    /// Replaces all derived tables. [`Session::lock_tables`] keeps others from writing them.
    pub(crate) async fn replace_derived(&self, derived: &DerivedTables) -> Result<(), Error> {
        self.client.batch_execute("TRUNCATE item, counter").await.map_err(classify)?;
        for part in derived.items.chunks(4_096) {
            let nouns: Vec<&str> = part.iter().map(|item| item.noun.as_str()).collect();
            let ids: Vec<&str> = part.iter().map(|item| item.id.as_str()).collect();
            let versions: Vec<i64> = part.iter().map(|item| signed(item.version)).collect();
            let bodies: Vec<Option<&[u8]>> = part.iter().map(|item| item.body.as_deref()).collect();
            let due: Vec<Option<i64>> = part.iter().map(|item| item.due_us).collect();
            let index_keys: Vec<Option<&str>> =
                part.iter().map(|item| item.index_key.as_deref()).collect();
            let values: [&(dyn ToSql + Sync); 6] =
                [&nouns, &ids, &versions, &bodies, &due, &index_keys];
            self.client.execute(&self.insert_items, &values).await.map_err(classify)?;
        }
        let (names, values): (Vec<&str>, Vec<i64>) =
            derived.counters.iter().map(|(name, value)| (name.as_str(), *value)).unzip();
        let counted =
            self.execute_many(&self.insert_counters, names.len(), &[&names, &values]).await;
        counted.map(drop).map_err(classify)
    }

    /// Begins a transaction and locks the derived tables until it ends.
    pub(crate) async fn lock_tables(&self) -> Result<(), Error> {
        self.begin().await?;
        let sql = "LOCK TABLE item, counter IN ACCESS EXCLUSIVE MODE";
        self.client.batch_execute(sql).await.map_err(classify)
    }

    pub(crate) async fn save_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.begin().await?;
        let saved = self.insert_checkpoint(checkpoint).await;
        if saved.is_err() {
            self.rollback().await;
        }
        saved
    }

    async fn insert_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let sql = "INSERT INTO checkpoint VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let size = signed(checkpoint.chain.size());
        if self.client.execute(sql, &[&size, &checkpoint.note]).await.map_err(classify)? == 1 {
            let sql = "INSERT INTO resume VALUES (1, $1)
                       ON CONFLICT (only_row) DO UPDATE SET chain = excluded.chain";
            self.client.execute(sql, &[&checkpoint.chain.encode()]).await.map_err(classify)?;
        }
        self.client.batch_execute("COMMIT").await.map_err(classify)
    }

    pub(crate) async fn delete_responses(&self, before_us: i64) -> Result<(), Error> {
        let sql = "DELETE FROM answer WHERE at_us < $1";
        self.client.execute(sql, &[&before_us]).await.map(drop).map_err(classify)
    }

    async fn write_items(
        &self,
        statement: &Statement,
        rows: &Rows<'_>,
    ) -> Result<usize, tokio_postgres::Error> {
        let (nouns, ids): (Vec<&str>, Vec<&str>) = rows.keys().copied().unzip();
        let versions: Vec<i64> = rows.values().map(|write| signed(write.version)).collect();
        let bodies: Vec<Option<&[u8]>> = rows.values().map(|write| write.body.as_deref()).collect();
        let due: Vec<Option<i64>> = rows.values().map(|write| write.due_us).collect();
        let index_keys: Vec<Option<&str>> =
            rows.values().map(|write| write.index_key.as_deref()).collect();
        let values: [&(dyn ToSql + Sync); 6] =
            [&nouns, &ids, &versions, &bodies, &due, &index_keys];
        self.execute_many(statement, rows.len(), &values).await
    }

    async fn write_counters(
        &self,
        statement: &Statement,
        counters: &BTreeMap<&str, i64>,
    ) -> Result<usize, tokio_postgres::Error> {
        let (names, values): (Vec<&str>, Vec<i64>) =
            counters.iter().map(|(name, value)| (*name, *value)).unzip();
        self.execute_many(statement, names.len(), &[&names, &values]).await
    }

    /// Executes a statement for `count` values, unless that is 0. Returns the number of changed rows.
    async fn execute_many(
        &self,
        statement: &Statement,
        count: usize,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<usize, tokio_postgres::Error> {
        match count {
            0 => Ok(0),
            _ => {
                let rows = self.client.execute(statement, values).await?;
                Ok(usize::try_from(rows).unwrap_or(usize::MAX))
            }
        }
    }

    /// Runs a query for `count` values, unless that is 0.
    async fn query_many(
        &self,
        statement: &Statement,
        count: usize,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        match count {
            0 => Ok(Vec::new()),
            _ => self.client.query(statement, values).await,
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

fn set_versions(versions: &mut Versions, rows: &[Row]) {
    for row in rows {
        let (noun, id): (&str, &str) = (row.get(0), row.get(1));
        if let Some(version) = versions.get_mut(noun).and_then(|ids| ids.get_mut(id)) {
            *version = unsigned(row.get(2));
        }
    }
}

/// The nouns and ids of all rows, sorted.
fn keys_of(versions: &Versions) -> (Vec<&'static str>, Vec<&str>) {
    let rows = versions.iter();
    rows.flat_map(|(noun, ids)| ids.keys().map(|id| (*noun, id.as_str()))).unzip()
}

/// An error during `COMMIT`.
fn commit_failure(error: tokio_postgres::Error) -> Failure {
    match classify(error) {
        lost @ Error::Unreachable(_) => Failure::InDoubt(lost),
        refused => Failure::NotCommitted(refused),
    }
}

/// Refuses a ledger that lost the last entry that this process has seen. A standby may merely be behind:
/// until it is promoted or has the entry, it counts as unreachable.
pub(crate) async fn check_not_rewound(
    client: &Client,
    seen: Option<(u64, Hash)>,
) -> Result<(), Error> {
    let Some((size, head)) = seen else { return Ok(()) };
    let sql = "SELECT (SELECT hash FROM entry WHERE seq = $1), pg_is_in_recovery()";
    let row = client.query_one(sql, &[&signed(size)]).await.map_err(classify)?;
    let found = row.get::<_, Option<&[u8]>>(0).map(hash).transpose()?;
    match found {
        Some(found) if found == head => Ok(()),
        None if row.get(1) => {
            Err(Error::Unreachable(format!("the standby does not have entry {size} yet")))
        }
        Some(_) => Err(Error::Rewound(format!("entry {size} was replaced by another"))),
        None => Err(Error::Rewound(format!(
            "entry {size} was acknowledged, but the database no longer has it"
        ))),
    }
}

/// The hash of an entry, if it exists.
pub(crate) async fn find_hash(client: &Client, seq: u64) -> Result<Option<Hash>, Error> {
    let sql = "SELECT hash FROM entry WHERE seq = $1";
    let row = client.query_opt(sql, &[&signed(seq)]).await.map_err(classify)?;
    row.map(|row| hash(row.get(0))).transpose()
}

pub(crate) fn decode_chain(bytes: &[u8]) -> Result<Chain, Error> {
    Chain::decode(bytes).map_err(|error| Error::Damaged(error.to_string()))
}

pub(crate) fn hash(bytes: &[u8]) -> Result<Hash, Error> {
    let wrong_length = |_| Error::Damaged("a stored hash does not have 32 bytes".into());
    Hash::try_from(bytes).map_err(wrong_length)
}

/// PostgreSQL has no unsigned integers. Midwatch's stay far below the limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

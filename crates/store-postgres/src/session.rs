//! The writer's connection: its statements, and the parts of a transaction in their order.
//!
//! Rows are locked in one order by everybody, each kind sorted: rows that exist, counters that exist,
//! new rows, new counters, answers, and at last the end of the log. So two processes may wait for each
//! other, but never in a circle.

use std::collections::BTreeMap;

use futures::future::{join3, join4, join5, try_join5};
use ledger::{Chain, Draft, Hash, PrivateRef, Sealed};
use store::{Checkpoint, Commit, Derived, Error, Page};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use tracing::{debug, warn};

use crate::error::meaning;
use crate::group::{Loaded, Plan, Rows, Versions};
use crate::spawn;
use crate::target::Target;

#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    lock_items: Statement,
    find_versions: Statement,
    lock_counters: Statement,
    find_answers: Statement,
    insert_items: Statement,
    update_items: Statement,
    insert_counters: Statement,
    update_counters: Statement,
    insert_answers: Statement,
    lock_head: Statement,
    insert_entries: Statement,
    insert_private: Statement,
    set_head: Statement,
}

/// Why a transaction did not come to an end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was committed.
    Before(Error),
    /// The connection was lost when the commit was on its way.
    InDoubt(Error),
}

/// Connects, and drives the connection in a task that ends with it.
pub(crate) async fn connect(target: &Target) -> Result<Client, Error> {
    let connected = target.config().connect(target.tls().clone()).await;
    let (client, connection) = connected.map_err(meaning)?;
    spawn(async move {
        if let Err(error) = connection.await {
            debug!(%error, "a connection to the database has ended");
        }
    });
    Ok(client)
}

impl Session {
    pub(crate) async fn open(target: &Target) -> Result<Session, Error> {
        let client = connect(target).await?;
        // An answer means that the change is on the disk; stricter settings stay as they are.
        let settings = "SELECT set_config('synchronous_commit', 'on', false)
                        WHERE current_setting('synchronous_commit') = 'off'";
        client.batch_execute(settings).await.map_err(meaning)?;
        let fsync = client.query_one("SELECT current_setting('fsync')", &[]).await;
        if fsync.map_err(meaning)?.get::<_, &str>(0) == "off" {
            warn!("the database runs with `fsync = off`: a crash of its machine may lose changes");
        }
        let sql = async |text| client.prepare(text).await.map_err(meaning);
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
            find_answers: sql(
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
            insert_answers: sql("INSERT INTO answer
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

    /// Whether this entry is in the log, once nobody is about to append to it. It is as safe as a
    /// commit then: standbys that a commit waits for have it too, which a connection that was lost
    /// while waiting does not tell.
    pub(crate) async fn has_entry(&self, seq: u64, hash: Hash) -> Result<bool, Error> {
        self.begin().await?;
        self.lock_head().await?;
        let is_there = hash_of(&self.client, seq).await? == Some(hash);
        let end = match is_there {
            true => "UPDATE head SET size = size; COMMIT",
            false => "ROLLBACK",
        };
        self.client.batch_execute(end).await.map_err(meaning)?;
        Ok(is_there)
    }

    pub(crate) async fn begin(&self) -> Result<(), Error> {
        self.client.batch_execute("BEGIN").await.map_err(meaning)
    }

    /// Nothing can be done about a failure: a connection that is lost has rolled back.
    pub(crate) async fn rollback(&self) {
        let _ = self.client.batch_execute("ROLLBACK").await;
    }

    /// Begins, locks the rows that these commits write, looks at those that they only read, and finds
    /// the answers to their keys.
    pub(crate) async fn load(&self, commits: &[&Commit]) -> Result<Loaded, Error> {
        let (mut loaded, mut names, mut keys) = (Loaded::default(), Vec::new(), Vec::new());
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
            keys.extend(commit.answer.as_ref().map(|answer| answer.key.as_str()));
        }
        let (nouns, ids) = keys_of(&loaded.versions);
        let (read_nouns, read_ids) = keys_of(&loaded.read);
        names.extend(loaded.counters.keys().cloned());
        let ((), items, read, counters, answers) = try_join5(
            async { self.client.batch_execute("BEGIN").await },
            self.rows(&self.lock_items, nouns.len(), &[&nouns, &ids]),
            self.rows(&self.find_versions, read_nouns.len(), &[&read_nouns, &read_ids]),
            self.rows(&self.lock_counters, names.len(), &[&names]),
            self.rows(&self.find_answers, keys.len(), &[&keys]),
        )
        .await
        .map_err(meaning)?;
        set_versions(&mut loaded.versions, &items);
        set_versions(&mut loaded.read, &read);
        for row in counters {
            if let Some(value) = loaded.counters.get_mut(row.get::<_, &str>(0)) {
                *value = Some(row.get(1));
            }
        }
        for row in answers {
            loaded.answers.insert(row.get(0), (hash(row.get(1))?, row.get(2)));
        }
        Ok(loaded)
    }

    /// Begins, and writes a plan that was made on what its commits expect, all at once. `None` when
    /// something was not as expected.
    pub(crate) async fn write_boldly(
        &self,
        expected: &Loaded,
        plan: &Plan<'_>,
    ) -> Result<Option<Chain>, Error> {
        let (nouns, ids) = keys_of(&expected.versions);
        let (begun, items, head) = join3(
            async { self.client.batch_execute("BEGIN").await },
            self.rows(&self.lock_items, nouns.len(), &[&nouns, &ids]),
            self.write(plan),
        )
        .await;
        begun.map_err(meaning)?;
        let (items, head) = (items.map_err(meaning)?, head?);
        let mut there = 0;
        for row in &items {
            let version = expected.versions.get(row.get::<_, &str>(0));
            let version = version.and_then(|ids| ids.get(row.get::<_, &str>(1)));
            there += usize::from(version == Some(&unsigned(row.get(2))));
        }
        let wanted = expected.versions.values().flat_map(BTreeMap::values).filter(|it| 0 < **it);
        let is_as_expected = there == items.len() && there == wanted.count();
        Ok(head.filter(|_| is_as_expected))
    }

    /// Writes the rows of a plan, then holds the end of the log. `None` when another process was
    /// faster with a row or a key: then all must be decided again.
    pub(crate) async fn write(&self, plan: &Plan<'_>) -> Result<Option<Chain>, Error> {
        let answers = &plan.answers;
        let keys: Vec<&str> = answers.iter().map(|answer| answer.key.as_str()).collect();
        let hashes: Vec<&[u8]> =
            answers.iter().map(|answer| answer.request_hash.as_bytes().as_slice()).collect();
        let bodies: Vec<&[u8]> = answers.iter().map(|answer| answer.body.as_slice()).collect();
        let times: Vec<i64> = answers.iter().map(|answer| answer.at_us).collect();
        let answers: [&(dyn ToSql + Sync); 4] = [&keys, &hashes, &bodies, &times];
        let rows = join5(
            self.put(&self.insert_items, &plan.inserts),
            self.put(&self.update_items, &plan.updates),
            self.count(&self.insert_counters, &plan.new_counters),
            self.count(&self.update_counters, &plan.counters),
            self.executed(&self.insert_answers, keys.len(), &answers),
        );
        // Whoever changes one of these holds the end of the log when it is committed.
        let (nouns, ids): (Vec<&str>, Vec<&str>) = plan.expects.keys().copied().unzip();
        let ((inserted, updated, begun, counted, answered), head, read) = join3(
            rows,
            self.lock_head(),
            self.rows(&self.find_versions, nouns.len(), &[&nouns, &ids]),
        )
        .await;
        let is_whole = inserted.map_err(meaning)? == plan.inserts.len()
            && updated.map_err(meaning)? == plan.updates.len()
            && begun.map_err(meaning)? == plan.new_counters.len()
            && counted.map_err(meaning)? == plan.counters.len()
            && answered.map_err(meaning)? == keys.len();
        let head = head?;
        let mut unread = plan.expects.clone();
        unread.retain(|_, version| 0 < *version);
        let read = read.map_err(meaning)?;
        let is_as_read = read
            .iter()
            .all(|row| unread.remove(&(row.get(0), row.get(1))) == Some(unsigned(row.get(2))));
        Ok((is_whole && is_as_read && unread.is_empty()).then_some(head))
    }

    pub(crate) async fn lock_head(&self) -> Result<Chain, Error> {
        let row = self.client.query_one(&self.lock_head, &[]).await.map_err(meaning)?;
        chain(row.get(0))
    }

    /// Appends the entries and commits.
    pub(crate) async fn commit(
        &self,
        entries: &[(&Draft, Sealed)],
        chain: &Chain,
    ) -> Result<(), Failure> {
        let mut page = Page::default();
        for (draft, sealed) in entries {
            page.push(&draft.fields(*sealed));
        }
        self.commit_page(&page, chain).await
    }

    pub(crate) async fn commit_page(&self, page: &Page, chain: &Chain) -> Result<(), Failure> {
        let fields: Vec<_> = page.iter().collect();
        let seqs: Vec<i64> = fields.iter().map(|it| signed(it.seq)).collect();
        let times: Vec<i64> = fields.iter().map(|it| it.ts_us).collect();
        let kinds: Vec<&str> = fields.iter().map(|it| it.kind).collect();
        let versions: Vec<i32> = fields.iter().map(|it| i32::from(it.version)).collect();
        let actors: Vec<&str> = fields.iter().map(|it| it.actor).collect();
        let roles: Vec<&str> = fields.iter().map(|it| it.role).collect();
        let causes: Vec<&str> = fields.iter().map(|it| it.cause).collect();
        let nouns: Vec<&str> = fields.iter().map(|it| it.noun).collect();
        let ids: Vec<&str> = fields.iter().map(|it| it.noun_id).collect();
        let facts: Vec<&[u8]> = fields.iter().map(|it| it.facts).collect();
        let hashes: Vec<&[u8]> = fields.iter().map(|it| it.hash.as_bytes().as_slice()).collect();
        let (mut private, mut salts, mut bodies, mut removed) = (vec![], vec![], vec![], vec![]);
        for it in &fields {
            let (salt, body, hash) = match it.private {
                PrivateRef::None => continue,
                PrivateRef::Present { salt, bytes } => (Some(salt.to_vec()), Some(bytes), None),
                PrivateRef::Redacted { hash } => (None, None, Some(hash.as_bytes().to_vec())),
            };
            private.push(signed(it.seq));
            salts.push(salt);
            bodies.push(body);
            removed.push(hash);
        }
        let (size, encoded) = (signed(chain.size()), chain.encode());
        let entries: [&(dyn ToSql + Sync); 11] = [
            &seqs, &times, &kinds, &versions, &actors, &roles, &causes, &nouns, &ids, &facts,
            &hashes,
        ];
        let (entries, parts, head, commit) = join4(
            self.executed(&self.insert_entries, seqs.len(), &entries),
            self.executed(
                &self.insert_private,
                private.len(),
                &[&private, &salts, &bodies, &removed],
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
        // After a statement that failed, `COMMIT` rolls back; so these are looked at first.
        entries.map_err(in_doubt)?;
        parts.map_err(in_doubt)?;
        head.map_err(in_doubt)?;
        commit.map_err(in_doubt)
    }

    /// Puts these in the place of all derived tables. Nobody else writes them meanwhile.
    pub(crate) async fn replace(&self, derived: &Derived) -> Result<(), Error> {
        self.client.batch_execute("TRUNCATE item, counter").await.map_err(meaning)?;
        for part in derived.items.chunks(4_096) {
            let nouns: Vec<&str> = part.iter().map(|item| item.noun.as_str()).collect();
            let ids: Vec<&str> = part.iter().map(|item| item.id.as_str()).collect();
            let versions: Vec<i64> = part.iter().map(|item| signed(item.version)).collect();
            let bodies: Vec<Option<&[u8]>> = part.iter().map(|item| item.body.as_deref()).collect();
            let due: Vec<Option<i64>> = part.iter().map(|item| item.due_us).collect();
            let under: Vec<Option<&str>> = part.iter().map(|item| item.under.as_deref()).collect();
            let values: [&(dyn ToSql + Sync); 6] = [&nouns, &ids, &versions, &bodies, &due, &under];
            self.client.execute(&self.insert_items, &values).await.map_err(meaning)?;
        }
        let (names, values): (Vec<&str>, Vec<i64>) =
            derived.counters.iter().map(|(name, value)| (name.as_str(), *value)).unzip();
        let counted = self.executed(&self.insert_counters, names.len(), &[&names, &values]).await;
        counted.map(drop).map_err(meaning)
    }

    /// Keeps everybody else from changing the derived tables until the transaction ends.
    pub(crate) async fn lock_tables(&self) -> Result<(), Error> {
        self.begin().await?;
        let sql = "LOCK TABLE item, counter IN ACCESS EXCLUSIVE MODE";
        self.client.batch_execute(sql).await.map_err(meaning)
    }

    pub(crate) async fn keep_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.begin().await?;
        let kept = self.insert_checkpoint(checkpoint).await;
        if kept.is_err() {
            self.rollback().await;
        }
        kept
    }

    async fn insert_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let sql = "INSERT INTO checkpoint VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let size = signed(checkpoint.chain.size());
        if self.client.execute(sql, &[&size, &checkpoint.note]).await.map_err(meaning)? == 1 {
            let sql = "INSERT INTO resume VALUES (1, $1)
                       ON CONFLICT (only_row) DO UPDATE SET chain = excluded.chain";
            self.client.execute(sql, &[&checkpoint.chain.encode()]).await.map_err(meaning)?;
        }
        self.client.batch_execute("COMMIT").await.map_err(meaning)
    }

    pub(crate) async fn forget_answers(&self, before_us: i64) -> Result<(), Error> {
        let sql = "DELETE FROM answer WHERE at_us < $1";
        self.client.execute(sql, &[&before_us]).await.map(drop).map_err(meaning)
    }

    async fn put(
        &self,
        statement: &Statement,
        rows: &Rows<'_>,
    ) -> Result<usize, tokio_postgres::Error> {
        let (nouns, ids): (Vec<&str>, Vec<&str>) = rows.keys().copied().unzip();
        let versions: Vec<i64> = rows.values().map(|write| signed(write.version)).collect();
        let bodies: Vec<Option<&[u8]>> = rows.values().map(|write| write.body.as_deref()).collect();
        let due: Vec<Option<i64>> = rows.values().map(|write| write.due_us).collect();
        let under: Vec<Option<&str>> = rows.values().map(|write| write.under.as_deref()).collect();
        let values: [&(dyn ToSql + Sync); 6] = [&nouns, &ids, &versions, &bodies, &due, &under];
        self.executed(statement, rows.len(), &values).await
    }

    async fn count(
        &self,
        statement: &Statement,
        counters: &BTreeMap<&str, i64>,
    ) -> Result<usize, tokio_postgres::Error> {
        let (names, values): (Vec<&str>, Vec<i64>) =
            counters.iter().map(|(name, value)| (*name, *value)).unzip();
        self.executed(statement, names.len(), &[&names, &values]).await
    }

    /// Not at all, if there is nothing to be done.
    async fn executed(
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

    async fn rows(
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

fn in_doubt(error: tokio_postgres::Error) -> Failure {
    match meaning(error) {
        lost @ Error::Unreachable(_) => Failure::InDoubt(lost),
        refused => Failure::Before(refused),
    }
}

/// Refuses a log that has lost what this process has seen. A standby may only be behind: it is not
/// judged before it has taken over, or has got there.
pub(crate) async fn check_seen(client: &Client, seen: Option<(u64, Hash)>) -> Result<(), Error> {
    let Some((size, head)) = seen else { return Ok(()) };
    let sql = "SELECT (SELECT hash FROM entry WHERE seq = $1), pg_is_in_recovery()";
    let row = client.query_one(sql, &[&signed(size)]).await.map_err(meaning)?;
    let found = row.get::<_, Option<&[u8]>>(0).map(hash).transpose()?;
    match found {
        Some(found) if found == head => Ok(()),
        None if row.get(1) => {
            Err(Error::Unreachable(format!("the standby does not have entry {size} yet")))
        }
        Some(_) => Err(Error::Rewound(format!("entry {size} is not the one that it was"))),
        None => Err(Error::Rewound(format!(
            "entry {size} was acknowledged, and the database does not have it any more"
        ))),
    }
}

/// The hash of an entry, if it is there.
pub(crate) async fn hash_of(client: &Client, seq: u64) -> Result<Option<Hash>, Error> {
    let sql = "SELECT hash FROM entry WHERE seq = $1";
    let row = client.query_opt(sql, &[&signed(seq)]).await.map_err(meaning)?;
    row.map(|row| hash(row.get(0))).transpose()
}

pub(crate) fn chain(bytes: &[u8]) -> Result<Chain, Error> {
    Chain::decode(bytes).map_err(|error| Error::Damaged(error.to_string()))
}

pub(crate) fn hash(bytes: &[u8]) -> Result<Hash, Error> {
    let wrong = |_| Error::Damaged("a stored hash does not have 32 bytes".into());
    Hash::try_from(bytes).map_err(wrong)
}

/// The database has no unsigned numbers; ours stay far below the limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

//! The writer's statements: each part of a commit as guarded SQL.
//!
//! A guard is part of the statement that writes (`WHERE version = expected`), so commits are written
//! optimistically, without checking first. If a later part of a commit is refused, the earlier parts
//! must be undone: the transaction is rolled back and the group is written again, checking every guard
//! first. Checking always, or a savepoint per commit, would slow down every commit for a rare case.

use ledger::{Chain, Draft, EntryRef, PrivateRef};
use rusqlite::{Connection, OptionalExtension, Row, Statement};
use store::{
    Checkpoint, Commit, Delta, DerivedTables, Error, Expect, Item, Outcome, StoredResponse,
    UnchangedKeys,
};
use store::{Receipt, Write};

use crate::error::{classify, classify_tables};

pub(crate) struct Statements<'c> {
    connection: &'c Connection,
    begin: Statement<'c>,
    commit: Statement<'c>,
    rollback: Statement<'c>,
    insert_entry: Statement<'c>,
    insert_private: Statement<'c>,
    insert_item: Statement<'c>,
    update_item: Statement<'c>,
    update_due: Statement<'c>,
    update_body: Statement<'c>,
    add_to_counter: Statement<'c>,
    start_counter: Statement<'c>,
    insert_response: Statement<'c>,
    find_response: Statement<'c>,
    find_version: Statement<'c>,
    find_counter: Statement<'c>,
}

/// Whether the guards of a commit are checked before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Optimistic,
    CheckFirst,
}

/// The result of writing a commit into the open transaction.
#[derive(Debug)]
pub(crate) enum WriteResult {
    Done(Outcome),
    /// A part was refused after others were written. Does not happen with [`WriteMode::CheckFirst`].
    MustRollBack,
}

impl<'c> Statements<'c> {
    pub(crate) fn prepare(connection: &'c Connection) -> Result<Statements<'c>, Error> {
        let sql = |text| connection.prepare(text).map_err(classify);
        Ok(Statements {
            connection,
            begin: sql("BEGIN IMMEDIATE")?,
            commit: sql("COMMIT")?,
            rollback: sql("ROLLBACK")?,
            insert_entry: sql("INSERT INTO entry VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")?,
            insert_private: sql("INSERT INTO entry_private VALUES (?1, ?2, ?3, ?4)")?,
            insert_item: sql(
                "INSERT INTO item VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            )?,
            update_item: sql("UPDATE item SET version = ?3, body = ?4, due_us = ?5, under = ?6
                              WHERE noun = ?1 AND id = ?2 AND version = ?7")?,
            update_due: sql("UPDATE item SET version = ?3, body = ?4, due_us = ?5
                             WHERE noun = ?1 AND id = ?2 AND version = ?6")?,
            update_body: sql("UPDATE item SET version = ?3, body = ?4
                              WHERE noun = ?1 AND id = ?2 AND version = ?5")?,
            add_to_counter: sql("UPDATE counter SET value = value + ?2
                                 WHERE name = ?1 AND value + ?2 BETWEEN 0 AND ?3")?,
            start_counter: sql("INSERT INTO counter SELECT ?1, ?2 WHERE ?2 BETWEEN 0 AND ?3
                                ON CONFLICT DO NOTHING")?,
            insert_response: sql(
                "INSERT INTO answer VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?,
            find_response: sql("SELECT request_hash, body FROM answer WHERE key = ?1")?,
            find_version: sql("SELECT version FROM item WHERE noun = ?1 AND id = ?2")?,
            find_counter: sql("SELECT value FROM counter WHERE name = ?1")?,
        })
    }

    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        self.begin.execute(()).map(drop).map_err(classify)
    }

    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        self.commit.execute(()).map(drop).map_err(classify)
    }

    /// Rolls back the transaction, unless SQLite already has.
    pub(crate) fn rollback(&mut self) {
        if !self.connection.is_autocommit() {
            // The next `begin` would report a failure.
            let _ = self.rollback.execute(());
        }
    }

    /// Writes one commit of a group into the open transaction. A refused commit writes nothing, unless
    /// the result is [`WriteResult::MustRollBack`].
    pub(crate) fn write(
        &mut self,
        chain: &mut Chain,
        commit: &Commit,
        mode: WriteMode,
    ) -> Result<WriteResult, Error> {
        if mode == WriteMode::CheckFirst
            && let Some(refusal) = self.find_refusal(commit)?
        {
            return Ok(WriteResult::Done(refusal));
        }
        if let Some(refused) = self.write_guarded(chain, commit)? {
            return Ok(refused);
        }
        let first = chain.size() + 1;
        for draft in &commit.drafts {
            self.append(chain, draft)?;
        }
        Ok(WriteResult::Done(Outcome::Committed(Receipt { first, last: chain.size() })))
    }

    /// Checks all guards of a commit and returns its refusal, if any. The idempotency key comes first: a
    /// repeated request conflicts with its own first commit.
    fn find_refusal(&mut self, commit: &Commit) -> Result<Option<Outcome>, Error> {
        if let Some(response) = &commit.response
            && let Some(earlier) = self.find_replay(response)?
        {
            return Ok(Some(earlier));
        }
        for write in &commit.writes {
            if self.version(write.noun, &write.id)? != write.expected_version {
                return Ok(Some(conflict(write.noun, &write.id)));
            }
        }
        if let Some(other) = self.find_conflict(commit)? {
            return Ok(Some(other));
        }
        let mut sums: Vec<(&str, i64)> = Vec::new();
        for delta in &commit.deltas {
            let known = sums.iter().rev().find(|(name, _)| *name == delta.counter);
            let value = match known {
                Some((_, value)) => *value,
                None => {
                    let found = self.find_counter.query_row([&*delta.counter], |row| row.get(0));
                    found.optional().map_err(classify_tables)?.unwrap_or_default()
                }
            };
            if !(0..=delta.max).contains(&(value + delta.add)) {
                return Ok(Some(Outcome::OverLimit { counter: delta.counter.clone() }));
            }
            sums.push((&*delta.counter, value + delta.add));
        }
        Ok(None)
    }

    /// The conflict of the first row in `expects` whose version changed, if any.
    fn find_conflict(&mut self, commit: &Commit) -> Result<Option<Outcome>, Error> {
        for Expect { noun, id, version } in &commit.expects {
            if self.version(noun, id)? != *version {
                return Ok(Some(conflict(noun, id)));
            }
        }
        Ok(None)
    }

    fn version(&mut self, noun: &str, id: &str) -> Result<u64, Error> {
        let found = self.find_version.query_row((noun, id), |row| row.get(0));
        Ok(found.optional().map_err(classify_tables)?.unwrap_or_default())
    }

    /// Writes the parts of a commit that may be refused; `None` if all were written.
    fn write_guarded(
        &mut self,
        chain: &Chain,
        commit: &Commit,
    ) -> Result<Option<WriteResult>, Error> {
        if let Some(derived) = &commit.replace_derived {
            if derived.through != chain.size() {
                return Ok(Some(WriteResult::Done(Outcome::StaleDerived { head: chain.size() })));
            }
            self.replace_derived(derived)?;
        }
        let mut parts = 0;
        let refused = |parts, refusal| {
            Ok(Some(if parts == 0 {
                WriteResult::Done(refusal)
            } else {
                WriteResult::MustRollBack
            }))
        };
        if let Some(response) = &commit.response {
            if let Some(earlier) = self.save_response(response)? {
                return refused(parts, earlier);
            }
            parts += 1;
        }
        if let Some(other) = self.find_conflict(commit)? {
            return refused(parts, other);
        }
        for write in &commit.writes {
            if !self.write_item(write)? {
                return refused(parts, conflict(write.noun, &write.id));
            }
            parts += 1;
        }
        for delta in &commit.deltas {
            if !self.add_to_counter(delta)? {
                return refused(parts, Outcome::OverLimit { counter: delta.counter.clone() });
            }
            parts += 1;
        }
        Ok(None)
    }

    /// Stores the response, or returns the outcome for a key that was used before.
    fn save_response(&mut self, response: &StoredResponse) -> Result<Option<Outcome>, Error> {
        let hash = response.request_hash.as_bytes();
        let values = (&response.key, hash, &response.body, response.at_us);
        match self.insert_response.execute(values).map_err(classify)? {
            1 => Ok(None),
            _ => self.find_replay(response),
        }
    }

    fn write_item(&mut self, write: &Write) -> Result<bool, Error> {
        let Write { noun, id, expected_version, version, body, due_us, index_key, unchanged_keys } =
            write;
        let body = body.as_deref();
        if *expected_version == 0 {
            let inserted = self.insert_item.execute((noun, id, version, body, due_us, index_key));
            return Ok(inserted.map_err(classify_tables)? == 1);
        }
        // SQLite updates the index of every column that is set, even if its value does not change.
        let updated = match unchanged_keys {
            UnchangedKeys::Both => {
                self.update_body.execute((noun, id, version, body, expected_version))
            }
            UnchangedKeys::IndexKey => {
                self.update_due.execute((noun, id, version, body, due_us, expected_version))
            }
            UnchangedKeys::Unknown => self.update_item.execute((
                noun,
                id,
                version,
                body,
                due_us,
                index_key,
                expected_version,
            )),
        };
        Ok(updated.map_err(classify_tables)? == 1)
    }

    fn add_to_counter(&mut self, delta: &Delta) -> Result<bool, Error> {
        let values = (&*delta.counter, delta.add, delta.max);
        let added = self.add_to_counter.execute(values).map_err(classify_tables)? == 1;
        Ok(added || self.start_counter.execute(values).map_err(classify_tables)? == 1)
    }

    /// The outcome for an idempotency key that was used before, if it was.
    fn find_replay(&mut self, response: &StoredResponse) -> Result<Option<Outcome>, Error> {
        let stored = |row: &Row<'_>| Ok((row.get::<_, [u8; 32]>(0)?, row.get(1)?));
        let found = self.find_response.query_row([&response.key], stored);
        let found = found.optional().map_err(classify)?;
        Ok(found.map(|(request, body)| match &request == response.request_hash.as_bytes() {
            true => Outcome::Replayed(body),
            false => Outcome::KeyTaken,
        }))
    }

    fn append(&mut self, chain: &mut Chain, draft: &Draft) -> Result<(), Error> {
        let appended = chain.append(draft);
        self.insert(&draft.appended_as(appended))
    }

    pub(crate) fn insert(&mut self, entry: &EntryRef<'_>) -> Result<(), Error> {
        let written = self.insert_entry.execute((
            entry.seq,
            entry.ts_us,
            entry.kind,
            entry.version,
            entry.actor,
            entry.role,
            entry.cause,
            entry.noun,
            entry.noun_id,
            entry.facts,
            entry.hash.as_bytes(),
        ));
        written.map_err(classify)?;
        let nothing = None::<&[u8]>;
        let written = match entry.private {
            PrivateRef::None => return Ok(()),
            PrivateRef::Present { salt, bytes } => {
                self.insert_private.execute((entry.seq, salt, bytes, nothing))
            }
            PrivateRef::Redacted { hash } => {
                self.insert_private.execute((entry.seq, nothing, nothing, hash.as_bytes()))
            }
        };
        written.map(drop).map_err(classify)
    }

    fn replace_derived(&mut self, derived: &DerivedTables) -> Result<(), Error> {
        for table in ["item", "counter"] {
            self.clear_table(table).map_err(classify)?;
        }
        for item in &derived.items {
            let Item { noun, id, version, body, due_us, index_key } = item;
            let row = (noun, id, version, body.as_deref(), due_us, index_key);
            self.insert_item.execute(row).map_err(classify_tables)?;
        }
        for (name, value) in &derived.counters {
            self.start_counter.execute((name, value, i64::MAX)).map_err(classify_tables)?;
        }
        Ok(())
    }

    /// Deletes all rows of a table. Deleting walks through all its pages, and a damaged table may point to
    /// pages of the ledger, so a damaged table is removed from the schema and created again. Its pages
    /// are lost.
    fn clear_table(&mut self, table: &str) -> Result<(), rusqlite::Error> {
        let check = format!("PRAGMA quick_check({table})");
        let found = self.connection.query_row(&check, (), |row| row.get::<_, String>(0));
        if found.is_ok_and(|found| found == "ok") {
            return self.connection.execute_batch(&format!("DELETE FROM {table}"));
        }
        // Creates the table before its indexes.
        let sql = "SELECT group_concat(sql, ';' ORDER BY type = 'index') FROM sqlite_schema
                   WHERE tbl_name = ?1";
        let create: String = self.connection.query_row(sql, [table], |row| row.get(0))?;
        self.connection.execute_batch(&format!(
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE tbl_name = '{table}';
             PRAGMA writable_schema = RESET; {create};"
        ))
    }

    /// Ignores a second checkpoint of the same size, and its chain.
    pub(crate) fn save_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let sql = "INSERT INTO checkpoint VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let values = (checkpoint.chain.size(), &checkpoint.note);
        if self.connection.execute(sql, values).map_err(classify)? == 1 {
            self.clear_table("resume").map_err(classify)?;
            let sql = "INSERT INTO resume VALUES (1, ?1)";
            self.connection.execute(sql, [checkpoint.chain.encode()]).map_err(classify)?;
        }
        Ok(())
    }

    pub(crate) fn delete_responses(&mut self, before_us: i64) -> Result<(), Error> {
        let sql = "DELETE FROM answer WHERE at_us < ?1";
        self.connection.execute(sql, [before_us]).map(drop).map_err(classify)
    }
}

fn conflict(noun: &'static str, id: &str) -> Outcome {
    Outcome::Conflict { noun, id: id.to_owned() }
}

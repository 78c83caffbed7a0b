//! The writer's statements: each part of a commit as guarded SQL.
//!
//! A guard is part of the statement that writes ("where the version is still the expected one"), so
//! a commit is written boldly. When a later part of it is refused, an earlier one must be undone: then
//! the group is written again with care, which looks at every guard before it writes. Looking always,
//! or a savepoint for each commit, would cost every commit what only a rare one needs.

use ledger::{Chain, Draft, Fields, PrivateRef};
use rusqlite::{Connection, OptionalExtension, Row, Statement};
use store::{Answer, Checkpoint, Commit, Delta, Derived, Error, Expect, Item, Keeps, Outcome};
use store::{Receipt, Write};

use crate::error::{meaning, of_tables};

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
    insert_answer: Statement<'c>,
    find_answer: Statement<'c>,
    find_version: Statement<'c>,
    find_counter: Statement<'c>,
}

/// How a commit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Bold,
    /// Looks at every guard first.
    Careful,
}

/// What came of writing a commit.
#[derive(Debug)]
pub(crate) enum Written {
    Done(Outcome),
    /// A part was refused after others were written. Never after care.
    MustUndo,
}

impl<'c> Statements<'c> {
    pub(crate) fn prepare(connection: &'c Connection) -> Result<Statements<'c>, Error> {
        let sql = |text| connection.prepare(text).map_err(meaning);
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
            insert_answer: sql(
                "INSERT INTO answer VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?,
            find_answer: sql("SELECT request_hash, body FROM answer WHERE key = ?1")?,
            find_version: sql("SELECT version FROM item WHERE noun = ?1 AND id = ?2")?,
            find_counter: sql("SELECT value FROM counter WHERE name = ?1")?,
        })
    }

    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        self.begin.execute(()).map(drop).map_err(meaning)
    }

    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        self.commit.execute(()).map(drop).map_err(meaning)
    }

    /// Ends a transaction, unless SQLite has ended it by itself.
    pub(crate) fn rollback(&mut self) {
        if !self.connection.is_autocommit() {
            // Nothing can be done about a failure, and the next `begin` would report it.
            let _ = self.rollback.execute(());
        }
    }

    /// Writes one commit of several into the open transaction. A refusal leaves nothing of it, unless
    /// it says that the transaction must be undone.
    pub(crate) fn write(
        &mut self,
        chain: &mut Chain,
        commit: &Commit,
        manner: Manner,
    ) -> Result<Written, Error> {
        if manner == Manner::Careful
            && let Some(refusal) = self.look(commit)?
        {
            return Ok(Written::Done(refusal));
        }
        if let Some(refused) = self.write_guarded(chain, commit)? {
            return Ok(refused);
        }
        let first = chain.size() + 1;
        for draft in &commit.drafts {
            self.append(chain, draft)?;
        }
        Ok(Written::Done(Outcome::Committed(Receipt { first, last: chain.size() })))
    }

    /// Why a commit of several parts would be refused. A key that was answered comes first: its
    /// request may have been overtaken by what it did itself.
    fn look(&mut self, commit: &Commit) -> Result<Option<Outcome>, Error> {
        if let Some(answer) = &commit.answer
            && let Some(earlier) = self.earlier(answer)?
        {
            return Ok(Some(earlier));
        }
        for write in &commit.writes {
            if self.version(write.noun, &write.id)? != write.expected {
                return Ok(Some(conflict(write.noun, &write.id)));
            }
        }
        if let Some(other) = self.unexpected(commit)? {
            return Ok(Some(other));
        }
        let mut sums: Vec<(&str, i64)> = Vec::new();
        for delta in &commit.deltas {
            let known = sums.iter().rev().find(|(name, _)| *name == delta.counter);
            let value = match known {
                Some((_, value)) => *value,
                None => {
                    let found = self.find_counter.query_row([&*delta.counter], |row| row.get(0));
                    found.optional().map_err(of_tables)?.unwrap_or_default()
                }
            };
            if !(0..=delta.max).contains(&(value + delta.add)) {
                return Ok(Some(Outcome::OverLimit { counter: delta.counter.clone() }));
            }
            sums.push((&*delta.counter, value + delta.add));
        }
        Ok(None)
    }

    /// Whether a row that is not written is another than it must be.
    fn unexpected(&mut self, commit: &Commit) -> Result<Option<Outcome>, Error> {
        for Expect { noun, id, version } in &commit.expects {
            if self.version(noun, id)? != *version {
                return Ok(Some(conflict(noun, id)));
            }
        }
        Ok(None)
    }

    fn version(&mut self, noun: &str, id: &str) -> Result<u64, Error> {
        let found = self.find_version.query_row((noun, id), |row| row.get(0));
        Ok(found.optional().map_err(of_tables)?.unwrap_or_default())
    }

    /// The parts of a commit that may be refused; `None` when all were written.
    fn write_guarded(&mut self, chain: &Chain, commit: &Commit) -> Result<Option<Written>, Error> {
        if let Some(derived) = &commit.replace {
            if derived.through != chain.size() {
                return Ok(Some(Written::Done(Outcome::Moved { head: chain.size() })));
            }
            self.replace(derived)?;
        }
        let mut parts = 0;
        let refused = |parts, refusal| {
            Ok(Some(if parts == 0 { Written::Done(refusal) } else { Written::MustUndo }))
        };
        if let Some(answer) = &commit.answer {
            if let Some(earlier) = self.keep_answer(answer)? {
                return refused(parts, earlier);
            }
            parts += 1;
        }
        if let Some(other) = self.unexpected(commit)? {
            return refused(parts, other);
        }
        for write in &commit.writes {
            if !self.write_item(write)? {
                return refused(parts, conflict(write.noun, &write.id));
            }
            parts += 1;
        }
        for delta in &commit.deltas {
            if !self.add(delta)? {
                return refused(parts, Outcome::OverLimit { counter: delta.counter.clone() });
            }
            parts += 1;
        }
        Ok(None)
    }

    /// Keeps the answer to a key, or tells what it was answered before.
    fn keep_answer(&mut self, answer: &Answer) -> Result<Option<Outcome>, Error> {
        let hash = answer.request_hash.as_bytes();
        let values = (&answer.key, hash, &answer.body, answer.at_us);
        match self.insert_answer.execute(values).map_err(meaning)? {
            1 => Ok(None),
            _ => self.earlier(answer),
        }
    }

    fn write_item(&mut self, write: &Write) -> Result<bool, Error> {
        let Write { noun, id, expected, version, body, due_us, under, keeps } = write;
        let body = body.as_deref();
        if *expected == 0 {
            let inserted = self.insert_item.execute((noun, id, version, body, due_us, under));
            return Ok(inserted.map_err(of_tables)? == 1);
        }
        // A column that is set has its index written, whether or not it changes.
        let updated = match keeps {
            Keeps::Both => self.update_body.execute((noun, id, version, body, expected)),
            Keeps::Under => self.update_due.execute((noun, id, version, body, due_us, expected)),
            Keeps::Unknown => {
                self.update_item.execute((noun, id, version, body, due_us, under, expected))
            }
        };
        Ok(updated.map_err(of_tables)? == 1)
    }

    fn add(&mut self, delta: &Delta) -> Result<bool, Error> {
        let values = (&*delta.counter, delta.add, delta.max);
        let added = self.add_to_counter.execute(values).map_err(of_tables)? == 1;
        Ok(added || self.start_counter.execute(values).map_err(of_tables)? == 1)
    }

    /// What a key was answered before.
    fn earlier(&mut self, answer: &Answer) -> Result<Option<Outcome>, Error> {
        let earlier = |row: &Row<'_>| Ok((row.get::<_, [u8; 32]>(0)?, row.get(1)?));
        let found = self.find_answer.query_row([&answer.key], earlier);
        let found = found.optional().map_err(meaning)?;
        Ok(found.map(|(request, body)| match &request == answer.request_hash.as_bytes() {
            true => Outcome::Answered(body),
            false => Outcome::KeyTaken,
        }))
    }

    fn append(&mut self, chain: &mut Chain, draft: &Draft) -> Result<(), Error> {
        let sealed = chain.seal(draft);
        self.insert(&draft.fields(sealed))
    }

    pub(crate) fn insert(&mut self, fields: &Fields<'_>) -> Result<(), Error> {
        let written = self.insert_entry.execute((
            fields.seq,
            fields.ts_us,
            fields.kind,
            fields.version,
            fields.actor,
            fields.role,
            fields.cause,
            fields.noun,
            fields.noun_id,
            fields.facts,
            fields.hash.as_bytes(),
        ));
        written.map_err(meaning)?;
        let nothing = None::<&[u8]>;
        let written = match fields.private {
            PrivateRef::None => return Ok(()),
            PrivateRef::Present { salt, bytes } => {
                self.insert_private.execute((fields.seq, salt, bytes, nothing))
            }
            PrivateRef::Redacted { hash } => {
                self.insert_private.execute((fields.seq, nothing, nothing, hash.as_bytes()))
            }
        };
        written.map(drop).map_err(meaning)
    }

    fn replace(&mut self, derived: &Derived) -> Result<(), Error> {
        for table in ["item", "counter"] {
            self.empty(table).map_err(meaning)?;
        }
        for item in &derived.items {
            let Item { noun, id, version, body, due_us, under } = item;
            let row = (noun, id, version, body.as_deref(), due_us, under);
            self.insert_item.execute(row).map_err(of_tables)?;
        }
        for (name, value) in &derived.counters {
            self.start_counter.execute((name, value, i64::MAX)).map_err(of_tables)?;
        }
        Ok(())
    }

    /// Clearing a table walks all its pages, and a damaged one may lead into pages of the log. So a
    /// damaged table is not cleared but forgotten, and a new one takes its name; the pages are lost.
    fn empty(&mut self, table: &str) -> Result<(), rusqlite::Error> {
        let check = format!("PRAGMA quick_check({table})");
        let found = self.connection.query_row(&check, (), |row| row.get::<_, String>(0));
        if found.is_ok_and(|found| found == "ok") {
            return self.connection.execute_batch(&format!("DELETE FROM {table}"));
        }
        // The table comes before its indexes.
        let sql = "SELECT group_concat(sql, ';' ORDER BY type = 'index') FROM sqlite_schema
                   WHERE tbl_name = ?1";
        let create: String = self.connection.query_row(sql, [table], |row| row.get(0))?;
        self.connection.execute_batch(&format!(
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE tbl_name = '{table}';
             PRAGMA writable_schema = RESET; {create};"
        ))
    }

    /// A second checkpoint for a size is not kept; neither is its chain.
    pub(crate) fn keep_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let sql = "INSERT INTO checkpoint VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let values = (checkpoint.chain.size(), &checkpoint.note);
        if self.connection.execute(sql, values).map_err(meaning)? == 1 {
            self.empty("resume").map_err(meaning)?;
            let sql = "INSERT INTO resume VALUES (1, ?1)";
            self.connection.execute(sql, [checkpoint.chain.encode()]).map_err(meaning)?;
        }
        Ok(())
    }

    pub(crate) fn forget_answers(&mut self, before_us: i64) -> Result<(), Error> {
        let sql = "DELETE FROM answer WHERE at_us < ?1";
        self.connection.execute(sql, [before_us]).map(drop).map_err(meaning)
    }
}

fn conflict(noun: &'static str, id: &str) -> Outcome {
    Outcome::Conflict { noun, id: id.to_owned() }
}

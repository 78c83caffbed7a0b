//! Reads the decisions of a ledger: the entries of each, and the rows that it wrote.

use std::collections::BTreeMap;

use kernel::event::Label;
use kernel::{EventBody, Noun, Row, Tables, Timestamp};
use ledger::{Entry, canonical_json};
use store::{PAGE_ENTRIES_MAX, Page, Store, UnchangedKeys, Write};

#[derive(Debug, Default)]
pub(crate) struct Decision {
    pub(crate) fires: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) writes: Vec<Write>,
}

/// Folds over a ledger and returns its decisions.
pub(crate) struct DecisionReader<'a> {
    store: &'a dyn Store,
    tables: Tables,
    position: u64,
}

impl<'a> DecisionReader<'a> {
    pub(crate) fn of(store: &'a dyn Store) -> DecisionReader<'a> {
        DecisionReader { store, tables: Tables::default(), position: 0 }
    }

    /// The decisions up to entry `end`, or at least `count` of them.
    pub(crate) async fn until(&mut self, end: u64, count: usize) -> anyhow::Result<Vec<Decision>> {
        let mut found = Vec::new();
        while self.position < end && found.len() < count {
            let limit = usize::try_from(end - self.position)?.min(PAGE_ENTRIES_MAX);
            let page = self.store.entries(self.position, limit).await?;
            found.extend(decisions(&mut self.tables, &page)?);
            self.position = page.last_seq().unwrap_or(end);
        }
        Ok(found)
    }

    /// Skips the entries up to `end`.
    pub(crate) async fn skip(&mut self, end: u64) -> anyhow::Result<()> {
        while self.position < end {
            self.until(end, 1).await?;
        }
        Ok(())
    }
}

/// The rows before a decision.
type Before = BTreeMap<(Noun, String), Row>;

/// The decisions of a page: consecutive entries of one schedule at one instant belong together.
fn decisions(tables: &mut Tables, page: &Page) -> anyhow::Result<Vec<Decision>> {
    let mut decisions: Vec<Decision> = Vec::new();
    let mut last = (0, String::new());
    let mut before = Before::new();
    for fields in page.iter() {
        let label = Label { kind: fields.kind, version: fields.version, noun_id: fields.noun_id };
        let body =
            EventBody::decode(label, &mut serde_json::Deserializer::from_slice(fields.facts))?;
        let rows = body.changed_rows();
        let progress = rows.iter().find(|row| row.noun == Noun::Progress);
        let key = (fields.ts_us, progress.map(|row| row.id.clone()).unwrap_or_default());
        if key != last || decisions.is_empty() {
            finish(&mut decisions, tables, std::mem::take(&mut before))?;
            decisions.push(Decision::default());
            last = key;
        }
        for row in rows {
            let key = (row.noun, row.id);
            let found = || tables.rows.get(&key).cloned().unwrap_or_default();
            before.entry(key.clone()).or_insert_with(found);
        }
        tables.apply(&body);
        if let Some(decision) = decisions.last_mut() {
            decision.fires += u64::from(fields.kind == "run.queued");
            decision.entries.push(fields.to_owned());
        }
    }
    finish(&mut decisions, tables, before)?;
    Ok(decisions)
}

/// Adds the rows of the last decision.
fn finish(decisions: &mut [Decision], tables: &Tables, before: Before) -> anyhow::Result<()> {
    let Some(decision) = decisions.last_mut() else { return Ok(()) };
    for (key, before) in before {
        let Some(row) = tables.rows.get(&key) else { continue };
        let unchanged_keys =
            match (before.due() == row.due(), before.index_key() == row.index_key()) {
                (true, true) => UnchangedKeys::Both,
                (false, true) => UnchangedKeys::IndexKey,
                (_, false) => UnchangedKeys::Unknown,
            };
        decision.writes.push(Write {
            noun: key.0.name(),
            id: key.1,
            expected_version: before.version,
            version: row.version,
            body: row.state.as_ref().map(canonical_json).transpose()?.map(Into::into),
            due_us: row.due().map(Timestamp::as_micros),
            index_key: row.index_key(),
            unchanged_keys,
        });
    }
    Ok(())
}

//! What each decision of a log has written: its entries, and the rows as it has left them.

use std::collections::BTreeMap;

use kernel::event::Label;
use kernel::tables::touched;
use kernel::{Body, Noun, Row, Tables, Timestamp};
use ledger::{Entry, canonical};
use store::{Keeps, PAGE_ENTRIES_MAX, Page, Store, Write};

/// What one decision has written.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) fires: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) writes: Vec<Write>,
}

/// A fold over a log that tells of every step.
pub(crate) struct Steps<'a> {
    store: &'a dyn Store,
    tables: Tables,
    place: u64,
}

impl<'a> Steps<'a> {
    pub(crate) fn of(store: &'a dyn Store) -> Steps<'a> {
        Steps { store, tables: Tables::default(), place: 0 }
    }

    /// The steps up to a place of the log, or about so many of them.
    pub(crate) async fn until(&mut self, end: u64, count: usize) -> anyhow::Result<Vec<Step>> {
        let mut gathered = Vec::new();
        while self.place < end && gathered.len() < count {
            let limit = usize::try_from(end - self.place)?.min(PAGE_ENTRIES_MAX);
            let page = self.store.entries(self.place, limit).await?;
            gathered.extend(steps(&mut self.tables, &page)?);
            self.place = page.last_seq().unwrap_or(end);
        }
        Ok(gathered)
    }

    /// Goes on to a place of the log.
    pub(crate) async fn skip(&mut self, end: u64) -> anyhow::Result<()> {
        while self.place < end {
            self.until(end, 1).await?;
        }
        Ok(())
    }
}

/// Rows as a decision has found them.
type Before = BTreeMap<(Noun, String), Row>;

/// The decisions of a page: entries of one schedule at one instant are of the same.
fn steps(tables: &mut Tables, page: &Page) -> anyhow::Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut last = (0, String::new());
    let mut before = Before::new();
    for fields in page.iter() {
        let label = Label { kind: fields.kind, version: fields.version, noun_id: fields.noun_id };
        let body = Body::decode(label, &mut serde_json::Deserializer::from_slice(fields.facts))?;
        let rows = touched(&body);
        let progress = rows.iter().find(|row| row.noun == Noun::Progress);
        let decision = (fields.ts_us, progress.map(|row| row.id.clone()).unwrap_or_default());
        if decision != last || steps.is_empty() {
            finish(&mut steps, tables, std::mem::take(&mut before))?;
            steps.push(Step::default());
            last = decision;
        }
        for row in rows {
            let key = (row.noun, row.id);
            let found = || tables.rows.get(&key).cloned().unwrap_or_default();
            before.entry(key.clone()).or_insert_with(found);
        }
        tables.apply(&body);
        if let Some(step) = steps.last_mut() {
            step.fires += u64::from(fields.kind == "run.queued");
            step.entries.push(fields.to_owned());
        }
    }
    finish(&mut steps, tables, before)?;
    Ok(steps)
}

/// The rows of the last decision, as it has left them.
fn finish(steps: &mut [Step], tables: &Tables, before: Before) -> anyhow::Result<()> {
    let Some(step) = steps.last_mut() else { return Ok(()) };
    for (key, before) in before {
        let Some(row) = tables.rows.get(&key) else { continue };
        let keeps = match (before.due() == row.due(), before.under() == row.under()) {
            (true, true) => Keeps::Both,
            (false, true) => Keeps::Under,
            (_, false) => Keeps::Unknown,
        };
        step.writes.push(Write {
            noun: key.0.name(),
            id: key.1,
            expected: before.version,
            version: row.version,
            body: row.state.as_ref().map(canonical).transpose()?.map(Into::into),
            due_us: row.due().map(Timestamp::as_micros),
            under: row.under(),
            keeps,
        });
    }
    Ok(())
}

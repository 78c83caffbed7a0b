//! The tables beside the log: rows that changed after every step, everything at the end.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use kernel::{Noun, Timestamp};
use ledger::canonical;
use store::{Derived, Item};

use super::Audit;

impl Audit {
    pub(super) fn check_rows(&self, rows: BTreeSet<(Noun, String)>) -> Result<()> {
        for (noun, id) in rows {
            let Some(folded) = self.tables.rows.get(&(noun, id.clone())) else { continue };
            let stored = self.peek.row(noun, &id);
            let body = folded.state.as_ref().map(canonical).transpose()?;
            let is_same =
                stored.version == folded.version && stored.body.as_deref() == body.as_deref();
            ensure!(is_same, "the row of {} {id} is not what the log says", noun.name());
        }
        Ok(())
    }

    /// A rebuild would change nothing.
    pub(in crate::watch) fn check_tables(&self) -> Result<()> {
        let (stored, folded) = (self.peek.derived(), self.derived()?);
        if stored == folded {
            return Ok(());
        }
        let first = stored.items.iter().find(|item| !folded.items.contains(item));
        bail!("the tables are not what the log says: {first:?}, counters {:?}", stored.counters)
    }

    fn derived(&self) -> Result<Derived> {
        let mut items = Vec::with_capacity(self.tables.rows.len());
        for ((noun, id), row) in &self.tables.rows {
            let body = row.state.as_ref().map(canonical).transpose()?;
            items.push(Item {
                noun: noun.name().to_owned(),
                id: id.clone(),
                version: row.version,
                body: body.map(Into::into),
                due_us: row.due().map(Timestamp::as_micros),
                under: row.under(),
            });
        }
        items.sort();
        let counters = self.tables.counters.iter().filter(|(_, value)| **value != 0);
        let mut counters: Vec<_> =
            counters.map(|(counter, value)| (counter.name().to_owned(), *value)).collect();
        counters.sort();
        Ok(Derived { through: self.chain.size(), items, counters })
    }
}

//! The tables beside the log: rows that changed after every step, everything at the end.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use kernel::Noun;
use ledger::canonical;

use super::Audit;
use crate::fold::derived;

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
        let (stored, folded) = (self.peek.derived(), derived(&self.tables, self.chain.size())?);
        if stored == folded {
            return Ok(());
        }
        let first = stored.items.iter().find(|item| !folded.items.contains(item));
        bail!("the tables are not what the log says: {first:?}, counters {:?}", stored.counters)
    }
}

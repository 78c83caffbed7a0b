//! Compares the tables with the ledger: changed rows after every step, all rows at the end.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use kernel::Noun;
use ledger::canonical_json;

use super::Audit;
use crate::fold::derived;

impl Audit {
    pub(super) fn check_rows(&self, rows: BTreeSet<(Noun, String)>) -> Result<()> {
        for (noun, id) in rows {
            let Some(folded) = self.tables.rows.get(&(noun, id.clone())) else { continue };
            let stored = self.view.row(noun, &id);
            let body = folded.state.as_ref().map(canonical_json).transpose()?;
            let is_same =
                stored.version == folded.version && stored.body.as_deref() == body.as_deref();
            ensure!(is_same, "the row of {} {id} differs from the ledger", noun.name());
        }
        Ok(())
    }

    pub(in crate::engine) fn check_tables(&self) -> Result<()> {
        let (stored, folded) = (self.view.derived(), derived(&self.tables, self.chain.size())?);
        if stored == folded {
            return Ok(());
        }
        let first = stored.items.iter().find(|item| !folded.items.contains(item));
        bail!("the tables differ from the ledger: {first:?}, counters {:?}", stored.counters)
    }
}

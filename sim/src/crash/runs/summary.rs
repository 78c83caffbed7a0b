//! The summary of a campaign of runs, as text and JSON.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::reconcile::{Ended, Reconciliation};
use crate::crash::audit::Audit;
use crate::crash::{Options, Verdict, print};

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) seed: u64,
    pub(super) cycles: u64,
    /// Cycles in which the daemon was killed soon after its start.
    pub(super) early: u64,
    pub(super) schedules: u64,
    /// Entries of the ledger, including those that the daemon writes about itself.
    pub(super) entries: u64,
    #[serde(flatten)]
    pub(super) reconciliation: Reconciliation,
    pub(super) seconds: u64,
}

impl Summary {
    /// Stores the reconciliation, and fails if it has violations.
    pub(super) fn set_reconciliation(&mut self, found: Reconciliation) -> Result<()> {
        let violations = found.violations.join("\n");
        self.reconciliation = found;
        ensure!(violations.is_empty(), "the ledger does not match the effects:\n{violations}");
        Ok(())
    }

    /// Prints the summary, and returns the result of the campaign.
    pub(super) fn conclude(
        &mut self,
        audit: &Audit,
        elapsed: Duration,
        outcome: Result<()>,
        options: &Options,
    ) -> Result<Verdict> {
        (self.entries, self.seconds) = (audit.entries(), elapsed.as_secs());
        print(self, options)?;
        Ok(Verdict { cycle: self.cycles, outcome })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { seed, cycles, early, schedules, entries, reconciliation, seconds } = self;
        let Reconciliation { slots, once, repeatable, needs_approval, .. } = reconciliation;
        let Reconciliation { consumed, denied, lines, repeated, lost, doubled, .. } =
            reconciliation;
        write!(
            out,
            "{cycles} cycles ({early} early), seed {seed}: {schedules} schedules, {slots} slots; \
             runs that take effect once: {once}; repeatable runs: {repeatable}; "
        )?;
        if *needs_approval != Ended::default() {
            write!(out, "runs that need approval: {needs_approval}, ")?;
            write!(out, "{consumed} approvals consumed, {denied} denied; ")?;
        }
        write!(
            out,
            "{lines} effects, {lost} lost, {doubled} doubled; {repeated} attempts repeated; \
             {entries} entries; {seconds} s"
        )
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ended { done, unknown, failed, cancelled, live } = self;
        write!(out, "{done} done, {unknown} unknown, {failed} failed, {cancelled} cancelled")?;
        if *live != 0 {
            write!(out, ", {live} not ended")?;
        }
        Ok(())
    }
}

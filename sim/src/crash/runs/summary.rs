//! What a campaign of runs did, for people and for scripts.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::account::{Account, Ended};
use crate::crash::audit::Audit;
use crate::crash::{Options, Verdict, print};

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) seed: u64,
    pub(super) cycles: u64,
    /// Cycles in which the daemon was killed soon after its start.
    pub(super) early: u64,
    pub(super) schedules: u64,
    /// Of the log, with what the daemon writes about itself.
    pub(super) entries: u64,
    #[serde(flatten)]
    pub(super) account: Account,
    pub(super) seconds: u64,
}

impl Summary {
    /// Keeps an account. An error says what is wrong with it.
    pub(super) fn take(&mut self, account: Account) -> Result<()> {
        let wrong = account.wrong.join("\n");
        self.account = account;
        ensure!(wrong.is_empty(), "the log and the world do not agree:\n{wrong}");
        Ok(())
    }

    /// Tells how a campaign went.
    pub(super) fn told(
        &mut self,
        audit: &Audit,
        took: Duration,
        outcome: Result<()>,
        options: &Options,
    ) -> Result<Verdict> {
        (self.entries, self.seconds) = (audit.entries(), took.as_secs());
        print(self, options)?;
        Ok(Verdict { cycle: self.cycles, outcome })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { seed, cycles, early, schedules, entries, account, seconds } = self;
        let Account { slots, once, repeatable, asked, consumed, denied, lines, .. } = account;
        let Account { repeated, lost, doubled, .. } = account;
        write!(
            out,
            "{cycles} cycles ({early} early), seed {seed}: {schedules} schedules, {slots} slots; \
             runs that are done once: {once}; repeatable runs: {repeatable}; "
        )?;
        if *asked != Ended::default() {
            write!(out, "runs that are asked about: {asked}, ")?;
            write!(out, "{consumed} times with a yes, {denied} with a no; ")?;
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
            write!(out, ", {live} left behind")?;
        }
        Ok(())
    }
}

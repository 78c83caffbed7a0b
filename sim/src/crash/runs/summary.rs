//! What a campaign of runs did, for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::account::{Account, Ended};

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

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { seed, cycles, early, schedules, entries, account, seconds } = self;
        let Account { slots, once, repeatable, asked, consumed, denied, lines, .. } = account;
        let Account { repeated, lost, doubled, .. } = account;
        write!(
            out,
            "{cycles} cycles ({early} early), seed {seed}: {schedules} schedules, {slots} slots; \
             runs that are done once: {once}; repeatable runs: {repeatable}; \
             runs that are asked about: {asked}, {consumed} times with a yes, {denied} with a no; \
             {lines} effects, {lost} lost, {doubled} doubled; {repeated} attempts repeated; \
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

//! The summary of a campaign, as text and JSON.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;

use super::writers::{CallResult, EarlierResult, FinishedCall};

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) seed: u64,
    pub(super) writers: u64,
    pub(super) cycles: u64,
    /// Cycles in which the daemon was killed soon after its start, mostly before it was ready.
    pub(super) early: u64,
    /// New directories whose first daemon was killed.
    pub(super) first_starts: u64,
    pub(super) acknowledged: u64,
    /// Entries of the ledger, including those that the daemon writes about itself.
    pub(super) entries: u64,
    pub(super) checkpoints: usize,
    pub(super) retried: Retried,
    /// Acknowledged changes that were repeated after a restart and got the same response.
    pub(super) repeated: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) seconds: u64,
}

/// Interrupted calls that were sent again with the same key, by the result.
#[derive(Debug, Default, Serialize)]
pub(super) struct Retried {
    pub(super) calls: u64,
    /// The change was recorded, and the response was the first one.
    pub(super) recorded: u64,
    /// The change was not recorded, and was made now.
    pub(super) executed: u64,
    /// The change was not recorded, and was no longer possible.
    pub(super) refused: u64,
    pub(super) interrupted_again: u64,
}

impl Summary {
    /// Counts a call. A recorded change must not be refused when it is retried.
    pub(super) fn count(&mut self, FinishedCall { call, result }: &FinishedCall) -> Result<()> {
        let is_acknowledged = matches!(result, CallResult::Acknowledged(_));
        self.acknowledged += u64::from(is_acknowledged);
        if call.earlier == EarlierResult::NotSent {
            return Ok(());
        }
        let retried = &mut self.retried;
        retried.calls += 1;
        *match (call.earlier, result) {
            (EarlierResult::Recorded, CallResult::Refused) => {
                bail!("`{}` is in the ledger, and its retry was refused", call.key)
            }
            (_, CallResult::Unanswered) => &mut retried.interrupted_again,
            (EarlierResult::Recorded, CallResult::Acknowledged(_)) => &mut retried.recorded,
            (_, CallResult::Acknowledged(_)) => &mut retried.executed,
            (_, CallResult::Refused) => &mut retried.refused,
        } += 1;
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { seed, cycles, writers, early, first_starts, .. } = self;
        let Summary {
            acknowledged,
            entries,
            checkpoints,
            retried,
            repeated,
            lost,
            doubled,
            seconds,
            ..
        } = self;
        let Retried { calls, recorded, executed, refused, interrupted_again } = retried;
        write!(
            out,
            "{cycles} cycles ({early} early, {first_starts} first starts besides), {writers} writers, seed {seed}: \
             {acknowledged} changes acknowledged, {lost} lost, {doubled} doubled; \
             {entries} entries, {checkpoints} checkpoints; \
             {calls} calls retried: {recorded} were recorded, {executed} executed, \
             {refused} refused, {interrupted_again} interrupted again; \
             {repeated} acknowledged calls repeated; {seconds} s"
        )
    }
}

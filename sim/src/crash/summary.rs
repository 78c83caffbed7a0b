//! What a campaign did, for people and for scripts.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;

use super::writers::{Ending, History, Made};

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) seed: u64,
    pub(super) writers: u64,
    pub(super) cycles: u64,
    /// Cycles in which the daemon was killed soon after its start, mostly before it was ready.
    pub(super) early: u64,
    /// New directories whose first daemon was killed.
    pub(super) births: u64,
    /// Changes that the daemon said it had made.
    pub(super) acknowledged: u64,
    /// Of the log, with what the daemon writes about itself.
    pub(super) entries: u64,
    pub(super) checkpoints: usize,
    pub(super) retried: Retried,
    /// Acknowledged changes that were asked for again after a restart and got the same answer.
    pub(super) repeated: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) seconds: u64,
}

/// Calls that were cut off and made again with the same key, by how that ended.
#[derive(Debug, Default, Serialize)]
pub(super) struct Retried {
    pub(super) calls: u64,
    /// It had happened, and the answer said so.
    pub(super) as_the_first_time: u64,
    /// It had not happened, and did now.
    pub(super) anew: u64,
    /// It had not happened, and was not possible any more.
    pub(super) refused: u64,
    pub(super) cut_off_again: u64,
}

impl Summary {
    /// Counts a call. A change that is in the log must be answered with its first answer.
    pub(super) fn count(&mut self, Made { attempt, ending }: &Made) -> Result<()> {
        let is_acknowledged = matches!(ending, Ending::Acknowledged(_));
        self.acknowledged += u64::from(is_acknowledged);
        if attempt.history == History::New {
            return Ok(());
        }
        let retried = &mut self.retried;
        retried.calls += 1;
        *match (attempt.history, ending) {
            (History::Landed, Ending::Refused) => {
                bail!("`{}` is in the log, and was refused when it was tried again", attempt.key)
            }
            (_, Ending::Unanswered) => &mut retried.cut_off_again,
            (History::Landed, Ending::Acknowledged(_)) => &mut retried.as_the_first_time,
            (_, Ending::Acknowledged(_)) => &mut retried.anew,
            (_, Ending::Refused) => &mut retried.refused,
        } += 1;
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { seed, cycles, writers, early, births, .. } = self;
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
        let Retried { calls, as_the_first_time, anew, refused, cut_off_again } = retried;
        write!(
            out,
            "{cycles} cycles ({early} early, {births} births besides), {writers} writers, seed {seed}: \
             {acknowledged} changes acknowledged, {lost} lost, {doubled} doubled; \
             {entries} entries, {checkpoints} checkpoints; \
             {calls} calls retried: {as_the_first_time} answered as the first time, {anew} anew, \
             {refused} refused, {cut_off_again} cut off again; \
             {repeated} acknowledged calls repeated; {seconds} s"
        )
    }
}

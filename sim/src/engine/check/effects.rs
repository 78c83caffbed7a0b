//! Compares the effects that the backend recorded with the ledger: S2 and S6.

use anyhow::{Context, Result, ensure};
use kernel::RunId;
use kernel::run::Outcome;

use super::super::scripted_backend::{AttemptRecord, Attempts};
use super::Audit;
use super::run::{Phase, RunTrack, StartedAttempt};

impl Audit {
    pub(super) fn check_effects(&self, attempts: &Attempts) -> Result<()> {
        for ((run, epoch), record) in attempts {
            let id: RunId = run.parse()?;
            let track =
                self.runs.get(&id).with_context(|| format!("S2: {run} is not in the ledger"))?;
            let last = track.epoch;
            ensure!(*epoch <= last, "S2: attempt {epoch} of {run} started, the ledger has {last}");
            let about = || format!("attempt {epoch} of {run}");
            let start = track.starts.get(epoch).with_context(about)?;
            let (received, recorded) = (&record.prompt, &start.prompt);
            ensure!(received == recorded, "{run} received `{received}`, recorded is `{recorded}`");
            self.check_cancel(&id, track, record).with_context(about)?;
        }
        for (id, run) in &self.runs {
            let from = (id.to_string(), 0);
            let own = attempts.range(from..).take_while(|((other, _), _)| other == id.as_str());
            let effects = own.filter(|(_, record)| record.has_effect).map(|((_, epoch), _)| epoch);
            check_count(run, effects).with_context(|| format!("run {id}: {run:?}"))?;
        }
        Ok(())
    }

    /// No attempt of a run starts after its cancel was acknowledged.
    fn check_cancel(&self, id: &RunId, run: &RunTrack, record: &AttemptRecord) -> Result<()> {
        let Some((acknowledged_us, requeued)) = self.cancels.get(id) else { return Ok(()) };
        let is_late = *acknowledged_us < record.started_us && *requeued == run.requeued;
        ensure!(!is_late, "S6: it started after the cancel was acknowledged");
        Ok(())
    }
}

/// Checks the attempts that took effect: none follows one that must not be repeated, except after a manual retry.
fn check_count<'a>(run: &RunTrack, effects: impl Iterator<Item = &'a u32>) -> Result<()> {
    let mut last: Option<&StartedAttempt> = None;
    for start in effects.filter_map(|epoch| run.starts.get(epoch)) {
        let is_again = last.is_some_and(|it| !it.is_repeatable && it.requeued == start.requeued);
        ensure!(!is_again, "S2: it took effect again");
        last = Some(start);
    }
    let is_done = run.phase == Phase::Ended(Outcome::Done) && !run.is_settled;
    ensure!(!is_done || last.is_some(), "S2: it is done and never took effect");
    Ok(())
}

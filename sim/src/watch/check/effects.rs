//! What was done outside, beside what the log says of it: S2 and S6.

use anyhow::{Context, Result, ensure};
use kernel::RunId;
use kernel::run::Outcome;

use super::super::hands::{Tries, Try};
use super::Audit;
use super::run::{RunTrack, Stand};

impl Audit {
    pub(super) fn check_effects(&self, tries: &Tries) -> Result<()> {
        for ((run, epoch), one) in tries {
            let id: RunId = run.parse()?;
            let track =
                self.runs.get(&id).with_context(|| format!("S2: {run} is not in the log"))?;
            let known = track.epoch;
            ensure!(*epoch <= known, "S2: try {epoch} of {run} was begun, the log has {known}");
            self.check_told(&id, track, one).with_context(|| format!("try {epoch} of {run}"))?;
        }
        for (id, run) in self.runs.iter().filter(|(_, run)| !run.is_repeatable) {
            let from = (id.to_string(), 0);
            let own = tries.range(from..).take_while(|((other, _), _)| other == id.as_str());
            let effects = own.filter(|(_, one)| one.has_effect).count();
            check_count(run, effects).with_context(|| format!("run {id}: {run:?}"))?;
        }
        Ok(())
    }

    /// After people were told that a run is cancelled, none of its tries begins.
    fn check_told(&self, id: &RunId, run: &RunTrack, one: &Try) -> Result<()> {
        let Some((told_us, requeued)) = self.cancels.get(id) else { return Ok(()) };
        let is_late = *told_us < one.begun_us && *requeued == run.requeued;
        ensure!(!is_late, "S6: it was begun after the cancel was acknowledged");
        Ok(())
    }
}

/// Of a run that must not be repeated.
fn check_count(run: &RunTrack, effects: usize) -> Result<()> {
    let most = 1 + run.requeued as usize;
    ensure!(effects <= most, "S2: it took effect {effects} times");
    let is_done = run.stand == Stand::Ended(Outcome::Done) && !run.is_settled;
    ensure!(!is_done || 1 <= effects, "S2: it is done and never took effect");
    ensure!(0 < run.epoch || effects == 0, "S2: it took effect and was never started");
    Ok(())
}

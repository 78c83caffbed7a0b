//! What was done outside, beside what the log says of it: S2 and S6.

use anyhow::{Context, Result, ensure};
use kernel::RunId;
use kernel::run::Outcome;

use super::super::hands::{Tries, Try};
use super::Audit;
use super::run::{Begun, RunTrack, Stand};

impl Audit {
    pub(super) fn check_effects(&self, tries: &Tries) -> Result<()> {
        for ((run, epoch), one) in tries {
            let id: RunId = run.parse()?;
            let track =
                self.runs.get(&id).with_context(|| format!("S2: {run} is not in the log"))?;
            let known = track.epoch;
            ensure!(*epoch <= known, "S2: try {epoch} of {run} was begun, the log has {known}");
            let begun = track.begun.get(epoch).with_context(|| format!("try {epoch} of {run}"))?;
            let (told, written) = (&one.prompt, &begun.prompt);
            ensure!(told == written, "{run} was told `{told}`, and `{written}` is written");
            self.check_told(&id, track, one).with_context(|| format!("try {epoch} of {run}"))?;
        }
        for (id, run) in &self.runs {
            let from = (id.to_string(), 0);
            let own = tries.range(from..).take_while(|((other, _), _)| other == id.as_str());
            let effects = own.filter(|(_, one)| one.has_effect).map(|((_, epoch), _)| epoch);
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

/// By the tries that took effect. One that must not be repeated is the last, unless people ask for it again.
fn check_count<'a>(run: &RunTrack, effects: impl Iterator<Item = &'a u32>) -> Result<()> {
    let mut last: Option<&Begun> = None;
    for begun in effects.filter_map(|epoch| run.begun.get(epoch)) {
        let is_again = last.is_some_and(|it| !it.is_repeatable && it.requeued == begun.requeued);
        ensure!(!is_again, "S2: it took effect again");
        last = Some(begun);
    }
    let is_done = run.stand == Stand::Ended(Outcome::Done) && !run.is_settled;
    ensure!(!is_done || last.is_some(), "S2: it is done and never took effect");
    Ok(())
}

//! What people were told, beside the log: what is acknowledged is there, what is refused is not.

use anyhow::{Context, Result, ensure};
use api::{Answer, Request, Schedule};
use jiff::Timestamp;
use kernel::{RunId, ScheduleId};

use super::super::hands::Tries;
use super::super::people::Made;
use super::Audit;
use super::run::Stand;

impl Audit {
    /// To be called when the log was followed to its end. `process` is the one that was asked;
    /// `now_us` is the time since the life began.
    pub(in crate::watch) fn check_promise(
        &mut self,
        made: &Made,
        tries: &Tries,
        process: u64,
        now_us: u128,
    ) -> Result<()> {
        let name = format!("{}/{}", made.by, made.key);
        let is_known = self.causes.contains_key(&format!("key:{name}"));
        match &made.result {
            Ok(_) => {
                let is_there = is_known || self.peek.is_answered(&name);
                ensure!(!made.is_kept() || is_there, "acknowledged and not in the log");
            }
            Err(refusal) => {
                let is_refused = !made.is_in_doubt() && !made.is_repeated;
                ensure!(!(is_refused && is_known), "refused ({refusal:?}) and in the log");
            }
        }
        match (&made.request, &made.result) {
            (_, Ok(Answer::ScheduleAdd(added))) if added.created => {
                self.shown(&added.schedule, &added.next)
            }
            (_, Ok(Answer::ScheduleEdit(edited))) if edited.changed => {
                self.shown(&edited.schedule, &edited.next)
            }
            (Request::RunCancel(asked), Ok(_)) => self.cancelled(&asked.id, tries, process, now_us),
            _ => Ok(()),
        }
    }

    /// A preview that is not out of date already.
    fn shown(&mut self, shown: &Schedule, next: &[String]) -> Result<()> {
        let id: ScheduleId = shown.id.parse()?;
        let next = instants(next)?;
        let track = self.schedules.get_mut(&id).context("an acknowledged schedule is not there")?;
        let added_at = shown.created_at.parse::<Timestamp>()?.as_microsecond();
        let is_same = track.revision == shown.revision && track.added_at.as_micros() == added_at;
        // One that waits for something shows not much.
        match is_same && !next.is_empty() && track.is_timed() {
            true => track.shown(next),
            false => Ok(()),
        }
    }

    /// Whoever works on a run that was cancelled is told to stop.
    fn cancelled(&mut self, id: &str, tries: &Tries, process: u64, now_us: u128) -> Result<()> {
        let id: RunId = id.parse()?;
        let run = self.runs.get(&id).context("a cancelled run is not there")?;
        if !run.is_cancelled && !matches!(run.stand, Stand::Ended(_)) {
            // Somebody has asked for it again by now.
            return Ok(());
        }
        self.cancels.insert(id.clone(), (now_us, run.requeued));
        let Some(one) = tries.get(&(id.to_string(), run.epoch)) else { return Ok(()) };
        let is_told = one.is_over || one.process != process || one.stop.is_cancelled();
        ensure!(is_told, "S6: the cancel of {id} was acknowledged, and its worker was not told");
        Ok(())
    }
}

pub(super) fn instants(texts: &[String]) -> Result<Vec<i64>> {
    texts.iter().map(|text| Ok(text.parse::<Timestamp>()?.as_microsecond())).collect()
}

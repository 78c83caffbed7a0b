//! Compares answers with the ledger: an acknowledged change is in it, unless it is a stop that says otherwise; a refused
//! one is not.

use anyhow::{Context, Result, ensure};
use api::{Request, Response, Schedule};
use jiff::Timestamp;
use kernel::{RunId, ScheduleId};

use super::super::operators::SentCall;
use super::super::scripted_backend::Attempts;
use super::Audit;
use super::run::Phase;

impl Audit {
    /// Requires that the ledger was read to its end. `process` answered the call; `now_us` is the time since the start of
    /// the simulation.
    pub(in crate::engine) fn check_acknowledgement(
        &mut self,
        sent: &SentCall,
        attempts: &Attempts,
        process: u64,
        now_us: u128,
    ) -> Result<()> {
        let name = format!("{}/{}", sent.by, sent.key);
        let is_in_ledger = self.causes.contains_key(&format!("key:{name}"));
        match &sent.result {
            Ok(_) if sent.is_unrecorded_stop() => {}
            Ok(_) => {
                let is_recorded = is_in_ledger || self.view.has_response(&name);
                ensure!(
                    !sent.stores_response() || is_recorded,
                    "acknowledged and not in the ledger"
                );
            }
            Err(refusal) => {
                let is_refused = !sent.is_in_doubt() && !sent.is_repeated;
                ensure!(!(is_refused && is_in_ledger), "refused ({refusal:?}) and in the ledger");
            }
        }
        match (&sent.request, &sent.result) {
            (_, Ok(Response::ScheduleAdd(added))) if added.created => {
                self.record_preview(&added.schedule, &added.next)
            }
            (_, Ok(Response::ScheduleEdit(edited))) if edited.changed => {
                self.record_preview(&edited.schedule, &edited.next)
            }
            (Request::RunCancel(cancel), Ok(_)) => {
                self.record_cancel(&cancel.id, attempts, process, now_us)
            }
            _ => Ok(()),
        }
    }

    /// Records the preview of an answer, unless the schedule changed since.
    fn record_preview(&mut self, shown: &Schedule, next: &[String]) -> Result<()> {
        let id: ScheduleId = shown.id.parse()?;
        let next = instants(next)?;
        let track =
            self.schedules.get_mut(&id).context("an acknowledged schedule does not exist")?;
        let added_at = shown.created_at.parse::<Timestamp>()?.as_microsecond();
        let is_same = track.revision == shown.revision && track.added_at.as_micros() == added_at;
        match is_same && !next.is_empty() && track.is_timed() {
            true => track.record_preview(next),
            false => Ok(()),
        }
    }

    /// From now on nothing starts. Requires that the ledger was read to its end.
    pub(in crate::engine) fn record_unrecorded_freeze(&mut self) {
        self.has_unrecorded_freeze = true;
    }

    /// From now on no attempt of the run starts.
    pub(in crate::engine) fn record_unrecorded_cancel(&mut self, id: &RunId, now_us: u128) {
        let requeued = self.runs.get(id).map_or(0, |run| run.requeued);
        self.cancels.insert(id.clone(), (now_us, requeued));
    }

    /// Whether the ledger has the cancel of this run, or the last freeze.
    pub(in crate::engine) fn has_stop(&self, run: Option<&RunId>) -> bool {
        match run.and_then(|id| self.runs.get(id)) {
            Some(run) => run.is_cancelled || matches!(run.phase, Phase::Ended(_)),
            None => !self.has_unrecorded_freeze,
        }
    }

    /// Checks that the attempt of a cancelled run was stopped.
    fn record_cancel(
        &mut self,
        id: &str,
        attempts: &Attempts,
        process: u64,
        now_us: u128,
    ) -> Result<()> {
        let id: RunId = id.parse()?;
        let run = self.runs.get(&id).context("a cancelled run does not exist")?;
        if !run.is_cancelled && !matches!(run.phase, Phase::Ended(_)) {
            // It was retried by hand in the meantime.
            return Ok(());
        }
        self.cancels.insert(id.clone(), (now_us, run.requeued));
        let Some(record) = attempts.get(&(id.to_string(), run.epoch)) else { return Ok(()) };
        let is_stopped = record.is_over || record.process != process || record.stop.is_cancelled();
        ensure!(is_stopped, "S6: the cancel of {id} was acknowledged, and its attempt not stopped");
        Ok(())
    }
}

pub(super) fn instants(texts: &[String]) -> Result<Vec<i64>> {
    texts.iter().map(|text| Ok(text.parse::<Timestamp>()?.as_microsecond())).collect()
}

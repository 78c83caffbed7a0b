//! Queries on the ledger read so far: for the operators, the disruptions and the end of a simulation.

use anyhow::{Result, ensure};
use kernel::approval::Approval;
use kernel::progress::{Progress, Status};
use kernel::run::{self, Outcome, Run};
use kernel::slot::{Slot, SlotOutcome};
use kernel::{Noun, NounState, State, Timestamp};

use super::super::operators::VisibleState;
use super::super::scripted_backend::Attempts;
use super::super::summary::Summary;
use super::Audit;
use super::run::Phase;

impl Audit {
    pub(in crate::engine) fn visible_state(&self, now_us: i64) -> VisibleState {
        let mut visible = VisibleState { now_us, ..VisibleState::default() };
        let schedules = self.schedules.iter().filter(|(_, track)| !track.is_removed);
        visible.schedules = schedules.map(|(id, _)| id.to_string()).collect();
        for (id, run) in &self.runs {
            match run.phase {
                Phase::Queued | Phase::Parked | Phase::Running => visible.live.push(id.to_string()),
                Phase::Ended(Outcome::Unknown) => visible.unknown.push(id.to_string()),
                Phase::Ended(Outcome::Failed | Outcome::Cancelled) => {
                    visible.ended.push(id.to_string());
                }
                Phase::Ended(Outcome::Done) => {}
            }
        }
        for ((_, id), row) in &self.tables.rows {
            if let Some(approval) = row.get::<Approval>() {
                let is_pending = approval.due().is_some();
                let list = if is_pending { &mut visible.pending } else { &mut visible.decided };
                list.push((id.clone(), approval.plan_hash.clone()));
            }
        }
        visible
    }

    pub(in crate::engine) fn parked(&self) -> Vec<String> {
        let parked = self.runs.iter().filter(|(_, run)| run.phase == Phase::Parked);
        parked.map(|(id, _)| id.to_string()).collect()
    }

    pub(in crate::engine) fn running(&self) -> Vec<String> {
        let running = self.runs.iter().filter(|(_, run)| run.phase == Phase::Running);
        running.map(|(id, _)| id.to_string()).collect()
    }

    /// Whether a repeatable run has been running for a while.
    pub(in crate::engine) fn has_running_repeatable(
        &self,
        attempts: &Attempts,
        now_us: u128,
    ) -> bool {
        let long_ago_us = now_us.saturating_sub(2_000_000);
        let mut running = self.runs.iter().filter(|(_, run)| run.phase == Phase::Running);
        running.any(|(id, run)| {
            let own = attempts.get(&(id.to_string(), run.epoch));
            let is_repeatable = run.starts.get(&run.epoch).is_some_and(|it| it.is_repeatable);
            is_repeatable && own.is_some_and(|own| !own.is_over && own.started_us < long_ago_us)
        })
    }

    pub(in crate::engine) fn run_state(&self, id: &str) -> Option<&Run> {
        self.tables.rows.get(&(Noun::Run, id.to_owned()))?.get()
    }

    /// The number of queued runs of an agent, and the time at which its first run started.
    pub(in crate::engine) fn queue_of_agent(&self, name: &str) -> (u64, Option<i64>) {
        let runs = self.runs.keys().filter_map(|id| self.run_state(id.as_str()));
        let own: Vec<&Run> =
            runs.filter(|run| run.agent.as_ref().is_some_and(|it| it.as_str() == name)).collect();
        let waiting = own.iter().filter(|run| matches!(run.state, run::State::Queued { .. }));
        let first_start = own.iter().filter_map(|run| run.started_at).min();
        (waiting.count() as u64, first_start.map(Timestamp::as_micros))
    }

    /// Schedules that have been due for a while.
    pub(in crate::engine) fn overdue(&self, now_us: i64) -> Vec<String> {
        let long_ago_us = now_us - 120_000_000;
        let is_overdue = |id| {
            let progress = self.tables.get::<Progress>(id)?;
            let due = progress.due().filter(|_| progress.status == Status::Active)?;
            (due.as_micros() < long_ago_us).then(|| format!("{id} {progress:?}"))
        };
        self.schedules.keys().filter_map(is_overdue).collect()
    }

    /// Checks that every slot has a final disposition. The rows of events and runs that fired a schedule have none: they
    /// only prevent a second fire.
    pub(in crate::engine) fn check_all_final(&self) -> Result<()> {
        for ((_, id), row) in &self.tables.rows {
            let Some(slot) = row.get::<Slot>() else { continue };
            if id.contains("/event/") || id.contains("/run/") {
                continue;
            }
            let disposition = slot.disposition(self.run_of(slot));
            ensure!(disposition.is_final(), "the slot {id} stays {}", disposition.name());
        }
        Ok(())
    }

    pub(in crate::engine) fn count_into(&self, summary: &mut Summary) {
        summary.lives = 1;
        summary.entries = self.entries();
        summary.runs = self.runs.len() as u64;
        (summary.out_of_tokens, summary.out_of_money) = self.spending.shortages();
        summary.dual_approved_starts = self.runs.values().map(|run| run.dual_approved_starts).sum();
        for row in self.tables.rows.values() {
            match &row.state {
                Some(State::Run(run)) => {
                    *summary.origins.entry(run.origin.name()).or_default() += 1;
                    summary.fast_starts += u64::from(run.started_at == Some(run.queued_at));
                }
                Some(State::Slot(slot)) => {
                    let name = slot.disposition(self.run_of(slot)).name();
                    *summary.dispositions.entry(name).or_default() += 1;
                    summary.slots += slot.count;
                }
                _ => {}
            }
        }
    }

    fn run_of(&self, slot: &Slot) -> Option<&Run> {
        match &slot.outcome {
            SlotOutcome::Run { run, .. } => self.run_state(run.as_str()),
            SlotOutcome::Passed { .. } | SlotOutcome::Buffered => None,
        }
    }
}

//! What can be known from the log at a glance, for people and for the end of a life.

use anyhow::{Result, ensure};
use kernel::progress::Status;
use kernel::run::{self, Outcome, Run};
use kernel::slot::{Fate, Slot};
use kernel::{Noun, State, Timestamp};

use super::super::hands::Tries;
use super::super::people::Known;
use super::super::summary::Summary;
use super::run::Stand;
use super::{Audit, progress};

impl Audit {
    pub(in crate::watch) fn known(&self, now_us: i64) -> Known {
        let mut known = Known { now_us, ..Known::default() };
        let schedules = self.schedules.iter().filter(|(_, track)| !track.is_removed);
        known.schedules = schedules.map(|(id, _)| id.to_string()).collect();
        for (id, run) in &self.runs {
            match run.stand {
                Stand::Queued | Stand::Parked | Stand::Running => known.live.push(id.to_string()),
                Stand::Ended(Outcome::Unknown) => known.unknown.push(id.to_string()),
                Stand::Ended(Outcome::Failed | Outcome::Cancelled) => {
                    known.ended.push(id.to_string());
                }
                Stand::Ended(Outcome::Done) => {}
            }
        }
        for ((noun, id), row) in &self.tables.rows {
            if let (Noun::Approval, Some(State::Approval(approval))) = (noun, &row.state) {
                let is_open = approval.due().is_some();
                let of = if is_open { &mut known.asked } else { &mut known.answered };
                of.push((id.clone(), approval.plan_hash.clone()));
            }
        }
        known
    }

    pub(in crate::watch) fn parked(&self) -> Vec<String> {
        let parked = self.runs.iter().filter(|(_, run)| run.stand == Stand::Parked);
        parked.map(|(id, _)| id.to_string()).collect()
    }

    pub(in crate::watch) fn running(&self) -> Vec<String> {
        let running = self.runs.iter().filter(|(_, run)| run.stand == Stand::Running);
        running.map(|(id, _)| id.to_string()).collect()
    }

    /// Whether somebody has been at work for a while on a run that may be begun again.
    pub(in crate::watch) fn is_repeatable_at_work(&self, tries: &Tries, now_us: u128) -> bool {
        let long_ago_us = now_us.saturating_sub(2_000_000);
        let mut at_work = self.runs.iter().filter(|(_, run)| run.stand == Stand::Running);
        at_work.any(|(id, run)| {
            let own = tries.get(&(id.to_string(), run.epoch));
            let is_repeatable = run.begun.get(&run.epoch).is_some_and(|it| it.is_repeatable);
            is_repeatable && own.is_some_and(|own| !own.is_over && own.begun_us < long_ago_us)
        })
    }

    /// How a run stands, for a message.
    pub(in crate::watch) fn stand(&self, id: &str) -> Option<&Run> {
        match self.tables.rows.get(&(Noun::Run, id.to_owned()))?.state.as_ref()? {
            State::Run(run) => Some(run),
            _ => None,
        }
    }

    /// Of an agent: how many runs wait, and when the first began.
    pub(in crate::watch) fn of_agent(&self, name: &str) -> (u64, Option<i64>) {
        let runs = self.runs.keys().filter_map(|id| self.stand(id.as_str()));
        let own: Vec<&Run> =
            runs.filter(|run| run.agent.as_ref().is_some_and(|it| it.as_str() == name)).collect();
        let waiting = own.iter().filter(|run| matches!(run.state, run::State::Queued { .. }));
        let began = own.iter().filter_map(|run| run.started_at).min();
        (waiting.count() as u64, began.map(Timestamp::as_micros))
    }

    /// Schedules that have been due for a while.
    pub(in crate::watch) fn overdue(&self, now_us: i64) -> Vec<String> {
        let long_ago_us = now_us - 120_000_000;
        let is_overdue = |id| {
            let progress = progress(&self.tables, id)?;
            let due = progress.due().filter(|_| progress.status == Status::Active)?;
            (due.as_micros() < long_ago_us).then(|| format!("{id} {progress:?}"))
        };
        self.schedules.keys().filter_map(is_overdue).collect()
    }

    /// Every slot has come to its end. A row of what made a slot only says that it was taken.
    pub(in crate::watch) fn check_all_final(&self) -> Result<()> {
        for ((noun, id), row) in &self.tables.rows {
            let (Noun::Slot, Some(State::Slot(slot))) = (noun, &row.state) else { continue };
            if id.contains("/event/") || id.contains("/run/") {
                continue;
            }
            let disposition = slot.disposition(self.run_of(slot));
            ensure!(disposition.is_final(), "the slot {id} is {} for ever", disposition.name());
        }
        Ok(())
    }

    pub(in crate::watch) fn count(&self, summary: &mut Summary) {
        summary.lives = 1;
        summary.entries = self.entries();
        summary.runs = self.runs.len() as u64;
        (summary.out_of_tokens, summary.out_of_money) = self.spending.used_up();
        summary.begun_by_two = self.runs.values().map(|run| run.begun_by_two).sum();
        for row in self.tables.rows.values() {
            match &row.state {
                Some(State::Run(run)) => {
                    *summary.origins.entry(run.origin.name()).or_default() += 1;
                    summary.begun_at_once += u64::from(run.started_at == Some(run.queued_at));
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
        match &slot.fate {
            Fate::Run { run, .. } => self.stand(run.as_str()),
            Fate::Passed { .. } | Fate::Buffered => None,
        }
    }
}

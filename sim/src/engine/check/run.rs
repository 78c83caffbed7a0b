//! Tracks one run through the ledger: S4 and S6.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use kernel::approval::{self, Decision};
use kernel::backend::Tier;
use kernel::run::{Event, Outcome, Queued};
use kernel::{ApprovalId, RunId, ScheduleId};

use super::super::generate::TWO_APPROVERS;
use super::super::operators::AUTHOR;
use super::super::scripted_backend::{Attempts, ReportedOutcome};

#[derive(Debug)]
pub(super) struct RunTrack {
    pub(super) schedule: ScheduleId,
    pub(super) epoch: u32,
    /// The starts of its attempts by epoch.
    pub(super) starts: BTreeMap<u32, StartedAttempt>,
    pub(super) phase: Phase,
    pub(super) is_cancelled: bool,
    /// How often it was retried by hand.
    pub(super) requeued: u32,
    pub(super) is_settled: bool,
    needs_two_approvers: bool,
    /// Who approved its last approval request.
    approvers: BTreeSet<String>,
    pub(super) dual_approved_starts: u64,
    /// The approval with which it may start once.
    approved: Option<ApprovalId>,
    /// The approval that was consumed last, and the epoch that consumed it.
    consumed: Option<(ApprovalId, u32)>,
}

/// What an attempt was started with.
#[derive(Debug)]
pub(super) struct StartedAttempt {
    pub(super) prompt: String,
    pub(super) is_repeatable: bool,
    /// How often its run had been retried by hand.
    pub(super) requeued: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    Parked,
    Running,
    Ended(Outcome),
}

impl RunTrack {
    pub(super) fn new(queued: &Queued) -> RunTrack {
        RunTrack {
            schedule: queued.schedule.clone(),
            epoch: 0,
            starts: BTreeMap::new(),
            phase: Phase::Queued,
            is_cancelled: false,
            requeued: 0,
            is_settled: false,
            needs_two_approvers: queued
                .agent
                .as_ref()
                .is_some_and(|agent| agent.as_str() == TWO_APPROVERS),
            approvers: BTreeSet::new(),
            dual_approved_starts: 0,
            approved: None,
            consumed: None,
        }
    }

    pub(super) fn apply(&mut self, id: &RunId, event: &Event, attempts: &Attempts) -> Result<()> {
        match event {
            Event::Queued(_) => {}
            Event::Started(started) => {
                ensure!(self.phase == Phase::Queued, "S4: it is started while {:?}", self.phase);
                ensure!(!self.is_cancelled, "S6: it is started after a cancel was committed");
                let next = self.epoch + 1;
                ensure!(
                    started.epoch == next,
                    "S4: epoch {} follows {}",
                    started.epoch,
                    self.epoch
                );
                let is_used = self.consumed.as_ref().is_some_and(|(_, by)| *by == next);
                let needs_approval = started.tier == Tier::External;
                ensure!(
                    is_used || !needs_approval,
                    "I1: attempt {next} is external and not approved"
                );
                if self.needs_two_approvers {
                    self.check_two_approvers()?;
                    self.dual_approved_starts += 1;
                }
                self.epoch = started.epoch;
                self.approved = None;
                self.phase = Phase::Running;
            }
            Event::Retried(retried) => {
                let is_own = self.phase == Phase::Running && retried.epoch == self.epoch;
                ensure!(is_own, "S4: {retried:?} is not about attempt {}", self.epoch);
                self.phase = Phase::Queued;
            }
            Event::CancelRequested(_) => {
                ensure!(self.phase == Phase::Running, "S6: a cancel while {:?}", self.phase);
                ensure!(!self.is_cancelled, "S6: a cancel is recorded again");
                self.is_cancelled = true;
            }
            Event::Ended(ended) => self.end(id, ended.outcome, attempts)?,
            Event::Requeued(_) => {
                let Phase::Ended(_) = self.phase else {
                    bail!("S4: requeued while {:?}", self.phase)
                };
                self.phase = Phase::Queued;
                self.is_cancelled = false;
                self.is_settled = false;
                self.requeued += 1;
            }
            Event::Settled(settled) => {
                let is_unknown = self.phase == Phase::Ended(Outcome::Unknown);
                ensure!(is_unknown, "S4: settled while {:?}", self.phase);
                self.phase = Phase::Ended(settled.outcome);
                self.is_settled = true;
            }
        }
        Ok(())
    }

    /// Checks that two different people approved, neither of them the author.
    fn check_two_approvers(&self) -> Result<()> {
        let others = self.approvers.iter().filter(|name| *name != AUTHOR).count();
        ensure!(
            others == self.approvers.len(),
            "B4: its author has approved it: {:?}",
            self.approvers
        );
        ensure!(2 <= others, "B5: it starts with the approval of {:?} only", self.approvers);
        Ok(())
    }

    fn record_approval(&mut self, decision: &Decision, by: &str) -> Result<()> {
        ensure!(decision.by == by, "B4: {by} approved in the name of {}", decision.by);
        self.approvers.insert(by.to_owned());
        Ok(())
    }

    /// `by` is the actor of the entry.
    pub(super) fn apply_approval_event(
        &mut self,
        id: &ApprovalId,
        event: &approval::Event,
        by: &str,
    ) -> Result<()> {
        match event {
            approval::Event::Requested(_) => {
                self.approvers.clear();
                ensure!(
                    self.phase == Phase::Queued,
                    "its approval is requested while {:?}",
                    self.phase
                );
                self.phase = Phase::Parked;
            }
            approval::Event::Assented(assented) => {
                self.record_approval(&assented.decision, by)?;
                ensure!(self.phase == Phase::Parked, "it is approved while {:?}", self.phase);
            }
            approval::Event::Decided(decided) if decided.decision.is_approved => {
                self.record_approval(&decided.decision, by)?;
                ensure!(self.phase == Phase::Parked, "it is approved while {:?}", self.phase);
                self.phase = Phase::Queued;
                self.approved = Some(id.clone());
            }
            approval::Event::Decided(_) | approval::Event::Lapsed(_) => self.approved = None,
            approval::Event::Consumed(consumed) => {
                let is_own = self.approved.take().as_ref() == Some(id);
                ensure!(is_own, "I2: {id} is consumed without being approved");
                self.consumed = Some((id.clone(), consumed.epoch));
            }
        }
        Ok(())
    }

    /// Checks that the recorded outcome is that of the last attempt.
    fn end(&mut self, id: &RunId, outcome: Outcome, attempts: &Attempts) -> Result<()> {
        let before = self.phase;
        ensure!(!matches!(before, Phase::Ended(_)), "S4: it ends again, after {before:?}");
        let reported =
            attempts.get(&(id.to_string(), self.epoch)).and_then(|record| record.reported);
        if outcome == Outcome::Done {
            let is_reported = before == Phase::Running && reported == Some(ReportedOutcome::Done);
            ensure!(
                is_reported,
                "S4: it is done, and attempt {} reported {reported:?}",
                self.epoch
            );
        }
        let ignores_cancel = matches!(outcome, Outcome::Done | Outcome::Failed);
        ensure!(
            !(self.is_cancelled && ignores_cancel),
            "S6: a cancel was committed, and it is {outcome:?}"
        );
        self.phase = Phase::Ended(outcome);
        Ok(())
    }
}

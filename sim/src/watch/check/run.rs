//! One run, followed through the log: S4 and S6.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use kernel::approval::{self, Decision};
use kernel::backend::Tier;
use kernel::run::{Event, Outcome, Queued};
use kernel::{ApprovalId, RunId, ScheduleId};

use super::super::hands::{Said, Tries};
use super::super::people::NAME;
use super::super::plan::BY_TWO;

#[derive(Debug)]
pub(super) struct RunTrack {
    pub(super) schedule: ScheduleId,
    pub(super) epoch: u32,
    /// Its tries, by their epoch.
    pub(super) begun: BTreeMap<u32, Begun>,
    pub(super) stand: Stand,
    pub(super) is_cancelled: bool,
    /// How often people asked for it again.
    pub(super) requeued: u32,
    pub(super) is_settled: bool,
    /// Two people have to say yes.
    is_by_two: bool,
    /// Who has said yes to the question that was asked last.
    yes: BTreeSet<String>,
    pub(super) begun_by_two: u64,
    /// The answer with which it may begin once.
    approved: Option<ApprovalId>,
    /// The last that was used up, by which try.
    consumed: Option<(ApprovalId, u32)>,
}

/// What a try was begun by.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) prompt: String,
    pub(super) is_repeatable: bool,
    /// How often people had asked for its run again.
    pub(super) requeued: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
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
            begun: BTreeMap::new(),
            stand: Stand::Queued,
            is_cancelled: false,
            requeued: 0,
            is_settled: false,
            is_by_two: queued.agent.as_ref().is_some_and(|agent| agent.as_str() == BY_TWO),
            yes: BTreeSet::new(),
            begun_by_two: 0,
            approved: None,
            consumed: None,
        }
    }

    pub(super) fn happened(&mut self, id: &RunId, event: &Event, tries: &Tries) -> Result<()> {
        match event {
            Event::Queued(_) => {}
            Event::Started(started) => {
                ensure!(self.stand == Stand::Queued, "S4: it is started while {:?}", self.stand);
                ensure!(!self.is_cancelled, "S6: it is started after a cancel was committed");
                let next = self.epoch + 1;
                ensure!(
                    started.epoch == next,
                    "S4: epoch {} follows {}",
                    started.epoch,
                    self.epoch
                );
                let is_used = self.consumed.as_ref().is_some_and(|(_, by)| *by == next);
                let needs_one = started.tier == Tier::External;
                ensure!(is_used || !needs_one, "I1: try {next} reaches outside, unapproved");
                if self.is_by_two {
                    self.check_two()?;
                    self.begun_by_two += 1;
                }
                self.epoch = started.epoch;
                self.approved = None;
                self.stand = Stand::Running;
            }
            Event::Retried(retried) => {
                let is_own = self.stand == Stand::Running && retried.epoch == self.epoch;
                ensure!(is_own, "S4: {retried:?} is about another try than {}", self.epoch);
                self.stand = Stand::Queued;
            }
            Event::CancelAsked(_) => {
                ensure!(self.stand == Stand::Running, "S6: a cancel while {:?}", self.stand);
                self.is_cancelled = true;
            }
            Event::Ended(ended) => self.end(id, ended.outcome, tries)?,
            Event::Requeued(_) => {
                let Stand::Ended(_) = self.stand else {
                    bail!("S4: requeued while {:?}", self.stand)
                };
                self.stand = Stand::Queued;
                self.is_cancelled = false;
                self.is_settled = false;
                self.requeued += 1;
            }
            Event::Settled(settled) => {
                let is_unknown = self.stand == Stand::Ended(Outcome::Unknown);
                ensure!(is_unknown, "S4: settled while {:?}", self.stand);
                self.stand = Stand::Ended(settled.outcome);
                self.is_settled = true;
            }
        }
        Ok(())
    }

    /// Two who are not one, and neither of them the author.
    fn check_two(&self) -> Result<()> {
        let others = self.yes.iter().filter(|name| *name != NAME).count();
        ensure!(others == self.yes.len(), "B4: its author has approved it: {:?}", self.yes);
        ensure!(2 <= others, "B5: it begins, and {:?} have said yes", self.yes);
        Ok(())
    }

    /// What `by` has said counts as theirs.
    fn said_yes(&mut self, decision: &Decision, by: &str) -> Result<()> {
        ensure!(decision.by == by, "B4: {by} has said yes for {}", decision.by);
        self.yes.insert(by.to_owned());
        Ok(())
    }

    /// Of a question about it, by whom.
    pub(super) fn answered(
        &mut self,
        id: &ApprovalId,
        event: &approval::Event,
        by: &str,
    ) -> Result<()> {
        match event {
            approval::Event::Asked(_) => {
                self.yes.clear();
                ensure!(self.stand == Stand::Queued, "it is asked about while {:?}", self.stand);
                self.stand = Stand::Parked;
            }
            approval::Event::Assented(assented) => {
                self.said_yes(&assented.decision, by)?;
                ensure!(self.stand == Stand::Parked, "it is approved while {:?}", self.stand);
            }
            approval::Event::Decided(decided) if decided.decision.is_approved => {
                self.said_yes(&decided.decision, by)?;
                ensure!(self.stand == Stand::Parked, "it is approved while {:?}", self.stand);
                self.stand = Stand::Queued;
                self.approved = Some(id.clone());
            }
            approval::Event::Decided(_) | approval::Event::Lapsed(_) => self.approved = None,
            approval::Event::Consumed(consumed) => {
                let is_own = self.approved.take().as_ref() == Some(id);
                ensure!(is_own, "I2: {id} is used, and is not what was approved");
                self.consumed = Some((id.clone(), consumed.epoch));
            }
        }
        Ok(())
    }

    /// What is recorded of a try was said of that one and of no older one.
    fn end(&mut self, id: &RunId, outcome: Outcome, tries: &Tries) -> Result<()> {
        let before = self.stand;
        ensure!(!matches!(before, Stand::Ended(_)), "S4: it ends again, after {before:?}");
        let said = tries.get(&(id.to_string(), self.epoch)).and_then(|one| one.said);
        if outcome == Outcome::Done {
            let is_said = before == Stand::Running && said == Some(Said::Done);
            ensure!(is_said, "S4: it is done, and of try {} was said {said:?}", self.epoch);
        }
        let has_lost = matches!(outcome, Outcome::Done | Outcome::Failed);
        ensure!(!(self.is_cancelled && has_lost), "S6: a cancel was committed, and it {outcome:?}");
        self.stand = Stand::Ended(outcome);
        Ok(())
    }
}

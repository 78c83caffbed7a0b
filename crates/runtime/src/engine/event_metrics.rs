//! Counts what was committed: the one place from which counters and histograms follow from events.
//!
//! It runs after the commit of every change, so it only adds to numbers in memory.

use kernel::agent::AgentName;
use kernel::approval::{self, Approval, LapseReason};
use kernel::backend::{BackendKind, Tier};
use kernel::budget::Spent;
use kernel::policy_decision::{PolicyDecision, Verdict};
use kernel::run::{self, Occurrence, Origin, Run, State};
use kernel::schedule::{self, Schedule};
use kernel::slot::{Slot, SlotOutcome, Source};
use kernel::{EventBody, Timestamp};
use metrics::{Registry, TOOL, UNKNOWN};

use crate::commit::transaction::Committed;

/// Counts the events of a commit.
pub(super) fn count(
    metrics: &Registry,
    committed: &Committed,
    backend_of: impl Fn(&AgentName) -> Option<BackendKind>,
) {
    let counting = Counting { metrics, committed, backend_of };
    for event in &committed.events {
        match event {
            EventBody::Run(id, event) => counting.run(id, event),
            EventBody::Approval(id, event) => counting.approval(id, event),
            EventBody::Schedule(_, schedule::Event::Passed(passed)) => {
                let trigger = trigger(passed.source.as_ref()).name();
                metrics.slots.add(&[passed.disposition.name(), trigger], passed.count);
            }
            _ => {}
        }
    }
}

struct Counting<'a, B> {
    metrics: &'a Registry,
    committed: &'a Committed,
    backend_of: B,
}

impl<B: Fn(&AgentName) -> Option<BackendKind>> Counting<'_, B> {
    fn run(&self, id: &kernel::RunId, event: &run::Event) {
        let Some(run) = self.committed.after.get::<Run>(id) else { return };
        match event {
            run::Event::Queued(queued) => {
                if let Occurrence::Slot(fired) = &queued.occurrence
                    && fired.origin == Origin::Slot
                {
                    self.metrics.slot_lateness.observe(&["decided"], micros(fired.late_us));
                }
            }
            run::Event::Started(started) => {
                self.decision(started.ruling.as_ref(), Verdict::Allow);
                if started.epoch == 1 && run.origin == Origin::Slot {
                    let waited = between(run.queued_at, started.at);
                    self.metrics.slot_lateness.observe(&["started"], waited);
                }
            }
            run::Event::Retried(retried) => self.spent(run, retried.spent.as_ref()),
            run::Event::Ended(ended) => {
                self.decision(ended.ruling.as_ref(), Verdict::Deny);
                self.spent(run, ended.spent.as_ref());
                self.end(id, run, ended);
            }
            run::Event::CancelRequested(_) | run::Event::Requeued(_) | run::Event::Settled(_) => {}
        }
    }

    fn end(&self, id: &kernel::RunId, run: &Run, ended: &run::Ended) {
        let tier = ended.tier.or_else(|| Some(run.decision_context.as_ref()?.tier));
        let labels = [ended.outcome.name(), self.backend(run), tier_name(tier)];
        self.metrics.runs.add(&labels, 1);
        let before = self.committed.before.get::<Run>(id);
        let was_running = before.is_some_and(|run| matches!(run.state, State::Running { .. }));
        if let Some(started_at) = run.started_at.filter(|_| was_running) {
            self.metrics.run_duration.observe(&labels, between(started_at, ended.at));
        }
        // The first outcome decides the slot; later retries do not change it.
        if before.is_none_or(|run| run.first_outcome.is_none()) {
            let disposition = self.slot_of(run).disposition(Some(run));
            self.metrics.slots.add(&[disposition.name(), run.origin.name()], 1);
        }
    }

    /// The slot of a run, as far as its disposition depends on it. A schedule with jitter is late only after the longest jitter.
    fn slot_of(&self, run: &Run) -> Slot {
        let nominal = run.slot.unwrap_or(run.queued_at);
        let late_us = match run.origin {
            Origin::Slot | Origin::Buffer => {
                let schedule = self.committed.after.get::<Schedule>(&run.schedule);
                let jitter = schedule.and_then(|it| it.definition.terms.jitter);
                let due_us =
                    nominal.as_micros().saturating_add(jitter.map_or(0, |it| it.as_micros()));
                run.queued_at.as_micros().saturating_sub(due_us).max(0)
            }
            Origin::CatchUp | Origin::Manual | Origin::Backfill => 0,
            Origin::After | Origin::Event => 0,
        };
        Slot {
            revision: run.revision,
            first: nominal,
            last: nominal,
            count: 1,
            wall: String::new(),
            decided_at: run.queued_at,
            timing: None,
            outcome: SlotOutcome::Run { run: kernel::RunId::of(0), origin: run.origin, late_us },
        }
    }

    fn approval(&self, id: &kernel::ApprovalId, event: &approval::Event) {
        let result = match event {
            approval::Event::Requested(requested) => {
                return self.decision(Some(&requested.ruling), Verdict::Ask);
            }
            approval::Event::Assented(_) | approval::Event::Consumed(_) => return,
            approval::Event::Decided(decided) => {
                if let Some(approval) = self.committed.after.get::<Approval>(id) {
                    let tier = tier_name(Some(approval.plan.tier));
                    let waited = between(approval.requested_at, decided.decision.at);
                    self.metrics.approval_wait.observe(&[tier], waited);
                }
                if decided.decision.is_approved { "approved" } else { "denied" }
            }
            approval::Event::Lapsed(lapsed) => lapse_name(lapsed.why),
        };
        self.metrics.approvals.add(&[result], 1);
    }

    /// Counts a decision if it has this verdict: an approved run starts with the decision that asked, which was counted before.
    fn decision(&self, decision: Option<&PolicyDecision>, counted: Verdict) {
        if let Some(decision) = decision.filter(|decision| decision.verdict == counted) {
            let labels = [verdict_name(decision.verdict), decision.posture.name()];
            self.metrics.policy_decisions.add(&labels, 1);
        }
    }

    fn spent(&self, run: &Run, spent: Option<&Spent>) {
        let Some(spent) = spent else { return };
        let backend = self.backend(run);
        let tokens = spent.usage.map_or(0, |usage| usage.tokens());
        self.metrics.tokens.add(&[backend], u64::try_from(tokens).unwrap_or_default());
        self.metrics.money.add(&[backend], micros(spent.cost.as_micros()));
    }

    fn backend(&self, run: &Run) -> &'static str {
        match &run.agent {
            None => TOOL,
            Some(agent) => (self.backend_of)(agent).map_or(UNKNOWN, BackendKind::name),
        }
    }
}

fn trigger(source: Option<&Source>) -> Origin {
    match source {
        None => Origin::Slot,
        Some(Source::Run(_)) => Origin::After,
        Some(Source::Event(_)) => Origin::Event,
    }
}

pub(super) fn tier_name(tier: Option<Tier>) -> &'static str {
    match tier {
        Some(Tier::ReadOnly) => "0",
        Some(Tier::LocalWrite) => "1",
        Some(Tier::External) => "2",
        None => UNKNOWN,
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}

fn lapse_name(why: LapseReason) -> &'static str {
    match why {
        LapseReason::Expired => "expired",
        LapseReason::Revoked => "revoked",
        LapseReason::Changed => "changed",
        LapseReason::Unsigned => "unsigned",
        LapseReason::RunEnded => "run_ended",
        LapseReason::NotNeeded => "not_needed",
        LapseReason::LeaseRenewed => "lease_renewed",
    }
}

/// The microseconds from one time to a later one; zero if the clock was set back between them.
fn between(from: Timestamp, to: Timestamp) -> u64 {
    micros(to.as_micros().saturating_sub(from.as_micros()))
}

fn micros(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kernel::posture::Posture;
    use kernel::run::Outcome;
    use kernel::slot::Disposition;
    use metrics::VERDICT;
    use metrics::{BACKEND, DISPOSITION, Label, OUTCOME, POSTURE, RESULT, STATE, TIER, TRIGGER};

    use super::*;

    /// The values of a label are exactly these names.
    fn check(label: Label, names: impl IntoIterator<Item = &'static str>) {
        let names: Vec<&str> = names.into_iter().collect();
        assert_eq!(label.values, names, "{}", label.name);
    }

    #[test]
    fn the_values_of_labels_are_the_names_of_the_kernel() {
        check(DISPOSITION, Disposition::ALL.iter().filter(|it| it.is_final()).map(|it| it.name()));
        let outcomes = [Outcome::Done, Outcome::Failed, Outcome::Cancelled, Outcome::Unknown];
        check(OUTCOME, outcomes.map(Outcome::name));
        let origins = [Origin::Slot, Origin::CatchUp, Origin::Buffer, Origin::Manual];
        let more = [Origin::After, Origin::Event, Origin::Backfill];
        check(TRIGGER, origins.into_iter().chain(more).map(Origin::name));
        check(BACKEND, BackendKind::ALL.map(BackendKind::name).into_iter().chain([TOOL, UNKNOWN]));
        let tiers = [Tier::ReadOnly, Tier::LocalWrite, Tier::External].map(Some);
        check(TIER, tiers.into_iter().chain([None]).map(tier_name));
        check(VERDICT, [Verdict::Allow, Verdict::Ask, Verdict::Deny].map(verdict_name));
        check(POSTURE, [Posture::StrictProd, Posture::Staging, Posture::Debug].map(Posture::name));
        let lapses = [LapseReason::Expired, LapseReason::Revoked, LapseReason::Changed];
        let more = [LapseReason::Unsigned, LapseReason::RunEnded, LapseReason::NotNeeded];
        let lapses = lapses.into_iter().chain(more).chain([LapseReason::LeaseRenewed]);
        check(RESULT, ["approved", "denied"].into_iter().chain(lapses.map(lapse_name)));
        let running = State::Running { holder: String::new(), repeatable: false };
        let from = Timestamp::from_micros(0);
        let live = [State::Queued { from }, State::Parked, running, State::Ended(Outcome::Unknown)];
        check(STATE, live.iter().map(State::name));
    }
}

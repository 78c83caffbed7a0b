//! Compares the runs and slots in the ledger with the effects outside, and with the calendar.
//!
//! Every schedule has one slot at each full second, so no product code is needed for the calendar.

use std::collections::BTreeMap;

use kernel::approval::{self, Approval};
use kernel::progress::Progress;
use kernel::run::{Outcome, Run, State as RunState};
use kernel::schedule::Schedule;
use kernel::slot::{Slot, SlotOutcome};
use kernel::{Noun, RunId, State, Tables, Timestamp};
use serde::Serialize;

use super::Guarantee;
use super::approver::Decisions;
use super::effects::EffectCounts;

const SECOND_US: i64 = 1_000_000;
/// Violations that are reported.
const VIOLATIONS_MAX: usize = 20;

#[derive(Debug, Default, Serialize)]
pub(super) struct Reconciliation {
    /// Decided slots of all schedules.
    pub(super) slots: u64,
    pub(super) once: Ended,
    pub(super) repeatable: Ended,
    pub(super) needs_approval: Ended,
    /// Approvals that started an attempt.
    pub(super) consumed: u64,
    /// Approvals that were denied.
    pub(super) denied: u64,
    /// Effects, one line each.
    pub(super) lines: u64,
    /// Attempts that are not the first of their run.
    pub(super) repeated: u64,
    /// Slots without a row, and runs that are done without an effect.
    pub(super) lost: u64,
    /// Slots in two rows, and surplus effects.
    pub(super) doubled: u64,
    #[serde(skip)]
    pub(super) violations: Vec<String>,
}

/// Runs of one agent by outcome.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Ended {
    pub(super) done: u64,
    pub(super) unknown: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    /// Runs that did not end.
    pub(super) live: u64,
}

impl Reconciliation {
    pub(super) fn of(
        tables: &Tables,
        counts: &EffectCounts,
        decisions: &Decisions,
    ) -> Reconciliation {
        let mut found = Reconciliation { lines: counts.lines, ..Reconciliation::default() };
        for line in &counts.malformed {
            found.report(format!("no program wrote `{line}`"));
        }
        let mut slots: BTreeMap<&str, Vec<&Slot>> = BTreeMap::new();
        let mut runs: BTreeMap<&str, &Run> = BTreeMap::new();
        let mut approvals: BTreeMap<&str, &Approval> = BTreeMap::new();
        for ((_, id), row) in &tables.rows {
            match &row.state {
                // The keys of slots sort by time, and this map by key.
                Some(State::Slot(slot)) => {
                    let schedule = id.split_once('/').map_or(id.as_str(), |(schedule, _)| schedule);
                    slots.entry(schedule).or_default().push(slot);
                }
                Some(State::Run(run)) => drop(runs.insert(id, run)),
                Some(State::Approval(approval)) => drop(approvals.insert(id, approval)),
                _ => {}
            }
        }
        for ((noun, id), row) in &tables.rows {
            let Some(schedule) = row.get::<Schedule>() else { continue };
            let progress = tables.rows.get(&(Noun::Progress, id.clone()));
            let Some(progress) = progress.and_then(|row| row.get::<Progress>()) else {
                found.report(format!("{} {id} has no progress", noun.name()));
                continue;
            };
            let rows = slots.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
            found.check_slots(id, schedule.created_at, progress.decided_until, rows);
        }
        found.check_run_slots(&slots, &runs);
        found.check_approvals(&runs, &approvals, decisions);
        for (id, run) in &runs {
            found.check_run(id, run, counts.runs.get(*id).unwrap_or(&BTreeMap::new()));
        }
        for (id, received) in &counts.slots {
            let slot = runs.get(id.as_str()).and_then(|run| run.slot).map(Timestamp::as_micros);
            if !received.iter().copied().eq(slot) {
                found.report(format!(
                    "run {id} is of slot {slot:?}, and its programs received {received:?}"
                ));
            }
        }
        for (id, attempts) in &counts.runs {
            if !runs.contains_key(id.as_str()) {
                found.doubled += attempts.values().sum::<u64>();
                found.report(format!("run {id} took effect and is not in the ledger"));
            }
        }
        found
    }

    /// Checks that every second from the creation of a schedule to its last decision is in exactly one row.
    fn check_slots(&mut self, id: &str, created: Timestamp, until: Timestamp, rows: &[&Slot]) {
        let mut next = after(created.as_micros());
        for slot in rows {
            let (first, last) = (slot.first.as_micros(), slot.last.as_micros());
            if next < first {
                self.lost += seconds(next, first);
                self.report(format!("schedule {id}: no slot from {next} to before {first}"));
            }
            if first < next {
                self.doubled += seconds(first, next);
                self.report(format!("schedule {id}: slots from {first} to before {next} twice"));
            }
            let count = seconds(first, last) + 1;
            if count != slot.count || first % SECOND_US != 0 || last % SECOND_US != 0 {
                self.report(format!("schedule {id}: {slot:?} does not have {count} slots"));
            }
            self.slots += count;
            next = after(last);
        }
        if next != after(until.as_micros()) {
            self.lost += seconds(next, after(until.as_micros()));
            self.report(format!("schedule {id}: slots end before {next}, decided until {until:?}"));
        }
    }

    /// Checks that every run belongs to one slot, and that the run of every slot exists.
    fn check_run_slots(&mut self, slots: &BTreeMap<&str, Vec<&Slot>>, runs: &BTreeMap<&str, &Run>) {
        let mut owners: BTreeMap<&RunId, u64> = BTreeMap::new();
        for (schedule, slot) in
            slots.iter().flat_map(|(id, rows)| rows.iter().map(move |it| (id, it)))
        {
            let SlotOutcome::Run { run: id, .. } = &slot.outcome else { continue };
            *owners.entry(id).or_default() += 1;
            let is_own = |run: &&Run| {
                run.slot == Some(slot.first)
                    && slot.count == 1
                    && run.schedule.as_str() == *schedule
            };
            if !runs.get(id.as_str()).is_some_and(is_own) {
                self.report(format!("schedule {schedule}: run {id} is not of its slot {slot:?}"));
            }
        }
        let owners: BTreeMap<&str, u64> =
            owners.into_iter().map(|(id, count)| (id.as_str(), count)).collect();
        for id in runs.keys() {
            let count = owners.get(id).copied().unwrap_or_default();
            if count != 1 {
                self.report(format!("run {id} belongs to {count} slots"));
            }
        }
    }

    /// Checks that every attempt that needs an approval consumed one of its own, and that acknowledged decisions hold.
    fn check_approvals(
        &mut self,
        runs: &BTreeMap<&str, &Run>,
        approvals: &BTreeMap<&str, &Approval>,
        decisions: &Decisions,
    ) {
        let mut used: BTreeMap<&str, u32> = BTreeMap::new();
        for (id, approval) in approvals {
            let acknowledged = decisions.get(*id).copied();
            match approval.state {
                approval::State::Consumed => {
                    self.consumed += 1;
                    *used.entry(approval.plan.run.as_str()).or_default() += 1;
                    // An earlier decision may have been recorded without being acknowledged.
                    if acknowledged == Some(false) {
                        self.report(format!("{id} was denied, and its run started"));
                    }
                }
                approval::State::Denied => {
                    self.denied += 1;
                    if acknowledged == Some(true) {
                        self.report(format!("{id} was approved, and is denied"));
                    }
                }
                approval::State::Approved { .. } | approval::State::Lapsed(_) => {}
                approval::State::Pending { .. } => {
                    self.report(format!(
                        "{id} is still pending, and {acknowledged:?} was acknowledged"
                    ));
                }
            }
        }
        for (id, run) in runs {
            let needs_approval = run
                .agent
                .as_ref()
                .is_some_and(|it| it.as_str() == Guarantee::NeedsApproval.agent());
            let used = used.get(id).copied().unwrap_or_default();
            let starts = if needs_approval { run.epoch } else { 0 };
            if used != starts {
                self.report(format!("run {id} was started {starts} times with {used} approvals"));
            }
        }
    }

    /// Checks how often each attempt of a run took effect.
    fn check_run(&mut self, id: &str, run: &Run, lines: &BTreeMap<u32, u64>) {
        let Some(guarantee) = run.agent.as_ref().and_then(|name| Guarantee::of(name.as_str()))
        else {
            return self.report(format!("run {id} has an unknown agent"));
        };
        self.repeated += u64::from(run.epoch.saturating_sub(1));
        let ended = match guarantee {
            Guarantee::Once => &mut self.once,
            Guarantee::Repeatable => &mut self.repeatable,
            Guarantee::NeedsApproval => &mut self.needs_approval,
        };
        *ended.counter(&run.state) += 1;

        let total: u64 = lines.values().sum();
        let about =
            format!("run {id} of `{}`: {:?}, lines {lines:?}", guarantee.agent(), run.state);
        // An attempt takes effect once, after the ledger records its start.
        let is_started = |(attempt, _): &(&u32, &u64)| (1..=run.epoch).contains(*attempt);
        let expected: u64 = lines.iter().filter(is_started).map(|(_, count)| (*count).min(1)).sum();
        let allowed = match guarantee {
            Guarantee::Once | Guarantee::NeedsApproval => expected.min(1),
            Guarantee::Repeatable => expected,
        };
        if allowed < total {
            self.doubled += total - allowed;
            self.report(format!("{about}, {} started: {} too many", run.epoch, total - allowed));
        }
        match (&run.state, guarantee) {
            (RunState::Ended(Outcome::Done), _) if !lines.contains_key(&run.attempt) => {
                self.lost += 1;
                self.report(format!(
                    "{about}: it is done, and attempt {} has no line",
                    run.attempt
                ));
            }
            (RunState::Ended(Outcome::Unknown), Guarantee::Repeatable) => {
                self.report(format!("{about}: it could have been repeated"));
            }
            // No program fails on its own.
            (RunState::Ended(Outcome::Failed), _) if !was_interrupted(run) => {
                self.report(format!("{about}: {:?}", run.cause));
            }
            // A denied run does not start, so it has no lines.
            (RunState::Ended(Outcome::Cancelled), Guarantee::NeedsApproval) if run.refused => {}
            (RunState::Ended(Outcome::Cancelled), _) => {
                self.report(format!("{about}: no operator cancelled it"));
            }
            (RunState::Queued { .. } | RunState::Parked | RunState::Running { .. }, _) => {
                self.report(format!("{about}: it did not end"));
            }
            (RunState::Ended(Outcome::Done | Outcome::Failed | Outcome::Unknown), _) => {}
        }
    }

    fn report(&mut self, violation: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        }
    }
}

impl Ended {
    fn counter(&mut self, state: &RunState) -> &mut u64 {
        match state {
            RunState::Ended(Outcome::Done) => &mut self.done,
            RunState::Ended(Outcome::Unknown) => &mut self.unknown,
            RunState::Ended(Outcome::Failed) => &mut self.failed,
            RunState::Ended(Outcome::Cancelled) => &mut self.cancelled,
            RunState::Queued { .. } | RunState::Parked | RunState::Running { .. } => &mut self.live,
        }
    }
}

/// Whether it failed because all of its attempts were interrupted.
fn was_interrupted(run: &Run) -> bool {
    run.cause.as_ref().is_some_and(|cause| cause.code == "interrupted")
}

/// The first slot after an instant.
fn after(at_us: i64) -> i64 {
    (at_us.div_euclid(SECOND_US) + 1) * SECOND_US
}

/// The seconds from one slot to another.
fn seconds(from_us: i64, to_us: i64) -> u64 {
    u64::try_from((to_us - from_us) / SECOND_US).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kernel::slot::Disposition;

    use super::*;

    /// Checks rows (first and last second) of a schedule that was created at second 10.5. Expected are slots, lost and
    /// doubled.
    fn check(until: i64, rows: &[(i64, i64)], expected: (u64, u64, u64)) {
        let at = |second: i64| Timestamp::from_micros(second * SECOND_US);
        let slot = |&(first, last): &(i64, i64)| Slot {
            timing: None,
            revision: 1,
            first: at(first),
            last: at(last),
            count: seconds(first * SECOND_US, last * SECOND_US) + 1,
            wall: String::new(),
            decided_at: at(last),
            outcome: SlotOutcome::Passed {
                disposition: Disposition::SkippedMissed,
                reason: None,
                into: None,
            },
        };
        let slots: Vec<Slot> = rows.iter().map(slot).collect();
        let mut checked = Reconciliation::default();
        let created = Timestamp::from_micros(10 * SECOND_US + SECOND_US / 2);
        checked.check_slots("s", created, at(until), &slots.iter().collect::<Vec<_>>());
        let found = (checked.slots, checked.lost, checked.doubled);
        assert_eq!(found, expected, "{rows:?} until {until}");
        assert_eq!(checked.violations.is_empty(), expected.1 + expected.2 == 0, "{checked:?}");
    }

    #[test]
    fn missing_and_overlapping_rows_are_counted() {
        check(10, &[], (0, 0, 0));
        check(15, &[(11, 11), (12, 14), (15, 15)], (5, 0, 0));
        check(15, &[(12, 14), (15, 15)], (4, 1, 0));
        check(15, &[(11, 11), (14, 15)], (3, 2, 0));
        check(15, &[(11, 12)], (2, 3, 0));
        check(13, &[(11, 12), (12, 13)], (4, 0, 1));
    }
}

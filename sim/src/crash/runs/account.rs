//! The account of a campaign: the runs and slots of the log against the effects that were counted
//! outside, and against the calendar.
//!
//! The calendar is one slot at each full second, and no product code is asked for it.

use std::collections::BTreeMap;

use kernel::approval::{self, Approval};
use kernel::run::{Outcome, Run, State as RunState};
use kernel::slot::{Fate, Slot};
use kernel::{Noun, RunId, State, Tables, Timestamp};
use serde::Serialize;

use super::Promise;
use super::effects::Counted;
use super::person::Answers;

const SECOND_US: i64 = 1_000_000;
/// What is wrong and said in full.
const WRONG_MAX: usize = 20;

#[derive(Debug, Default, Serialize)]
pub(super) struct Account {
    /// Decided, of all schedules.
    pub(super) slots: u64,
    pub(super) once: Ended,
    pub(super) repeatable: Ended,
    pub(super) asked: Ended,
    /// Questions that were answered with yes and led to a beginning, …
    pub(super) consumed: u64,
    /// … and those that were answered with no.
    pub(super) denied: u64,
    /// Effects outside.
    pub(super) lines: u64,
    /// Attempts that were begun after another one of their run.
    pub(super) repeated: u64,
    /// Slots in no row, and runs that are done without an effect.
    pub(super) lost: u64,
    /// Slots in two rows, and effects that were one too many.
    pub(super) doubled: u64,
    #[serde(skip)]
    pub(super) wrong: Vec<String>,
}

/// Runs of one agent by how they ended.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Ended {
    pub(super) done: u64,
    pub(super) unknown: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    /// Those that did not end.
    pub(super) live: u64,
}

impl Account {
    pub(super) fn of(tables: &Tables, counted: &Counted, answers: &Answers) -> Account {
        let mut account = Account { lines: counted.lines, ..Account::default() };
        for line in &counted.strange {
            account.wrong(format!("nobody wrote `{line}`"));
        }
        let mut slots: BTreeMap<&str, Vec<&Slot>> = BTreeMap::new();
        let mut runs: BTreeMap<&str, &Run> = BTreeMap::new();
        let mut approvals: BTreeMap<&str, &Approval> = BTreeMap::new();
        for ((_, id), row) in &tables.rows {
            match &row.state {
                // Keys sort by time, and this map by keys.
                Some(State::Slot(slot)) => {
                    let schedule = id.split_once('/').map_or(id.as_str(), |(schedule, _)| schedule);
                    slots.entry(schedule).or_default().push(slot);
                }
                Some(State::Run(run)) => drop(runs.insert(id, run)),
                Some(State::Agent(_) | State::Schedule(_) | State::Progress(_)) => {}
                Some(State::Approval(approval)) => drop(approvals.insert(id, approval)),
                Some(State::Watch(_) | State::Authority(_)) => {}
                Some(State::Token(_) | State::Tool(_)) | None => {}
            }
        }
        for ((noun, id), row) in &tables.rows {
            let Some(State::Schedule(schedule)) = &row.state else { continue };
            let progress = tables.rows.get(&(Noun::Progress, id.clone()));
            let Some(State::Progress(progress)) = progress.and_then(|row| row.state.as_ref())
            else {
                account.wrong(format!("{} {id} has got nowhere", noun.name()));
                continue;
            };
            let rows = slots.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
            account.walk(id, schedule.created_at, progress.decided_until, rows);
        }
        account.match_runs(&slots, &runs);
        account.match_answers(&runs, &approvals, answers);
        for (id, run) in &runs {
            account.judge(id, run, counted.runs.get(*id).unwrap_or(&BTreeMap::new()));
        }
        for (id, told) in &counted.slots {
            let slot = runs.get(id.as_str()).and_then(|run| run.slot).map(Timestamp::as_micros);
            if !told.iter().copied().eq(slot) {
                account.wrong(format!("run {id} is of slot {slot:?}, and was told {told:?}"));
            }
        }
        for (id, attempts) in &counted.runs {
            if !runs.contains_key(id.as_str()) {
                account.doubled += attempts.values().sum::<u64>();
                account.wrong(format!("run {id} took effect and is not in the log"));
            }
        }
        account
    }

    /// Every second since a schedule was made, up to where it has got, is in one row.
    fn walk(&mut self, id: &str, created: Timestamp, until: Timestamp, rows: &[&Slot]) {
        let mut next = after(created.as_micros());
        for slot in rows {
            let (first, last) = (slot.first.as_micros(), slot.last.as_micros());
            if next < first {
                self.lost += seconds(next, first);
                self.wrong(format!("schedule {id}: no slot from {next} to before {first}"));
            }
            if first < next {
                self.doubled += seconds(first, next);
                self.wrong(format!("schedule {id}: slots from {first} to before {next} twice"));
            }
            let count = seconds(first, last) + 1;
            if count != slot.count || first % SECOND_US != 0 || last % SECOND_US != 0 {
                self.wrong(format!("schedule {id}: {slot:?} does not hold {count} slots"));
            }
            self.slots += count;
            next = after(last);
        }
        if next != after(until.as_micros()) {
            self.lost += seconds(next, after(until.as_micros()));
            self.wrong(format!("schedule {id}: slots end before {next}, and it is at {until:?}"));
        }
    }

    /// Every run belongs to one slot, and every slot that got a run to one that is there.
    fn match_runs(&mut self, slots: &BTreeMap<&str, Vec<&Slot>>, runs: &BTreeMap<&str, &Run>) {
        let mut owners: BTreeMap<&RunId, u64> = BTreeMap::new();
        for (schedule, slot) in
            slots.iter().flat_map(|(id, rows)| rows.iter().map(move |it| (id, it)))
        {
            let Fate::Run { run: id, .. } = &slot.fate else { continue };
            *owners.entry(id).or_default() += 1;
            let fits = |run: &&Run| {
                run.slot == Some(slot.first)
                    && slot.count == 1
                    && run.schedule.as_str() == *schedule
            };
            if !runs.get(id.as_str()).is_some_and(fits) {
                self.wrong(format!("schedule {schedule}: run {id} is not of its slot {slot:?}"));
            }
        }
        let owners: BTreeMap<&str, u64> =
            owners.into_iter().map(|(id, count)| (id.as_str(), count)).collect();
        for id in runs.keys() {
            let count = owners.get(id).copied().unwrap_or_default();
            if count != 1 {
                self.wrong(format!("run {id} belongs to {count} slots"));
            }
        }
    }

    /// Every try that needs a yes has used one up, and no two the same; what was acknowledged is so.
    fn match_answers(
        &mut self,
        runs: &BTreeMap<&str, &Run>,
        approvals: &BTreeMap<&str, &Approval>,
        answers: &Answers,
    ) {
        let mut used: BTreeMap<&str, u32> = BTreeMap::new();
        for (id, approval) in approvals {
            let said = answers.get(*id).copied();
            match approval.state {
                approval::State::Consumed => {
                    self.consumed += 1;
                    *used.entry(approval.plan.run.as_str()).or_default() += 1;
                    // The answer that was acknowledged is not always the one that was lost.
                    if said == Some(false) {
                        self.wrong(format!("{id} was denied, and its run has begun"));
                    }
                }
                approval::State::Denied => {
                    self.denied += 1;
                    if said == Some(true) {
                        self.wrong(format!("{id} was approved, and is denied"));
                    }
                }
                approval::State::Approved { .. } | approval::State::Lapsed(_) => {}
                approval::State::Pending { .. } => {
                    self.wrong(format!("{id} was left open, and {said:?} was acknowledged"));
                }
            }
        }
        for (id, run) in runs {
            let is_asked =
                run.agent.as_ref().is_some_and(|it| it.as_str() == Promise::Asked.agent());
            let used = used.get(id).copied().unwrap_or_default();
            let begun = if is_asked { run.epoch } else { 0 };
            if used != begun {
                self.wrong(format!("run {id} was begun {begun} times with {used} answers"));
            }
        }
    }

    /// A run, and how often each of its attempts took effect.
    fn judge(&mut self, id: &str, run: &Run, lines: &BTreeMap<u32, u64>) {
        let Some(promise) = run.agent.as_ref().and_then(|name| Promise::of(name.as_str())) else {
            return self.wrong(format!("run {id} has a strange agent"));
        };
        self.repeated += u64::from(run.epoch.saturating_sub(1));
        let ended = match promise {
            Promise::Once => &mut self.once,
            Promise::Repeatable => &mut self.repeatable,
            Promise::Asked => &mut self.asked,
        };
        *ended.place(&run.state) += 1;

        let total: u64 = lines.values().sum();
        let said = format!("run {id} of `{}`: {:?}, lines {lines:?}", promise.agent(), run.state);
        // An attempt takes effect once, after the log says that it was begun.
        let begun = |(attempt, _): &(&u32, &u64)| (1..=run.epoch).contains(*attempt);
        let kept: u64 = lines.iter().filter(begun).map(|(_, count)| (*count).min(1)).sum();
        let allowed = match promise {
            Promise::Once | Promise::Asked => kept.min(1),
            Promise::Repeatable => kept,
        };
        if allowed < total {
            self.doubled += total - allowed;
            self.wrong(format!("{said}, {} begun: {} too many", run.epoch, total - allowed));
        }
        match (&run.state, promise) {
            (RunState::Ended(Outcome::Done), _) if !lines.contains_key(&run.attempt) => {
                self.lost += 1;
                self.wrong(format!("{said}: it is done, and attempt {} has none", run.attempt));
            }
            (RunState::Ended(Outcome::Unknown), Promise::Repeatable) => {
                self.wrong(format!("{said}: it could have been repeated"));
            }
            // No program fails by itself.
            (RunState::Ended(Outcome::Failed), _) if !was_cut_off(run) => {
                self.wrong(format!("{said}: {:?}", run.cause));
            }
            // Whoever is not let begin has done nothing, as the lines say.
            (RunState::Ended(Outcome::Cancelled), Promise::Asked) if run.refused => {}
            (RunState::Ended(Outcome::Cancelled), _) => {
                self.wrong(format!("{said}: nobody cancelled it"));
            }
            (RunState::Queued { .. } | RunState::Parked | RunState::Running { .. }, _) => {
                self.wrong(format!("{said}: it was left behind"));
            }
            (RunState::Ended(Outcome::Done | Outcome::Failed | Outcome::Unknown), _) => {}
        }
    }

    fn wrong(&mut self, what: String) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(what);
        }
    }
}

impl Ended {
    fn place(&mut self, state: &RunState) -> &mut u64 {
        match state {
            RunState::Ended(Outcome::Done) => &mut self.done,
            RunState::Ended(Outcome::Unknown) => &mut self.unknown,
            RunState::Ended(Outcome::Failed) => &mut self.failed,
            RunState::Ended(Outcome::Cancelled) => &mut self.cancelled,
            RunState::Queued { .. } | RunState::Parked | RunState::Running { .. } => &mut self.live,
        }
    }
}

/// As often as it may be tried.
fn was_cut_off(run: &Run) -> bool {
    run.cause.as_ref().is_some_and(|cause| cause.code == "interrupted")
}

/// The first slot after an instant.
fn after(at_us: i64) -> i64 {
    (at_us.div_euclid(SECOND_US) + 1) * SECOND_US
}

/// From one slot to another.
fn seconds(from_us: i64, to_us: i64) -> u64 {
    u64::try_from((to_us - from_us) / SECOND_US).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kernel::slot::Disposition;

    use super::*;

    /// Rows of a schedule that was made half a second after 10, in seconds: first and last. What is
    /// expected is slots, lost, doubled.
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
            fate: Fate::Passed {
                disposition: Disposition::SkippedMissed,
                reason: None,
                into: None,
            },
        };
        let slots: Vec<Slot> = rows.iter().map(slot).collect();
        let mut account = Account::default();
        let created = Timestamp::from_micros(10 * SECOND_US + SECOND_US / 2);
        account.walk("s", created, at(until), &slots.iter().collect::<Vec<_>>());
        let found = (account.slots, account.lost, account.doubled);
        assert_eq!(found, expected, "{rows:?} until {until}");
        assert_eq!(account.wrong.is_empty(), expected.1 + expected.2 == 0, "{:?}", account.wrong);
    }

    #[test]
    fn every_second_is_in_one_row() {
        check(10, &[], (0, 0, 0));
        check(15, &[(11, 11), (12, 14), (15, 15)], (5, 0, 0));
        check(15, &[(12, 14), (15, 15)], (4, 1, 0));
        check(15, &[(11, 11), (14, 15)], (3, 2, 0));
        check(15, &[(11, 12)], (2, 3, 0));
        check(13, &[(11, 12), (12, 13)], (4, 0, 1));
    }
}

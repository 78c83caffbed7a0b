//! The desk: which queued runs wait for whom, and which are at work. It forgets everything when the
//! process ends; what is true is in the store, and the desk is filled from there.
//!
//! Runs of one agent are a lane. A lane has so many hands; among those that wait in it, the one comes
//! first that has waited longest, and a step of priority is worth a minute of waiting.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel::agent::AgentName;
use kernel::run::{Run, State};
use kernel::{RunId, ScheduleId, Timestamp};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Runs of one agent that are at work at a time.
const LANE_HANDS: usize = 16;
/// Runs that are at work at a time.
const HANDS: usize = 256;
/// What a step of priority is worth.
const PRIORITY_STEP_US: i64 = 60_000_000;

#[derive(Debug, Default)]
pub(crate) struct Desk {
    runs: Mutex<Runs>,
    changed: Notify,
}

/// A run that is taken from the desk to be worked on.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub id: RunId,
    pub schedule: ScheduleId,
    pub agent: Option<AgentName>,
    pub stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Runs {
    /// Nobody takes runs from a desk that is closed, so none are put there.
    is_open: bool,
    /// By the instant from which they may begin.
    later: BTreeMap<(Timestamp, RunId), Waiting>,
    lanes: BTreeMap<Option<AgentName>, Lane>,
    at_work: HashMap<RunId, AtWork>,
}

#[derive(Debug, Default)]
struct Lane {
    /// By their turn.
    waiting: BTreeMap<(i64, RunId), ScheduleId>,
    at_work: usize,
}

#[derive(Debug)]
struct Waiting {
    schedule: ScheduleId,
    agent: Option<AgentName>,
    /// The smaller, the sooner.
    turn: i64,
}

#[derive(Debug)]
struct AtWork {
    agent: Option<AgentName>,
    stop: CancellationToken,
}

impl Desk {
    pub(crate) fn open(&self) {
        self.runs().is_open = true;
    }

    /// A run that may be worked on, now or later.
    pub(crate) fn put(&self, id: &RunId, run: &Run) {
        let State::Queued { from } = run.state else { return };
        let mut runs = self.runs();
        if !runs.is_open || runs.at_work.contains_key(id) {
            return;
        }
        let turn = from.as_micros() - i64::from(run.priority) * PRIORITY_STEP_US;
        let waiting = Waiting { schedule: run.schedule.clone(), agent: run.agent.clone(), turn };
        runs.later.insert((from, id.clone()), waiting);
        drop(runs);
        self.changed.notify_one();
    }

    /// The runs whose turn it is, as many as there are hands for.
    pub(crate) fn take(&self, now: Timestamp) -> Vec<Taken> {
        self.runs().take(now)
    }

    /// When the next run may begin that may not yet.
    pub(crate) fn next_from(&self) -> Option<Timestamp> {
        self.runs().later.keys().next().map(|(from, _)| *from)
    }

    /// Returns when there may be something to take that was not there before.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn done(&self, id: &RunId) {
        let mut runs = self.runs();
        let Some(at_work) = runs.at_work.remove(id) else { return };
        if let Some(lane) = runs.lanes.get_mut(&at_work.agent) {
            lane.at_work = lane.at_work.saturating_sub(1);
        }
        drop(runs);
        self.changed.notify_one();
    }

    /// Stops the work on a run, if it is at work here.
    pub(crate) fn stop(&self, id: &RunId) {
        if let Some(at_work) = self.runs().at_work.get(id) {
            at_work.stop.cancel();
        }
    }

    pub(crate) fn stop_all(&self) {
        self.runs().at_work.values().for_each(|at_work| at_work.stop.cancel());
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    fn take(&mut self, now: Timestamp) -> Vec<Taken> {
        while let Some(first) = self.later.first_entry()
            && first.key().0 <= now
        {
            let ((_, id), Waiting { schedule, agent, turn }) = first.remove_entry();
            self.lanes.entry(agent).or_default().waiting.insert((turn, id), schedule);
        }
        let mut taken = Vec::new();
        let mut lanes: BTreeSet<_> = self.lanes.keys().cloned().collect();
        // One of each lane after the other, so that a long queue does not keep others waiting.
        while !lanes.is_empty() {
            for agent in lanes.clone() {
                match self.take_from(&agent) {
                    Some(run) => taken.push(run),
                    None => drop(lanes.remove(&agent)),
                }
            }
        }
        self.lanes.retain(|_, lane| 0 < lane.at_work || !lane.waiting.is_empty());
        taken
    }

    fn take_from(&mut self, agent: &Option<AgentName>) -> Option<Taken> {
        let lane = self.lanes.get_mut(agent).filter(|lane| lane.at_work < LANE_HANDS)?;
        if HANDS <= self.at_work.len() {
            return None;
        }
        let ((_, id), schedule) = lane.waiting.pop_first()?;
        lane.at_work += 1;
        let stop = CancellationToken::new();
        let at_work = AtWork { agent: agent.clone(), stop: stop.clone() };
        self.at_work.insert(id.clone(), at_work);
        Some(Taken { id, schedule, agent: agent.clone(), stop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(agent: &str, priority: u8, from_s: i64) -> Run {
        let from = Timestamp::from_micros(from_s * 1_000_000);
        let queued = serde_json::json!({
            "schedule": "sch_00000000", "revision": 1, "origin": "manual", "agent": agent,
            "priority": priority, "queued_at": from, "state": {"queued": {"from": from}},
        });
        serde_json::from_value(queued).unwrap()
    }

    fn taken(desk: &Desk, now_s: i64) -> Vec<u128> {
        let taken = desk.take(Timestamp::from_micros(now_s * 1_000_000));
        let number = |run: &Taken| u128::from_str_radix(&run.id.as_str()[4..], 16).unwrap();
        taken.iter().map(number).collect()
    }

    #[test]
    fn a_lane_has_so_many_hands_and_others_do_not_wait_for_it() {
        let desk = Desk::default();
        desk.open();
        for id in 0..100 {
            desk.put(&RunId::of(id), &run("busy", 5, 1));
        }
        desk.put(&RunId::of(1_000), &run("idle", 5, 1));
        let first = taken(&desk, 1);
        assert_eq!(first.len(), LANE_HANDS + 1);
        assert!(first.contains(&1_000));
        assert_eq!(taken(&desk, 1), []);
        desk.done(&RunId::of(3));
        assert_eq!(taken(&desk, 1), [LANE_HANDS as u128]);
    }

    #[test]
    fn a_step_of_priority_is_worth_a_minute() {
        let desk = Desk::default();
        desk.open();
        for (id, priority, from_s) in [(1, 5, 120), (2, 6, 181), (3, 6, 179), (4, 9, 500)] {
            desk.put(&RunId::of(id), &run("ada", priority, from_s));
        }
        assert_eq!(taken(&desk, 200), [3, 1, 2]);
        assert_eq!(desk.next_from(), Some(Timestamp::from_micros(500_000_000)));
    }

    #[test]
    fn all_hands_together_have_a_limit() {
        let desk = Desk::default();
        desk.open();
        for id in 0..1_000 {
            desk.put(&RunId::of(id), &run(&format!("agent-{}", id % 100), 5, 1));
        }
        assert_eq!(taken(&desk, 1).len(), HANDS);
        assert_eq!(taken(&desk, 1).len(), 0);
        desk.done(&RunId::of(0));
        assert_eq!(taken(&desk, 1).len(), 1);
    }

    #[test]
    fn a_run_is_taken_once_and_none_from_a_closed_desk() {
        let desk = Desk::default();
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), []);
        desk.open();
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), [1]);
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), []);
    }
}

//! Counts of what happened: a simulation without crashes, conflicts and skipped slots proves nothing.

use std::collections::BTreeMap;

use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) lives: u64,
    pub(super) entries: u64,
    pub(super) slots: u64,
    pub(super) runs: u64,
    pub(super) attempts: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) in_doubt: u64,
    /// Calls whose caller did not wait for the answer.
    pub(super) abandoned_calls: u64,
    pub(super) jumps: u64,
    pub(super) crashes: u64,
    pub(super) stops: u64,
    /// Freezes and cancels while the store failed.
    pub(super) unrecorded_stops: u64,
    pub(super) takeovers: u64,
    /// Processes that ended because of a fault of the store.
    pub(super) ended: u64,
    pub(super) reads: u64,
    /// Runs that started in the commit that queued them.
    pub(super) fast_starts: u64,
    /// Attempts that two people had to approve.
    pub(super) dual_approved_starts: u64,
    /// Runs that did not start because the day's tokens were used up.
    pub(super) out_of_tokens: u64,
    /// Runs that did not start because the day's money was used up.
    pub(super) out_of_money: u64,
    pub(super) simulated_hours: u64,
    /// Runs by their origin.
    pub(super) origins: BTreeMap<&'static str, u64>,
    /// Slot rows by their disposition.
    pub(super) dispositions: BTreeMap<&'static str, u64>,
}

impl Summary {
    pub(super) fn add(&mut self, other: &Summary) {
        self.lives += other.lives;
        self.entries += other.entries;
        self.slots += other.slots;
        self.runs += other.runs;
        self.attempts += other.attempts;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.in_doubt += other.in_doubt;
        self.abandoned_calls += other.abandoned_calls;
        self.jumps += other.jumps;
        self.crashes += other.crashes;
        self.stops += other.stops;
        self.unrecorded_stops += other.unrecorded_stops;
        self.takeovers += other.takeovers;
        self.ended += other.ended;
        self.reads += other.reads;
        self.fast_starts += other.fast_starts;
        self.dual_approved_starts += other.dual_approved_starts;
        self.out_of_tokens += other.out_of_tokens;
        self.out_of_money += other.out_of_money;
        self.simulated_hours += other.simulated_hours;
        add_all(&mut self.origins, &other.origins);
        add_all(&mut self.dispositions, &other.dispositions);
    }
}

fn add_all(counts: &mut BTreeMap<&'static str, u64>, others: &BTreeMap<&'static str, u64>) {
    for (name, count) in others {
        *counts.entry(name).or_default() += count;
    }
}

//! What happened in some lives: a simulation in which nothing happened proves nothing.

use std::collections::BTreeMap;

use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) lives: u64,
    pub(super) entries: u64,
    pub(super) slots: u64,
    pub(super) runs: u64,
    pub(super) tries: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) in_doubt: u64,
    /// Calls that nobody waited for any more.
    pub(super) hung_up: u64,
    pub(super) jumps: u64,
    pub(super) crashes: u64,
    pub(super) stops: u64,
    pub(super) overtaken: u64,
    /// Processes that a fault of the store has ended.
    pub(super) ended: u64,
    pub(super) reads: u64,
    /// Runs whose only try began with the commit that queued them.
    pub(super) begun_at_once: u64,
    /// Tries that began because two people had said yes.
    pub(super) begun_by_two: u64,
    /// Runs that found the tokens of a day used up, …
    pub(super) out_of_tokens: u64,
    /// … and the money.
    pub(super) out_of_money: u64,
    pub(super) simulated_hours: u64,
    /// How runs came to be.
    pub(super) origins: BTreeMap<&'static str, u64>,
    /// What became of slots, by rows.
    pub(super) dispositions: BTreeMap<&'static str, u64>,
}

impl Summary {
    pub(super) fn add(&mut self, other: &Summary) {
        self.lives += other.lives;
        self.entries += other.entries;
        self.slots += other.slots;
        self.runs += other.runs;
        self.tries += other.tries;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.in_doubt += other.in_doubt;
        self.hung_up += other.hung_up;
        self.jumps += other.jumps;
        self.crashes += other.crashes;
        self.stops += other.stops;
        self.overtaken += other.overtaken;
        self.ended += other.ended;
        self.reads += other.reads;
        self.begun_at_once += other.begun_at_once;
        self.begun_by_two += other.begun_by_two;
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

//! All derived state, as a fold over events: what `ledger rebuild` makes and what the stored tables
//! must equal. No rule lives here; each noun's `apply` says what an event does to its state.
//!
//! Invariant: a row's version is the number of events about it. A removed thing keeps its row
//! without a state, so that a version is never given twice for one id.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::agent::{self, Agent};
use crate::event::{Body, Noun};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub rows: BTreeMap<(Noun, String), Row>,
    pub counters: BTreeMap<Counter, i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub version: u64,
    pub state: Option<State>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Agent(Agent),
}

/// A number that many writers share, changed by deltas and never by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    Agents,
}

impl Tables {
    pub fn apply(&mut self, body: &Body) {
        if let Body::Agent(name, event) = body {
            let row = self.rows.entry((Noun::Agent, name.to_string())).or_default();
            let agent = row.state.take().map(|State::Agent(agent)| agent);
            row.state = agent::apply(name, agent, event).map(State::Agent);
            row.version += 1;
        }
        if let Some((counter, add)) = delta(body) {
            *self.counters.entry(counter).or_default() += add;
        }
    }
}

/// What an event adds to a counter.
pub fn delta(body: &Body) -> Option<(Counter, i64)> {
    match body {
        Body::Agent(_, agent::Event::Registered(_)) => Some((Counter::Agents, 1)),
        Body::Agent(_, agent::Event::Removed(_)) => Some((Counter::Agents, -1)),
        Body::Agent(_, agent::Event::Changed(_)) | Body::Watch(..) => None,
    }
}

impl Counter {
    pub const fn name(self) -> &'static str {
        match self {
            Counter::Agents => "agents",
        }
    }

    /// The most it may reach.
    pub const fn max(self) -> i64 {
        match self {
            Counter::Agents => agent::AGENTS_MAX,
        }
    }
}

/// The stored body of a row.
impl Serialize for State {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            State::Agent(agent) => agent.serialize(out),
        }
    }
}

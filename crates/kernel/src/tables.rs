//! All derived state, as a fold over events: what `ledger rebuild` makes and what the stored tables
//! must equal. No rule lives here; each noun's `apply` says what an event does to its state.
//!
//! Invariant: a row's version is the number of events that changed it. A removed thing keeps its row
//! without a state, so that a version is never given twice for one id.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::{self, Agent};
use crate::event::{Body, Noun};
use crate::watch::{self, Identity};

/// Every derived row and counter.
///
/// ```
/// use kernel::agent::{Event, Removed};
/// use kernel::{Body, Noun, Tables, Timestamp};
///
/// let mut tables = Tables::default();
/// let removed = Event::Removed(Removed { at: Timestamp::from_micros(0) });
/// tables.apply(&Body::Agent("ada".parse()?, removed));
/// let row = &tables.rows[&(Noun::Agent, "ada".to_owned())];
/// assert_eq!((row.version, &row.state), (1, &None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    Watch(Identity),
}

/// A number that many writers share, changed by deltas and never by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    Agents,
}

impl Tables {
    pub fn apply(&mut self, body: &Body) {
        if let Some((noun, id)) = subject(body) {
            self.rows.entry((noun, id.to_owned())).or_default().apply(body);
        }
        if let Some((counter, add)) = delta(body) {
            *self.counters.entry(counter).or_default() += add;
        }
    }
}

impl Row {
    /// The row after an event about it.
    pub fn apply(&mut self, body: &Body) {
        self.version += 1;
        self.state = match (body, self.state.take()) {
            (Body::Agent(name, event), Some(State::Agent(agent))) => {
                agent::apply(name, Some(agent), event).map(State::Agent)
            }
            (Body::Agent(name, event), _) => agent::apply(name, None, event).map(State::Agent),
            (Body::Watch(instance, event), Some(State::Watch(identity))) => {
                watch::apply(instance, Some(identity), event).map(State::Watch)
            }
            (Body::Watch(instance, event), _) => {
                watch::apply(instance, None, event).map(State::Watch)
            }
        };
    }
}

/// The row that an event is about, if it changes one.
pub fn subject(body: &Body) -> Option<(Noun, &str)> {
    match body {
        Body::Agent(name, _) => Some((Noun::Agent, name.as_str())),
        Body::Watch(instance, event) => {
            watch::is_about_identity(event).then_some((Noun::Watch, instance.as_str()))
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
            State::Watch(identity) => identity.serialize(out),
        }
    }
}

impl State {
    pub fn decode<'de, D: Deserializer<'de>>(noun: Noun, body: D) -> Result<State, D::Error> {
        match noun {
            Noun::Agent => Agent::deserialize(body).map(State::Agent),
            Noun::Watch => Identity::deserialize(body).map(State::Watch),
        }
    }
}

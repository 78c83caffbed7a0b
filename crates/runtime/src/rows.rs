//! Rows that were loaded to decide on, and what a decision makes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::Error;
use kernel::agent::{Agent, AgentName};
use kernel::approval::Approval;
use kernel::authority::Authority;
use kernel::progress::Progress;
use kernel::run::Run;
use kernel::schedule::Schedule;
use kernel::slot::Slot;
use kernel::tables::{Touched, touched};
use kernel::token::Token;
use kernel::tool::{ToolName, Use};
use kernel::{ApprovalId, Body, Noun, Row, RunId, ScheduleId, State, Timestamp, TokenId};
use store::{Expect, Write};

use crate::stored;

/// Of which row something is asked.
pub(crate) type RowKey = (Noun, String);

#[derive(Clone, Debug, Default)]
pub(crate) struct Rows(BTreeMap<RowKey, Arc<Row>>);

impl Rows {
    pub(crate) fn insert(&mut self, key: RowKey, row: Arc<Row>) {
        self.0.insert(key, row);
    }

    pub(crate) fn extend(&mut self, others: Rows) {
        self.0.extend(others.0);
    }

    pub(crate) fn row(&self, noun: Noun, id: &str) -> Option<&Row> {
        self.0.get(&(noun, id.to_owned())).map(|row| &**row)
    }

    pub(crate) fn agent(&self, name: &AgentName) -> Option<&Agent> {
        match self.state(Noun::Agent, name.as_str())? {
            State::Agent(agent) => Some(agent),
            _ => None,
        }
    }

    pub(crate) fn schedule(&self, id: &ScheduleId) -> Option<&Schedule> {
        match self.state(Noun::Schedule, id.as_str())? {
            State::Schedule(schedule) => Some(schedule),
            _ => None,
        }
    }

    pub(crate) fn progress(&self, id: &ScheduleId) -> Option<&Progress> {
        match self.state(Noun::Progress, id.as_str())? {
            State::Progress(progress) => Some(progress),
            _ => None,
        }
    }

    pub(crate) fn run(&self, id: &RunId) -> Option<&Run> {
        match self.state(Noun::Run, id.as_str())? {
            State::Run(run) => Some(run),
            _ => None,
        }
    }

    pub(crate) fn approval(&self, id: &ApprovalId) -> Option<&Approval> {
        match self.state(Noun::Approval, id.as_str())? {
            State::Approval(approval) => Some(approval),
            _ => None,
        }
    }

    pub(crate) fn authority(&self, instance: &str) -> Option<&Authority> {
        match self.state(Noun::Authority, instance)? {
            State::Authority(authority) => Some(authority),
            _ => None,
        }
    }

    pub(crate) fn slot(&self, key: &str) -> Option<&Slot> {
        match self.state(Noun::Slot, key)? {
            State::Slot(slot) => Some(slot),
            _ => None,
        }
    }

    pub(crate) fn token(&self, id: &TokenId) -> Option<&Token> {
        match self.state(Noun::Token, id.as_str())? {
            State::Token(token) => Some(token),
            _ => None,
        }
    }

    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Use> {
        match self.state(Noun::Tool, name.as_str())? {
            State::Tool(used) => Some(used),
            _ => None,
        }
    }

    /// That those of these rows which are no others afterwards are as they are here.
    pub(crate) fn unchanged(&self, after: &Rows, keys: &[RowKey]) -> Vec<Expect> {
        let unchanged = keys.iter().filter(|key| self.version(key) == after.version(key));
        let expect = |key: &RowKey| {
            let (noun, id) = (key.0.name(), key.1.clone());
            Expect { noun, id, version: self.version(key) }
        };
        unchanged.map(expect).collect()
    }

    /// When the first schedule among these is due.
    pub(crate) fn earliest_due(&self) -> Option<Timestamp> {
        let schedules = self.0.iter().filter(|((noun, _), _)| *noun == Noun::Progress);
        schedules.filter_map(|(_, row)| row.due()).min()
    }

    /// The rows that these events change and that are not among these yet.
    pub(crate) fn missing(&self, bodies: &[Body]) -> Vec<RowKey> {
        let touched = bodies.iter().flat_map(touched).filter(|touched| !touched.is_new);
        let keys = touched.map(|Touched { noun, id, .. }| (noun, id));
        keys.filter(|key| !self.0.contains_key(key)).collect()
    }

    /// These rows after the events.
    pub(crate) fn after(&self, bodies: &[Body]) -> Rows {
        let mut rows = self.0.clone();
        for body in bodies {
            for Touched { noun, id, .. } in touched(body) {
                let key = (noun, id);
                let id = key.1.clone();
                Arc::make_mut(rows.entry(key).or_default()).apply(noun, &id, body);
            }
        }
        Rows(rows)
    }

    /// Those that are others than these were before.
    pub(crate) fn changed<'a>(
        &'a self,
        before: &'a Rows,
    ) -> impl Iterator<Item = (&'a RowKey, &'a Arc<Row>)> {
        self.0.iter().filter(move |(key, row)| before.version(key) != row.version)
    }

    /// Whether one of them, by the name of its noun, is another than it was before.
    pub(crate) fn is_changed(&self, before: &Rows, noun: &str, id: &str) -> bool {
        self.changed(before).any(|((its, key), _)| its.name() == noun && key == id)
    }

    /// What is to be written to get from these rows to others.
    pub(crate) fn writes(&self, after: &Rows) -> Result<Vec<Write>, Error> {
        let none = Row::default();
        let changed = after.changed(self).map(|(key @ (noun, id), row)| {
            let before = self.0.get(key).map_or(&none, |row| row);
            stored::write(*noun, id.clone(), before, row)
        });
        changed.collect()
    }

    /// That of a row which is not there is 0.
    fn version(&self, key: &RowKey) -> u64 {
        self.0.get(key).map_or(0, |row| row.version)
    }

    fn state(&self, noun: Noun, id: &str) -> Option<&State> {
        self.row(noun, id)?.state.as_ref()
    }
}

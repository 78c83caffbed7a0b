//! Rows loaded for a decision, and the rows after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::Error;
use kernel::agent::{Agent, AgentName};
use kernel::approval::Approval;
use kernel::authority::Authority;
use kernel::noun::ChangedRow;
use kernel::progress::Progress;
use kernel::run::Run;
use kernel::schedule::Schedule;
use kernel::slot::Slot;
use kernel::token::Token;
use kernel::tool::{ToolName, ToolStats};
use kernel::{ApprovalId, EventBody, Noun, Row, RunId, ScheduleId, State, Timestamp, TokenId};
use store::{Expect, Write};

use crate::commit::codec;

/// A noun, and the id of one of its rows.
pub(crate) type RowKey = (Noun, String);

/// The row that tells whether the installation is frozen, and when its lease was renewed.
pub(crate) fn authority_row(instance: &str) -> RowKey {
    (Noun::Authority, instance.to_owned())
}

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

    /// The authority of an installation; the default if it was never changed.
    pub(crate) fn authority_of(&self, instance: &str) -> Authority {
        self.authority(instance).cloned().unwrap_or_default()
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

    pub(crate) fn tool(&self, name: &ToolName) -> Option<&ToolStats> {
        match self.state(Noun::Tool, name.as_str())? {
            State::Tool(used) => Some(used),
            _ => None,
        }
    }

    /// The versions of those `keys` that the transaction leaves unchanged, as conditions of its commit.
    pub(crate) fn unchanged(&self, after: &Rows, keys: &[RowKey]) -> Vec<Expect> {
        let unchanged = keys.iter().filter(|key| self.version(key) == after.version(key));
        let expect = |key: &RowKey| {
            let (noun, id) = (key.0.name(), key.1.clone());
            Expect { noun, id, version: self.version(key) }
        };
        unchanged.map(expect).collect()
    }

    /// The earliest time at which one of these schedules is due.
    pub(crate) fn earliest_due(&self) -> Option<Timestamp> {
        let schedules = self.0.iter().filter(|((noun, _), _)| *noun == Noun::Progress);
        schedules.filter_map(|(_, row)| row.due()).min()
    }

    /// The rows that the events change and that are not loaded yet.
    pub(crate) fn missing(&self, events: &[EventBody]) -> Vec<RowKey> {
        let touched =
            events.iter().flat_map(EventBody::changed_rows).filter(|touched| !touched.is_new);
        let keys = touched.map(|ChangedRow { noun, id, .. }| (noun, id));
        keys.filter(|key| !self.0.contains_key(key)).collect()
    }

    /// The rows after the events.
    pub(crate) fn after(&self, events: &[EventBody]) -> Rows {
        let mut rows = self.0.clone();
        for event in events {
            for ChangedRow { noun, id, .. } in event.changed_rows() {
                let key = (noun, id);
                let id = key.1.clone();
                Arc::make_mut(rows.entry(key).or_default()).apply(noun, &id, event);
            }
        }
        Rows(rows)
    }

    /// The rows whose version differs from `before`.
    pub(crate) fn changed<'a>(
        &'a self,
        before: &'a Rows,
    ) -> impl Iterator<Item = (&'a RowKey, &'a Arc<Row>)> {
        self.0.iter().filter(move |(key, row)| before.version(key) != row.version)
    }

    pub(crate) fn is_changed(&self, before: &Rows, noun: &str, id: &str) -> bool {
        self.changed(before).any(|((its, key), _)| its.name() == noun && key == id)
    }

    /// The writes that turn these rows into `after`.
    pub(crate) fn writes(&self, after: &Rows) -> Result<Vec<Write>, Error> {
        let none = Row::default();
        let changed = after.changed(self).map(|(key @ (noun, id), row)| {
            let before = self.0.get(key).map_or(&none, |row| row);
            codec::write_row(*noun, id.clone(), before, row)
        });
        changed.collect()
    }

    /// 0 for a row that does not exist.
    fn version(&self, key: &RowKey) -> u64 {
        self.0.get(key).map_or(0, |row| row.version)
    }

    fn state(&self, noun: Noun, id: &str) -> Option<&State> {
        self.row(noun, id)?.state.as_ref()
    }
}

//! A workload whose entries suffice to check every row: an entry contains the row that its commit
//! wrote, the row's version, and the amount added to the counter.

use ledger::{Draft, Hash, Header, canonical_json};
use store::{Commit, Delta, Store, StoredResponse, Write};

pub(crate) const COUNTER: &str = "units";
pub(crate) const COUNTER_MAX: i64 = 40;

/// A step of a node. Its unique name is its idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) row: String,
    /// The version of the row after the step.
    pub(crate) version: u64,
    pub(crate) add: i64,
}

impl Step {
    pub(crate) fn commit(&self) -> Commit {
        let facts = format!("{} {} {}", self.row, self.version, self.add);
        let response = StoredResponse {
            key: self.name.clone(),
            request_hash: Hash::from_bytes([1; 32]),
            body: self.name.clone().into_bytes(),
            at_us: 1,
        };
        let write = Write {
            noun: "row",
            id: self.row.clone(),
            expected_version: self.version - 1,
            version: self.version,
            body: Some(self.name.as_bytes().into()),
            ..Write::default()
        };
        let delta = Some(Delta { counter: COUNTER.into(), add: self.add, max: COUNTER_MAX });
        Commit {
            drafts: vec![draft(&self.name, &facts)],
            writes: vec![write],
            deltas: delta.filter(|delta| delta.add != 0).into_iter().collect(),
            response: Some(response),
            ..Commit::default()
        }
    }

    /// Parses the step of an entry.
    pub(crate) fn parse(name: &str, facts: &[u8]) -> Step {
        let text = std::str::from_utf8(facts).unwrap().trim_matches('"');
        let [row, version, add] = text.split(' ').collect::<Vec<_>>()[..] else {
            panic!("`{text}` is not a step");
        };
        let (version, add) = (version.parse().unwrap(), add.parse().unwrap());
        Step { name: name.into(), row: row.into(), version, add }
    }
}

/// A commit of one entry.
pub(crate) fn event(name: &str) -> Commit {
    Commit { drafts: vec![draft(name, "")], ..Commit::default() }
}

pub(crate) fn add(counter: &'static str, add: i64) -> Commit {
    Commit {
        deltas: vec![Delta { counter: counter.into(), add, max: 1_000_000 }],
        ..Commit::default()
    }
}

pub(crate) fn put(row: &str, version: u64) -> Commit {
    let body = Some(row.as_bytes().into());
    let (id, expected) = (row.into(), version - 1);
    let write =
        Write { noun: "row", id, expected_version: expected, version, body, ..Write::default() };
    Commit { writes: vec![write], ..event(row) }
}

pub(crate) async fn version_of(store: &dyn Store, row: &str) -> Result<u64, store::Error> {
    store.load("row", row).await.map(|row| row.version)
}

fn draft(name: &str, facts: &str) -> Draft {
    let header = Header {
        ts_us: 1,
        kind: "test.happened",
        version: 1,
        actor: "uid:1",
        role: "operator",
        cause: name,
        noun: "step",
        noun_id: name,
    };
    Draft::new(header, canonical_json(&facts).unwrap(), None).unwrap()
}

//! Work that leaves enough in the log to check every row by it: an entry names the row that its
//! commit wrote, the version it gave, and what it added to the counter.

use ledger::{Draft, Hash, Header, canonical};
use store::{Answer, Commit, Delta, Store, Write};

pub(crate) const COUNTER: &str = "units";
pub(crate) const COUNTER_MAX: i64 = 40;

/// A step of a node: it has a name that no other step has, and can be asked for again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) row: String,
    /// That the row has after it.
    pub(crate) version: u64,
    pub(crate) add: i64,
}

impl Step {
    pub(crate) fn commit(&self) -> Commit {
        let facts = format!("{} {} {}", self.row, self.version, self.add);
        let answer = Answer {
            key: self.name.clone(),
            request_hash: Hash::from_bytes([1; 32]),
            body: self.name.clone().into_bytes(),
            at_us: 1,
        };
        let write = Write {
            noun: "row",
            id: self.row.clone(),
            expected: self.version - 1,
            version: self.version,
            body: Some(self.name.as_bytes().into()),
            ..Write::default()
        };
        let delta = Some(Delta { counter: COUNTER.into(), add: self.add, max: COUNTER_MAX });
        Commit {
            drafts: vec![draft(&self.name, &facts)],
            writes: vec![write],
            deltas: delta.filter(|delta| delta.add != 0).into_iter().collect(),
            answer: Some(answer),
            ..Commit::default()
        }
    }

    /// What an entry tells of its step.
    pub(crate) fn read(name: &str, facts: &[u8]) -> Step {
        let text = std::str::from_utf8(facts).unwrap().trim_matches('"');
        let [row, version, add] = text.split(' ').collect::<Vec<_>>()[..] else {
            panic!("`{text}` tells of no step");
        };
        let (version, add) = (version.parse().unwrap(), add.parse().unwrap());
        Step { name: name.into(), row: row.into(), version, add }
    }
}

/// An entry and nothing else.
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
    let write = Write { noun: "row", id, expected, version, body, ..Write::default() };
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
    Draft::new(header, canonical(&facts).unwrap(), None).unwrap()
}

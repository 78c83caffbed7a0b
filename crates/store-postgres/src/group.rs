//! Decides the outcomes of a group of commits from the rows that it loaded and locked.
//!
//! Commits are decided in order, each on the rows as the previous ones leave them. A refused commit
//! changes nothing. Each changed row is then written once, even if several commits change it.

use std::collections::BTreeMap;

use ledger::{Appended, Chain, Draft, Hash};
use store::{Commit, Expect, Outcome, Receipt, StoredResponse, Write};

/// The current state of the rows, counters and idempotency keys that a group uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedRows {
    /// By noun and id; 0 for a row that does not exist. Locked.
    pub(crate) versions: Versions,
    /// Rows that the group only reads. Not locked.
    pub(crate) read: Versions,
    /// `None` for a counter that does not exist.
    pub(crate) counters: BTreeMap<String, Option<i64>>,
    pub(crate) responses: BTreeMap<String, (Hash, Vec<u8>)>,
}

pub(crate) type Versions = BTreeMap<&'static str, BTreeMap<String, u64>>;

/// What the accepted commits of a group write.
#[derive(Debug, Default)]
pub(crate) struct GroupPlan<'a> {
    /// New rows, each with its last write.
    pub(crate) inserts: Rows<'a>,
    /// Changed rows, each with its last write.
    pub(crate) updates: Rows<'a>,
    pub(crate) new_counters: BTreeMap<&'a str, i64>,
    pub(crate) counters: BTreeMap<&'a str, i64>,
    pub(crate) responses: Vec<&'a StoredResponse>,
    /// Rows that are only read, and the versions that they must have once the head is locked.
    pub(crate) expects: BTreeMap<(&'static str, &'a str), u64>,
    /// One per commit.
    verdicts: Vec<CommitVerdict<'a>>,
}

pub(crate) type Rows<'a> = BTreeMap<(&'static str, &'a str), &'a Write>;

#[derive(Debug)]
enum CommitVerdict<'a> {
    Accepted(&'a [Draft]),
    Refused(Outcome),
}

/// The appended entries of a group, and the outcome of each commit.
#[derive(Debug)]
pub(crate) struct AppendedGroup<'a> {
    pub(crate) entries: Vec<(&'a Draft, Appended)>,
    pub(crate) outcomes: Vec<Outcome>,
}

pub(crate) fn decide<'a>(commits: &[&'a Commit], mut loaded: LoadedRows) -> GroupPlan<'a> {
    let (before, counters) = (loaded.versions.clone(), loaded.counters.clone());
    let row_exists =
        |noun, id| before.get(noun).and_then(|ids| ids.get(id)).is_some_and(|it| 0 < *it);
    let counter_exists = |name: &str| counters.get(name).is_some_and(Option::is_some);
    let mut plan = GroupPlan::default();
    for commit in commits {
        if let Some(refusal) = loaded.refusal(commit) {
            plan.verdicts.push(CommitVerdict::Refused(refusal));
            continue;
        }
        for Expect { noun, id, version } in &commit.expects {
            plan.expects.entry((noun, id)).or_insert(*version);
        }
        for write in &commit.writes {
            let rows = match row_exists(write.noun, write.id.as_str()) {
                true => &mut plan.updates,
                false => &mut plan.inserts,
            };
            rows.insert((write.noun, &write.id), write);
            let versions = loaded.versions.entry(write.noun).or_default();
            versions.insert(write.id.clone(), write.version);
        }
        for delta in &commit.deltas {
            let known = loaded.counters.entry(delta.counter.to_string()).or_default();
            let value = known.unwrap_or_default().saturating_add(delta.add);
            *known = Some(value);
            match counter_exists(&delta.counter) {
                true => plan.counters.insert(&*delta.counter, value),
                false => plan.new_counters.insert(&*delta.counter, value),
            };
        }
        if let Some(response) = &commit.response {
            loaded
                .responses
                .insert(response.key.clone(), (response.request_hash, response.body.clone()));
            plan.responses.push(response);
        }
        plan.verdicts.push(CommitVerdict::Accepted(&commit.drafts));
    }
    plan.responses.sort_by(|a, b| a.key.cmp(&b.key));
    // Rows that the group also writes are locked, and have their new versions by then.
    let GroupPlan { expects, inserts, updates, .. } = &mut plan;
    expects.retain(|key, _| !inserts.contains_key(key) && !updates.contains_key(key));
    plan
}

impl LoadedRows {
    /// The rows as these commits expect them; `None` if one changes a counter, whose value is unknown.
    pub(crate) fn expected_by(commits: &[&Commit]) -> Option<LoadedRows> {
        let mut expected = LoadedRows::default();
        for commit in commits {
            if !commit.deltas.is_empty() {
                return None;
            }
            for Expect { noun, id, version } in &commit.expects {
                let ids = expected.read.entry(noun).or_default();
                ids.entry(id.clone()).or_insert(*version);
            }
            for write in &commit.writes {
                let ids = expected.versions.entry(write.noun).or_default();
                ids.entry(write.id.clone()).or_insert(write.expected_version);
            }
        }
        Some(expected)
    }

    fn version(&self, noun: &str, id: &str) -> u64 {
        let found = |of: &Versions| of.get(noun).and_then(|ids| ids.get(id)).copied();
        found(&self.versions).or_else(|| found(&self.read)).unwrap_or_default()
    }

    /// The first reason to refuse a commit. The idempotency key comes first: a repeated request conflicts
    /// with its own first commit.
    fn refusal(&self, commit: &Commit) -> Option<Outcome> {
        if let Some(response) = &commit.response
            && let Some((request_hash, body)) = self.responses.get(&response.key)
        {
            return Some(match *request_hash == response.request_hash {
                true => Outcome::Replayed(body.clone()),
                false => Outcome::KeyTaken,
            });
        }
        for Write { noun, id, expected_version: expected, .. } in &commit.writes {
            if self.version(noun, id) != *expected {
                return Some(Outcome::Conflict { noun, id: id.clone() });
            }
        }
        for Expect { noun, id, version } in &commit.expects {
            if self.version(noun, id) != *version {
                return Some(Outcome::Conflict { noun, id: id.clone() });
            }
        }
        let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
        for delta in &commit.deltas {
            let known = self.counters.get(&*delta.counter).copied().flatten().unwrap_or_default();
            let sum = sums.entry(&*delta.counter).or_insert(known);
            // An overflow exceeds any limit.
            let Some(next) = sum.checked_add(delta.add) else {
                return Some(Outcome::OverLimit { counter: delta.counter.clone() });
            };
            *sum = next;
            if !(0..=delta.max).contains(sum) {
                return Some(Outcome::OverLimit { counter: delta.counter.clone() });
            }
        }
        None
    }
}

impl<'a> GroupPlan<'a> {
    pub(crate) fn writes_nothing(&self) -> bool {
        !self.verdicts.iter().any(|verdict| matches!(verdict, CommitVerdict::Accepted(_)))
    }

    pub(crate) fn refuses_any(&self) -> bool {
        self.verdicts.iter().any(|verdict| matches!(verdict, CommitVerdict::Refused(_)))
    }

    /// Appends the drafts of all accepted commits to the chain.
    pub(crate) fn append(self, chain: &mut Chain) -> AppendedGroup<'a> {
        let mut entries = Vec::new();
        let mut outcomes = Vec::with_capacity(self.verdicts.len());
        for verdict in self.verdicts {
            outcomes.push(match verdict {
                CommitVerdict::Refused(refusal) => refusal,
                CommitVerdict::Accepted(drafts) => {
                    let first = chain.size() + 1;
                    entries.extend(drafts.iter().map(|draft| (draft, chain.append(draft))));
                    Outcome::Committed(Receipt { first, last: chain.size() })
                }
            });
        }
        AppendedGroup { entries, outcomes }
    }
}

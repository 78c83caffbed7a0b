//! What a group of commits comes to, decided on the rows as they were loaded and locked.
//!
//! Commits are looked at one after the other, each on what those before it leave; one that is refused
//! leaves nothing. What remains to be written is then one row for each row that changes, however often
//! it changes within the group.

use std::collections::BTreeMap;

use ledger::{Chain, Draft, Hash, Sealed};
use store::{Answer, Commit, Expect, Outcome, Receipt, Write};

/// The rows that a group asks about, as they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loaded {
    /// By noun and id; 0 for a row that is not there.
    pub(crate) versions: Versions,
    /// Those that are only read, and so not locked.
    pub(crate) read: Versions,
    /// `None` for one that is not there.
    pub(crate) counters: BTreeMap<String, Option<i64>>,
    pub(crate) answers: BTreeMap<String, (Hash, Vec<u8>)>,
}

pub(crate) type Versions = BTreeMap<&'static str, BTreeMap<String, u64>>;

/// What the accepted commits of a group leave to be written.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    /// New rows and changed ones, each as its last write leaves it.
    pub(crate) inserts: Rows<'a>,
    pub(crate) updates: Rows<'a>,
    pub(crate) new_counters: BTreeMap<&'a str, i64>,
    pub(crate) counters: BTreeMap<&'a str, i64>,
    pub(crate) answers: Vec<&'a Answer>,
    /// Rows that are not written, and the versions that they must have once the end of the log is held.
    pub(crate) expects: BTreeMap<(&'static str, &'a str), u64>,
    /// One for each commit.
    verdicts: Vec<Verdict<'a>>,
}

pub(crate) type Rows<'a> = BTreeMap<(&'static str, &'a str), &'a Write>;

#[derive(Debug)]
enum Verdict<'a> {
    Accepted(&'a [Draft]),
    Refused(Outcome),
}

/// The entries of a group in their places, and what each commit is told.
#[derive(Debug)]
pub(crate) struct Appended<'a> {
    pub(crate) entries: Vec<(&'a Draft, Sealed)>,
    pub(crate) outcomes: Vec<Outcome>,
}

pub(crate) fn decide<'a>(commits: &[&'a Commit], mut loaded: Loaded) -> Plan<'a> {
    let (before, counters) = (loaded.versions.clone(), loaded.counters.clone());
    let is_there =
        |noun, id| before.get(noun).and_then(|ids| ids.get(id)).is_some_and(|it| 0 < *it);
    let is_counted = |name: &str| counters.get(name).is_some_and(Option::is_some);
    let mut plan = Plan::default();
    for commit in commits {
        if let Some(refusal) = loaded.refusal(commit) {
            plan.verdicts.push(Verdict::Refused(refusal));
            continue;
        }
        for Expect { noun, id, version } in &commit.expects {
            plan.expects.entry((noun, id)).or_insert(*version);
        }
        for write in &commit.writes {
            let rows = match is_there(write.noun, write.id.as_str()) {
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
            match is_counted(&delta.counter) {
                true => plan.counters.insert(&*delta.counter, value),
                false => plan.new_counters.insert(&*delta.counter, value),
            };
        }
        if let Some(answer) = &commit.answer {
            loaded.answers.insert(answer.key.clone(), (answer.request_hash, answer.body.clone()));
            plan.answers.push(answer);
        }
        plan.verdicts.push(Verdict::Accepted(&commit.drafts));
    }
    plan.answers.sort_by(|a, b| a.key.cmp(&b.key));
    // Those that the group writes as well are locked, and have their new versions by then.
    let Plan { expects, inserts, updates, .. } = &mut plan;
    expects.retain(|key, _| !inserts.contains_key(key) && !updates.contains_key(key));
    plan
}

impl Loaded {
    /// The rows as these commits expect them to be. What a counter holds, no commit can know.
    pub(crate) fn expected_by(commits: &[&Commit]) -> Option<Loaded> {
        let mut expected = Loaded::default();
        for commit in commits {
            if !commit.deltas.is_empty() {
                return None;
            }
            for Expect { noun, id, version } in &commit.expects {
                let of_noun = expected.read.entry(noun).or_default();
                of_noun.entry(id.clone()).or_insert(*version);
            }
            for write in &commit.writes {
                let of_noun = expected.versions.entry(write.noun).or_default();
                of_noun.entry(write.id.clone()).or_insert(write.expected);
            }
        }
        Some(expected)
    }

    fn version(&self, noun: &str, id: &str) -> u64 {
        let found = |of: &Versions| of.get(noun).and_then(|ids| ids.get(id)).copied();
        found(&self.versions).or_else(|| found(&self.read)).unwrap_or_default()
    }

    /// The first reason why a commit cannot be. A key that was answered comes first: its request may
    /// have been overtaken by what it did itself.
    fn refusal(&self, commit: &Commit) -> Option<Outcome> {
        if let Some(answer) = &commit.answer
            && let Some((request_hash, body)) = self.answers.get(&answer.key)
        {
            return Some(match *request_hash == answer.request_hash {
                true => Outcome::Answered(body.clone()),
                false => Outcome::KeyTaken,
            });
        }
        for Write { noun, id, expected, .. } in &commit.writes {
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
            // What is beyond all numbers is beyond the limit, whatever that is.
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

impl<'a> Plan<'a> {
    pub(crate) fn writes_nothing(&self) -> bool {
        !self.verdicts.iter().any(|verdict| matches!(verdict, Verdict::Accepted(_)))
    }

    pub(crate) fn refuses_any(&self) -> bool {
        self.verdicts.iter().any(|verdict| matches!(verdict, Verdict::Refused(_)))
    }

    /// Gives every accepted draft its place.
    pub(crate) fn append(self, chain: &mut Chain) -> Appended<'a> {
        let mut entries = Vec::new();
        let mut outcomes = Vec::with_capacity(self.verdicts.len());
        for verdict in self.verdicts {
            outcomes.push(match verdict {
                Verdict::Refused(refusal) => refusal,
                Verdict::Accepted(drafts) => {
                    let first = chain.size() + 1;
                    entries.extend(drafts.iter().map(|draft| (draft, chain.seal(draft))));
                    Outcome::Committed(Receipt { first, last: chain.size() })
                }
            });
        }
        Appended { entries, outcomes }
    }
}

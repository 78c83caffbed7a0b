//! Reads everything that a database holds, and checks that it agrees with itself.

use std::collections::{BTreeMap, BTreeSet};

use ledger::Chain;
use store::{PAGE_ENTRIES_MAX, Store};

use crate::work::{COUNTER, COUNTER_MAX, Step};

/// Every link of the log; returns the names of its entries and what they tell.
pub(crate) async fn log(store: &dyn Store) -> (Chain, Vec<(String, Vec<u8>)>) {
    let (mut chain, mut told) = (Chain::empty(), Vec::new());
    loop {
        let page = store.entries(chain.size(), PAGE_ENTRIES_MAX).await.unwrap();
        if page.is_empty() {
            return (chain, told);
        }
        for fields in page.iter() {
            chain.check(&fields).unwrap();
            told.push((fields.noun_id.to_owned(), fields.facts.to_vec()));
        }
    }
}

pub(crate) async fn names(store: &dyn Store) -> Vec<String> {
    let (chain, told) = log(store).await;
    assert_eq!(chain, store.head().await.unwrap(), "the head is the end of the log");
    told.into_iter().map(|(name, _)| name).collect()
}

/// Rows and counter are those that the log tells of, whoever writes meanwhile.
pub(crate) async fn tables(store: &dyn Store) {
    let derived = store.derived().await.unwrap();
    let (_, told) = log(store).await;
    let (mut rows, mut count) = (BTreeMap::<String, u64>::new(), 0);
    for (name, facts) in told.iter().take(usize::try_from(derived.through).unwrap()) {
        let step = Step::read(name, facts);
        let version = rows.entry(step.row).or_default();
        *version += 1;
        assert_eq!(*version, step.version, "{name} came on top of another version");
        count += step.add;
        assert!((0..=COUNTER_MAX).contains(&count), "{name} made it {count}");
    }
    let found: BTreeMap<String, u64> =
        derived.items.into_iter().map(|item| (item.id, item.version)).collect();
    assert_eq!(found, rows);
    let counters = BTreeMap::from_iter(derived.counters);
    assert_eq!(counters.get(COUNTER).copied().unwrap_or_default(), count);
}

/// What was acknowledged is there, once, with its answer; and there is no answer without an entry.
pub(crate) async fn acknowledged(store: &dyn Store, names_told: &[String]) {
    let names = names(store).await;
    let once: BTreeSet<&String> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "a step is in the log twice");
    for name in names_told {
        assert!(once.contains(name), "{name} was acknowledged and is not there");
    }
    let (mut keys, mut after) = (BTreeSet::new(), String::new());
    loop {
        let page = store.answers(&after, 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after.clone_from(&last.key);
        keys.extend(page.into_iter().map(|answer| answer.key));
    }
    assert!(once.into_iter().eq(keys.iter()), "entries and answers are not of the same steps");
}

//! Reads the whole database and checks its consistency.

use std::collections::{BTreeMap, BTreeSet};

use ledger::Chain;
use store::{PAGE_ENTRIES_MAX, Store};

use crate::workload::{COUNTER, COUNTER_MAX, Step};

/// Verifies the whole ledger; returns the chain, and the name and facts of each entry.
pub(crate) async fn read_ledger(store: &dyn Store) -> (Chain, Vec<(String, Vec<u8>)>) {
    let (mut chain, mut entries) = (Chain::empty(), Vec::new());
    loop {
        let page = store.entries(chain.size(), PAGE_ENTRIES_MAX).await.unwrap();
        if page.is_empty() {
            return (chain, entries);
        }
        for entry in page.iter() {
            chain.verify_next(&entry).unwrap();
            entries.push((entry.noun_id.to_owned(), entry.facts.to_vec()));
        }
    }
}

/// Verifies the whole ledger and returns the names of its entries.
pub(crate) async fn names(store: &dyn Store) -> Vec<String> {
    let (chain, entries) = read_ledger(store).await;
    assert_eq!(chain, store.head().await.unwrap(), "the head is the end of the ledger");
    entries.into_iter().map(|(name, _)| name).collect()
}

/// Checks rows and counter against the ledger, while others may write.
pub(crate) async fn check_tables(store: &dyn Store) {
    let derived = store.load_derived().await.unwrap();
    let (_, entries) = read_ledger(store).await;
    let (mut rows, mut count) = (BTreeMap::<String, u64>::new(), 0);
    for (name, facts) in entries.iter().take(usize::try_from(derived.through).unwrap()) {
        let step = Step::parse(name, facts);
        let version = rows.entry(step.row).or_default();
        *version += 1;
        assert_eq!(*version, step.version, "{name} wrote a wrong version");
        count += step.add;
        assert!((0..=COUNTER_MAX).contains(&count), "{name} made it {count}");
    }
    let found: BTreeMap<String, u64> =
        derived.items.into_iter().map(|item| (item.id, item.version)).collect();
    assert_eq!(found, rows);
    let counters = BTreeMap::from_iter(derived.counters);
    assert_eq!(counters.get(COUNTER).copied().unwrap_or_default(), count);
}

/// Checks that every acknowledged step is in the ledger once, and that steps and responses match.
pub(crate) async fn check_acknowledged(store: &dyn Store, acknowledged: &[String]) {
    let names = names(store).await;
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "a step is in the ledger twice");
    for name in acknowledged {
        assert!(distinct.contains(name), "{name} was acknowledged but is missing");
    }
    let (mut keys, mut after) = (BTreeSet::new(), String::new());
    loop {
        let page = store.responses(&after, 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after.clone_from(&last.key);
        keys.extend(page.into_iter().map(|response| response.key));
    }
    assert!(
        distinct.into_iter().eq(keys.iter()),
        "entries and responses belong to different steps"
    );
}

//! The test suite that every store must pass.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test suite, compiled into tests only")]

mod row_keys;

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, join, join_all};
use ledger::{Chain, Draft, Hash, Header, Private, canonical_json};

use crate::{
    Checkpoint, Commit, Delta, DerivedTables, Error, Expect, Item, Outcome, PAGE_ENTRIES_MAX, Page,
    Receipt, Store, StoredResponse, Write,
};

/// The location of a store's data. After all handles are dropped, opening it again finds the same data.
pub trait StoreFixture: Sync {
    fn open(&self) -> Arc<dyn Store>;
}

/// A test case.
type Case = for<'a> fn(&'a dyn StoreFixture) -> BoxFuture<'a, ()>;

/// All cases with their names. Each needs a new fixture.
pub const CASES: &[(&str, Case)] = &[
    ("new_store_is_empty", |fixture| new_store_is_empty(fixture).boxed()),
    ("commit_is_atomic", |fixture| commit_is_atomic(fixture).boxed()),
    ("wrong_expected_version_conflicts", |fixture| {
        wrong_expected_version_conflicts(fixture).boxed()
    }),
    ("changed_read_row_conflicts", |fixture| changed_read_row_conflicts(fixture).boxed()),
    ("counter_stays_within_bounds", |fixture| counter_stays_within_bounds(fixture).boxed()),
    ("deltas_of_one_commit_add_up", |fixture| deltas_of_one_commit_add_up(fixture).boxed()),
    ("used_idempotency_key_replays_the_response", |fixture| {
        used_idempotency_key_replays_the_response(fixture).boxed()
    }),
    ("concurrent_writers_make_one_chain", |fixture| {
        concurrent_writers_make_one_chain(fixture).boxed()
    }),
    ("only_racing_commits_conflict", |fixture| only_racing_commits_conflict(fixture).boxed()),
    ("racing_deltas_never_exceed_the_limit", |fixture| {
        racing_deltas_never_exceed_the_limit(fixture).boxed()
    }),
    ("entries_are_paged", |fixture| entries_are_paged(fixture).boxed()),
    ("private_parts_round_trip", |fixture| private_parts_round_trip(fixture).boxed()),
    ("commit_wakes_waiting_reader", |fixture| commit_wakes_waiting_reader(fixture).boxed()),
    ("entry_time_never_decreases", |fixture| entry_time_never_decreases(fixture).boxed()),
    ("second_checkpoint_of_a_size_is_ignored", |fixture| {
        second_checkpoint_of_a_size_is_ignored(fixture).boxed()
    }),
    ("list_is_sorted_by_id", |fixture| list_is_sorted_by_id(fixture).boxed()),
    ("replace_replaces_all_derived_tables", |fixture| {
        replace_replaces_all_derived_tables(fixture).boxed()
    }),
    ("due_rows_are_sorted_by_time_and_id", |fixture| {
        row_keys::due_rows_are_sorted_by_time_and_id(fixture).boxed()
    }),
    ("last_write_determines_keys", |fixture| row_keys::last_write_determines_keys(fixture).boxed()),
    ("keys_are_written_atomically", |fixture| {
        row_keys::keys_are_written_atomically(fixture).boxed()
    }),
    ("unchanged_keys_are_preserved", |fixture| {
        row_keys::unchanged_keys_are_preserved(fixture).boxed()
    }),
    ("newest_rows_are_paged", |fixture| row_keys::newest_rows_are_paged(fixture).boxed()),
    ("load_all_keeps_the_requested_order", |fixture| {
        row_keys::load_all_keeps_the_requested_order(fixture).boxed()
    }),
    ("replace_replaces_keys", |fixture| row_keys::replace_replaces_keys(fixture).boxed()),
    ("appended_entries_must_continue_the_chain", |fixture| {
        appended_entries_must_continue_the_chain(fixture).boxed()
    }),
    ("stopped_store_is_readable", |fixture| stopped_store_is_readable(fixture).boxed()),
    ("committed_data_survives_reopening", |fixture| {
        committed_data_survives_reopening(fixture).boxed()
    }),
];

fn draft(at: i64, text: &str) -> Draft {
    draft_with(at, text, None)
}

fn draft_with(at: i64, text: &str, private: Option<Private>) -> Draft {
    let header = Header {
        ts_us: at,
        kind: "test.happened",
        version: 1,
        actor: "uid:1",
        role: "operator",
        cause: "req",
        noun: "test",
        noun_id: text,
    };
    Draft::new(header, canonical_json(&text).unwrap(), private).unwrap()
}

fn write(id: &str, expected: u64, body: Option<&str>) -> Write {
    let body = body.map(|body| body.as_bytes().into());
    let version = expected + 1;
    Write {
        noun: "test",
        id: id.into(),
        expected_version: expected,
        version,
        body,
        ..Write::default()
    }
}

fn add(amount: i64, max: i64) -> Delta {
    Delta { counter: "tests".into(), add: amount, max }
}

fn response(key: &str, request: u8, body: &str) -> StoredResponse {
    let request_hash = Hash::from_bytes([request; 32]);
    StoredResponse { key: key.into(), request_hash, body: body.into(), at_us: 1_000 }
}

fn event(text: &str) -> Commit {
    Commit { drafts: vec![draft(1, text)], ..Commit::default() }
}

async fn commit(store: &dyn Store, commit: Commit) -> Outcome {
    store.commit(commit).await.unwrap()
}

fn committed(first: u64, last: u64) -> Outcome {
    Outcome::Committed(Receipt { first, last })
}

/// Reads and verifies the whole ledger, and returns the text of each entry.
async fn read_ledger(store: &dyn Store) -> Vec<String> {
    let (mut chain, mut texts) = (Chain::empty(), Vec::new());
    loop {
        let page = store.entries(chain.size(), PAGE_ENTRIES_MAX).await.unwrap();
        if page.is_empty() {
            break;
        }
        for entry in page.iter() {
            chain.verify_next(&entry).unwrap();
            texts.push(entry.noun_id.to_owned());
        }
    }
    assert_eq!(chain, store.head().await.unwrap(), "the head is the end of the ledger");
    texts
}

async fn new_store_is_empty(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    assert_eq!(store.head().await.unwrap(), Chain::empty());
    assert_eq!(store.load("test", "a").await.unwrap().version, 0);
    assert_eq!(store.counter("tests").await.unwrap(), 0);
    assert_eq!(store.response("k").await.unwrap(), None);
    assert_eq!(store.last_checkpoint().await.unwrap(), None);
    assert_eq!(store.load_derived().await.unwrap(), DerivedTables::default());
    assert!(store.entries(0, 10).await.unwrap().is_empty());
    assert!(store.check_files().await.is_ok());
}

async fn commit_is_atomic(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let first = Commit {
        drafts: vec![draft(1, "a"), draft(1, "b")],
        writes: vec![write("a", 0, Some("A")), write("b", 0, Some("B"))],
        deltas: vec![add(2, 9)],
        response: Some(response("k", 1, "yes")),
        ..Commit::default()
    };
    assert_eq!(commit(&*store, first).await, committed(1, 2));
    let before = store.load_derived().await.unwrap();
    // Each commit is refused for its last part; none of its earlier parts may be written.
    let second_write_conflicts = Commit {
        drafts: vec![draft(1, "c")],
        writes: vec![write("c", 0, Some("C")), write("a", 5, Some("X"))],
        deltas: vec![add(1, 9)],
        response: Some(response("k2", 1, "no")),
        ..Commit::default()
    };
    let conflict = Outcome::Conflict { noun: "test", id: "a".into() };
    assert_eq!(commit(&*store, second_write_conflicts).await, conflict);
    let delta_too_large = Commit {
        drafts: vec![draft(1, "c")],
        writes: vec![write("c", 0, Some("C"))],
        deltas: vec![add(1, 9), add(8, 9)],
        response: Some(response("k2", 1, "no")),
        ..Commit::default()
    };
    let over = Outcome::OverLimit { counter: "tests".into() };
    assert_eq!(commit(&*store, delta_too_large).await, over);
    let key_used = Commit {
        drafts: vec![draft(1, "c")],
        writes: vec![write("c", 0, Some("C"))],
        response: Some(response("k", 1, "other")),
        ..Commit::default()
    };
    assert_eq!(commit(&*store, key_used).await, Outcome::Replayed("yes".into()));
    assert_eq!(store.load_derived().await.unwrap(), before);
    assert_eq!(store.response("k2").await.unwrap(), None);
    assert_eq!(read_ledger(&*store).await, ["a", "b"]);
}

async fn wrong_expected_version_conflicts(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let put =
        |expected, body| Commit { writes: vec![write("a", expected, body)], ..Commit::default() };
    let conflict = Outcome::Conflict { noun: "test", id: "a".into() };
    let without_entries = committed(1, 0);
    for (expected, body, outcome) in [
        (1, Some("early"), &conflict),
        (0, Some("one"), &without_entries),
        (0, Some("again"), &conflict),
        (1, Some("two"), &without_entries),
        (1, Some("late"), &conflict),
        (2, None, &without_entries),
        (0, Some("removed row inserted again"), &conflict),
        (3, Some("back"), &without_entries),
    ] {
        assert_eq!(&commit(&*store, put(expected, body)).await, outcome, "{expected} {body:?}");
    }
    let row = store.load("test", "a").await.unwrap();
    assert_eq!((row.version, row.body), (4, Some(b"back".as_slice().into())));
}

async fn changed_read_row_conflicts(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let expect = |id: &str, version| Expect { noun: "test", id: id.into(), version };
    let new = |id: &str, expects| Commit {
        drafts: vec![draft(1, id)],
        writes: vec![write(id, 0, Some(id))],
        expects,
        response: Some(response(id, 1, id)),
        ..Commit::default()
    };
    let conflict = Outcome::Conflict { noun: "test", id: "shared".into() };
    assert_eq!(commit(&*store, new("a", vec![expect("shared", 1)])).await, conflict);
    assert_eq!(commit(&*store, new("a", vec![expect("shared", 0)])).await, committed(1, 1));
    assert_eq!(commit(&*store, new("shared", vec![])).await, committed(2, 2));
    assert_eq!(commit(&*store, new("b", vec![expect("shared", 0)])).await, conflict);
    assert_eq!(store.response("b").await.unwrap(), None);
    let both = vec![expect("shared", 1), expect("a", 1)];
    assert_eq!(commit(&*store, new("b", both)).await, committed(3, 3));
    // A used idempotency key is checked first.
    let again = commit(&*store, new("b", vec![expect("shared", 9)])).await;
    assert_eq!(again, Outcome::Replayed("b".into()));

    // Commits that only read the row do not conflict with each other, and none follows the writer.
    for round in 0..20 {
        let version = store.load("test", "shared").await.unwrap().version;
        let reader = |n: u64| {
            let id = format!("r{round}-{n}");
            store.commit(new(&id, vec![expect("shared", version)]))
        };
        let writes = vec![write("shared", version, Some("new"))];
        let shared = Commit { drafts: vec![draft(1, "shared")], writes, ..Commit::default() };
        let (before, shared, after) = tokio::join!(
            join_all((0..8).map(reader)),
            store.commit(shared),
            join_all((8..16).map(reader)),
        );
        let Outcome::Committed(shared) = shared.unwrap() else {
            panic!("no other commit writes it")
        };
        for outcome in before.into_iter().chain(after) {
            match outcome.unwrap() {
                Outcome::Committed(receipt) => assert!(receipt.last < shared.first),
                other => assert_eq!(other, conflict),
            }
        }
    }
}

async fn counter_stays_within_bounds(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let over = Outcome::OverLimit { counter: "tests".into() };
    for (amount, fits, value) in
        [(3, true, 3), (-4, false, 3), (1, true, 4), (1, false, 4), (-4, true, 0), (-1, false, 0)]
    {
        let outcome =
            commit(&*store, Commit { deltas: vec![add(amount, 4)], ..Commit::default() }).await;
        assert_eq!(outcome, if fits { committed(1, 0) } else { over.clone() }, "{amount}");
        assert_eq!(store.counter("tests").await.unwrap(), value, "{amount}");
    }
}

/// Deltas of one commit are checked in order, each on the result of the previous one.
async fn deltas_of_one_commit_add_up(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let over = Outcome::OverLimit { counter: "tests".into() };
    for (amounts, fits, value) in [
        (&[2, 3][..], false, 0),
        (&[2, 2], true, 4),
        (&[1, -1], false, 4),
        (&[-1, 1], true, 4),
        (&[-2, -3], false, 4),
        (&[-2, -2], true, 0),
    ] {
        let deltas = amounts.iter().map(|amount| add(*amount, 4)).collect();
        let outcome = commit(&*store, Commit { deltas, ..Commit::default() }).await;
        assert_eq!(outcome, if fits { committed(1, 0) } else { over.clone() }, "{amounts:?}");
        assert_eq!(store.counter("tests").await.unwrap(), value, "{amounts:?}");
    }
}

async fn used_idempotency_key_replays_the_response(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let request = |request, body: &str| Commit {
        response: Some(response("k", request, body)),
        ..event("requested")
    };
    assert_eq!(commit(&*store, request(1, "first")).await, committed(1, 1));
    assert_eq!(commit(&*store, request(1, "second")).await, Outcome::Replayed("first".into()));
    assert_eq!(commit(&*store, request(2, "other")).await, Outcome::KeyTaken);
    let saved = store.response("k").await.unwrap();
    assert_eq!(saved, Some(response("k", 1, "first")));
    store.delete_responses(1_000).await.unwrap();
    assert!(store.response("k").await.unwrap().is_some(), "a response at the limit stays");
    store.delete_responses(1_001).await.unwrap();
    assert_eq!(store.response("k").await.unwrap(), None);
    assert_eq!(commit(&*store, request(2, "new")).await, committed(2, 2));
}

async fn concurrent_writers_make_one_chain(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let writers = (0..64).map(|writer| {
        let store = Arc::clone(&store);
        async move {
            for round in 0..8 {
                let text = format!("{writer}-{round}");
                let outcome = commit(&*store, event(&text)).await;
                let Outcome::Committed(receipt) = outcome else { panic!("{outcome:?}") };
                // An acknowledged entry is readable at the sequence number in its receipt.
                let page = store.entries(receipt.first - 1, 1).await.unwrap();
                assert_eq!(page.iter().next().unwrap().noun_id, text);
            }
        }
    });
    join_all(writers).await;
    let mut texts = read_ledger(&*store).await;
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 64 * 8);
}

async fn only_racing_commits_conflict(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let race = |racer: usize| {
        let store = Arc::clone(&store);
        let id = format!("{}", racer / 4);
        async move {
            let put = Commit { writes: vec![write(&id, 0, Some("x"))], ..event(&id) };
            matches!(commit(&*store, put).await, Outcome::Committed(_))
        }
    };
    let winners = join_all((0..64).map(race)).await.into_iter().filter(|won| *won).count();
    assert_eq!(winners, 16, "exactly one of four racers for a row wins");
    assert_eq!(read_ledger(&*store).await.len(), 16);
}

async fn racing_deltas_never_exceed_the_limit(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let race = |_| {
        let store = Arc::clone(&store);
        async move {
            let put = Commit { deltas: vec![add(3, 100)], ..event("x") };
            matches!(commit(&*store, put).await, Outcome::Committed(_))
        }
    };
    let winners = join_all((0..64).map(race)).await.into_iter().filter(|won| *won).count();
    assert_eq!((winners, store.counter("tests").await.unwrap()), (33, 99));
}

async fn entries_are_paged(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let texts: Vec<String> = (1..=25).map(|n| n.to_string()).collect();
    for text in &texts {
        commit(&*store, event(text)).await;
    }
    for (after, limit, expected) in [(0, 10, 1..=10), (10, 10, 11..=20), (20, 10, 21..=25)] {
        let page = store.entries(after, limit).await.unwrap();
        let found: Vec<u64> = page.iter().map(|entry| entry.seq).collect();
        assert_eq!(found, expected.collect::<Vec<u64>>());
    }
    assert!(store.entries(25, 10).await.unwrap().is_empty());
    assert!(store.entries(u64::MAX, 10).await.unwrap().is_empty());
    assert_eq!(read_ledger(&*store).await, texts);
}

async fn private_parts_round_trip(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let private = Private { salt: [7; 16], bytes: b"\"hush\"".to_vec() };
    let drafts = vec![draft(1, "a"), draft_with(1, "b", Some(private.clone())), draft(1, "c")];
    commit(&*store, Commit { drafts, ..Commit::default() }).await;
    assert_eq!(read_ledger(&*store).await, ["a", "b", "c"]);
    let page = store.entries(1, 1).await.unwrap();
    let found = page.iter().next().unwrap().to_owned();
    let expected = ledger::EntryPrivate::Present(private);
    assert_eq!(found.private, expected);
}

async fn commit_wakes_waiting_reader(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    commit(&*store, event("a")).await;
    store.wait_for_entries_after(0).await;
    let (woken, outcome) = join(store.wait_for_entries_after(1), commit(&*store, event("b"))).await;
    assert_eq!((woken, outcome), ((), committed(2, 2)));
}

async fn entry_time_never_decreases(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    for at in [50, 20, 60] {
        commit(&*store, Commit { drafts: vec![draft(at, "x")], ..Commit::default() }).await;
    }
    let page = store.entries(0, 10).await.unwrap();
    let times: Vec<i64> = page.iter().map(|entry| entry.ts_us).collect();
    assert_eq!(times, [50, 50, 60]);
    assert_eq!((store.last_entry_us(), fixture.open().last_entry_us()), (60, 60));
}

async fn second_checkpoint_of_a_size_is_ignored(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let mut first = None;
    for text in ["a", "b", "c"] {
        commit(&*store, event(text)).await;
        let chain = store.head().await.unwrap();
        let saved = Checkpoint { note: format!("note {}", chain.size()), chain };
        store.save_checkpoint(saved.clone()).await.unwrap();
        let other = Checkpoint { note: "another".into(), ..saved.clone() };
        store.save_checkpoint(other).await.unwrap();
        first = first.or(Some(saved.clone()));
        assert_eq!(store.last_checkpoint().await.unwrap(), Some(saved));
    }
    let notes = store.checkpoint_notes(1, 10).await.unwrap();
    assert_eq!(notes, [(2, "note 2".to_owned()), (3, "note 3".to_owned())]);
    assert_eq!(store.checkpoint_notes(0, 1).await.unwrap(), [(1, "note 1".to_owned())]);
}

async fn list_is_sorted_by_id(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    for id in ["d", "b", "a", "c"] {
        commit(&*store, Commit { writes: vec![write(id, 0, Some(id))], ..Commit::default() }).await;
    }
    commit(&*store, Commit { writes: vec![write("b", 1, None)], ..Commit::default() }).await;
    let ids = |items: Vec<Item>| items.into_iter().map(|item| item.id).collect::<Vec<_>>();
    assert_eq!(ids(store.list("test", "", 2).await.unwrap()), ["a", "c"]);
    assert_eq!(ids(store.list("test", "c", 2).await.unwrap()), ["d"]);
    assert!(store.list("other", "", 2).await.unwrap().is_empty());
}

async fn replace_replaces_all_derived_tables(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let first = Commit {
        writes: vec![write("old", 0, Some("old"))],
        deltas: vec![add(5, 9)],
        ..event("a")
    };
    commit(&*store, first).await;
    let item = |id: &str| Item {
        noun: "test".into(),
        id: id.into(),
        version: 7,
        body: Some(id.as_bytes().into()),
        ..Item::default()
    };
    let derived = |through| DerivedTables {
        through,
        items: vec![
            Item { due_us: Some(-1), ..item("due") },
            Item { body: None, ..item("gone") },
            item("new"),
            Item { index_key: Some("group".into()), ..item("under") },
        ],
        counters: vec![("other".into(), 3)],
    };
    let replace = |through| Commit { replace_derived: Some(derived(through)), ..event("rebuilt") };
    assert_eq!(commit(&*store, replace(0)).await, Outcome::StaleDerived { head: 1 });
    assert_eq!(store.load("test", "old").await.unwrap().version, 1);
    assert_eq!(commit(&*store, replace(1)).await, committed(2, 2));
    assert_eq!(store.load_derived().await.unwrap(), derived(2));
}

async fn appended_entries_must_continue_the_chain(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let other = crate::Memory::new();
    for text in ["a", "b", "c"] {
        commit(&other, event(text)).await;
    }
    let page = |after, limit| other.entries(after, limit);
    let mut swapped = Page::default();
    for entry in page(0, 3).await.unwrap().iter().rev() {
        swapped.push(&entry);
    }
    for wrong in [swapped, page(1, 2).await.unwrap()] {
        assert!(matches!(store.append_entries(wrong).await, Err(Error::Damaged(_))));
        assert_eq!(store.head().await.unwrap().size(), 0);
    }
    store.append_entries(page(0, 2).await.unwrap()).await.unwrap();
    store.append_entries(page(2, 1).await.unwrap()).await.unwrap();
    assert_eq!(read_ledger(&*store).await, ["a", "b", "c"]);
    assert_eq!(store.head().await.unwrap(), other.head().await.unwrap());
    assert_eq!(commit(&*store, event("d")).await, committed(4, 4));
}

async fn stopped_store_is_readable(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    commit(&*store, event("a")).await;
    assert_eq!(store.write_stop_reason(), None);
    store.stop_writing("entry 1 was changed".into());
    let damaged = Error::Damaged("entry 1 was changed".into());
    assert_eq!(store.commit(event("b")).await, Err(damaged.clone()));
    assert_eq!(store.write_stop_reason(), Some(damaged.clone()));
    assert_eq!(store.wait_until_stopped().await, damaged);
    assert_eq!(read_ledger(&*store).await, ["a"]);
}

async fn committed_data_survives_reopening(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let first = Commit {
        drafts: vec![draft(1, "a"), draft(1, "b")],
        writes: vec![write("a", 0, Some("A"))],
        deltas: vec![add(1, 9)],
        response: Some(response("k", 1, "yes")),
        ..Commit::default()
    };
    commit(&*store, first).await;
    let chain = store.head().await.unwrap();
    let saved = Checkpoint { chain, note: "note".into() };
    store.save_checkpoint(saved.clone()).await.unwrap();
    commit(&*store, event("c")).await;
    let (derived, head) = (store.load_derived().await.unwrap(), store.head().await.unwrap());
    drop(store);
    let store = fixture.open();
    assert_eq!(store.load_derived().await.unwrap(), derived);
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(store.last_checkpoint().await.unwrap(), Some(saved));
    assert!(store.response("k").await.unwrap().is_some());
    assert_eq!(commit(&*store, event("d")).await, committed(4, 4));
    assert_eq!(read_ledger(&*store).await, ["a", "b", "c", "d"]);
}

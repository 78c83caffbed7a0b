//! What every store must do, as one suite that each store runs on itself.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a suite of assertions, compiled into tests only"
)]

mod keys;

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, join, join_all};
use ledger::{Chain, Draft, Hash, Header, Private, canonical};

use crate::{
    Answer, Checkpoint, Commit, Delta, Derived, Error, Expect, Item, Outcome, PAGE_ENTRIES_MAX,
    Page, Receipt, Store, Write,
};

/// Where a store keeps its data. Opening it again, after all handles are gone, finds that data.
pub trait Place: Sync {
    fn open(&self) -> Arc<dyn Store>;
}

type Case = for<'a> fn(&'a dyn Place) -> BoxFuture<'a, ()>;

/// Every case by its name; each wants a new place.
pub const CASES: &[(&str, Case)] = &[
    ("an_empty_store_is_empty", |place| an_empty_store_is_empty(place).boxed()),
    ("a_commit_is_all_or_nothing", |place| a_commit_is_all_or_nothing(place).boxed()),
    ("versions_are_expected", |place| versions_are_expected(place).boxed()),
    ("rows_that_are_only_read_are_expected", |place| reads_are_expected(place).boxed()),
    ("deltas_stay_within_bounds", |place| deltas_stay_within_bounds(place).boxed()),
    ("deltas_of_one_commit_add_up", |place| deltas_add_up(place).boxed()),
    ("a_key_is_answered_once", |place| a_key_is_answered_once(place).boxed()),
    ("many_writers_make_one_chain", |place| many_writers_make_one_chain(place).boxed()),
    ("racing_writers_conflict_alone", |place| racing_writers_conflict_alone(place).boxed()),
    ("racing_deltas_never_pass_the_limit", |place| racing_deltas(place).boxed()),
    ("entries_come_in_pages", |place| entries_come_in_pages(place).boxed()),
    ("private_parts_come_back", |place| private_parts_come_back(place).boxed()),
    ("the_feed_wakes", |place| the_feed_wakes(place).boxed()),
    ("time_never_goes_back", |place| time_never_goes_back(place).boxed()),
    ("checkpoints_are_kept_once", |place| checkpoints_are_kept_once(place).boxed()),
    ("lists_go_by_id", |place| lists_go_by_id(place).boxed()),
    ("derived_tables_are_replaced_whole", |place| derived_are_replaced(place).boxed()),
    ("due_rows_go_by_instant_and_id", |place| keys::due_rows_go_by_instant_and_id(place).boxed()),
    ("keys_are_those_of_the_last_write", |place| {
        keys::keys_are_those_of_the_last_write(place).boxed()
    }),
    ("keys_are_written_with_their_commit", |place| {
        keys::keys_are_written_with_their_commit(place).boxed()
    }),
    ("keys_that_are_kept_stay", |place| keys::keys_that_are_kept_stay(place).boxed()),
    ("newest_rows_come_in_pages", |place| keys::newest_rows_come_in_pages(place).boxed()),
    ("many_rows_are_loaded_in_their_order", |place| {
        keys::many_rows_are_loaded_in_their_order(place).boxed()
    }),
    ("keys_are_replaced_with_their_rows", |place| {
        keys::keys_are_replaced_with_their_rows(place).boxed()
    }),
    ("sealed_entries_must_follow", |place| sealed_entries_must_follow(place).boxed()),
    ("a_stopped_store_still_reads", |place| a_stopped_store_still_reads(place).boxed()),
    ("what_was_committed_is_there_after_reopening", |place| reopening(place).boxed()),
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
    Draft::new(header, canonical(&text).unwrap(), private).unwrap()
}

fn write(id: &str, expected: u64, body: Option<&str>) -> Write {
    let body = body.map(|body| body.as_bytes().into());
    let version = expected + 1;
    Write { noun: "test", id: id.into(), expected, version, body, ..Write::default() }
}

fn add(amount: i64, max: i64) -> Delta {
    Delta { counter: "tests".into(), add: amount, max }
}

fn answer(key: &str, request: u8, body: &str) -> Answer {
    let request_hash = Hash::from_bytes([request; 32]);
    Answer { key: key.into(), request_hash, body: body.into(), at_us: 1_000 }
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

/// Reads the whole log, checks every link of it and returns what the entries say.
async fn log(store: &dyn Store) -> Vec<String> {
    let (mut chain, mut said) = (Chain::empty(), Vec::new());
    loop {
        let page = store.entries(chain.size(), PAGE_ENTRIES_MAX).await.unwrap();
        if page.is_empty() {
            break;
        }
        for fields in page.iter() {
            chain.check(&fields).unwrap();
            said.push(fields.noun_id.to_owned());
        }
    }
    assert_eq!(chain, store.head().await.unwrap(), "the head is the end of the log");
    said
}

async fn an_empty_store_is_empty(place: &dyn Place) {
    let store = place.open();
    assert_eq!(store.head().await.unwrap(), Chain::empty());
    assert_eq!(store.load("test", "a").await.unwrap().version, 0);
    assert_eq!(store.counter("tests").await.unwrap(), 0);
    assert_eq!(store.answer("k").await.unwrap(), None);
    assert_eq!(store.last_checkpoint().await.unwrap(), None);
    assert_eq!(store.derived().await.unwrap(), Derived::default());
    assert!(store.entries(0, 10).await.unwrap().is_empty());
    assert!(store.check_files().await.is_ok());
}

async fn a_commit_is_all_or_nothing(place: &dyn Place) {
    let store = place.open();
    let first = Commit {
        drafts: vec![draft(1, "a"), draft(1, "b")],
        writes: vec![write("a", 0, Some("A")), write("b", 0, Some("B"))],
        deltas: vec![add(2, 9)],
        answer: Some(answer("k", 1, "yes")),
        ..Commit::default()
    };
    assert_eq!(commit(&*store, first).await, committed(1, 2));
    let before = store.derived().await.unwrap();
    // Each refused for its last part; nothing of the parts before may stay.
    let second_write_conflicts = Commit {
        drafts: vec![draft(1, "c")],
        writes: vec![write("c", 0, Some("C")), write("a", 5, Some("X"))],
        deltas: vec![add(1, 9)],
        answer: Some(answer("k2", 1, "no")),
        ..Commit::default()
    };
    let conflict = Outcome::Conflict { noun: "test", id: "a".into() };
    assert_eq!(commit(&*store, second_write_conflicts).await, conflict);
    let delta_too_large = Commit {
        drafts: vec![draft(1, "c")],
        writes: vec![write("c", 0, Some("C"))],
        deltas: vec![add(1, 9), add(8, 9)],
        answer: Some(answer("k2", 1, "no")),
        ..Commit::default()
    };
    let over = Outcome::OverLimit { counter: "tests".into() };
    assert_eq!(commit(&*store, delta_too_large).await, over);
    let key_seen = Commit {
        drafts: vec![draft(1, "c")],
        writes: vec![write("c", 0, Some("C"))],
        answer: Some(answer("k", 1, "other")),
        ..Commit::default()
    };
    assert_eq!(commit(&*store, key_seen).await, Outcome::Answered("yes".into()));
    assert_eq!(store.derived().await.unwrap(), before);
    assert_eq!(store.answer("k2").await.unwrap(), None);
    assert_eq!(log(&*store).await, ["a", "b"]);
}

async fn versions_are_expected(place: &dyn Place) {
    let store = place.open();
    let put =
        |expected, body| Commit { writes: vec![write("a", expected, body)], ..Commit::default() };
    let conflict = Outcome::Conflict { noun: "test", id: "a".into() };
    let nothing_logged = committed(1, 0);
    for (expected, body, outcome) in [
        (1, Some("early"), &conflict),
        (0, Some("one"), &nothing_logged),
        (0, Some("again"), &conflict),
        (1, Some("two"), &nothing_logged),
        (1, Some("late"), &conflict),
        (2, None, &nothing_logged),
        (0, Some("as if it never was"), &conflict),
        (3, Some("back"), &nothing_logged),
    ] {
        assert_eq!(&commit(&*store, put(expected, body)).await, outcome, "{expected} {body:?}");
    }
    let row = store.load("test", "a").await.unwrap();
    assert_eq!((row.version, row.body), (4, Some(b"back".as_slice().into())));
}

async fn reads_are_expected(place: &dyn Place) {
    let store = place.open();
    let expect = |id: &str, version| Expect { noun: "test", id: id.into(), version };
    let new = |id: &str, expects| Commit {
        drafts: vec![draft(1, id)],
        writes: vec![write(id, 0, Some(id))],
        expects,
        answer: Some(answer(id, 1, id)),
        ..Commit::default()
    };
    let conflict = Outcome::Conflict { noun: "test", id: "law".into() };
    assert_eq!(commit(&*store, new("a", vec![expect("law", 1)])).await, conflict);
    assert_eq!(commit(&*store, new("a", vec![expect("law", 0)])).await, committed(1, 1));
    assert_eq!(commit(&*store, new("law", vec![])).await, committed(2, 2));
    assert_eq!(commit(&*store, new("b", vec![expect("law", 0)])).await, conflict);
    assert_eq!(store.answer("b").await.unwrap(), None);
    let both = vec![expect("law", 1), expect("a", 1)];
    assert_eq!(commit(&*store, new("b", both)).await, committed(3, 3));
    // A key that was answered comes first.
    let again = commit(&*store, new("b", vec![expect("law", 9)])).await;
    assert_eq!(again, Outcome::Answered("b".into()));

    // Many that only read it do not stand in each other's way, and none passes the one that writes.
    for round in 0..20 {
        let version = store.load("test", "law").await.unwrap().version;
        let reader = |n: u64| {
            let id = format!("r{round}-{n}");
            store.commit(new(&id, vec![expect("law", version)]))
        };
        let writes = vec![write("law", version, Some("new"))];
        let law = Commit { drafts: vec![draft(1, "law")], writes, ..Commit::default() };
        let (before, law, after) = tokio::join!(
            join_all((0..8).map(reader)),
            store.commit(law),
            join_all((8..16).map(reader)),
        );
        let Outcome::Committed(law) = law.unwrap() else { panic!("nobody else writes it") };
        for outcome in before.into_iter().chain(after) {
            match outcome.unwrap() {
                Outcome::Committed(receipt) => assert!(receipt.last < law.first),
                other => assert_eq!(other, conflict),
            }
        }
    }
}

async fn deltas_stay_within_bounds(place: &dyn Place) {
    let store = place.open();
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

/// Each is checked on what those before it left, in their order.
async fn deltas_add_up(place: &dyn Place) {
    let store = place.open();
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

async fn a_key_is_answered_once(place: &dyn Place) {
    let store = place.open();
    let ask =
        |request, body: &str| Commit { answer: Some(answer("k", request, body)), ..event("asked") };
    assert_eq!(commit(&*store, ask(1, "first")).await, committed(1, 1));
    assert_eq!(commit(&*store, ask(1, "second")).await, Outcome::Answered("first".into()));
    assert_eq!(commit(&*store, ask(2, "other")).await, Outcome::KeyTaken);
    let kept = store.answer("k").await.unwrap();
    assert_eq!(kept, Some(answer("k", 1, "first")));
    store.forget_answers(1_000).await.unwrap();
    assert!(store.answer("k").await.unwrap().is_some(), "an answer at the limit stays");
    store.forget_answers(1_001).await.unwrap();
    assert_eq!(store.answer("k").await.unwrap(), None);
    assert_eq!(commit(&*store, ask(2, "new")).await, committed(2, 2));
}

async fn many_writers_make_one_chain(place: &dyn Place) {
    let store = place.open();
    let writers = (0..64).map(|writer| {
        let store = Arc::clone(&store);
        async move {
            for round in 0..8 {
                let text = format!("{writer}-{round}");
                let outcome = commit(&*store, event(&text)).await;
                let Outcome::Committed(receipt) = outcome else { panic!("{outcome:?}") };
                // Acknowledged means readable, at the place that the receipt names.
                let page = store.entries(receipt.first - 1, 1).await.unwrap();
                assert_eq!(page.iter().next().unwrap().noun_id, text);
            }
        }
    });
    join_all(writers).await;
    let mut said = log(&*store).await;
    said.sort();
    said.dedup();
    assert_eq!(said.len(), 64 * 8);
}

async fn racing_writers_conflict_alone(place: &dyn Place) {
    let store = place.open();
    let race = |racer: usize| {
        let store = Arc::clone(&store);
        let id = format!("{}", racer / 4);
        async move {
            let put = Commit { writes: vec![write(&id, 0, Some("x"))], ..event(&id) };
            matches!(commit(&*store, put).await, Outcome::Committed(_))
        }
    };
    let winners = join_all((0..64).map(race)).await.into_iter().filter(|won| *won).count();
    assert_eq!(winners, 16, "of four racers for a row exactly one wins");
    assert_eq!(log(&*store).await.len(), 16);
}

async fn racing_deltas(place: &dyn Place) {
    let store = place.open();
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

async fn entries_come_in_pages(place: &dyn Place) {
    let store = place.open();
    let texts: Vec<String> = (1..=25).map(|n| n.to_string()).collect();
    for text in &texts {
        commit(&*store, event(text)).await;
    }
    for (after, limit, expected) in [(0, 10, 1..=10), (10, 10, 11..=20), (20, 10, 21..=25)] {
        let page = store.entries(after, limit).await.unwrap();
        let found: Vec<u64> = page.iter().map(|fields| fields.seq).collect();
        assert_eq!(found, expected.collect::<Vec<u64>>());
    }
    assert!(store.entries(25, 10).await.unwrap().is_empty());
    assert!(store.entries(u64::MAX, 10).await.unwrap().is_empty());
    assert_eq!(log(&*store).await, texts);
}

async fn private_parts_come_back(place: &dyn Place) {
    let store = place.open();
    let private = Private { salt: [7; 16], bytes: b"\"hush\"".to_vec() };
    let drafts = vec![draft(1, "a"), draft_with(1, "b", Some(private.clone())), draft(1, "c")];
    commit(&*store, Commit { drafts, ..Commit::default() }).await;
    assert_eq!(log(&*store).await, ["a", "b", "c"]);
    let page = store.entries(1, 1).await.unwrap();
    let found = page.iter().next().unwrap().to_owned();
    let expected = ledger::EntryPrivate::Present(private);
    assert_eq!(found.private, expected);
}

async fn the_feed_wakes(place: &dyn Place) {
    let store = place.open();
    commit(&*store, event("a")).await;
    store.grown_past(0).await;
    let (woken, outcome) = join(store.grown_past(1), commit(&*store, event("b"))).await;
    assert_eq!((woken, outcome), ((), committed(2, 2)));
}

async fn time_never_goes_back(place: &dyn Place) {
    let store = place.open();
    for at in [50, 20, 60] {
        commit(&*store, Commit { drafts: vec![draft(at, "x")], ..Commit::default() }).await;
    }
    let page = store.entries(0, 10).await.unwrap();
    let times: Vec<i64> = page.iter().map(|fields| fields.ts_us).collect();
    assert_eq!(times, [50, 50, 60]);
    assert_eq!((store.last_entry_us(), place.open().last_entry_us()), (60, 60));
}

async fn checkpoints_are_kept_once(place: &dyn Place) {
    let store = place.open();
    let mut first = None;
    for text in ["a", "b", "c"] {
        commit(&*store, event(text)).await;
        let chain = store.head().await.unwrap();
        let kept = Checkpoint { note: format!("note {}", chain.size()), chain };
        store.keep_checkpoint(kept.clone()).await.unwrap();
        let other = Checkpoint { note: "another".into(), ..kept.clone() };
        store.keep_checkpoint(other).await.unwrap();
        first = first.or(Some(kept.clone()));
        assert_eq!(store.last_checkpoint().await.unwrap(), Some(kept));
    }
    let notes = store.checkpoint_notes(1, 10).await.unwrap();
    assert_eq!(notes, [(2, "note 2".to_owned()), (3, "note 3".to_owned())]);
    assert_eq!(store.checkpoint_notes(0, 1).await.unwrap(), [(1, "note 1".to_owned())]);
}

async fn lists_go_by_id(place: &dyn Place) {
    let store = place.open();
    for id in ["d", "b", "a", "c"] {
        commit(&*store, Commit { writes: vec![write(id, 0, Some(id))], ..Commit::default() }).await;
    }
    commit(&*store, Commit { writes: vec![write("b", 1, None)], ..Commit::default() }).await;
    let ids = |items: Vec<Item>| items.into_iter().map(|item| item.id).collect::<Vec<_>>();
    assert_eq!(ids(store.list("test", "", 2).await.unwrap()), ["a", "c"]);
    assert_eq!(ids(store.list("test", "c", 2).await.unwrap()), ["d"]);
    assert!(store.list("other", "", 2).await.unwrap().is_empty());
}

async fn derived_are_replaced(place: &dyn Place) {
    let store = place.open();
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
    let derived = |through| Derived {
        through,
        items: vec![
            Item { due_us: Some(-1), ..item("due") },
            Item { body: None, ..item("gone") },
            item("new"),
            Item { under: Some("group".into()), ..item("under") },
        ],
        counters: vec![("other".into(), 3)],
    };
    let replace = |through| Commit { replace: Some(derived(through)), ..event("rebuilt") };
    assert_eq!(commit(&*store, replace(0)).await, Outcome::Moved { head: 1 });
    assert_eq!(store.load("test", "old").await.unwrap().version, 1);
    assert_eq!(commit(&*store, replace(1)).await, committed(2, 2));
    assert_eq!(store.derived().await.unwrap(), derived(2));
}

async fn sealed_entries_must_follow(place: &dyn Place) {
    let store = place.open();
    let other = crate::Memory::new();
    for text in ["a", "b", "c"] {
        commit(&other, event(text)).await;
    }
    let page = |after, limit| other.entries(after, limit);
    let mut swapped = Page::default();
    for fields in page(0, 3).await.unwrap().iter().rev() {
        swapped.push(&fields);
    }
    for wrong in [swapped, page(1, 2).await.unwrap()] {
        assert!(matches!(store.append_sealed(wrong).await, Err(Error::Damaged(_))));
        assert_eq!(store.head().await.unwrap().size(), 0);
    }
    store.append_sealed(page(0, 2).await.unwrap()).await.unwrap();
    store.append_sealed(page(2, 1).await.unwrap()).await.unwrap();
    assert_eq!(log(&*store).await, ["a", "b", "c"]);
    assert_eq!(store.head().await.unwrap(), other.head().await.unwrap());
    assert_eq!(commit(&*store, event("d")).await, committed(4, 4));
}

async fn a_stopped_store_still_reads(place: &dyn Place) {
    let store = place.open();
    commit(&*store, event("a")).await;
    assert_eq!(store.stopped_writing(), None);
    store.stop_writing("entry 1 was changed".into());
    let damaged = Error::Damaged("entry 1 was changed".into());
    assert_eq!(store.commit(event("b")).await, Err(damaged.clone()));
    assert_eq!(store.stopped_writing(), Some(damaged.clone()));
    assert_eq!(store.until_stopped().await, damaged);
    assert_eq!(log(&*store).await, ["a"]);
}

async fn reopening(place: &dyn Place) {
    let store = place.open();
    let first = Commit {
        drafts: vec![draft(1, "a"), draft(1, "b")],
        writes: vec![write("a", 0, Some("A"))],
        deltas: vec![add(1, 9)],
        answer: Some(answer("k", 1, "yes")),
        ..Commit::default()
    };
    commit(&*store, first).await;
    let chain = store.head().await.unwrap();
    let kept = Checkpoint { chain, note: "note".into() };
    store.keep_checkpoint(kept.clone()).await.unwrap();
    commit(&*store, event("c")).await;
    let (derived, head) = (store.derived().await.unwrap(), store.head().await.unwrap());
    drop(store);
    let store = place.open();
    assert_eq!(store.derived().await.unwrap(), derived);
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(store.last_checkpoint().await.unwrap(), Some(kept));
    assert!(store.answer("k").await.unwrap().is_some());
    assert_eq!(commit(&*store, event("d")).await, committed(4, 4));
    assert_eq!(log(&*store).await, ["a", "b", "c", "d"]);
}

//! Tests of row keys: `due_us` and `index_key`.

use futures::future::join;

use super::{StoreFixture, commit, committed, event, write};
use crate::{
    BEFORE_ALL_DUE, Commit, DerivedTables, Due, Item, Newest, Outcome, Row, Store, UnchangedKeys,
    Write,
};

fn keyed(id: &str, expected: u64, due_us: Option<i64>, index_key: Option<&str>) -> Write {
    Write { due_us, index_key: index_key.map(Into::into), ..write(id, expected, Some(id)) }
}

async fn put(store: &dyn Store, write: Write) -> Outcome {
    commit(store, Commit { writes: vec![write], ..Commit::default() }).await
}

fn ids(items: Vec<Item>) -> Vec<String> {
    items.into_iter().map(|item| item.id).collect()
}

async fn due(store: &dyn Store, until_us: i64, limit: usize) -> Vec<String> {
    ids(store.list_due(Due { noun: "test", after: BEFORE_ALL_DUE, until_us, limit }).await.unwrap())
}

async fn newest(store: &dyn Store, index_key: Option<&str>, before: &str) -> Vec<String> {
    ids(store
        .list_newest(Newest { noun: "test", index_key, before, limit: usize::MAX })
        .await
        .unwrap())
}

pub(super) async fn due_rows_are_sorted_by_time_and_id(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    for (id, due_us) in [
        ("c", Some(20)),
        ("last", Some(i64::MAX)),
        ("a", Some(30)),
        ("never", None),
        ("b", Some(20)),
        ("first", Some(i64::MIN)),
        ("early", Some(-5)),
    ] {
        put(&*store, keyed(id, 0, due_us, None)).await;
    }
    put(&*store, Write { noun: "other", ..keyed("d", 0, Some(1), None) }).await;
    let all = &["first", "early", "b", "c", "a", "last"][..];
    for (until_us, limit, expected) in [
        (i64::MIN, 9, &["first"][..]),
        (-6, 9, &["first"]),
        (-5, 9, &["first", "early"]),
        (19, 9, &["first", "early"]),
        (20, 9, &["first", "early", "b", "c"]),
        (20, 3, &["first", "early", "b"]),
        (i64::MAX - 1, 9, &["first", "early", "b", "c", "a"]),
        (i64::MAX, 6, all),
        (i64::MAX, usize::MAX, all),
        (i64::MAX, 1, &["first"]),
        (i64::MAX, 0, &[]),
    ] {
        assert_eq!(due(&*store, until_us, limit).await, expected, "{until_us} {limit}");
    }
    assert!(
        store
            .list_due(Due { noun: "nothing", after: BEFORE_ALL_DUE, until_us: i64::MAX, limit: 9 })
            .await
            .unwrap()
            .is_empty()
    );
    let found = store
        .list_due(Due { noun: "test", after: BEFORE_ALL_DUE, until_us: i64::MIN, limit: 1 })
        .await
        .unwrap();
    let expected = Item {
        noun: "test".into(),
        id: "first".into(),
        version: 1,
        body: Some(b"first".as_slice().into()),
        due_us: Some(i64::MIN),
        index_key: None,
    };
    assert_eq!(found, [expected]);
    // The next page starts where the previous one ended, also between rows of one instant.
    for (after, until_us, expected) in [
        ((i64::MIN, "first"), i64::MAX, &["early", "b", "c", "a", "last"][..]),
        ((-5, ""), i64::MAX, &["early", "b", "c", "a", "last"]),
        ((-5, "early"), i64::MAX, &["b", "c", "a", "last"]),
        ((20, "b"), i64::MAX, &["c", "a", "last"]),
        ((20, "b"), 29, &["c"]),
        ((20, "c"), 20, &[]),
        ((i64::MAX, "last"), i64::MAX, &[]),
    ] {
        let found = store.list_due(Due { noun: "test", after, until_us, limit: 9 }).await.unwrap();
        assert_eq!(ids(found), expected, "{after:?} {until_us}");
    }
}

/// The last accepted write determines when a row is due and its index key.
pub(super) async fn last_write_determines_keys(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let conflict = Outcome::Conflict { noun: "test", id: "a".into() };
    let done = committed(1, 0);
    let gone = |expected| write("a", expected, None);
    for (write, outcome, due_us, index_key) in [
        (keyed("a", 0, Some(50), Some("x")), &done, Some(50), Some("x")),
        (keyed("a", 0, Some(10), Some("y")), &conflict, Some(50), Some("x")),
        (keyed("a", 1, Some(20), Some("x")), &done, Some(20), Some("x")),
        (keyed("a", 1, None, None), &conflict, Some(20), Some("x")),
        (keyed("a", 2, Some(70), Some("y")), &done, Some(70), Some("y")),
        (keyed("a", 3, None, Some("y")), &done, None, Some("y")),
        (keyed("a", 4, None, None), &done, None, None),
        (keyed("a", 5, Some(30), None), &done, Some(30), None),
        (keyed("a", 6, None, None), &done, None, None),
        (keyed("a", 7, Some(40), Some("x")), &done, Some(40), Some("x")),
        (gone(7), &conflict, Some(40), Some("x")),
    ] {
        let context = format!("{write:?}");
        assert_eq!(&put(&*store, write).await, outcome, "{context}");
        for until_us in [10, 20, 30, 40, 50, 70] {
            let is_due = due_us.is_some_and(|due_us| due_us <= until_us);
            let found = store
                .list_due(Due { noun: "test", after: BEFORE_ALL_DUE, until_us, limit: 9 })
                .await
                .unwrap();
            assert_eq!(found.len(), usize::from(is_due), "{context} {until_us}");
            assert!(found.iter().all(|item| item.due_us == due_us), "{context} {until_us}");
        }
        for key in ["x", "y"] {
            let expected = usize::from(index_key == Some(key));
            assert_eq!(newest(&*store, Some(key), "").await.len(), expected, "{context} {key}");
        }
        let derived = store.load_derived().await.unwrap();
        let [item] = derived.items.as_slice() else { panic!("{context}: {derived:?}") };
        assert_eq!((item.due_us, item.index_key.as_deref()), (due_us, index_key), "{context}");
    }
    assert_eq!(put(&*store, gone(8)).await, done);
    assert!(due(&*store, i64::MAX, 9).await.is_empty());
    assert!(newest(&*store, None, "").await.is_empty());
    assert!(newest(&*store, Some("x"), "").await.is_empty());
    assert_eq!(put(&*store, keyed("a", 9, Some(5), Some("x"))).await, done);
    assert_eq!(due(&*store, 5, 9).await, ["a"]);
    assert_eq!(newest(&*store, Some("x"), "").await, ["a"]);
}

/// Two commits in one transaction, and one whose last part is refused.
pub(super) async fn keys_are_written_atomically(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let first = put(&*store, keyed("a", 0, Some(1), Some("x")));
    let second = put(&*store, keyed("a", 1, None, Some("y")));
    assert_eq!(join(first, second).await, (committed(1, 0), committed(1, 0)));
    assert!(due(&*store, i64::MAX, 9).await.is_empty());
    assert!(newest(&*store, Some("x"), "").await.is_empty());

    let writes = vec![keyed("b", 0, Some(1), Some("x")), keyed("a", 1, Some(1), None)];
    let conflict = Outcome::Conflict { noun: "test", id: "a".into() };
    assert_eq!(commit(&*store, Commit { writes, ..Commit::default() }).await, conflict);
    assert!(due(&*store, i64::MAX, 9).await.is_empty());
    assert!(newest(&*store, Some("x"), "").await.is_empty());
    assert_eq!(newest(&*store, Some("y"), "").await, ["a"]);
}

pub(super) async fn unchanged_keys_are_preserved(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let keyed = |expected, unchanged_keys, due_us| Write {
        unchanged_keys,
        body: Some(format!("{expected}").into_bytes().into()),
        ..keyed("a", expected, Some(due_us), Some("x"))
    };
    put(&*store, keyed(0, UnchangedKeys::Unknown, 10)).await;
    assert!(matches!(put(&*store, keyed(1, UnchangedKeys::Both, 10)).await, Outcome::Committed(_)));
    let found = store
        .list_due(Due { noun: "test", after: BEFORE_ALL_DUE, until_us: 10, limit: 9 })
        .await
        .unwrap();
    let bodies: Vec<_> = found.iter().map(|item| item.body.as_deref()).collect();
    assert_eq!(bodies, [Some(b"1".as_slice())]);
    assert_eq!(newest(&*store, Some("x"), "").await, ["a"]);
    assert!(matches!(
        put(&*store, keyed(2, UnchangedKeys::IndexKey, 20)).await,
        Outcome::Committed(_)
    ));
    assert_eq!(due(&*store, 19, 9).await, [""; 0]);
    assert_eq!(due(&*store, 20, 9).await, ["a"]);
    assert_eq!(newest(&*store, Some("x"), "").await, ["a"]);
    // The version is checked even if keys are unchanged.
    for unchanged_keys in [UnchangedKeys::Unknown, UnchangedKeys::IndexKey, UnchangedKeys::Both] {
        let refused = put(&*store, keyed(2, unchanged_keys, 20)).await;
        assert!(matches!(refused, Outcome::Conflict { .. }), "{refused:?}");
    }
}

pub(super) async fn newest_rows_are_paged(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let id = |number: u32| format!("{number:03}");
    let keys = [None, Some("x"), Some("xx"), Some("")];
    for (number, index_key) in (0..40).zip(keys.into_iter().cycle()) {
        put(&*store, keyed(&id(number), 0, None, index_key)).await;
        put(&*store, Write { noun: "other", ..keyed(&id(number), 0, None, Some("x")) }).await;
    }
    for number in [0, 5, 39] {
        put(&*store, write(&id(number), 1, None)).await;
    }
    let all = || (1..39).rev().filter(|number| *number != 5);
    let of = |rest| all().filter(move |number| number % 4 == rest);
    let mut added = 40;
    for (index_key, expected) in [
        (None, all().map(id).collect::<Vec<_>>()),
        (Some("x"), of(1).map(id).collect()),
        (Some("xx"), of(2).map(id).collect()),
        (Some(""), of(3).map(id).collect()),
        (Some("nothing"), vec![]),
    ] {
        for limit in [1, 3, 100] {
            let (mut found, mut before) = (Vec::new(), id(40));
            loop {
                let page = store
                    .list_newest(Newest { noun: "test", index_key, before: &before, limit })
                    .await
                    .unwrap();
                assert!(page.len() <= limit, "{index_key:?} {limit}");
                let Some(last) = page.last() else { break };
                assert!(last.id < before, "{index_key:?} {limit}: {before} is repeated");
                before.clone_from(&last.id);
                found.extend(ids(page));
                // Paging downwards does not see rows added above.
                put(&*store, keyed(&id(added), 0, None, index_key)).await;
                added += 1;
            }
            assert_eq!(found, expected, "{index_key:?} {limit}");
        }
    }
    assert_eq!(newest(&*store, None, "").await.first(), Some(&id(added - 1)));
    assert_eq!(newest(&*store, None, "002").await, ["001"]);
    assert_eq!(newest(&*store, Some("x"), "008").await, ["001"]);
    assert!(
        store
            .list_newest(Newest { noun: "test", index_key: None, before: "", limit: 0 })
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .list_newest(Newest { noun: "nothing", index_key: None, before: "", limit: 9 })
            .await
            .unwrap()
            .is_empty()
    );
}

pub(super) async fn load_all_keeps_the_requested_order(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    for id in ["a", "b", "gone"] {
        put(&*store, write(id, 0, Some(id))).await;
    }
    put(&*store, write("b", 1, Some("B"))).await;
    put(&*store, write("gone", 1, None)).await;
    put(&*store, Write { noun: "other", ..write("none", 0, Some("x")) }).await;
    let ids = ["b", "none", "a", "b", "gone", "none", ""];
    let row = |version, body: &str| Row { version, body: Some(body.as_bytes().into()) };
    let gone = Row { version: 2, body: None };
    let none = Row::default;
    let expected = [row(2, "B"), none(), row(1, "a"), row(2, "B"), gone, none(), none()];
    assert_eq!(store.load_all("test", &ids).await.unwrap(), expected);
    assert_eq!(store.load_all("test", &[]).await.unwrap(), []);
    for (id, expected) in ids.into_iter().zip(expected) {
        assert_eq!(store.load("test", id).await.unwrap(), expected, "{id}");
    }
}

pub(super) async fn replace_replaces_keys(fixture: &dyn StoreFixture) {
    let store = fixture.open();
    let old = Commit { writes: vec![keyed("old", 0, Some(1), Some("x"))], ..event("a") };
    commit(&*store, old).await;
    let item = |id: &str, due_us, index_key: Option<&str>| Item {
        noun: "test".into(),
        id: id.into(),
        version: 3,
        body: Some(id.as_bytes().into()),
        due_us,
        index_key: index_key.map(Into::into),
    };
    let items =
        vec![item("both", Some(2), Some("x")), item("due", Some(1), None), item("old", None, None)];
    let derived = DerivedTables { through: 1, items, counters: vec![] };
    let replace = Commit { replace_derived: Some(derived.clone()), ..Commit::default() };
    assert_eq!(commit(&*store, replace).await, committed(2, 1));
    drop(store);
    let store = fixture.open();
    assert_eq!(store.load_derived().await.unwrap(), derived);
    assert_eq!(due(&*store, i64::MAX, 9).await, ["due", "both"]);
    assert_eq!(newest(&*store, Some("x"), "").await, ["both"]);
    assert_eq!(newest(&*store, None, "").await, ["old", "due", "both"]);
}

//! Several stores on one database that race for the same rows, counters and keys.

use std::sync::Arc;

use futures::future::join_all;
use store::{Commit, Error, Expect, Outcome, Store};

use crate::audit;
use crate::databases::{Database, open, other_client, within_deadline};
use crate::workload::{Step, add, event, put, version_of};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_openers_migrate_an_empty_database_once() {
    let database = Database::new();
    let stores = join_all((0..8).map(|_| open(&database.url))).await;
    let commits = stores.iter().enumerate().map(|(number, store)| async move {
        store.commit(event(&number.to_string())).await.unwrap()
    });
    join_all(commits).await;
    let alone = Database::new();
    open(&alone.url).await;
    assert_eq!(count_migrations(&database.url).await, count_migrations(&alone.url).await);
    let mut names = audit::names(&*stores[0]).await;
    names.sort();
    assert_eq!(names, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

/// The number of applied migrations.
async fn count_migrations(url: &str) -> i64 {
    let count = other_client(url).await.query_one("SELECT count(*) FROM migration", &[]).await;
    count.unwrap().get(0)
}

/// A counter that does not exist cannot be locked, so the slower commit is decided again.
#[tokio::test(flavor = "multi_thread")]
async fn two_stores_that_create_a_counter_both_count() {
    let database = Database::new();
    let stores = [open(&database.url).await, open(&database.url).await];
    for round in 0..40 {
        let name: &'static str = Box::leak(format!("counter-{round}").into_boxed_str());
        let commits = stores.iter().map(|store| store.commit(add(name, 1)));
        for outcome in join_all(commits).await {
            assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
        }
        assert_eq!(stores[0].counter(name).await.unwrap(), 2, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_that_insert_a_row_conflict() {
    let database = Database::new();
    let stores = [open(&database.url).await, open(&database.url).await];
    for round in 0..40 {
        let row = format!("row-{round}");
        let outcomes = join_all(stores.iter().map(|store| store.commit(put(&row, 1)))).await;
        let conflict = Outcome::Conflict { noun: "row", id: row.clone() };
        let lost = outcomes.iter().filter(|outcome| **outcome == Ok(conflict.clone())).count();
        assert_eq!(lost, 1, "{outcomes:?}");
    }
    assert_eq!(audit::names(&*stores[0]).await.len(), 40);
}

/// No commit that read a row follows the commit that changed it.
#[tokio::test(flavor = "multi_thread")]
async fn changed_read_row_conflicts_across_stores() {
    let database = Database::new();
    let [writer, reader] = [open(&database.url).await, open(&database.url).await];
    let mut refused = 0;
    for version in 1..=60 {
        let expect = Expect { noun: "row", id: "shared".into(), version: version - 1 };
        let readers = (0..4).map(|n| {
            let commit = put(&format!("reader-{version}-{n}"), 1);
            reader.commit(Commit { expects: vec![expect.clone()], ..commit })
        });
        let (shared, outcomes) =
            futures::future::join(writer.commit(put("shared", version)), join_all(readers)).await;
        let Ok(Outcome::Committed(shared)) = shared else { panic!("{shared:?}") };
        for outcome in outcomes {
            match outcome.unwrap() {
                Outcome::Committed(receipt) => assert!(receipt.last < shared.first, "{version}"),
                Outcome::Conflict { .. } => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(0 < refused && refused < 240, "the commits never raced: {refused}");
}

/// A commit to a row that another program has locked fails after the lock timeout. Commits to other rows
/// do not wait.
#[tokio::test(flavor = "multi_thread")]
async fn commit_to_a_locked_row_times_out() {
    let database = Database::new();
    let store = open(&format!("{}?options=-c%20lock_timeout%3D100", database.url)).await;
    let other = open(&database.url).await;
    store.commit(put("held", 1)).await.unwrap();
    let other_client = other_client(&database.url).await;
    other_client.batch_execute("BEGIN; UPDATE item SET body = '' WHERE id = 'held'").await.unwrap();

    let waiting = store.commit(put("held", 2));
    let (refused, ()) = futures::future::join(waiting, async {
        for name in ["a", "b", "c"] {
            within_deadline("committing to another row", other.commit(put(name, 1))).await.unwrap();
        }
    })
    .await;
    let Err(Error::Unreachable(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("lock timeout"), "{text}");
    assert_eq!(version_of(&*store, "held").await, Ok(1));

    other_client.batch_execute("ROLLBACK").await.unwrap();
    let outcome = within_deadline("committing to the row", store.commit(put("held", 2))).await;
    assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    assert_eq!(audit::names(&*store).await, ["held", "a", "b", "c", "held"]);
}

/// A reader never sees empty tables while another store replaces them.
#[tokio::test(flavor = "multi_thread")]
async fn replacing_derived_tables_is_atomic_for_readers() {
    let database = Database::new();
    let (writer, reader) = (open(&database.url).await, open(&database.url).await);
    for row in ["a", "b", "c"] {
        writer.commit(put(row, 1)).await.unwrap();
    }
    let rows = writer.load_derived().await.unwrap().items;
    let replacing = async {
        for _ in 0..60 {
            let derived = writer.load_derived().await.unwrap();
            let commit = Commit { replace_derived: Some(derived), ..event("rebuilt") };
            writer.commit(commit).await.unwrap();
        }
    };
    let reading = async {
        loop {
            assert_eq!(reader.load_derived().await.unwrap().items, rows);
        }
    };
    tokio::select! {
        () = replacing => {}
        () = reading => {}
    }
}

/// A commit that PostgreSQL cannot store does not fail other commits of its group.
#[tokio::test(flavor = "multi_thread")]
async fn text_with_nul_is_refused_without_affecting_its_group() {
    let database = Database::new();
    let store = open(&database.url).await;
    let commits = (0..32).map(|number| match number % 8 {
        0 => store.commit(event("a\0b")),
        1 => store.commit(put("a\0b", 1)),
        _ => store.commit(event("fine")),
    });
    for (number, outcome) in join_all(commits).await.into_iter().enumerate() {
        match (number % 8, outcome) {
            (0 | 1, Err(Error::Failed(text))) => assert!(text.contains("NUL"), "{text}"),
            (2.., Ok(Outcome::Committed(_))) => {}
            (_, other) => panic!("{number}: {other:?}"),
        }
    }
    assert_eq!(audit::names(&*store).await.len(), 24);
}

/// Concurrent commits that together exceed the size limit of a group.
#[tokio::test(flavor = "multi_thread")]
async fn large_commits_do_not_share_a_transaction() {
    let database = Database::new();
    let store = open(&database.url).await;
    let body: Arc<[u8]> = vec![0; 8 << 20].into();
    let large = |number: usize| {
        let mut commit = put(&number.to_string(), 1);
        commit.writes[0].body = Some(Arc::clone(&body));
        commit
    };
    for outcome in join_all((0..12).map(|number| store.commit(large(number)))).await {
        assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    }
    assert!(3 <= store.transactions(), "{}", store.transactions());
}

/// Even in one group with a commit that changes its row.
#[tokio::test(flavor = "multi_thread")]
async fn used_idempotency_key_is_checked_before_versions() {
    let database = Database::new();
    let store = open(&database.url).await;
    for round in 0..40 {
        let row = format!("row-{round}");
        let request =
            |version| Step { name: row.clone(), row: row.clone(), version, add: 0 }.commit();
        store.commit(request(1)).await.unwrap();
        let commits = [event("a"), event("b"), put(&row, 2), request(2)];
        let outcomes = join_all(commits.map(|commit| store.commit(commit))).await;
        assert_eq!(outcomes[3], Ok(Outcome::Replayed(row.clone().into_bytes())), "{row}");
    }
}

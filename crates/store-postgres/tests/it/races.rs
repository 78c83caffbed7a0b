//! Several stores on one database that want the same thing at the same moment.

use std::sync::Arc;

use futures::future::join_all;
use store::{Commit, Error, Expect, Outcome, Store};

use crate::audit;
use crate::places::{Database, open, soon, stranger};
use crate::work::{Step, add, event, put, version_of};

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_is_made_ready_once() {
    let database = Database::new();
    let stores = join_all((0..8).map(|_| open(&database.url))).await;
    let commits = stores.iter().enumerate().map(|(number, store)| async move {
        store.commit(event(&number.to_string())).await.unwrap()
    });
    join_all(commits).await;
    let alone = Database::new();
    open(&alone.url).await;
    assert_eq!(steps(&database.url).await, steps(&alone.url).await);
    let mut names = audit::names(&*stores[0]).await;
    names.sort();
    assert_eq!(names, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

/// How many steps of the schema a database has seen.
async fn steps(url: &str) -> i64 {
    let steps = stranger(url).await.query_one("SELECT count(*) FROM migration", &[]).await;
    steps.unwrap().get(0)
}

/// What does not exist yet cannot be locked: then the slower one must decide again.
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_that_two_begin_counts_both() {
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
async fn a_row_that_two_begin_is_begun_once() {
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

/// A row that one changes while others commit what they decided on it: none of theirs comes after.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_only_read_is_still_so_at_the_commit() {
    let database = Database::new();
    let [writer, reader] = [open(&database.url).await, open(&database.url).await];
    let mut refused = 0;
    for version in 1..=60 {
        let expect = Expect { noun: "row", id: "law".into(), version: version - 1 };
        let readers = (0..4).map(|n| {
            let commit = put(&format!("reader-{version}-{n}"), 1);
            reader.commit(Commit { expects: vec![expect.clone()], ..commit })
        });
        let (law, outcomes) =
            futures::future::join(writer.commit(put("law", version)), join_all(readers)).await;
        let Ok(Outcome::Committed(law)) = law else { panic!("{law:?}") };
        for outcome in outcomes {
            match outcome.unwrap() {
                Outcome::Committed(receipt) => assert!(receipt.last < law.first, "{version}"),
                Outcome::Conflict { .. } => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(0 < refused && refused < 240, "they never met: {refused}");
}

/// A transaction that somebody left open on a row delays those who write the row, for a while. They
/// are told then, nothing of theirs is written, and others are not held up.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_a_stranger_holds_is_not_awaited_for_ever() {
    let database = Database::new();
    let store = open(&format!("{}?options=-c%20lock_timeout%3D100", database.url)).await;
    let other = open(&database.url).await;
    store.commit(put("held", 1)).await.unwrap();
    let stranger = stranger(&database.url).await;
    stranger.batch_execute("BEGIN; UPDATE item SET body = '' WHERE id = 'held'").await.unwrap();

    let waiting = store.commit(put("held", 2));
    let (refused, ()) = futures::future::join(waiting, async {
        for name in ["a", "b", "c"] {
            soon("a commit to another row", other.commit(put(name, 1))).await.unwrap();
        }
    })
    .await;
    let Err(Error::Unreachable(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("lock timeout"), "{text}");
    assert_eq!(version_of(&*store, "held").await, Ok(1));

    stranger.batch_execute("ROLLBACK").await.unwrap();
    let outcome = soon("a commit to the row", store.commit(put("held", 2))).await;
    assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    assert_eq!(audit::names(&*store).await, ["held", "a", "b", "c", "held"]);
}

/// The tables that another store replaces are never seen empty.
#[tokio::test(flavor = "multi_thread")]
async fn tables_are_whole_while_they_are_replaced() {
    let database = Database::new();
    let (writer, reader) = (open(&database.url).await, open(&database.url).await);
    for row in ["a", "b", "c"] {
        writer.commit(put(row, 1)).await.unwrap();
    }
    let rows = writer.derived().await.unwrap().items;
    let replacing = async {
        for _ in 0..60 {
            let derived = writer.derived().await.unwrap();
            let commit = Commit { replace: Some(derived), ..event("rebuilt") };
            writer.commit(commit).await.unwrap();
        }
    };
    let reading = async {
        loop {
            assert_eq!(reader.derived().await.unwrap().items, rows);
        }
    };
    tokio::select! {
        () = replacing => {}
        () = reading => {}
    }
}

/// What the database cannot keep is refused for itself, whoever shares its transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_cannot_be_kept_is_refused_alone() {
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

/// More than fits into one message to the database, all at once.
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

/// Also in one group with a commit that takes the row away from it.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_answered_is_answered_before_its_rows_are_looked_at() {
    let database = Database::new();
    let store = open(&database.url).await;
    for round in 0..40 {
        let row = format!("row-{round}");
        let asked =
            |version| Step { name: row.clone(), row: row.clone(), version, add: 0 }.commit();
        store.commit(asked(1)).await.unwrap();
        let commits = [event("a"), event("b"), put(&row, 2), asked(2)];
        let outcomes = join_all(commits.map(|commit| store.commit(commit))).await;
        assert_eq!(outcomes[3], Ok(Outcome::Answered(row.clone().into_bytes())), "{row}");
    }
}

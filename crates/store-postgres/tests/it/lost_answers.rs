//! Connections that are cut while a commit is on its way: it happened or it did not, and its caller is
//! told so, or that nobody knows.

use std::collections::BTreeSet;

use futures::future::join_all;
use store::{Error, Outcome, Store};

use crate::audit;
use crate::places::{Database, open, stranger};
use crate::work::{Step, add, event};

const WRITERS: usize = 8;
const CUTS: usize = 150;

/// Cuts connections that are committing right now until it has done so `CUTS` times, while `work` runs.
async fn cutting(url: &str, work: impl Future<Output = ()>) {
    let stranger = stranger(url).await;
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE application_name = 'midwatch' AND datname = current_database()
               AND state = 'active' AND query = 'COMMIT'";
    let cut = async {
        let mut cuts = 0;
        while cuts < CUTS {
            let row = stranger.query_one(sql, &[]).await.unwrap();
            cuts += usize::try_from(row.get::<_, i64>(0)).unwrap();
        }
    };
    tokio::select! {
        () = cut => {}
        () = work => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_cut_off_happened_once_or_not_at_all() {
    let database = Database::new();
    let store = open(&database.url).await;
    let (told, known) = std::sync::mpsc::channel();
    let write = |writer: usize| {
        let (store, told) = (&store, told.clone());
        async move {
            for number in 0.. {
                let name = format!("{writer}.{number}");
                let outcome = store.commit(event(&name)).await;
                told.send((name, outcome)).unwrap();
            }
        }
    };
    cutting(&database.url, async { drop(join_all((0..WRITERS).map(write)).await) }).await;
    drop(told);
    let names = audit::names(&*store).await;
    let once: BTreeSet<&String> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "an entry is there twice");
    let mut committed = 0;
    for (name, outcome) in known {
        match outcome {
            Ok(Outcome::Committed(receipt)) => {
                committed += 1;
                let place = usize::try_from(receipt.first).unwrap();
                assert_eq!(names.get(place - 1), Some(&name), "{receipt:?}");
            }
            Err(Error::Unreachable(_)) => assert!(!once.contains(&name), "{name} is there"),
            Err(Error::InDoubt(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    println!("{committed} committed, {CUTS} connections cut");
    assert!(CUTS / 4 < committed);
}

/// The row, the counter and the key of a commit stand and fall with its entry.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_cut_off_is_whole() {
    let database = Database::new();
    let store = open(&database.url).await;
    let write = |writer: usize| {
        let store = &store;
        async move {
            let row = format!("row-{writer}");
            for version in 1.. {
                let add = if version % 2 == 1 { 1 } else { -1 };
                let name = format!("{writer}.{version}");
                let step = Step { name, row: row.clone(), version, add };
                // A key that is asked for again finds what was done.
                match store.commit(step.commit()).await.unwrap() {
                    Outcome::Committed(_) => {}
                    other => panic!("{step:?}: {other:?}"),
                }
            }
        }
    };
    cutting(&database.url, async { drop(join_all((0..WRITERS).map(write)).await) }).await;
    audit::tables(&*store).await;
    audit::acknowledged(&*store, &[]).await;
}

/// A commit without an entry leaves nothing to be found by. Its caller is told that it is not known
/// whether it happened; it is not done again.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_entry_is_not_done_twice() {
    let database = Database::new();
    let store = open(&database.url).await;
    let (told, known) = std::sync::mpsc::channel();
    let count = |_| {
        let (store, told) = (&store, told.clone());
        async move {
            loop {
                let asked = told.send(None);
                told.send(Some(store.commit(add("units", 1)).await)).unwrap();
                asked.unwrap();
            }
        }
    };
    cutting(&database.url, async { drop(join_all((0..WRITERS).map(count)).await) }).await;
    drop(told);
    let (mut asked, mut committed, mut refused) = (0, 0, 0);
    for answer in known {
        match answer {
            None => asked += 1,
            Some(Ok(Outcome::Committed(_))) => committed += 1,
            Some(Err(Error::Unreachable(_))) => refused += 1,
            Some(Err(Error::InDoubt(_))) => {}
            Some(other) => panic!("{other:?}"),
        }
    }
    // Those that were on their way at the end are still being written.
    store.commit(event("end")).await.unwrap();
    let value = store.counter("units").await.unwrap();
    assert!(
        (committed..=asked - refused).contains(&value),
        "{committed} {asked} {refused} {value}"
    );
}

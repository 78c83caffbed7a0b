//! Connections that are cut while a commit is on its way: it happened or it did not, and its caller is
//! told so, or that nobody knows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use store::{Error, Outcome, Store};
use store_postgres::Postgres;
use tokio::time::timeout;

use crate::audit;
use crate::places::{CLUSTER, Database, open, stranger, target};
use crate::proxy::Proxy;
use crate::work::{Step, add, event};

const WRITERS: usize = 8;
const CUTS: usize = 25;
/// Long enough for a busy machine, short enough to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store whose connection loses commits, or the answers to them, again and again.
async fn behind_a_proxy(database: &Database) -> (Proxy, Arc<Postgres>) {
    let directory = CLUSTER.directory().to_string_lossy();
    let proxy = Proxy::new(&directory, u64::from(std::process::id()));
    // Opening commits too, and is not tried again.
    drop(open(&database.url).await);
    let store = loop {
        match Postgres::open(&target(&proxy.url(&database.url))).await {
            Ok(store) => break store,
            Err(Error::Unreachable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    (proxy, Arc::new(store))
}

/// Lets `work` run until its connections were cut `CUTS` times. Meanwhile the server is told to end
/// those that are committing right now.
async fn cutting(proxy: &Proxy, url: &str, work: impl Future<Output = ()>) {
    let stranger = stranger(url).await;
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE application_name = 'midwatch' AND datname = current_database()
               AND state = 'active' AND query = 'COMMIT'";
    let cut = async {
        while proxy.cuts() < CUTS {
            stranger.query_one(sql, &[]).await.unwrap();
        }
    };
    let both = async {
        tokio::select! {
            () = cut => {}
            () = work => {}
        }
    };
    let cut = timeout(PATIENCE, both).await;
    assert!(cut.is_ok(), "only {} connections were cut in {PATIENCE:?}", proxy.cuts());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_cut_off_happened_once_or_not_at_all() {
    let database = Database::new();
    let (proxy, store) = behind_a_proxy(&database).await;
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
    cutting(&proxy, &database.url, async { drop(join_all((0..WRITERS).map(write)).await) }).await;
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
    let (proxy, store) = behind_a_proxy(&database).await;
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
    cutting(&proxy, &database.url, async { drop(join_all((0..WRITERS).map(write)).await) }).await;
    audit::tables(&*store).await;
    audit::acknowledged(&*store, &[]).await;
}

/// A commit without an entry leaves nothing to be found by. Its caller is told that it is not known
/// whether it happened; it is not done again.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_entry_is_not_done_twice() {
    let database = Database::new();
    let (proxy, store) = behind_a_proxy(&database).await;
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
    cutting(&proxy, &database.url, async { drop(join_all((0..WRITERS).map(count)).await) }).await;
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

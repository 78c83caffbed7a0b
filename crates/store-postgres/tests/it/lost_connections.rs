//! Connections that are cut during a commit: the caller learns whether the commit happened, or gets
//! `InDoubt`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use store::{Error, Outcome, Store};
use store_postgres::Postgres;
use tokio::time::timeout;

use crate::audit;
use crate::databases::{Database, SERVER, open, other_client, target};
use crate::proxy::Proxy;
use crate::workload::{Step, add, event};

const WRITERS: usize = 8;
const CUTS: usize = 25;
/// Long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A store whose connections repeatedly lose commits, or the replies to them.
async fn behind_a_proxy(database: &Database) -> (Proxy, Arc<Postgres>) {
    let directory = SERVER.directory().to_string_lossy();
    let proxy = Proxy::new(&directory, u64::from(std::process::id()));
    // Opening a new database also commits, but does not retry.
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

/// Runs `work` until its connections were cut `CUTS` times. Meanwhile the server also terminates
/// connections that are committing.
async fn run_with_cuts(proxy: &Proxy, url: &str, work: impl Future<Output = ()>) {
    let other_client = other_client(url).await;
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE application_name = 'midwatch' AND datname = current_database()
               AND state = 'active' AND query = 'COMMIT'";
    let cut = async {
        while proxy.cuts() < CUTS {
            other_client.query_one(sql, &[]).await.unwrap();
        }
    };
    let both = async {
        tokio::select! {
            () = cut => {}
            () = work => {}
        }
    };
    let cut = timeout(DEADLINE, both).await;
    assert!(cut.is_ok(), "only {} connections were cut in {DEADLINE:?}", proxy.cuts());
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_commit_happens_at_most_once() {
    let database = Database::new();
    let (proxy, store) = behind_a_proxy(&database).await;
    let (reported, results) = std::sync::mpsc::channel();
    let write = |writer: usize| {
        let (store, reported) = (&store, reported.clone());
        async move {
            for number in 0.. {
                let name = format!("{writer}.{number}");
                let outcome = store.commit(event(&name)).await;
                reported.send((name, outcome)).unwrap();
            }
        }
    };
    run_with_cuts(&proxy, &database.url, async { drop(join_all((0..WRITERS).map(write)).await) })
        .await;
    drop(reported);
    let names = audit::names(&*store).await;
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "an entry is in the ledger twice");
    let mut committed = 0;
    for (name, outcome) in results {
        match outcome {
            Ok(Outcome::Committed(receipt)) => {
                committed += 1;
                let seq = usize::try_from(receipt.first).unwrap();
                assert_eq!(names.get(seq - 1), Some(&name), "{receipt:?}");
            }
            Err(Error::Unreachable(_)) => {
                assert!(!distinct.contains(&name), "{name} was committed")
            }
            Err(Error::InDoubt(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    println!("{committed} committed, {CUTS} connections cut");
    assert!(CUTS / 4 < committed);
}

/// Row, counter and response are committed if and only if the entry is.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_commit_is_atomic() {
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
                // The store itself retries, so a commit never conflicts with itself.
                match store.commit(step.commit()).await.unwrap() {
                    Outcome::Committed(_) => {}
                    other => panic!("{step:?}: {other:?}"),
                }
            }
        }
    };
    run_with_cuts(&proxy, &database.url, async { drop(join_all((0..WRITERS).map(write)).await) })
        .await;
    audit::check_tables(&*store).await;
    audit::check_acknowledged(&*store, &[]).await;
}

/// A commit without entries leaves no trace in the ledger. It is not retried, and its caller gets
/// `InDoubt`.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_commit_without_entries_is_not_repeated() {
    let database = Database::new();
    let (proxy, store) = behind_a_proxy(&database).await;
    let (reported, results) = std::sync::mpsc::channel();
    let count = |_| {
        let (store, reported) = (&store, reported.clone());
        async move {
            loop {
                let sent = reported.send(None);
                reported.send(Some(store.commit(add("units", 1)).await)).unwrap();
                sent.unwrap();
            }
        }
    };
    run_with_cuts(&proxy, &database.url, async { drop(join_all((0..WRITERS).map(count)).await) })
        .await;
    drop(reported);
    let (mut sent, mut committed, mut refused) = (0, 0, 0);
    for result in results {
        match result {
            None => sent += 1,
            Some(Ok(Outcome::Committed(_))) => committed += 1,
            Some(Err(Error::Unreachable(_))) => refused += 1,
            Some(Err(Error::InDoubt(_))) => {}
            Some(other) => panic!("{other:?}"),
        }
    }
    // This commit waits for those that were still being written at the end.
    store.commit(event("end")).await.unwrap();
    let value = store.counter("units").await.unwrap();
    assert!((committed..=sent - refused).contains(&value), "{committed} {sent} {refused} {value}");
}

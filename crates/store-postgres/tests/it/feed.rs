//! Who waits for the log to grow is woken, by whatever way; and the time is the database's.

use std::time::Duration;

use store::Store;

use crate::places::{Database, now, open, soon, stranger};
use crate::work::event;

/// Of the connections that listen.
const CUT_FEEDS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = 'midwatch' AND datname = current_database() AND pid <> pg_backend_pid()
    AND query LIKE ANY (ARRAY['LISTEN%', 'NOTIFY%', 'SELECT chain, %', '%pg_is_in_recovery%'])";

#[tokio::test(flavor = "multi_thread")]
async fn another_store_is_woken_by_polls_alone() {
    let database = Database::new();
    let (writer, reader) = (open(&database.url).await, open(&database.url).await);
    let stranger = stranger(&database.url).await;
    let mut cut = 0;
    for size in 0..10 {
        // No feed listens and none notifies while the entry is written.
        let row = stranger.query_one(CUT_FEEDS, &[]).await.unwrap();
        cut += row.get::<_, i64>(0);
        writer.commit(event("a")).await.unwrap();
        soon("that the reader wakes", reader.grown_past(size)).await;
        assert_eq!(reader.entries(size, 1).await.unwrap().len(), 1);
    }
    assert!(0 < cut, "no connection was cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_store_is_woken_soon() {
    let database = Database::new();
    let (writer, reader) = (open(&database.url).await, open(&database.url).await);
    let mut fastest = Duration::MAX;
    for size in 0..20 {
        let waiting = reader.grown_past(size);
        writer.commit(event("a")).await.unwrap();
        let begun = now();
        soon("that the reader wakes", waiting).await;
        fastest = fastest.min(begun.elapsed());
    }
    // The slowest says more about this machine than about the feed.
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_is_the_databases() {
    let database = Database::new();
    let store = open(&database.url).await;
    let stranger = stranger(&database.url).await;
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    for round in 0..5 {
        let before: i64 = stranger.query_one(sql, &[]).await.unwrap().get(0);
        let told = store.time_us().unwrap();
        let after: i64 = stranger.query_one(sql, &[]).await.unwrap().get(0);
        let tolerance = 1_000_000;
        assert!(before - tolerance <= told, "{before} {told}");
        assert!(told <= after + tolerance, "{told} {after}");
        // What is told while commits wait for one another is not older.
        let wait = "BEGIN; SELECT 1 FROM head FOR UPDATE; SELECT pg_sleep(0.3); ROLLBACK";
        let (waited, outcome) =
            futures::future::join(stranger.batch_execute(wait), store.commit(event("a"))).await;
        waited.unwrap();
        outcome.unwrap_or_else(|error| panic!("{round}: {error}"));
    }
}

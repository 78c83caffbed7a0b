//! A waiting reader wakes with or without notifications, and the time comes from the database.

use std::time::Duration;

use store::Store;

use crate::databases::{Database, now, open, other_client, within_deadline};
use crate::workload::event;

/// Terminates the connections of feeds.
const CUT_FEEDS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = 'midwatch' AND datname = current_database() AND pid <> pg_backend_pid()
    AND query LIKE ANY (ARRAY['LISTEN%', 'NOTIFY%', 'SELECT chain, %', '%pg_is_in_recovery%'])";

#[tokio::test(flavor = "multi_thread")]
async fn polling_alone_wakes_another_store() {
    let database = Database::new();
    let (writer, reader) = (open(&database.url).await, open(&database.url).await);
    let other_client = other_client(&database.url).await;
    let mut cut = 0;
    for size in 0..10 {
        // No feed listens or notifies while the entry is written.
        let row = other_client.query_one(CUT_FEEDS, &[]).await.unwrap();
        cut += row.get::<_, i64>(0);
        writer.commit(event("a")).await.unwrap();
        within_deadline("waking the reader", reader.wait_for_entries_after(size)).await;
        assert_eq!(reader.entries(size, 1).await.unwrap().len(), 1);
    }
    assert!(0 < cut, "no connection was cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_store_wakes_within_100_ms() {
    let database = Database::new();
    let (writer, reader) = (open(&database.url).await, open(&database.url).await);
    let mut fastest = Duration::MAX;
    for size in 0..20 {
        let waiting = reader.wait_for_entries_after(size);
        writer.commit(event("a")).await.unwrap();
        let started = now();
        within_deadline("waking the reader", waiting).await;
        fastest = fastest.min(started.elapsed());
    }
    // The slowest time depends on the machine, not on the feed.
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_comes_from_the_database() {
    let database = Database::new();
    let store = open(&database.url).await;
    let other_client = other_client(&database.url).await;
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    for round in 0..5 {
        let before: i64 = other_client.query_one(sql, &[]).await.unwrap().get(0);
        let found = store.shared_clock_us().unwrap();
        let after: i64 = other_client.query_one(sql, &[]).await.unwrap().get(0);
        let tolerance = 1_000_000;
        assert!(before - tolerance <= found, "{before} {found}");
        assert!(found <= after + tolerance, "{found} {after}");
        // Waiting commits do not make the time older.
        let wait = "BEGIN; SELECT 1 FROM head FOR UPDATE; SELECT pg_sleep(0.3); ROLLBACK";
        let (waited, outcome) =
            futures::future::join(other_client.batch_execute(wait), store.commit(event("a"))).await;
        waited.unwrap();
        outcome.unwrap_or_else(|error| panic!("{round}: {error}"));
    }
}

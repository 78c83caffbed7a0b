//! Failover to a standby that has, or lacks, acknowledged entries.

use std::sync::Arc;

use store::{Error, Outcome, Store};
use store_postgres::Postgres;
use test_postgres::{Options, PostgresServer};

use crate::audit;
use crate::databases::{open, target, within_deadline};
use crate::workload::event;

/// A primary with one entry, and a standby that has it.
struct Pair {
    primary: PostgresServer,
    standby: PostgresServer,
    url: String,
}

impl Pair {
    async fn new() -> Pair {
        let primary = PostgresServer::start_with(Options::default().durable()).unwrap();
        let url = primary.create_database().unwrap();
        let store = open(&url).await;
        store.commit(event("a")).await.unwrap();
        let standby = primary.standby().unwrap();
        standby.catch_up_with(&primary).unwrap();
        Pair { primary, standby, url }
    }

    /// The URL of the server that accepts writes.
    fn writable_url(&self) -> String {
        format!("{}&target_session_attrs=read-write", self.any_url())
    }

    /// The URL of any server that runs.
    fn any_url(&self) -> String {
        let host =
            |postgres: &PostgresServer| postgres.directory().to_string_lossy().replace('/', "%2F");
        let (start, database) = self.url.rsplit_once('/').unwrap();
        let (user, _) = start.rsplit_once('@').unwrap();
        let hosts = format!("{},{}", host(&self.primary), host(&self.standby));
        format!("{user}@{hosts}/{database}?connect_timeout=5")
    }

    /// Commits `name` while the standby is stopped, then fails over, which loses the commit.
    async fn fail_over_without(&self, store: &Postgres, name: &str) {
        self.standby.stop_immediately().unwrap();
        store.commit(event(name)).await.unwrap();
        self.primary.kill().unwrap();
        self.standby.start_again().unwrap();
        self.standby.promote().unwrap();
    }
}

fn is_rewound(error: &Error) -> bool {
    matches!(error, Error::Rewound(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn store_continues_after_a_lossless_failover() {
    let pair = Pair::new().await;
    let store = open(&pair.writable_url()).await;
    store.commit(event("b")).await.unwrap();
    pair.standby.catch_up_with(&pair.primary).unwrap();
    pair.primary.kill().unwrap();
    pair.standby.promote().unwrap();
    let outcome = within_deadline("committing after the failover", store.commit(event("c"))).await;
    assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    assert_eq!(store.write_stop_reason(), None);
    assert_eq!(audit::names(&*store).await, ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_after_a_lossy_failover_is_refused() {
    let pair = Pair::new().await;
    let store = open(&pair.writable_url()).await;
    pair.fail_over_without(&store, "b").await;
    let refused = within_deadline("refusing", store.commit(event("c"))).await.unwrap_err();
    assert!(is_rewound(&refused), "{refused:?}");
    assert!(store.write_stop_reason().as_ref().is_some_and(is_rewound));
    let again = within_deadline("refusing", store.commit(event("d"))).await.unwrap_err();
    assert!(is_rewound(&again), "{again:?}");
    let fresh = open(&pair.writable_url()).await;
    assert_eq!(audit::names(&*fresh).await, ["a"], "a refused commit was written");
}

/// Even if a process that did not see the lost entries has made the ledger as long again, and even in a
/// read-only store.
#[tokio::test(flavor = "multi_thread")]
async fn idle_stores_notice_a_rewound_ledger() {
    let pair = Pair::new().await;
    let store = open(&pair.writable_url()).await;
    let reader = Postgres::open_read_only(&target(&pair.writable_url())).await.unwrap();
    assert_eq!(reader.wait_until_stopped().await, Error::ReadOnly);
    let reader = Arc::new(reader);
    pair.standby.stop_immediately().unwrap();
    store.commit(event("b")).await.unwrap();
    within_deadline("waking the reader", reader.wait_for_entries_after(1)).await;
    pair.primary.kill().unwrap();
    pair.standby.start_again().unwrap();
    pair.standby.promote().unwrap();
    let other = open(&pair.standby.url_of_same_database(&pair.url).unwrap()).await;
    other.commit(event("other b")).await.unwrap();
    other.commit(event("other c")).await.unwrap();
    let reason = within_deadline("stopping", store.wait_until_stopped()).await;
    assert!(is_rewound(&reason), "{reason:?}");
    within_deadline("stopping the reader", async {
        while !reader.write_stop_reason().as_ref().is_some_and(is_rewound) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A standby without the newest entry that was not promoted is behind, not rewound.
#[tokio::test(flavor = "multi_thread")]
async fn lagging_standby_is_not_rewound() {
    let pair = Pair::new().await;
    let store = open(&pair.any_url()).await;
    pair.standby.stop_immediately().unwrap();
    store.commit(event("b")).await.unwrap();
    pair.primary.stop_immediately().unwrap();
    pair.standby.start_again().unwrap();
    let refused = within_deadline("refusing", store.commit(event("c"))).await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable(_)), "{refused:?}");
    assert_eq!(store.write_stop_reason(), None);
    pair.standby.stop_immediately().unwrap();
    pair.primary.start_again().unwrap();
    let outcome = within_deadline("committing", store.commit(event("d"))).await;
    assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    assert_eq!(audit::names(&*store).await, ["a", "b", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_is_read_only() {
    let pair = Pair::new().await;
    let standby = target(&pair.standby.url_of_same_database(&pair.url).unwrap());
    assert_eq!(Postgres::open(&standby).await.unwrap_err(), Error::ReadOnly);
    let reader = Postgres::open_read_only(&standby).await.unwrap();
    assert_eq!(audit::names(&reader).await, ["a"]);
    assert_eq!(reader.commit(event("b")).await, Err(Error::ReadOnly));
    let writer = open(&pair.url).await;
    writer.commit(event("b")).await.unwrap();
    within_deadline("waking the standby's reader", reader.wait_for_entries_after(1)).await;
    assert_eq!(audit::names(&reader).await, ["a", "b"]);
    assert_eq!(reader.load_derived().await.unwrap().through, 2);
}

//! A standby takes over, with everything that was acknowledged or without some of it.

use std::sync::Arc;

use cluster::Cluster;
use store::{Error, Outcome, Store};
use store_postgres::Postgres;

use crate::audit;
use crate::places::{open, soon, target};
use crate::work::event;

/// A primary with one entry, and a standby that has it.
struct Pair {
    primary: Cluster,
    standby: Cluster,
    url: String,
}

impl Pair {
    async fn new() -> Pair {
        let primary = Cluster::start().unwrap();
        let url = primary.database().unwrap();
        let store = open(&url).await;
        store.commit(event("a")).await.unwrap();
        let standby = primary.standby().unwrap();
        standby.catch_up_with(&primary).unwrap();
        Pair { primary, standby, url }
    }

    /// Of whichever of the two accepts writes.
    fn either(&self) -> String {
        format!("{}&target_session_attrs=read-write", self.any())
    }

    fn any(&self) -> String {
        let host = |cluster: &Cluster| cluster.directory().to_string_lossy().replace('/', "%2F");
        let (start, database) = self.url.rsplit_once('/').unwrap();
        let (user, _) = start.rsplit_once('@').unwrap();
        let hosts = format!("{},{}", host(&self.primary), host(&self.standby));
        format!("{user}@{hosts}/{database}?connect_timeout=5")
    }

    /// Loses what is committed between.
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
async fn a_failover_that_lost_nothing_goes_on() {
    let pair = Pair::new().await;
    let store = open(&pair.either()).await;
    store.commit(event("b")).await.unwrap();
    pair.standby.catch_up_with(&pair.primary).unwrap();
    pair.primary.kill().unwrap();
    pair.standby.promote().unwrap();
    let outcome = soon("a commit after it", store.commit(event("c"))).await;
    assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    assert_eq!(store.stopped_writing(), None);
    assert_eq!(audit::names(&*store).await, ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_finds_that_the_log_was_rewound() {
    let pair = Pair::new().await;
    let store = open(&pair.either()).await;
    pair.fail_over_without(&store, "b").await;
    let refused = soon("a refusal", store.commit(event("c"))).await.unwrap_err();
    assert!(is_rewound(&refused), "{refused:?}");
    assert!(store.stopped_writing().as_ref().is_some_and(is_rewound));
    let again = soon("a refusal", store.commit(event("d"))).await.unwrap_err();
    assert!(is_rewound(&again), "{again:?}");
    let fresh = open(&pair.either()).await;
    assert_eq!(audit::names(&*fresh).await, ["a"], "nothing was written over it");
}

/// Also when the log has become as long again, by others who have not seen what was lost; and also in
/// a store that only reads.
#[tokio::test(flavor = "multi_thread")]
async fn who_only_waits_finds_that_the_log_was_rewound() {
    let pair = Pair::new().await;
    let store = open(&pair.either()).await;
    let reader = Postgres::open_read_only(&target(&pair.either())).await.unwrap();
    assert_eq!(reader.until_stopped().await, Error::ReadOnly);
    let reader = Arc::new(reader);
    pair.standby.stop_immediately().unwrap();
    store.commit(event("b")).await.unwrap();
    soon("that the reader sees it", reader.grown_past(1)).await;
    pair.primary.kill().unwrap();
    pair.standby.start_again().unwrap();
    pair.standby.promote().unwrap();
    let other = open(&pair.standby.here(&pair.url).unwrap()).await;
    other.commit(event("other b")).await.unwrap();
    other.commit(event("other c")).await.unwrap();
    let reason = soon("a stop", store.until_stopped()).await;
    assert!(is_rewound(&reason), "{reason:?}");
    soon("a stop of the reader", async {
        while !reader.stopped_writing().as_ref().is_some_and(is_rewound) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A standby that has not taken over, and lacks the newest entry, is behind and not rewound.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_is_behind_is_not_rewound() {
    let pair = Pair::new().await;
    let store = open(&pair.any()).await;
    pair.standby.stop_immediately().unwrap();
    store.commit(event("b")).await.unwrap();
    pair.primary.stop_immediately().unwrap();
    pair.standby.start_again().unwrap();
    let refused = soon("a refusal", store.commit(event("c"))).await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable(_)), "{refused:?}");
    assert_eq!(store.stopped_writing(), None);
    pair.standby.stop_immediately().unwrap();
    pair.primary.start_again().unwrap();
    let outcome = soon("a commit", store.commit(event("d"))).await;
    assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    assert_eq!(audit::names(&*store).await, ["a", "b", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_read_and_never_written() {
    let pair = Pair::new().await;
    let there = target(&pair.standby.here(&pair.url).unwrap());
    assert_eq!(Postgres::open(&there).await.unwrap_err(), Error::ReadOnly);
    let reader = Postgres::open_read_only(&there).await.unwrap();
    assert_eq!(audit::names(&reader).await, ["a"]);
    assert_eq!(reader.commit(event("b")).await, Err(Error::ReadOnly));
    let writer = open(&pair.url).await;
    writer.commit(event("b")).await.unwrap();
    soon("that the standby's reader wakes", reader.grown_past(1)).await;
    assert_eq!(audit::names(&reader).await, ["a", "b"]);
    assert_eq!(reader.derived().await.unwrap().through, 2);
}

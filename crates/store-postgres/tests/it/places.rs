//! Databases for tests: a server for all of them, and a new database for each.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use cluster::Cluster;
use store::Store;
use store::conformance::Place;
use store_postgres::{Postgres, Target};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// Everything that is waited for comes much sooner.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start().unwrap());

pub(crate) fn target(url: &str) -> Target {
    Target::new(url, None, None).unwrap()
}

pub(crate) async fn open(url: &str) -> Arc<Postgres> {
    Arc::new(Postgres::open(&target(url)).await.unwrap())
}

/// A connection of somebody else.
#[expect(clippy::disallowed_methods, reason = "it ends with the client that the test holds")]
pub(crate) async fn stranger(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::task::spawn(connection);
    client
}

/// The answer of what should not take long.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(DEADLINE, future).await;
    answer.unwrap_or_else(|_| panic!("{what} did not happen"))
}

#[expect(clippy::disallowed_methods, reason = "a test measures how long something takes")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A database of the shared server, empty at first.
pub(crate) struct Database {
    pub(crate) url: String,
}

impl Database {
    pub(crate) fn new() -> Database {
        Database { url: CLUSTER.database().unwrap() }
    }
}

impl Place for Database {
    fn open(&self) -> Arc<dyn Store> {
        block_in_place(|| Handle::current().block_on(open(&self.url)))
    }
}

/// Seeded chance: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

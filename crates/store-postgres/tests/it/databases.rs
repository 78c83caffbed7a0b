//! Databases for tests: one server, and a new database for each test.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use store::Store;
use store::conformance::StoreFixture;
use store_postgres::{Postgres, Target};
use test_postgres::PostgresServer;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// A generous limit for [`within_deadline`].
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) static SERVER: LazyLock<PostgresServer> =
    LazyLock::new(|| PostgresServer::start().unwrap());

pub(crate) fn target(url: &str) -> Target {
    Target::new(url, None, None).unwrap()
}

pub(crate) async fn open(url: &str) -> Arc<Postgres> {
    Arc::new(Postgres::open(&target(url)).await.unwrap())
}

/// A connection of another program.
#[expect(clippy::disallowed_methods, reason = "the task ends with the client that the test holds")]
pub(crate) async fn other_client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::task::spawn(connection);
    client
}

/// Panics if `what` takes too long.
pub(crate) async fn within_deadline<T>(what: &str, future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(DEADLINE, future).await;
    result.unwrap_or_else(|_| panic!("{what} took too long"))
}

#[expect(clippy::disallowed_methods, reason = "a test measures a duration")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A new, empty database on the shared server.
pub(crate) struct Database {
    pub(crate) url: String,
}

impl Database {
    pub(crate) fn new() -> Database {
        Database { url: SERVER.create_database().unwrap() }
    }
}

impl StoreFixture for Database {
    fn open(&self) -> Arc<dyn Store> {
        block_in_place(|| Handle::current().block_on(open(&self.url)))
    }
}

/// A seeded random number generator: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

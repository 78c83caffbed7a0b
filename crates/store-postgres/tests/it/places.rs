//! Databases for tests: a server for all of them, and a new database for each.

use std::sync::{Arc, LazyLock};

use cluster::Cluster;
use store::Store;
use store::conformance::Place;
use store_postgres::{Postgres, Target};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

pub(crate) static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start().unwrap());

pub(crate) fn target(url: &str) -> Target {
    Target::new(url, None, None).unwrap()
}

pub(crate) async fn open(url: &str) -> Arc<Postgres> {
    Arc::new(Postgres::open(&target(url)).await.unwrap())
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

//! A PostgreSQL of the campaign's own, for a daemon that keeps its data there.

use anyhow::{Context, Result};
use cluster::Cluster;
use store_postgres::{Postgres, Target};
use tokio::time::{Duration, sleep, timeout};

use super::daemon::PATIENCE;

/// Before another look whether everybody has gone.
const PAUSE: Duration = Duration::from_millis(10);
const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[derive(Debug)]
pub(super) struct Database {
    cluster: Cluster,
    pub(super) url: String,
}

impl Database {
    pub(super) fn start() -> Result<Database> {
        let cluster = Cluster::start()?;
        let url = cluster.database()?;
        Ok(Database { cluster, url })
    }

    /// The store of a daemon that is dead. The server ends what it was told to do before it finds out, so
    /// nothing is looked at before that.
    pub(super) async fn open(&self) -> Result<Postgres> {
        let gone = async {
            while self.cluster.query(&self.url, OTHERS)?.trim() != "0" {
                sleep(PAUSE).await;
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, gone).await.context("somebody stays connected to the database")??;
        Ok(Postgres::open_read_only(&Target::new(&self.url, None, None)?).await?)
    }
}

//! A PostgreSQL server of the campaign, for a daemon that stores its data there.

use anyhow::{Context, Result};
use store_postgres::{Postgres, Target};
use test_postgres::PostgresServer;
use tokio::time::{Duration, sleep, timeout};

use super::daemon::TIMEOUT;

/// Between two checks of the connections.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[derive(Debug)]
pub(super) struct Database {
    postgres: PostgresServer,
    pub(super) url: String,
}

impl Database {
    pub(super) fn start() -> Result<Database> {
        let postgres = PostgresServer::start()?;
        let url = postgres.create_database()?;
        Ok(Database { postgres, url })
    }

    /// Opens the store of a killed daemon. The server still executes the daemon's last statements, so this waits until all
    /// of its connections are closed.
    pub(super) async fn open(&self) -> Result<Postgres> {
        let all_closed = async {
            while self.postgres.query(&self.url, OTHERS)?.trim() != "0" {
                sleep(POLL_INTERVAL).await;
            }
            anyhow::Ok(())
        };
        timeout(TIMEOUT, all_closed).await.context("a connection to the database stays open")??;
        Ok(Postgres::open_read_only(&Target::new(&self.url, None, None)?).await?)
    }
}

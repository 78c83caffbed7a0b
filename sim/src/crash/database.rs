//! A PostgreSQL server of the campaign, for a daemon that stores its data there.

use std::sync::Arc;

use anyhow::{Context, Result};
use store_postgres::{Postgres, Target};
use test_postgres::{Options, PostgresServer};
use tokio::task::spawn_blocking;

/// Returns when no other connection to the database is left. One client waits, instead of one per look.
const WAIT_FOR_OTHERS: &str = "SET statement_timeout = '60s';
    DO $$ BEGIN
        WHILE EXISTS (SELECT FROM pg_stat_activity
                      WHERE datname = current_database() AND pid <> pg_backend_pid()) LOOP
            PERFORM pg_sleep(0.01);
            PERFORM pg_stat_clear_snapshot();
        END LOOP;
    END $$";

#[derive(Debug)]
pub(super) struct Database {
    postgres: Arc<PostgresServer>,
    pub(super) url: String,
}

impl Database {
    pub(super) fn start() -> Result<Database> {
        let postgres = PostgresServer::start_with(Options::default().durable())?;
        let url = postgres.create_database()?;
        Ok(Database { postgres: Arc::new(postgres), url })
    }

    /// Opens the store of a killed daemon. The server still executes the daemon's last statements, so this waits until all
    /// of its connections are closed.
    pub(super) async fn open(&self) -> Result<Postgres> {
        let (postgres, url) = (Arc::clone(&self.postgres), self.url.clone());
        // The runtime must not block: it also closes connections of this process.
        let all_closed = spawn_blocking(move || postgres.query(&url, WAIT_FOR_OTHERS)).await?;
        all_closed.context("a connection to the database stays open")?;
        Ok(Postgres::open_read_only(&Target::new(&self.url, None, None)?).await?)
    }
}

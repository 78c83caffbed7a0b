//! A standby: a second server that replicates the primary and can be promoted.
//!
//! Replication is asynchronous, so the standby may lack commits that the primary acknowledged. To
//! lose commits for certain, stop the standby, commit on the primary, kill the primary, start the
//! standby again and promote it.

use anyhow::{Context, Result};

use crate::supervisor::shell_quoted;
use crate::{PostgresServer, USER};

impl PostgresServer {
    /// Starts a standby with the same options that replicates this server over its Unix socket.
    pub fn standby(&self) -> Result<PostgresServer> {
        let standby = PostgresServer::prepare(self.binaries.clone(), self.options.clone())?;
        standby.supervisor.run(&format!(
            "{} --pgdata={} --host={} --port={} --username={USER} --checkpoint=fast \
             --wal-method=stream --write-recovery-conf --no-sync",
            shell_quoted(self.binaries.path("pg_basebackup")),
            shell_quoted(standby.data_directory()),
            shell_quoted(self.directory()),
            self.port(),
        ))?;
        standby.start_again()?;
        Ok(standby)
    }

    /// Waits until this standby has replayed everything that `primary` has committed so far.
    pub fn catch_up_with(&self, primary: &PostgresServer) -> Result<()> {
        let committed = primary.query(&primary.url("postgres"), "SELECT pg_current_wal_lsn()")?;
        let sql = format!(
            "SET statement_timeout = '60s';
             DO $$ BEGIN
                 WHILE pg_last_wal_replay_lsn() < '{}' LOOP PERFORM pg_sleep(0.01); END LOOP;
             END $$",
            committed.trim()
        );
        let caught_up = self.query(&self.url("postgres"), &sql);
        caught_up.with_context(|| {
            format!("the standby does not catch up; its log:\n{}", self.log_tail())
        })?;
        Ok(())
    }

    /// Promotes this standby so that it accepts writes. The primary does not learn of it.
    pub fn promote(&self) -> Result<()> {
        self.supervisor.run(&format!(
            "{} promote --wait --pgdata={}",
            shell_quoted(self.binaries.path("pg_ctl")),
            shell_quoted(self.data_directory())
        ))
    }
}

//! A second server that follows the first, and takes over when it is told to.
//!
//! Replication is asynchronous: what the first has acknowledged may be missing on the second. To
//! lose commits for certain, stop the standby, commit on the first, kill the first, start the
//! standby again and promote it.

use anyhow::{Result, ensure};

use crate::supervisor::quoted;
use crate::{Cluster, USER, process};

impl Cluster {
    /// A copy of this server, with the same options, that follows it over its socket.
    pub fn standby(&self) -> Result<Cluster> {
        let standby = Cluster::prepare(self.binaries.clone(), self.options.clone())?;
        standby.supervisor.run(&format!(
            "{} --pgdata={} --host={} --port={} --username={USER} --checkpoint=fast \
             --wal-method=stream --write-recovery-conf --no-sync",
            quoted(self.binaries.path("pg_basebackup")),
            quoted(standby.data()),
            quoted(self.directory()),
            self.port(),
        ))?;
        standby.start_again()?;
        Ok(standby)
    }

    /// Waits until this standby shows what `primary` has committed by now.
    pub fn catch_up_with(&self, primary: &Cluster) -> Result<()> {
        let wanted = primary.query(&primary.url("postgres"), "SELECT pg_current_wal_lsn()")?;
        let sql = format!("SELECT '{}' <= pg_last_wal_replay_lsn()", wanted.trim());
        let caught_up =
            || self.query(&self.url("postgres"), &sql).is_ok_and(|answer| answer == "t\n");
        ensure!(process::comes_true(caught_up), "the standby stays behind:\n{}", self.log());
        Ok(())
    }

    /// Makes a standby a server that accepts writes. The other server is not told.
    pub fn promote(&self) -> Result<()> {
        self.supervisor.run(&format!(
            "{} promote --wait --pgdata={}",
            quoted(self.binaries.path("pg_ctl")),
            quoted(self.data())
        ))
    }
}

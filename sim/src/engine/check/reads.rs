//! Reads change nothing, and previews are correct: S14 and S15.

use anyhow::{Context, Result, ensure};
use api::{AgentList, Handle, LedgerTail, RunList, RunShow, ScheduleBackfill, ScheduleList};
use api::{ScheduleShow, StatusShow, Why, send};
use futures::future::FutureExt;

use super::Audit;
use super::acknowledgements::instants;

/// Runs that are shown one by one.
const RUNS_MAX: u32 = 20;

impl Audit {
    /// Sends every read request. The store must answer without delay, so that nothing else can happen.
    pub(in crate::engine) fn check_reads(&self, handle: &dyn Handle, now_us: i64) -> Result<()> {
        let before = self.view.derived();
        self.read_all(handle, now_us)
            .now_or_never()
            .context("S15: a read waits for something")??;
        let after = self.view.derived();
        ensure!(before == after, "S15: a read changed the tables or the ledger");
        Ok(())
    }

    async fn read_all(&self, handle: &dyn Handle, now_us: i64) -> Result<()> {
        send(handle, StatusShow {}).await?;
        send(handle, AgentList::default()).await?;
        send(handle, LedgerTail { limit: Some(10), ..LedgerTail::default() }).await?;
        send(handle, ScheduleList::default()).await?;
        let runs = RunList { limit: Some(RUNS_MAX), ..RunList::default() };
        for run in send(handle, runs).await?.runs {
            send(handle, RunShow { id: run.id }).await?;
        }
        for (id, track) in self.schedules.iter().filter(|(_, track)| !track.is_removed) {
            let shown = send(handle, ScheduleShow { id: id.to_string() }).await?;
            if let Some(expected) = track.upcoming(now_us) {
                let next = instants(&shown.next)?;
                ensure!(next == expected, "S14: {id} shows {next:?} instead of {expected:?}");
            }
            send(handle, Why { id: id.to_string(), at: None }).await?;
            // Refused if the range has no slot to run.
            let (from, to) = ("1990-01-01T00:00:00Z".to_owned(), "2190-01-01T00:00:00Z".to_owned());
            let id = id.to_string();
            let dry = ScheduleBackfill { id, from, to, dry_run: true, ..Default::default() };
            let _ = send(handle, dry).await;
        }
        Ok(())
    }
}

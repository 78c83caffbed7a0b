//! Reading changes nothing, and what is shown of the time to come is what comes: S14 and S15.

use anyhow::{Context, Result, ensure};
use api::{AgentList, Handle, LedgerTail, RunList, RunShow, ScheduleBackfill, ScheduleList};
use api::{ScheduleShow, StatusAsk, Why, ask};
use futures::future::FutureExt;

use super::Audit;
use super::promises::instants;

/// Runs that are looked at one by one.
const RUNS_MAX: u32 = 20;

impl Audit {
    /// Asks for everything that can be asked for. The store answers at once meanwhile, so nothing
    /// else can happen.
    pub(in crate::watch) fn check_reads(&self, handle: &dyn Handle, now_us: i64) -> Result<()> {
        let before = self.peek.derived();
        self.read_all(handle, now_us)
            .now_or_never()
            .context("S15: a read waits for something")??;
        let after = self.peek.derived();
        ensure!(before == after, "S15: reading has changed the tables or the log");
        Ok(())
    }

    async fn read_all(&self, handle: &dyn Handle, now_us: i64) -> Result<()> {
        ask(handle, StatusAsk {}).await?;
        ask(handle, AgentList::default()).await?;
        ask(handle, LedgerTail { after: None, limit: Some(10), wait_ms: 0 }).await?;
        ask(handle, ScheduleList::default()).await?;
        let runs = RunList { limit: Some(RUNS_MAX), ..RunList::default() };
        for run in ask(handle, runs).await?.runs {
            ask(handle, RunShow { id: run.id }).await?;
        }
        for (id, track) in self.schedules.iter().filter(|(_, track)| !track.is_removed) {
            let shown = ask(handle, ScheduleShow { id: id.to_string() }).await?;
            if let Some(expected) = track.upcoming(now_us) {
                let next = instants(&shown.next)?;
                ensure!(next == expected, "S14: {id} shows {next:?}, and {expected:?} come");
            }
            ask(handle, Why { id: id.to_string(), at: None }).await?;
            // Mostly there is nothing to run, and it says so.
            let (from, to) = ("1990-01-01T00:00:00Z".to_owned(), "2190-01-01T00:00:00Z".to_owned());
            let id = id.to_string();
            let dry = ScheduleBackfill { id, from, to, dry_run: true, ..Default::default() };
            let _ = ask(handle, dry).await;
        }
        Ok(())
    }
}

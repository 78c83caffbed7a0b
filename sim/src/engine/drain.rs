//! The end of a simulation: faults stop, the operators clean up, and every run must end.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{
    ApiRequest, ProgressSink, Request, RunCancel, SchedulePause, ScheduleRemove, ScheduleResume,
    Thaw,
};
use ledger::verify::{Anchors, Verdict};
use tokio::time::{sleep, timeout};

use super::fault_rates::FaultRates;
use super::simulation::Simulation;

/// Longer than all attempts of a run with their delays, and than the time limit of an attempt that hangs.
const RUN_MAX: Duration = Duration::from_secs(3 * 3_600);
/// Longer than the engine takes to stop.
const STOP_MAX: Duration = Duration::from_secs(60);
/// The time in which buffered slots run and due schedules are decided.
const DECIDE_MAX: Duration = Duration::from_secs(300);
/// Rounds of cancelling parked runs: each lets waiting runs request their approval.
const APPROVAL_ROUNDS_MAX: usize = 40;
/// The time in which a store without faults answers a call.
const ANSWER_MAX: Duration = Duration::from_secs(20);

impl Simulation {
    pub(super) async fn drain(&mut self) -> Result<()> {
        self.store.set_fault_rates(FaultRates::default());
        self.backend.finish_quickly();
        self.kill_stale_process().await;
        if self.is_clock_untrusted() {
            self.correct_clock();
        }
        if self.process.as_mut().is_none_or(|process| process.has_ended()) {
            self.start().await?;
        }
        // A cancelled run ends, even if its attempt hangs.
        for id in self.audit.running() {
            self.send(RunCancel { id, note: None }.into_request());
        }
        self.advance_and_check(ANSWER_MAX).await?;
        self.send(Thaw::default().into_request());
        self.advance_and_check(ANSWER_MAX).await?;
        // Schedules that were paused or waited for a run go on.
        let schedules = self.audit.visible_state(0).schedules;
        self.send_each(&schedules, |id| ScheduleResume { id }.into_request());
        self.advance_and_check(DECIDE_MAX).await?;
        let (now_us, overdue) = (self.clock.now_us(), self.audit.overdue(self.clock.now_us()));
        ensure!(overdue.is_empty(), "{overdue:?} are overdue at {now_us}");
        self.send_each(&schedules, |id| SchedulePause { id, note: None }.into_request());
        self.advance_and_check(RUN_MAX).await?;
        // No operator decides any more, and a cancelled run lets the next one request its approval.
        for _ in 0..APPROVAL_ROUNDS_MAX {
            for id in self.audit.parked() {
                self.send(RunCancel { id, note: None }.into_request());
            }
            self.advance_and_check(ANSWER_MAX).await?;
        }
        self.check_no_live_run()?;
        // A schedule can be removed only after the schedules that depend on it.
        for _ in 0..schedules.len() {
            let left = self.audit.visible_state(0).schedules;
            self.send_each(&left, |id| ScheduleRemove { id }.into_request());
            self.advance_and_check(ANSWER_MAX).await?;
        }
        self.audit.check_all_final()?;
        self.stop_with_maintenance().await?;
        self.audit.check_tables()?;
        self.audit.count_into(&mut self.summary);
        self.summary.simulated_hours = u64::try_from(self.clock.elapsed_us() / 3_600_000_000)?;
        let no_progress = ProgressSink::default();
        let report = runtime::verify(&*self.store, Anchors::default(), &no_progress).await?;
        ensure!(report.verdict == Verdict::Ok, "S8: the ledger does not verify: {report:?}");
        Ok(())
    }

    /// Stops the engine after it wrote checkpoints and exports.
    async fn stop_with_maintenance(&mut self) -> Result<()> {
        self.store.allow_maintenance();
        let mut process = self.process.take().context("no process is running")?;
        sleep(Duration::from_secs(120)).await;
        process.request_stop();
        let result = timeout(STOP_MAX, process.wait()).await.context("the engine does not stop")?;
        result.context("the engine panicked")??;
        self.check()
    }

    fn send_each(&mut self, ids: &[String], request: impl Fn(String) -> Request) {
        ids.iter().for_each(|id| self.send(request(id.clone())));
    }

    async fn advance_and_check(&mut self, span: Duration) -> Result<()> {
        sleep(span).await;
        self.check()
    }

    fn check_no_live_run(&self) -> Result<()> {
        let live = self.audit.visible_state(0).live;
        let now_us = self.clock.now_us();
        let found = live.iter().map(|id| format!("{id} {:?}", self.audit.run_state(id)));
        let found: Vec<String> = found.collect();
        ensure!(found.is_empty(), "these runs never end, at {now_us}: {found:?}");
        Ok(())
    }
}

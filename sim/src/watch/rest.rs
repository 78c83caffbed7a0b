//! The end of a life: faults stop, people clear up, and everything must come to rest.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{
    Ask, ProgressSink, Request, RunCancel, SchedulePause, ScheduleRemove, ScheduleResume, Thaw,
};
use ledger::verify::{Anchors, Verdict};
use tokio::time::{sleep, timeout};

use super::life::Life;
use super::mood::Mood;
use super::people::NAME;

/// Longer than all tries of a run with their delays, and than the time limit of one that hangs.
const WORK_MAX: Duration = Duration::from_secs(3 * 3_600);
/// Longer than the watch takes to stop.
const STOP_MAX: Duration = Duration::from_secs(60);
/// In which the slots that wait have their turn, and whatever is due is decided.
const GO_ON: Duration = Duration::from_secs(300);
/// Questions that wait behind one another.
const QUESTIONS_MAX: usize = 40;
/// In which a call is answered by a store without faults.
const ANSWER_MAX: Duration = Duration::from_secs(20);

impl Life {
    pub(super) async fn rest(&mut self) -> Result<()> {
        self.store.set_mood(Mood::default());
        self.hands.be_good();
        self.lay_ghost().await;
        if self.process.as_mut().is_none_or(|process| process.has_ended()) {
            self.start().await?;
        }
        // What is cancelled ends, also what hangs.
        for id in self.audit.running() {
            self.ask(RunCancel { id, note: None }.into_request());
        }
        self.settle(ANSWER_MAX).await?;
        self.ask(Thaw::default().into_request());
        self.settle(ANSWER_MAX).await?;
        // What waits for a run to end goes on.
        let schedules = self.audit.known(0).schedules;
        self.all(&schedules, |id| ScheduleResume { id }.into_request());
        self.settle(GO_ON).await?;
        let (now_us, overdue) = (self.clock.now_us(), self.audit.overdue(self.clock.now_us()));
        ensure!(overdue.is_empty(), "{overdue:?} are due at {now_us}, and nobody decides");
        self.all(&schedules, |id| SchedulePause { id, note: None }.into_request());
        self.settle(WORK_MAX).await?;
        // Nobody answers any more; and what waited behind one may be asked about next.
        for _ in 0..QUESTIONS_MAX {
            for id in self.audit.parked() {
                self.ask(RunCancel { id, note: None }.into_request());
            }
            self.settle(ANSWER_MAX).await?;
        }
        self.check_nothing_is_live()?;
        // Those that follow others go first.
        for _ in 0..schedules.len() {
            let left = self.audit.known(0).schedules;
            self.all(&left, |id| ScheduleRemove { id }.into_request());
            self.settle(ANSWER_MAX).await?;
        }
        self.audit.check_all_final()?;
        self.stop_for_good().await?;
        self.audit.check_tables()?;
        self.audit.count(&mut self.summary);
        self.summary.simulated_hours = u64::try_from(self.clock.passed_us() / 3_600_000_000)?;
        let nobody = ProgressSink::default();
        let report = runtime::verify(&*self.store, Anchors::default(), &nobody).await?;
        ensure!(report.verdict == Verdict::Ok, "S8: the log does not verify: {report:?}");
        Ok(())
    }

    /// With checkpoint and export, which threads do.
    async fn stop_for_good(&mut self) -> Result<()> {
        self.store.let_upkeep();
        let mut process = self.process.take().context("there is no watch")?;
        sleep(Duration::from_secs(120)).await;
        process.tell_to_stop();
        let ended = timeout(STOP_MAX, process.ended()).await.context("the watch does not stop")?;
        ended.context("the watch went to pieces")??;
        self.check()
    }

    fn all(&mut self, ids: &[String], request: impl Fn(String) -> Request) {
        ids.iter().for_each(|id| self.ask(request(id.clone())));
    }

    async fn settle(&mut self, span: Duration) -> Result<()> {
        sleep(span).await;
        self.check()
    }

    fn check_nothing_is_live(&self) -> Result<()> {
        let live = self.audit.known(0).live;
        let now_us = self.clock.now_us();
        let found = live.iter().map(|id| format!("{id} {:?}", self.audit.stand(id)));
        let found: Vec<String> = found.collect();
        ensure!(found.is_empty(), "{NAME} waits for ever, at {now_us}, for {found:?}");
        Ok(())
    }
}

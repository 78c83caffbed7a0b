//! A stop while the store fails: it is in effect at once and in the next process, and is recorded later, once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{ApiRequest, Freeze, RunCancel};
use kernel::RunId;
use runtime::{StopMarkers, StopTarget};
use tokio::time::sleep;

use super::fault_rates::FaultRates;
use super::operators::{self, AUTHOR, SentCall};
use super::process::Process;
use super::simulation::Simulation;

/// How long the store fails, at most.
const OUTAGE_MS_MAX: u64 = 20_000;
/// Seconds in which a store without faults has the stop: longer than an attempt that ignores its stop.
const RECORD_S_MAX: u64 = 200;

impl Simulation {
    /// The store makes no commit, and an operator freezes the installation or cancels a run all the same.
    pub(super) async fn stop_without_store(&mut self) -> Result<String> {
        self.store.set_fault_rates(FaultRates { refused: 100, ..FaultRates::default() });
        self.audit.read_new_entries(&self.backend.attempts())?;
        // Another process learns of a stop from the ledger only.
        let is_alone = self.stale_process.is_none() && !self.audit.is_frozen();
        let Some(process) = self.process.as_ref().filter(|_| is_alone) else {
            return self.advance(1_000).await;
        };
        let (number, handle) = (process.number, process.engine.handle(operators::actor(AUTHOR)));
        let run = self.running_in(number).filter(|_| self.dice.is_one_in(2));
        let request = match &run {
            Some(id) => RunCancel { id: id.to_string(), note: None }.into_request(),
            None => Freeze::default().into_request(),
        };
        let key = format!("stop{}", self.step);
        let sent = operators::send(handle, (key, false), (AUTHOR, request)).await;
        if run.is_some() && sent.result.is_err() {
            return Ok("the run has just ended".to_owned());
        }
        self.check_in_effect(number, &sent, run.as_ref())?;
        self.summary.unrecorded_stops += 1;
        let crashes = self.dice.is_one_in(2);
        if crashes && let Some(process) = self.process.take() {
            process.die().await;
            self.calls.shutdown().await;
            self.start().await?;
        }
        self.advance(OUTAGE_MS_MAX).await?;
        // The answers to some commits are lost, so the stop may be recorded again.
        self.store.set_fault_rates(FaultRates { in_doubt: 50, ..FaultRates::default() });
        self.advance(OUTAGE_MS_MAX).await?;
        self.store.set_fault_rates(FaultRates::default());
        self.wait_until_recorded(run.as_ref()).await?;
        let what = if run.is_some() { "cancel" } else { "freeze" };
        let then = if crashes { ", then a crash" } else { "" };
        Ok(format!("a {what} without a store{then}"))
    }

    /// A run whose attempt is running in this process.
    fn running_in(&self, process: u64) -> Option<RunId> {
        let attempts = self.backend.attempts();
        let mut own = attempts.iter().filter(|(_, attempt)| attempt.process == process);
        let running = own.find(|(_, it)| !it.is_over && !it.stop.is_cancelled());
        running.and_then(|((run, _), _)| run.parse().ok())
    }

    fn check_in_effect(
        &mut self,
        process: u64,
        sent: &SentCall,
        run: Option<&RunId>,
    ) -> Result<()> {
        let SentCall { request, result, .. } = sent;
        ensure!(sent.is_unrecorded_stop(), "I11: {request:?} is answered with {result:?}");
        for ((id, epoch), attempt) in self.backend.attempts().iter() {
            let is_own = attempt.process == process && run.is_none_or(|run| run.as_str() == id);
            let is_stopped = attempt.is_over || attempt.stop.is_cancelled();
            ensure!(!is_own || is_stopped, "I11: attempt {epoch} of {id} goes on after a stop");
        }
        ensure!(self.has_marker(run), "I11: a stop that is not recorded has no marker");
        let elapsed = u128::try_from(self.clock.elapsed_us())?;
        match run {
            Some(run) => self.audit.record_unrecorded_cancel(run, elapsed),
            None => self.audit.record_unrecorded_freeze(),
        }
        Ok(())
    }

    fn has_marker(&self, run: Option<&RunId>) -> bool {
        let target = run.map_or(StopTarget::Installation, StopTarget::Run);
        StopMarkers::new(self.data.path()).find(target).is_some()
    }

    /// The ledger gets the stop, and the marker is removed.
    async fn wait_until_recorded(&mut self, run: Option<&RunId>) -> Result<()> {
        for _ in 0..RECORD_S_MAX {
            if self.process.as_mut().is_none_or(Process::has_ended) {
                self.start().await?;
            }
            sleep(Duration::from_secs(1)).await;
            self.audit.read_new_entries(&self.backend.attempts())?;
            if self.audit.has_stop(run) && !self.has_marker(run) {
                return Ok(());
            }
        }
        let (has_stop, has_marker) = (self.audit.has_stop(run), self.has_marker(run));
        let what = format!("in the ledger: {has_stop}, marker: {has_marker}");
        Err(anyhow::anyhow!(what)).context("I11: a stop is not recorded although the store works")
    }
}

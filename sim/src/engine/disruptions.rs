//! Disruptions: the clock is set; a process crashes, is stopped, or another takes over while it runs.

use std::time::Duration;

use anyhow::Result;
use tokio::select;
use tokio::time::sleep;

use super::simulation::Simulation;

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;
/// A clock that is so far ahead is not trusted: nothing starts until it is set.
const UNTRUSTED_US: i64 = 30 * DAY_US;
/// A process runs for at most this many steps after another took over.
const STALE_PROCESS_STEPS_MAX: u64 = 6;
/// How long a takeover waits for a running attempt.
const TAKEOVER_WAIT_S: u64 = 120;

impl Simulation {
    pub(super) fn jump(&mut self) -> String {
        let is_corrected = self.clock_error_us != 0 && self.dice.is_one_in(2);
        let by = match self.dice.below(16) {
            _ if is_corrected => -self.clock_error_us,
            0..4 => HOUR_US,
            4..8 => -HOUR_US,
            8..10 => DAY_US,
            10..12 => -DAY_US,
            12 => 365 * DAY_US,
            13 => -3_650 * DAY_US,
            _ => self.dice.below(120) as i64 * 1_000_000,
        };
        self.clock_error_us += by;
        self.clock.jump(by);
        self.summary.jumps += 1;
        format!("the clock jumps by {} s", by / 1_000_000)
    }

    /// Whether the clock is so far ahead that the engine does not go by it.
    pub(super) fn is_clock_untrusted(&self) -> bool {
        UNTRUSTED_US <= self.clock_error_us
    }

    pub(super) fn correct_clock(&mut self) {
        self.clock.jump(-std::mem::take(&mut self.clock_error_us));
    }

    /// The process dies in the middle of a commit, or after a random time.
    pub(super) async fn crash(&mut self) -> Result<String> {
        let steps = self.dice.below(24) as i64;
        self.store.crash_in_commit(steps);
        self.send_random_call();
        let patience = Duration::from_millis(self.dice.below(30_000));
        let is_in_commit = select! {
            biased;
            () = self.store.crash_due() => true,
            () = sleep(patience) => false,
        };
        self.store.crash_in_commit(-1);
        if let Some(process) = self.process.take() {
            process.die().await;
        }
        // The callers lose their connections.
        self.calls.shutdown().await;
        self.summary.crashes += 1;
        let moment = if is_in_commit { "in a commit" } else { "outside a commit" };
        let is_long = self.dice.is_one_in(4);
        let down = self.dice.below(if is_long { 400_000 } else { 200 });
        sleep(Duration::from_millis(down)).await;
        Ok(format!("a crash {moment}, then {down} ms without a process"))
    }

    pub(super) async fn stop(&mut self) -> Result<String> {
        let Some(mut process) = self.process.take() else {
            return Ok("nothing to stop".to_owned());
        };
        process.request_stop();
        let _ = process.wait().await;
        self.calls.shutdown().await;
        self.summary.stops += 1;
        Ok("an orderly stop".to_owned())
    }

    /// Another process takes over while the first still runs, like one that was suspended and continued.
    pub(super) async fn take_over(&mut self) -> Result<String> {
        if self.stale_process.is_some() || !self.store.is_shared {
            return self.crash().await;
        }
        // Prefer a moment at which a repeatable attempt is running.
        for _ in 0..TAKEOVER_WAIT_S {
            let now_us = u128::try_from(self.clock.elapsed_us()).unwrap_or_default();
            self.audit.read_new_entries(&self.backend.attempts())?;
            if self.audit.has_running_repeatable(&self.backend.attempts(), now_us) {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        let until = self.step + 1 + self.dice.below(STALE_PROCESS_STEPS_MAX);
        self.stale_process = self.process.take().map(|process| (process, until));
        self.calls.shutdown().await;
        self.summary.takeovers += 1;
        self.start().await?;
        // Attempts of the first process end while the second one recovers their runs.
        self.advance(90_000).await?;
        Ok("a takeover".to_owned())
    }

    /// Kills both processes after a takeover: the next start recovers the runs of the stale one. A real process would have
    /// kept its directory locked.
    pub(super) async fn kill_stale_process(&mut self) {
        if let Some((process, _)) = self.stale_process.take() {
            process.die().await;
        }
        if 0 < self.summary.takeovers
            && let Some(process) = self.process.take()
        {
            process.die().await;
            self.calls.shutdown().await;
        }
    }
}

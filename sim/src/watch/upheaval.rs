//! What befalls a life: the clock is set, processes die, are stopped, or are overtaken.

use std::time::Duration;

use anyhow::Result;
use tokio::select;
use tokio::time::sleep;

use super::life::Life;

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;
/// A process that was overtaken goes on for so many steps.
const GHOST_STEPS_MAX: u64 = 6;
/// How long something to take over is waited for.
const PATIENCE_S: u64 = 120;

impl Life {
    pub(super) fn jump(&mut self) -> String {
        let is_mended = self.wrong_us != 0 && self.dice.is_one_in(2);
        let by = match self.dice.below(16) {
            _ if is_mended => -self.wrong_us,
            0..4 => HOUR_US,
            4..8 => -HOUR_US,
            8..10 => DAY_US,
            10..12 => -DAY_US,
            12 => 365 * DAY_US,
            13 => -3_650 * DAY_US,
            _ => self.dice.below(120) as i64 * 1_000_000,
        };
        self.wrong_us += by;
        self.clock.jump(by);
        self.summary.jumps += 1;
        format!("the clock jumps by {} s", by / 1_000_000)
    }

    /// The process dies in the middle of a commit, or wherever it is after a while.
    pub(super) async fn crash(&mut self) -> Result<String> {
        let commits = self.dice.below(24) as i64;
        self.store.light_fuse(commits);
        self.think();
        let patience = Duration::from_millis(self.dice.below(30_000));
        let is_burnt = select! {
            biased;
            () = self.store.burnt() => true,
            () = sleep(patience) => false,
        };
        self.store.light_fuse(-1);
        if let Some(process) = self.process.take() {
            process.die().await;
        }
        // Whoever asked has lost the connection.
        self.calls.shutdown().await;
        self.summary.crashes += 1;
        let place = if is_burnt { "in a commit" } else { "somewhere" };
        let is_long = self.dice.is_one_in(4);
        let down = self.dice.below(if is_long { 400_000 } else { 200 });
        sleep(Duration::from_millis(down)).await;
        Ok(format!("a crash {place}, then {down} ms without a watch"))
    }

    pub(super) async fn stop(&mut self) -> Result<String> {
        let Some(mut process) = self.process.take() else {
            return Ok("nothing to stop".to_owned());
        };
        process.tell_to_stop();
        let _ = process.ended().await;
        self.calls.shutdown().await;
        self.summary.stops += 1;
        Ok("the watch was told to stop".to_owned())
    }

    /// Another process takes over while the first goes on, as one that was stopped and continued.
    pub(super) async fn overtake(&mut self) -> Result<String> {
        if self.ghost.is_some() || !self.store.is_shared {
            return self.crash().await;
        }
        // Best in the middle of something that is begun again.
        for _ in 0..PATIENCE_S {
            let now_us = u128::try_from(self.clock.passed_us()).unwrap_or_default();
            self.audit.follow(&self.hands.tries())?;
            if self.audit.is_repeatable_at_work(&self.hands.tries(), now_us) {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        let until = self.step + 1 + self.dice.below(GHOST_STEPS_MAX);
        self.ghost = self.process.take().map(|process| (process, until));
        self.calls.shutdown().await;
        self.summary.overtaken += 1;
        self.start().await?;
        // What the first had begun comes to its end beside what the second makes of it.
        self.pass(90_000).await?;
        Ok("another process takes over".to_owned())
    }

    /// What a ghost had begun is found at the next start, so there is one. A real one would have kept
    /// its directory locked.
    pub(super) async fn lay_ghost(&mut self) {
        if let Some((ghost, _)) = self.ghost.take() {
            ghost.die().await;
        }
        if 0 < self.summary.overtaken
            && let Some(process) = self.process.take()
        {
            process.die().await;
            self.calls.shutdown().await;
        }
    }
}

//! The faults and delays of the simulated store.
//!
//! Every call takes virtual time, so that a crash can fall between any two calls, and between a commit and its answer.
//! Maintenance that runs on threads (checkpoints, exports, the check after a start) is blocked at its first read until
//! [`FaultyStore::allow_maintenance`]: the time at which a thread ends depends on the machine, and the history must not.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::pending;
use store::{Commit, Error, Memory, Store};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::fault_rates::FaultRates;
use super::keyed_dice;
use crate::dice::Dice;

const SLOW_MS_MAX: u64 = 12_000;
/// A commit whose caller is gone is applied within this time.
pub(super) const ABANDONED_COMMIT_MS_MAX: u64 = 3_000;

#[derive(Debug)]
pub(super) struct FaultyStore {
    pub(super) memory: Arc<Memory>,
    /// Whether several processes may write.
    pub(super) is_shared: bool,
    seed: u64,
    started: Instant,
    fault_rates: Mutex<FaultRates>,
    /// While set, no call fails or takes time.
    is_instant: AtomicBool,
    maintenance: watch::Sender<bool>,
    /// Steps until the process crashes, two for each commit: before and after it is made. Negative: never.
    steps_to_crash: AtomicI64,
    crash_due: Notify,
    /// Whether a commit is made although its caller is gone, like one that a writer thread already has.
    applies_abandoned: AtomicBool,
    abandoned_commits: Mutex<JoinSet<()>>,
    /// Cloned by each commit that is made and not yet answered.
    pub(super) unacknowledged: Arc<()>,
}

impl FaultyStore {
    pub(super) fn new(memory: Arc<Memory>, seed: u64, is_shared: bool) -> FaultyStore {
        FaultyStore {
            memory,
            is_shared,
            seed,
            started: Instant::now(),
            fault_rates: Mutex::default(),
            is_instant: AtomicBool::new(true),
            maintenance: watch::Sender::new(false),
            steps_to_crash: AtomicI64::new(-1),
            crash_due: Notify::new(),
            applies_abandoned: AtomicBool::new(false),
            abandoned_commits: Mutex::default(),
            unacknowledged: Arc::default(),
        }
    }

    pub(super) fn set_fault_rates(&self, fault_rates: FaultRates) {
        *self.fault_rates.lock().unwrap_or_else(PoisonError::into_inner) = fault_rates;
    }

    pub(super) fn set_instant(&self, is_instant: bool) {
        self.is_instant.store(is_instant, Ordering::SeqCst);
    }

    /// Whether a commit is made and not yet answered.
    pub(super) fn has_unacknowledged_commit(&self) -> bool {
        1 < Arc::strong_count(&self.unacknowledged)
    }

    pub(super) fn allow_maintenance(&self) {
        self.maintenance.send_replace(true);
    }

    pub(super) fn set_apply_abandoned(&self, applies_abandoned: bool) {
        self.applies_abandoned.store(applies_abandoned, Ordering::SeqCst);
    }

    /// Abandoned commits that are not made yet are lost with the process.
    pub(super) fn drop_abandoned_commits(&self) {
        self.abandoned_commits().abort_all();
    }

    fn abandoned_commits(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.abandoned_commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process crashes before or after a commit, this many steps from now.
    pub(super) fn crash_in_commit(&self, steps: i64) {
        self.steps_to_crash.store(steps, Ordering::SeqCst);
    }

    /// Returns when the process is to crash.
    pub(super) async fn crash_due(&self) {
        self.crash_due.notified().await;
    }

    pub(super) fn fault_rates(&self) -> FaultRates {
        match self.is_instant() {
            true => FaultRates::default(),
            false => *self.fault_rates.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn is_instant(&self) -> bool {
        self.is_instant.load(Ordering::SeqCst)
    }

    pub(super) fn dice(&self, key: &str) -> Dice {
        let elapsed = self.started.elapsed().as_millis();
        keyed_dice::dice(self.seed, key, u64::try_from(elapsed).unwrap_or_default())
    }

    pub(super) async fn delay(&self, dice: &mut Dice, ms_max: u64) {
        let is_slow = dice.is_percent(self.fault_rates().slow);
        let ms = dice.below(if is_slow { SLOW_MS_MAX } else { ms_max });
        if !self.is_instant() {
            sleep(Duration::from_millis(ms)).await;
        }
    }

    /// Never returns if the process crashes at this step of a commit: 0 before it is made, 1 after.
    pub(super) async fn crash_if_due(&self, step: i64) {
        if self.steps_to_crash.load(Ordering::SeqCst) == step {
            self.steps_to_crash.store(-1, Ordering::SeqCst);
            self.crash_due.notify_one();
            pending().await
        }
    }

    pub(super) fn count_commit(&self) {
        let subtract = |left: i64| Some(if left < 2 { left } else { left - 2 });
        let _ = self.steps_to_crash.fetch_update(Ordering::SeqCst, Ordering::SeqCst, subtract);
    }

    pub(super) async fn read(&self, what: &str, key: &str) -> Result<(), Error> {
        let mut dice = self.dice(&format!("{what} {key}"));
        self.delay(&mut dice, 3).await;
        match dice.is_percent(self.fault_rates().unreadable) {
            true => Err(Error::Unreachable("simulated failure".to_owned())),
            false => Ok(()),
        }
    }

    pub(super) async fn wait_for_maintenance(&self) {
        let _ = self.maintenance.subscribe().wait_for(|is_allowed| *is_allowed).await;
    }

    pub(super) fn check_maintenance(&self) -> Result<(), Error> {
        match *self.maintenance.borrow() || self.is_instant() {
            true => Ok(()),
            false => Err(Error::Failed("maintenance is not allowed yet".to_owned())),
        }
    }
}

/// A commit that is not made yet.
pub(super) struct PendingCommit<'a> {
    pub(super) store: &'a FaultyStore,
    pub(super) commit: Option<Commit>,
    pub(super) dice: Dice,
}

impl Drop for PendingCommit<'_> {
    /// Its caller is gone.
    fn drop(&mut self) {
        let Some(commit) = self.commit.take() else { return };
        if !self.store.applies_abandoned.load(Ordering::SeqCst) {
            return;
        }
        let memory = Arc::clone(&self.store.memory);
        let span = Duration::from_millis(self.dice.below(ABANDONED_COMMIT_MS_MAX));
        self.store.abandoned_commits().spawn(async move {
            sleep(span).await;
            let _ = memory.commit(commit).await;
        });
    }
}

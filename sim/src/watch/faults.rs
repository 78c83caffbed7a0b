//! What goes wrong in the store of a life, and how much time passes in it.
//!
//! Every call takes virtual time, so that a crash can fall between any two of them, and between a
//! commit and its answer. What threads would do (checkpoints, exports, the check after a start) does
//! not get past its first read as long as [`Faulty::let_upkeep`] was not called: when a thread is done
//! depends on the machine, and the history must not.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::pending;
use store::{Commit, Error, Memory, Store};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::chance;
use super::mood::Mood;
use crate::dice::Dice;

const SLOW_MS_MAX: u64 = 12_000;
/// What nobody waits for takes so long at most.
pub(super) const LANDING_MS_MAX: u64 = 3_000;

#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) memory: Arc<Memory>,
    /// Whether another process may write while one does.
    pub(super) is_shared: bool,
    seed: u64,
    begun: Instant,
    mood: Mutex<Mood>,
    /// Nothing fails and no time passes.
    is_instant: AtomicBool,
    upkeep: watch::Sender<bool>,
    /// Commits until the process dies in the middle of one; negative for never.
    fuse: AtomicI64,
    burnt: Notify,
    /// Whether a commit is made though nobody waits for it any more, as one is that was handed to a writer.
    lands: AtomicBool,
    /// Those that are on their way.
    landing: Mutex<JoinSet<()>>,
    /// Commits that are made and not yet answered.
    pub(super) answering: Arc<()>,
}

impl Faulty {
    pub(super) fn new(memory: Arc<Memory>, seed: u64, is_shared: bool) -> Faulty {
        Faulty {
            memory,
            is_shared,
            seed,
            begun: Instant::now(),
            mood: Mutex::default(),
            is_instant: AtomicBool::new(true),
            upkeep: watch::Sender::new(false),
            fuse: AtomicI64::new(-1),
            burnt: Notify::new(),
            lands: AtomicBool::new(false),
            landing: Mutex::default(),
            answering: Arc::default(),
        }
    }

    pub(super) fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    pub(super) fn set_instant(&self, is_instant: bool) {
        self.is_instant.store(is_instant, Ordering::SeqCst);
    }

    /// Whether something is made that nobody was told of yet.
    pub(super) fn is_answering(&self) -> bool {
        1 < Arc::strong_count(&self.answering)
    }

    pub(super) fn let_upkeep(&self) {
        self.upkeep.send_replace(true);
    }

    pub(super) fn set_landing(&self, lands: bool) {
        self.lands.store(lands, Ordering::SeqCst);
    }

    /// What is on its way is lost with the process.
    pub(super) fn lose_landing(&self) {
        self.landing().abort_all();
    }

    fn landing(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.landing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process dies in its so many-th commit from now, before or after that is made.
    pub(super) fn light_fuse(&self, commits: i64) {
        self.fuse.store(commits, Ordering::SeqCst);
    }

    /// Returns when the process is to die.
    pub(super) async fn burnt(&self) {
        self.burnt.notified().await;
    }

    pub(super) fn mood(&self) -> Mood {
        match self.is_instant() {
            true => Mood::default(),
            false => *self.mood.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn is_instant(&self) -> bool {
        self.is_instant.load(Ordering::SeqCst)
    }

    pub(super) fn dice(&self, what: &str) -> Dice {
        let passed = self.begun.elapsed().as_millis();
        chance::dice(self.seed, what, u64::try_from(passed).unwrap_or_default())
    }

    pub(super) async fn pass(&self, dice: &mut Dice, ms_max: u64) {
        let is_slow = dice.is_percent(self.mood().slow);
        let ms = dice.below(if is_slow { SLOW_MS_MAX } else { ms_max });
        if !self.is_instant() {
            sleep(Duration::from_millis(ms)).await;
        }
    }

    /// Whether the process dies here.
    pub(super) async fn die_if_burnt(&self, place: i64) {
        if self.fuse.load(Ordering::SeqCst) == place {
            self.fuse.store(-1, Ordering::SeqCst);
            self.burnt.notify_one();
            pending().await
        }
    }

    pub(super) fn burn(&self) {
        let burn = |left: i64| Some(if left < 2 { left } else { left - 2 });
        let _ = self.fuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, burn);
    }

    pub(super) async fn read(&self, what: &str, key: &str) -> Result<(), Error> {
        let mut dice = self.dice(&format!("{what} {key}"));
        self.pass(&mut dice, 3).await;
        match dice.is_percent(self.mood().unreadable) {
            true => Err(Error::Unreachable("the simulation says so".to_owned())),
            false => Ok(()),
        }
    }

    pub(super) async fn until_upkeep(&self) {
        let _ = self.upkeep.subscribe().wait_for(|is_let| *is_let).await;
    }

    pub(super) fn check_upkeep(&self) -> Result<(), Error> {
        match *self.upkeep.borrow() || self.is_instant() {
            true => Ok(()),
            false => Err(Error::Failed("there is no upkeep yet".to_owned())),
        }
    }
}

/// A commit that is on its way to the store.
pub(super) struct OnItsWay<'a> {
    pub(super) store: &'a Faulty,
    pub(super) commit: Option<Commit>,
    pub(super) dice: Dice,
}

impl Drop for OnItsWay<'_> {
    /// Whoever waited for it has hung up.
    fn drop(&mut self) {
        let Some(commit) = self.commit.take() else { return };
        if !self.store.lands.load(Ordering::SeqCst) {
            return;
        }
        let memory = Arc::clone(&self.store.memory);
        let span = Duration::from_millis(self.dice.below(LANDING_MS_MAX));
        self.store.landing().spawn(async move {
            sleep(span).await;
            let _ = memory.commit(commit).await;
        });
    }
}

//! The agent backend of a simulation: it records every attempt outside the engine, and misbehaves at random.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents::{AgentBackend, Attempt, AttemptResult, Failure, Outcome, Output, Reason};
use futures::future::{BoxFuture, FutureExt};
use kernel::budget::Usage;
use kernel::run::FailureKind;
use tokio::select;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::keyed_dice;
use super::store_view::StoreView;
use crate::dice::Dice;

const TRANSIENT: FailureKind = FailureKind::Transient { wait_us: 0 };

/// An attempt of a run, as the backend saw it.
#[derive(Clone, Debug)]
pub(super) struct AttemptRecord {
    /// The process of the simulation that started it.
    pub(super) process: u64,
    /// Since the start of the simulation.
    pub(super) started_us: u128,
    pub(super) prompt: String,
    pub(super) has_effect: bool,
    /// The outcome that the backend returned.
    pub(super) reported: Option<ReportedOutcome>,
    pub(super) stop: CancellationToken,
    /// It returned, panicked, or was dropped with its process.
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedOutcome {
    Done,
    Failed,
    Stopped,
}

/// Attempts by run and epoch.
pub(super) type Attempts = BTreeMap<(String, u32), AttemptRecord>;

/// What the backends of all processes of a simulation share.
#[derive(Debug)]
pub(super) struct ScriptedBackend {
    seed: u64,
    view: StoreView,
    started: Instant,
    attempts: Mutex<Attempts>,
    /// Broken invariants, oldest first.
    violations: Mutex<Vec<String>>,
    /// The behaviour of all attempts. `None`: random.
    forced: Mutex<Option<Behaviour>>,
}

/// What an attempt does.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    Quick,
    Slow,
    Fails,
    FailsPermanently,
    /// Runs until it is stopped or its time limit is over.
    Hangs,
    Panics,
    /// Ignores the stop and returns late.
    IgnoresStop,
}

impl ScriptedBackend {
    pub(super) fn new(seed: u64, view: StoreView) -> ScriptedBackend {
        let (attempts, violations) = (Mutex::default(), Mutex::default());
        let (started, forced) = (Instant::now(), Mutex::default());
        ScriptedBackend { seed, view, started, attempts, violations, forced }
    }

    /// From now on every attempt succeeds quickly.
    pub(super) fn finish_quickly(&self) {
        *self.forced.lock().unwrap_or_else(PoisonError::into_inner) = Some(Behaviour::Quick);
    }

    /// From now on every attempt runs into its time limit.
    pub(super) fn hang(&self) {
        *self.forced.lock().unwrap_or_else(PoisonError::into_inner) = Some(Behaviour::Hangs);
    }

    pub(super) fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_violation(&self) -> Option<String> {
        let mut violations = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
        (!violations.is_empty()).then(|| violations.remove(0))
    }

    fn record_violation(&self, violation: String) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(violation);
    }

    fn behaviour(&self, dice: &mut Dice) -> Behaviour {
        if let Some(behaviour) = *self.forced.lock().unwrap_or_else(PoisonError::into_inner) {
            return behaviour;
        }
        match dice.below(20) {
            0..8 => Behaviour::Quick,
            8..12 => Behaviour::Slow,
            12..14 => Behaviour::Fails,
            14 => Behaviour::FailsPermanently,
            15..17 => Behaviour::Hangs,
            17 => Behaviour::Panics,
            _ => Behaviour::IgnoresStop,
        }
    }

    /// Whether an older attempt of the same run is still running.
    fn has_older_running(&self, attempt: &Attempt) -> bool {
        let older = (attempt.run.clone(), 0)..(attempt.run.clone(), attempt.epoch);
        self.attempts().range(older).any(|(_, record)| !record.is_over)
    }

    /// Checks that the start was committed before the effect, and that no attempt starts twice.
    fn record_start(
        &self,
        process: u64,
        attempt: &Attempt,
        behaviour: Behaviour,
        stop: &CancellationToken,
    ) {
        let Attempt { run, epoch, .. } = attempt;
        let committed = self.view.run(run).map(|run| run.epoch);
        if committed.is_none_or(|committed| committed < *epoch) {
            self.record_violation(format!(
                "S2: attempt {epoch} of {run} takes effect before its start is committed ({committed:?})"
            ));
        }
        let has_effect = match behaviour {
            Behaviour::Quick | Behaviour::Slow | Behaviour::Panics | Behaviour::IgnoresStop => true,
            Behaviour::Fails | Behaviour::FailsPermanently | Behaviour::Hangs => false,
        };
        let (started_us, stop) = (self.started.elapsed().as_micros(), stop.clone());
        let prompt = attempt.prompt.clone();
        let record = AttemptRecord {
            process,
            started_us,
            prompt,
            has_effect,
            reported: None,
            stop,
            is_over: false,
        };
        if self.attempts().insert((run.clone(), *epoch), record).is_some() {
            self.record_violation(format!("S2: attempt {epoch} of {run} was started twice"));
        }
    }

    fn record_outcome(&self, attempt: &Attempt, reported: ReportedOutcome) {
        if let Some(record) = self.attempts().get_mut(&(attempt.run.clone(), attempt.epoch)) {
            record.reported = Some(reported);
        }
    }

    async fn execute(
        &self,
        behaviour: Behaviour,
        mut dice: Dice,
        attempt: &Attempt,
        stop: &CancellationToken,
    ) -> Outcome {
        let failed = |reason, kind| {
            Outcome::Failed(Failure { reason, message: "simulated failure".to_owned(), kind })
        };
        match behaviour {
            Behaviour::Quick => {
                sleep(dice.span_us(50_000)).await;
                Outcome::Done
            }
            Behaviour::Slow => {
                let slow = dice.between_us(1_000_000, 150_000_000);
                select! {
                    biased;
                    () = sleep(slow) => Outcome::Done,
                    () = stop.cancelled() => Outcome::Cancelled,
                }
            }
            Behaviour::Fails => {
                sleep(dice.span_us(3_000_000)).await;
                failed(Reason::Exit, TRANSIENT)
            }
            Behaviour::FailsPermanently => failed(Reason::Exit, FailureKind::Permanent),
            Behaviour::Hangs => select! {
                biased;
                () = stop.cancelled() => Outcome::Cancelled,
                () = sleep(attempt.time_max) => failed(Reason::Timeout, TRANSIENT),
            },
            Behaviour::Panics => {
                sleep(dice.span_us(2_000_000)).await;
                resume_unwind(Box::new("simulated panic"))
            }
            Behaviour::IgnoresStop => {
                sleep(dice.between_us(5_000_000, 90_000_000)).await;
                Outcome::Done
            }
        }
    }
}

/// The backend of one process.
#[derive(Debug)]
struct ProcessBackend(u64, Arc<ScriptedBackend>);

impl AgentBackend for ProcessBackend {
    fn run(&self, attempt: Attempt, stop: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        let ProcessBackend(process, backend) = self;
        async move {
            let elapsed = u64::try_from(backend.started.elapsed().as_millis()).unwrap_or_default();
            let mut dice = keyed_dice::dice(backend.seed, &attempt.run, elapsed);
            let behaviour = match backend.has_older_running(&attempt) {
                // The older of two running attempts shall end first.
                true => Behaviour::Slow,
                false => backend.behaviour(&mut dice),
            };
            // Like every backend of the product, it does not start an attempt that is already stopped.
            if stop.is_cancelled() {
                return AttemptResult {
                    outcome: Outcome::Cancelled,
                    output: Output::default(),
                    usage: None,
                };
            }
            backend.record_start(*process, &attempt, behaviour, &stop);
            let _over = MarkOver(backend, (attempt.run.clone(), attempt.epoch));
            let usage = usage(&mut dice);
            let outcome = backend.execute(behaviour, dice, &attempt, &stop).await;
            let reported = match &outcome {
                Outcome::Done => ReportedOutcome::Done,
                Outcome::Failed(_) => ReportedOutcome::Failed,
                Outcome::Cancelled => ReportedOutcome::Stopped,
            };
            backend.record_outcome(&attempt, reported);
            let text = format!("{behaviour:?}");
            let output = Output { bytes: text.len() as u64, text, file: None };
            AttemptResult { outcome, output, usage }
        }
        .boxed()
    }
}

/// The usage that an attempt reports: random, and often none.
fn usage(dice: &mut Dice) -> Option<Usage> {
    let input_tokens = u32::try_from(dice.below(900)).unwrap_or_default();
    (!dice.is_one_in(3)).then_some(Usage { input_tokens, output_tokens: 0 })
}

/// Marks an attempt as over when it is dropped, however it ends.
struct MarkOver<'a>(&'a ScriptedBackend, (String, u32));

impl Drop for MarkOver<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.0.attempts().get_mut(&self.1) {
            record.is_over = true;
        }
    }
}

pub(super) fn backend_of_process(
    backend: &Arc<ScriptedBackend>,
    process: u64,
) -> Arc<dyn AgentBackend> {
    Arc::new(ProcessBackend(process, backend.clone()))
}

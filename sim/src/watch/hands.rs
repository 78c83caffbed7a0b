//! Those who do the work of a life: they record every try outside the watch, and behave badly.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents::{AgentBackend, Ended, Failure, Outcome, Output, Reason, Work};
use futures::future::{BoxFuture, FutureExt};
use kernel::budget::Usage;
use kernel::run::Kind;
use tokio::select;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::chance;
use super::peek::Peek;
use crate::dice::Dice;

const PASSING: Kind = Kind::Passing { wait_us: 0 };

/// A try of a run, as the world outside saw it.
#[derive(Clone, Debug)]
pub(super) struct Try {
    /// Which process of the life began it.
    pub(super) process: u64,
    /// Since the life began.
    pub(super) begun_us: u128,
    /// What it was told to do.
    pub(super) prompt: String,
    pub(super) has_effect: bool,
    /// What was said of it, if anything was.
    pub(super) said: Option<Said>,
    pub(super) stop: CancellationToken,
    /// Nobody waits for its answer any more.
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Done,
    Failed,
    Stopped,
}

/// By run and epoch.
pub(super) type Tries = BTreeMap<(String, u32), Try>;

#[derive(Debug)]
pub(super) struct Hands {
    seed: u64,
    peek: Peek,
    begun: Instant,
    tries: Mutex<Tries>,
    /// What must not be, in the order in which it was seen.
    wrong: Mutex<Vec<String>>,
    /// How all behave, unless each does as it likes.
    all: Mutex<Option<Manner>>,
}

/// How a try goes.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Quick,
    Slow,
    Fails,
    FailsForGood,
    /// Until it is told to stop, or its time is over.
    Hangs,
    Panics,
    /// Does not listen, and answers long after.
    Stubborn,
}

impl Hands {
    pub(super) fn new(seed: u64, peek: Peek) -> Hands {
        let (tries, wrong) = (Mutex::default(), Mutex::default());
        Hands { seed, peek, begun: Instant::now(), tries, wrong, all: Mutex::default() }
    }

    /// From now on everybody does what is asked.
    pub(super) fn be_good(&self) {
        *self.all.lock().unwrap_or_else(PoisonError::into_inner) = Some(Manner::Quick);
    }

    /// From now on nobody comes to an end soon.
    pub(super) fn dawdle(&self) {
        *self.all.lock().unwrap_or_else(PoisonError::into_inner) = Some(Manner::Hangs);
    }

    pub(super) fn tries(&self) -> MutexGuard<'_, Tries> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_wrong(&self) -> Option<String> {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        (!wrong.is_empty()).then(|| wrong.remove(0))
    }

    fn complain(&self, what: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn manner(&self, dice: &mut Dice) -> Manner {
        if let Some(manner) = *self.all.lock().unwrap_or_else(PoisonError::into_inner) {
            return manner;
        }
        match dice.below(20) {
            0..8 => Manner::Quick,
            8..12 => Manner::Slow,
            12..14 => Manner::Fails,
            14 => Manner::FailsForGood,
            15..17 => Manner::Hangs,
            17 => Manner::Panics,
            _ => Manner::Stubborn,
        }
    }

    /// Whether an older try of the same run goes on.
    fn is_at_work(&self, work: &Work) -> bool {
        let older = (work.run.clone(), 0)..(work.run.clone(), work.epoch);
        self.tries().range(older).any(|(_, one)| !one.is_over)
    }

    /// The intent is on the record before the effect, and no try is made twice.
    fn begin(&self, process: u64, work: &Work, manner: Manner, stop: &CancellationToken) {
        let Work { run, epoch, .. } = work;
        let known = self.peek.run(run).map(|run| run.epoch);
        if known.is_none_or(|known| known < *epoch) {
            self.complain(format!(
                "S2: try {epoch} of {run} takes effect before its start is committed ({known:?})"
            ));
        }
        let has_effect = match manner {
            Manner::Quick | Manner::Slow | Manner::Panics | Manner::Stubborn => true,
            Manner::Fails | Manner::FailsForGood | Manner::Hangs => false,
        };
        let (begun_us, stop) = (self.begun.elapsed().as_micros(), stop.clone());
        let prompt = work.prompt.clone();
        let one = Try { process, begun_us, prompt, has_effect, said: None, stop, is_over: false };
        if self.tries().insert((run.clone(), *epoch), one).is_some() {
            self.complain(format!("S2: try {epoch} of {run} was begun twice"));
        }
    }

    fn say(&self, work: &Work, said: Said) {
        if let Some(one) = self.tries().get_mut(&(work.run.clone(), work.epoch)) {
            one.said = Some(said);
        }
    }

    async fn go(
        &self,
        manner: Manner,
        mut dice: Dice,
        work: &Work,
        stop: &CancellationToken,
    ) -> Outcome {
        let failed = |reason, kind| {
            Outcome::Failed(Failure { reason, message: "it said so".to_owned(), kind })
        };
        match manner {
            Manner::Quick => {
                sleep(dice.span_us(50_000)).await;
                Outcome::Done
            }
            Manner::Slow => {
                let slow = dice.between_us(1_000_000, 150_000_000);
                select! {
                    biased;
                    () = sleep(slow) => Outcome::Done,
                    () = stop.cancelled() => Outcome::Cancelled,
                }
            }
            Manner::Fails => {
                sleep(dice.span_us(3_000_000)).await;
                failed(Reason::Exit, PASSING)
            }
            Manner::FailsForGood => failed(Reason::Exit, Kind::Permanent),
            Manner::Hangs => select! {
                biased;
                () = stop.cancelled() => Outcome::Cancelled,
                () = sleep(work.time_max) => failed(Reason::Timeout, PASSING),
            },
            Manner::Panics => {
                sleep(dice.span_us(2_000_000)).await;
                resume_unwind(Box::new("the simulation says so"))
            }
            Manner::Stubborn => {
                sleep(dice.between_us(5_000_000, 90_000_000)).await;
                Outcome::Done
            }
        }
    }
}

/// The hands of one process.
#[derive(Debug)]
struct Hand(u64, Arc<Hands>);

impl AgentBackend for Hand {
    fn work(&self, work: Work, stop: CancellationToken) -> BoxFuture<'_, Ended> {
        let Hand(process, hands) = self;
        async move {
            let passed = u64::try_from(hands.begun.elapsed().as_millis()).unwrap_or_default();
            let mut dice = chance::dice(hands.seed, &work.run, passed);
            let manner = match hands.is_at_work(&work) {
                // Two at once: whoever came first shall be done first.
                true => Manner::Slow,
                false => hands.manner(&mut dice),
            };
            // As every doer of the product: what is to stop is not begun.
            if stop.is_cancelled() {
                return Ended {
                    outcome: Outcome::Cancelled,
                    output: Output::default(),
                    usage: None,
                };
            }
            hands.begin(*process, &work, manner, &stop);
            let _over = Over(hands, (work.run.clone(), work.epoch));
            let usage = usage(&mut dice);
            let outcome = hands.go(manner, dice, &work, &stop).await;
            let said = match &outcome {
                Outcome::Done => Said::Done,
                Outcome::Failed(_) => Said::Failed,
                Outcome::Cancelled => Said::Stopped,
            };
            hands.say(&work, said);
            let text = format!("{manner:?}");
            let output = Output { bytes: text.len() as u64, text, file: None };
            Ended { outcome, output, usage }
        }
        .boxed()
    }
}

/// What a try tells that it has used: often more than the one before, and often nothing.
fn usage(dice: &mut Dice) -> Option<Usage> {
    let input_tokens = u32::try_from(dice.below(900)).unwrap_or_default();
    (!dice.is_one_in(3)).then_some(Usage { input_tokens, output_tokens: 0 })
}

/// However a try ends, it is over then.
struct Over<'a>(&'a Hands, (String, u32));

impl Drop for Over<'_> {
    fn drop(&mut self) {
        if let Some(one) = self.0.tries().get_mut(&self.1) {
            one.is_over = true;
        }
    }
}

/// Those of the so many-th process of a life.
pub(super) fn doer(hands: &Arc<Hands>, process: u64) -> Arc<dyn AgentBackend> {
    Arc::new(Hand(process, hands.clone()))
}

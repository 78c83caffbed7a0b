//! Starting a run in the commit that queues it, if its agent has a free permit and no run waits before it: one flush less
//! between a slot and its effect. A run that cannot start there is queued like any other.

use api::{Code, Error};
use kernel::authority::Authority;
use kernel::run::Event;
use kernel::schedule::{Action, Definition, Schedule};
use kernel::{Actor, Counter, EventBody, Noun, RunId, ScheduleId, Timestamp};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::commit::rows::{Rows, row_key};
use crate::commit::run_context::{definition_rows, run_context};
use crate::commit::transaction::{Committed, Transaction};
use crate::dispatch::dispatcher::Claim;
use crate::execute::executor::Executor;
use crate::execute::start::{StartInputs, StartOutcome, StartedAttempt};

/// Where the timer hands over the runs that it has started.
pub(crate) struct FastStarts {
    pub sender: UnboundedSender<FastStarted>,
    /// A run that starts after this would only be cut off.
    pub shutdown: CancellationToken,
}

/// A run that was started in the commit that queued it.
pub(crate) struct FastStarted {
    pub claim: Claim,
    /// `None` if the outcome of the commit is unknown.
    pub attempt: Option<StartedAttempt>,
}

/// A permit for the run that a tick may queue.
pub(crate) struct ReservedPermit {
    pub claim: Claim,
    counters: Vec<(Counter, i64)>,
}

impl Executor {
    /// Reserves a permit for the run of a due schedule, if that run could start at once.
    pub(crate) async fn reserve_permit(
        &self,
        id: &ScheduleId,
        definition: &Definition,
        shutdown: &CancellationToken,
    ) -> Result<Option<ReservedPermit>, Error> {
        let now = self.time.monotonic_now();
        // A tool call is resolved once its run is claimed. While the clock is behind the ledger, runs are queued.
        let is_prompt = matches!(definition.action, Action::Prompt { .. });
        if !is_prompt || now.clock < now.latest || shutdown.is_cancelled() {
            return Ok(None);
        }
        let run = RunId::of(self.time.time_ordered(now.clock));
        let Some(claim) = self.dispatcher.try_claim(run, id, definition, now.clock) else {
            return Ok(None);
        };
        match self.budgets.read_counters(id, claim.agent.as_ref()).await {
            Ok(counters) => Ok(Some(ReservedPermit { claim, counters })),
            Err(failed) => {
                self.dispatcher.release(&claim.id);
                Err(failed)
            }
        }
    }

    /// The transaction of a tick, which starts the run if there is a permit for it.
    pub(crate) fn tick_transaction<'a>(
        &self,
        permit: Option<&ReservedPermit>,
        actor: &'a Actor,
    ) -> Transaction<'a> {
        let mut transaction = Transaction::by(actor);
        if let Some(ReservedPermit { claim, .. }) = permit {
            // A change of the schedule writes its progress, and so conflicts with the tick.
            transaction.reads = definition_rows(&claim.schedule, None);
            let agent = claim.agent.as_ref().map(|name| (Noun::Agent, name.to_string()));
            let authority = row_key::<Authority>(&self.installation.instance);
            transaction.rows = agent.into_iter().chain([authority]).collect();
        }
        transaction
    }

    /// The events that start the run for which there is a permit. None if it was not queued or does not simply start.
    pub(crate) fn fast_start_events(
        &self,
        permit: &ReservedPermit,
        rows: &Rows,
        queued: &[EventBody],
        now: Timestamp,
    ) -> Vec<EventBody> {
        let ReservedPermit { claim, counters } = permit;
        let is_queued = |event: &EventBody| matches!(event, EventBody::Run(id, Event::Queued(_)) if *id == claim.id);
        if !queued.iter().any(is_queued) {
            return Vec::new();
        }
        let rows = rows.after(queued);
        let Some(context) = run_context(&rows, &claim.id, &claim.schedule, now) else {
            return Vec::new();
        };
        // The schedule and its progress were read separately: an edit may have come in between.
        let revision = rows.get::<Schedule>(&claim.schedule).map(|schedule| schedule.revision);
        if revision != context.progress.map(|progress| progress.revision) {
            return Vec::new();
        }
        let inputs = StartInputs { claim, counters, tool_call: None, preflight: None };
        let events = self.start_events(inputs, &rows, context);
        let starts = |event: &EventBody| matches!(event, EventBody::Run(_, Event::Started(_)));
        if events.iter().any(starts) { events } else { Vec::new() }
    }

    /// Hands over the run that a tick has started, or may have started if its commit failed.
    pub(crate) fn hand_over(
        &self,
        permit: ReservedPermit,
        ticked: &Result<Committed, Error>,
        to: &UnboundedSender<FastStarted>,
    ) {
        let claim = permit.claim;
        let attempt = match ticked {
            Ok(committed) => match self.start_outcome(&claim, committed) {
                StartOutcome::Started(attempt) => Some(*attempt),
                StartOutcome::Decided | StartOutcome::Short(_) | StartOutcome::NotNow => {
                    return self.dispatcher.release(&claim.id);
                }
            },
            Err(refused) if refused.code == Code::LimitReached => {
                return self.dispatcher.release(&claim.id);
            }
            Err(_) => None,
        };
        // The receiver is gone only if the process is about to end; the next one recovers the run.
        let _ = to.send(FastStarted { claim, attempt });
    }
}

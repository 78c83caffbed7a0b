//! Starting a run: the one decision that lets it take effect.
//!
//! Most runs are started in the commit that queues them (`fast_start.rs`), the others once they are claimed. Both ways end in
//! [`Executor::start_events`].

use agents::Attempt;
use api::{Code, Error};
use kernel::agent::Agent;
use kernel::approval::Approval;
use kernel::authority::Authority;
use kernel::run::{self, Cause, Event, Run, RunContext, StartContext};
use kernel::schedule::{Action, Schedule};
use kernel::tool::ToolCall;
use kernel::{Actor, Counter, EventBody, Noun, ScheduleId};
use tokio_util::sync::CancellationToken;

use crate::authorize::budgets::{CounterNeeds, Shortage};
use crate::commit::rows::{Rows, row_key};
use crate::commit::run_context::{definition_rows, run_context};
use crate::commit::transaction::{Committed, Transaction};
use crate::dispatch::dispatcher::Claim;
use crate::execute::executor::Executor;
use crate::execute::preflight::PreflightReport;
use crate::execute::tool_call::PendingCall;
use crate::secrets::sealing::Purpose;
use crate::timestamps::rfc3339;

/// What came of the decision to start a run.
pub(crate) enum StartOutcome {
    Started(Box<StartedAttempt>),
    /// The run waits for an approval, or has ended.
    Decided,
    /// A budget is used up, or too many approvals are pending.
    Short(Shortage),
    NotNow,
}

/// An attempt whose start is committed.
pub(crate) struct StartedAttempt {
    pub(super) epoch: u32,
    /// An error if the prompt or payload cannot be read.
    pub(super) work: Result<ReadyWork, Error>,
}

pub(super) enum ReadyWork {
    Prompt(Box<Attempt>),
    Call(PendingCall),
}

/// What the decision depends on, besides the rows.
#[derive(Clone, Copy)]
pub(super) struct StartInputs<'a> {
    pub claim: &'a Claim,
    /// Budget counters that were read for the run.
    pub counters: &'a [(Counter, i64)],
    pub tool_call: Option<&'a Result<ToolCall, Cause>>,
    pub preflight: Option<&'a PreflightReport>,
}

impl Executor {
    /// Starts a claimed run, or requests an approval for it. A run that has an approval, or that cannot start without more,
    /// is checked first.
    pub(super) async fn start(
        &self,
        claim: &Claim,
        shutdown: &CancellationToken,
    ) -> Result<StartOutcome, Error> {
        if claim.approval.is_none()
            && let outcome @ (StartOutcome::Started(_) | StartOutcome::Decided) =
                self.try_start(claim, None, shutdown).await?
        {
            return Ok(outcome);
        }
        let preflight = self.check_preflight(claim).await?;
        self.try_start(claim, Some(&preflight), shutdown).await
    }

    /// Commits the start. The commit names the versions of the schedule, the agent and the authority, so the run starts by what
    /// they say at that moment.
    async fn try_start(
        &self,
        claim: &Claim,
        preflight: Option<&PreflightReport>,
        shutdown: &CancellationToken,
    ) -> Result<StartOutcome, Error> {
        let Claim { id, schedule, agent, approval, .. } = claim;
        let mut rows = vec![row_key::<Run>(id), row_key::<Authority>(&self.installation.instance)];
        rows.extend(definition_rows(schedule, agent.as_ref()));
        rows.extend(approval.as_ref().map(row_key::<Approval>));
        rows.extend(self.approvals.signer_rows(approval.as_ref()).await?);
        rows.extend(preflight.iter().flat_map(|report| report.other_rows.iter().cloned()));
        let reads = vec![(Noun::Progress, schedule.to_string())];
        let system = Actor::system();
        let transaction = Transaction { rows, reads, ..Transaction::by(&system) };
        let counters = self.budgets.read_counters(schedule, agent.as_ref()).await?;
        let mut needs = CounterNeeds::default();
        // Only a tool call has no agent.
        let action = match agent {
            Some(_) => None,
            None => self.action_of(schedule).await?,
        };
        let tool_call = match &action {
            Some(action) => self.tool_calls.resolve(action).await?,
            None => None,
        };
        let inputs =
            StartInputs { claim, counters: &counters, tool_call: tool_call.as_ref(), preflight };
        let committed = self.transactions.commit(transaction, |rows, now| {
            // A run that starts now would only be cut off.
            if shutdown.is_cancelled() || self.dispatcher.is_stopped() {
                return Ok(Vec::new());
            }
            let Some(context) = run_context(rows, id, schedule, now) else { return Ok(Vec::new()) };
            // The approval was requested or decided after the claim: the run is claimed again.
            if context.run.approval != *approval {
                return Ok(Vec::new());
            }
            // The tool call was resolved for an earlier definition.
            let current = context.definition.map(|definition| &definition.action);
            if tool_call.is_some() && current != action.as_ref() {
                return Ok(Vec::new());
            }
            let events = self.start_events(inputs, rows, context);
            let limits = &self.config.active().limits;
            needs = CounterNeeds::of(&events, rows, context.definition, limits);
            Ok(events)
        });
        let committed = match committed.await {
            Err(spent) if spent.code == Code::LimitReached => {
                // Another run may have returned its reservation since.
                let shortage = self.budgets.find_shortage(needs).await;
                return Ok(shortage.map_or(StartOutcome::NotNow, StartOutcome::Short));
            }
            committed => committed?,
        };
        Ok(self.start_outcome(claim, &committed))
    }

    /// The decision to start a run: it starts, needs an approval, or ends.
    pub(super) fn start_events(
        &self,
        inputs: StartInputs<'_>,
        rows: &Rows,
        context: RunContext<'_>,
    ) -> Vec<EventBody> {
        let StartInputs { claim, counters, tool_call, preflight } = inputs;
        let Claim { schedule, agent, approval, .. } = claim;
        let agent = agent.as_ref().and_then(|name| rows.get::<Agent>(name));
        let checked = preflight.and_then(|report| report.still_valid(claim, rows));
        let preflight = checked.as_ref().map(|checked| checked.result);
        let other_approvals = checked.as_ref().map_or(&[][..], |checked| &checked.approvals);
        self.policy.with_start_context(schedule, approval.as_ref(), rows, counters, |start| {
            let start = StartContext { tool_call, preflight, other_approvals, ..*start };
            run::start(context, agent, self.node.name(), &start, self.time.now())
        })
    }

    /// What a committed decision about a claimed run means for it.
    pub(super) fn start_outcome(&self, claim: &Claim, committed: &Committed) -> StartOutcome {
        if committed.events.is_empty() {
            return StartOutcome::NotNow;
        }
        let started = committed.events.iter().find_map(|event| match event {
            EventBody::Run(_, Event::Started(started)) => Some(started),
            _ => None,
        });
        let Some(started) = started else { return StartOutcome::Decided };
        let rows = &committed.after;
        let (Some(run), Some(schedule)) =
            (rows.get::<Run>(&claim.id), rows.get::<Schedule>(&claim.schedule))
        else {
            return StartOutcome::NotNow;
        };
        let agent = claim.agent.as_ref().and_then(|name| rows.get::<Agent>(name));
        let (prompt, agent) = match (&schedule.definition.action, agent) {
            (Action::Prompt { prompt, .. }, Some(agent)) => (prompt, agent),
            (Action::Prompt { .. }, None) => return StartOutcome::NotNow,
            (Action::Tool { tool, payload, .. }, _) => {
                let (tool, is_sensitive) = (tool.clone(), payload.is_sealed());
                if started.charge.is_some() {
                    self.tool_metrics.count_run(&tool);
                }
                let payload = self.sealing.open(payload, Purpose::PrivateFields);
                let work = payload
                    .map(|payload| ReadyWork::Call(PendingCall { tool, payload, is_sensitive }));
                return StartOutcome::Started(Box::new(StartedAttempt {
                    epoch: started.epoch,
                    work,
                }));
            }
        };
        self.dispatcher.set_agent(agent);
        let attempt = self.sealing.open(prompt, Purpose::PrivateFields).map(|text| Attempt {
            run: claim.id.to_string(),
            schedule: Some(claim.schedule.to_string()),
            slot: run.slot.map(rfc3339),
            number: started.attempt,
            epoch: started.epoch,
            started_at: started.at,
            agent: agent.clone(),
            prompt: text,
            is_sensitive: prompt.is_sealed(),
            time_max: agent.time_limit(),
            live_output: claim.live_output.clone(),
        });
        let work = attempt.map(|attempt| ReadyWork::Prompt(Box::new(attempt)));
        StartOutcome::Started(Box::new(StartedAttempt { epoch: started.epoch, work }))
    }

    async fn action_of(&self, schedule: &ScheduleId) -> Result<Option<Action>, Error> {
        let rows = self.transactions.load(&[(Noun::Schedule, schedule.to_string())]).await?;
        Ok(rows.get::<Schedule>(schedule).map(|schedule| schedule.definition.action.clone()))
    }
}

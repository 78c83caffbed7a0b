//! The policy request of a run, and how to restore it from the ledger later.
//!
//! Events do not store what follows from the run: its principal is its schedule, and its agent is the one
//! that it was queued for. Tier, agent details and facts are known at the start, and recorded then.

use super::{Cause, Ended, Event, Run, StartContext, Started};
use crate::actor::Actor;
use crate::agent::{Agent, AgentName};
use crate::approval::{self, PlannedTool};
use crate::authority::LeaseState;
use crate::backend::Tier;
use crate::budget::{Remaining, day, run_counter_limits};
use crate::policy_decision::{DecisionContext, Details, Facts, PolicyDecision, Request, Verdict};
use crate::schedule::{Action, Definition};
use crate::sealable_text::SealableText;
use crate::time::{Now, Timestamp};
use crate::tool::ToolCall;
use crate::{EventBody, RunId, ScheduleId};

/// The lease's name in the list of rules that matched.
pub const LEASE_RULE: &str = "@lease";

/// The capability of a run that prompts an agent.
const PROMPT: &str = "agent.prompt";

/// What policy would decide about a run of a schedule that starts now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyPreview {
    /// The decision, or why the run could not start.
    pub ruling: Result<PolicyDecision, Cause>,
    /// The installation is frozen: no run starts until it is thawed.
    pub is_frozen: bool,
}

/// Returns the policy decision that an event records, and its run.
///
/// A decision that needs approval is recorded when the approval is requested; the run's later start or end
/// is not a second decision. A decision by the lease counts only if the event has its facts.
pub fn recorded_decision(body: &EventBody) -> Option<(&RunId, &PolicyDecision)> {
    let has_facts = recorded_facts(body).is_some();
    let (id, ruling) = match body {
        EventBody::Approval(_, approval::Event::Requested(requested)) => {
            let by_lease = requested.ruling.rules.first().is_some_and(|rule| rule == LEASE_RULE);
            return (has_facts || !by_lease).then_some((&requested.plan.run, &requested.ruling));
        }
        EventBody::Run(id, Event::Started(Started { ruling: Some(ruling), .. })) => (id, ruling),
        EventBody::Run(id, Event::Ended(Ended { ruling: Some(ruling), .. })) => (id, ruling),
        _ => return None,
    };
    let by_lease = ruling.rules.iter().any(|rule| rule == LEASE_RULE);
    (ruling.verdict != Verdict::Ask && (has_facts || !by_lease)).then_some((id, ruling))
}

/// Returns the facts of the policy decision that an event records.
pub fn recorded_facts(body: &EventBody) -> Option<&Facts> {
    match body {
        EventBody::Approval(_, approval::Event::Requested(requested)) => requested.facts.as_ref(),
        _ => stored_context(body).map(|it| &it.facts),
    }
}

fn stored_context(body: &EventBody) -> Option<&DecisionContext> {
    match body {
        EventBody::Run(_, Event::Started(started)) => started.decision_context.as_deref(),
        EventBody::Run(_, Event::Ended(ended)) => ended.decision_context.as_deref(),
        _ => None,
    }
}

/// Returns the request of the policy decision that an event records, as far as the ledger has it.
pub fn recorded_request(body: &EventBody, run: &Run) -> Option<Request> {
    let tier = match body {
        EventBody::Approval(_, approval::Event::Requested(requested)) => {
            return Some(requested.request.clone());
        }
        EventBody::Run(_, Event::Started(started)) => Some(started.tier),
        EventBody::Run(_, Event::Ended(ended)) => ended.tier,
        _ => None,
    };
    match stored_context(body) {
        Some(recorded) => Some(recorded.request(run)),
        None => Some(request(&run.schedule, run.agent.as_ref(), tier?, Details::default())),
    }
}

/// Returns request and facts of the last policy decision about a run, if its row has them.
pub fn last_request(run: &Run) -> Option<(Request, &Facts)> {
    let recorded = run.decision_context.as_deref()?;
    Some((recorded.request(run), &recorded.facts))
}

impl DecisionContext {
    fn request(&self, run: &Run) -> Request {
        match self.request.as_deref() {
            Some(whole) => whole.clone(),
            None => request(&run.schedule, run.agent.as_ref(), self.tier, self.details.clone()),
        }
    }
}

/// Evaluates a request against the policy and the lease. An external action always needs at least a human's
/// approval, whatever the policy says.
pub fn evaluate(
    request: &Request,
    lease: LeaseState,
    evaluate_rules: impl FnOnce(&Request) -> PolicyDecision,
) -> PolicyDecision {
    let mut ruling = evaluate_rules(request);
    if request.tier == Tier::External {
        ruling.verdict = ruling.verdict.max(Verdict::Ask);
    }
    match lease {
        LeaseState::Full => {}
        LeaseState::Ask => ruling.add_verdict(Verdict::Ask, LEASE_RULE),
        LeaseState::Paused => ruling.add_verdict(Verdict::Deny, LEASE_RULE),
    }
    ruling
}

/// Previews the policy decision about a run of a schedule that starts now.
pub fn preview(
    schedule: &ScheduleId,
    definition: &Definition,
    agent: Option<&Agent>,
    start_context: &StartContext<'_>,
    now: Timestamp,
) -> PolicyPreview {
    let ruling = Work::of(schedule, definition, agent, start_context).map(|work| {
        evaluate(&work.request, start_context.lease_state(now), start_context.evaluate)
    });
    PolicyPreview { ruling, is_frozen: start_context.authority.frozen.is_some() }
}

impl PolicyPreview {
    /// Whether the run would start without a human.
    pub fn starts_without_human(&self) -> bool {
        let is_allowed = |ruling: &PolicyDecision| ruling.verdict == Verdict::Allow;
        !self.is_frozen && self.ruling.as_ref().is_ok_and(is_allowed)
    }
}

impl StartContext<'_> {
    /// The state of the installation's lease.
    pub(super) fn lease_state(&self, now: Timestamp) -> LeaseState {
        self.authority.lease_state(self.lease, Now { clock: self.clock, latest: now })
    }

    /// The facts that are recorded with the decision to start a run.
    pub(super) fn facts(
        &self,
        run: &Run,
        definition: &Definition,
        work: &Work<'_>,
        now: Timestamp,
    ) -> Facts {
        let rules = (&definition.terms, self.limits);
        let counter_limits =
            run_counter_limits(work.agent(), &run.schedule, work.tier, rules, day(now));
        Facts {
            left: Remaining::from_counters(&counter_limits, self.counters),
            unattended: !run.is_requested_by_human(),
            lease: self.lease_state(now),
            off: self.trust.disabled_switches(),
        }
    }
}

/// What a run executes.
pub(super) struct Work<'a> {
    pub(super) kind: WorkKind<'a>,
    /// The prompt, or the payload of the tool call.
    pub(super) text: &'a SealableText,
    /// The schedule's tier, but at least that of its agent or tool.
    pub(super) tier: Tier,
    /// The policy request.
    pub(super) request: Request,
}

#[derive(Clone, Copy)]
pub(super) enum WorkKind<'a> {
    Prompt(&'a Agent),
    Call { tool: &'a str, hash: &'a str },
}

impl<'a> Work<'a> {
    /// Resolves the action of a schedule, or returns why it cannot be executed.
    pub(super) fn of(
        schedule: &ScheduleId,
        definition: &'a Definition,
        agent: Option<&'a Agent>,
        start_context: &StartContext<'a>,
    ) -> Result<Work<'a>, Cause> {
        match &definition.action {
            Action::Prompt { agent: name, prompt } => {
                let missing =
                    || Cause::new("agent_missing", &format!("agent `{name}` does not exist"));
                let agent = agent.ok_or_else(missing)?;
                let tier = effective_tier(definition, agent);
                let request = request(
                    schedule,
                    Some(&agent.name),
                    tier,
                    (start_context.agent_details)(agent),
                );
                Ok(Work { kind: WorkKind::Prompt(agent), text: prompt, tier, request })
            }
            Action::Tool { tool, payload, hash } => {
                let missing =
                    || Cause::new("tool_missing", &format!("tool `{tool}` does not exist"));
                let tool_call =
                    start_context.tool_call.ok_or_else(missing)?.as_ref().map_err(Clone::clone)?;
                if hash.as_ref().is_some_and(|hash| *hash != tool_call.hash) {
                    let what = format!(
                        "tool `{tool}` has changed since the schedule was written; review it, then \
                         `midwatch schedule edit {schedule} --tool {tool}`"
                    );
                    return Err(Cause::new("tool_changed", &what));
                }
                let tier = definition.tier.unwrap_or(tool_call.tier).max(tool_call.tier);
                let kind = WorkKind::Call { tool, hash: &tool_call.hash };
                let request = tool_call.request(schedule, tier);
                Ok(Work { kind, text: payload, tier, request })
            }
        }
    }

    pub(super) fn agent(&self) -> Option<&'a Agent> {
        match self.kind {
            WorkKind::Prompt(agent) => Some(agent),
            WorkKind::Call { .. } => None,
        }
    }

    /// Whether it may be repeated after a crash. A tool call is: the run's idempotency key lets it take
    /// effect only once.
    pub(super) fn is_repeatable(&self) -> bool {
        let is_harmless = match self.kind {
            WorkKind::Prompt(agent) => agent.is_repeatable(),
            WorkKind::Call { .. } => true,
        };
        is_harmless && self.tier < Tier::External
    }

    pub(super) fn planned_tool(&self) -> Option<PlannedTool> {
        match self.kind {
            WorkKind::Prompt(_) => None,
            WorkKind::Call { tool, hash } => {
                Some(PlannedTool { name: tool.to_owned(), hash: hash.to_owned() })
            }
        }
    }
}

impl ToolCall {
    fn request(&self, schedule: &ScheduleId, tier: Tier) -> Request {
        let ToolCall { capability, agent, resource, .. } = self.clone();
        let base = request(schedule, agent.as_ref(), tier, Details::default());
        Request { capability, details: Details { resource, ..Details::default() }, ..base }
    }
}

/// Returns the tier of a schedule's prompts: its own, but at least its agent's.
pub fn effective_tier(definition: &Definition, agent: &Agent) -> Tier {
    definition.tier.unwrap_or(agent.tier).max(agent.tier)
}

/// Returns what is recorded of a decision besides what follows from its run. A tool call records its whole
/// request.
pub(super) fn decision_context(request: &Request, facts: Facts) -> DecisionContext {
    let is_prompt = request.capability == PROMPT;
    let details = Details { resource: None, ..request.details.clone() };
    DecisionContext {
        tier: request.tier,
        details: if is_prompt { details } else { Details::default() },
        request: (!is_prompt).then(|| Box::new(request.clone())),
        facts,
    }
}

/// Returns the policy request of a run that prompts an agent.
pub(super) fn request(
    schedule: &ScheduleId,
    agent: Option<&AgentName>,
    tier: Tier,
    details: Details,
) -> Request {
    prompt_request(Actor::for_schedule(schedule), agent, tier, details)
}

/// Returns the policy request of an actor that wants to prompt an agent.
pub fn prompt_request(
    by: Actor,
    agent: Option<&AgentName>,
    tier: Tier,
    details: Details,
) -> Request {
    Request {
        role: by.role,
        principal: by.into_name(),
        capability: PROMPT.to_owned(),
        tier,
        agent: agent.cloned(),
        details: Details { resource: agent.map(ToString::to_string), ..details },
    }
}

//! What a run asks of the standing orders, and what the log tells of it later.
//!
//! What is asked is not stored where it follows from the run: who asks is its schedule, and the agent
//! is the one that it was queued for. Only how far it reaches is decided when it is to begin.

use super::{Cause, Ended, Event, Orders, Run, Started};
use crate::actor::Role;
use crate::agent::{Agent, AgentName};
use crate::approval::{self, PlannedTool};
use crate::authority::Step;
use crate::backend::Tier;
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::ruling::{Details, Request, Ruling, Verdict};
use crate::schedule::{Action, Definition};
use crate::time::{Now, Timestamp};
use crate::tool::Called;
use crate::wording::Wording;

/// What the lease is called among the rules that had something to say.
pub const LEASE: &str = "@lease";

/// What becomes of the runs of a schedule if all stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foretold {
    /// What is said of each, or why there is nothing to begin.
    pub ruling: Result<Ruling, Cause>,
    /// None begins before the watch is thawed.
    pub is_frozen: bool,
}

/// The run of an event that tells what the standing orders decided, and what that was.
///
/// What was asked of a human is told when it is asked; that the run begins or ends then is no decision
/// of theirs again. What the lease decided is none either.
pub fn ruled(body: &Body) -> Option<(&RunId, &Ruling)> {
    let (id, ruling) = match body {
        Body::Approval(_, approval::Event::Asked(asked)) => {
            let by_lease = asked.ruling.rules.first().is_some_and(|rule| rule == LEASE);
            return (!by_lease).then_some((&asked.plan.run, &asked.ruling));
        }
        Body::Run(id, Event::Started(Started { ruling: Some(ruling), .. })) => (id, ruling),
        Body::Run(id, Event::Ended(Ended { ruling: Some(ruling), .. })) => (id, ruling),
        _ => return None,
    };
    let by_lease = ruling.rules.iter().any(|rule| rule == LEASE);
    (ruling.verdict != Verdict::Ask && !by_lease).then_some((id, ruling))
}

/// What they were asked when they decided that, as far as the log tells.
pub fn requested(body: &Body, run: &Run) -> Option<Request> {
    match body {
        Body::Approval(_, approval::Event::Asked(asked)) => Some(asked.request.clone()),
        Body::Run(_, Event::Started(started)) => {
            let stored = started.request.as_deref().cloned();
            Some(stored.unwrap_or_else(|| request_of(run, started.tier)))
        }
        Body::Run(_, Event::Ended(ended)) => {
            let stored = ended.request.as_deref().cloned();
            stored.or_else(|| ended.tier.map(|tier| request_of(run, tier)))
        }
        _ => None,
    }
}

/// What the standing orders say of a request. Whoever rules: nothing reaches outside without a human's
/// word.
pub fn judged(request: &Request, judge: impl FnOnce(&Request) -> Ruling) -> Ruling {
    let mut ruling = judge(request);
    if request.tier == Tier::External {
        ruling.verdict = ruling.verdict.max(Verdict::Ask);
    }
    ruling
}

/// What the standing orders will say of the runs of a schedule, by what holds now.
pub fn foretell(
    schedule: &ScheduleId,
    definition: &Definition,
    agent: Option<&Agent>,
    orders: &Orders<'_>,
    now: Timestamp,
) -> Foretold {
    let ruling = Task::of(schedule, definition, agent, orders.called)
        .map(|task| orders.rule(&task.request, now).0);
    Foretold { ruling, is_frozen: orders.authority.frozen.is_some() }
}

impl Foretold {
    /// No human is needed.
    pub fn is_by_itself(&self) -> bool {
        let is_allowed = |ruling: &Ruling| ruling.verdict == Verdict::Allow;
        !self.is_frozen && self.ruling.as_ref().is_ok_and(is_allowed)
    }
}

impl Orders<'_> {
    /// What they say of a request, and what the lease leaves of it.
    pub(super) fn rule(&self, request: &Request, now: Timestamp) -> (Ruling, Step) {
        let mut ruling = judged(request, self.judge);
        let step = self.authority.step(self.lease, Now { clock: self.clock, latest: now });
        match step {
            Step::Full => {}
            Step::Ask => ruling.join(Verdict::Ask, LEASE),
            Step::Paused => ruling.join(Verdict::Deny, LEASE),
        }
        (ruling, step)
    }
}

/// What a run is about to do.
pub(super) struct Task<'a> {
    pub(super) does: Does<'a>,
    /// What the agent or the tool is told.
    pub(super) words: &'a Wording,
    /// A schedule reaches at least as far as what it does.
    pub(super) tier: Tier,
    /// What the standing orders are asked.
    pub(super) request: Request,
}

#[derive(Clone, Copy)]
pub(super) enum Does<'a> {
    Prompt(&'a Agent),
    Call { tool: &'a str, hash: &'a str },
}

impl<'a> Task<'a> {
    /// Or why there is nothing to do.
    pub(super) fn of(
        schedule: &ScheduleId,
        definition: &'a Definition,
        agent: Option<&'a Agent>,
        called: Option<&'a Result<Called, Cause>>,
    ) -> Result<Task<'a>, Cause> {
        let tier = |least: Tier| definition.tier.unwrap_or(least).max(least);
        match &definition.action {
            Action::Prompt { agent: name, prompt } => {
                let missing =
                    || Cause::new("agent_missing", &format!("there is no agent `{name}`"));
                let agent = agent.ok_or_else(missing)?;
                let tier = tier(agent.tier);
                let request = request(schedule, Some(&agent.name), tier);
                Ok(Task { does: Does::Prompt(agent), words: prompt, tier, request })
            }
            Action::Tool { tool, payload, hash } => {
                let missing = || Cause::new("tool_missing", &format!("there is no tool `{tool}`"));
                let called = called.ok_or_else(missing)?.as_ref().map_err(Clone::clone)?;
                if hash.as_ref() != Some(&called.hash) {
                    let what = format!(
                        "the tool `{tool}` is not what it was when the schedule was written; look at it, then \
                         `midwatch schedule edit {schedule} --tool {tool}`"
                    );
                    return Err(Cause::new("tool_changed", &what));
                }
                let tier = tier(called.tier);
                let does = Does::Call { tool, hash: &called.hash };
                let request = called.request(schedule, tier);
                Ok(Task { does, words: payload, tier, request })
            }
        }
    }

    pub(super) fn agent(&self) -> Option<&'a Agent> {
        match self.does {
            Does::Prompt(agent) => Some(agent),
            Does::Call { .. } => None,
        }
    }

    /// Whether it may be begun again after a crash. A tool is called with a key of the run, so that its
    /// effect happens once however often it is called.
    pub(super) fn is_repeatable(&self) -> bool {
        let is_harmless = match self.does {
            Does::Prompt(agent) => agent.is_repeatable(),
            Does::Call { .. } => true,
        };
        is_harmless && self.tier < Tier::External
    }

    /// What is stored of the request, where it does not follow from the run.
    pub(super) fn stored_request(&self) -> Option<Box<Request>> {
        match self.does {
            Does::Prompt(_) => None,
            Does::Call { .. } => Some(Box::new(self.request.clone())),
        }
    }

    pub(super) fn planned_tool(&self) -> Option<PlannedTool> {
        match self.does {
            Does::Prompt(_) => None,
            Does::Call { tool, hash } => {
                Some(PlannedTool { name: tool.to_owned(), hash: hash.to_owned() })
            }
        }
    }
}

impl Called {
    fn request(&self, schedule: &ScheduleId, tier: Tier) -> Request {
        let Called { capability, agent, resource, .. } = self.clone();
        let details = Details { resource, ..Details::default() };
        Request { capability, details, ..request(schedule, agent.as_ref(), tier) }
    }
}

fn request_of(run: &Run, tier: Tier) -> Request {
    request(&run.schedule, run.agent.as_ref(), tier)
}

/// Who it is whose runs ask.
pub fn principal(schedule: &ScheduleId) -> String {
    format!("schedule:{schedule}")
}

/// What a run of a schedule asks of the standing orders.
pub(super) fn request(schedule: &ScheduleId, agent: Option<&AgentName>, tier: Tier) -> Request {
    Request {
        principal: principal(schedule),
        role: Role::Runner,
        capability: "agent.prompt".to_owned(),
        tier,
        agent: agent.cloned(),
        details: Details::default(),
    }
}

//! What a run asks of the standing orders, and what the log tells of it later.
//!
//! What is asked is not stored where it follows from the run: who asks is its schedule, and the agent
//! is the one that it was queued for. Only how far it reaches is decided when it is to begin.

use super::{Cause, Ended, Event, Orders, Run, Started};
use crate::actor::Role;
use crate::agent::{Agent, AgentName};
use crate::approval;
use crate::authority::Step;
use crate::backend::Tier;
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::ruling::{Details, Request, Ruling, Verdict};
use crate::schedule::{Action, Definition};
use crate::time::{Now, Timestamp};
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
        Body::Run(_, Event::Started(started)) => Some(request_of(run, started.tier)),
        Body::Run(_, Event::Ended(ended)) => ended.tier.map(|tier| request_of(run, tier)),
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
    let ruling = target(definition, agent).map(|(agent, _)| {
        let request = request(schedule, Some(&agent.name), tier(definition, agent));
        orders.rule(&request, now).0
    });
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

/// Who is told what, or why nobody can be.
pub(super) fn target<'a>(
    definition: &'a Definition,
    agent: Option<&'a Agent>,
) -> Result<(&'a Agent, &'a Wording), Cause> {
    match (&definition.action, agent) {
        (Action::Prompt { prompt, .. }, Some(agent)) => Ok((agent, prompt)),
        (Action::Prompt { agent, .. }, None) => {
            Err(Cause::new("agent_missing", &format!("there is no agent `{agent}`")))
        }
        (Action::Tool { tool, .. }, _) => {
            Err(Cause::new("tool_missing", &format!("there is no tool `{tool}` yet")))
        }
    }
}

/// A schedule reaches at least as far as its agent.
pub(super) fn tier(definition: &Definition, agent: &Agent) -> Tier {
    definition.tier.unwrap_or(agent.tier).max(agent.tier)
}

fn request_of(run: &Run, tier: Tier) -> Request {
    request(&run.schedule, run.agent.as_ref(), tier)
}

/// What a run of a schedule asks of the standing orders.
pub(super) fn request(schedule: &ScheduleId, agent: Option<&AgentName>, tier: Tier) -> Request {
    Request {
        principal: format!("schedule:{schedule}"),
        role: Role::Runner,
        capability: "agent.prompt".to_owned(),
        tier,
        agent: agent.cloned(),
        details: Details::default(),
    }
}

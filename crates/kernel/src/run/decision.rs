//! What a run asks of the standing orders, and what the log tells of it later.
//!
//! What is asked is not stored where it follows from the run: who asks is its schedule, and the agent
//! is the one that it was queued for. How far it reaches, what its agent stands on and what else was so is
//! known when it is to begin, and recorded then.

use super::{Cause, Ended, Event, Orders, Run, Started};
use crate::actor::Role;
use crate::agent::{Agent, AgentName};
use crate::approval;
use crate::authority::Step;
use crate::backend::Tier;
use crate::budget::{Left, day};
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::ruling::{Circumstances, Details, Facts, Request, Ruling, Verdict};
use crate::schedule::{Action, Definition};
use crate::tables::bounds;
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
/// of theirs again. What the lease decided is one where it was recorded how far it had run out.
pub fn ruled(body: &Body) -> Option<(&RunId, &Ruling)> {
    let is_told = facts(body).is_some();
    let (id, ruling) = match body {
        Body::Approval(_, approval::Event::Asked(asked)) => {
            let by_lease = asked.ruling.rules.first().is_some_and(|rule| rule == LEASE);
            return (is_told || !by_lease).then_some((&asked.plan.run, &asked.ruling));
        }
        Body::Run(id, Event::Started(Started { ruling: Some(ruling), .. })) => (id, ruling),
        Body::Run(id, Event::Ended(Ended { ruling: Some(ruling), .. })) => (id, ruling),
        _ => return None,
    };
    let by_lease = ruling.rules.iter().any(|rule| rule == LEASE);
    (ruling.verdict != Verdict::Ask && (is_told || !by_lease)).then_some((id, ruling))
}

/// What was so when they decided that, where it was recorded.
pub fn facts(body: &Body) -> Option<&Facts> {
    match body {
        Body::Approval(_, approval::Event::Asked(asked)) => asked.facts.as_ref(),
        _ => circumstances(body).map(|it| &it.facts),
    }
}

fn circumstances(body: &Body) -> Option<&Circumstances> {
    match body {
        Body::Run(_, Event::Started(started)) => started.circumstances.as_deref(),
        Body::Run(_, Event::Ended(ended)) => ended.circumstances.as_deref(),
        _ => None,
    }
}

/// What they were asked when they decided that, as far as the log tells.
pub fn requested(body: &Body, run: &Run) -> Option<Request> {
    let tier = match body {
        Body::Approval(_, approval::Event::Asked(asked)) => return Some(asked.request.clone()),
        Body::Run(_, Event::Started(started)) => Some(started.tier),
        Body::Run(_, Event::Ended(ended)) => ended.tier,
        _ => None,
    };
    let details = circumstances(body).map(|it| it.details.clone()).unwrap_or_default();
    Some(request(&run.schedule, run.agent.as_ref(), tier?, details))
}

/// What they were asked of a run last, and what was so then, where its row tells.
pub fn asked_of(run: &Run) -> Option<(Request, &Facts)> {
    let Circumstances { tier, details, facts } = run.circumstances.as_deref()?;
    Some((request(&run.schedule, run.agent.as_ref(), *tier, details.clone()), facts))
}

/// What the standing orders say of a request, and what the lease leaves of it. Whoever rules: nothing
/// reaches outside without a human's word.
pub fn judged(request: &Request, lease: Step, judge: impl FnOnce(&Request) -> Ruling) -> Ruling {
    let mut ruling = judge(request);
    if request.tier == Tier::External {
        ruling.verdict = ruling.verdict.max(Verdict::Ask);
    }
    match lease {
        Step::Full => {}
        Step::Ask => ruling.join(Verdict::Ask, LEASE),
        Step::Paused => ruling.join(Verdict::Deny, LEASE),
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
        let (tier, details) = (tier(definition, agent), (orders.details)(agent));
        let request = request(schedule, Some(&agent.name), tier, details);
        judged(&request, orders.step(now), orders.judge)
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
    /// What is left of the authority of the watch.
    pub(super) fn step(&self, now: Timestamp) -> Step {
        self.authority.step(self.lease, Now { clock: self.clock, latest: now })
    }

    /// What is so when a run of this agent is to begin.
    pub(super) fn facts(
        &self,
        run: &Run,
        definition: &Definition,
        agent: &Agent,
        now: Timestamp,
    ) -> Facts {
        let rules = (&definition.terms, self.limits);
        let bounds = bounds(agent, &run.schedule, tier(definition, agent), rules, day(now));
        Facts {
            left: Left::of(&bounds, self.used),
            unattended: !run.is_by_hand(),
            lease: self.step(now),
            off: self.trust.off(),
        }
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
pub fn tier(definition: &Definition, agent: &Agent) -> Tier {
    definition.tier.unwrap_or(agent.tier).max(agent.tier)
}

/// What a run of a schedule asks of the standing orders. What it is done to is the agent.
pub(super) fn request(
    schedule: &ScheduleId,
    agent: Option<&AgentName>,
    tier: Tier,
    details: Details,
) -> Request {
    Request {
        principal: format!("schedule:{schedule}"),
        role: Role::Runner,
        capability: "agent.prompt".to_owned(),
        tier,
        agent: agent.cloned(),
        details: Details { resource: agent.map(ToString::to_string), ..details },
    }
}

//! What a run asks of the standing orders, and what the log tells of it later.
//!
//! What is asked is not stored where it follows from the run: who asks is its schedule, and the agent
//! is the one that it was queued for. How far it reaches, what its agent stands on and what else was so is
//! known when it is to begin, and recorded then.

use super::{Cause, Ended, Event, Orders, Run, Started};
use crate::actor::{Actor, Role};
use crate::agent::{Agent, AgentName};
use crate::approval::{self, PlannedTool};
use crate::authority::Step;
use crate::backend::Tier;
use crate::budget::{Left, day};
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::ruling::{Circumstances, Details, Facts, Request, Ruling, Verdict};
use crate::schedule::{Action, Definition};
use crate::tables::bounds;
use crate::time::{Now, Timestamp};
use crate::tool::Called;
use crate::wording::Wording;

/// What the lease is called among the rules that had something to say.
pub const LEASE: &str = "@lease";

/// What a run asks that prompts an agent.
const PROMPT: &str = "agent.prompt";

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
        _ => recorded(body).map(|it| &it.facts),
    }
}

fn recorded(body: &Body) -> Option<&Circumstances> {
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
    match recorded(body) {
        Some(recorded) => Some(recorded.request_of(run)),
        None => Some(request(&run.schedule, run.agent.as_ref(), tier?, Details::default())),
    }
}

/// What they were asked of a run last, and what was so then, where its row tells.
pub fn asked_of(run: &Run) -> Option<(Request, &Facts)> {
    let recorded = run.circumstances.as_deref()?;
    Some((recorded.request_of(run), &recorded.facts))
}

impl Circumstances {
    fn request_of(&self, run: &Run) -> Request {
        match self.request.as_deref() {
            Some(whole) => whole.clone(),
            None => request(&run.schedule, run.agent.as_ref(), self.tier, self.details.clone()),
        }
    }
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
    let ruling = Task::of(schedule, definition, agent, orders)
        .map(|task| judged(&task.request, orders.step(now), orders.judge));
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

    /// What is so when a run is to begin.
    pub(super) fn facts(
        &self,
        run: &Run,
        definition: &Definition,
        task: &Task<'_>,
        now: Timestamp,
    ) -> Facts {
        let rules = (&definition.terms, self.limits);
        let bounds = bounds(task.agent(), &run.schedule, task.tier, rules, day(now));
        Facts {
            left: Left::of(&bounds, self.used),
            unattended: !run.is_by_hand(),
            lease: self.step(now),
            off: self.trust.off(),
        }
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
        orders: &Orders<'a>,
    ) -> Result<Task<'a>, Cause> {
        match &definition.action {
            Action::Prompt { agent: name, prompt } => {
                let missing =
                    || Cause::new("agent_missing", &format!("there is no agent `{name}`"));
                let agent = agent.ok_or_else(missing)?;
                let tier = tier(definition, agent);
                let request = request(schedule, Some(&agent.name), tier, (orders.details)(agent));
                Ok(Task { does: Does::Prompt(agent), words: prompt, tier, request })
            }
            Action::Tool { tool, payload, hash } => {
                let missing = || Cause::new("tool_missing", &format!("there is no tool `{tool}`"));
                let called = orders.called.ok_or_else(missing)?.as_ref().map_err(Clone::clone)?;
                if hash.as_ref().is_some_and(|hash| *hash != called.hash) {
                    let what = format!(
                        "the tool `{tool}` is not what it was when the schedule was written; look at it, then \
                         `midwatch schedule edit {schedule} --tool {tool}`"
                    );
                    return Err(Cause::new("tool_changed", &what));
                }
                let tier = definition.tier.unwrap_or(called.tier).max(called.tier);
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
        let of = request(schedule, agent.as_ref(), tier, Details::default());
        Request { capability, details: Details { resource, ..Details::default() }, ..of }
    }
}

/// Who it is whose runs ask.
pub fn principal(schedule: &ScheduleId) -> String {
    format!("schedule:{schedule}")
}

/// A schedule reaches at least as far as its agent.
pub fn tier(definition: &Definition, agent: &Agent) -> Tier {
    definition.tier.unwrap_or(agent.tier).max(agent.tier)
}

/// What is recorded of a decision besides what follows from its run; of a call nothing does.
pub(super) fn circumstances(request: &Request, facts: Facts) -> Circumstances {
    let is_prompt = request.capability == PROMPT;
    let details = Details { resource: None, ..request.details.clone() };
    Circumstances {
        tier: request.tier,
        details: if is_prompt { details } else { Details::default() },
        request: (!is_prompt).then(|| Box::new(request.clone())),
        facts,
    }
}

/// What a run of a schedule asks of the standing orders. What it is done to is the agent.
pub(super) fn request(
    schedule: &ScheduleId,
    agent: Option<&AgentName>,
    tier: Tier,
    details: Details,
) -> Request {
    let by = Actor { name: principal(schedule), role: Role::Runner };
    prompting(by, agent, tier, details)
}

/// What is asked of the standing orders by whoever wants to prompt an agent.
pub fn prompting(by: Actor, agent: Option<&AgentName>, tier: Tier, details: Details) -> Request {
    Request {
        principal: by.name,
        role: by.role,
        capability: PROMPT.to_owned(),
        tier,
        agent: agent.cloned(),
        details: Details { resource: agent.map(ToString::to_string), ..details },
    }
}

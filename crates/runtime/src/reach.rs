//! What an agent reaches that asks for itself: its own schedules, their runs and their questions, unless
//! the standing orders let it reach others.

use api::{
    AgentList, ApprovalList, Budget, BudgetLimit, Class, Code, Error, Happening, LiveRuns, Request,
    RunList, ScheduleAdd, ScheduleList, Status,
};
use kernel::agent::AgentName;
use kernel::ruling::{Details, Ruling, Verdict};
use kernel::schedule::{Action, AtWork, Definition, Maker, Refusal as NoSchedule};
use kernel::wording::Wording;
use kernel::{Actor, ApprovalId, Noun, Role, RunId, ScheduleId, agent, approval, run};

use crate::agents::name as agent_name;
use crate::approvals::{self, approval_id};
use crate::errors;
use crate::orders::{FORESEEN, sentence};
use crate::rows::{RowKey, Rows};
use crate::runs::run_id;
use crate::schedules::{edited_action, not_scheduled, parsed_id};
use crate::watch::Engine;

/// An agent that asks, and where to look for it.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) agent: AgentName,
    /// The run that asks, with its schedule, unless it is somebody with the agent's token.
    pub(crate) run: Option<(RunId, ScheduleId)>,
    reaches_others: bool,
    may_add: bool,
}

/// What somebody wants to reach, where not everybody does.
enum Wanted {
    Schedule(ScheduleId),
    Run(RunId),
    Approval(ApprovalId),
    Agent(AgentName),
}

impl Engine {
    /// The agent for which somebody asks to do this. Humans ask for themselves.
    pub(crate) async fn asking(
        &self,
        actor: &Actor,
        capability: &str,
        resource: Option<&str>,
    ) -> Result<Option<Asking>, Error> {
        if actor.role != Role::Runner {
            return Ok(None);
        }
        let (agent, run) = match actor.run() {
            Some(id) => {
                let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
                let unknown = || errors::run(run::Refusal::Unknown(id.clone()));
                let run = rows.run(&id).ok_or_else(unknown)?;
                (run.agent.clone(), Some((id, run.schedule.clone())))
            }
            None => (actor.name.parse().ok(), None),
        };
        let Some(agent) = agent else { return Ok(None) };
        let reaches_others = self.lets_reach(actor, &agent, capability, resource);
        let may_add = self.in_force().trust.schedules_by_runs;
        Ok(Some(Asking { agent, run, reaches_others, may_add }))
    }

    /// A rule of the operator's own has to say so: those of the posture are about what is one's own.
    fn lets_reach(
        &self,
        actor: &Actor,
        agent: &AgentName,
        capability: &str,
        resource: Option<&str>,
    ) -> bool {
        let details = Details { resource: resource.map(str::to_owned), ..Details::default() };
        let ruling = self.judged(actor, capability, Some(agent.clone()), details);
        let is_own_rule = |rule: &String| !rule.starts_with('@') && !rule.starts_with("baseline/");
        ruling.verdict == Verdict::Allow && ruling.rules.iter().any(is_own_rule)
    }

    /// Whether somebody may read what is sealed about an agent: a human who could change it, and the agent
    /// itself.
    pub(crate) async fn may_read_sealed(
        &self,
        actor: &Actor,
        of: Option<&AgentName>,
    ) -> Result<bool, Error> {
        if Role::Operator <= actor.role {
            return Ok(true);
        }
        let asking = self.asking(actor, "schedule.read", None).await?;
        Ok(asking.is_some_and(|asking| Some(&asking.agent) == of))
    }

    /// The request as far as whoever asks reaches, or why not. What is not their own is not there.
    pub(crate) async fn within_reach(
        &self,
        actor: &Actor,
        request: Request,
    ) -> Result<Request, Error> {
        if actor.role != Role::Runner {
            return Ok(request);
        }
        let reading = reading(&request);
        if actor.call().is_some() {
            // What it reads, the standing orders were asked about when its run began.
            self.ordered(actor, &request, None).await?;
            return Ok(request);
        }
        if actor.is_assistant() {
            self.ordered(actor, &request, None).await?;
            self.ordered_calls(actor, &request).await?;
            return match self.judged(actor, reading, None, Details::default()).verdict {
                Verdict::Allow => Ok(request),
                Verdict::Ask | Verdict::Deny => Err(errors::role_too_low(actor, Role::Operator)),
            };
        }
        let asking = self.asking(actor, reading, None).await?;
        let agent = asking.as_ref().map(|asking| &asking.agent);
        if agent.is_some() {
            self.ordered(actor, &request, agent).await?;
        }
        if asking.as_ref().is_some_and(|asking| asking.reaches_others) {
            return Ok(request);
        }
        let too_low = || errors::role_too_low(actor, Role::Operator);
        let Some(Asking { agent, .. }) = asking else { return Err(too_low()) };
        for id in followed(&request)? {
            let wanted = Wanted::Schedule(id);
            if !self.is_of(&agent, &wanted).await? {
                return Err(wanted.unknown());
            }
        }
        let own = || Some(agent.to_string());
        let wanted = match &request {
            Request::ScheduleShow(asked) => Wanted::Schedule(parsed_id(&asked.id)?),
            Request::Why(asked) => Wanted::Schedule(parsed_id(&asked.id)?),
            Request::RunShow(asked) => Wanted::Run(run_id(&asked.id)?),
            Request::RunRead(asked) => Wanted::Run(run_id(&asked.id)?),
            Request::RunWatch(asked) => Wanted::Run(run_id(&asked.id)?),
            Request::RunEvents(asked) => Wanted::Run(run_id(&asked.id)?),
            Request::PolicyExplain(asked) => Wanted::Run(run_id(&asked.run)?),
            Request::AgentShow(asked) => Wanted::Agent(agent_name(&asked.name)?),
            Request::ApprovalShow(asked) => Wanted::Approval(approval_id(&asked.id)?),
            Request::ScheduleList(list) => {
                return Ok(Request::ScheduleList(ScheduleList { agent: own(), ..list.clone() }));
            }
            Request::RunList(list) => {
                return Ok(Request::RunList(RunList { agent: own(), ..list.clone() }));
            }
            Request::ApprovalList(list) => {
                return Ok(Request::ApprovalList(ApprovalList { agent: own(), ..list.clone() }));
            }
            Request::AgentList(list) => {
                return Ok(Request::AgentList(AgentList { name: own(), ..list.clone() }));
            }
            // That anything happened at all, the status tells as well.
            Request::News(asked) => {
                for id in &asked.about {
                    self.check_own(&agent, wanted(id)?).await?;
                }
                return Ok(request);
            }
            // Each of these answers about the caller alone: `status` is cut down to the agent's own.
            Request::HealthAsk(_)
            | Request::StatusAsk(_)
            | Request::PolicyDecide(_)
            | Request::ToolMisuse(_)
            | Request::ToolEnd(_) => return Ok(request),
            // The policy has allowed the change; the kernel refuses it for another agent's schedule or run.
            Request::ScheduleAdd(_)
            | Request::ScheduleAddAll(_)
            | Request::ScheduleEdit(_)
            | Request::SchedulePause(_)
            | Request::ScheduleResume(_)
            | Request::ScheduleRemove(_)
            | Request::ScheduleFire(_)
            | Request::RunRetry(_)
            | Request::RunCancel(_) => return Ok(request),
            // Each of these names other agents, or is for people only.
            Request::LedgerTail(_)
            | Request::PolicyReplay(_)
            | Request::BudgetList(_)
            | Request::ToolList(_)
            | Request::CheckAsk(_)
            | Request::ConfigAsk(_)
            | Request::TokenList(_)
            | Request::AgentAdd(_)
            | Request::AgentEdit(_)
            | Request::AgentRemove(_)
            | Request::AgentTest(_)
            | Request::EventTell(_)
            | Request::ScheduleBackfill(_)
            | Request::ScheduleBackfillEnd(_)
            | Request::RunSettle(_)
            | Request::ApprovalDecide(_)
            | Request::Freeze(_)
            | Request::Thaw(_)
            | Request::LeaseRenew(_)
            | Request::ConfigReload(_)
            | Request::TokenCreate(_)
            | Request::TokenRevoke(_)
            | Request::LedgerCheckpoint(_)
            | Request::LedgerExport(_)
            | Request::LedgerRebuild(_) => return Err(too_low()),
        };
        self.check_own(&agent, wanted).await?;
        Ok(request)
    }

    async fn check_own(&self, agent: &AgentName, wanted: Wanted) -> Result<(), Error> {
        match self.is_of(agent, &wanted).await? {
            true => Ok(()),
            false => Err(wanted.unknown()),
        }
    }

    /// Whether the standing orders let a runner do this by itself.
    async fn ordered(
        &self,
        actor: &Actor,
        request: &Request,
        of: Option<&AgentName>,
    ) -> Result<(), Error> {
        let Class::Change(_) = request.class() else { return Ok(()) };
        let (principal, is_approved) = match actor.call() {
            Some(run) => self.caller(&run).await?,
            None => (actor.clone(), false),
        };
        let (capability, resource, agents) = self.judged_as(request, of).await?;
        for agent in agents {
            let details = Details { resource: resource.clone(), ..Details::default() };
            let ruling = self.judged(&principal, capability, agent, details);
            let code = match ruling.verdict {
                Verdict::Allow => continue,
                Verdict::Ask if is_approved => continue,
                Verdict::Ask => Code::HumanNeeded,
                Verdict::Deny => Code::Denied,
            };
            let what = format!("{} (`{capability}`)", sentence(&ruling, FORESEEN));
            return Err(Error::new(code, what).hint("ask a human to do it, with `midwatch`"));
        }
        Ok(())
    }

    /// For whom the call of a run is judged, and whether a human has said yes to it.
    async fn caller(&self, id: &RunId) -> Result<(Actor, bool), Error> {
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::run(run::Refusal::Unknown(id.clone()));
        let run = rows.run(id).ok_or_else(unknown)?;
        let is_asked = |ruling: &Ruling| ruling.verdict == Verdict::Ask;
        let is_approved = run.ruling.as_ref().is_some_and(is_asked);
        let principal = Actor { name: run::principal(&run.schedule), role: Role::Runner };
        Ok((principal, is_approved))
    }

    /// Whoever has a tool called by a schedule must be let call it themselves.
    async fn ordered_calls(&self, actor: &Actor, request: &Request) -> Result<(), Error> {
        let calls: Vec<(String, Wording)> = match request {
            Request::ScheduleAdd(asked) => call_in(&asked.action).into_iter().collect(),
            Request::ScheduleAddAll(asked) => {
                asked.schedules.iter().filter_map(|it| call_in(&it.action)).collect()
            }
            Request::ScheduleEdit(asked) => {
                let id = parsed_id(&asked.id)?;
                let rows = self.load(&[(Noun::Schedule, id.to_string())]).await?;
                let before = rows.schedule(&id).map(|it| &it.definition.action);
                match before
                    .map(|before| edited_action(before, asked.action.clone()))
                    .transpose()?
                {
                    Some(Action::Tool { tool, payload, .. }) => vec![(tool, payload)],
                    Some(Action::Prompt { .. }) | None => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        for (tool, payload) in calls {
            // Nobody can say what a tool does that is not there.
            let meant = self.meant(&tool, &payload).map_err(not_scheduled)?;
            self.ordered(actor, &meant.request, None).await?;
        }
        Ok(())
    }

    /// The class of a request, what it is done to, and the agents that it is about.
    pub(crate) async fn judged_as(
        &self,
        request: &Request,
        of: Option<&AgentName>,
    ) -> Result<(&'static str, Option<String>, Vec<Option<AgentName>>), Error> {
        let Class::Change(capability) = request.class() else {
            return Ok((reading(request), None, vec![None]));
        };
        let about = about(request)?;
        let resource = match about {
            About::Schedule(id) | About::Run(id) => Some(id.to_owned()),
            About::New(_) => None,
        };
        let mut agents: Vec<Option<AgentName>> = match (of, about) {
            // What is not its own, an agent does not learn of in this way either.
            (Some(agent), _) => vec![Some(agent.clone())],
            (None, About::New(agents)) => agents.into_iter().map(|it| it?.parse().ok()).collect(),
            (None, About::Schedule(id)) => vec![self.agent_of_schedule(id).await?],
            (None, About::Run(id)) => vec![self.agent_of_run(id).await?],
        };
        if let (Request::ScheduleEdit(edit), None) = (request, of) {
            agents.extend(edit.action.agent.as_ref().map(|agent| agent.parse().ok()));
        }
        Ok((capability, resource, agents))
    }

    /// A call that adds a schedule does so for the agent of that schedule, and within the same limits as any
    /// run.
    pub(crate) async fn calling(
        &self,
        id: &RunId,
        definition: Option<&Definition>,
    ) -> Result<Option<Asking>, Error> {
        let Some(agent) = definition.and_then(|it| it.action.agent()).cloned() else {
            return Ok(None);
        };
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::run(run::Refusal::Unknown(id.clone()));
        let schedule = rows.run(id).ok_or_else(unknown)?.schedule.clone();
        let may_add = self.in_force().trust.schedules_by_runs;
        Ok(Some(Asking { agent, run: Some((id.clone(), schedule)), reaches_others: true, may_add }))
    }

    async fn agent_of_schedule(&self, id: &str) -> Result<Option<AgentName>, Error> {
        let id = parsed_id(id)?;
        let rows = self.load(&[(Noun::Schedule, id.to_string())]).await?;
        Ok(rows.schedule(&id).and_then(|it| it.definition.action.agent()).cloned())
    }

    async fn agent_of_run(&self, id: &str) -> Result<Option<AgentName>, Error> {
        let id = run_id(id)?;
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        Ok(rows.run(&id).and_then(|run| run.agent.clone()))
    }

    /// How things stand, as far as whoever asks reaches: an agent learns of nothing that is not its own.
    pub(crate) async fn status_for(&self, actor: &Actor) -> Result<Status, Error> {
        let status = self.status().await?;
        let asking = match actor.is_assistant() {
            true => None,
            false => self.asking(actor, "schedule.read", None).await?,
        };
        let Some(Asking { agent, reaches_others: false, .. }) = asking else { return Ok(status) };
        let is_own = |limit: &BudgetLimit| limit.name.as_deref() == Some(agent.as_str());
        let used_up = status.budget.used_up.into_iter().filter(is_own).collect();
        Ok(Status {
            budget: Budget { used_up, ..status.budget },
            runs: LiveRuns { running: Vec::new(), ..status.runs },
            next: None,
            unknown: Vec::new(),
            approvals: Vec::new(),
            paused: Vec::new(),
            silenced: Vec::new(),
            notices: Vec::new(),
            ..status
        })
    }

    async fn is_of(&self, agent: &AgentName, wanted: &Wanted) -> Result<bool, Error> {
        Ok(match wanted {
            Wanted::Schedule(id) => {
                let rows = self.load(&[(Noun::Schedule, id.to_string())]).await?;
                rows.schedule(id).and_then(|it| it.definition.action.agent()) == Some(agent)
            }
            Wanted::Run(id) => {
                let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
                rows.run(id).and_then(|run| run.agent.as_ref()) == Some(agent)
            }
            Wanted::Approval(id) => {
                let rows = self.load(&[approvals::row_of(id)]).await?;
                rows.approval(id).and_then(|approval| approval.plan.agent.as_ref()) == Some(agent)
            }
            Wanted::Agent(other) => other == agent,
        })
    }
}

/// What a runner's request is about.
enum About<'a> {
    Schedule(&'a str),
    Run(&'a str),
    /// Schedules that are not there yet, for these agents.
    New(Vec<Option<&'a str>>),
}

/// The schedules whose ends a request wants to make others follow.
fn followed(request: &Request) -> Result<Vec<ScheduleId>, Error> {
    let after = |happening: &Happening| happening.after.as_deref().map(parsed_id);
    match request {
        Request::ScheduleAdd(asked) => after(&asked.happening).into_iter().collect(),
        Request::ScheduleAddAll(asked) => {
            asked.schedules.iter().filter_map(|it| after(&it.happening)).collect()
        }
        Request::ScheduleEdit(asked) => after(&asked.happening).into_iter().collect(),
        _ => Ok(Vec::new()),
    }
}

/// What a request is about that the standing orders have to allow. Of whom nobody can tell what they want to
/// change, nobody is let change it.
fn about(request: &Request) -> Result<About<'_>, Error> {
    Ok(match request {
        Request::ScheduleAdd(asked) => About::New(vec![agent_of(asked)]),
        Request::ScheduleAddAll(asked) => {
            About::New(asked.schedules.iter().map(agent_of).collect())
        }
        Request::ScheduleEdit(asked) => About::Schedule(&asked.id),
        Request::SchedulePause(asked) => About::Schedule(&asked.id),
        Request::ScheduleResume(asked) => About::Schedule(&asked.id),
        Request::ScheduleRemove(asked) => About::Schedule(&asked.id),
        Request::ScheduleFire(asked) => About::Schedule(&asked.id),
        Request::RunRetry(asked) => About::Run(&asked.id),
        Request::RunCancel(asked) => About::Run(&asked.id),
        other => return Err(errors::internal(format!("`{}` is about nothing", other.name()))),
    })
}

/// What an id stands for.
fn wanted(id: &str) -> Result<Wanted, Error> {
    match id.starts_with("run_") {
        true => run_id(id).map(Wanted::Run),
        false => parsed_id(id).map(Wanted::Schedule),
    }
}

/// The class by which a runner sees what a request is about.
fn reading(request: &Request) -> &'static str {
    match request.class() {
        Class::Read(capability) => capability,
        Class::Change(_) | Class::People => "schedule.read",
    }
}

fn call_in(action: &api::Action) -> Option<(String, Wording)> {
    let payload = action.payload.clone().unwrap_or_else(|| "{}".to_owned());
    Some((action.tool.clone()?, payload.into()))
}

fn agent_of(asked: &ScheduleAdd) -> Option<&str> {
    asked.action.agent.as_deref()
}

impl Asking {
    /// What a decision about what it asks for depends on and may change.
    pub(crate) fn rows(&self) -> Vec<RowKey> {
        let run = self.run.as_ref().map(|(run, _)| (Noun::Run, run.to_string()));
        run.into_iter().chain([(Noun::Agent, self.agent.to_string())]).collect()
    }

    /// What it depends on besides.
    pub(crate) fn reads(&self) -> Vec<RowKey> {
        let schedule = self.run.as_ref().map(|(_, id)| (Noun::Schedule, id.to_string()));
        schedule.into_iter().collect()
    }

    /// Both.
    pub(crate) fn all_rows(&self) -> Vec<RowKey> {
        [self.rows(), self.reads()].concat()
    }

    pub(crate) fn among<'a>(&'a self, rows: &'a Rows, beside: u32) -> Option<Maker<'a>> {
        let run = match &self.run {
            Some((id, schedule)) => {
                Some(AtWork { id, run: rows.run(id)?, schedule: rows.schedule(schedule) })
            }
            None => None,
        };
        let reaches_others = self.reaches_others;
        let (agent, may_add) = (rows.agent(&self.agent)?, self.may_add);
        Some(Maker { agent, run, beside, reaches_others, may_add })
    }
}

impl Wanted {
    /// As if there were none.
    fn unknown(self) -> Error {
        match self {
            Wanted::Schedule(id) => errors::schedule(NoSchedule::Unknown(id)),
            Wanted::Run(id) => errors::run(run::Refusal::Unknown(id)),
            Wanted::Approval(id) => errors::approval(approval::Refusal::Unknown(id)),
            Wanted::Agent(name) => errors::agent(agent::Refusal::Unknown(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::backend::Tier;
    use policy::capability;
    use serde_json::json;

    use super::*;

    fn request(call: &str, with: serde_json::Value) -> Request {
        serde_json::from_value(json!({ "call": call, "with": with })).unwrap()
    }

    /// What a request is said to be is a class of the closed table, and reaches as far as that says.
    #[test]
    fn what_a_runner_may_change_has_a_class_and_is_about_something() {
        let id = || json!({ "id": "sch_0a1b2c3d" });
        for (call, with) in [
            ("schedule.add_all", json!({ "schedules": [] })),
            ("schedule.edit", id()),
            ("schedule.pause", id()),
            ("schedule.resume", id()),
            ("schedule.remove", id()),
            ("schedule.fire", id()),
            ("run.retry", id()),
            ("run.cancel", id()),
        ] {
            let request = request(call, with);
            let Class::Change(capability) = request.class() else { panic!("{call}") };
            let found = capability::find(capability).expect(call);
            assert!(Tier::ReadOnly < found.tier && request.changes(), "{call}");
            assert!(about(&request).is_ok(), "{call}");
        }
        for (call, with) in [
            ("status", json!({})),
            ("ledger.tail", json!({})),
            ("schedule.list", json!({})),
            ("run.show", id()),
        ] {
            let request = request(call, with);
            let Class::Read(capability) = request.class() else { panic!("{call}") };
            assert_eq!(capability::find(capability).expect(call).tier, Tier::ReadOnly, "{call}");
            assert!(!request.changes(), "{call}");
        }
        let decide = json!({ "id": "apr_1", "decision": "approve" });
        assert_eq!(request("approval.decide", decide).class(), Class::People);
    }
}

//! The scope of an agent: its own schedules, their runs and approvals, unless a rule of the operator lets it manage those of
//! other agents. People see everything that their role lets them read.

use std::sync::Arc;

use api::{Class, Code, Error, EventTrigger, Request, Subject};
use kernel::agent::{Agent, AgentName};
use kernel::approval::Approval;
use kernel::policy_decision::{Details, PolicyDecision, Verdict};
use kernel::run::Run;
use kernel::schedule::{
    Action, AgentCaller, CallingRun, Definition, Refusal as ScheduleRefusal, Schedule,
};
use kernel::sealable_text::SealableText;
use kernel::{Actor, ApprovalId, Noun, Principal, Role, RunId, ScheduleId, agent, approval, run};

use crate::authorize::policy::{PRESENT_TENSE, Policy, decision_sentence};
use crate::authorize::schedule_action::{edited_action, invalid_call};
use crate::authorize::tool_catalog::ToolCatalog;
use crate::commit::ids::{agent_name, approval_id, run_id, schedule_id};
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::commit::transaction::Transactions;
use crate::config::Config;
use crate::errors;

#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) config: Arc<Config>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) tools: Arc<ToolCatalog>,
}

/// The agent that a runner acts for.
#[derive(Debug)]
pub(crate) struct RunnerScope {
    pub(crate) agent: AgentName,
    /// The calling run and its schedule. `None` for a caller with the agent's token.
    run: Option<(RunId, ScheduleId)>,
    pub(crate) may_manage_others: bool,
    runs_may_add: bool,
}

/// What the policy is asked about a request.
#[derive(Debug)]
pub(crate) struct PolicyTarget {
    pub(crate) capability: &'static str,
    pub(crate) resource: Option<String>,
    /// The agents that the request is about. `None` stands for a tool call.
    pub(crate) agents: Vec<Option<AgentName>>,
}

/// An object that a request names.
enum Target {
    Schedule(ScheduleId),
    Run(RunId),
    Approval(ApprovalId),
    Agent(AgentName),
}

impl Scope {
    /// The request, narrowed to what the caller may see, or a refusal. An object of another agent is reported as unknown.
    pub(crate) async fn restrict(
        &self,
        actor: &Actor,
        mut request: Request,
    ) -> Result<Request, Error> {
        if actor.role != Role::Runner {
            return Ok(request);
        }
        let capability = read_capability(&request);
        let too_low = || errors::role_too_low(actor, Role::Operator);
        if actor.tool_call_run().is_some() {
            // What it reads was part of the policy decision when its run started.
            self.check_policy(actor, &request, None).await?;
            return Ok(request);
        }
        if actor.is_assistant() {
            // This comes first, because the other checks depend on objects that it may not see.
            self.check_assistant_may_read(actor, capability)?;
            self.check_policy(actor, &request, None).await?;
            self.check_scheduled_calls(actor, &request).await?;
            return Ok(request);
        }
        let scope = self.runner_scope(actor, capability, None).await?;
        let RunnerScope { agent, may_manage_others: may_read_others, .. } =
            scope.ok_or_else(too_low)?;
        if !may_read_others {
            for id in other_schedules(&request)? {
                self.check_own(&agent, Target::Schedule(id)).await?;
            }
        }
        let may_access_others = match (request.class(), request.subject()) {
            (Class::People, _) => return Err(too_low()),
            (Class::Read(_), Subject::Installation) if !may_read_others => return Err(too_low()),
            (Class::Read(_), _) => may_read_others,
            (Class::Change(capability), subject) => {
                self.may_manage_others(actor, &agent, capability, subject.id())
            }
        };
        if !may_access_others {
            for target in targets(request.subject())? {
                self.check_own(&agent, target).await?;
            }
            request.narrow_to(agent.to_string());
        }
        // This comes last, because a rule may name an object that the agent may not see.
        self.check_policy(actor, &request, Some(&agent)).await?;
        Ok(request)
    }

    /// The agent whose objects alone a caller may refer to. `None` for a caller that may refer to all.
    pub(crate) async fn limited_to(
        &self,
        actor: &Actor,
        capability: &str,
    ) -> Result<Option<AgentName>, Error> {
        if actor.role != Role::Runner || actor.tool_call_run().is_some() {
            return Ok(None);
        }
        if actor.is_assistant() {
            return self.check_assistant_may_read(actor, capability).map(|()| None);
        }
        let too_low = || errors::role_too_low(actor, Role::Operator);
        let scope = self.runner_scope(actor, capability, None).await?.ok_or_else(too_low)?;
        Ok((!scope.may_manage_others).then_some(scope.agent))
    }

    fn check_assistant_may_read(&self, actor: &Actor, capability: &str) -> Result<(), Error> {
        let decision = self.policy.evaluate(actor, capability, None, Details::default());
        match decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Ask | Verdict::Deny => Err(errors::role_too_low(actor, Role::Operator)),
        }
    }

    /// The agent that a caller acts for. `None` for people, who act for themselves.
    pub(crate) async fn runner_scope(
        &self,
        actor: &Actor,
        capability: &str,
        resource: Option<&str>,
    ) -> Result<Option<RunnerScope>, Error> {
        if actor.role != Role::Runner {
            return Ok(None);
        }
        let (agent, run) = match actor.principal() {
            Principal::Run(id) => {
                let rows = self.transactions.load(&[row_key::<Run>(id)]).await?;
                let run = rows.get::<Run>(id).ok_or_else(|| unknown_run(id))?;
                (run.agent.clone(), Some((id.clone(), run.schedule.clone())))
            }
            // A runner's token belongs to the agent of its name.
            Principal::Person(name) => (name.as_str().parse().ok(), None),
            // No other principal acts for an agent.
            _ => (None, None),
        };
        let Some(agent) = agent else { return Ok(None) };
        let may_manage_others = self.may_manage_others(actor, &agent, capability, resource);
        let runs_may_add = self.config.active().trust.schedules_by_runs;
        Ok(Some(RunnerScope { agent, run, may_manage_others, runs_may_add }))
    }

    /// Only a rule of the operator's own can allow it: those of the posture are about an agent's own objects.
    fn may_manage_others(
        &self,
        actor: &Actor,
        agent: &AgentName,
        capability: &str,
        resource: Option<&str>,
    ) -> bool {
        let details = Details { resource: resource.map(str::to_owned), ..Details::default() };
        let decision = self.policy.evaluate(actor, capability, Some(agent.clone()), details);
        let is_operators = |rule: &String| !rule.starts_with('@') && !rule.starts_with("baseline/");
        decision.verdict == Verdict::Allow && decision.rules.iter().any(is_operators)
    }

    /// The scope of a tool call that adds a schedule: it acts for the agent of that schedule, within the limits of any run.
    pub(crate) async fn tool_call_scope(
        &self,
        id: &RunId,
        definition: Option<&Definition>,
    ) -> Result<Option<RunnerScope>, Error> {
        let Some(agent) = definition.and_then(|it| it.action.agent()).cloned() else {
            return Ok(None);
        };
        let rows = self.transactions.load(&[row_key::<Run>(id)]).await?;
        let schedule = rows.get::<Run>(id).ok_or_else(|| unknown_run(id))?.schedule.clone();
        let runs_may_add = self.config.active().trust.schedules_by_runs;
        let run = Some((id.clone(), schedule));
        Ok(Some(RunnerScope { agent, run, may_manage_others: true, runs_may_add }))
    }

    /// Whether a caller may read sealed text about an agent: people who could change it, and the agent itself.
    pub(crate) async fn may_read_sealed(
        &self,
        actor: &Actor,
        of: Option<&AgentName>,
    ) -> Result<bool, Error> {
        if Role::Operator <= actor.role {
            return Ok(true);
        }
        let scope = self.runner_scope(actor, "schedule.read", None).await?;
        Ok(scope.is_some_and(|scope| Some(&scope.agent) == of))
    }

    /// Refuses a change that the policy does not let a runner make by itself.
    async fn check_policy(
        &self,
        actor: &Actor,
        request: &Request,
        of: Option<&AgentName>,
    ) -> Result<(), Error> {
        let Class::Change(_) = request.class() else { return Ok(()) };
        let (principal, is_approved) = match actor.tool_call_run() {
            Some(run) => self.tool_call_principal(run).await?,
            None => (actor.clone(), false),
        };
        let PolicyTarget { capability, resource, agents } = self.policy_target(request, of).await?;
        for agent in agents {
            let details = Details { resource: resource.clone(), ..Details::default() };
            let decision = self.policy.evaluate(&principal, capability, agent, details);
            let code = match decision.verdict {
                Verdict::Allow => continue,
                Verdict::Ask if is_approved => continue,
                Verdict::Ask => Code::HumanNeeded,
                Verdict::Deny => Code::Denied,
            };
            let what = format!("{} (`{capability}`)", decision_sentence(&decision, PRESENT_TENSE));
            return Err(Error::new(code, what).hint("ask a person to do it, with `midwatch`"));
        }
        Ok(())
    }

    /// The principal of a tool call, and whether a person has approved it.
    async fn tool_call_principal(&self, id: &RunId) -> Result<(Actor, bool), Error> {
        let rows = self.transactions.load(&[row_key::<Run>(id)]).await?;
        let run = rows.get::<Run>(id).ok_or_else(|| unknown_run(id))?;
        let was_asked = |decision: &PolicyDecision| decision.verdict == Verdict::Ask;
        let is_approved = run.ruling.as_ref().is_some_and(was_asked);
        Ok((Actor::for_schedule(&run.schedule), is_approved))
    }

    /// A caller may schedule only tool calls that it could make itself.
    async fn check_scheduled_calls(&self, actor: &Actor, request: &Request) -> Result<(), Error> {
        let calls: Vec<(String, SealableText)> = match request {
            Request::ScheduleAdd(add) => tool_call_of(&add.action).into_iter().collect(),
            Request::ScheduleAddAll(list) => {
                list.schedules.iter().filter_map(|add| tool_call_of(&add.action)).collect()
            }
            Request::ScheduleEdit(edit) => {
                let id = schedule_id(&edit.id)?;
                let rows = self.transactions.load(&[(Noun::Schedule, id.to_string())]).await?;
                let before = rows.get::<Schedule>(&id).map(|it| &it.definition.action);
                let after = before.map(|before| edited_action(before, edit.action.clone()));
                match after.transpose()? {
                    Some(Action::Tool { tool, payload, .. }) => vec![(tool, payload)],
                    Some(Action::Prompt { .. }) | None => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        for (tool, payload) in calls {
            let call = self.tools.resolve(&tool, &payload).map_err(invalid_call)?;
            self.check_policy(actor, &call.request, None).await?;
        }
        Ok(())
    }

    /// What the policy is asked about a request. `of` is the calling agent, which learns nothing about other agents this way.
    pub(crate) async fn policy_target(
        &self,
        request: &Request,
        of: Option<&AgentName>,
    ) -> Result<PolicyTarget, Error> {
        let Class::Change(capability) = request.class() else {
            let capability = read_capability(request);
            return Ok(PolicyTarget { capability, resource: None, agents: vec![None] });
        };
        let subject = request.subject();
        let resource = subject.id().map(str::to_owned);
        let mut agents: Vec<Option<AgentName>> = match (of, subject) {
            (Some(agent), _) => vec![Some(agent.clone())],
            (None, Subject::NewSchedules(agents)) => {
                agents.into_iter().map(|it| it?.parse().ok()).collect()
            }
            (None, Subject::Schedule(id)) => vec![self.agent_of_schedule(id).await?],
            (None, Subject::Run(id)) => vec![self.agent_of_run(id).await?],
            (None, Subject::Caller) => vec![None],
            (None, _) => {
                return Err(errors::internal(format!("`{}` has no subject", request.name())));
            }
        };
        if let (Request::ScheduleEdit(edit), None) = (request, of) {
            agents.extend(edit.action.agent.as_ref().map(|agent| agent.parse().ok()));
        }
        Ok(PolicyTarget { capability, resource, agents })
    }

    async fn agent_of_schedule(&self, id: &str) -> Result<Option<AgentName>, Error> {
        let id = schedule_id(id)?;
        let rows = self.transactions.load(&[(Noun::Schedule, id.to_string())]).await?;
        Ok(rows.get::<Schedule>(&id).and_then(|it| it.definition.action.agent()).cloned())
    }

    async fn agent_of_run(&self, id: &str) -> Result<Option<AgentName>, Error> {
        let id = run_id(id)?;
        let rows = self.transactions.load(&[row_key::<Run>(&id)]).await?;
        Ok(rows.get::<Run>(&id).and_then(|run| run.agent.clone()))
    }

    async fn check_own(&self, agent: &AgentName, target: Target) -> Result<(), Error> {
        match self.owns(agent, &target).await? {
            true => Ok(()),
            false => Err(target.unknown()),
        }
    }

    async fn owns(&self, agent: &AgentName, target: &Target) -> Result<bool, Error> {
        Ok(match target {
            Target::Schedule(id) => {
                let rows = self.transactions.load(&[(Noun::Schedule, id.to_string())]).await?;
                rows.get::<Schedule>(id).and_then(|it| it.definition.action.agent()) == Some(agent)
            }
            Target::Run(id) => {
                let rows = self.transactions.load(&[row_key::<Run>(id)]).await?;
                rows.get::<Run>(id).and_then(|run| run.agent.as_ref()) == Some(agent)
            }
            Target::Approval(id) => {
                let rows = self.transactions.load(&[row_key::<Approval>(id)]).await?;
                rows.get::<Approval>(id).and_then(|approval| approval.plan.agent.as_ref())
                    == Some(agent)
            }
            Target::Agent(other) => other == agent,
        })
    }
}

impl RunnerScope {
    /// Rows that a decision about its request depends on and may change.
    pub(crate) fn rows(&self) -> Vec<RowKey> {
        let run = self.run.as_ref().map(|(run, _)| row_key::<Run>(run));
        run.into_iter().chain([row_key::<Agent>(&self.agent)]).collect()
    }

    /// Rows that such a decision reads besides.
    pub(crate) fn reads(&self) -> Vec<RowKey> {
        let schedule = self.run.as_ref().map(|(_, id)| (Noun::Schedule, id.to_string()));
        schedule.into_iter().collect()
    }

    pub(crate) fn all_rows(&self) -> Vec<RowKey> {
        [self.rows(), self.reads()].concat()
    }

    /// The caller as the kernel knows it, with how many schedules the same request has added before.
    pub(crate) fn caller<'a>(
        &'a self,
        rows: &'a Rows,
        added_in_batch: u32,
    ) -> Option<AgentCaller<'a>> {
        let run = match &self.run {
            Some((id, schedule)) => Some(CallingRun {
                id,
                run: rows.get::<Run>(id)?,
                schedule: rows.get::<Schedule>(schedule),
            }),
            None => None,
        };
        Some(AgentCaller {
            agent: rows.get::<Agent>(&self.agent)?,
            run,
            added_in_batch,
            may_manage_others: self.may_manage_others,
            runs_may_add: self.runs_may_add,
        })
    }
}

impl Target {
    fn unknown(self) -> Error {
        match self {
            Target::Schedule(id) => errors::refused(ScheduleRefusal::Unknown(id)),
            Target::Run(id) => unknown_run(&id),
            Target::Approval(id) => errors::refused(approval::Refusal::Unknown(id)),
            Target::Agent(name) => errors::refused(agent::Refusal::Unknown(name)),
        }
    }
}

fn unknown_run(id: &RunId) -> Error {
    errors::refused(run::Refusal::Unknown(id.clone()))
}

/// The objects that a request is about. Lists, new schedules and requests about the caller name none.
fn targets(subject: Subject<'_>) -> Result<Vec<Target>, Error> {
    Ok(match subject {
        Subject::Schedule(id) => vec![Target::Schedule(schedule_id(id)?)],
        Subject::Run(id) => vec![Target::Run(run_id(id)?)],
        Subject::Approval(id) => vec![Target::Approval(approval_id(id)?)],
        Subject::Agent(name) => vec![Target::Agent(agent_name(name)?)],
        // The response reveals only that something changed, which `status` shows too.
        Subject::SchedulesAndRuns(ids) => {
            ids.iter().map(|id| schedule_or_run(id)).collect::<Result<_, _>>()?
        }
        // The handlers of requests about the caller show the agent's own objects: `status` is cut down to them.
        Subject::Caller | Subject::List | Subject::NewSchedules(_) | Subject::Installation => {
            Vec::new()
        }
    })
}

/// The schedules that a request names besides its subject: those after whose runs another one fires, and the filter of a
/// list.
fn other_schedules(request: &Request) -> Result<Vec<ScheduleId>, Error> {
    let after = |trigger: &EventTrigger| trigger.after.as_deref().map(schedule_id);
    match request {
        Request::ScheduleAdd(add) => after(&add.event_trigger).into_iter().collect(),
        Request::ScheduleAddAll(list) => {
            list.schedules.iter().filter_map(|add| after(&add.event_trigger)).collect()
        }
        Request::ScheduleEdit(edit) => after(&edit.event_trigger).into_iter().collect(),
        Request::RunList(list) => list.schedule.as_deref().map(schedule_id).into_iter().collect(),
        _ => Ok(Vec::new()),
    }
}

fn schedule_or_run(id: &str) -> Result<Target, Error> {
    match id.starts_with("run_") {
        true => run_id(id).map(Target::Run),
        false => schedule_id(id).map(Target::Schedule),
    }
}

/// The capability by which a runner sees what a request is about.
pub(crate) fn read_capability(request: &Request) -> &'static str {
    match request.class() {
        Class::Read(capability) => capability,
        Class::Change(_) | Class::People => "schedule.read",
    }
}

fn tool_call_of(action: &api::Action) -> Option<(String, SealableText)> {
    let payload = action.payload.clone().map_or_else(|| "{}".to_owned(), String::from);
    Some((action.tool.clone()?, payload.into()))
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

    #[test]
    fn every_change_of_a_runner_has_a_capability_and_a_subject() {
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
            let subject = request.subject();
            let is_known = matches!(
                subject,
                Subject::Caller | Subject::Schedule(_) | Subject::Run(_) | Subject::NewSchedules(_)
            );
            assert!(is_known, "{call}: {subject:?}");
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

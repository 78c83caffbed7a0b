//! Adds one or many schedules, and edits one.

use std::collections::{HashMap, HashSet};

use api::{
    AddedSchedule, ApiRequest, Code, Error, ScheduleAdd, ScheduleAddAll, ScheduleAdded,
    ScheduleEdit, ScheduleEdited, SchedulesAdded, Serve,
};
use calendar::NoNextSlot;
use kernel::agent::{Agent, AgentName};
use kernel::authority::Authority;
use kernel::progress::Progress;
use kernel::run::Cause;
use kernel::schedule::{
    self, Action, AgentCaller, CHAIN_MAX, Command, Definition, SCHEDULE_DIGITS, Schedule,
    ScheduleContext,
};
use kernel::tool::{ToolCall, ToolName, ToolStats};
use kernel::{Actor, EventBody, Noun, ScheduleId, Timestamp};
use ledger::canonical_json;
use sha2::{Digest, Sha256};

use super::define::{self, ParsedDefinition};
use super::wire::{bounds, is_paused, upcoming, wire};
use super::{rows_of, schedule_context};
use crate::authorize::schedule_action::invalid_call;
use crate::authorize::scope::RunnerScope;
use crate::commit::caller::Caller;
use crate::commit::ids::schedule_id;
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors::{self, internal};
use crate::secrets::sealing::Purpose;

/// Schedules in one request.
const LIST_MAX: usize = 1_000;
/// Attempts to find an id that no other request takes first.
const ATTEMPTS_MAX: usize = 8;

/// A parsed request to add schedules, and its caller.
struct AddSchedules<'a> {
    caller: &'a Caller,
    parsed: Vec<ParsedDefinition>,
    is_dry_run: bool,
}

/// A schedule to add or edit, with what the decision depends on.
struct Draft {
    id: ScheduleId,
    definition: Definition,
    is_paused: bool,
    warnings: Vec<String>,
    upstream: Vec<(ScheduleId, Schedule, Progress)>,
    tool_call: Option<Result<ToolCall, Cause>>,
}

impl Serve<ScheduleAdd> for Engine {
    async fn serve(&self, caller: &Caller, add: ScheduleAdd) -> Result<ScheduleAdded, Error> {
        let dry_run = add.dry_run;
        let parsed = vec![self.resolve_and_seal(define::parse_add(add)?)?];
        let agent = parsed.first().and_then(|it| it.definition.action.agent().cloned());
        let request = AddSchedules { caller, parsed, is_dry_run: dry_run };
        let response = self.add::<ScheduleAdd>(request, |drafts, before, after| {
            let [Draft { id, warnings, tool_call, .. }] = drafts else {
                return Err(internal("one schedule became several"));
            };
            Ok(ScheduleAdded {
                schedule: wire(id, after)?,
                created: before.get::<Schedule>(id).is_none(),
                next: upcoming(id, after, self.time.now())?,
                bounds: bounds(id, after, self.time.now())?,
                policy: Some(self.policy.preview(id, after, tool_call.as_ref())?),
                warnings: [warnings.clone(), self.budgets.exceeded_by(id, after)?].concat(),
                dry_run,
            })
        });
        let mut added = response.await?;
        added.warnings.extend(self.agent_warnings(caller, agent.as_ref()).await?);
        Ok(added)
    }
}

/// Adds all schedules in one commit, or none.
impl Serve<ScheduleAddAll> for Engine {
    async fn serve(&self, caller: &Caller, list: ScheduleAddAll) -> Result<SchedulesAdded, Error> {
        if LIST_MAX < list.schedules.len() {
            return Err(Error::new(
                Code::InvalidInput,
                "at most 1000 schedules can be added at once",
            )
            .hint("use several requests"));
        }
        let names: Vec<String> = list.schedules.iter().map(|it| it.name.clone()).collect();
        let parsed = list.schedules.into_iter().enumerate().map(|(index, add)| {
            let name = add.name.clone();
            // Otherwise the caller could believe that this schedule is not added.
            let parsed = match add.dry_run {
                true => Err(Error::new(Code::InvalidInput, "`dry_run` is for the whole list")),
                false => define::parse_add(add).and_then(|parsed| self.resolve_and_seal(parsed)),
            };
            parsed.map_err(|error| in_list(index, &name, error))
        });
        let (parsed, dry_run) = (parsed.collect::<Result<Vec<_>, _>>()?, list.dry_run);
        let agents: Vec<Option<AgentName>> =
            parsed.iter().map(|it| it.definition.action.agent().cloned()).collect();
        let request = AddSchedules { caller, parsed, is_dry_run: dry_run };
        let response = self.add::<ScheduleAddAll>(request, |drafts, before, after| {
            let mut ids: HashSet<&ScheduleId> = HashSet::new();
            let added = drafts.iter().zip(&names).map(|(draft, name)| {
                let is_first = ids.insert(&draft.id);
                Ok(AddedSchedule {
                    id: draft.id.to_string(),
                    name: name.clone(),
                    created: is_first && before.get::<Schedule>(&draft.id).is_none(),
                    paused: is_paused(&draft.id, after),
                    next: upcoming(&draft.id, after, self.time.now())?,
                    policy: Some(self.policy.preview(
                        &draft.id,
                        after,
                        draft.tool_call.as_ref(),
                    )?),
                    warnings: [&*draft.warnings, &self.budgets.exceeded_by(&draft.id, after)?]
                        .concat(),
                })
            });
            let schedules = added.collect::<Result<_, Error>>()?;
            Ok(SchedulesAdded { schedules, dry_run })
        });
        let mut added = response.await?;
        let mut warned: HashSet<&AgentName> = HashSet::new();
        for (schedule, agent) in added.schedules.iter_mut().zip(&agents) {
            // The first schedule of an agent has the warnings about it.
            let agent = agent.as_ref().filter(|agent| warned.insert(agent));
            schedule.warnings.extend(self.agent_warnings(caller, agent).await?);
        }
        Ok(added)
    }
}

impl Serve<ScheduleEdit> for Engine {
    async fn serve(&self, caller: &Caller, edit: ScheduleEdit) -> Result<ScheduleEdited, Error> {
        let id = schedule_id(&edit.id)?;
        let rows = self.transactions.load(&rows_of(&id)).await?;
        let unknown = || errors::refused(schedule::Refusal::Unknown(id.clone()));
        let Schedule { definition, revision, .. } =
            rows.get::<Schedule>(&id).ok_or_else(unknown)?;
        let keeps_action = edit.action == api::Action::default();
        let parsed = define::parse_edit(definition, edit)?;
        // An edit that does not mention the tool keeps the version that was added.
        let parsed = match keeps_action {
            true => self.seal_text(parsed)?,
            false => self.resolve_and_seal(parsed)?,
        };
        let revision = *revision;
        let draft = self.draft(id.clone(), parsed).await?;
        let (rows, reads) = (draft.rows(), draft.reads());
        let transaction = Transaction { rows, reads, ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| {
            // Omitted fields keep their value, so they must not have changed since they were read.
            if let Some(schedule) = rows.get::<Schedule>(&id) {
                caller.check_version(schedule.revision.into())?;
                if schedule.revision != revision {
                    return Err(Error::new(
                        Code::Busy,
                        "the schedule was changed at the same time",
                    )
                    .hint("try again"));
                }
            }
            let definition = Box::new(draft.definition.clone());
            draft.decide(rows, now, &caller.actor, None, Command::Edit { definition })
        };
        let response = self.transactions.respond::<ScheduleEdit>(
            caller,
            transaction,
            decide,
            |before, after| {
                Ok(ScheduleEdited {
                    schedule: wire(&id, after)?,
                    changed: before.get::<Schedule>(&id) != after.get::<Schedule>(&id),
                    next: upcoming(&id, after, self.time.now())?,
                    bounds: bounds(&id, after, self.time.now())?,
                    policy: Some(self.policy.preview(&id, after, draft.tool_call.as_ref())?),
                    warnings: [&*draft.warnings, &self.budgets.exceeded_by(&id, after)?].concat(),
                })
            },
        );
        let mut edited = response.await?;
        let agent = draft.definition.action.agent();
        edited.warnings.extend(self.agent_warnings(caller, agent).await?);
        Ok(edited)
    }
}

impl Engine {
    /// Warnings about the agent of a schedule. The response to a repeated request has none.
    async fn agent_warnings(
        &self,
        caller: &Caller,
        agent: Option<&AgentName>,
    ) -> Result<Vec<String>, Error> {
        match agent.filter(|_| !caller.is_replayed()) {
            Some(agent) => self.warnings_about(agent).await,
            None => Ok(Vec::new()),
        }
    }

    async fn add<R: ApiRequest>(
        &self,
        request: AddSchedules<'_>,
        respond: impl Fn(&[Draft], &Rows, &Rows) -> Result<R::Response, Error> + Sync,
    ) -> Result<R::Response, Error> {
        let mut attempts = ATTEMPTS_MAX;
        loop {
            let drafts = self.drafts(request.parsed.clone()).await?;
            let respond = |before: &Rows, after: &Rows| respond(&drafts, before, after);
            match self.add_drafts::<R>(&request, &drafts, respond).await {
                // Another request has taken an id, or changed an upstream schedule.
                Err(conflict) if conflict.code == Code::Busy && 1 < attempts => attempts -= 1,
                other => return other,
            }
        }
    }

    async fn add_drafts<R: ApiRequest>(
        &self,
        request: &AddSchedules<'_>,
        drafts: &[Draft],
        respond: impl Fn(&Rows, &Rows) -> Result<R::Response, Error> + Sync,
    ) -> Result<R::Response, Error> {
        let AddSchedules { caller, is_dry_run, .. } = *request;
        let actor = &caller.actor;
        let mut rows: Vec<RowKey> = drafts.iter().flat_map(Draft::rows).collect();
        let mut reads: Vec<RowKey> = drafts.iter().flat_map(Draft::reads).collect();
        reads.push(row_key::<Authority>(&self.installation.instance));
        let scope = match actor.tool_call_run() {
            Some(run) => {
                let definition = drafts.first().map(|draft| &draft.definition);
                self.scope.tool_call_scope(run, definition).await?
            }
            None => self.scope.runner_scope(actor, "schedule.create", None).await?,
        };
        rows.extend(scope.iter().flat_map(RunnerScope::rows));
        reads.extend(scope.iter().flat_map(RunnerScope::reads));
        reads.sort();
        reads.dedup();
        reads.retain(|row| !rows.contains(row));
        let transaction = Transaction { rows, reads, is_dry_run, ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| {
            let mut ids: HashSet<&ScheduleId> = HashSet::new();
            let mut events = Vec::with_capacity(drafts.len());
            for (index, draft) in drafts.iter().enumerate() {
                // A schedule that is twice in the list is added once.
                if !ids.insert(&draft.id) {
                    continue;
                }
                let definition = Box::new(draft.definition.clone());
                let added = u32::try_from(events.len()).unwrap_or(u32::MAX);
                let agent = scope.as_ref().and_then(|scope| scope.caller(rows, added));
                let command = Command::Add { definition, paused: draft.is_paused };
                let decided = draft.decide(rows, now, actor, agent, command);
                events.extend(decided.map_err(|error| match drafts.len() {
                    1 => error,
                    _ => in_list(index, &draft.definition.name, error),
                })?);
            }
            Ok(events)
        };
        self.transactions.respond::<R>(caller, transaction, decide, respond).await
    }

    /// Gives each definition the id of the schedule that has it already, or a new one.
    async fn drafts(&self, parsed: Vec<ParsedDefinition>) -> Result<Vec<Draft>, Error> {
        let mut hashes = Vec::with_capacity(parsed.len());
        for ParsedDefinition { definition, .. } in &parsed {
            let content = canonical_json(&definition.without_tool_hash()).map_err(internal)?;
            hashes.push(Sha256::digest(content).into());
        }
        let short: Vec<RowKey> = hashes.iter().map(|hash| row_of(hash, SCHEDULE_DIGITS)).collect();
        let found = self.transactions.load(&short).await?;
        let mut indexes: HashMap<ScheduleId, usize> = HashMap::new();
        let mut drafts: Vec<Draft> = Vec::with_capacity(parsed.len());
        for (parsed, hash) in parsed.into_iter().zip(&hashes) {
            let in_batch = |id: &ScheduleId| Some(&drafts.get(*indexes.get(id)?)?.definition);
            let id = self.choose_id(hash, &parsed.definition, &found, in_batch).await?;
            indexes.insert(id.clone(), drafts.len());
            drafts.push(self.draft(id, parsed).await?);
        }
        Ok(drafts)
    }

    /// The shortest prefix of the hash that no schedule with another definition has.
    async fn choose_id<'a>(
        &self,
        hash: &[u8; 32],
        definition: &Definition,
        found: &Rows,
        in_batch: impl Fn(&ScheduleId) -> Option<&'a Definition>,
    ) -> Result<ScheduleId, Error> {
        let mut digits = SCHEDULE_DIGITS;
        let content = definition.without_tool_hash();
        loop {
            let id = ScheduleId::of(hash, digits);
            let loaded = match digits {
                SCHEDULE_DIGITS => None,
                _ => Some(self.transactions.load(&[row_of(hash, digits)]).await?),
            };
            let stored =
                loaded.as_ref().unwrap_or(found).get::<Schedule>(&id).map(|it| &it.definition);
            match stored.or_else(|| in_batch(&id)) {
                Some(other) if other.without_tool_hash() != content && digits < 64 => digits += 4,
                _ => return Ok(id),
            }
        }
    }

    /// Pins a tool call to the current version of the tool, if it exists, and seals the text.
    fn resolve_and_seal(&self, mut parsed: ParsedDefinition) -> Result<ParsedDefinition, Error> {
        let action = &mut parsed.definition.action;
        action.check_text().map_err(errors::refused)?;
        if let Action::Tool { tool, payload, hash } = action {
            *hash = match self.tools.resolve(tool, payload) {
                Ok(call) => Some(call.hash),
                Err(missing) if missing.code == Code::NotFound => None,
                Err(invalid) => return Err(invalid_call(invalid)),
            };
        }
        self.seal_text(parsed)
    }

    /// Seals the text of a sensitive schedule, and opens that of one that is not sensitive any more.
    fn seal_text(&self, mut parsed: ParsedDefinition) -> Result<ParsedDefinition, Error> {
        let action = &mut parsed.definition.action;
        if parsed.is_sensitive {
            action.check_text().map_err(errors::refused)?;
            let sealed = self.sealing.seal(action.text().clone(), Purpose::PrivateFields)?;
            *action.text_mut() = sealed;
        } else if action.text().is_sealed() {
            *action.text_mut() = self.sealing.open(action.text(), Purpose::PrivateFields)?.into();
        }
        Ok(parsed)
    }

    async fn draft(&self, id: ScheduleId, parsed: ParsedDefinition) -> Result<Draft, Error> {
        let ParsedDefinition { definition, is_paused, warnings, .. } = parsed;
        let upstream = self.upstream(&definition).await?;
        let tool_call = self.tool_calls.resolve(&definition.action).await?;
        Ok(Draft { id, definition, is_paused, warnings, upstream, tool_call })
    }

    /// The chain of schedules after which this one fires, the nearest first, up to one more than a chain may have.
    async fn upstream(
        &self,
        definition: &Definition,
    ) -> Result<Vec<(ScheduleId, Schedule, Progress)>, Error> {
        let mut upstream = Vec::new();
        let mut next = definition.trigger.upstream().map(|(id, _)| id.clone());
        while let Some(id) = next.take()
            && upstream.len() <= CHAIN_MAX
        {
            let rows = self.transactions.load(&rows_of(&id)).await?;
            if let (Some(schedule), Some(progress)) =
                (rows.get::<Schedule>(&id), rows.get::<Progress>(&id))
            {
                next = schedule.definition.trigger.upstream().map(|(id, _)| id.clone());
                upstream.push((id.clone(), schedule.clone(), progress.clone()));
            }
        }
        Ok(upstream)
    }
}

impl Draft {
    /// The rows of the schedule and of its upstream schedules, so that concurrent requests cannot build a cycle.
    fn rows(&self) -> Vec<RowKey> {
        let upstream = self.upstream.iter().map(|(id, ..)| (Noun::Schedule, id.to_string()));
        rows_of(&self.id).into_iter().chain(upstream).collect()
    }

    fn reads(&self) -> Vec<RowKey> {
        vec![match &self.definition.action {
            Action::Prompt { agent, .. } => row_key::<Agent>(agent),
            Action::Tool { tool, .. } => (Noun::Tool, tool.clone()),
        }]
    }

    fn decide(
        &self,
        rows: &Rows,
        now: Timestamp,
        actor: &Actor,
        caller: Option<AgentCaller<'_>>,
        command: Command,
    ) -> Result<Vec<EventBody>, Error> {
        let mut upstream = self.upstream.iter();
        if upstream.any(|(id, schedule, _)| rows.get::<Schedule>(id) != Some(schedule)) {
            let what = "an upstream schedule was changed at the same time";
            return Err(Error::new(Code::Busy, what).hint("try again"));
        }
        let (agent, tool) = match &self.definition.action {
            Action::Prompt { agent, .. } => (rows.get::<Agent>(agent), None),
            Action::Tool { tool, .. } => {
                let name: Option<ToolName> = tool.parse().ok();
                (None, name.and_then(|name| rows.get::<ToolStats>(&name)))
            }
        };
        let upstream = &*self.upstream;
        let context = schedule_context(rows, &self.id, now);
        let context = ScheduleContext { agent, tool, upstream, caller, ..context };
        schedule::decide(context, actor, command).map_err(|refusal| {
            never_fires(&self.definition, &refusal).unwrap_or_else(|| errors::refused(refusal))
        })
    }
}

fn row_of(hash: &[u8; 32], digits: usize) -> RowKey {
    (Noun::Schedule, ScheduleId::of(hash, digits).to_string())
}

fn in_list(index: usize, name: &str, error: Error) -> Error {
    let message = format!("schedule {} of the list, `{name}`: {}", index + 1, error.message);
    Error { message, ..error }
}

/// Why a schedule never fires, if its trigger is the reason.
fn never_fires(definition: &Definition, refusal: &schedule::Refusal) -> Option<Error> {
    let schedule::Refusal::NeverFires(after_us) = refusal else { return None };
    definition.trigger.timed()?;
    let reason = definition.calendar(None).ok()?.no_next_slot(*after_us)?;
    let hint = match reason {
        NoNextSlot::Past { .. } => "choose a later time",
        NoNextSlot::Ended { .. } | NoNextSlot::Never { .. } => {
            "`midwatch schedule next` shows when a trigger fires"
        }
    };
    Some(Error::new(Code::InvalidInput, reason).hint(hint))
}

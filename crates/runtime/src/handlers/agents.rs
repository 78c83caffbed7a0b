//! Adds, edits, removes, shows and lists agents.

use agents::{ServerCheck, supports};
use api::{
    AgentAdd, AgentAdded, AgentEdit, AgentEdited, AgentList, AgentRemove, AgentRemoved,
    AgentSettings, AgentShow, AgentShown, Agents, ApiRequest, Code, Error, Serve,
};
use kernel::agent::{self, Agent, AgentName, Command, PriceChange, Refusal};
use kernel::backend::{Backend, BackendKind, SecretRef, Settings, Tier};
use kernel::money::{InvalidMoney, Money, Price};
use kernel::{EventBody, Noun};

use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::commit::ids::agent_name;
use crate::commit::rows::{Rows, row_key};
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors::{self, ToError};
use crate::pages::{self, Order, PageRequest};
use crate::timestamps::rfc3339;
use crate::wire::containment;

/// Where to look at an agent.
#[derive(Clone, Copy, Debug)]
enum Look {
    Here,
    AlsoAtServer,
}

impl From<bool> for Look {
    fn from(also_at_server: bool) -> Look {
        if also_at_server { Look::AlsoAtServer } else { Look::Here }
    }
}

/// What was seen of an agent.
#[derive(Debug, Default)]
struct Looked {
    server: Vec<String>,
    warnings: Vec<String>,
}

impl Serve<AgentAdd> for Engine {
    async fn serve(&self, caller: &Caller, add: AgentAdd) -> Result<AgentAdded, Error> {
        let name = agent_name(&add.name)?;
        let kind = available_backend(&add.backend)?;
        // There is nothing to remove.
        let credential = add.settings.credential.clone().map(parse_secret).transpose()?;
        let allow_private = add.settings.allow_private.filter(|is_allowed| *is_allowed);
        let settings = AgentSettings { allow_private, ..add.settings };
        let agent::Change { settings, tier, repeatable, price, .. } = parse(settings)?;
        let register = agent::Register {
            backend: Backend::parse(kind, settings).map_err(errors::invalid)?,
            tier,
            credential,
            repeatable: repeatable.unwrap_or(false),
            price: Price {
                input: price.input.unwrap_or_default(),
                output: price.output.unwrap_or_default(),
                run: price.run.unwrap_or_default(),
            },
        };
        let register = Command::Register(register);
        let response = self.change_agent::<AgentAdd>(caller, &name, register, |before, after| {
            let agent = wire(existing(after)?);
            Ok(AgentAdded { agent, created: before != after, server: vec![], warnings: vec![] })
        });
        let added = response.await?;
        // The agent is added even if it cannot work yet.
        let Looked { server, warnings } =
            self.look_at_agent(caller, &name, add.look.into()).await?;
        Ok(AgentAdded { server, warnings, ..added })
    }
}

impl Serve<AgentEdit> for Engine {
    async fn serve(&self, caller: &Caller, edit: AgentEdit) -> Result<AgentEdited, Error> {
        let name = agent_name(&edit.name)?;
        let kind = edit.backend.as_deref().map(available_backend).transpose()?;
        let change = agent::Change { kind, ..parse(edit.settings)? };
        let change = Command::Change(change);
        let response = self.change_agent::<AgentEdit>(caller, &name, change, |before, after| {
            let agent = wire(existing(after)?);
            Ok(AgentEdited { agent, changed: before != after, server: vec![], warnings: vec![] })
        });
        let edited = response.await?;
        let Looked { server, warnings } =
            self.look_at_agent(caller, &name, edit.look.into()).await?;
        Ok(AgentEdited { server, warnings, ..edited })
    }
}

impl Serve<AgentRemove> for Engine {
    async fn serve(&self, caller: &Caller, remove: AgentRemove) -> Result<AgentRemoved, Error> {
        let name = agent_name(&remove.name)?;
        self.change_agent::<AgentRemove>(caller, &name, Command::Remove, |before, _| {
            Ok(AgentRemoved { agent: wire(existing(before)?) })
        })
        .await
    }
}

impl Serve<AgentShow> for Engine {
    async fn serve(&self, _: &Caller, show: AgentShow) -> Result<AgentShown, Error> {
        let name = agent_name(&show.name)?;
        let row = self.store.load(Noun::Agent.name(), name.as_str()).await;
        let row = codec::decode_row(Noun::Agent, row.map_err(errors::store)?)?;
        let unknown = || errors::refused(Refusal::Unknown(name));
        let agent = row.get().ok_or_else(unknown)?;
        Ok(AgentShown { agent: wire((agent, row.version)) })
    }
}

impl Serve<AgentList> for Engine {
    async fn serve(&self, caller: &Caller, list: AgentList) -> Result<Agents, Error> {
        if let Some(name) = list.name {
            let agents = match self.serve(caller, AgentShow { name }).await {
                Ok(shown) => vec![shown.agent],
                Err(unknown) if unknown.code == Code::NotFound => Vec::new(),
                Err(failed) => return Err(failed),
            };
            return Ok(Agents { agents, cursor: None });
        }
        let page = PageRequest {
            noun: Noun::Agent,
            order: Order::ById,
            limit: list.limit,
            cursor: list.cursor,
        };
        let (agents, cursor) = pages::page::<AgentName, _>(&*self.store, page, |item| {
            let agent = codec::decode_item(item)?;
            Ok(agent.as_ref().map(|agent| wire((agent, item.version))))
        })
        .await?;
        Ok(Agents { agents, cursor })
    }
}

impl Engine {
    /// What can be seen of an agent without prompting it. The response to a repeated request says nothing of it.
    async fn look_at_agent(
        &self,
        caller: &Caller,
        name: &AgentName,
        look: Look,
    ) -> Result<Looked, Error> {
        let rows = self.transactions.load(&[row_key::<Agent>(name)]).await?;
        let Some(agent) = rows.get::<Agent>(name).filter(|_| !caller.is_replayed()) else {
            return Ok(Looked::default());
        };
        let mut warnings = self.backend.find_problems(agent.clone()).await;
        let ServerCheck { facts, problems } = match look {
            Look::AlsoAtServer => self.backend.check_server(agent.clone()).await,
            Look::Here => ServerCheck::default(),
        };
        warnings.extend(problems);
        // A secret that cannot be read is found by both.
        warnings.dedup();
        Ok(Looked { server: facts, warnings })
    }

    /// Why runs of an agent would fail now, for a request about its schedules.
    pub(super) async fn warnings_about(&self, name: &AgentName) -> Result<Vec<String>, Error> {
        let rows = self.transactions.load(&[row_key::<Agent>(name)]).await?;
        let Some(agent) = rows.get::<Agent>(name) else { return Ok(Vec::new()) };
        let problems = self.backend.find_problems(agent.clone()).await;
        Ok(problems.iter().map(|problem| format!("agent `{name}`: {problem}")).collect())
    }

    async fn change_agent<R: ApiRequest>(
        &self,
        caller: &Caller,
        name: &AgentName,
        command: Command,
        respond: impl Fn(Option<Stored<'_>>, Option<Stored<'_>>) -> Result<R::Response, Error> + Sync,
    ) -> Result<R::Response, Error> {
        let transaction =
            Transaction { rows: vec![row_key::<Agent>(name)], ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| -> Result<Vec<EventBody>, Error> {
            if let Some((_, version)) = stored(rows, name) {
                caller.check_version(version)?;
            }
            let agent = rows.get::<Agent>(name);
            let event = agent::decide(name, agent, now, &caller.actor, command.clone());
            let event = event.map_err(errors::refused)?;
            Ok(event.map(|event| EventBody::Agent(name.clone(), event)).into_iter().collect())
        };
        let respond =
            |before: &Rows, after: &Rows| respond(stored(before, name), stored(after, name));
        self.transactions.respond::<R>(caller, transaction, decide, respond).await
    }
}

impl ToError for Refusal {
    fn to_error(&self) -> Error {
        match self {
            Refusal::Exists(name) => Error::new(Code::Exists, self).hint(format!(
                "change it with `midwatch agent edit {name}`, or choose another name"
            )),
            Refusal::Unknown(_) => {
                Error::new(Code::NotFound, self).hint("`midwatch agent list` shows the agents")
            }
            Refusal::TierTooLow { .. } => {
                Error::new(Code::TierTooLow, self).hint("choose that tier or a higher one")
            }
            Refusal::NeedsApproval(_) => Error::new(Code::NotNow, self).hint(
                "start a run of one of its schedules with `midwatch run start`, and approve that",
            ),
            Refusal::RoleTooLow { .. } => errors::too_low(self),
            Refusal::Invalid(invalid) => errors::invalid(invalid.clone()),
        }
    }
}

pub(crate) fn parse_tier(number: Option<u8>) -> Result<Option<Tier>, Error> {
    number.map(Tier::try_from).transpose().map_err(errors::invalid)
}

pub(crate) fn parse_money(text: Option<String>) -> Result<Option<Money>, Error> {
    text.map(|text| text.parse()).transpose().map_err(|invalid: InvalidMoney| {
        Error::new(Code::InvalidInput, invalid).hint(InvalidMoney::HINT)
    })
}

/// Parses the settings of a request. An empty credential removes the present one.
fn parse(settings: AgentSettings) -> Result<agent::Change, Error> {
    Ok(agent::Change {
        kind: None,
        settings: Settings {
            url: settings.url,
            model: settings.model,
            remote_id: settings.remote_id,
            argv: settings.argv,
            cwd: settings.cwd,
            env: settings.env,
            prompt_as: settings.prompt_as,
            time_limit_seconds: settings.time_limit_seconds,
            script: settings.script,
            api: settings.api,
            sending: settings.sending,
            allow_private: settings.allow_private,
        },
        tier: parse_tier(settings.tier)?,
        credential: match settings.credential {
            None => None,
            Some(text) if text.is_empty() => Some(None),
            Some(text) => Some(Some(parse_secret(text)?)),
        },
        repeatable: settings.repeatable,
        price: PriceChange {
            input: parse_money(settings.price_input)?,
            output: parse_money(settings.price_output)?,
            run: parse_money(settings.price_run)?,
        },
    })
}

fn parse_secret(text: String) -> Result<SecretRef, Error> {
    text.parse().map_err(errors::invalid)
}

/// A kind of backend that can be prompted. Another would be registered as if it worked.
fn available_backend(name: &str) -> Result<BackendKind, Error> {
    let kind = name.parse().map_err(errors::invalid)?;
    match supports(kind) {
        true => Ok(kind),
        false => Err(errors::unavailable(kind)),
    }
}

/// The agent of a command that the kernel has accepted.
fn existing(agent: Option<Stored<'_>>) -> Result<Stored<'_>, Error> {
    agent.ok_or_else(|| errors::internal("the changed agent does not exist"))
}

/// An agent and the version of its row.
type Stored<'a> = (&'a Agent, u64);

fn stored<'a>(rows: &'a Rows, name: &AgentName) -> Option<Stored<'a>> {
    let row = rows.row(Noun::Agent, name.as_str())?;
    Some((row.get()?, row.version))
}

fn wire((agent, version): Stored<'_>) -> api::Agent {
    let settings = agent.backend.settings();
    let Settings { url, model, remote_id, argv, cwd, env, prompt_as, .. } = settings;
    let Settings { time_limit_seconds, script, api, sending, allow_private, .. } = settings;
    let priced = |price: Money| (!price.is_zero()).then(|| price.to_string());
    let settings = AgentSettings {
        url,
        model,
        remote_id,
        argv,
        cwd,
        env,
        prompt_as,
        time_limit_seconds,
        script,
        api,
        sending,
        allow_private: allow_private.filter(|is_allowed| *is_allowed),
        tier: Some(agent.tier.number()),
        credential: agent.credential.as_ref().map(ToString::to_string),
        repeatable: Some(agent.is_repeatable()),
        price_input: priced(agent.price.input),
        price_output: priced(agent.price.output),
        price_run: priced(agent.price.run),
    };
    api::Agent {
        name: agent.name.to_string(),
        backend: agent.backend.kind().to_string(),
        containment: Some(containment(agent.backend.containment())),
        settings,
        registered_at: rfc3339(agent.registered_at),
        changed_at: rfc3339(agent.changed_at),
        version,
    }
}

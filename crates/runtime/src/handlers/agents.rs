//! Adds, edits, removes, shows and lists agents.

use api::{
    AgentAdd, AgentAdded, AgentEdit, AgentEdited, AgentList, AgentRemove, AgentRemoved, AgentShow,
    AgentShown, Agents, ApiRequest, Code, Error, Serve,
};
use kernel::agent::{self, Agent, AgentName, Command, PriceChange};
use kernel::backend::{Backend, SecretRef, Settings, Tier};
use kernel::money::{InvalidMoney, Money, Price};
use kernel::{EventBody, Noun};

use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::commit::ids::agent_name;
use crate::commit::rows::Rows;
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors;
use crate::pages::{self, Order, PageRequest};
use crate::timestamps::rfc3339;

impl Serve<AgentAdd> for Engine {
    async fn serve(&self, caller: &Caller, add: AgentAdd) -> Result<AgentAdded, Error> {
        let name = agent_name(&add.name)?;
        let kind = add.backend.parse().map_err(errors::invalid)?;
        let settings = Settings {
            url: add.url,
            model: add.model,
            remote_id: add.remote_id,
            argv: add.argv,
            cwd: add.cwd,
            env: add.env,
            prompt_as: add.prompt_as,
            time_limit_seconds: add.time_limit_seconds,
            script: add.script,
            api: add.api,
            sending: add.sending,
            allow_private: add.allow_private.then_some(true),
        };
        let register = agent::Register {
            backend: Backend::parse(kind, settings).map_err(errors::invalid)?,
            tier: parse_tier(add.tier)?,
            credential: add.credential.map(parse_secret).transpose()?,
            repeatable: add.repeatable,
            price: Price {
                input: parse_money(add.price_input)?.unwrap_or_default(),
                output: parse_money(add.price_output)?.unwrap_or_default(),
                run: parse_money(add.price_run)?.unwrap_or_default(),
            },
        };
        let register = Command::Register(register);
        let response = self.change_agent::<AgentAdd>(caller, &name, register, |before, after| {
            let (agent, server) = (wire(existing(after)?), Vec::new());
            Ok(AgentAdded { agent, created: before != after, server })
        });
        let added = response.await?;
        match add.look && !caller.is_replayed() {
            // The agent is added even if its server does not respond.
            true => Ok(AgentAdded { server: self.check_server(&name).await?, ..added }),
            false => Ok(added),
        }
    }
}

impl Serve<AgentEdit> for Engine {
    async fn serve(&self, caller: &Caller, edit: AgentEdit) -> Result<AgentEdited, Error> {
        let name = agent_name(&edit.name)?;
        let change = agent::Change {
            kind: edit.backend.map(|kind| kind.parse()).transpose().map_err(errors::invalid)?,
            settings: Settings {
                url: edit.url,
                model: edit.model,
                remote_id: edit.remote_id,
                argv: edit.argv,
                cwd: edit.cwd,
                env: edit.env,
                prompt_as: edit.prompt_as,
                time_limit_seconds: edit.time_limit_seconds,
                script: edit.script,
                api: edit.api,
                sending: edit.sending,
                allow_private: edit.allow_private,
            },
            tier: parse_tier(edit.tier)?,
            credential: match edit.credential {
                None => None,
                Some(text) if text.is_empty() => Some(None),
                Some(text) => Some(Some(parse_secret(text)?)),
            },
            repeatable: edit.repeatable,
            price: PriceChange {
                input: parse_money(edit.price_input)?,
                output: parse_money(edit.price_output)?,
                run: parse_money(edit.price_run)?,
            },
        };
        self.change_agent::<AgentEdit>(caller, &name, Command::Change(change), |before, after| {
            let agent = wire(existing(after)?);
            Ok(AgentEdited { agent, changed: before != after })
        })
        .await
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
        let unknown = || errors::agent(agent::Refusal::Unknown(name));
        Ok(AgentShown { agent: wire(row.get().ok_or_else(unknown)?) })
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
            Ok(codec::decode_item(item)?.as_ref().map(wire))
        })
        .await?;
        Ok(Agents { agents, cursor })
    }
}

impl Engine {
    async fn check_server(&self, name: &AgentName) -> Result<Vec<String>, Error> {
        let rows = self.transactions.load(&[(Noun::Agent, name.to_string())]).await?;
        match rows.get::<Agent>(name) {
            Some(agent) => Ok(self.backend.check_server(agent.clone()).await),
            None => Ok(Vec::new()),
        }
    }

    async fn change_agent<R: ApiRequest>(
        &self,
        caller: &Caller,
        name: &AgentName,
        command: Command,
        respond: impl Fn(Option<&Agent>, Option<&Agent>) -> Result<R::Response, Error>,
    ) -> Result<R::Response, Error> {
        let rows = vec![(Noun::Agent, name.to_string())];
        let transaction = Transaction { rows, ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| {
            let event =
                agent::decide(name, rows.get::<Agent>(name), now, &caller.actor, command.clone());
            let event = event.map_err(errors::agent)?;
            Ok(event.map(|event| EventBody::Agent(name.clone(), event)).into_iter().collect())
        };
        let respond = |before: &Rows, after: &Rows| {
            respond(before.get::<Agent>(name), after.get::<Agent>(name))
        };
        self.transactions.respond::<R>(caller, transaction, decide, respond).await
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

fn parse_secret(text: String) -> Result<SecretRef, Error> {
    text.parse().map_err(errors::invalid)
}

/// The agent of a command that the kernel has accepted.
fn existing(agent: Option<&Agent>) -> Result<&Agent, Error> {
    agent.ok_or_else(|| errors::internal("the changed agent does not exist"))
}

fn wire(agent: &Agent) -> api::Agent {
    let settings = agent.backend.settings();
    let priced = |price: Money| (!price.is_zero()).then(|| price.to_string());
    api::Agent {
        name: agent.name.to_string(),
        backend: agent.backend.kind().to_string(),
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
        allow_private: settings.allow_private.unwrap_or_default(),
        tier: agent.tier.number(),
        credential: agent.credential.as_ref().map(ToString::to_string),
        repeatable: agent.is_repeatable(),
        price_input: priced(agent.price.input),
        price_output: priced(agent.price.output),
        price_run: priced(agent.price.run),
        registered_at: rfc3339(agent.registered_at),
        changed_at: rfc3339(agent.changed_at),
    }
}

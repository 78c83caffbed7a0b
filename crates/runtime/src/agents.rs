//! Requests about agents, carried out.

use api::{
    AgentAdd, AgentAdded, AgentEdit, AgentEdited, AgentList, AgentRemove, AgentRemoved, AgentShow,
    AgentShown, Agents, Answer, Code, Error,
};
use kernel::agent::{self, Agent, AgentName, Command, NAME_BYTES_MAX, PriceChange};
use kernel::backend::{Backend, SecretRef, Settings, Tier};
use kernel::money::{InvalidMoney, Money, Price};
use kernel::{Actor, Body, Noun, Row, State};

use crate::errors;
use crate::page::{Listed, Order};
use crate::rows::Rows;
use crate::stored;
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Engine;

impl Engine {
    pub(crate) async fn agent_add(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: AgentAdd,
    ) -> Result<Answer, Error> {
        let name = name(&asked.name)?;
        let kind = asked.backend.parse().map_err(errors::invalid)?;
        let settings = Settings {
            url: asked.url,
            model: asked.model,
            remote_id: asked.remote_id,
            argv: asked.argv,
            cwd: asked.cwd,
            env: asked.env,
            prompt_as: asked.prompt_as,
            time_limit_seconds: asked.time_limit_seconds,
            script: asked.script,
            api: asked.api,
            sending: asked.sending,
            allow_private: asked.allow_private.then_some(true),
        };
        let register = agent::Register {
            backend: Backend::parse(kind, settings).map_err(errors::invalid)?,
            tier: tier(asked.tier)?,
            credential: asked.credential.map(secret).transpose()?,
            repeatable: asked.repeatable,
            price: Price {
                input: money(asked.price_input)?.unwrap_or_default(),
                output: money(asked.price_output)?.unwrap_or_default(),
                run: money(asked.price_run)?.unwrap_or_default(),
            },
        };
        let register = Command::Register(register);
        let answer = self.change_agent(actor, key, &name, register, |before, after| {
            let (agent, server) = (wire(known(after)?), Vec::new());
            Ok(Answer::AgentAdd(AgentAdded { agent, created: before != after, server }))
        });
        match answer.await? {
            // It is registered, whoever answers there.
            Answer::AgentAdd(added) if asked.look => {
                let server = self.look_at_server(&name).await?;
                Ok(Answer::AgentAdd(AgentAdded { server, ..added }))
            }
            answer => Ok(answer),
        }
    }

    async fn look_at_server(&self, name: &AgentName) -> Result<Vec<String>, Error> {
        let rows = self.load(&[(Noun::Agent, name.to_string())]).await?;
        match (self.doer(), rows.agent(name)) {
            (Some(doer), Some(agent)) => Ok(doer.look(agent.clone()).await),
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) async fn agent_edit(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: AgentEdit,
    ) -> Result<Answer, Error> {
        let name = name(&asked.name)?;
        let change = agent::Change {
            kind: asked.backend.map(|kind| kind.parse()).transpose().map_err(errors::invalid)?,
            settings: Settings {
                url: asked.url,
                model: asked.model,
                remote_id: asked.remote_id,
                argv: asked.argv,
                cwd: asked.cwd,
                env: asked.env,
                prompt_as: asked.prompt_as,
                time_limit_seconds: asked.time_limit_seconds,
                script: asked.script,
                api: asked.api,
                sending: asked.sending,
                allow_private: asked.allow_private,
            },
            tier: tier(asked.tier)?,
            credential: match asked.credential {
                None => None,
                Some(text) if text.is_empty() => Some(None),
                Some(text) => Some(Some(secret(text)?)),
            },
            repeatable: asked.repeatable,
            price: PriceChange {
                input: money(asked.price_input)?,
                output: money(asked.price_output)?,
                run: money(asked.price_run)?,
            },
        };
        self.change_agent(actor, key, &name, Command::Change(change), |before, after| {
            let agent = wire(known(after)?);
            Ok(Answer::AgentEdit(AgentEdited { agent, changed: before != after }))
        })
        .await
    }

    pub(crate) async fn agent_remove(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: AgentRemove,
    ) -> Result<Answer, Error> {
        let name = name(&asked.name)?;
        self.change_agent(actor, key, &name, Command::Remove, |before, _| {
            Ok(Answer::AgentRemove(AgentRemoved { agent: wire(known(before)?) }))
        })
        .await
    }

    pub(crate) async fn agent_show(&self, asked: AgentShow) -> Result<AgentShown, Error> {
        let name = name(&asked.name)?;
        let row = self.store().load(Noun::Agent.name(), name.as_str()).await;
        let row = stored::row(Noun::Agent, row.map_err(errors::store)?)?;
        let unknown = || errors::agent(agent::Refusal::Unknown(name));
        Ok(AgentShown { agent: wire(agent_in(&row).ok_or_else(unknown)?) })
    }

    pub(crate) async fn agent_list(&self, asked: AgentList) -> Result<Agents, Error> {
        if let Some(name) = asked.name {
            let agents = match self.agent_show(AgentShow { name }).await {
                Ok(shown) => vec![shown.agent],
                Err(unknown) if unknown.code == Code::NotFound => Vec::new(),
                Err(failed) => return Err(failed),
            };
            return Ok(Agents { agents, cursor: None });
        }
        let page = Listed {
            noun: Noun::Agent,
            order: Order::ById,
            limit: asked.limit,
            cursor: asked.cursor,
        };
        let (agents, cursor) = self
            .page::<AgentName, _>(page, |item| {
                let row = store::Row { version: item.version, body: item.body.clone() };
                Ok(agent_in(&stored::row(Noun::Agent, row)?).map(wire))
            })
            .await?;
        Ok(Agents { agents, cursor })
    }

    async fn change_agent(
        &self,
        actor: &Actor,
        key: Option<Key>,
        name: &AgentName,
        command: Command,
        answer: impl Fn(Option<&Agent>, Option<&Agent>) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let rows = vec![(Noun::Agent, name.to_string())];
        let change = Change { rows, ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| {
            let event = agent::decide(name, rows.agent(name), now, actor, command.clone());
            let event = event.map_err(errors::agent)?;
            Ok(event.map(|event| Body::Agent(name.clone(), event)).into_iter().collect())
        };
        self.transact(change, decide, |before, after| answer(before.agent(name), after.agent(name)))
            .await
    }
}

pub(crate) fn name(text: &str) -> Result<AgentName, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::InvalidInput, invalid).hint(format!(
            "use 1 to {NAME_BYTES_MAX} of a-z, 0-9, `-`, `_` and `.`, beginning with a letter or digit"
        ))
    })
}

fn tier(number: Option<u8>) -> Result<Option<Tier>, Error> {
    number.map(Tier::try_from).transpose().map_err(errors::invalid)
}

pub(crate) fn money(text: Option<String>) -> Result<Option<Money>, Error> {
    text.map(|text| text.parse()).transpose().map_err(|invalid: InvalidMoney| {
        Error::new(Code::InvalidInput, invalid).hint(InvalidMoney::HINT)
    })
}

fn secret(text: String) -> Result<SecretRef, Error> {
    text.parse().map_err(errors::invalid)
}

fn agent_in(row: &Row) -> Option<&Agent> {
    match row.state.as_ref()? {
        State::Agent(agent) => Some(agent),
        _ => None,
    }
}

/// The agent that the kernel has just accepted a command for.
fn known(agent: Option<&Agent>) -> Result<&Agent, Error> {
    agent.ok_or_else(|| errors::internal("the agent vanished while it was changed"))
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

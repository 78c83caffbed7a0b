//! Agents and their promptyoself ids: a Letta agent has its id on the Letta server, any other agent its name.

use api::{Agent, AgentList, Error, Handle, LIST_ITEMS_MAX, send};
use serde::Serialize;

/// Every agent that the caller can see.
#[derive(Debug, Default)]
pub struct Agents(Vec<Agent>);

/// An agent as promptyoself lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentItem {
    pub id: String,
    pub name: Option<String>,
    pub created_at: Option<String>,
    pub last_updated: Option<String>,
}

impl Agents {
    pub async fn load(handle: &dyn Handle) -> Result<Agents, Error> {
        let (mut agents, mut cursor) = (Vec::new(), None);
        loop {
            let request = AgentList { limit: Some(LIST_ITEMS_MAX), cursor, ..AgentList::default() };
            let page = send(handle, request).await?;
            agents.extend(page.agents);
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(Agents(agents));
            }
        }
    }

    /// Finds an agent by its promptyoself id. An agent with a remote id is not found by its name, which may be the
    /// remote id of another agent.
    pub fn find(&self, id: &str) -> Option<&Agent> {
        let has_id =
            |agent: &&Agent| agent.settings.remote_id.as_deref().unwrap_or(&agent.name) == id;
        self.0.iter().find(has_id)
    }

    pub fn named(&self, name: &str) -> Option<&Agent> {
        self.0.iter().find(|agent| agent.name == name)
    }

    pub fn id_of_name(&self, name: &str) -> String {
        self.named(name).map_or_else(|| name.to_owned(), id)
    }

    /// The id of the only agent, if there is exactly one.
    pub fn only_agent_id(&self) -> Option<String> {
        match self.0.as_slice() {
            [agent] => Some(id(agent)),
            _ => None,
        }
    }

    pub fn to_list(&self) -> Vec<AgentItem> {
        let listed = self.0.iter().map(|agent| AgentItem {
            id: id(agent),
            name: Some(agent.name.clone()),
            created_at: Some(agent.registered_at.clone()),
            last_updated: Some(agent.changed_at.clone()),
        });
        listed.collect()
    }

    /// The agents on Letta servers.
    pub fn letta_agents(&self) -> impl Iterator<Item = &Agent> {
        self.0.iter().filter(|agent| agent.backend == "letta")
    }
}

fn id(agent: &Agent) -> String {
    agent.settings.remote_id.clone().unwrap_or_else(|| agent.name.clone())
}

//! Agents by the ids that promptyoself knows them by: a Letta agent by its id at the server, any other
//! agent by its name.

use api::{Agent, AgentList, Error, Handle, LIST_ITEMS_MAX, ask};
use serde::Serialize;

/// All that whoever asks can see.
#[derive(Debug, Default)]
pub struct Agents(Vec<Agent>);

/// An agent as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    pub id: String,
    pub name: Option<String>,
    pub created_at: Option<String>,
    pub last_updated: Option<String>,
}

impl Agents {
    pub async fn registered(handle: &dyn Handle) -> Result<Agents, Error> {
        let (mut agents, mut cursor) = (Vec::new(), None);
        loop {
            let asked = AgentList { limit: Some(LIST_ITEMS_MAX), cursor, ..AgentList::default() };
            let page = ask(handle, asked).await?;
            agents.extend(page.agents);
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(Agents(agents));
            }
        }
    }

    /// One that has an id at a server goes by that alone: its name may be the id of another there.
    pub fn find(&self, id: &str) -> Option<&Agent> {
        let is_meant = |agent: &&Agent| agent.remote_id.as_deref().unwrap_or(&agent.name) == id;
        self.0.iter().find(is_meant)
    }

    pub fn id_of(&self, name: &str) -> String {
        let found = self.0.iter().find(|agent| agent.name == name);
        found.map_or_else(|| name.to_owned(), id)
    }

    /// The agent that is meant when there is no other.
    pub fn only(&self) -> Option<String> {
        match self.0.as_slice() {
            [agent] => Some(id(agent)),
            _ => None,
        }
    }

    pub fn listed(&self) -> Vec<Listed> {
        let listed = self.0.iter().map(|agent| Listed {
            id: id(agent),
            name: Some(agent.name.clone()),
            created_at: Some(agent.registered_at.clone()),
            last_updated: Some(agent.changed_at.clone()),
        });
        listed.collect()
    }

    /// Those at a server of Letta.
    pub fn of_letta(&self) -> impl Iterator<Item = &Agent> {
        self.0.iter().filter(|agent| agent.backend == "letta")
    }
}

fn id(agent: &Agent) -> String {
    agent.remote_id.clone().unwrap_or_else(|| agent.name.clone())
}

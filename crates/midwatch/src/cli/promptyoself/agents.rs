//! Agents by the ids that promptyoself knows them by: a Letta agent by its id at the server, any other
//! agent by its name.

use api::{Agent, AgentAdd, AgentList, Code, Error, LIST_ITEMS_MAX};
use kernel::agent::NAME_BYTES_MAX;

use super::settings::Letta;
use crate::access::ask;
use crate::context::Context;

#[derive(Debug, Default)]
pub(in crate::cli) struct Agents(Vec<Agent>);

impl Agents {
    /// All that are registered; none if there is no watch yet.
    pub(in crate::cli) async fn registered(context: &Context) -> Result<Agents, Error> {
        let mut agents = Vec::new();
        if context.storage()?.is_missing(&context.directory)? {
            return Ok(Agents(agents));
        }
        let mut cursor = None;
        loop {
            let asked = AgentList { limit: Some(LIST_ITEMS_MAX), cursor, ..AgentList::default() };
            let page = ask(context, asked).await?;
            agents.extend(page.agents);
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(Agents(agents));
            }
        }
    }

    pub(in crate::cli) fn find(&self, id: &str) -> Option<&Agent> {
        let remote = self.0.iter().find(|agent| agent.remote_id.as_deref() == Some(id));
        remote.or_else(|| self.0.iter().find(|agent| agent.name == id))
    }

    pub(super) fn id_of(&self, name: &str) -> String {
        let found = self.0.iter().find(|agent| agent.name == name);
        let remote = found.and_then(|agent| agent.remote_id.clone());
        remote.unwrap_or_else(|| name.to_owned())
    }
}

/// Registers a Letta agent, at the server of the environment, and returns its name.
pub(in crate::cli) async fn register(
    context: &Context,
    id: &str,
    letta: &Letta,
) -> Result<String, Error> {
    let add = AgentAdd {
        name: name_for(id),
        backend: "letta".to_owned(),
        url: Some(letta.url.clone()),
        remote_id: Some(id.to_owned()),
        credential: letta.credential.map(|name| format!("env:{name}")),
        // Whoever runs the program names the server, and it is often in a network of their own.
        allow_private: true,
        ..AgentAdd::default()
    };
    match ask(context, add).await {
        Ok(added) => Ok(added.agent.name),
        Err(refused) if refused.code == Code::RoleTooLow => {
            let what = format!("agent `{id}` is not registered, and you may not register it");
            Err(Error::new(Code::RoleTooLow, what).hint("ask an operator to register it"))
        }
        Err(refused) => Err(refused),
    }
}

/// A name that an agent may have; that of an id that is one already stays as it is.
pub(in crate::cli) fn name_for(id: &str) -> String {
    let plain = id.chars().map(|c| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '-' | '_' | '.') => c,
        _ => '-',
    });
    let plain: String = plain.take(NAME_BYTES_MAX).collect();
    match plain.trim_start_matches(['-', '_', '.']) {
        "" => "letta".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_makes_a_name() {
        for (id, expected) in [
            ("agent-123e4567", "agent-123e4567"),
            ("Agent 1/ä", "agent-1--"),
            ("_x", "x"),
            ("!!", "letta"),
        ] {
            let name = name_for(id);
            assert_eq!(name, expected, "{id}");
            assert!(name.parse::<kernel::agent::AgentName>().is_ok(), "{id}");
        }
        assert_eq!(name_for(&"a".repeat(99)).len(), NAME_BYTES_MAX);
    }
}

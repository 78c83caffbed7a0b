//! Agents that promptyoself commands know: those already registered, and Letta agents that are registered
//! with their first prompt.

use api::{AgentAdd, AgentSettings, Code, Error};
use compat::astra::short_hash;
use compat::promptyoself::agents::Agents;
use kernel::agent::NAME_BYTES_MAX;

use super::settings::Letta;
use super::{handle, has_no_data};
use crate::access::send;
use crate::context::Context;

/// All registered agents; none if there is no data yet.
pub(in crate::cli) async fn load(context: &Context) -> Result<Agents, Error> {
    match has_no_data(context)? {
        true => Ok(Agents::default()),
        false => Agents::load(&handle(context)).await,
    }
}

/// Registers a Letta agent at the server of the environment, and returns its name.
pub(super) async fn register(context: &Context, id: &str, letta: &Letta) -> Result<String, Error> {
    match register_as(context, &name_for(id), id, letta).await {
        // Another id makes the same name.
        Err(taken) if taken.code == Code::Exists => {
            register_as(context, &unique_name_for(id), id, letta).await
        }
        registered => registered,
    }
}

/// Registers a Letta agent under this name.
pub(in crate::cli) async fn register_as(
    context: &Context,
    name: &str,
    id: &str,
    letta: &Letta,
) -> Result<String, Error> {
    let add = AgentAdd {
        name: name.to_owned(),
        backend: "letta".to_owned(),
        settings: AgentSettings {
            url: Some(letta.url.clone()),
            remote_id: Some(id.to_owned()),
            credential: letta.credential.map(|name| format!("env:{name}")),
            // The user names the server, which is often in a private network.
            allow_private: Some(true),
            ..AgentSettings::default()
        },
        look: false,
    };
    match send(context, add).await {
        Ok(added) => Ok(added.agent.name),
        Err(refused) if refused.code == Code::RoleTooLow => {
            let what = format!("agent `{id}` is not registered, and you may not register it");
            Err(Error::new(Code::RoleTooLow, what).hint("ask an operator to register it"))
        }
        Err(refused) => Err(refused),
    }
}

/// A name with a hash of the id, so that no other id makes it.
pub(in crate::cli) fn unique_name_for(id: &str) -> String {
    let hash = short_hash(id);
    let plain: String = name_for(id).chars().take(NAME_BYTES_MAX - hash.len() - 1).collect();
    format!("{plain}-{hash}")
}

/// A valid agent name made from an id. An id that is a valid name stays unchanged.
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
    fn every_id_makes_a_valid_name() {
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
        let unique = ["Agent B", "AGENT-B", "agent-b"].map(unique_name_for);
        assert!(unique.iter().all(|name| name.parse::<kernel::agent::AgentName>().is_ok()));
        assert!(unique.iter().collect::<std::collections::HashSet<_>>().len() == 3, "{unique:?}");
        assert_eq!(unique_name_for(&"a".repeat(99)).len(), NAME_BYTES_MAX);
    }
}

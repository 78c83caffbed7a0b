//! `midwatch promptyoself agents`: the agents of the Letta server that the caller may see.

use api::{Code, Error, TokenList};
use serde::Serialize;

use super::letta_server::{LettaServer, RemoteAgent};
use super::settings::{Letta, only_agent};
use super::{has_no_data, has_token, registered_agents};
use crate::access::{no_installation, send};
use crate::context::Context;

#[derive(Serialize)]
#[serde(tag = "status", rename = "success")]
pub(super) struct AgentsResult {
    agents: Vec<RemoteAgent>,
    count: usize,
}

pub(super) async fn run(context: &Context) -> Result<AgentsResult, Error> {
    let agents = visible_agents(context).await?;
    Ok(AgentsResult { count: agents.len(), agents })
}

/// The agents of the server. A caller that is not an operator sees only registered agents in its scope; one
/// limited by PROMPTYOSELF_SELF_ONLY sees only itself.
pub(super) async fn visible_agents(context: &Context) -> Result<Vec<RemoteAgent>, Error> {
    let only_agent = only_agent(&context.environment)?;
    let in_scope = match is_operator(context).await? {
        true => None,
        false => Some(registered_agents::load(context).await?),
    };
    let letta = Letta::from_environment(&context.environment);
    let mut agents = LettaServer::new(&letta, &context.environment).agents().await?;
    agents.retain(|agent| only_agent.is_none_or(|id| id == agent.id));
    agents.retain(|agent| in_scope.as_ref().is_none_or(|scope| scope.find(&agent.id).is_some()));
    Ok(agents)
}

/// Whether the caller may use the Letta key of the environment without restriction. Agents may not,
/// whether a token identifies them or a run started them.
pub(super) async fn is_operator(context: &Context) -> Result<bool, Error> {
    match has_no_data(context)? {
        // Without data no token exists, so the caller's token is invalid.
        true if has_token(context) => Err(no_installation(&context.directory)),
        true => Ok(true),
        false => match send(context, TokenList { limit: Some(1), cursor: None }).await {
            Ok(_) => Ok(true),
            Err(refused) if refused.code == Code::RoleTooLow => Ok(false),
            Err(refused) => Err(refused),
        },
    }
}

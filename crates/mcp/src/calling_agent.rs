//! The agent that calls a server over stdio, and the Letta server of its environment, as the program that started the server
//! knows them. Only promptyoself's tools use this.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use api::{Agent, Error};
use futures::future::BoxFuture;

#[derive(Clone, Debug, Default)]
pub struct CallingAgent {
    /// Used when a call names no agent.
    pub default: Option<String>,
    /// The only agent whose prompts can be scheduled, listed and cancelled.
    pub only: Option<String>,
    /// Absent over HTTP, where the server has many clients.
    pub letta: Option<LettaConnection>,
    /// The agent that the client has chosen instead of `default`.
    chosen: Arc<Mutex<Option<String>>>,
}

/// The Letta server of the environment.
#[derive(Clone)]
pub struct LettaConnection {
    pub url: String,
    /// Whether the environment has a key for it.
    pub has_key: bool,
    /// Counts the agents that the caller may see there.
    pub count_agents: CountAgents,
    /// Checks that the server has this agent, unless it is registered at another server.
    pub validate_agent: ValidateAgent,
}

pub type CountAgents = Arc<dyn Fn() -> BoxFuture<'static, Result<usize, Error>> + Send + Sync>;
pub type ValidateAgent = Arc<dyn Fn(Agent) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

impl CallingAgent {
    pub fn new(
        default: Option<String>,
        only: Option<String>,
        letta: LettaConnection,
    ) -> CallingAgent {
        CallingAgent { default, only, letta: Some(letta), chosen: Arc::default() }
    }

    /// The agent that the client has chosen.
    pub(crate) fn chosen(&self) -> Option<String> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn choose(&self, agent_id: String) {
        *self.chosen.lock().unwrap_or_else(PoisonError::into_inner) = Some(agent_id);
    }
}

impl fmt::Debug for LettaConnection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LettaConnection { url, has_key, .. } = self;
        out.debug_struct("LettaConnection").field("url", url).field("has_key", has_key).finish()
    }
}

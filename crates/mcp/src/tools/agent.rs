//! The agents that are registered.

use api::{AgentList, AgentShow, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_MAX, paged};
use crate::schema::Kind::{Cursor, Object, Objects};
use crate::tool::{Input, Through, Tool, brief, page_of, shown};
use crate::toolset::Toolset;

/// What a list shows of each.
const BRIEF: &[&str] = &["name", "backend", "tier", "model", "repeatable"];

pub(super) const TOOLS: &[Tool] = &[
    Tool::reads::<AgentListed>(
        "agent_list",
        Toolset::Agent,
        "agent list",
        "List the agents that schedules can prompt. Agents are registered by humans.",
        &[("agents", Objects), ("cursor", Cursor)],
    ),
    Tool::reads::<AgentGet>(
        "agent_get",
        Toolset::Agent,
        "agent show",
        "Show one agent: its backend, tier and limits, never its secrets.",
        &[("agent", Object)],
    ),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentListed {
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<u32>,
    /// What an earlier page gave as `cursor`.
    cursor: Option<String>,
}

impl Input for AgentListed {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let AgentListed { limit, cursor } = self;
        let asked = &AgentList { name: None, limit: None, cursor };
        paged(limit, |limit| async move {
            let listed = through.read(AgentList { limit, ..asked.clone() }).await?;
            Ok(page_of("agents", brief(&listed.agents, BRIEF)?, listed.cursor))
        })
        .await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentGet {
    /// From agent_list.
    name: String,
}

impl Input for AgentGet {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        shown(&through.read(AgentShow { name: self.name }).await?)
    }
}

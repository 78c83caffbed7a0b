//! Tools for the registered agents.

use api::{AgentList, AgentShow, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_ITEMS_MAX, load_page};
use crate::schema::FieldType::{Cursor, Object, Objects};
use crate::selection::Toolset;
use crate::tool::{Tool, ToolContext, ToolInput, list_page, pick_fields, to_json};

/// Fields of each item of a list.
const LIST_FIELDS: &[&str] = &["name", "backend", "tier", "model", "repeatable"];

pub(super) const TOOLS: &[Tool] = &[
    Tool::reads::<AgentListInput>(
        "agent_list",
        Toolset::Agent,
        "agent list",
        "List the registered agents, which schedules can prompt. Only humans can register agents.",
        &[("agents", Objects), ("cursor", Cursor)],
    ),
    Tool::reads::<AgentGetInput>(
        "agent_get",
        Toolset::Agent,
        "agent show",
        "Show one agent: its backend, tier and limits, never its secrets.",
        &[("agent", Object)],
    ),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentListInput {
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_ITEMS_MAX))]
    limit: Option<u32>,
    /// The `cursor` of the previous page.
    cursor: Option<String>,
}

impl ToolInput for AgentListInput {
    async fn call(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let AgentListInput { limit, cursor } = self;
        let request = &AgentList { name: None, limit: None, cursor };
        load_page(limit, |limit| async move {
            let listed = context.read(AgentList { limit, ..request.clone() }).await?;
            Ok(list_page("agents", pick_fields(&listed.agents, LIST_FIELDS)?, listed.cursor))
        })
        .await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentGetInput {
    /// The name, from agent_list.
    name: String,
}

impl ToolInput for AgentGetInput {
    async fn call(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        to_json(&context.read(AgentShow { name: self.name }).await?)
    }
}

//! Tools for the registered agents.

use api::{AgentList, AgentShow};

use crate::arguments::renamed;
use crate::schema::FieldType::{Cursor, Object, Objects};
use crate::tool::Tool;
use crate::tools::Toolset;

pub(super) const TOOLS: &[Tool] = &[
    Tool::new::<AgentList>(
        "agent_list",
        Toolset::Agent,
        "agent list",
        "List the registered agents, which schedules can prompt. Only humans can register agents.",
        &[("agents", Objects), ("cursor", Cursor)],
    )
    .paged(&["name", "backend", "tier", "model", "repeatable"])
    .without(&["name"]),
    Tool::new::<AgentShow>(
        "agent_get",
        Toolset::Agent,
        "agent show",
        "Show one agent: its backend, tier and limits, never its secrets.",
        &[("agent", Object)],
    )
    .arguments(&[renamed("name", "agent").or_field().described("The name, from agent_list.")]),
];

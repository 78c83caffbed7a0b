//! Foundry's tools. Only `server` is offered: Foundry's sessions, specs and reviews do not exist here.

use api::{Code, Error, HealthShow};
use compat::foundry;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tool::{Tool, ToolContext, ToolInput};
use crate::tools::Toolset;

const ACTIONS: [&str; 2] = ["capabilities", "health"];

pub(crate) const TOOLS: &[Tool] = &[Tool::new::<Server>(
    "server",
    Toolset::Foundry,
    "status --capabilities",
    "Return the capabilities or the health of this server, in Foundry's response envelope.",
    &[],
)
.by_action()];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Server {
    /// `capabilities` or `health`.
    #[schemars(required, extend("enum" = ["capabilities", "health"]))]
    action: Option<String>,
}

impl ToolInput for Server {
    /// Clients may send an idempotency key, although no action changes anything yet.
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let action = self.action.unwrap_or_default();
        match action.trim().to_ascii_lowercase().as_str() {
            "capabilities" => Ok(foundry::capabilities(&context.read(HealthShow {}).await?)),
            "health" => Ok(foundry::health(&context.read(HealthShow {}).await?)),
            "" => Err(invalid_action("server", "action is required")),
            _ => Err(invalid_action(
                &format!("server.{action}"),
                &format!("unsupported action '{action}'"),
            )),
        }
    }
}

fn invalid_action(tool: &str, why: &str) -> Error {
    let what = format!(
        "Invalid field 'action' for {tool}: {why}. Expected one of: {}",
        ACTIONS.join(", ")
    );
    Error::new(Code::BadUsage, what).hint("Provide a valid 'action' value")
}

//! The tools of Foundry, as far as there is something behind them: sessions, specs and reviews are not here
//! yet, and what does not work is not listed.

use api::{Code, Error, HealthAsk};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::{Input, Through, Tool};
use crate::toolset::Toolset;

const ACTIONS: [&str; 2] = ["capabilities", "health"];
const SCHEMA_VERSION: &str = "1.0.0";
const API_VERSION: &str = "2024-11-01";

pub(super) const TOOLS: &[Tool] = &[Tool::writes::<Server>(
    "server",
    Toolset::Foundry,
    "status --capabilities",
    "Say what this server can do, or whether it is well, in an envelope of Foundry.",
    &[],
)
.by_action()];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Server {
    /// `capabilities` or `health`.
    #[schemars(required, extend("enum" = ["capabilities", "health"]))]
    action: Option<String>,
    /// Nothing that it does changes anything, so it is not looked at.
    #[serde(rename = "idempotency_key")]
    _idempotency_key: Option<String>,
}

impl Input for Server {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let action = self.action.unwrap_or_default();
        match action.trim().to_ascii_lowercase().as_str() {
            "capabilities" => capabilities(through).await,
            "health" => health(through).await,
            "" => Err(unfit("server", "action is required")),
            _ => Err(unfit(&format!("server.{action}"), &format!("unsupported action '{action}'"))),
        }
    }
}

fn unfit(place: &str, why: &str) -> Error {
    let what = format!(
        "Invalid field 'action' for {place}: {why}. Expected one of: {}",
        ACTIONS.join(", ")
    );
    Error::new(Code::BadUsage, what).hint("Provide a valid 'action' value")
}

/// What belongs to sessions is said to be absent, so that a supervisor stops before it begins.
async fn capabilities(through: &Through<'_>) -> Result<Value, Error> {
    let watch = through.read(HealthAsk {}).await?.watch;
    let autonomy = json!({
        "autonomy_sessions": false,
        "autonomy_fidelity_gates": false,
        "autonomy_gate_invariants": false,
    });
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "capabilities": {
            "response_version": "response-v2",
            "streaming": false,
            "batch_operations": false,
            "pagination": false,
            "max_batch_size": 1,
            "rate_limit_headers": false,
            "formats": ["json"],
            "autonomy_sessions": false,
            "autonomy_fidelity_gates": false,
            "autonomy_gate_invariants": false,
            "gate_enforcement_default": "strict",
        },
        "runtime": {
            "autonomy": {
                "supported_by_binary": autonomy,
                "enabled_now": autonomy,
                "posture_profile": watch.posture,
                "security": {
                    "role": "autonomy_runner",
                    "allow_lock_bypass": false,
                    "allow_gate_waiver": false,
                    "enforce_required_phase_gates": true,
                },
            },
            "conventions": {
                "discovery_as_hints": true,
                "responses_as_truth": true,
                "description": "What a server lists is a hint; what it answers is so.",
            },
        },
        "server_version": watch.version,
        "api_version": API_VERSION,
    }))
}

async fn health(through: &Through<'_>) -> Result<Value, Error> {
    let health = through.read(HealthAsk {}).await?;
    Ok(json!({
        "status": if health.is_well() { "healthy" } else { "unhealthy" },
        "kept": health.watch.kept,
        "server_version": health.watch.version,
    }))
}

//! Foundry: its response envelope, its error codes, and what its `server` tool returns.
//!
//! Foundry's sessions, specs and reviews do not exist here; the capabilities say so.

use api::{Code, Error, Health};
use serde_json::{Value, json};

const SCHEMA_VERSION: &str = "1.0.0";
const API_VERSION: &str = "2024-11-01";
const RESPONSE_VERSION: &str = "response-v2";

/// The envelope of every answer. It has exactly four members.
pub fn envelope(answer: Result<Value, Error>, request_id: &str) -> Value {
    let meta = json!({"version": RESPONSE_VERSION, "request_id": request_id});
    match answer {
        Ok(data) => json!({"success": true, "data": data, "error": null, "meta": meta}),
        Err(Error { code, message, hint }) => {
            let (error_code, error_type) = error_code_and_type(code);
            let data = match hint {
                Some(hint) => json!({
                    "error_code": error_code,
                    "error_type": error_type,
                    "remediation": hint,
                }),
                None => json!({"error_code": error_code, "error_type": error_type}),
            };
            json!({"success": false, "data": data, "error": message, "meta": meta})
        }
    }
}

fn error_code_and_type(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::BadUsage => ("INVALID_FORMAT", "validation"),
        Code::InvalidInput | Code::TierTooLow => ("VALIDATION_ERROR", "validation"),
        Code::NotFound => ("NOT_FOUND", "not_found"),
        Code::TokenInvalid => ("UNAUTHORIZED", "authentication"),
        Code::RoleTooLow | Code::HumanNeeded | Code::Denied | Code::SwitchedOff => {
            ("AUTHORIZATION", "authorization")
        }
        Code::Exists | Code::KeyTaken | Code::NotNow | Code::Stale => ("CONFLICT", "conflict"),
        Code::LimitReached | Code::BudgetExhausted => ("RATE_LIMIT_EXCEEDED", "rate_limit"),
        Code::Busy | Code::Unreachable | Code::AlreadyRunning | Code::DatabaseAway => {
            ("UNAVAILABLE", "unavailable")
        }
        _ => ("INTERNAL_ERROR", "internal"),
    }
}

/// The result of the action `capabilities`. It reports sessions as absent, so that a supervisor does not start one.
pub fn capabilities(health: &Health) -> Value {
    let autonomy = json!({
        "autonomy_sessions": false,
        "autonomy_fidelity_gates": false,
        "autonomy_gate_invariants": false,
    });
    json!({
        "schema_version": SCHEMA_VERSION,
        "capabilities": {
            "response_version": RESPONSE_VERSION,
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
                "posture_profile": health.daemon.posture,
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
                "description": "Listed capabilities are hints; responses are authoritative.",
            },
        },
        "server_version": health.daemon.version,
        "api_version": API_VERSION,
    })
}

/// The result of the action `health`.
pub fn health(health: &Health) -> Value {
    json!({
        "status": if health.is_well() { "healthy" } else { "unhealthy" },
        "kept": health.daemon.running,
        "server_version": health.daemon.version,
    })
}

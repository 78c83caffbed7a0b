//! In which words an answer is given: our own, or those of a program that was there before.

use api::{Code, Error};
use compat::promptyoself::Failure;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::size;
use crate::tool::{shown, with};

/// Letters of an id of Foundry's answers that tell them apart.
const REQUEST_ID_DIGITS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Native,
    /// `success` says whether it worked.
    Astra,
    /// `status` says whether it worked.
    Promptyoself,
    /// An envelope of the version `response-v2`, as text.
    Foundry,
}

impl Dialect {
    /// Whether an answer is given as a value too, and so has a schema.
    pub(crate) const fn is_structured(self) -> bool {
        !matches!(self, Dialect::Foundry)
    }

    /// The answer as its clients know it. Only our own say outside of it that something went wrong.
    pub(crate) fn result(self, answer: Result<Value, Error>) -> CallToolResult {
        let answer = answer.map(size::fitted);
        match (self, answer) {
            (Dialect::Native, Ok(answer)) => CallToolResult::structured(answer),
            (Dialect::Native, Err(error)) => {
                CallToolResult::structured_error(json!({ "error": error }))
            }
            (Dialect::Astra, Ok(answer)) => {
                CallToolResult::structured(with(answer, "success", true))
            }
            (Dialect::Astra, Err(Error { code, message, hint })) => {
                let refused = json!({"success": false, "error": message, "code": code});
                CallToolResult::structured(match hint {
                    Some(hint) => with(refused, "hint", hint),
                    None => refused,
                })
            }
            (Dialect::Promptyoself, Ok(answer)) => CallToolResult::structured(answer),
            (Dialect::Promptyoself, Err(error)) => {
                CallToolResult::structured(shown(&Failure::from(&error)).unwrap_or_default())
            }
            (Dialect::Foundry, answer) => {
                let envelope = envelope(answer).to_string();
                CallToolResult::success(vec![ContentBlock::text(envelope)])
            }
        }
    }
}

/// Of exactly four members.
fn envelope(answer: Result<Value, Error>) -> Value {
    let id = Uuid::new_v4().simple().to_string();
    let id = id.get(..REQUEST_ID_DIGITS).unwrap_or(&id);
    let meta = json!({"version": "response-v2", "request_id": format!("tool_{id}")});
    match answer {
        Ok(data) => json!({"success": true, "data": data, "error": null, "meta": meta}),
        Err(Error { code, message, hint }) => {
            let (error_code, error_type) = of_foundry(code);
            let data = json!({"error_code": error_code, "error_type": error_type});
            let data = match hint {
                Some(hint) => with(data, "remediation", hint),
                None => data,
            };
            json!({"success": false, "data": data, "error": message, "meta": meta})
        }
    }
}

/// Foundry's words for a code, and for the kind of it.
fn of_foundry(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::BadUsage => ("INVALID_FORMAT", "validation"),
        Code::InvalidInput | Code::TierTooLow => ("VALIDATION_ERROR", "validation"),
        Code::NotFound => ("NOT_FOUND", "not_found"),
        Code::TokenInvalid => ("UNAUTHORIZED", "authentication"),
        Code::RoleTooLow | Code::HumanNeeded | Code::Denied | Code::SwitchedOff => {
            ("AUTHORIZATION", "authorization")
        }
        Code::Exists | Code::KeyTaken | Code::NotNow | Code::Stale => ("CONFLICT", "conflict"),
        Code::LimitReached => ("RATE_LIMIT_EXCEEDED", "rate_limit"),
        Code::Busy | Code::Unreachable | Code::AlreadyRunning | Code::DatabaseAway => {
            ("UNAVAILABLE", "unavailable")
        }
        _ => ("INTERNAL_ERROR", "internal"),
    }
}

//! In which words an answer is given: our own, or those of a program that was there before.

use api::{Code, Error};
use compat::promptyoself::Failure;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::schema::Kind;
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

    /// What `error` is in an answer that is a refusal.
    pub(crate) const fn error(self) -> Kind {
        match self {
            Dialect::Native => Kind::Object,
            Dialect::Astra | Dialect::Promptyoself | Dialect::Foundry => Kind::Text,
        }
    }

    /// The answer as its clients know it. Only our own say outside of it that something went wrong.
    pub(crate) fn result(self, answer: Result<Value, Error>) -> CallToolResult {
        let answer = answer.map(size::fitted);
        match (self, answer) {
            (Dialect::Native, Ok(answer)) => linked(CallToolResult::structured(answer)),
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

/// With a link to where the whole is, if the answer names one.
fn linked(mut result: CallToolResult) -> CallToolResult {
    let named = result.structured_content.as_ref().and_then(|it| it.get("resource")?.as_str());
    if let Some(uri) = named {
        let link = Resource::new(uri, uri).with_mime_type("application/json");
        result.content.push(ContentBlock::resource_link(link));
    }
    result
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
        Code::LimitReached | Code::BudgetExhausted => ("RATE_LIMIT_EXCEEDED", "rate_limit"),
        Code::Busy | Code::Unreachable | Code::AlreadyRunning | Code::DatabaseAway => {
            ("UNAVAILABLE", "unavailable")
        }
        _ => ("INTERNAL_ERROR", "internal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn a_refusal_is_of_the_type_that_the_schema_says() {
        for dialect in [Dialect::Native, Dialect::Astra, Dialect::Promptyoself] {
            let refused =
                dialect.result(Err(Error::new(Code::NotFound, "there is none").hint("x")));
            let refused = refused.structured_content.unwrap();
            let schema = schema::output(&[], dialect.error());
            let is_text = refused["error"].is_string();
            let said = if is_text { "string" } else { "object" };
            assert_eq!(schema["properties"]["error"]["type"], said, "{dialect:?}");
        }
    }

    #[test]
    fn what_was_cut_is_linked_to() {
        let long = json!({"run": {"id": "run_1"}, "said": vec!["x".repeat(9_000); 9]});
        let result = Dialect::Native.result(Ok(long));
        let link = result.content.iter().find_map(|block| match block {
            ContentBlock::ResourceLink(link) => Some(link.uri.as_str()),
            _ => None,
        });
        assert_eq!(link, Some("midwatch://run/run_1"));
        assert!(serde_json::to_string(&result).unwrap().len() < 64 << 10);
        assert_eq!(Dialect::Native.result(Ok(json!({}))).content.len(), 1);
    }
}

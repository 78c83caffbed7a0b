//! The form of a tool's result: our own, or that of another system whose clients call the tool.

use api::Error;
use compat::foundry;
use compat::promptyoself::ErrorResult;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::schema::FieldType;
use crate::tool::{to_json, with_field};
use crate::truncation;

/// Random hex digits in a request id of Foundry's envelope.
const REQUEST_ID_DIGITS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultFormat {
    Native,
    /// Our own, as one block of text without structured content. Claude Code takes no other answer to a permission prompt.
    NativeText,
    /// An object with `success`.
    Astra,
    /// An object with `status`.
    Promptyoself,
    /// An envelope of version `response-v2`, as text.
    Foundry,
}

impl ResultFormat {
    /// Whether a result has structured content, and so an output schema.
    pub(crate) const fn is_structured(self) -> bool {
        !matches!(self, ResultFormat::Foundry | ResultFormat::NativeText)
    }

    /// The type of the member `error` of a refusal.
    pub(crate) const fn error_type(self) -> FieldType {
        match self {
            ResultFormat::Native | ResultFormat::NativeText => FieldType::Object,
            ResultFormat::Astra | ResultFormat::Promptyoself | ResultFormat::Foundry => {
                FieldType::Text
            }
        }
    }

    /// Renders an answer. Only our own form sets `isError`.
    pub(crate) fn render(self, answer: Result<Value, Error>) -> CallToolResult {
        let answer = answer.map(truncation::truncate_answer);
        match (self, answer) {
            (ResultFormat::Native, Ok(answer)) => {
                with_resource_link(CallToolResult::structured(answer))
            }
            (ResultFormat::Native, Err(error)) => {
                CallToolResult::structured_error(json!({ "error": error }))
            }
            (ResultFormat::NativeText, Ok(answer)) => {
                CallToolResult::success(vec![ContentBlock::text(answer.to_string())])
            }
            (ResultFormat::NativeText, Err(error)) => {
                let refused = json!({ "error": error }).to_string();
                CallToolResult::error(vec![ContentBlock::text(refused)])
            }
            (ResultFormat::Astra, Ok(answer)) => {
                CallToolResult::structured(with_field(answer, "success", true))
            }
            (ResultFormat::Astra, Err(Error { code, message, hint })) => {
                let refused = json!({"success": false, "error": message, "code": code});
                CallToolResult::structured(match hint {
                    Some(hint) => with_field(refused, "hint", hint),
                    None => refused,
                })
            }
            (ResultFormat::Promptyoself, Ok(answer)) => CallToolResult::structured(answer),
            (ResultFormat::Promptyoself, Err(error)) => {
                CallToolResult::structured(to_json(&ErrorResult::from(&error)).unwrap_or_default())
            }
            (ResultFormat::Foundry, answer) => {
                let envelope = foundry::envelope(answer, &foundry_request_id());
                CallToolResult::success(vec![ContentBlock::text(envelope.to_string())])
            }
        }
    }
}

/// Adds a link to the resource that a truncated answer names.
fn with_resource_link(mut result: CallToolResult) -> CallToolResult {
    let uri = result.structured_content.as_ref().and_then(|it| it.get("resource")?.as_str());
    if let Some(uri) = uri {
        let link = Resource::new(uri, uri).with_mime_type("application/json");
        result.content.push(ContentBlock::resource_link(link));
    }
    result
}

fn foundry_request_id() -> String {
    let id = Uuid::new_v4().simple().to_string();
    format!("tool_{}", id.get(..REQUEST_ID_DIGITS).unwrap_or(&id))
}

#[cfg(test)]
mod tests {
    use api::Code;

    use super::*;
    use crate::schema;

    #[test]
    fn the_error_of_a_refusal_has_the_type_of_the_output_schema() {
        for format in [ResultFormat::Native, ResultFormat::Astra, ResultFormat::Promptyoself] {
            let refused = format.render(Err(Error::new(Code::NotFound, "not found").hint("x")));
            let refused = refused.structured_content.unwrap();
            let schema = schema::output(&[], format.error_type());
            let is_text = refused["error"].is_string();
            let expected = if is_text { "string" } else { "object" };
            assert_eq!(schema["properties"]["error"]["type"], expected, "{format:?}");
        }
    }

    #[test]
    fn a_text_result_is_one_block_and_nothing_else() {
        let allowed = json!({"behavior": "allow", "updatedInput": {"content": "x".repeat(99_000)}});
        let refused = Error::new(Code::NotFound, "not found").hint("x");
        for (answer, is_error, expected) in [
            (Ok(allowed.clone()), false, allowed),
            (Err(refused.clone()), true, json!({"error": refused})),
        ] {
            let result = serde_json::to_value(ResultFormat::NativeText.render(answer)).unwrap();
            let text: Value =
                serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!((text, &result["isError"]), (expected, &json!(is_error)));
            assert_eq!(result["content"].as_array().unwrap().len(), 1);
            assert!(result.get("structuredContent").is_none(), "{result}");
        }
    }

    #[test]
    fn a_truncated_result_links_to_its_resource() {
        let long = json!({"run": {"id": "run_1"}, "said": vec!["x".repeat(9_000); 9]});
        let result = ResultFormat::Native.render(Ok(long));
        let link = result.content.iter().find_map(|block| match block {
            ContentBlock::ResourceLink(link) => Some(link.uri.as_str()),
            _ => None,
        });
        assert_eq!(link, Some("midwatch://run/run_1"));
        assert!(serde_json::to_string(&result).unwrap().len() < 64 << 10);
        assert_eq!(ResultFormat::Native.render(Ok(json!({}))).content.len(), 1);
    }
}

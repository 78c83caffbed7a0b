//! A message of a client as it came, or what is wrong with it.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcMessage, RequestId,
};
use serde_json::Value;
use serde_json::error::Category;

/// So much of a name is repeated.
const SHOWN_CHARS_MAX: usize = 100;

/// What is wrong with a message, and whose answer that is, as far as it can be read.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorData,
}

/// The beginning of what a client wrote, to be told what was wrong with it.
pub(crate) fn brief(text: &str) -> String {
    let mut brief: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if brief.len() < text.len() {
        brief.push('…');
    }
    brief
}

pub(crate) fn read(text: &[u8]) -> Result<ClientJsonRpcMessage, Wrong> {
    match api::json::read(text) {
        Ok(message) => checked(message, text),
        Err(error) => Err(wrong(text, &error)),
    }
}

/// Parameters that would be taken for none, or for those of a method that nobody knows.
fn checked(message: ClientJsonRpcMessage, text: &[u8]) -> Result<ClientJsonRpcMessage, Wrong> {
    let JsonRpcMessage::Request(asked) = &message else { return Ok(message) };
    let is_wrong = match &asked.request {
        ClientRequest::ListToolsRequest(_)
        | ClientRequest::ListPromptsRequest(_)
        | ClientRequest::ListResourcesRequest(_)
        | ClientRequest::ListResourceTemplatesRequest(_) => has_wrong_cursor(text),
        // Of the later era there is none.
        ClientRequest::CustomRequest(custom) => {
            custom.method == "initialize" && custom.get_meta().0.0.is_empty()
        }
        _ => false,
    };
    if !is_wrong {
        return Ok(message);
    }
    let error = ErrorData::invalid_params("the parameters are none of this method", None);
    Err(Wrong { id: Some(asked.id.clone()), error })
}

fn has_wrong_cursor(text: &[u8]) -> bool {
    let document: Value = serde_json::from_slice(text).unwrap_or_default();
    document.pointer("/params/cursor").is_some_and(|it| !it.is_string() && !it.is_null())
}

fn wrong(text: &[u8], error: &serde_json::Error) -> Wrong {
    let document: Value = api::json::read(text).unwrap_or_default();
    let id = document.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    let is_request = document.get("method").is_some_and(Value::is_string) && id.is_some();
    let has_wrong_params = document.get("params").is_some_and(|it| !it.is_object());
    let code = match error.classify() {
        Category::Data if is_request && has_wrong_params => ErrorCode::INVALID_PARAMS,
        Category::Data => ErrorCode::INVALID_REQUEST,
        Category::Syntax | Category::Eof | Category::Io => ErrorCode::PARSE_ERROR,
    };
    let what = format!("this is no message: {}", brief(&error.to_string()));
    Wrong { id, error: ErrorData::new(code, what, None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code and the id with which a message is refused.
    fn refused(text: &str) -> Option<(i32, Option<i64>)> {
        let wrong = read(text.as_bytes()).err()?;
        let id = wrong.id.and_then(|id| serde_json::to_value(id).ok()?.as_i64());
        Some((wrong.error.code.0, id))
    }

    #[test]
    fn what_is_wrong_is_said_to_whoever_asked() {
        for (text, expected) in [
            ("", (-32700, None)),
            ("{", (-32700, None)),
            ("null", (-32600, None)),
            ("[]", (-32600, None)),
            ("7", (-32600, None)),
            (r#"{"jsonrpc":"2.0","id":6,"method":7}"#, (-32600, Some(6))),
            (r#"{"jsonrpc":"1.0","id":6,"method":"ping"}"#, (-32600, Some(6))),
            (r#"{"jsonrpc":"2.0","id":6,"id":7,"method":"ping"}"#, (-32600, None)),
            (r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[]}"#, (-32602, Some(6))),
            (
                r#"{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"cursor":7}}"#,
                (-32602, Some(6)),
            ),
            (
                r#"{"jsonrpc":"2.0","id":6,"method":"prompts/list","params":{"cursor":[]}}"#,
                (-32602, Some(6)),
            ),
            (
                r#"{"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":null}}"#,
                (-32602, Some(6)),
            ),
        ] {
            assert_eq!(refused(text), Some(expected), "{text}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"cursor":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"cursor":null}}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }
}

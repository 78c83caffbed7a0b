//! Parses a message of a client, or returns the protocol error to answer with.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcMessage, RequestId,
};
use serde_json::Value;
use serde_json::error::Category;

/// Longest part of a client's text that an error message repeats.
const SHOWN_CHARS_MAX: usize = 100;

/// An error for an invalid message, and the id of the request if it can be read.
#[derive(Debug)]
pub(crate) struct InvalidMessage {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorData,
}

/// The beginning of a client's text, for an error message.
pub(crate) fn abbreviate(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

pub(crate) fn parse(text: &[u8]) -> Result<ClientJsonRpcMessage, InvalidMessage> {
    match api::json::read(text) {
        Ok(message) => check_params(message, text),
        Err(error) => Err(invalid_message(text, &error)),
    }
}

/// Refuses invalid parameters that the SDK would ignore or take for an unknown method.
fn check_params(
    message: ClientJsonRpcMessage,
    text: &[u8],
) -> Result<ClientJsonRpcMessage, InvalidMessage> {
    let JsonRpcMessage::Request(request) = &message else { return Ok(message) };
    let is_invalid = match &request.request {
        ClientRequest::ListToolsRequest(_)
        | ClientRequest::ListPromptsRequest(_)
        | ClientRequest::ListResourcesRequest(_)
        | ClientRequest::ListResourceTemplatesRequest(_) => has_invalid_cursor(text),
        // The later era has no `initialize`; its requests have metadata.
        ClientRequest::CustomRequest(custom) => {
            custom.method == "initialize" && custom.get_meta().0.0.is_empty()
        }
        _ => false,
    };
    if !is_invalid {
        return Ok(message);
    }
    let error = ErrorData::invalid_params("invalid parameters for this method", None);
    Err(InvalidMessage { id: Some(request.id.clone()), error })
}

fn has_invalid_cursor(text: &[u8]) -> bool {
    let document: Value = serde_json::from_slice(text).unwrap_or_default();
    document.pointer("/params/cursor").is_some_and(|it| !it.is_string() && !it.is_null())
}

fn invalid_message(text: &[u8], error: &serde_json::Error) -> InvalidMessage {
    let document: Value = api::json::read(text).unwrap_or_default();
    let id = document.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    let is_request = document.get("method").is_some_and(Value::is_string) && id.is_some();
    let has_invalid_params = document.get("params").is_some_and(|it| !it.is_object());
    let code = match error.classify() {
        Category::Data if is_request && has_invalid_params => ErrorCode::INVALID_PARAMS,
        Category::Data => ErrorCode::INVALID_REQUEST,
        Category::Syntax | Category::Eof | Category::Io => ErrorCode::PARSE_ERROR,
    };
    let what = format!("invalid message: {}", abbreviate(&error.to_string()));
    InvalidMessage { id, error: ErrorData::new(code, what, None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error code and request id of a refused message.
    fn refused(text: &str) -> Option<(i32, Option<i64>)> {
        let invalid = parse(text.as_bytes()).err()?;
        let id = invalid.id.and_then(|id| serde_json::to_value(id).ok()?.as_i64());
        Some((invalid.error.code.0, id))
    }

    #[test]
    fn an_invalid_message_is_answered_with_its_error_code_and_request_id() {
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

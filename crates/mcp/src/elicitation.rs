//! URL elicitation: asks a client to open the approval page for its user.
//!
//! It only notifies a human. The client's answer is ignored, so forging one gains nothing: the decision is made on the
//! page and recorded by the daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, InputRequest, InputRequiredResult, InputResponses,
    ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::time::timeout;
use tracing::debug;

/// The key of the one input request of a call.
const REQUEST_KEY: &str = "human";
/// How long a call waits for the client to open the link. The link stays valid afterwards.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// A pending approval: its id, the link to its page, and a message for the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApprovalLink<'a> {
    pub(crate) id: &'a str,
    pub(crate) link: &'a str,
    pub(crate) message: &'a str,
}

impl<'a> ApprovalLink<'a> {
    /// Reads it from an answer that has a link and whose approval is pending.
    pub(crate) fn from_response(answer: &'a Value) -> Option<ApprovalLink<'a>> {
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let is_waiting = answer.get("waiting").and_then(Value::as_bool).unwrap_or(false);
        let link =
            ApprovalLink { id: text("approval_id")?, link: text("link")?, message: text("tell")? };
        is_waiting.then_some(link)
    }

    /// Asks the client to open the link, if it can. In the later era the request is the result of the call, which is
    /// returned here; the client then repeats the call with `answered`.
    pub(crate) async fn elicit(
        &self,
        context: &RequestContext<RoleServer>,
        answered: Option<&InputResponses>,
    ) -> Option<InputRequiredResult> {
        let can_open = context.client_capabilities().and_then(|can| can.elicitation?.url);
        if can_open.is_none() || answered.is_some() {
            return None;
        }
        if is_modern(context) {
            let request = InputRequest::Elicitation(ElicitRequest::new(self.params()));
            let requests = BTreeMap::from([(REQUEST_KEY.to_owned(), request)]);
            return Some(InputRequiredResult::from_input_requests(requests));
        }
        let opened = timeout(OPEN_TIMEOUT, context.peer.create_elicitation(self.params()));
        if let Ok(Err(error)) = opened.await {
            debug!(%error, "the client did not open the approval link");
        }
        None
    }

    fn params(&self) -> ElicitRequestParams {
        ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: self.message.to_owned(),
            url: self.link.to_owned(),
            elicitation_id: self.id.to_owned(),
        }
    }
}

/// Whether a request is of the later era, 2026-07-28 or newer.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|it| ProtocolVersion::V_2026_07_28.as_str() <= it.as_str())
}

//! Calling the user of a client to a page where they decide, where the client can open one.
//!
//! It is a way to tell a human, and no more: what the client answers is not looked at. Whether anybody has decided is
//! in the watch, and whoever forges an answer gets what they would have got without one.

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

/// Under which the one question of a call stands.
const QUESTION: &str = "human";
/// How long a call waits for somebody to open the link. Whoever comes later still finds it: it is not taken back.
const OPENED_WITHIN: Duration = Duration::from_secs(10);

/// A link, and what it is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Summons<'a> {
    pub(crate) id: &'a str,
    pub(crate) link: &'a str,
    pub(crate) tell: &'a str,
}

impl<'a> Summons<'a> {
    /// Of an answer that calls for a human at a link, as long as one is waited for.
    pub(crate) fn of(answer: &'a Value) -> Option<Summons<'a>> {
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let is_waiting = answer.get("waiting").and_then(Value::as_bool).unwrap_or(false);
        let summons = Summons { id: text("id")?, link: text("link")?, tell: text("tell")? };
        is_waiting.then_some(summons)
    }

    /// Has the client show the link. A client of the later era shows it and calls again, with `answered`; this is what
    /// it is told then. One that cannot open a link is told nothing of it.
    pub(crate) async fn show(
        &self,
        context: &RequestContext<RoleServer>,
        answered: Option<&InputResponses>,
    ) -> Option<InputRequiredResult> {
        let can = context.client_capabilities().and_then(|can| can.elicitation?.url);
        if can.is_none() || answered.is_some() {
            return None;
        }
        if is_modern(context) {
            let question = InputRequest::Elicitation(ElicitRequest::new(self.params()));
            let questions = BTreeMap::from([(QUESTION.to_owned(), question)]);
            return Some(InputRequiredResult::from_input_requests(questions));
        }
        let opened = timeout(OPENED_WITHIN, context.peer.create_elicitation(self.params()));
        if let Ok(Err(error)) = opened.await {
            debug!(%error, "the client does not open the link");
        }
        None
    }

    fn params(&self) -> ElicitRequestParams {
        ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: self.tell.to_owned(),
            url: self.link.to_owned(),
            elicitation_id: self.id.to_owned(),
        }
    }
}

/// Whether the request is of the later era.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|it| ProtocolVersion::V_2026_07_28.as_str() <= it.as_str())
}

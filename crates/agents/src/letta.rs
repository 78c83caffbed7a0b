//! A Letta agent: the prompt is sent as a message of its user, and the assistant's messages are the output.
//!
//! A delivered prompt stays in the agent's history, so nothing is sent twice here, and the outcome of a request
//! without a response is indeterminate. Letta has two servers: `rest` is for the V1 server, `app_server` for the
//! App Server. `stop_reason` maps the reason why an agent stopped to an outcome.

mod app_server;
mod check;
mod rest;
mod stop_reason;

use std::time::Duration;

use kernel::budget::Usage;
use kernel::remote::{Letta, LettaApi};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) use check::check_server;
pub use stop_reason::StopReason;

use crate::attempt::{Attempt, Failure, Outcome, Reason};
use crate::endpoint::{Endpoint, egress_for_server};
use crate::failure::failure_of;
use crate::http::{Http, HttpResponse};
use crate::output::Recorder;
use crate::output_filter::OutputFilter;
use crate::secrets::Secrets;

/// Limit of a response that is not a stream.
const RESPONSE_BYTES_MAX: usize = 16 << 20;
/// How long the request that cancels a turn may take.
const CANCEL_TIME_MAX: Duration = Duration::from_secs(5);
/// Follows the message that no connection could be made.
const CONNECT_HINT: &str = "; is Letta running? `--url` names another";

/// One prompt to one agent.
pub(crate) struct Turn<'a> {
    server: &'a Letta,
    attempt: &'a Attempt,
    endpoint: Endpoint<'a>,
}

/// What the server reported about a finished turn.
#[derive(Debug, Default)]
struct TurnResult {
    /// Why the agent stopped, as the server writes it.
    stop: Option<String>,
    usage: Option<Usage>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        client: (&'a Http, &'a dyn Secrets),
        server: &'a Letta,
        attempt: &'a Attempt,
    ) -> Result<Turn<'a>, Failure> {
        let egress = egress_for_server(&server.url, server.allow_private);
        let credential = attempt.agent.credential.as_ref();
        let endpoint = Endpoint::new(client, credential, (&server.url, egress), attempt.time_max)?;
        Ok(Turn { server, attempt, endpoint: Endpoint { connect_hint: CONNECT_HINT, ..endpoint } })
    }

    /// Sends the prompt and waits until the turn is over.
    pub(crate) async fn run(
        &self,
        recorder: &mut Recorder,
        stop: &CancellationToken,
    ) -> (Outcome, Option<Usage>) {
        let result = tokio::select! {
            biased;
            result = timeout(self.attempt.time_max, self.deliver(recorder)) => result,
            () = stop.cancelled() => {
                self.cancel().await;
                return (Outcome::Cancelled, None);
            }
        };
        match result {
            Ok(Ok(result)) => (StopReason::outcome_of(result.stop.as_deref()), result.usage),
            // The request has the same limit, and may time out first.
            Ok(Err(failure)) if failure.reason == Reason::Timeout => {
                self.cancel().await;
                (Outcome::Failed(failure), None)
            }
            Ok(Err(failure)) => (Outcome::Failed(failure), None),
            Err(_) => {
                self.cancel().await;
                let time_max = self.attempt.time_max;
                let message = format!("the request was sent, but timed out after {time_max:?}");
                (Outcome::Failed(Failure::indeterminate(Reason::Timeout, message)), None)
            }
        }
    }

    async fn deliver(&self, recorder: &mut Recorder) -> Result<TurnResult, Failure> {
        let mut output = OutputFilter::new(recorder, self.endpoint.secrets);
        let result = match self.server.api {
            LettaApi::Rest => self.send_rest(&mut output).await,
            LettaApi::Openai => self.send_app_server(&mut output).await,
        };
        output.finish().await;
        result
    }

    /// Asks the server to stop the turn. It may not comply, so the outcome stays indeterminate.
    async fn cancel(&self) {
        match self.server.api {
            LettaApi::Rest => drop(timeout(CANCEL_TIME_MAX, self.cancel_rest()).await),
            // It has no such request; closing the connection is all there is.
            LettaApi::Openai => {}
        }
    }
}

/// Reads the JSON of a response to a prompt.
async fn read_json<T: DeserializeOwned>(response: HttpResponse) -> Result<T, Failure> {
    let body = response.body(RESPONSE_BYTES_MAX).await.map_err(|it| failure_of(&it))?;
    serde_json::from_slice(&body).map_err(|_| unreadable())
}

fn unreadable() -> Failure {
    let message =
        "the server answered something that is not Letta's API; the prompt may have arrived";
    Failure::indeterminate(Reason::ResponseUnreadable, message)
}

/// The failure of a response that ends before it says why the agent stopped.
fn truncated() -> Failure {
    let message = "the request was sent, but the response was truncated";
    Failure::indeterminate(Reason::ConnectionLost, message)
}

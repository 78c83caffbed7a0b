//! A webhook agent: the prompt is sent as a signed JSON payload to a url.
//!
//! The signature covers the time and the body, so that neither can be changed and a receiver recognises an old
//! request: `HMAC-SHA256(secret, timestamp "." body)`, in hexadecimal.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use kernel::backend::SecretRef;
use kernel::remote::Webhook;
use reqwest::Method;
use serde::Serialize;
use sha2::Sha256;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::ServerCheck;
use crate::attempt::{Attempt, Failure, Outcome, Reason};
use crate::egress::Egress;
use crate::endpoint::Endpoint;
use crate::http::{Http, IDEMPOTENCY_KEY, OPTIONAL_BODY_TIME_MAX};
use crate::output::Recorder;
use crate::output_filter::OutputFilter;
use crate::secrets::Secrets;

const TIMESTAMP: &str = "midwatch-timestamp";
const SIGNATURE: &str = "midwatch-signature";
const ATTEMPT: &str = "midwatch-attempt";
/// How much of the response is kept as output.
const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// Follows the message that no connection could be made.
const CONNECT_HINT: &str = "; `--url` names another";

/// The JSON that is sent. Fields may be added, never removed.
#[derive(Serialize)]
struct Payload<'a> {
    run: &'a str,
    schedule: Option<&'a str>,
    slot: Option<&'a str>,
    attempt: u32,
    agent: &'a str,
    prompt: &'a str,
}

pub(crate) struct WebhookCall<'a> {
    attempt: &'a Attempt,
    endpoint: Endpoint<'a>,
}

impl<'a> WebhookCall<'a> {
    pub(crate) fn new(
        client: (&'a Http, &'a dyn Secrets),
        webhook: &'a Webhook,
        attempt: &'a Attempt,
    ) -> Result<WebhookCall<'a>, Failure> {
        let credential = attempt.agent.credential.as_ref();
        let (url, egress) = (&webhook.url, egress_of(webhook));
        let endpoint = Endpoint::new(client, credential, (url, egress), attempt.time_max)?;
        Ok(WebhookCall { attempt, endpoint })
    }

    pub(crate) async fn run(&self, recorder: &mut Recorder, stop: &CancellationToken) -> Outcome {
        let sent = tokio::select! {
            biased;
            sent = timeout(self.attempt.time_max, self.send(recorder)) => sent,
            () = stop.cancelled() => return Outcome::Cancelled,
        };
        match sent {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(failure)) => Outcome::Failed(failure),
            Err(_) => {
                let time_max = self.attempt.time_max;
                let message = format!("the request was sent, but timed out after {time_max:?}");
                Outcome::Failed(Failure::indeterminate(Reason::Timeout, message))
            }
        }
    }

    async fn send(&self, recorder: &mut Recorder) -> Result<(), Failure> {
        let attempt = self.attempt;
        let payload = Payload {
            run: &attempt.run,
            schedule: attempt.schedule.as_deref(),
            slot: attempt.slot.as_deref(),
            attempt: attempt.number,
            agent: attempt.agent.name.as_str(),
            prompt: &attempt.prompt,
        };
        let body = serde_json::to_vec(&payload)
            .map_err(|error| Failure::permanent(Reason::NotAllowed, error.to_string()))?;
        let timestamp = attempt.started_at.as_micros().div_euclid(1_000_000).to_string();
        let mut request = self.endpoint.request(Method::POST, &[]);
        request.url = self.endpoint.url.clone();
        // The secret signs the request and is not sent.
        request.token = None;
        let signature = self.endpoint.secret.as_ref().map(|secret| sign(secret, &timestamp, &body));
        request.headers = vec![
            (IDEMPOTENCY_KEY, attempt.run.clone()),
            (ATTEMPT, attempt.number.to_string()),
            (TIMESTAMP, timestamp),
        ];
        request.headers.extend(signature.map(|signature| (SIGNATURE, signature)));
        request.body = Some(body);
        let response = self.endpoint.send(request).await?;
        // The status is a success; the body is only output.
        let text = response.read_beginning(RESPONSE_BYTES_MAX, OPTIONAL_BODY_TIME_MAX).await;
        let mut output = OutputFilter::new(recorder, self.endpoint.secrets);
        output.write_text(&String::from_utf8_lossy(&text)).await;
        output.finish().await;
        Ok(())
    }
}

/// Says why no connection can be made. Any request may have an effect, so none is sent.
pub(crate) async fn check_server(
    client: (&Http, &dyn Secrets),
    webhook: &Webhook,
    credential: Option<&SecretRef>,
) -> ServerCheck {
    let (url, egress) = (&webhook.url, egress_of(webhook));
    let connected = match Endpoint::new(client, credential, (url, egress), Duration::ZERO) {
        Ok(endpoint) => Endpoint { connect_hint: CONNECT_HINT, ..endpoint }.connect().await,
        Err(failure) => Err(failure),
    };
    let problem = connected.err().map(|failure| match failure.reason {
        Reason::NotAllowed if !webhook.allow_private => {
            format!("{}; `--allow-private` allows it", failure.message)
        }
        _ => failure.message,
    });
    ServerCheck { facts: Vec::new(), problems: problem.into_iter().collect() }
}

/// The networks that prompts may go to.
const fn egress_of(webhook: &Webhook) -> Egress {
    if webhook.allow_private { Egress::Unrestricted } else { Egress::Public }
}

fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let hex: String =
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `printf '%s' '1763200000.{"run":"r"}' | openssl dgst -sha256 -hmac key`.
    #[test]
    fn signature_covers_time_and_body() {
        let signature = sign("key", "1763200000", br#"{"run":"r"}"#);
        assert_eq!(
            signature,
            "v1=5f4d030fea0b6ee385da10aff72de259ced1dfaff6cfaaffa7fcd4e3830d1654"
        );
        assert_ne!(signature, sign("key", "1763200001", br#"{"run":"r"}"#));
        assert_ne!(signature, sign("other", "1763200000", br#"{"run":"r"}"#));
    }
}

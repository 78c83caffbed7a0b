//! A webhook: a signed document is sent to a url, and whoever listens there takes it or does not.
//!
//! The signature is over the time and the body, so that neither can be changed and an old request is known
//! for one: `HMAC-SHA256(secret, timestamp "." body)`, in hexadecimal.

use hmac::{Hmac, KeyInit, Mac};
use kernel::remote::Webhook;
use reqwest::Method;
use serde::Serialize;
use sha2::Sha256;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::http::{BESIDES_TIME_MAX, Http, IDEMPOTENCY_KEY};
use crate::link::Link;
use crate::output::Recorder;
use crate::reach::Reach;
use crate::secrets::Secrets;
use crate::telling::Telling;
use crate::work::{Failure, Outcome, Reason, Work};

const TIMESTAMP: &str = "midwatch-timestamp";
const SIGNATURE: &str = "midwatch-signature";
const ATTEMPT: &str = "midwatch-attempt";
/// What is kept of the answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What is sent. A new field may come, none goes away.
#[derive(Serialize)]
struct Document<'a> {
    run: &'a str,
    schedule: Option<&'a str>,
    slot: Option<&'a str>,
    attempt: u32,
    agent: &'a str,
    prompt: &'a str,
}

pub(crate) struct Call<'a> {
    work: &'a Work,
    link: Link<'a>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        means: (&'a Http, &'a dyn Secrets),
        webhook: &'a Webhook,
        work: &'a Work,
    ) -> Result<Call<'a>, Failure> {
        let reach = if webhook.allow_private { Reach::Private } else { Reach::Public };
        let credential = work.agent.credential.as_ref();
        let link = Link::new(means, credential, (&webhook.url, reach), work.time_max)?;
        Ok(Call { work, link })
    }

    pub(crate) async fn run(&self, recorder: &mut Recorder, stop: &CancellationToken) -> Outcome {
        let told = tokio::select! {
            biased;
            told = timeout(self.work.time_max, self.send(recorder)) => told,
            () = stop.cancelled() => return Outcome::Cancelled,
        };
        match told {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(failure)) => Outcome::Failed(failure),
            Err(_) => {
                let said = format!("it was sent, and took longer than {:?}", self.work.time_max);
                Outcome::Failed(Failure::doubtful(Reason::Timeout, said))
            }
        }
    }

    async fn send(&self, recorder: &mut Recorder) -> Result<(), Failure> {
        let work = self.work;
        let document = Document {
            run: &work.run,
            schedule: work.schedule.as_deref(),
            slot: work.slot.as_deref(),
            attempt: work.attempt,
            agent: work.agent.name.as_str(),
            prompt: &work.prompt,
        };
        let body = serde_json::to_vec(&document)
            .map_err(|error| Failure::permanent(Reason::NotAllowed, error.to_string()))?;
        let timestamp = work.at.as_micros().div_euclid(1_000_000).to_string();
        let mut request = self.link.request(Method::POST, &[]);
        request.url = self.link.url.clone();
        // It signs, and is itself not sent.
        request.token = None;
        let signature = self.link.secret.as_ref().map(|secret| sign(secret, &timestamp, &body));
        request.headers = vec![
            (IDEMPOTENCY_KEY, work.run.clone()),
            (ATTEMPT, work.attempt.to_string()),
            (TIMESTAMP, timestamp),
        ];
        request.headers.extend(signature.map(|signature| (SIGNATURE, signature)));
        request.body = Some(body);
        let answer = self.link.ask(request).await?;
        // It was taken. What is said besides is worth a moment.
        let said = answer.beginning(ANSWER_BYTES_MAX, BESIDES_TIME_MAX).await;
        let mut telling = Telling::new(recorder, self.link.secrets);
        telling.say(&String::from_utf8_lossy(&said)).await;
        telling.end().await;
        Ok(())
    }
}

fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    // A key of any length will do.
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
    fn a_signature_is_over_time_and_body() {
        let signature = sign("key", "1763200000", br#"{"run":"r"}"#);
        assert_eq!(
            signature,
            "v1=5f4d030fea0b6ee385da10aff72de259ced1dfaff6cfaaffa7fcd4e3830d1654"
        );
        assert_ne!(signature, sign("key", "1763200001", br#"{"run":"r"}"#));
        assert_ne!(signature, sign("other", "1763200000", br#"{"run":"r"}"#));
    }
}
